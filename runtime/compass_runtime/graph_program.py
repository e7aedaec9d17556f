"""Programs of several kernels in one file, for NPU and host, as `compass-run` runs them: tensors by name, like those of an aipu.bin.

The file is a module file (`compass_runtime.module`) whose first module makes graph executors; `relay.build` exports it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from compass_core.aipubin.dtypes import BY_NAME
from compass_core.aipubin.graphnote import GraphNote, NotedState, NotedTensor
from compass_core.aipubin.layout import SubSection
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.files.pieces import Pieces
from compass_runtime.compass_module import CompassModule
from compass_runtime.devices import cpu
from compass_runtime.factory import GraphExecutorFactory
from compass_runtime.module import DESCRIPTION, unpack
from compass_runtime.program import JobSlot, TensorInfo
from compass_sim import RunResult


def is_package(data: bytes | Pieces) -> bool:
    """Whether the bytes of a file begin as those of a module file do."""
    return bytes(data[: len(DESCRIPTION.encode())]) == DESCRIPTION.encode()


class GraphProgram:
    """A graph of kernels with its parameters."""

    kernel: None = None
    states: tuple[NotedState, ...] = ()

    def __init__(self, factory: GraphExecutorFactory, where: str) -> None:
        self.where = where
        self.executor = factory.executor(cpu())
        parts = [m.target for m in factory.tree() if isinstance(m, CompassModule)]
        self.target = " and ".join(dict.fromkeys([*parts, "host"]))
        shapes, dtypes = self.executor.input_info()
        given = [("input", name, shape, dtypes[name]) for name, shape in shapes.items()]
        results = map(self.executor.output, range(len(self.executor.graph.heads)))
        made = [("output", f"output{i}", r.shape, str(r.dtype)) for i, r in enumerate(results)]
        self.inputs = [self._info(i, *one) for i, one in enumerate(given)]
        self.outputs = [self._info(i, *one) for i, one in enumerate(made)]
        self.params = [*self.inputs, *self.outputs]
        ends = [
            tuple(NotedTensor(i.name, i.dtype.name, i.shape or ()) for i in infos)
            for infos in (self.inputs, self.outputs)
        ]
        self.note = GraphNote(ends[0], ends[1])

    @classmethod
    def load(cls, data: bytes, where: str) -> GraphProgram:
        """The program of the bytes of the file `where`. CompassError with the place of what is damaged."""
        module = unpack(data, where)
        if not isinstance(module, GraphExecutorFactory):
            raise CompassError(
                f"'{where}' has no graph to run: it begins with a {module.type_key}",
                code="module-file",
                help="relay.build(...).export_library(FILE) writes one that has",
            )
        return cls(module, where)

    def _info(self, index: int, role: str, name: str, shape: tuple[int, ...], dtype: str) -> TensorInfo:
        if dtype not in BY_NAME:
            known = ", ".join(BY_NAME)
            raise CompassError(
                f"{self.where}: {role} '{name}' is {dtype}", code="tensor-dtype", help=f"known are {known}"
            )
        return TensorInfo(name, role, index, BY_NAME[dtype], shape, False, (0, SubSection()), has_axes=True)

    def create_job(
        self,
        shapes: Mapping[str, Sequence[int]] | None = None,
        values: Mapping[str, float] | None = None,
        arrays: Mapping[str, tuple[int, ...]] | None = None,
    ) -> GraphJob:
        """A job; sizes are those of the build. CompassError for others."""
        for name in (*(shapes or ()), *(values or ())):
            raise CompassError(f"{self.where}: all shapes are known, '{name}' cannot be set", code="usage")
        return GraphJob(self)


class GraphJob:
    """Runs of a graph with tensors by name. `result` is that of the last run."""

    def __init__(self, program: GraphProgram) -> None:
        self.program = program
        self.values: dict[str, float] = {}
        self.inputs = [JobSlot(info, info.shape or ()) for info in program.inputs]
        self.outputs = [JobSlot(info, info.shape or ()) for info in program.outputs]
        self.result: RunResult

    def run(
        self, inputs: Mapping[str, Array], timeout: float | None = None, initial: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """The outputs for inputs."""
        executor = self.program.executor
        for slot in self.inputs:
            array = slot.info.checked(inputs[slot.info.name], slot.nbytes)
            executor.set_input(slot.info.name, array.reshape(slot.shape))
        start = time.perf_counter()
        executor.run()
        self.result = RunResult(time.perf_counter() - start, "")
        return {slot.info.name: np.array(executor.output(i).numpy()) for i, slot in enumerate(self.outputs)}

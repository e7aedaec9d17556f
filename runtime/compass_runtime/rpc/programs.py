"""Programs of NPUs that are loaded here and run on a server: called like a `Program`, or as a `Job` with tensors by name.

What the program's tensors and scalars are is known here, so that arguments are sorted, and errors about them told, as they are
for programs that run here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.vendor import wrong_argument_count
from compass_runtime.program import JobSlot
from compass_runtime.rpc.errors import damaged
from compass_runtime.rpc.remote import RemoteArray
from compass_runtime.rpc.session import Session
from compass_runtime.timing import BenchmarkResult

if TYPE_CHECKING:
    from compass_runtime.program import Program
    from compass_sim import RunResult


_ROOM = 64 << 10
"""Bytes behind a tensor of a kernel that servers have which know nothing of extents (compass-rpcd)."""


class RemoteProgram:
    """`program` on the server of a session; `content` is its aipu.bin."""

    def __init__(self, session: Session, program: Program, content: bytes) -> None:
        self.session, self.program = session, program
        self.module = session.load_bytes(content)
        self._knows_extents = bool(session.info.get("extents"))
        outputs = {info.name for info in program.outputs}
        self._outputs = [i for i, name in enumerate(program.caller.names) if name in outputs]

    def call(self, args: Sequence[object], timeout: float | None = None, record: bool = False) -> RunResult:
        """Runs with one argument per kernel parameter, outputs in place; see `Program.call`. `record`: see `Job.execute`."""
        from compass_sim import RunResult

        given = self._given(args)
        made = self.session.asked(list, "program.call", self.module, given, self._outputs, timeout, record)
        seconds, printed, contents, recorded = made
        self._store(args, given, contents)
        return RunResult(seconds, printed, recorded.numpy().tobytes() if isinstance(recorded, RemoteArray) else b"")

    def time(self, args: Sequence[object], plan: Mapping[str, object]) -> BenchmarkResult:
        """Times runs on the server: arguments are copied to the device once before, outputs back after all runs."""
        given = self._given(args)
        groups, busy, contents = self.session.asked(list, "program.time", self.module, given, self._outputs, dict(plan))
        self._store(args, given, contents)
        return BenchmarkResult(tuple(groups), BenchmarkResult(tuple(busy)))

    def _given(self, args: Sequence[object]) -> list[object]:
        """The arguments as they go to the server. CompassError where their number or an output is wrong."""
        names = self.program.caller.names
        if len(args) != len(names):
            kernel = self.program.kernel.kernel if self.program.kernel else self.program.where
            raise wrong_argument_count(kernel, names, len(args))
        for i in self._outputs:
            if isinstance(output := args[i], np.ndarray) and not output.flags.writeable:
                raise CompassError(
                    f"argument {i + 1} ('{names[i]}') is an output, but the array is read-only", code="read-only"
                )
        if not self._knows_extents:
            self.check_room(*self.program.caller.sizes(args))
        return self.session.given(args)

    def check_room(self, shapes: Mapping[str, tuple[int, ...]], room: Mapping[str, int]) -> None:
        """CompassError where a kernel may touch more behind a tensor than a server has there, which knows nothing of it."""
        sizes = {info.name: info.dtype.size for info in (*self.program.inputs, *self.program.outputs)}
        for name, elements in () if self._knows_extents else room.items():
            if (elements - math.prod(shapes[name])) * sizes[name] > _ROOM:
                raise CompassError(
                    f"the kernel may touch {elements} elements of '{name}', which has {math.prod(shapes[name])}; "
                    f"this server has memory for {_ROOM} bytes behind it",
                    code="tensor-size",
                    help="pass a larger array, or build the kernel with --shape",
                )

    def _store(self, args: Sequence[object], given: Sequence[object], contents: object) -> None:
        """Copies the outputs into the arrays of a call."""
        if not isinstance(contents, list) or len(contents) != len(self._outputs):
            raise damaged("a run without its outputs")
        for i, content in zip(self._outputs, contents, strict=True):
            output, sent = args[i], given[i]
            if not isinstance(output, np.ndarray):
                continue
            found = sent.numpy() if isinstance(sent, RemoteArray) else content
            if not isinstance(found, np.ndarray) or found.nbytes != output.nbytes:
                raise damaged("an output of another size")
            output[...] = found.view(output.dtype).reshape(output.shape)

    def create_job(
        self,
        shapes: Mapping[str, Sequence[int]] | None = None,
        values: Mapping[str, float] | None = None,
        arrays: Mapping[str, tuple[int, ...]] | None = None,
    ) -> RemoteJob:
        """A job for certain sizes and scalars, see `Program.create_job`."""
        resolved, scalars, room = self.program.resolve(shapes or {}, values or {}, arrays or {})
        self.check_room(resolved, room)
        return RemoteJob(self, resolved, scalars)


class RemoteJob:
    """Runs on a server with tensors by name. `result` is that of the last run."""

    def __init__(
        self, remote: RemoteProgram, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, float]
    ) -> None:
        self.remote, self.program = remote, remote.program
        self.values = dict(values)
        self.inputs = [JobSlot(info, shapes[info.name]) for info in self.program.inputs]
        self.outputs = [JobSlot(info, shapes[info.name]) for info in self.program.outputs]
        self.result: RunResult

    def run(
        self, inputs: Mapping[str, Array], timeout: float | None = None, initial: Mapping[str, Array] | None = None
    ) -> dict[str, Array]:
        """The outputs for inputs; `initial`: what outputs hold before."""
        from compass_sim import RunResult

        arrays = [inputs.get(slot.info.name) for slot in self.inputs]
        arrays += [(initial or {}).get(slot.info.name) for slot in self.outputs]
        given = self.remote.session.given(arrays)
        shapes = (
            {slot.info.name: list(slot.shape) for slot in (*self.inputs, *self.outputs)} if self.program.kernel else {}
        )
        options = {"shapes": shapes, "values": self.values, "timeout": timeout}
        first = len(self.inputs)
        made = self.remote.session.asked(list, "program.run", self.remote.module, given[:first], given[first:], options)
        seconds, printed, found = made
        self.result = RunResult(seconds, printed)
        outputs = {}
        for slot, content in zip(self.outputs, found, strict=True):
            content = content.numpy() if isinstance(content, RemoteArray) else content
            if not isinstance(content, np.ndarray) or content.nbytes != slot.nbytes:
                raise damaged("an output of another size")
            outputs[slot.info.name] = content.view(slot.info.numpy_dtype).reshape(slot.shape)
        return outputs

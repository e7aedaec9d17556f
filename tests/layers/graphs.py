"""Many layers in one graph: each is a case with what NumPy gives for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from compass_runtime import Program
from compass_runtime.program import numpy_dtype
from compassc.gbuilder.build import GraphBuild, GraphOptions, build_model
from compassc.gbuilder.plugin_api import SubgraphNode, Tensor
from compassc.gbuilder.writer import GraphWriter
from compassc.layers.library import GroupPlugin

Array = np.ndarray[Any, Any]
RELATIVE = {"float32": 3e-5, "float16": 4e-3}
"""Distance from the double-precision result, relative to its largest element; whole numbers must be equal."""


class Cases:
    """Layers with one output each, independent of each other."""

    def __init__(self) -> None:
        self.graph = GraphWriter("cases")
        self.arrays: dict[str, Array] = {}
        self.wanted: dict[str, tuple[str, Array]] = {}

    def add(
        self,
        kind: str,
        inputs: Sequence[Array],
        want: Array,
        *,
        dtype: str = "",
        input_scales: Sequence[tuple[float, int]] = (),
        **given: Any,
    ) -> None:
        """A layer of type `kind` on `inputs`, which gives `want`; its data type is that of the first input or `dtype`.

        `input_scales`: scale and zero point of the inputs.
        """
        names = []
        for array, (scale, zero) in zip_longest(inputs, input_scales, fillvalue=(1.0, 0)):
            names.append(f"x{len(self.arrays)}")
            scales = {"layer_top_scale": [scale], "layer_top_zp": [zero]}
            self.graph.input(names[-1], array.shape, array.dtype.name, **scales)
            self.arrays[names[-1]] = array
        top = self.graph.layer(kind, names, want.shape, dtype or inputs[0].dtype.name, **given)
        shown = {k: v for k, v in given.items() if not isinstance(v, np.ndarray)}
        self.wanted[top] = f"{kind} {[a.shape for a in inputs]} {shown}", want

    def check(self, folder: Path) -> GraphBuild:
        """Builds all layers as one graph, runs it, and compares every output; and with PySim bit for bit."""
        with chosen() as choices:
            built = build(self.graph, list(self.wanted), folder)
        got = Program.load(folder / "aipu.bin").create_job().run(self.arrays)
        for name, (label, want) in self.wanted.items():
            result = got[name]
            scale = RELATIVE.get(result.dtype.name, 0.0)
            finite = np.abs(want[np.isfinite(want)]).max(initial=1.0) if want.dtype.kind == "f" else 1.0
            np.testing.assert_allclose(
                result.astype("float64"), want.astype("float64"), rtol=0, atol=scale * finite, err_msg=label
            )
        for choice in choices:
            for name, result in pysim_outputs(choice, self.arrays).items():
                same = result.reshape(-1).view("uint8") == got[name].reshape(-1).view("uint8")
                assert same.all(), f"{self.wanted[name][0]}: PySim and the simulator differ"
        assert len(choices) == built.launches
        return built


@contextmanager
def chosen() -> Iterator[list[Choice]]:
    """While active, collects the kernels the library chooses."""
    found: list[Choice] = []
    original = GroupPlugin.setup

    def setup(self: GroupPlugin, sgnode: SubgraphNode, nodes: list[Any]) -> bool:
        found.append(Choice(self.work.function(), self.work.name, self.work.args))
        return original(self, sgnode, nodes)

    GroupPlugin.setup = setup  # type: ignore[method-assign]
    try:
        yield found
    finally:
        GroupPlugin.setup = original  # type: ignore[method-assign]


def pysim_outputs(choice: Choice, arrays: dict[str, Array]) -> dict[str, Array]:
    """What a chosen kernel gives in PySim, by tensor: inputs are taken from `arrays`, constants from the choice."""
    outputs: dict[str, Array] = {}
    args: list[Any] = []
    for value, param in zip(choice.args, choice.kernel.params, strict=True):
        if not isinstance(value, Tensor):
            args.append(value)
            continue
        dtype = numpy_dtype(str(value.dtype))
        if value.name in arrays:
            array = arrays[value.name].copy()
        elif value.data is not None:
            array = np.frombuffer(value.data, dtype).copy()
        else:
            array = outputs.setdefault(value.name, np.zeros(value.shape, dtype))
        args.append(array.reshape(-1).view(numpy_dtype(str(param.type.elem))))
    choice.kernel.target = "X2_1204"
    choice.kernel(*args)
    return outputs


class Choice(NamedTuple):
    """A kernel that the library chose, and its arguments."""

    kernel: Any
    name: str
    args: list[Any]


def build(graph: GraphWriter, outputs: Sequence[str], folder: Path, target: str = "X2_1204") -> GraphBuild:
    """Builds a graph into FOLDER/aipu.bin with the layers of this toolchain."""
    text = graph.write(folder, outputs)
    options = GraphOptions(work_dir=folder / "kernels")
    return build_model(text, folder / "weight.bin", folder / "aipu.bin", target, options)

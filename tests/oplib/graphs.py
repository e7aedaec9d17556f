"""Many layers of the operator library in one graph: each is a case with what NumPy gives for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compass_runtime import Program
from compassc.gbuilder.build import GraphBuild, GraphOptions, build_model
from compassc.gbuilder.writer import GraphWriter

Array = np.ndarray[Any, Any]
RELATIVE = {"float32": 3e-5, "float16": 4e-3}
"""Distance from the double-precision result, relative to its largest element; whole numbers must be equal."""


class Cases:
    """Layers with one output each, independent of each other."""

    def __init__(self) -> None:
        self.graph = GraphWriter("cases")
        self.arrays: dict[str, Array] = {}
        self.wanted: dict[str, tuple[str, Array]] = {}

    def add(self, kind: str, inputs: Sequence[Array], want: Array, *, dtype: str = "", **given: Any) -> None:
        """A layer of type `kind` on `inputs`, which gives `want`; its data type is that of the first input or `dtype`."""
        names = []
        for array in inputs:
            names.append(self.graph.input(f"x{len(self.arrays)}", array.shape, array.dtype.name))
            self.arrays[names[-1]] = array
        top = self.graph.layer(kind, names, want.shape, dtype or inputs[0].dtype.name, **given)
        shown = {k: v for k, v in given.items() if not isinstance(v, np.ndarray)}
        self.wanted[top] = f"{kind} {[a.shape for a in inputs]} {shown}", want

    def check(self, folder: Path) -> GraphBuild:
        """Builds all layers as one graph, runs it, and compares every output."""
        built = build(self.graph, list(self.wanted), folder)
        got = Program.load(folder / "aipu.bin").create_job().run(self.arrays)
        for name, (label, want) in self.wanted.items():
            result = got[name]
            scale = RELATIVE.get(result.dtype.name, 0.0)
            finite = np.abs(want[np.isfinite(want)]).max(initial=1.0) if want.dtype.kind == "f" else 1.0
            np.testing.assert_allclose(
                result.astype("float64"), want.astype("float64"), rtol=0, atol=scale * finite, err_msg=label
            )
        return built


def build(graph: GraphWriter, outputs: Sequence[str], folder: Path, target: str = "X2_1204") -> GraphBuild:
    """Builds a graph into FOLDER/aipu.bin with the operator library."""
    text = graph.write(folder, outputs)
    options = GraphOptions(work_dir=folder / "kernels")
    return build_model(text, folder / "weight.bin", folder / "aipu.bin", target, options)

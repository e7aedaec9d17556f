"""Builds Compass IR graphs from NumPy arrays and runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from compass_runtime import Program
from compassc.gbuilder.build import GraphBuild, GraphOptions, build_model
from compassc.gbuilder.ir_text import CompassIR, IRDType, Section, format_ir

Array = np.ndarray[Any, Any]


class GraphText:
    """A graph under construction: `layer` adds one and gives the names of its outputs."""

    def __init__(self, **inputs: tuple[tuple[int, ...], str]) -> None:
        self.sections: list[Section] = []
        self.weights = b""
        self.inputs = list(inputs)
        for name, (shape, dtype) in inputs.items():
            self._section(f"in_{name}", "Input", [], [(name, shape, dtype)], {}, {})

    def layer(self, kind: str, bottoms: list[str], shape: tuple[int, ...], dtype: str, **given: Any) -> str:
        """One layer with one output; arrays among `given` are constants, the others parameters."""
        constants = {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
        params = {k: v for k, v in given.items() if k not in constants}
        name = f"t{len(self.sections)}"
        self._section(f"l{len(self.sections)}", kind, bottoms, [(name, shape, dtype)], params, constants)
        return name

    def _section(self, name: str, kind: str, bottoms: list[str], tops: list[tuple[str, tuple[int, ...], str]],
                 params: dict[str, Any], constants: dict[str, Array]) -> None:  # fmt: skip
        values: dict[str, Any] = {"layer_id": len(self.sections), "layer_name": name, "layer_type": kind}
        values |= {"layer_bottom": bottoms, "layer_top": [t[0] for t in tops]}
        values |= {"layer_top_shape": [list(t[1]) for t in tops], "layer_top_type": [IRDType(t[2]) for t in tops]}
        for key, array in constants.items():
            values |= {f"{key}_type": IRDType(array.dtype.name), f"{key}_shape": list(array.shape)}
            values |= {f"{key}_offset": len(self.weights), f"{key}_size": array.nbytes}
            self.weights += array.tobytes()
        self.sections.append(Section(values | params))

    def write(self, folder: Path, *outputs: str) -> Path:
        """Writes graph.txt and weight.bin."""
        header = {"model_name": "test", "layer_number": len(self.sections)}
        ir = CompassIR(
            Section({**header, "input_tensors": self.inputs, "output_tensors": list(outputs)}), self.sections
        )
        (folder / "graph.txt").write_text(format_ir(ir))
        (folder / "weight.bin").write_bytes(self.weights)
        return folder / "graph.txt"

    def build(self, folder: Path, *outputs: str, target: str = "X2_1204") -> GraphBuild:
        path = self.write(folder, *outputs)
        options = GraphOptions(work_dir=folder / "ops")
        return build_model(path, folder / "weight.bin", folder / "aipu.bin", target, options)

    def run(self, folder: Path, outputs: list[str], **arrays: Array) -> dict[str, Array]:
        """Builds, runs once, and gives the outputs by name."""
        self.build(folder, *outputs)
        job = Program.load(folder / "aipu.bin").create_job()
        return job.run(arrays)

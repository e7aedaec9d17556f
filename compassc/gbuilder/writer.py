"""Writing a Compass IR graph from Python: layers one by one, constants as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import files
from compassc.graph.sections import CompassIR, Section, format_ir
from compassc.graph.values import IRDType

if TYPE_CHECKING:
    import numpy as np

Top = tuple[str, Sequence[int], str]
"""A tensor a layer makes: name, shape, data type."""


class GraphWriter:
    """A graph under construction. Layers are written in the order they are added, and constants one after another."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.inputs: list[str] = []
        self.sections: list[Section] = []
        self.weights = bytearray()

    def input(self, name: str, shape: Sequence[int], dtype: str, /, **given: Any) -> str:
        """Adds an input; gives its name."""
        self.add("Input", [], [(name, shape, dtype)], layer_name=f"{name}_input", **given)
        self.inputs.append(name)
        return name

    def layer(self, kind: str, bottoms: Sequence[str], shape: Sequence[int], dtype: str, /, **given: Any) -> str:
        """Adds a layer with one output; gives the output's name. For `given` see `add`."""
        top = f"t{len(self.sections)}"
        self.add(kind, bottoms, [(top, shape, dtype)], **given)
        return top

    def add(self, kind: str, bottoms: Sequence[str], tops: Sequence[Top], /, **given: Any) -> None:
        """Adds a layer. `given`: arrays become constants, everything else parameters."""
        import numpy as np

        values: dict[str, Any] = {
            "layer_id": len(self.sections),
            "layer_name": f"{kind.lower()}_{len(self.sections)}",
            "layer_type": kind,
            "layer_bottom": list(bottoms),
            "layer_top": [top[0] for top in tops],
            "layer_top_shape": [list(top[1]) for top in tops],
            "layer_top_type": [IRDType(top[2]) for top in tops],
        }
        for key, value in given.items():
            values |= self._constant(key, value) if isinstance(value, np.ndarray) else {key: value}
        self.sections.append(Section(values))

    def _constant(self, name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        offset = len(self.weights)
        self.weights += array.tobytes()
        return {
            f"{name}_type": IRDType(array.dtype.name),
            f"{name}_shape": list(array.shape),
            f"{name}_offset": offset,
            f"{name}_size": array.nbytes,
        }

    def write(self, folder: Path, outputs: Sequence[str], text: str = "graph.txt", binary: str = "weight.bin") -> Path:
        """Writes the graph and its constants into `folder`; gives the path of the text."""
        header = Section(
            {
                "model_name": self.name,
                "layer_number": len(self.sections),
                "data_format": "NHWC",
                "input_tensors": self.inputs,
                "output_tensors": list(outputs),
            }
        )
        files.write(folder / text, format_ir(CompassIR(header, self.sections)))
        files.write(folder / binary, self.weights)
        return folder / text

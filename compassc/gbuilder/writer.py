"""Writing a Compass IR graph from Python by the names of its tensors: layers one by one, constants as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compass_core import files
from compass_core.arrays import Array
from compassc.graph import GraphBuilder, Tensor, write

Top = tuple[str, Sequence[int], str]
"""A tensor a layer makes: name, shape, data type."""


class GraphWriter:
    """A graph under construction. Layers are written in the order they are added, and constants one after another."""

    def __init__(self, name: str = "graph") -> None:
        self.builder = GraphBuilder(name)
        self.tensors: dict[str, Tensor] = {}
        self._count = 0

    def input(self, name: str, shape: Sequence[int], dtype: str, /, **given: object) -> str:
        """Adds an input; gives its name."""
        self.add("Input", [], [(name, shape, dtype)], layer_name=f"{name}_input", **given)
        return name

    def layer(self, kind: str, bottoms: Sequence[str], shape: Sequence[int], dtype: str, /, **given: object) -> str:
        """Adds a layer with one output; gives the output's name. For `given` see `add`."""
        top = f"t{self._count}"
        self.add(kind, bottoms, [(top, shape, dtype)], **given)
        return top

    def add(self, kind: str, bottoms: Sequence[str], tops: Sequence[Top], /, **given: Any) -> None:
        """Adds a layer. `given`: arrays become constants, everything else attributes; `layer_top_scale`, `layer_top_zp`
        and `layer_top_range` are of the outputs."""
        import numpy as np

        name = given.pop("layer_name", f"{kind.lower()}_{self._count}")
        scales, zeros, limits = (given.pop(f"layer_top_{k}", None) for k in ("scale", "zp", "range"))
        outputs = [
            Tensor(
                top,
                tuple(shape),
                dtype,
                scales[i] if scales else 1.0,
                zeros[i] if zeros else 0,
                tuple(limits[i]) if limits else None,
            )
            for i, (top, shape, dtype) in enumerate(tops)
        ]
        constants: dict[str, Array] = {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
        attributes = {k: v for k, v in given.items() if k not in constants}
        made = self.builder.layer(
            kind,
            [self.tensors[b] for b in bottoms],
            name=name,
            outputs=outputs,
            attributes=attributes,
            constants=constants,
        )
        self.tensors |= {t.name: t for t in made}
        self._count += 1

    def write(self, folder: Path, outputs: Sequence[str], text: str = "graph.txt", binary: str = "weight.bin") -> Path:
        """Writes the graph and its constants into `folder`; gives the path of the text."""
        graph = self.builder.finish([self.tensors[name] for name in outputs], data_format="NHWC")
        content, weights = write(graph)
        files.write(folder / text, content)
        files.write(folder / binary, weights)
        return folder / text

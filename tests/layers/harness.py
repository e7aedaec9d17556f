"""Running kernels of layers against their references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from compass_core import files
from compassc.dsl import BuildManager
from compassc.graph import Layer
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.kernel import Kernel
from compassc.layers.kernel_cache import program_of

Array = np.ndarray[Any, Any]
_built: dict[tuple[str, str], tuple[Any, Any]] = {}


def arguments(kernel: Kernel, layer: Layer, inputs: list[Array]) -> tuple[list[Any], list[Array]]:
    """(the call's arguments, the outputs among them)."""
    outputs = {t.name: np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.outputs}
    known = outputs | {t.name: a for t, a in zip(layer.inputs, inputs, strict=True)}
    flat = {name: a.reshape(-1).view("uint8" if a.dtype == bool else a.dtype) for name, a in known.items()}
    return kernel.call(flat), [outputs[t.name] for t in layer.outputs]


def run(kernel: Kernel, layer: Layer, inputs: list[Array], folder: Path, target: str = "X2_1204") -> list[Array]:
    """What the kernel gives on the simulator."""
    key = (kernel.text, target)
    if key not in _built:
        function = program_of(kernel, files.write(folder / f"{kernel.name}.py", kernel.text))
        _built[key] = function, BuildManager(target).build(function)
    args, outputs = arguments(kernel, layer, inputs)
    _built[key][1](*args)
    return outputs

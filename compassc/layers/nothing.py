"""Kernels of layers without elements, whose results are known when the graph is built."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate
from compassc.layers.moving import Copy, bits_of, copy_lines, raw_pointer
from compassc.layers.source import Kernel, KernelSource, finish


def kernel_of_nothing(layers: Sequence[Layer]) -> Kernel | None:
    """The kernel of a layer whose inputs or outputs are all empty: its reference's values; None for other layers."""
    layer = layers[0]
    if any(t.count for t in layer.inputs) and any(t.count for t in layer.outputs):
        return None
    if len(layers) > 1:
        raise LayerError(f"no layer joins '{layer.name}', which has no elements")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # means of nothing are known to be none
        values = evaluate(layer, [np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.inputs])
    k, lines = KernelSource(), list[str]()
    for i, (y, array) in enumerate(zip(layer.outputs, values, strict=True)):
        target = raw_pointer(k, y)
        if y.count:
            raw = k.constant(np.ascontiguousarray(array).reshape(-1).view(bits_of(y.dtype)))
            lines += copy_lines(k, Copy((y.count,), 0, (1,), 0, (1,)), raw, target, str(i))
    return finish(k, lines or ["pass"])

"""Kernels of layers without elements, whose results are known when the graph is built."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate
from compassc.layers.element_copies import copied_whole
from compassc.layers.kernel import Kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import bits_of


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
    k = LayerKernel()
    with k.active():
        for y, array in zip(layer.outputs, values, strict=True):
            target = k.raw(y)
            if y.count:
                raw = k.pointer(np.ascontiguousarray(array).reshape(-1).view(bits_of(y.dtype)))
                copied_whole(k, y.count, raw, target)
    return k.kernel()

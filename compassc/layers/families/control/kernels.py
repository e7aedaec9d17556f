"""Kernels of layers of control where shapes decide."""

from __future__ import annotations

from compassc.graph import Layer
from compassc.layers.element_copies import copied_whole
from compassc.layers.families.control.reference import chosen
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel


@kernel("Switch")
def switch(layer: Layer) -> Kernel:
    x, k = layer.inputs[chosen(layer)], LayerKernel()
    with k.active():
        copied_whole(k, x.count, k.raw(x), k.raw(layer.output))
    return k.kernel()

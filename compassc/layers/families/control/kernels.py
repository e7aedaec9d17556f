"""Kernels of layers of control where shapes decide."""

from __future__ import annotations

from compassc.graph import Layer
from compassc.layers.families.control.reference import chosen
from compassc.layers.kernels import kernel
from compassc.layers.moving import Copy, copy_lines, raw_pointer
from compassc.layers.source import Kernel, KernelSource, finish


@kernel("Switch")
def switch(layer: Layer) -> Kernel:
    x, k = layer.inputs[chosen(layer)], KernelSource()
    copy = Copy((x.count,), 0, (1,), 0, (1,))
    return finish(k, copy_lines(k, copy, raw_pointer(k, x), raw_pointer(k, layer.output), ""))

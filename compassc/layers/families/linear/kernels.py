"""Kernels of the linear family."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.graph import Layer
from compassc.layers.families.linear import products
from compassc.layers.families.linear.channelwise import channelwise
from compassc.layers.families.linear.depthwise import depthwise
from compassc.layers.families.linear.tiles import shape_of
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import elementwise, kernel


@kernel(
    "Convolution",
    "FullyConnected",
    "DepthwiseConv",
    "ConvTranspose",
    "Convolution3D",
    "ConvTranspose3D",
    "ConvInteger",
    tail=True,
)
def convolution(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    shape = shape_of(layer)
    plain = shape.spaced == (1, 1) and not shape.planes and layer.type != "ConvInteger"
    if plain and shape.groups == shape.c == shape.outputs > 1:
        made = depthwise(layer, shape, tail)
        if made is not None:
            return made
    return products.convolution(layer, shape, tail)


elementwise("BatchNorm", "BiasAdd")(channelwise)

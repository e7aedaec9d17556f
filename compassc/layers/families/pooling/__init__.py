"""Pooling: the maximum, the mean or a norm of what a window sees, channel by channel."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, Fusion, layer_type
from compassc.layers.families.pooling.fractional import fractional_pool
from compassc.layers.families.pooling.reference import (
    FLATTENED,
    METHODS,
    adaptive_pooling,
    max_pooling_with_index,
    pooling,
    pooling_3d,
    quantised_pooling,
    quantised_pooling_3d,
    unpooling,
)
from compassc.layers.windows import ATTRIBUTES_2D, ATTRIBUTES_3D

POOL = (
    Attribute("method", "word", ", ".join(METHODS)),
    *ATTRIBUTES_2D,
    Attribute("ceil_mode", "flag", "a last window may reach past the image", "from the output shape"),
    Attribute("count_include_pad", "flag", "padded cells count for a mean", "true"),
)
layer_type(
    "Pooling",
    "GlobalPool",
    summary="The maximum, mean or norm of what a window sees.",
    use="common",
    fusion=Fusion.OUT_FUSABLE,
    attributes=POOL,
    constants=(Constant("sqrt_lut", "[2^n]", "of L2: square roots", optional=True, form="quantised"),),
    float=pooling,
    quantised=quantised_pooling,
)
layer_type(
    "Pooling3D",
    summary="The maximum or mean of what a window over volumes sees.",
    use="rare",
    fusion=Fusion.OUT_FUSABLE,
    attributes=(POOL[0], *ATTRIBUTES_3D, *POOL[-2:]),
    float=pooling_3d,
    quantised=quantised_pooling_3d,
)
layer_type(
    "MaxPoolingWithArgMax",
    summary="The maximum under a window and where it lies.",
    use="rare",
    outputs="y, index",
    attributes=(
        *ATTRIBUTES_2D,
        Attribute("flatten_dim", "word", ", ".join(FLATTENED), "HWC"),
        Attribute("storage_order", "int", "1: indices count by columns", "0"),
    ),
    float=max_pooling_with_index,
    quantised=max_pooling_with_index,
)
layer_type(
    "MaxUnpool",
    "UpsampleByIndex",
    summary="Values put at indices of a larger image.",
    use="rare",
    inputs="values, index",
    attributes=(Attribute("flatten_dim", "word", ", ".join(FLATTENED), "HW or HWC"),),
    float=unpooling,
    quantised=unpooling,
)
layer_type(
    "AdaptivePool",
    summary="Pooling to an image of the wanted size.",
    use="rare",
    attributes=(Attribute("method", "word", "AVG or MAX"), Attribute("output_size", "ints", "height and width")),
    float=adaptive_pooling,
    quantised=adaptive_pooling,
)
layer_type(
    "FractionalPool",
    summary="Pooling with windows of random sizes.",
    use="rare",
    outputs="y, first rows, first columns",
    attributes=(
        Attribute("method", "word", "AVG or MAX"),
        Attribute("pseudo", "flag", "sizes follow from one random number, not from an order", "false"),
        Attribute("overlap", "flag", "windows share their border", "false"),
        Attribute("seed", "int", "of the generator; 0, no seed, is refused"),
    ),
    float=fractional_pool,
    quantised=fractional_pool,
    notes="The numbers are those of the Mersenne Twister, so that the windows are known when the graph is built.",
)

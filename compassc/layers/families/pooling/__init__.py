"""Pooling: the maximum, the mean or a norm of the elements of a window, per channel."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, DeclaredType, declare_table
from compassc.layers.families.pooling.fractional import fractional_pool
from compassc.layers.families.pooling.reference import (
    FLATTENED,
    METHODS,
    adaptive_pooling,
    max_pooling_with_index,
    pooling,
    pooling_3d,
    pooling_body,
    quantised_pooling,
    quantised_pooling_3d,
    unpooling,
)
from compassc.layers.windows import ATTRIBUTES_2D, ATTRIBUTES_3D
from compassc.operators.patterns import PatternKind

POOL = (
    Attribute("method", "word", ", ".join(METHODS)),
    *ATTRIBUTES_2D,
    Attribute("ceil_mode", "flag", "a last window may reach past the image", "from the output shape"),
    Attribute("count_include_pad", "flag", "padded cells count for a mean", "true"),
)

TABLE = (
    DeclaredType(
        "Pooling GlobalPool",
        "The maximum, mean or norm of what a window sees.",
        "common",
        (pooling, quantised_pooling),
        body=pooling_body,
        attributes=POOL,
        constants=(Constant("sqrt_lut", "[2^n]", "of L2: square roots", optional=True, form="quantised"),),
        pattern=PatternKind.ANCHOR,
    ),
    DeclaredType(
        "Pooling3D",
        "The maximum or mean of what a window over volumes sees.",
        "rare",
        (pooling_3d, quantised_pooling_3d),
        attributes=(POOL[0], *ATTRIBUTES_3D, *POOL[-2:]),
        pattern=PatternKind.ANCHOR,
    ),
    DeclaredType(
        "MaxPoolingWithArgMax",
        "The maximum under a window and where it lies.",
        "rare",
        max_pooling_with_index,
        attributes=(
            *ATTRIBUTES_2D,
            Attribute("flatten_dim", "word", ", ".join(FLATTENED), "HWC"),
            Attribute("storage_order", "int", "1: indices count by columns", "0"),
        ),
        outputs="y, index",
    ),
    DeclaredType(
        "MaxUnpool UpsampleByIndex",
        "Values put at indices of a larger image.",
        "rare",
        unpooling,
        attributes=(Attribute("flatten_dim", "word", ", ".join(FLATTENED), "HW or HWC"),),
        inputs="values, index",
    ),
    DeclaredType(
        "AdaptivePool",
        "Pooling to an image of the wanted size.",
        "rare",
        adaptive_pooling,
        attributes=(Attribute("method", "word", "AVG or MAX"), Attribute("output_size", "ints", "height and width")),
    ),
    DeclaredType(
        "FractionalPool",
        "Pooling with windows of random sizes.",
        "rare",
        fractional_pool,
        attributes=(
            Attribute("method", "word", "AVG or MAX"),
            Attribute("pseudo", "flag", "sizes follow from one random number, not from an order", "false"),
            Attribute("overlap", "flag", "windows share their border", "false"),
            Attribute("seed", "int", "of the generator; 0, no seed, is refused"),
        ),
        outputs="y, first rows, first columns",
        notes="The numbers are those of the Mersenne Twister, so that the windows are known when the graph is built.",
    ),
)
declare_table(TABLE, PatternKind.OPAQUE)

"""Reductions, searches and running sums along axes."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, Fusion, layer_type
from compassc.layers.families.reduce.reference import (
    METHODS,
    arg_min_max,
    cumulate,
    quantised_cumulate,
    quantised_reduce,
    reduce_float,
    sort,
    top_k,
)

AXES = Attribute("axis", "ints", "the axes that become 1")
layer_type(
    "Reduce",
    summary="Sums, means, extremes and norms along axes.",
    use="common",
    fusion=Fusion.REDUCTION,
    attributes=(Attribute("method", "word", ", ".join(METHODS)), AXES),
    constants=(Constant("sqrt_lut", "[2^n]", "of L2: square roots", optional=True, form="quantised"),),
    float=reduce_float,
    quantised=quantised_reduce,
)
layer_type(
    "ArgMinMax",
    summary="Where the largest or smallest element lies.",
    use="common",
    fusion=Fusion.REDUCTION,
    attributes=(
        Attribute("method", "word", "MAX or MIN"),
        Attribute("axis", "int", "the axis"),
        Attribute("select_last_index", "flag", "of equal elements the last", "false"),
    ),
    float=arg_min_max,
    quantised=arg_min_max,
)
layer_type(
    "TopK",
    summary="The largest elements and their indices.",
    use="sometimes",
    inputs="x[, k]",
    outputs="values, index",
    attributes=(
        Attribute("k", "int", "how many", "1"),
        Attribute("axis", "int", "the axis", "-1"),
        Attribute("largest", "flag", "the largest, not the smallest", "true"),
        Attribute("select_index", "word", "which of equal elements comes first: last, first", "last"),
    ),
    float=top_k,
    quantised=top_k,
)
layer_type(
    "Sort",
    summary="The elements in order, and their indices.",
    use="rare",
    outputs="values, index",
    attributes=(Attribute("axis", "int", "the axis", "-1"), Attribute("descending", "flag", "largest first", "true")),
    float=sort,
    quantised=sort,
)
layer_type(
    "Cumulate",
    same_shape=True,
    summary="Running sums or products.",
    use="sometimes",
    attributes=(
        Attribute("method", "word", "SUM or PROD"),
        Attribute("axis", "int", "the axis"),
        Attribute("exclusive", "flag", "an element is not part of its own sum", "false"),
        Attribute("reverse", "flag", "from the end", "false"),
    ),
    float=cumulate,
    quantised=quantised_cumulate,
)

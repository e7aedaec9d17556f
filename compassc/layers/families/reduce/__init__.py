"""Reductions, searches and running sums along axes."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, DeclaredType, declare_table
from compassc.layers.families.reduce.reference import (
    METHODS,
    arg_min_max,
    cumulate,
    quantised_cumulate,
    quantised_reduce,
    reduce_body,
    reduce_float,
    sort,
    top_k,
)
from compassc.operators.patterns import PatternKind

AXES = Attribute("axis", "ints", "the axes that become 1")

TABLE = (
    DeclaredType(
        "Reduce",
        "Sums, means, extremes and norms along axes.",
        "common",
        (reduce_float, quantised_reduce),
        body=reduce_body,
        attributes=(Attribute("method", "word", ", ".join(METHODS)), AXES),
        constants=(Constant("sqrt_lut", "[2^n]", "of L2: square roots", optional=True, form="quantised"),),
        pattern=PatternKind.REDUCTION,
    ),
    DeclaredType(
        "ArgMinMax",
        "Where the largest or smallest element lies.",
        "common",
        arg_min_max,
        attributes=(
            Attribute("method", "word", "MAX or MIN"),
            Attribute("axis", "int", "the axis"),
            Attribute("select_last_index", "flag", "of equal elements the last", "false"),
        ),
        pattern=PatternKind.REDUCTION,
    ),
    DeclaredType(
        "TopK",
        "The largest elements and their indices.",
        "sometimes",
        top_k,
        attributes=(
            Attribute("k", "int", "how many", "1"),
            Attribute("axis", "int", "the axis", "-1"),
            Attribute("largest", "flag", "the largest, not the smallest", "true"),
            Attribute("sorted", "flag", "whether the order matters; results are always sorted", "true"),
            Attribute("select_index", "word", "which of equal elements comes first: last, first", "last"),
        ),
        inputs="x[, k]",
        outputs="values, index",
    ),
    DeclaredType(
        "Sort",
        "The elements in order, and their indices.",
        "rare",
        sort,
        attributes=(
            Attribute("axis", "int", "the axis", "-1"),
            Attribute("descending", "flag", "largest first", "true"),
        ),
        outputs="values, index",
    ),
    DeclaredType(
        "Cumulate",
        "Running sums or products.",
        "sometimes",
        (cumulate, quantised_cumulate),
        attributes=(
            Attribute("method", "word", "SUM or PROD"),
            Attribute("axis", "int", "the axis"),
            Attribute("exclusive", "flag", "an element is not part of its own sum", "false"),
            Attribute("reverse", "flag", "from the end", "false"),
        ),
        same_shape=True,
    ),
)
declare_table(TABLE, PatternKind.OPAQUE)

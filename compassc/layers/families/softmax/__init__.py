"""Softmax and its relatives along one axis."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, layer_type
from compassc.layers.families.softmax.reference import (
    hardmax,
    log_softmax_body,
    quantised_log_softmax,
    quantised_softmax,
    softmax,
    softmax_body,
)
from compassc.operators.patterns import PatternKind

AXIS = Attribute("axis", "int", "the axis", "-1")
layer_type(
    "Softmax",
    same_shape=True,
    summary="Exponentials divided by their sum along an axis.",
    use="common",
    pattern=PatternKind.REDUCTION,
    attributes=(
        AXIS,
        Attribute("quantize_method", "word", "LUT or FAST_EXP", "LUT", form="quantised"),
        Attribute("pow2_out_q", "int", "of FAST_EXP: fraction bits of the powers", "required", form="quantised"),
        Attribute("adjust_q", "int", "of FAST_EXP: fraction bits of exponents: 0, 1, 8 to 15", "1", form="quantised"),
    ),
    constants=(
        Constant("lut", "[2^n]", "of LUT: exponentials", optional=True),
        Constant("float_lut", "[513]", "of LUT: powers of two", optional=True, form="quantised"),
    ),
    float=softmax,
    body=softmax_body,
    quantised=quantised_softmax,
)
layer_type(
    "LogSoftmax",
    same_shape=True,
    summary="The logarithm of softmax.",
    use="common",
    pattern=PatternKind.REDUCTION,
    attributes=(
        AXIS,
        Attribute(
            "quantize_scale", "floats", "factors of differences and of the logarithm", "required", form="quantised"
        ),
    ),
    constants=(Constant("lut_exp", "[2^n]", "exponentials", form="quantised"),),
    body=log_softmax_body,
    quantised=quantised_log_softmax,
)
layer_type(
    "Hardmax",
    same_shape=True,
    summary="1 at the first maximum along an axis, else 0.",
    use="rare",
    pattern=PatternKind.REDUCTION,
    attributes=(Attribute("axis", "int", "the axis"),),
    float=hardmax,
    quantised=hardmax,
)

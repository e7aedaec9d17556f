"""Functions of two or three operands, element by element: arithmetic, comparisons, choices, conversions."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, Row, declare_table, layer_type
from compassc.layers.families.eltwise.reference import (
    LOGICAL,
    METHODS,
    bit_shift,
    bitwise,
    cast,
    dequantise_layer,
    div_mod,
    divide,
    eltwise,
    fake_quantise,
    is_inf,
    is_nan,
    logical,
    mod,
    power,
    quantise_layer,
    quantised_cast,
    quantised_divide,
    quantised_eltwise,
    quantised_logical,
    quantised_mod,
    quantised_power,
    quantised_squared_difference,
    quantised_where,
    squared_difference,
    where,
)
from compassc.operators.patterns import PatternKind

WITH_ACTIVATION = Attribute("with_activation", "word", "the rectifier applied to the result", "NONE")
TABLE = (
    Row(
        "Eltwise",
        "A function of two operands, by method.",
        "common",
        (eltwise, quantised_eltwise),
        (Attribute("method", "word", ", ".join(METHODS)), WITH_ACTIVATION),
        inputs="a, b",
    ),
    Row(
        "Div",
        "The quotient of two operands.",
        "common",
        (divide, quantised_divide),
        inputs="a, b",
        constants=(Constant("lut", "[2^n]", "65535 over the divisor", form="quantised"),),
    ),
    Row(
        "DivMod",
        "Quotient and remainder of whole numbers.",
        "rare",
        div_mod,
        (Attribute("mode", "word", "FLOOR or TRUNC", "FLOOR"),),
        inputs="a, b",
        outputs="quotient, remainder",
    ),
    Row(
        "Mod",
        "The remainder of a division.",
        "rare",
        (mod, quantised_mod),
        (Attribute("fmod", "flag", "the result has the sign of a, not of b", "false"),),
        inputs="a, b",
    ),
    Row(
        "Pow",
        "The first operand to the power of the second.",
        "common",
        (power, quantised_power),
        (Attribute("exponent", "float", "the exponent, when it is one number", "none"),),
        inputs="base[, exponent]",
        constants=(
            Constant("lut_log", "[2^n]", "powers, or logarithms", form="quantised"),
            Constant("lut_exp", "[2^n]", "exponentials", optional=True, form="quantised"),
        ),
    ),
    Row(
        "SquaredDifference",
        "The square of the difference.",
        "sometimes",
        (squared_difference, quantised_squared_difference),
        inputs="a, b",
    ),
    Row(
        "BitShift",
        "Whole numbers shifted.",
        "rare",
        bit_shift,
        (Attribute("direction", "word", "LEFT or RIGHT"),),
        inputs="x, n",
    ),
    Row(
        "Bitwise",
        "AND, OR, XOR or NOT of bits.",
        "rare",
        bitwise,
        (Attribute("method", "word", "AND, OR, XOR or NOT"),),
        inputs="a[, b]",
    ),
    Row(
        "Logical",
        "Comparisons and logical connectives; 0 or 1.",
        "sometimes",
        (logical, quantised_logical),
        (Attribute("method", "word", ", ".join(LOGICAL)),),
        inputs="a[, b]",
    ),
    Row(
        "Where Select",
        "a where the condition holds, else b; or the indices where it holds.",
        "common",
        (where, quantised_where),
        inputs="condition[, a, b]",
    ),
    Row("IsNaN", "Whether an element is not a number.", "rare", is_nan, pattern=PatternKind.ELEMENTWISE),
    Row(
        "IsInf",
        "Whether an element is infinite.",
        "rare",
        is_inf,
        (
            Attribute("detect_positive", "flag", "+inf counts", "true"),
            Attribute("detect_negative", "flag", "-inf counts", "true"),
        ),
        pattern=PatternKind.ELEMENTWISE,
    ),
    Row(
        "Cast",
        "Elements in another data type.",
        "common",
        (cast, quantised_cast),
        (
            Attribute("to_dtype", "word", "the data type", "the output's"),
            Attribute(
                "clip_mode", "word", "SATURATION, TRUNCATION: wrap around, or BITS: read as they are", "SATURATION"
            ),
            Attribute("ignore_scale_zp", "flag", "zero points are not applied", "false"),
        ),
        pattern=PatternKind.ELEMENTWISE,
    ),
    Row(
        "Quantize",
        "Real numbers as quantised ones.",
        "common",
        quantise_layer,
        (Attribute("round_mode", "word", "ROUND_TO_EVEN", "ROUND_TO_EVEN"),),
        pattern=PatternKind.ELEMENTWISE,
    ),
    Row(
        "DeQuantize",
        "The real numbers that quantised ones stand for.",
        "common",
        dequantise_layer,
        pattern=PatternKind.ELEMENTWISE,
    ),
    Row(
        "FakeQuantWithMinMaxVars",
        "Real numbers quantised and back.",
        "rare",
        (fake_quantise, lambda layer, x: x),
        (
            Attribute("num_bits", "int", "bits", "8"),
            Attribute("min", "float", "the lowest value"),
            Attribute("max", "float", "the highest value"),
            Attribute("narrow_range", "flag", "the lowest level is not used", "false"),
        ),
        pattern=PatternKind.ELEMENTWISE,
    ),
)
declare_table(TABLE, PatternKind.BROADCAST)
for _name, _what in (("Add", "sum"), ("Sub", "difference"), ("Mul", "product")):
    layer_type(
        _name,
        summary=f"The {_what} of two operands.",
        use="common",
        pattern=PatternKind.BROADCAST,
        inputs="a, b",
        attributes=(WITH_ACTIVATION,),
        float=eltwise,
        quantised=quantised_eltwise,
    )

"""Functions of two or three operands, element by element: arithmetic, comparisons, choices, conversions."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, Fusion, layer_type
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

WITH_ACTIVATION = Attribute("with_activation", "word", "the rectifier applied to the result", "NONE")
layer_type(
    "Eltwise",
    summary="A function of two operands, by method.",
    use="common",
    fusion=Fusion.BROADCAST,
    inputs="a, b",
    attributes=(Attribute("method", "word", ", ".join(METHODS)), WITH_ACTIVATION),
    float=eltwise,
    quantised=quantised_eltwise,
)
for _name, _what in (("Add", "sum"), ("Sub", "difference"), ("Mul", "product")):
    layer_type(
        _name,
        summary=f"The {_what} of two operands.",
        use="common",
        fusion=Fusion.BROADCAST,
        inputs="a, b",
        attributes=(WITH_ACTIVATION,),
        float=eltwise,
        quantised=quantised_eltwise,
    )
layer_type(
    "Div",
    summary="The quotient of two operands.",
    use="common",
    fusion=Fusion.BROADCAST,
    inputs="a, b",
    constants=(Constant("lut", "[2^n]", "65535 over the divisor", form="quantised"),),
    float=divide,
    quantised=quantised_divide,
)
layer_type(
    "DivMod",
    summary="Quotient and remainder of whole numbers.",
    use="rare",
    fusion=Fusion.BROADCAST,
    inputs="a, b",
    outputs="quotient, remainder",
    attributes=(Attribute("mode", "word", "FLOOR or TRUNC", "FLOOR"),),
    float=div_mod,
    quantised=div_mod,
)
layer_type(
    "Mod",
    summary="The remainder of a division.",
    use="rare",
    fusion=Fusion.BROADCAST,
    inputs="a, b",
    attributes=(Attribute("fmod", "flag", "the result has the sign of a, not of b", "false"),),
    float=mod,
    quantised=quantised_mod,
)
layer_type(
    "Pow",
    summary="The first operand to the power of the second.",
    use="common",
    fusion=Fusion.BROADCAST,
    inputs="base[, exponent]",
    attributes=(Attribute("exponent", "float", "the exponent, when it is one number", "none"),),
    constants=(
        Constant("lut_log", "[2^n]", "powers, or logarithms", form="quantised"),
        Constant("lut_exp", "[2^n]", "exponentials", optional=True, form="quantised"),
    ),
    float=power,
    quantised=quantised_power,
)
layer_type(
    "SquaredDifference",
    summary="The square of the difference.",
    use="sometimes",
    fusion=Fusion.BROADCAST,
    inputs="a, b",
    float=squared_difference,
    quantised=quantised_squared_difference,
)
layer_type(
    "BitShift",
    summary="Whole numbers shifted.",
    use="rare",
    fusion=Fusion.BROADCAST,
    inputs="x, n",
    attributes=(Attribute("direction", "word", "LEFT or RIGHT"),),
    float=bit_shift,
    quantised=bit_shift,
)
layer_type(
    "Bitwise",
    summary="AND, OR, XOR or NOT of bits.",
    use="rare",
    fusion=Fusion.BROADCAST,
    inputs="a[, b]",
    attributes=(Attribute("method", "word", "AND, OR, XOR or NOT"),),
    float=bitwise,
    quantised=bitwise,
)
layer_type(
    "Logical",
    summary="Comparisons and logical connectives; 0 or 1.",
    use="sometimes",
    fusion=Fusion.BROADCAST,
    inputs="a[, b]",
    attributes=(Attribute("method", "word", ", ".join(LOGICAL)),),
    float=logical,
    quantised=quantised_logical,
)
layer_type(
    "Where",
    "Select",
    summary="a where the condition holds, else b; or the indices where it holds.",
    use="common",
    fusion=Fusion.BROADCAST,
    inputs="condition[, a, b]",
    float=where,
    quantised=quantised_where,
)
layer_type(
    "IsNaN",
    summary="Whether an element is not a number.",
    use="rare",
    fusion=Fusion.ELEMENTWISE,
    float=is_nan,
    quantised=is_nan,
)
layer_type(
    "IsInf",
    summary="Whether an element is infinite.",
    use="rare",
    fusion=Fusion.ELEMENTWISE,
    attributes=(
        Attribute("detect_positive", "flag", "+inf counts", "true"),
        Attribute("detect_negative", "flag", "-inf counts", "true"),
    ),
    float=is_inf,
    quantised=is_inf,
)
layer_type(
    "Cast",
    summary="Elements in another data type.",
    use="common",
    fusion=Fusion.ELEMENTWISE,
    attributes=(
        Attribute("to_dtype", "word", "the data type", "the output's"),
        Attribute("clip_mode", "word", "SATURATION, or TRUNCATION: wrap around", "SATURATION"),
        Attribute("ignore_scale_zp", "flag", "zero points are not applied", "false"),
    ),
    float=cast,
    quantised=quantised_cast,
)
layer_type(
    "Quantize",
    summary="Real numbers as quantised ones.",
    use="common",
    fusion=Fusion.ELEMENTWISE,
    attributes=(Attribute("round_mode", "word", "ROUND_TO_EVEN", "ROUND_TO_EVEN"),),
    float=quantise_layer,
    quantised=quantise_layer,
)
layer_type(
    "DeQuantize",
    summary="The real numbers that quantised ones stand for.",
    use="common",
    fusion=Fusion.ELEMENTWISE,
    float=dequantise_layer,
    quantised=dequantise_layer,
)
layer_type(
    "FakeQuantWithMinMaxVars",
    summary="Real numbers quantised and back.",
    use="rare",
    fusion=Fusion.ELEMENTWISE,
    attributes=(
        Attribute("num_bits", "int", "bits", "8"),
        Attribute("min", "float", "the lowest value"),
        Attribute("max", "float", "the highest value"),
        Attribute("narrow_range", "flag", "the lowest level is not used", "false"),
    ),
    float=fake_quantise,
    quantised=lambda layer, x: x,
)

"""Activations and other functions of one operand: by table when quantised, or by rescaling (the rectifiers)."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, DeclaredType, by_operator, declare_table, layer_type
from compassc.layers.families.activation.reference import (
    METHODS,
    PERIODIC,
    PLAIN,
    RECTIFIERS,
    activation,
    activation_body,
    periodic,
    periodic_body,
    plain_tabled,
    quantised_abs,
    quantised_activation,
    quantised_negative,
    quantised_periodic,
    quantised_sign,
)
from compassc.operators.calls import all_operators
from compassc.operators.patterns import PatternKind

_TABLE = (Constant("lut", "[2^n]", "the table; of floats with `is_perf_mode` alone"),)
_PARAMETERS = tuple(
    Attribute(key, "float", f"of {', '.join(m for m in METHODS if key in METHODS[m].parameters)}", str(default))
    for key, default in {k: d for t in METHODS.values() for k, d in t.parameters.items()}.items()
    if not key.startswith("clip_")
)
_RECTIFIER_KEYS = (
    Attribute("clip_min", "float", "of CLIP and HARDSIGMOID: the lower limit", "none, 0"),
    Attribute("clip_max", "float", "of CLIP and HARDSIGMOID: the upper limit", "none, 1"),
    Attribute("negative_slope_value", "float", "of LEAKYRELU: the factor of negative values", "none"),
)
APPROXIMATION = (
    Attribute("is_perf_mode", "flag", "with a table `lut`: the function is the table", "false", form="float"),
    Attribute("lut_mode", "word", "NORMAL, MIRROR (the table is of one side of 0) or EXP", "NORMAL", form="float"),
    Attribute("index_scale_value", "float", "entries of the table to 1", "of a table", form="float"),
    Attribute("index_offset_value", "float", "entries from 0 to the table's first", "of a table", form="float"),
    Attribute("value_offset_value", "float", "what entries are more than values", "of a table", form="float"),
)

TABLE = (
    DeclaredType(
        "Activation",
        "A function of each element, by method.",
        "common",
        (activation, quantised_activation),
        attributes=(Attribute("method", "word", "the function"), *_PARAMETERS, *_RECTIFIER_KEYS, *APPROXIMATION),
        constants=_TABLE,
        pattern=PatternKind.ELEMENTWISE,
        body=activation_body,
    ),
    *(
        DeclaredType(
            method.type,
            all_operators()[method.operator].summary,
            method.use,
            (activation, quantised_activation),
            attributes=(
                *(Attribute(k, "float", "a parameter", str(d)) for k, d in method.parameters.items()),
                *APPROXIMATION,
            ),
            constants=_TABLE,
            pattern=PatternKind.ELEMENTWISE,
            body=activation_body,
        )
        for method in METHODS.values()
    ),
    *(
        DeclaredType(
            _name,
            f"The rectifier {_method}.",
            "common",
            (activation, quantised_activation),
            attributes=_RECTIFIER_KEYS,
            pattern=PatternKind.ELEMENTWISE,
            body=activation_body,
        )
        for _method, _name in RECTIFIERS.items()
    ),
)
declare_table(TABLE, PatternKind.OPAQUE)
for _name, _operator in PLAIN.items():
    layer_type(_name, **by_operator(_operator), use="sometimes", constants=_TABLE, quantised=plain_tabled)
for _name, _operator in PERIODIC.items():
    layer_type(
        _name,
        **{**by_operator(_operator), "body": periodic_body},
        use="sometimes",
        float=periodic,
        quantised=quantised_periodic,
        attributes=APPROXIMATION,
        constants=_TABLE,
    )
for _name, _operator, _quantised in (
    ("Abs", "abs", quantised_abs),
    ("Negative", "negative", quantised_negative),
    ("Sign", "sign", quantised_sign),
):
    layer_type(_name, **by_operator(_operator), use="sometimes", quantised=_quantised)

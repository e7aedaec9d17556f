"""Activations and other functions of one operand: by table when quantised, or by rescaling (the rectifiers)."""

from __future__ import annotations

import numpy as np

from compassc.layers.declare import Attribute, Constant, Row, declare_table
from compassc.layers.families.activation.reference import (
    ALONE,
    METHODS,
    PLAIN,
    RECTIFIERS,
    _plain,
    activation,
    plain_tabled,
    quantised_abs,
    quantised_activation,
    quantised_negative,
    quantised_sign,
    quantised_trigonometric,
    trigonometric,
)
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
    Row(
        "Activation",
        "A function of each element, by method.",
        "common",
        (activation, quantised_activation),
        attributes=(Attribute("method", "word", "the function"), *_PARAMETERS, *_RECTIFIER_KEYS, *APPROXIMATION),
        constants=_TABLE,
        pattern=PatternKind.ELEMENTWISE,
    ),
    *(
        Row(
            " ".join(_names),
            f"Of each element {METHODS[_method].summary}.",
            METHODS[_method].use,
            (activation, quantised_activation),
            attributes=(
                *(Attribute(k, "float", "a parameter", str(d)) for k, d in METHODS[_method].parameters.items()),
                *APPROXIMATION,
            ),
            constants=_TABLE,
            pattern=PatternKind.ELEMENTWISE,
        )
        for _method, _names in ALONE.items()
    ),
    *(
        Row(
            _name,
            f"The rectifier {_method}.",
            "common",
            (activation, quantised_activation),
            attributes=_RECTIFIER_KEYS,
            pattern=PatternKind.ELEMENTWISE,
        )
        for _method, _name in RECTIFIERS.items()
    ),
    *(
        Row(
            _name,
            f"Of each element {_row.summary}.",
            "sometimes",
            (_plain, plain_tabled),
            constants=_TABLE,
            pattern=PatternKind.ELEMENTWISE,
        )
        for _name, _row in PLAIN.items()
    ),
    *(
        Row(
            _name,
            f"The {_text} of each element, in radians.",
            "sometimes",
            (trigonometric, quantised_trigonometric),
            attributes=APPROXIMATION,
            constants=_TABLE,
            pattern=PatternKind.ELEMENTWISE,
        )
        for _name, _text in (("Sine", "sine"), ("Cosine", "cosine"))
    ),
    Row(
        "Abs",
        "The magnitude of each element.",
        "sometimes",
        (lambda layer, x: np.abs(x), quantised_abs),
        pattern=PatternKind.ELEMENTWISE,
    ),
    Row(
        "Negative",
        "The negative of each element.",
        "sometimes",
        (lambda layer, x: -x, quantised_negative),
        pattern=PatternKind.ELEMENTWISE,
    ),
    Row(
        "Sign",
        "-1, 0 or 1 of each element.",
        "sometimes",
        (lambda layer, x: np.sign(x), quantised_sign),
        pattern=PatternKind.ELEMENTWISE,
    ),
)
declare_table(TABLE, PatternKind.OPAQUE)

"""Activations and other functions of one operand: by table when quantised, or by rescaling (the rectifiers)."""

from __future__ import annotations

import numpy as np

from compassc.layers.declare import Attribute, Constant, Fusion, layer_type
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

_TABLE = (Constant("lut", "[2^n]", "the table", form="quantised"),)
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
layer_type(
    "Activation",
    summary="A function of each element, by method.",
    use="common",
    fusion=Fusion.ELEMENTWISE,
    attributes=(Attribute("method", "word", "the function"), *_PARAMETERS, *_RECTIFIER_KEYS),
    constants=_TABLE,
    float=activation,
    quantised=quantised_activation,
)
for _method, _names in ALONE.items():
    layer_type(
        *_names,
        summary=f"Of each element {METHODS[_method].summary}.",
        use=METHODS[_method].use,
        fusion=Fusion.ELEMENTWISE,
        constants=_TABLE,
        attributes=tuple(Attribute(k, "float", "a parameter", str(d)) for k, d in METHODS[_method].parameters.items()),
        float=activation,
        quantised=quantised_activation,
    )
for _method, _name in RECTIFIERS.items():
    layer_type(
        _name,
        summary=f"The rectifier {_method}.",
        use="common",
        fusion=Fusion.ELEMENTWISE,
        attributes=_RECTIFIER_KEYS,
        float=activation,
        quantised=quantised_activation,
    )
for _name, _row in PLAIN.items():
    layer_type(
        _name,
        summary=f"Of each element {_row.summary}.",
        use="sometimes",
        fusion=Fusion.ELEMENTWISE,
        constants=_TABLE,
        float=_plain,
        quantised=plain_tabled,
    )
for _name, _text in (("Sine", "sine"), ("Cosine", "cosine")):
    layer_type(
        _name,
        summary=f"The {_text} of each element, in radians.",
        use="sometimes",
        fusion=Fusion.ELEMENTWISE,
        constants=_TABLE,
        float=trigonometric,
        quantised=quantised_trigonometric,
    )
layer_type(
    "Abs",
    summary="The magnitude of each element.",
    use="sometimes",
    fusion=Fusion.ELEMENTWISE,
    float=lambda layer, x: np.abs(x),
    quantised=quantised_abs,
)
layer_type(
    "Negative",
    summary="The negative of each element.",
    use="sometimes",
    fusion=Fusion.ELEMENTWISE,
    float=lambda layer, x: -x,
    quantised=quantised_negative,
)
layer_type(
    "Sign",
    summary="-1, 0 or 1 of each element.",
    use="sometimes",
    fusion=Fusion.ELEMENTWISE,
    float=lambda layer, x: np.sign(x),
    quantised=quantised_sign,
)

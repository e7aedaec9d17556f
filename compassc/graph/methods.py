"""Layer types that have several names for one thing: by a type of its own, or by the `method` of a common one."""

from __future__ import annotations

from compassc.graph.layer import Layer

ARITHMETIC = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV"}
"""The method of Eltwise that each type is."""
ARITHMETIC_TYPES = (*ARITHMETIC, "Eltwise")
RECTIFIERS = {"RELU": "RELU", "RELU6": "RELU6", "LeakyRELU": "LEAKYRELU"}
"""The method of Activation that each type is."""
RECTIFIER_TYPES = ("Activation", *RECTIFIERS)


def is_activated(layer: Layer) -> bool:
    """Whether an activation follows inside the layer."""
    return str(layer.attributes.get("with_activation", "NONE")).upper() != "NONE"


def arithmetic_method(layer: Layer) -> str:
    """ADD, SUB, MUL or DIV of a layer of two operands without an activation; "" for all others."""
    if layer.type not in ARITHMETIC_TYPES or is_activated(layer) or len(layer.inputs) != 2:
        return ""
    method = str(ARITHMETIC.get(layer.type) or layer.attributes.get("method", "")).upper()
    return method if method in ARITHMETIC.values() else ""


def rectifier(layer: Layer) -> str:
    """RELU, RELU6 or LEAKYRELU of such a layer; "" for all others."""
    if layer.type not in RECTIFIER_TYPES:
        return ""
    method = str(RECTIFIERS.get(layer.type) or layer.attributes.get("method", "")).upper()
    return method if method in RECTIFIERS.values() else ""

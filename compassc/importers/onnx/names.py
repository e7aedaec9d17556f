"""The operators of ONNX that are operators of the registry (`compassc.operators`): layers are made of these by `Building.made`,
expressions by `Expressions.made`."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.namedtuple import NamedTuple


class Element(NamedTuple):
    """What an operator on each element is. `inputs`: how many, 0 for any number. `attributes`: ONNX's, with its defaults, which the
    operator of the registry has by the same names."""

    operator: str
    inputs: int
    attributes: Mapping[str, float] = {}


UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "BitwiseNot": "bitwise_not", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
    "HardSwish": "hard_swish", "IsNaN": "isnan", "Log": "log", "Mish": "mish", "Neg": "negative", "Not": "logical_not",
    "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh",
    "Softplus": "softplus", "Softsign": "softsign", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
WITH_NUMBERS = {
    "Celu": Element("celu", 1, {"alpha": 1.0}),
    "Elu": Element("elu", 1, {"alpha": 1.0}),
    "HardSigmoid": Element("hard_sigmoid", 1, {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu": Element("leaky_relu", 1, {"alpha": 0.01}),
    "Selu": Element("selu", 1, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "Shrink": Element("shrink", 1, {"bias": 0.0, "lambd": 0.5}),
    "Swish": Element("swish", 1, {"alpha": 1.0}),
    "ThresholdedRelu": Element("thresholded_relu", 1, {"alpha": 1.0}),
}
BINARY = {
    "Add": "add", "And": "logical_and", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
    "Div": "divide", "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less",
    "LessOrEqual": "less_equal", "Mul": "multiply", "Or": "logical_or", "Pow": "power", "Sub": "subtract", "Xor": "logical_xor",
}  # fmt: skip
VARIADIC = {"Max": "maximum", "Min": "minimum", "Sum": "add"}
ELEMENTWISE: dict[str, Element] = {
    **{name: Element(operator, 1) for name, operator in UNARY.items()},
    **WITH_NUMBERS,
    **{name: Element(operator, 2) for name, operator in BINARY.items()},
    **{name: Element(operator, 0) for name, operator in VARIADIC.items()},
}
"""By the name in ONNX."""
SAME_REDUCTIONS = {
    "max": "ReduceMax",
    "min": "ReduceMin",
    "mean": "ReduceMean",
    "prod": "ReduceProd",
    "sum": "ReduceSum",
}
"""Reductions of axes, and those of ONNX."""

"""Functions of each element, and of two or more elements at the same place."""

from __future__ import annotations

from functools import reduce

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.operators.elementwise import (
    arithmetic,
    cast,
    combined,
    divide,
    extreme,
    modulo,
    unary,
    where,
)
from compassc.importers.onnx.operators.powers import power
from compassc.importers.onnx.operators.quantised import Levels
from compassc.importers.onnx.operators.quantised_forms import combine
from compassc.importers.tflite.convert import Conversion
from compassc.importers.tflite.declare import Call, operator, quantised, refuse, tabled
from compassc.importers.values import Refused, Value

UNARY = {
    "ABS": "abs", "CEIL": "ceil", "COS": "cos", "EXP": "exp", "FLOOR": "floor", "LOG": "log", "LOGICAL_NOT": "logical_not", "NEG": "negative",
    "ROUND": "round", "RSQRT": "rsqrt", "SIGN": "sign", "SIN": "sin", "SQRT": "sqrt",
}  # fmt: skip
BINARY = {
    "ADD": "add", "BITWISE_XOR": "bitwise_xor", "DIV": "divide", "EQUAL": "equal", "GREATER": "greater", "GREATER_EQUAL": "greater_equal",
    "LESS": "less", "LESS_EQUAL": "less_equal", "LOGICAL_AND": "logical_and", "LOGICAL_OR": "logical_or", "MAXIMUM": "maximum",
    "MINIMUM": "minimum", "MUL": "multiply", "NOT_EQUAL": "not_equal", "SUB": "subtract",
}  # fmt: skip
"""Operators that are operators of the registry."""
COMBINED = {"ADD": "ADD", "MAXIMUM": "MAX", "MINIMUM": "MIN", "MUL": "MUL", "SUB": "SUB"}
"""Those that layers do with integers of several scales, by their method."""


def _declare(name: str, made: str) -> None:
    def one(b: Building, x: Value) -> Value:
        return b.made(made, x)

    def two(b: Building, x: Value, y: Value) -> Value:
        return b.made(made, x, y)

    operator(name)(one if name in UNARY else two)


def _declare_quantised(name: str, method: str) -> None:
    @quantised(name)
    def form(b: Conversion, call: Call, out: Levels) -> Value | None:
        found = call.pair(0, 1)
        return None if found is None else combine(b, method, found, out)


for _name, _made in (UNARY | BINARY).items():
    _declare(_name, _made)
for _name, _method in COMBINED.items():
    _declare_quantised(_name, _method)
operator("POW")(power)
tabled("COS", "EXP", "LOG", "RSQRT", "SIN", "SQRT")


@operator("SQUARE")
def square(b: Building, x: Value) -> Value:
    return unary(b, x, "Square") if x.is_float else arithmetic(b, x, x, "Mul")


@operator("CAST")
def cast_to(b: Conversion, x: Value, *, in_data_type: int = 0, out_data_type: int = 0) -> Value:
    """The type of the output counts: files without options leave it to that."""
    return cast(b, x, b.output_types[0])


@operator("ZEROS_LIKE")
def zeros_like(b: Building, x: Value) -> Value:
    return Value.of(np.zeros(b.room(*x.shape), x.dtype))


@operator("ADD_N")
def add_n(b: Building, *xs: Value) -> Value:
    return reduce(lambda x, y: arithmetic(b, x, y, "Add"), xs)


@operator("FLOOR_DIV")
def floor_quotient(b: Building, x: Value, y: Value) -> Value:
    """Rounded down."""
    if x.is_float:
        return unary(b, divide(b, x, y), "Floor")
    tensors, shape, order = b.operands([x, y])
    kinds = [(shape, tensors[0].dtype)] * 2
    return b.value(b.layers_of("DivMod", tensors, kinds, mode="FLOOR")[0], x.dtype, order)


@operator("FLOOR_MOD")
def floor_rest(b: Building, x: Value, y: Value) -> Value:
    """With the sign of the divisor."""
    return modulo(b, x, y)


@operator("SQUARED_DIFFERENCE")
def squared_difference(b: Building, x: Value, y: Value) -> Value:
    difference = arithmetic(b, x, y, "Sub")
    return unary(b, difference, "Square") if x.is_float else arithmetic(b, difference, difference, "Mul")


@operator("RIGHT_SHIFT")
def right_shift(b: Building, x: Value, y: Value) -> Value:
    return combined(b, [x, y], "BitShift", x.dtype, direction="RIGHT")


@operator("SELECT", "SELECT_V2")
def select(b: Building, condition: Value, x: Value, y: Value) -> Value:
    """SELECT may choose whole rows by a vector: of the first axis, not the last."""
    if condition.rank == 1 and x.rank > 1 and condition.shape[0] == x.shape[0] and condition.shape[0] != x.shape[-1]:
        condition = b.reshape(condition, (x.shape[0], *(1,) * (x.rank - 1)))
    elif condition.rank == 1 and x.rank > 1 and condition.shape[0] == x.shape[0] and condition.shape[0] != 1:
        raise Refused("whether its condition goes along the first or the last axis cannot be told")
    return where(b, condition, x, y)


@operator("FAKE_QUANT")
def fake_quant(
    b: Building, x: Value, *, min: float, max: float, num_bits: int = 8, narrow_range: bool = False
) -> Value:
    """Rounded to the levels between `min` and `max`, which are moved so that 0 is one of them."""
    low, high = (1 if narrow_range else 0), (1 << num_bits) - 1
    if not min < max:
        raise Refused(f"its limits are {min} and {max}")
    scale = (max - min) / (high - low)
    zero = np.clip(np.floor(low - min / scale + 0.5), low, high)
    limits = [Value.of(np.full(1, (end - zero) * scale, np.float32)) for end in (low, high)]
    inside = reduce(lambda v, i: extreme(b, v, limits[i], ("MAX", "MIN")[i]), (0, 1), x)
    steps = unary(b, arithmetic(b, inside, Value.of(np.full(1, 1 / scale, np.float32)), "Mul"), "Round")
    return arithmetic(b, steps, Value.of(np.full(1, scale, np.float32)), "Mul")


refuse("there is no layer for it", "ATAN2", "BITCAST", "COMPLEX_ABS", "REAL", "IMAG")

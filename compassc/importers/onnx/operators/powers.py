"""Pow: of real numbers a layer, of whole numbers products, for the layer has 24 bits of each number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compassc.importers.building import Building, makes
from compassc.importers.onnx.operators.elementwise import (
    arithmetic,
    cast,
    combined,
    compare,
    divide,
    in_floats,
    unary,
    where,
)
from compassc.importers.values import Value

BEYOND = 32
"""An even exponent from which on all powers but those of -1, 0 and 1 have more than 32 bits."""


@makes("power")
def power(b: Building, x: Value, y: Value) -> Value:
    """The exponent may have another type than the base, which the result has."""
    if not x.is_float:
        return whole_power(b, x, y)
    if y.array is not None and y.count == 1 and y.rank <= x.rank:
        exponent = float(y.array.reshape(-1)[0])
        if exponent == 1.0:
            return x
        if exponent in (2.0, 0.5):
            return unary(b, x, "Square" if exponent == 2.0 else "Sqrt")
    return combined(b, [x, cast(b, y, x.dtype)], "Pow", x.dtype)


def whole_power(b: Building, x: Value, y: Value) -> Value:
    """A power of whole numbers: exact, and as products limited to the type. For exponents below 0 the quotient of 1 and
    the power for -y, toward zero; of 0 it is 0. Real exponents that are not known are computed with in floats."""
    if y.is_float and (y.array is None or (y.array != np.rint(y.array)).any()):
        return in_floats(b, x, lambda v: combined(b, [v, cast(b, y, np.float32)], "Pow", np.float32))
    y = cast(b, y, np.int64 if y.array is not None else np.int32, saturate=True)
    if y.array is not None:
        below, known = Value.of(y.array < 0), np.abs(y.array)
        found = _by_squares(b, x, Value.of(np.where(known > BEYOND, BEYOND + known % 2, known)))
    else:
        below = compare(b, y, _like(0, y), "LESS")
        size = unary(b, y, "Abs")
        odd = combined(b, [size, _like(1, y)], "Bitwise", np.int32, method="AND")
        far = compare(b, size, _like(BEYOND, y), "GREATER")
        found = _by_squares(b, x, where(b, far, arithmetic(b, odd, _like(BEYOND, y), "Add"), size))
    if below.array is not None and not below.array.any():
        return found
    return where(b, below, divide(b, _like(1, x), found), found)


def _by_squares(b: Building, x: Value, y: Value) -> Value:
    """x to the power y, of 0 up to BEYOND + 1: the squares x, x^2, x^4, ... whose bits y has, multiplied."""
    bit: Callable[[int], Value]
    if y.array is not None:
        given = y.array
        rounds, bit = int(given.max(initial=0)).bit_length(), lambda i: Value.of((given >> i & 1).astype(bool))
    else:
        rounds = BEYOND.bit_length()

        def bit(i: int) -> Value:
            one = combined(b, [y, _like(1 << i, y)], "Bitwise", y.dtype, method="AND")
            return compare(b, one, _like(0, y), "NOT_EQUAL")

    found: Value | None = None
    square = x
    for i in range(rounds):
        chosen = bit(i)
        if chosen.array is None or chosen.array.any():
            more = square if found is None else arithmetic(b, found, square, "Mul")
            found = where(b, chosen, more, _like(1, x) if found is None else found)
        square = arithmetic(b, square, square, "Mul") if i + 1 < rounds else square
    return Value.of(np.ones(b.room(*np.broadcast_shapes(x.shape, y.shape)), x.dtype)) if found is None else found


def _like(value: int, x: Value) -> Value:
    return Value.of(np.full(1, value, x.dtype))

"""Inverse functions of float32 lanes, and the exact remainder: what the DSL has no operation for.

The polynomials are within a few units in the last place; beyond the functions' domains they give what the references do.
"""

from __future__ import annotations

from typing import Any

from compassc.build import formula
from compassc.dsl import script as S
from compassc.layers.vectors import clamp

HALF_PI = 1.5707963267948966
LARGEST = 3.4028234663852886e38


def _odd(value: Any, size: Any) -> Any:
    """`size` with the sign of `value`."""
    return S.vsel(0.0 - size, size, value < 0.0)


def _sine_of(part: Any, square: Any) -> Any:
    """The arc sine of `part` from 0 to a half; `square` is its square."""
    p = S.fma(S.vbcast(S.fp32(2.4181311049e-2), lanes=32), square, 4.2163199048e-2)
    p = S.fma(S.vbcast(S.fp32(4.5470025998e-2), lanes=32), square, p)
    p = S.fma(S.vbcast(S.fp32(7.4953002686e-2), lanes=32), square, p)
    p = S.fma(S.vbcast(S.fp32(1.6666752422e-1), lanes=32), square, p)
    return S.fma(part, p * square, part)


@formula
def arc_sine(x: Any) -> Any:
    """NaN beyond -1..1."""
    size = S.abs(x)
    steep = size > 0.5
    square = S.vsel((1.0 - size) * 0.5, size * size, steep)
    angle = _sine_of(S.vsel(S.sqrt(square), size, steep), square)
    return _odd(x, S.vsel(HALF_PI - (angle + angle), angle, steep))


@formula
def arc_sine_limited(x: Any) -> Any:
    """As `arc_sine`; 2^31 - 1 for operands outside -1..1."""
    return S.vsel(arc_sine(x), S.vbcast(S.fp32(2147483647.0), lanes=32), S.abs(x) <= 1.0)


@formula
def arc_cosine(x: Any) -> Any:
    """NaN beyond -1..1."""
    size = S.abs(x)
    square = (1.0 - size) * 0.5
    angle = _sine_of(S.sqrt(square), square)
    angle = angle + angle
    return S.vsel(S.vsel(2.0 * HALF_PI - angle, angle, x < 0.0), HALF_PI - arc_sine(x), size > 0.5)


@formula
def arc_tangent(x: Any) -> Any:
    size = S.abs(x)
    far, middle = size > 2.414213562373095, size > 0.4142135623730950
    part = S.vsel((size - 1.0) / (size + 1.0), size, middle)
    part = S.vsel(-1.0 / size, part, far)
    start = S.vsel(S.vbcast(S.fp32(0.7853981633974483), lanes=32), 0.0, middle)
    start = S.vsel(S.vbcast(S.fp32(HALF_PI), lanes=32), start, far)
    square = part * part
    p = S.fma(S.vbcast(S.fp32(-1.38776856032e-1), lanes=32), square, 8.05374449538e-2)
    p = S.fma(S.vbcast(S.fp32(1.99777106478e-1), lanes=32), square, p)
    p = S.fma(S.vbcast(S.fp32(-3.33329491539e-1), lanes=32), square, p)
    return _odd(x, start + S.fma(part, p * square, part))


@formula
def inverse_hyperbolic_sine(x: Any) -> Any:
    """The square of a large number would overflow; its root is the number itself."""
    size = S.abs(x)
    near = S.log(size + S.sqrt(size * size + 1.0))
    return _odd(x, S.vsel(S.log(size) + 0.6931471805599453, near, size > 1e9))


@formula
def inverse_hyperbolic_cosine(x: Any) -> Any:
    """NaN below 1."""
    near = S.log(x + S.sqrt((x - 1.0) * (x + 1.0)))
    nothing = S.vbcast(S.fp32("nan"), lanes=32)
    return S.vsel(S.vsel(S.log(x) + 0.6931471805599453, near, x > 1e9), nothing, x >= 1.0)


@formula
def inverse_hyperbolic_tangent(x: Any) -> Any:
    """The largest number at 1 and beyond -1..1, the lowest at -1."""
    inside = 0.5 * S.log((1.0 + x) / (1.0 - x))
    largest = S.vbcast(S.fp32(LARGEST), lanes=32)
    return S.vsel(inside, S.vsel(0.0 - largest, largest, x == -1.0), S.abs(x) < 1.0)


@formula
def with_sign(value: Any, size: Any) -> Any:
    """`size`, which is not negative, with the sign bit of `value`."""
    sign = S.reinterpret(value, "int32x32") & -2147483648
    return S.reinterpret(S.reinterpret(size, "int32x32") | sign, "float32x32")


@S.macro
def exact_remainder(value, divisor):
    """`value` becomes its remainder by `divisor`, with the sign of `value`; every bit is exact.

    The mantissas are divided as whole numbers, eight bits of the quotient at a time.
    """
    word = S.reinterpret(S.abs(value), "int32x32")
    other = S.reinterpret(S.abs(divisor), "int32x32")
    power = S.max(other >> 23, 1)
    left = S.max(word >> 23, 1) - power
    rest = S.cast((word & 0x7FFFFF) | (S.min(word >> 23, 1) << 23), "uint32")
    whole = S.cast(S.max((other & 0x7FFFFF) | (S.min(other >> 23, 1) << 23), 1), "uint32")
    smaller = word < other
    rest = rest % whole
    while S.vany(left > 0):
        step = clamp(left, 0, 8)
        rest = (rest << S.cast(step, "uint32")) % whole
        left = left - step
    exponent = power - 150
    half = exponent >> 1
    first = S.reinterpret((half + 127) << 23, "float32x32")
    second = S.reinterpret((exponent - half + 127) << 23, "float32x32")
    size = S.cast(S.cast(rest, "int32"), "float32") * first * second
    found = S.vsel(S.abs(value), size, smaller)
    nothing = S.vsel(
        S.vbcast(S.fp32("nan"), lanes=32), found, (word > 0x7F7FFFFF) | (other > 0x7F800000) | (other == 0)
    )
    value = with_sign(value, nothing)

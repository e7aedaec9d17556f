"""The exact remainder of float32 lanes, which the DSL has no operation for."""

from __future__ import annotations

from compassc.build import Expression, formula
from compassc.dsl import script as S
from compassc.layers.vectors import clamp


@formula
def with_sign(value: Expression, size: Expression) -> Expression:
    """`size`, which is not negative, with the sign bit of `value`."""
    sign = S.reinterpret(value, "int32x32") & -2147483648
    return S.reinterpret(S.reinterpret(size, "int32x32") | sign, "float32x32")


@S.macro
def exact_remainder(value: Expression, divisor: Expression) -> None:
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

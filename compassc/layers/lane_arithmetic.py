"""More arithmetic of kernels beside `vectors`: reductions of lanes, long sums, integer functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from compassc.build import Address, Expression, formula
from compassc.dsl import script as S
from compassc.layers.vectors import clamp, entry_of


@formula
def across_sum(value: Expression) -> Expression:
    """The sum of 32 lanes, in every lane; integers wrap."""
    return S.vbcast(S.vrpadd(value)[0], lanes=32)


@formula
def across_max(value: Expression) -> Expression:
    """The largest of 32 lanes of 32 bits, in every lane."""
    return S.vbcast(S.vrpmax(_one_register(value, S.max))[0], lanes=32)


@formula
def across_min(value: Expression) -> Expression:
    """The smallest of 32 lanes of 32 bits, in every lane."""
    return S.vbcast(S.vrpmin(_one_register(value, S.min))[0], lanes=32)


def _one_register(value: Expression, join: Callable[[Expression, Expression], Expression]) -> Expression:
    """The registers of a vector joined lane by lane."""
    return reduce(join, S.vsplit(value))


@S.macro
def add_exactly(total: Expression, rest: Expression, value: Expression) -> None:
    """float32 lanes added to `total`; `rest` collects what rounding takes away."""
    added = total + value
    part = added - total
    rest = rest + ((total - (added - part)) + (value - part))
    total = added


@formula
def across_registers(value: Expression) -> Expression:
    """The sum of the registers of a vector, lane by lane."""
    a, b, c, d = S.vsplit(value)
    return (a + b) + (c + d)


@S.macro
def across_sum_exactly(total: Expression, rest: Expression) -> None:
    """The sum of 32 lanes of `total` and `rest` in every lane, rounded about once; it is left in `total`."""
    whole, second, third, last = S.vsplit(total)
    left = across_registers(rest)
    add_exactly(whole, left, second)
    add_exactly(whole, left, third)
    add_exactly(whole, left, last)
    other4 = S.vshfl(left, 4)
    add_exactly(whole, left, S.vshfl(whole, 4))
    left = left + other4
    other2 = S.vshfl(left, 2)
    add_exactly(whole, left, S.vshfl(whole, 2))
    left = left + other2
    other1 = S.vshfl(left, 1)
    add_exactly(whole, left, S.vshfl(whole, 1))
    left = left + other1
    total = S.vbcast((whole + left)[0], lanes=32)


@formula
def logarithm_of(value: Expression) -> Expression:
    """The natural logarithm of lanes that are all the same."""
    return S.vbcast(S.log(S.vbcast(value[0], lanes=8))[0], lanes=32)


@S.macro
def look_up_interval(
    value: Expression, table: Address, scale: Expression, offset: Expression, value_offset: Expression,
    last: Expression, mask: Expression,
) -> None:  # fmt: skip
    """Entries of an LSRAM float table by the place value * scale - offset, which is between two entries of it, or beyond
    the first or the last two; `last` is the last place but one. NaN is the place of 0."""
    place = S.vsel(value, S.vbcast(S.fp32(0.0), lanes=32), value == value) * scale - offset  # noqa: PLR0124 (NaN is not)
    at = S.max(S.min(S.floor(place), last), 0.0)
    index = S.cast(S.cast(at, "int32"), "int16")
    here = S.vload_gather(table, index, mask)
    there = S.vload_gather(table + 1, index, mask)
    value = here + (there - here) * (place - at) - value_offset


@S.macro
def look_up_mirrored(
    value: Expression, table: Address, scale: Expression, offset: Expression, value_offset: Expression,
    last: Expression, mask: Expression,
) -> None:  # fmt: skip
    """As `look_up_interval` for places from 0 on; of other places the negative of the entry at the positive one."""
    place = S.vsel(value, S.vbcast(S.fp32(0.0), lanes=32), value == value) * scale - offset  # noqa: PLR0124 (NaN is not)
    size = S.abs(place)
    at = S.max(S.min(S.floor(size), last), 0.0)
    index = S.cast(S.cast(at, "int32"), "int16")
    here = S.vload_gather(table, index, mask)
    there = S.vload_gather(table + 1, index, mask)
    found = here + (there - here) * (size - at)
    value = S.vsel(0.0 - found, found, place < 0.0) - value_offset


@formula
def float24(value: Expression | float) -> Expression:
    """float32 lanes with the low eight bits of the word cleared."""
    return S.reinterpret(S.reinterpret(value, "int32x32") & -256, "float32x32")


@S.macro
def exp2_coarse(value: Expression, table: Address, mask: Expression) -> None:
    """2^v in float24, by an LSRAM table of 513 powers; see `arithmetic.exp2_float`."""
    limited = clamp(value, -126.9, 126.9)
    whole = S.floor(limited)
    mantissa = S.cast((limited - whole) * 65535.0, "int32")
    entry = mantissa >> 7
    here = S.vload_gather(table, S.cast(entry, "int16"), mask)
    there = S.vload_gather(table, S.cast(entry + 1, "int16"), mask)
    between = here + (there - here) * S.cast(mantissa & 127, "float32") * 0.0078125
    value = between * S.exp2(whole)
    value = float24(value)


@S.macro
def exp2_fixed(value: Expression, table: Address, fraction_in: Expression, shift: Expression, mask: Expression) -> None:
    """2^(v / 2^fraction_in) of int32 lanes v <= 0 by an LSRAM table of 256 powers; `shift` is 15 less the fraction out.

    See `arithmetic.exp2_fixed`.
    """
    entry = (value & ((1 << fraction_in) - 1)) >> (fraction_in - 8)
    power = entry_of(table, entry, mask)
    down = shift - (value >> fraction_in)
    value = S.vsel(power << S.min(S.max(0 - down, 0), 31), power >> S.min(S.max(down, 0), 31), down < 0)


@S.macro
def log2_fixed(
    value: Expression, table: Address, fraction_in: Expression, fraction_out: Expression, mask: Expression
) -> None:
    """log2(v / 2^fraction_in) * 2^fraction_out of int32 lanes v >= 1 by an LSRAM table; see `arithmetic.log2_fixed`."""
    steps = S.clz(value) - 1
    entry = ((value << steps) >> 22) & 255
    mantissa = entry_of(table, entry, mask) >> (15 - fraction_out)
    value = mantissa - ((steps - (30 - fraction_in)) << fraction_out)


@S.macro
def log2_coarse(value: Expression, fraction_in: Expression, fraction_out: Expression) -> None:
    """As `log2_fixed` with a half (fraction_out 1) or a whole (0) step."""
    steps = S.clz(value) - 1
    above = S.min(S.max((value << steps) - 1518500250, 0), 1) * fraction_out
    value = above - ((steps - (30 - fraction_in)) << fraction_out)


@S.macro
def add_limited(total: Expression, value: Expression, limit: Expression) -> None:
    """Add uint32 lanes to a sum that saturates at a scalar limit; the two together must fit 32 bits."""
    total = S.min(total + value, limit)


@S.macro
def across_sum_limited(total: Expression, limit: Expression) -> None:
    """The sum of 32 uint32 lanes in every lane, at most a scalar limit of the form n * 2^16 or 2^32 - 1."""
    low_words = across_sum(total & S.u32(0xFFFF))
    high_words = across_sum(total >> S.u32(16)) + (low_words >> S.u32(16))
    joined = (high_words << S.u32(16)) | (low_words & S.u32(0xFFFF))
    total = S.vsel(S.vbcast(limit, lanes=32), joined, high_words > ((limit - S.u32(1)) >> S.u32(16)))


@S.macro
def look_up_wide(value: Expression, table: Address, extra: Expression, last: Expression, mask: Expression) -> None:
    """As `look_up` for entries whose difference times 2^extra does not fit 32 bits."""
    entry = value >> extra
    part = value - (entry << extra)
    here = entry_of(table, entry, mask)
    step = entry_of(table, S.min(entry + 1, last), mask) - here
    value = here + (step >> extra) * part + (((step & ((1 << extra) - 1)) * part) >> extra)


@formula
def look_up_float(
    index: Expression,
    table: Address,
    extra: Expression | float,
    last: Expression | float,
    unit: Expression | float,
    mask: Expression,
) -> Expression:
    """The float32 entries of an LSRAM table at int32 indices, 2^extra from one to the next; `unit` is 2^-extra."""
    entry = index >> extra
    here = S.vload_gather(table, S.cast(entry, "int16"), mask)
    there = S.vload_gather(table, S.cast(S.min(entry + 1, last), "int16"), mask)
    return here + (there - here) * S.cast(index - (entry << extra), "float32") * unit


@S.macro
def add_squares(total: Expression, value: Expression) -> None:
    """Add the uint32 squares of int32 lanes of at most 16 bits to a sum that saturates at 2^32 - 1."""
    square = S.cast(value * value, "uint32")
    total = total + square
    total = S.vsel(S.vbcast(S.u32(0xFFFFFFFF), lanes=32), total, total < square)


@S.macro
def across_product(value: Expression) -> None:
    """The product of 32 float32 lanes, in every lane."""
    value = value * S.vshfl(value, 16)
    value = value * S.vshfl(value, 8)
    value = value * S.vshfl(value, 4)
    value = value * S.vshfl(value, 2)
    value = value * S.vshfl(value, 1)
    value = S.vbcast(value[0], lanes=32)


@formula
def square_of(value: Expression) -> Expression:
    return value * value


@S.macro
def divide_rounded(value: Expression, divisor: Expression) -> None:
    """int32 lanes over a divisor from 1 to 2^30, to the nearest, ties to even."""
    quotient = S.vdiv(value, divisor)
    left = value - quotient * divisor
    quotient = quotient + (left >> 31)
    left = left + ((left >> 31) & divisor)
    value = quotient + clamp(left + left - divisor + (quotient & 1), 0, 1)


@S.macro
def halve(value: Expression, count: Expression, bits: Expression) -> None:
    """int32 lanes shifted right until they fit `bits` bits beside the sign; `count` grows by how far."""
    excess = S.max(32 - bits - S.clz(value ^ (value >> 31)), 0)
    value = value >> excess
    count = count + excess


@S.macro
def halve_unsigned(value: Expression, count: Expression) -> None:
    """uint32 lanes shifted right until they fit 16 bits; `count` grows by how far."""
    excess = S.max(16 - S.cast(S.clz(value), "int32"), 0)
    value = value >> S.cast(excess, "uint32")
    count = count + excess


@S.macro
def requantise_by(value: Expression, scale: Expression, shift: Expression) -> None:
    """int32 lanes of up to 16 bits times a scale of 15, over 2^shift of each lane, which may be negative.

    Results of more than 17 bits are not told apart.
    """
    product = value * scale
    right = S.vsel(S.vsr(product, clamp(shift, 0, 31), with_round=True), 0, shift < 32)
    left = clamp(product, -131072, 131072) << clamp(0 - shift, 0, 8)
    left = clamp(left, -131072, 131072) << clamp(-8 - shift, 0, 9)
    value = S.vsel(right, left, shift >= 0)


@S.macro
def inverse_root(value: Expression, table: Address, mask: Expression) -> None:
    """About 2^31 / sqrt(v) of int32 lanes by an LSRAM table of 193 roots; see `arithmetic.inverse_root`."""
    limited = S.max(value, 1)
    steps = S.clz(limited) - 1
    exponent = 31 - steps
    position = ((limited << steps) >> (exponent & 1)) >> 7
    entry = S.max((position >> 16) - 64, 0)
    here = entry_of(table, entry, mask)
    step = here - entry_of(table, S.min(entry + 1, 192), mask)
    value = ((here << 16) - ((step * ((position >> 1) & 0x7FFF)) << 1)) >> ((exponent - 1) >> 1)


@formula
def rounded_quotient(value: Expression, divisor: Expression | float) -> Expression:
    """A scalar int32 over a divisor from 1 to 2^30, to the nearest, ties to even."""
    down = value / divisor + ((value % divisor) >> 31)
    left = value - down * divisor
    return down + clamp(left + left - divisor + (down & 1), 0, 1)


@formula
def inverse_root_of(value: Expression, table: Address) -> Expression:
    """As `inverse_root`, of a scalar int32."""
    limited = S.max(value, 1)
    steps = S.clz(limited) - 1
    exponent = 31 - steps
    position = ((limited << steps) >> (exponent & 1)) >> 7
    entry = S.max((position >> 16) - 64, 0)
    here = S.i32(table[entry])
    step = here - S.i32(table[S.min(entry + 1, 192)])
    return ((here << 16) - ((step * ((position >> 1) & 0x7FFF)) << 1)) >> ((exponent - 1) >> 1)


@S.macro
def carry_pair(low_words: Expression, high_words: Expression) -> None:
    """Carry between two uint32 words of the number high * 2^16 + low, so that low has 16 bits."""
    high_words = high_words + (low_words >> S.u32(16))
    low_words = low_words & S.u32(0xFFFF)


@S.macro
def add_to_pair(high: Expression, low: Expression, value: Expression) -> None:
    """int32 lanes added to high * 65536 + low (16 bits), int32 words."""
    low = low + (value & 0xFFFF)
    high = high + (value >> 16) + (low >> 16)
    low = low & 0xFFFF


@S.macro
def across_sum_pair(low_words: Expression, high_words: Expression) -> None:
    """The sums of 32 lanes in every lane, of words that `carry_pair` left."""
    low_words = across_sum(low_words)
    high_words = across_sum(high_words)
    carry_pair(low_words, high_words)


@S.macro
def shift_pair(value: Expression, low_words: Expression, high_words: Expression, move: Expression) -> None:
    """`value`: a pair over 2^move for 0 <= move <= 16, rounded down, at most 2^31 - 1."""
    joined = (high_words << S.cast(16 - move, "uint32")) | (low_words >> S.cast(move, "uint32"))
    fits = (high_words >> S.cast(S.min(15 + move, 31), "uint32")) == S.u32(0)
    value = S.vsel(S.cast(joined, "int32"), 0x7FFFFFFF, fits)  # noqa: F841 (the caller's)


@S.macro
def divide_pair(value: Expression, low_words: Expression, high_words: Expression, divisor: Expression) -> None:
    """`value`: a pair over a uint32 divisor below 2^16, rounded down, at most 2^31 - 1."""
    first = S.vdiv(high_words, divisor)
    second = S.vdiv(((high_words - first * divisor) << S.u32(16)) | low_words, divisor)
    fits = first < S.u32(0x8000)
    value = S.vsel(S.cast((first << S.u32(16)) + second, "int32"), 0x7FFFFFFF, fits)  # noqa: F841 (the caller's)


@S.macro
def divide_bit(quotient: Expression, rest: Expression, bit: Expression, divisor: Expression) -> None:
    """A step of a long division of uint32 lanes, for the next bit of the dividend."""
    rest = rest + rest + (bit & S.u32(1))
    whole = S.vsel(S.vbcast(S.u32(1), lanes=32), 0, rest >= divisor)
    quotient = quotient + quotient + whole
    rest = rest - whole * divisor


@S.macro
def divide_long(
    quotient: Expression, rest: Expression, low_words: Expression, high_words: Expression, divisor: Expression
) -> None:
    """uint32 lanes high * 2^16 + low over a divisor below 2^31; `quotient` and `rest` are 0 before."""
    for step in range(32):
        divide_bit(quotient, rest, high_words >> S.cast(31 - step, "uint32"), divisor)
    for step in range(16):
        divide_bit(quotient, rest, low_words >> S.cast(15 - step, "uint32"), divisor)


@S.macro
def add_saturated(total: Expression, value: Expression) -> None:
    """Add uint32 lanes to a sum that saturates at 2^32 - 1."""
    total = total + value
    total = S.vsel(S.vbcast(S.u32(0xFFFFFFFF), lanes=32), total, total < value)

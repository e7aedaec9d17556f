"""Arithmetic of layer kernels: vectors of 32-bit lanes, and requantisation.

The functions are called while a kernel is parsed (or run in PySim) and give expressions; macros are statements that
change their first argument. Integers of 8 and 16 bits are computed with in int32, floats of 16 bits in float32: the
wide form. `arithmetic` defines the numbers.
"""

from __future__ import annotations

from typing import Any, Literal

from compassc.build import Address, Expression, formula
from compassc.dsl import script as S
from compassc.graph import LayerError, Tensor
from compassc.ir.dtypes import VECTOR_BITS

WIDE = {
    "bool": "int32",
    "int8": "int32",
    "uint8": "int32",
    "int16": "int32",
    "uint16": "int32",
    "int32": "int32",
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
}
"""The type of the lanes in which a data type is computed with."""
LANE_KINDS = {**WIDE, "uint32": "uint32"}
"""The same, where words count that may have all 32 bits: only some element-wise layers take them."""


LANES = VECTOR_BITS // 8
"""Elements that one pass of an element-wise loop takes: bytes of a register."""


def wide_kind(tensor: Tensor) -> str:
    """The type of the lanes in which a tensor's elements are computed with. LayerError for types without one."""
    if tensor.dtype not in WIDE:
        raise LayerError(f"kernels do not compute with {tensor.dtype}")
    return WIDE[tensor.dtype]


def everywhere(number: float | Expression, kind: str = "int32", lanes: int = LANES) -> Expression:
    """A number in all lanes."""
    return S.vbcast(S.cast(number, kind), lanes=lanes)


def pointee(dtype: str) -> str:
    """The element type of a kernel's pointer to a tensor of `dtype`."""
    return "uint8" if dtype == "bool" else dtype


@formula
def wide(value: Expression, dtype: str) -> Expression:
    """A stored vector in its wide form."""
    return value if dtype == WIDE[dtype] else S.cast(value, WIDE[dtype])


BITS = {
    "bool": "uint8",
    "int8": "uint8",
    "uint8": "uint8",
    "int16": "uint16",
    "uint16": "uint16",
    "float16": "uint16",
    "bfloat16": "uint16",
    "int32": "int32",
    "uint32": "int32",
    "float32": "int32",
}
"""Data type -> the type that moves it unchanged."""


def bits_of(dtype: str) -> str:
    """The type that moves elements of `dtype` unchanged. LayerError for types that kernels do not hold."""
    if dtype not in BITS:
        raise LayerError(f"kernels do not move {dtype}")
    return BITS[dtype]


LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38}
"""The largest finite numbers of floats of 16 bits."""


@formula
def narrow(value: Any, dtype: str) -> Any:
    """The wide form converted for storing; integers must be in range, floats are rounded, finite ones remain finite."""
    if WIDE[dtype] == dtype:
        return value
    if dtype in LARGEST and value.dtype.lanes == 1:
        return narrow(S.vbcast(value, lanes=16), dtype)[0]
    if dtype in LARGEST:
        limited = S.min(S.max(value, -LARGEST[dtype]), LARGEST[dtype])
        return S.cast(S.vsel(limited, value, S.abs(value) <= 3.4028234663852886e38), dtype)
    return S.cast(value, pointee(dtype))


@formula
def load(pointer: Address, mask: Expression, dtype: str, lanes: int) -> Expression:
    """`lanes` elements in their wide form; inactive lanes are 0."""
    return wide(S.vload(pointer, mask, lanes=lanes), dtype)


@formula
def clamp(value: Expression, low: Expression | float, high: Expression | float) -> Expression:
    return S.min(S.max(value, low), high)


@formula
def requantised(value: Expression, scale: Expression | float, shift: Expression | float) -> Expression:
    """int32 lanes times `scale`, which fits int32, over 2^shift for 0 <= shift < 32, to the nearest, ties to even."""
    return S.vsr(value * scale, shift, with_round=True)


@formula
def narrowed(value: Expression, shift: Expression | float, dtype: str) -> Any:
    """int32 lanes over 2^shift for 0 <= shift < 32, to the nearest, ties to even, as `dtype` of 8 or 16 bits: limited to
    what it holds."""
    sign: Literal["s", "u"] = "u" if dtype.startswith("u") else "s"
    if dtype.endswith("16"):
        a, b, c, d = S.vsplit(S.vnsrsr(value, shift, out_sign=sign, to_h=True))
        return S.vconcat((S.vconcat((a, b), "even"), S.vconcat((c, d), "even")))
    a, b, c, d = S.vsplit(S.vnsrsr(value, shift, out_sign=sign))
    return S.vconcat((S.vconcat((a, b), "even"), S.vconcat((c, d), "even")), "even")


@formula
def narrowed_less(value: Expression, shift: Expression | float, zero: Expression, dtype: str) -> Any:
    """As `narrowed` to 8 bits, of the rounded numbers less `zero`, whose magnitude is below 2^14."""
    less = S.vsub(narrowed(value, shift, "int16"), S.cast(zero, "int16"), saturate=True)
    a, b = S.vsplit(S.vnsrsr(less, 0, out_sign="u" if dtype.startswith("u") else "s"))
    return S.vconcat((a, b), "even")


@S.macro
def requantise_wide(
    value: Expression, scale: Expression, bound: Expression, drop: Expression, shift: Expression
) -> None:
    """int32 lanes times a scale of 16 bits, over a power of two, where the product needs up to 48 bits.

    The arguments come from `parameters.wide_factor`. Values beyond `bound` are limited: their results are beyond every
    limit. The product is formed of two halves; of its lowest `drop` bits only counts whether they are 0.
    """
    limited = S.min(S.max(value, -1 - bound), bound)
    low_product = S.cast(limited & 0xFFFF, "uint32") * S.cast(scale, "uint32")
    high_product = (limited >> 16) * scale + S.cast(low_product >> 16, "int32")
    low_word = S.cast(low_product & 0xFFFF, "int32")
    sticky = S.min(low_word & ((1 << drop) - 1), 1)
    value = S.vsr((high_product << (16 - drop)) | (low_word >> drop) | sticky, shift, with_round=True)


@formula
def rounded_word(value: Expression, factor: Expression) -> Expression:
    """float32 lanes times a float32, to the nearest integer, ties to even: exact for products below 2^22, for the one
    rounding of the sum with 1.5 * 2^23 is that to an integer. The words are the integers plus 0x4B400000."""
    return S.reinterpret(S.fma(S.vbcast(S.fp32(12582912.0), lanes=32), value, factor), "int32x32")


@formula
def word_of(value: Expression) -> Expression:
    """float32 lanes below 2^22 to the nearest integer, ties to even, as the words of `rounded_word`."""
    return S.reinterpret(value + S.fp32(12582912.0), "int32x32")


@formula
def places_of_bytes(value: Expression, largest: Expression | float) -> Expression:
    """Bytes less a number that none is above, plus 255, in int16 lanes."""
    return S.cast(S.reinterpret(value, "uint8x32") - S.cast(largest + 1, "uint8"), "int16")


@formula
def narrowed_word(word: Expression, zero: Expression | float, dtype: str) -> Any:
    """The integers of `rounded_word`, which have 16 bits, less `zero` (below 2^14), limited to `dtype` of 8 bits."""
    a, b, c, d = S.vsplit(S.reinterpret(word, "int16x64"))
    whole = S.vconcat((S.vconcat((a, b), "even"), S.vconcat((c, d), "even")))
    less = whole if isinstance(zero, int) else S.vsub(whole, S.cast(zero, "int16"), saturate=True)
    first, second = S.vsplit(S.vnsrsr(less, 0, out_sign="u" if dtype.startswith("u") else "s"))
    return S.vconcat((first, second), "even")


@S.macro
def requantise_far(value: Expression, scale: Expression, shift: Expression) -> None:
    """int32 lanes times a scale of 16 bits over 2^(15 + shift) for 2 <= shift <= 31, where the product has 47 bits.

    Of the product's lowest 16 bits only counts whether they are 0: they are below the half that rounding looks at.
    """
    low_product = S.cast(value & 0xFFFF, "uint32") * S.cast(scale, "uint32")
    high_product = (value >> 16) * scale + S.cast(low_product >> 16, "int32")
    value = S.vsr((high_product << 1) | S.min(S.cast(low_product & 0xFFFF, "int32"), 1), shift, with_round=True)


@S.macro
def scale_exactly(value: Expression, scale: Expression, shift: Expression) -> None:
    """int32 lanes times a scale of 16 bits, over 2^shift for 0 < shift <= 16, where the result fits int32."""
    low_product = S.cast(value & 0xFFFF, "uint32") * S.cast(scale, "uint32")
    high_product = (value >> 16) * scale + S.cast(low_product >> 16, "int32")
    low_word = S.cast(low_product & 0xFFFF, "int32")
    whole = (high_product << (16 - shift)) + (low_word >> shift)
    part = low_word & ((1 << shift) - 1)
    value = whole + ((part + (whole & 1) + ((1 << (shift - 1)) - 1)) >> shift)


@S.macro
def look_up(value: Expression, table: Address, extra: Expression, last: Expression, mask: Expression) -> None:
    """Indices from 0 by their place in an LSRAM table of `last` + 1 entries, 2^extra indices from one entry to the next.

    Between entries the value is interpolated and rounded down.
    """
    entry = value >> extra
    part = value - (entry << extra)
    here = S.cast(S.vload_gather(table, S.cast(entry, "int16"), mask), "int32")
    there = S.cast(S.vload_gather(table, S.cast(S.min(entry + 1, last), "int16"), mask), "int32")
    value = here + (((there - here) * part) >> extra)


@formula
def entry_of(table: Address, index: Expression, mask: Expression) -> Expression:
    """The entries of an LSRAM table at int32 indices, in their wide form."""
    return S.cast(S.vload_gather(table, S.cast(index, "int16"), mask), "int32")


@formula
def sum_of_bytes(a: Expression, b: Expression, factors: Expression, start: Expression) -> Expression:
    """a * f + b * g + start of bytes in int32 lanes; the 16 bits of f and g are the low and the high half of `factors`."""
    if a.dtype == b.dtype:
        pairs = S.cast(S.vzip(a, b), "int16")
    else:
        pairs = S.vzip(S.cast(a, "int16"), S.cast(b, "int16"))
    return S.vdpa(S.vbcast(start, lanes=32), pairs, S.reinterpret(S.vbcast(factors, lanes=32), "int16x64"))


@formula
def paired_bytes(a: Expression, b: Expression) -> Expression:
    """Bytes of two vectors in turns, in int16 lanes."""
    return S.cast(S.vzip(a, b), "int16")


@formula
def sum_of_corners(
    a: Expression, b: Expression, c: Expression, d: Expression, above: Expression, below: Expression
) -> Expression:
    """Bytes of four vectors times the four factors of 16 bits that two int32 hold, in int32 lanes."""
    first, second = (S.reinterpret(S.vbcast(w, lanes=32), "int16x64") for w in (above, below))
    return S.vdpa(S.vdpa(S.vbcast(S.i32(0), lanes=32), paired_bytes(a, b), first), paired_bytes(c, d), second)


@formula
def product_of_halves(a: Expression, b: Expression) -> Expression:
    """The products of int16 or uint16 lanes in int32 lanes."""
    (a0, a1), (b0, b1) = S.vsplit(a), S.vsplit(b)
    parts = [multiply(x, y, out_sign="s") for x, y in ((a0, b0), (a1, b1)) for multiply in (S.vmull, S.vmulh)]
    return S.vconcat(tuple(parts))


@formula
def signed_bytes(value: Expression, sign: Expression) -> Expression:
    """Bytes times int8 lanes in int16 lanes."""
    return S.vconcat((S.vmull(value, sign, out_sign="s"), S.vmulh(value, sign, out_sign="s")))


@formula
def halves(value: Expression, zero: Expression | float) -> Expression:
    """Bytes plus a number in int16 lanes."""
    return S.cast(value, "int16") + S.cast(zero, "int16")


@formula
def halves_of(value: Expression) -> Expression:
    """Bytes in int16 lanes."""
    return S.cast(value, "int16")


@formula
def entries_of_bytes(
    index: Expression,
    a: Expression,
    b: Expression,
    c: Expression,
    d: Expression,
    e: Expression,
    f: Expression,
    g: Expression,
    h: Expression,
) -> Any:
    """The entries at 32 bytes of a table of 256 bytes in registers; past the end of a half nothing is found."""
    at = S.reinterpret(index, "uint8x32")
    return S.vtbl((a, b, c, d), at) | S.vtbl((e, f, g, h), at ^ S.cast(0x80, "uint8"))


@formula
def entries_of_half(index: Expression, a: Expression, b: Expression, c: Expression, d: Expression) -> Any:
    """The entries at 32 bytes of a table of 128 bytes in registers, 0 past its end."""
    return S.vtbl((a, b, c, d), S.reinterpret(index, "uint8x32"))


@formula
def line_of_bytes(value: Expression, near: Expression, far: Expression) -> Expression:
    """Bytes times bytes, below 2^15, times int16 lanes."""
    product = S.vconcat((S.vmull(value, near), S.vmulh(value, near)))
    return product_of_halves(S.reinterpret(product, "int16x32"), far)


@formula
def products_by(value: Expression, factor: Expression | float) -> Expression:
    """The products of int16 lanes and a number of 16 bits without a sign, in int32 lanes."""
    return product_of_halves(value, S.vbcast(S.cast(factor, "uint16"), lanes=32))


@formula
def shared_part(n: Expression, lanes: int) -> Expression:
    """Elements of a TEC's contiguous share of `n`: a multiple of `lanes`."""
    return S.ceildiv(S.ceildiv(n, lanes), S.get_local_size()) * lanes


@formula
def spread(word: Expression, dtype: str) -> Expression:
    """The four bytes of an int32 in each of 32 lanes, as 128 elements of `dtype`."""
    return S.reinterpret(S.vbcast(word, lanes=32), f"{dtype}x128")


@S.macro
def multiply_wide(high: Expression, low: Expression, scale: Expression) -> None:
    """The number high * 2^16 + low times a scale of 16 bits; `low` has 16 bits, and `high` must have room."""
    product = S.cast(low, "uint32") * S.cast(scale, "uint32")
    high = high * scale + S.cast(product >> 16, "int32")
    low = S.cast(product & 0xFFFF, "int32")


@S.macro
def shift_near(high: Expression, low: Expression, shift: Expression) -> None:
    """`high` becomes high * 2^16 + low over 2^shift for 0 <= shift <= 16, to the nearest, ties to even; it fits int32."""
    whole = (high << (16 - shift)) + (low >> shift)
    part = (low & ((1 << shift) - 1)) << 1
    high = whole + ((part + (whole & 1) + ((1 << shift) - 1)) >> (shift + 1))


@S.macro
def shift_far(high: Expression, low: Expression, shift: Expression) -> None:
    """As `shift_near` for 17 <= shift <= 46."""
    whole = high >> (shift - 16)
    part = high & ((1 << (shift - 16)) - 1)
    half = (1 << (shift - 16)) >> 1
    high = whole + S.max(S.min(part - half + S.min(low + (whole & 1), 1), 1), 0)


@S.macro
def limit_pair(high: Expression, low: Expression, top: Expression, last: Expression) -> None:
    """high * 2^16 + low (16 bits) limited to top * 2^16 + last and to -(top + 1) * 2^16."""
    low = S.vsel(S.min(low, last), low, high >= top)
    low = S.vsel(S.max(low, last), low, high > top)
    low = S.vsel(0, low, high < 0 - top - 1)
    high = S.max(S.min(high, top), 0 - top - 1)


@S.macro
def shift_any(high: Expression, low: Expression, shift: Expression) -> None:
    """As both, with a shift that differs by lane or by pass."""
    far = high + 0
    near_shift = S.min(shift, 16)
    far_shift = S.max(shift, 17)
    shift_near(high, low, near_shift)
    shift_far(far, low, far_shift)
    high = S.vsel(far, high, (high & 0) + shift > 16)


@formula
def spread_word(word: Expression, dtype: str) -> Expression:
    """The bytes of an int32 again and again, in one register of `dtype`."""
    return S.reinterpret(S.vbcast(word, lanes=8), f"{dtype}x{ {'8': 32, '6': 16}[dtype[-1]] }")


@S.macro
def positive_pair(high: Expression, low: Expression) -> None:
    """The larger of 0 and high * 65536 + low (16 bits), rounded to the 24 bits of a float32.

    Both words of 24 bits are exact in float32, so that the fused sum rounds once.
    """
    upper = S.cast(high >> 8, "float32")
    lower = S.cast(((high & 255) << 16) | low, "float32")
    rounded = S.max(S.fma(lower, upper, 16777216.0), 0.0)
    high = S.cast(rounded * 1.52587890625e-05, "int32")
    low = S.cast(S.fma(rounded, S.cast(high, "float32"), -65536.0), "int32")


@S.macro
def requantise_pair(
    high: Expression, low: Expression, scale: Expression, bound: Expression, drop: Expression, shift: Expression
) -> None:
    """high * 65536 + low (16 bits) times a scale of 16 bits over 2^(drop + shift), to the nearest, ties to even.

    The product is formed in words of 32 bits; the upper one is limited to `bound`, beyond which results are beyond
    every limit. Of its lowest `drop` bits only counts whether they are 0. The result is in `high`.
    """
    lowest = S.cast(low, "uint32") * S.cast(scale, "uint32")
    middle = S.cast(high & 0xFFFF, "uint32") * S.cast(scale, "uint32") + (lowest >> 16)
    upper = (high >> 16) * scale + S.cast(middle >> 16, "int32")
    lower = S.cast((middle << 16) | (lowest & 0xFFFF), "int32")
    lower = S.vsel(-1, lower, upper > bound)
    lower = S.vsel(0, lower, upper < -1 - bound)
    upper = clamp(upper, -1 - bound, bound)
    rest = S.min(lower & (bound * 2 + 1), 1)
    below = S.cast(S.cast(lower, "uint32") >> S.cast(drop, "uint32"), "int32")
    high = S.vsr((upper << (32 - drop)) | below | rest, shift, with_round=True)


@S.macro
def split_float(high: Expression, low: Expression, value: Expression) -> None:
    """A whole number below 2^47 as high * 65536 + low (16 bits); it has 24 bits, so that every step is exact."""
    high = S.cast(value * 1.52587890625e-05, "int32")
    low = S.cast(S.fma(value, S.cast(high, "float32"), -65536.0), "int32")
    high = high + (low >> 16)
    low = low & 0xFFFF


@S.macro
def add_product(high: Expression, low: Expression, value: Expression, scale: Expression) -> None:
    """Adds an int32 times a scale of 16 bits to high * 65536 + low (16 bits)."""
    product = S.cast(value & 0xFFFF, "uint32") * S.cast(scale, "uint32")
    total = low + S.cast(product & 0xFFFF, "int32")
    high = high + (value >> 16) * scale + S.cast(product >> 16, "int32") + (total >> 16)
    low = total & 0xFFFF


@formula
def scaled_floor(value: Expression, scale: Expression | float, shift: Expression | float) -> Expression:
    """A scalar int32 times a scale of 16 bits over 2^shift for 0 <= shift < 32, rounded down; it must fit int32."""
    low = S.cast(value & 0xFFFF, "uint32") * S.cast(scale, "uint32")
    high = (value >> 16) * scale + S.cast(low >> 16, "int32")
    near, far = S.min(shift, 16), S.max(shift, 16)
    below = S.cast(low & 0xFFFF, "int32") >> near
    return ((high << (16 - near)) | below) >> (far - 16)


@S.macro
def scale_toward_zero(value: Expression, scale: Expression, shift: Expression) -> None:
    """int32 lanes times a scale of 16 bits over 2^shift for 0 <= shift <= 47, without the fraction, saturated."""
    size = S.cast(S.abs(value), "uint32")
    low_product = (size & S.u32(0xFFFF)) * S.cast(scale, "uint32")
    high_product = (size >> S.u32(16)) * S.cast(scale, "uint32") + (low_product >> S.u32(16))
    near = S.cast(S.min(shift, 16), "uint32")
    far = S.cast(S.max(shift - 16, 0), "uint32")
    room = S.u32(16) - near
    whole = (high_product << room) | ((low_product & S.u32(0xFFFF)) >> near)
    whole = S.vsel(S.vbcast(S.u32(0xFFFFFFFF), lanes=32), whole, high_product > (S.u32(0xFFFFFFFF) >> room))
    whole = S.min(whole >> far, S.u32(0x80000000))
    value = S.vsel(0 - S.cast(whole, "int32"), S.cast(S.min(whole, S.u32(0x7FFFFFFF)), "int32"), value < 0)


@S.macro
def scale_pair(high: Expression, low: Expression, scale: Expression, shift: Expression, where: Expression) -> None:
    """high * 65536 + low (16 bits) where a mask is set times a scale of 16 bits over 2^shift for 1 <= shift <= 31.

    To the nearest, ties to even.
    """
    lowest = S.cast(low, "uint32") * S.cast(scale, "uint32")
    middle = S.cast(high & 0xFFFF, "uint32") * S.cast(scale, "uint32") + (lowest >> S.u32(16))
    upper = (high >> 16) * scale + S.cast(middle >> S.u32(16), "int32")
    lower = (middle << S.u32(16)) | (lowest & S.u32(0xFFFF))
    down = S.cast(shift, "uint32")
    whole = (lower >> down) | (S.cast(upper, "uint32") << (S.u32(32) - down))
    rest = lower << (S.u32(32) - down)
    half = S.u32(0x80000000)
    odd = whole & S.u32(1)
    more = S.vsel(S.vbcast(S.u32(1), lanes=32), 0, (rest > half) | ((rest == half) & (odd == S.u32(1))))
    total = whole + more
    above = (upper >> shift) + S.vsel(S.vbcast(S.i32(1), lanes=32), 0, total < more)
    low = S.vsel(S.cast(total & S.u32(0xFFFF), "int32"), low, where)
    high = S.vsel((above << 16) | S.cast(total >> S.u32(16), "int32"), high, where)


@S.macro
def negate_pair(high: Expression, low: Expression, where: Expression) -> None:
    """high * 65536 + low (16 bits) becomes its negative where a mask is set."""
    borrow = S.vsel(S.vbcast(S.i32(1), lanes=32), 0, low != 0)
    high = S.vsel(0 - high - borrow, high, where)
    low = S.vsel((0 - low) & 0xFFFF, low, where)


@S.macro
def sum_pair(high: Expression, low: Expression, a: Expression, b: Expression) -> None:
    """high * 65536 + low (16 bits) becomes the sum of two int32 vectors."""
    total = (a & 0xFFFF) + (b & 0xFFFF)
    high = (a >> 16) + (b >> 16) + (total >> 16)  # noqa: F841
    low = total & 0xFFFF  # noqa: F841 (the caller's)


@S.macro
def difference_pair(high: Expression, low: Expression, a: Expression, b: Expression) -> None:
    """As `sum_pair`, of the first less the second."""
    total = (a & 0xFFFF) - (b & 0xFFFF)
    high = (a >> 16) - (b >> 16) + (total >> 16)  # noqa: F841
    low = total & 0xFFFF  # noqa: F841 (the caller's)


@S.macro
def product_pair(high: Expression, low: Expression, a: Expression, b: Expression) -> None:
    """As `sum_pair`, of the product, which has 47 bits beside the sign."""
    least = S.cast(a & 0xFFFF, "uint32") * S.cast(b & 0xFFFF, "uint32")
    middle = (a >> 16) * (b & 0xFFFF) + (b >> 16) * (a & 0xFFFF)
    high = (((a >> 16) * (b >> 16)) << 16) + middle + S.cast(least >> S.u32(16), "int32")  # noqa: F841
    low = S.cast(least & S.u32(0xFFFF), "int32")  # noqa: F841 (the caller's)


@S.macro
def saturate_product(a: Expression, b: Expression) -> None:
    """`a` becomes the product of int32 lanes, at most what 32 bits hold."""
    negative = (a ^ b) < 0
    left, right = S.cast(S.abs(a), "uint32"), S.cast(S.abs(b), "uint32")
    half, mask = S.u32(16), S.u32(0xFFFF)
    least = (left & mask) * (right & mask)
    first = (left >> half) * (right & mask) + (least >> half)
    second = (right >> half) * (left & mask) + (first & mask)
    beyond = (left >> half) * (right >> half) + (first >> half) + (second >> half)
    size = (second << half) | (least & mask)
    limit = S.vsel(S.vbcast(S.u32(0x80000000), lanes=32), S.u32(0x7FFFFFFF), negative)
    size = S.vsel(limit, S.min(size, limit), beyond != S.u32(0))
    a = S.vsel(0 - S.cast(size, "int32"), S.cast(size, "int32"), negative)


@S.macro
def high_word(value: Expression, upper: Expression, lower: Expression, nudge: Expression) -> None:
    """int32 lanes times upper * 2^15 + lower (16 and 15 bits) plus nudge * 2^15, over 2^31, rounded down."""
    low = S.cast(value & 0xFFFF, "uint32")
    first = low * S.cast(upper, "uint32")
    second = low * S.cast(lower, "uint32")
    far = (value >> 16) * upper + S.cast(first >> 16, "int32")
    near = (value >> 16) * lower + S.cast(second >> 16, "int32")
    rest = S.cast(first & 0xFFFF, "int32") + S.cast((second & 0xFFFF) >> 15, "int32") + nudge
    value = far + ((near + (rest >> 1)) >> 15)


@S.macro
def shifted_again(value: Expression, away: Expression, shift: Expression, before: Expression, one: Expression) -> None:
    """int32 lanes over 2^shift, halves up, or away from zero where `away` is -1 (else 0): `before` is shift - 1 and `one` 1, or both 0."""
    moved = value + ((value >> 31) & away)
    value = (moved >> shift) + ((moved >> before) & one)

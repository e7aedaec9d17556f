"""Conversions on NumPy values by the rules of the kernel language: what `S.cast`, stores and operators share."""

from __future__ import annotations

from functools import cache

from compass_core.arrays import Array, NumpyDType
from compass_core.lazy import np

from ..ir.dtypes import FLOAT32, DataType

_I32_MIN, _I32_MAX, _U32_MAX = -(1 << 31), (1 << 31) - 1, (1 << 32) - 1


@cache
def np_dtype(dtype: DataType) -> NumpyDType:
    """The NumPy dtype of an element."""
    elem = dtype.element_of
    if elem.is_bool:
        return np.dtype(bool)
    if elem.is_bfloat:
        import ml_dtypes

        found: NumpyDType = np.dtype(ml_dtypes.bfloat16)
        return found
    return np.dtype(str(elem))


def float_to_int(x: Array, to: DataType, exact_unsigned: bool = False) -> Array:
    """Truncate toward zero after NaN -> 0 and a clamp to int32, then modulo the target's width.

    `exact_unsigned`: scalars converted to uint32 are clamped to its own range, as the C cast does here.
    """
    wide = x.astype(np.float64)
    wide = np.where(np.isnan(wide), 0.0, wide)
    low, high = (0, _U32_MAX) if exact_unsigned and to.is_uint and to.bits == 32 else (_I32_MIN, _I32_MAX)
    return np.trunc(np.minimum(np.maximum(wide, low), high)).astype(np.int64).astype(np_dtype(to))


def convert(x: Array, source: DataType, to: DataType, saturate: bool = False, scalar: bool = False) -> Array:
    """A NumPy value of element type `source` converted to element type `to`."""
    source, to = source.element_of, to.element_of
    if source is to:
        return x
    target = np_dtype(to)
    if to.is_bool:
        found: Array = x != 0
        return found
    if source.is_floating and to.is_integer:
        return float_to_int(x, to, exact_unsigned=scalar)
    if source.is_integer and to.is_integer:
        if not saturate:
            return x.astype(target)
        low, high = to.integer_range()
        least, most = source.integer_range()
        wide = x if least <= low and high <= most else x.astype(np.int64)
        clipped: Array = np.maximum(np.minimum(wide, wide.dtype.type(high)), wide.dtype.type(low))
        return clipped.astype(target)
    if source.is_floating:
        return _float_to_float(np.asarray(x), source, to)
    if target.itemsize == 4:
        return x.astype(target)
    if source.is_integer and source.bits == 32:
        return _sticky_float(x).astype(target)
    return x.astype(np.float32).astype(target)


def _float_to_float(x: Array, source: DataType, to: DataType) -> Array:
    """Nearest even; a NaN keeps the upper bits of its payload and becomes quiet, as conversion instructions do."""
    wide = x if source.bits == 32 else x.astype(np.float32)
    nan = np.isnan(wide)
    if not np.count_nonzero(nan):
        return wide if to.bits == 32 else wide.astype(np_dtype(to))
    bits = wide.view(np.uint32)
    if source.is_float:
        bits = np.where(nan, bits | 0x400000, bits)
    if to.bits == 32:
        return bits.view(np.float32)
    payload = bits >> 16 | 0x40 if to.is_bfloat else bits >> 16 & 0x8000 | bits >> 13 & 0x3FF | 0x7E00
    narrow = wide.astype(np_dtype(to)).view(np.uint16)
    return np.where(nan, payload, narrow).astype(np.uint16).view(np_dtype(to))


def _sticky_float(x: Array) -> Array:
    """32-bit integers as float32 rounded to odd, so that a further rounding to 16 bits is a single correct one."""
    exact = np.asarray(x).astype(np.float64)
    near = exact.astype(np.float32)
    toward_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
    inexact = toward_zero.astype(np.float64) != exact
    found: Array = (toward_zero.view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)
    return found


def literal(value: float | bool, to: DataType) -> Array:
    """A Python literal as a NumPy scalar of element type `to`, as the compiler writes it into C."""
    elem = to.element_of
    kind = np_dtype(elem).type
    if elem.is_bool:
        found: Array = kind(value != 0)
        return found
    if elem.is_floating:
        found = kind(np.float32(value)) if elem.bits != 32 else kind(value)
        return found
    if type(value) is float:
        return convert(np.asarray(np.float32(value)), FLOAT32, elem, scalar=True)[()]
    low, high = elem.range()
    if low <= value <= high:
        found = kind(value)
        return found
    bits = int(value) & ((1 << elem.bits) - 1)
    found = kind(bits - (1 << elem.bits) if elem.is_int and bits > high else bits)
    return found


def part_of(v: Array, part: str) -> Array:
    """The lanes of a part of a vector: `all` of them, a half (`low`, `high`, `even`, `odd`) or a quarter (`ll` to `hh`)."""
    if part == "all":
        return v
    half, quarter = len(v) // 2, len(v) // 4
    if part in ("even", "odd"):
        return v[part == "odd" :: 2]
    if part in ("low", "high"):
        return v[half:] if part == "high" else v[:half]
    return v[("ll", "lh", "hl", "hh").index(part) * quarter :][:quarter]


def filled_up(v: Array, count: int, source: DataType, result: DataType) -> Array:
    """`count` converted vectors of type `source` in one of type `result`: its upper lanes, which mean nothing, as the
    generated code leaves them."""
    have = len(v)
    if have >= result.lanes:
        return v
    if source.bits == 4 * result.bits and count == 1:
        return np.concatenate([v, np.zeros(result.lanes - have, v.dtype)])
    if count == 3:
        return np.concatenate([v, v[2 * source.lanes :]])
    return np.resize(v, result.lanes)

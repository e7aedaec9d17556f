"""Logic, shifts and bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc.ops.numeric import np_dtype

from . import meaning

if TYPE_CHECKING:
    from compassc.ir.dtypes import DataType


def masks_off(value: Array, dtype: DataType, mask: Array | None) -> Array:
    """Inactive lanes of a mask result are false; those of integers are undefined."""
    return value & mask if mask is not None and dtype.is_bool else value


@meaning
def vand(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return masks_off(x & y, dtype, mask)


@meaning
def vor(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return masks_off(x | y, dtype, mask)


@meaning
def vxor(x: Array, y: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return masks_off(x ^ y, dtype, mask)


@meaning
def vinv(x: Array, dtype: DataType, mask: Array | None = None) -> Array:
    return masks_off(~x, dtype, mask)


@meaning
def vall(mask: Array, dtype: DataType) -> Array:
    found: Array = np.logical_and.reduce(mask)
    return found


@meaning
def vany(mask: Array, dtype: DataType) -> np.generic:
    return np.any(mask)


def amount(shift: Array) -> Array:
    """Shift amounts, read as unsigned integers of their width."""
    return shift.view(f"u{shift.dtype.itemsize}").astype(np.int64)


def shifted_right(x: Array, shift: Array, with_round: bool) -> Array:
    """Exact int64 result of shifting right by any amount; rounded to nearest, ties to even, if asked."""
    wide, by = x.astype(np.int64), np.minimum(amount(shift), 63)
    return np.rint(wide * _HALVES.take(by)).astype(np.int64) if with_round else wide >> by


_HALVES = 2.0 ** -np.arange(64)
"""By shifts: the powers that they multiply by."""


def narrowed(x: Array, shift: Array, dtype: DataType, mask: Array | None, saturate: bool, with_round: bool) -> Array:
    """The shifted values in the low slots of their old places, 0 elsewhere and where inactive."""
    value = shifted_right(x, shift, with_round)
    if saturate:
        value = np.clip(value, *dtype.range())
    out = np.zeros(dtype.lanes, np_dtype(dtype))
    out[:: dtype.lanes // len(x)] = value if mask is None else np.where(mask, value, 0)
    return out


@meaning
def vnsr(
    x: Array,
    shift: Array,
    dtype: DataType,
    mask: Array | None = None,
    saturate: bool = False,
    with_round: bool = False,
    to_h: bool = False,
) -> Array:
    return narrowed(x, shift, dtype, mask, saturate, with_round)


@meaning
def vnsrsr(x: Array, shift: Array, dtype: DataType, mask: Array | None = None, to_h: bool = False) -> Array:
    return narrowed(x, shift, dtype, mask, True, True)


@meaning
def vsr(x: Array, shift: Array, dtype: DataType, with_round: bool = False) -> Array:
    return shifted_right(x, shift, with_round).astype(x.dtype)


@meaning
def vsl(x: Array, shift: Array, dtype: DataType, saturate: bool = False) -> Array:
    value = x.astype(np.int64) << np.minimum(amount(shift), dtype.bits)
    return (np.clip(value, *dtype.range()) if saturate else value).astype(x.dtype)


@meaning
def vror(x: Array, shift: Array, dtype: DataType) -> Array:
    bits, by = amount(x), amount(shift) % dtype.bits
    found: Array = ((bits >> by) | (bits << (dtype.bits - by))).astype(x.dtype)
    return found


def bits_of(x: Array) -> Array:
    """The bits of each integer as uint8, lowest first, along a new last axis."""
    return np.unpackbits(np.asarray(x)[..., None].view(np.uint8), axis=-1, bitorder="little")


def leading_zeros(bits: Array) -> Array:
    """How many of the highest bits are 0 before the first 1."""
    found: Array = np.where(bits.any(axis=-1), np.argmax(bits[..., ::-1], axis=-1), bits.shape[-1])
    return found


@meaning
def vcls(x: Array, dtype: DataType) -> Array:
    folded = np.where(x < 0, ~x, x)
    return (leading_zeros(bits_of(folded)) - 1).astype(np_dtype(dtype))


@meaning
def clz(x: Array, dtype: DataType) -> Array:
    return leading_zeros(bits_of(x)).astype(np_dtype(dtype))


@meaning
def vbrevs(x: Array, dtype: DataType) -> Array:
    return np.packbits(bits_of(x)[..., ::-1], axis=-1, bitorder="little").view(x.dtype)[..., 0]


@meaning
def vpcnt(x: Array, dtype: DataType) -> Array:
    found: Array = bits_of(x).sum(axis=-1).astype(np_dtype(dtype))
    return found

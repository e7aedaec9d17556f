"""Data types of tensors: their names, their sizes and the codes aipu.bin uses for them."""

from __future__ import annotations

import math
import re
import struct
from numbers import Integral, Real

from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple


class DType(NamedTuple):
    """`name` as the toolchain and NumPy (with ml_dtypes) spell it, `code` in aipu.bin, `size` in bytes.

    `fmt` is the struct code of one element; "" where struct has none.
    """

    name: str
    code: int
    size: int
    fmt: str


DTYPES = (
    DType("bool", 1, 1, "?"),
    DType("uint8", 2, 1, "B"),
    DType("int8", 3, 1, "b"),
    DType("uint16", 4, 2, "H"),
    DType("int16", 5, 2, "h"),
    DType("uint32", 6, 4, "I"),
    DType("int32", 7, 4, "i"),
    DType("uint64", 8, 8, "Q"),
    DType("int64", 9, 8, "q"),
    DType("float16", 0xA, 2, "e"),
    DType("float32", 0xB, 4, "f"),
    DType("float64", 0xC, 8, "d"),
    DType("bfloat16", 0xD, 2, ""),
    DType("aligned_uint4", 0x12, 1, "B"),
    DType("aligned_int4", 0x13, 1, "b"),
    DType("aligned_uint12", 0x14, 2, "H"),
    DType("aligned_int12", 0x15, 2, "h"),
)
BY_NAME = {d.name: d for d in DTYPES}
BY_CODE = {d.code: d for d in DTYPES}

CODE_NAMES = {0: "none", 0x20: "packed_uint4", 0x21: "packed_int4", 0x22: "packed_uint12", 0x23: "packed_int12"} | {
    d.code: d.name for d in DTYPES
}

_VECTOR = re.compile(r"x\d+$")


def element_dtype(name: str) -> DType:
    """The element type of a pointee dtype: `int8x32` is made of int8, `void` of bytes. CompassError when unknown."""
    if name == "void":
        return BY_NAME["uint8"]
    found = BY_NAME.get(_VECTOR.sub("", name))
    if found is None:
        raise CompassError(f"unknown data type '{name}'", help="known: " + ", ".join(BY_NAME))
    return found


def scalar_value(dtype: DType, value: float) -> float:
    """The value as its type has it: rounded to the nearest float of a floating type; a number without a fraction is an
    integer for an integer type. What the type cannot hold stays what it is (`scalar_bits` refuses it)."""
    if dtype.fmt in "efd" and isinstance(value, Real):
        return _rounded(dtype, value)
    if isinstance(value, Real) and not isinstance(value, Integral):
        return int(value) if float(value).is_integer() else value
    return value


def scalar_bits(dtype: DType, value: float) -> int:
    """The signed integer whose bits are those of the scalar `value`. CompassError when the type cannot hold it."""
    if not hasattr(value, "__float__"):
        raise CompassError(f"{value!r} is not a number", code="argument-type")
    try:
        if dtype.name == "bfloat16":
            packed = _bfloat16(float(value)).to_bytes(2, "little")
        elif dtype.fmt in "efd":
            packed = struct.pack("<" + dtype.fmt, float(value))
        else:
            packed = struct.pack("<" + dtype.fmt, bool(value) if dtype.fmt == "?" else value)
    except (struct.error, OverflowError) as error:
        if (plain := scalar_value(dtype, value)) is not value:
            return scalar_bits(dtype, plain)
        raise CompassError(f"{value!r} is not a value of type {dtype.name}", code="scalar-value") from error
    return int.from_bytes(packed, "little", signed=True)


def _rounded(dtype: DType, value: Real) -> object:
    """The number of a floating type nearest to `value`, or `value` where that is beyond the type's range."""
    try:
        if dtype.name == "bfloat16":
            return float(struct.unpack("<f", (_bfloat16(float(value)) << 16).to_bytes(4, "little"))[0])
        return float(struct.unpack("<" + dtype.fmt, struct.pack("<" + dtype.fmt, float(value)))[0])
    except OverflowError:
        return value


def _bfloat16(value: float) -> int:
    """The bits of a float as bfloat16, rounded to nearest even."""
    bits = int.from_bytes(struct.pack("<f", value), "little")
    if math.isnan(value):
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

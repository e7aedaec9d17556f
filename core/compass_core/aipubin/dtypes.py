"""Data types of tensors: their names, their sizes and the codes aipu.bin uses for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compass_core.errors import CompassError


@dataclass(frozen=True)
class DType:
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

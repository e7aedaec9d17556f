"""Data types of the graph: their names, what integers they hold, and how NumPy stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core.namedtuple import NamedTuple

if TYPE_CHECKING:
    from compass_core.arrays import NumpyDType

IR_DTYPES = frozenset(
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 float8_e5m2 float8_e4m3fn "
    "float6_e2m3fn float6_e3m2fn float4_e2m1fn aligned_int4 aligned_uint4 aligned_int12 aligned_uint12".split()
)
FLOAT_TYPES = ("float32", "float16", "bfloat16", "float64")
"""Types that are never quantised: their numbers are meant as they are."""
STORED = {"aligned_int4": "int8", "aligned_uint4": "uint8", "aligned_int12": "int16", "aligned_uint12": "uint16"}
"""Types that are stored in the low bits of a wider one."""


class IntegerType(NamedTuple):
    """Bits and sign of an integer data type of the graph."""

    bits: int
    signed: bool

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - self.signed)) - 1


INTEGER_TYPES = {
    f"{prefix}{'' if signed else 'u'}int{bits}": IntegerType(bits, signed)
    for prefix, widths in (("", (8, 16, 32, 64)), ("aligned_", (4, 12)))
    for bits in widths
    for signed in (True, False)
} | {"bool": IntegerType(8, False)}
"""Data types of the graph that hold integers."""


def integer_type(bits: int, signed: bool) -> str:
    """The narrowest data type of 8, 16, 32 or 64 bits for `bits` bits."""
    width = next((w for w in (8, 16, 32) if bits <= w), 64)
    return f"{'' if signed else 'u'}int{width}"


def numpy_dtype(name: str) -> NumpyDType:
    """The NumPy type that stores a data type of the graph; ml_dtypes has the ones NumPy lacks."""
    import numpy as np

    name = STORED.get(name, name)
    if name == "bfloat16" or "_e" in name:
        import ml_dtypes

        name = getattr(ml_dtypes, name)
    return np.dtype(name)

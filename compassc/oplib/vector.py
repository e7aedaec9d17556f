"""What the kernels of several families share: lanes per data type, and loads and stores that compute in float32.

The functions here are called while a kernel is parsed (or run in PySim) and give expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from compassc.dsl import script as S

LANES = {"float32": 8, "float16": 16, "bfloat16": 16, "int32": 8, "uint32": 8, "int16": 16, "uint16": 16, "int8": 32,
         "uint8": 32}  # fmt: skip
"""Elements of a register."""
SHORT = {"float32": "f32", "float16": "f16", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16",
         "int32": "i32", "uint32": "u32", "bfloat16": "bf16"}  # fmt: skip
"""Data types in names of kernels."""
LIMITS = {"float32": (float("-inf"), float("inf")), "float16": (float("-inf"), float("inf")), "int8": (-128, 127),
          "uint8": (0, 255), "int16": (-32768, 32767), "int32": (-(2**31), 2**31 - 1)}  # fmt: skip


ROW = 7168
"""Largest row, in elements, that kernels keep in LSRAM as float32: 28 KiB of its 32."""


def wide(value: Any, dtype: str) -> Any:
    """A vector of `dtype` as float32."""
    if dtype == "float32":
        return value
    return S.cast(S.cast(value, "int32") if dtype in ("int8", "uint8", "int16", "uint16") else value, "float32")


def narrow(value: Any, dtype: str) -> Any:
    """A float32 vector as `dtype`; for whole numbers it must be in range, and the fraction is dropped."""
    if dtype == "float32":
        return value
    return S.cast(value, dtype) if dtype in ("float16", "bfloat16", "int32") else S.cast(S.cast(value, "int32"), dtype)


def dequantised(value: Any, dtype: str, step: Any, zero: Any) -> Any:
    """The real numbers that quantised ones stand for; `step` is 1 / scale."""
    return (wide(value, dtype) + zero) * step


def quantised(value: Any, dtype: str, scale: Any, zero: Any) -> Any:
    """Real numbers quantised: rounded half to even and clamped to the range of the type."""
    low, high = LIMITS[dtype]
    return narrow(S.min(S.max(S.rint(value * scale) - zero, float(low)), float(high)), dtype)


def filled(value: Any, lanes: int) -> Any:
    """A float32 vector with `value` in all lanes."""
    return S.vbcast(S.fp32(value), lanes=lanes)


def highest(value: Any, lanes: int) -> Any:
    """The greatest lane of a float32 vector."""
    return S.vrpmax(_one_register(value, lanes, S.max))[0]


def lowest(value: Any, lanes: int) -> Any:
    """The least lane of a float32 vector."""
    return S.vrpmin(_one_register(value, lanes, S.min))[0]


def _one_register(value: Any, lanes: int, join: Callable[[Any, Any], Any]) -> Any:
    """A vector of several registers joined lane by lane into one."""
    return reduce(join, S.vsplit(value)) if lanes > LANES["float32"] else value

"""Functions of data types for kernels that are written for several of them."""

from __future__ import annotations

import os
from pathlib import Path

from compass_core.errors import UsageError

from ..ir.dtypes import VECTOR_BITS, DataType
from ..language.info import hw_native_vdtype, resolve_dtype_alias
from ..ops.typing import is_literal, match_operator

__all__ = [
    "abspath",
    "can_implicit_convert",
    "double_elem_width",
    "get_binary_op_result_type",
    "get_range",
    "half_elem_width",
    "hw_native_vdtype",
    "int_within_range",
    "is_hw_native_dtype",
    "is_hw_native_scalar_dtype",
    "is_hw_native_vdtype",
    "resolve_dtype_alias",
]


def get_range(dtype: object) -> tuple[float, float]:
    """The least and the greatest value of an element type."""
    return resolve_dtype_alias(dtype).element_of.range()


def int_within_range(value: int, dtype: object) -> bool:
    """Whether an integer is a value of an integer type."""
    low, high = get_range(dtype)
    return low <= value <= high


def can_implicit_convert(source: object, target: object) -> bool:
    """Whether a value of one type is taken where another is wanted: as many lanes, vectors not narrowed, floats not
    made integers."""
    a, b = resolve_dtype_alias(source), resolve_dtype_alias(target)
    if a.lanes != b.lanes or (a.is_floating and b.is_integer):
        return False
    return a.is_scalar or b.bits >= a.bits


def is_hw_native_scalar_dtype(dtype: object) -> bool:
    """Whether a type is a scalar that registers hold."""
    kind = resolve_dtype_alias(dtype)
    return kind.is_scalar and not kind.is_void and (kind.is_bool or kind.bits <= 32)


def is_hw_native_vdtype(dtype: object) -> bool:
    """Whether a type is a vector that fills one register, or the mask of one."""
    return resolve_dtype_alias(dtype).is_native


def is_hw_native_dtype(dtype: object) -> bool:
    """Whether a type is a native scalar or a native vector."""
    return is_hw_native_scalar_dtype(dtype) or is_hw_native_vdtype(dtype)


def double_elem_width(dtype: object, allow_64bit: bool = False) -> DataType:
    """The type with elements of twice the bits, and half the lanes where the vector would not fit a register any more;
    elements of 32 bits stay as they are unless `allow_64bit`."""
    kind = resolve_dtype_alias(dtype)
    if kind.bits >= 32 and not allow_64bit:
        return kind
    wide = kind.with_bits(kind.bits * 2)
    return wide.with_lanes(wide.lanes // 2) if wide.total_bits > VECTOR_BITS else wide


def half_elem_width(dtype: object, double_lanes: bool = True) -> DataType:
    """The type with elements of half the bits, and twice the lanes unless told otherwise."""
    kind = resolve_dtype_alias(dtype)
    if kind.bits < 16:
        raise UsageError(f"{kind} has no type of half its width", code="dtype")
    narrow = kind.with_bits(kind.bits // 2)
    return narrow.with_lanes(narrow.lanes * 2) if double_lanes else narrow


def get_binary_op_result_type(left: object, right: object) -> DataType:
    """The type that both operands of an arithmetic operator convert to; operands are types, or literal numbers."""
    a, b = (x if is_literal(x) else resolve_dtype_alias(x) for x in (left, right))
    return match_operator(a, b)


def abspath(path: str | os.PathLike[str] | None, base_dir: str | os.PathLike[str] | None = None) -> str | None:
    """A path with `~` and `$VARIABLES` expanded, absolute from `base_dir` (default: the working directory)."""
    if path is None:
        return None
    expanded = os.path.expandvars(os.path.expanduser(path))
    return os.path.abspath(Path(base_dir or "", expanded))

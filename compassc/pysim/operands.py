"""Operands of special operations in PySim: broadcast groups, vectors, integers."""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.arrays import Array
from compassc.ir.dtypes import DataType
from compassc.ops.permute import group_types
from compassc.ops.typing import type_error

from .impl import converted, operand_type
from .memory import index_of
from .values import PyVar


def broadcast(name: str, items: Sequence[object]) -> tuple[list[DataType], list[Array]]:
    """The types and arrays of a broadcast group, scalars in every lane."""
    first = items[0]
    if type(first) is PyVar and first.dtype.is_vector:
        own = first.dtype
        same = [x.value for x in items if type(x) is PyVar and x.dtype is own]
        if len(same) == len(items):
            return [own] * len(items), same
    types = group_types([operand_type(name, x) for x in items])
    return types, [converted(x, t) for x, t in zip(items, types)]


def vector(x: object, what: str) -> DataType:
    """The type of a vector argument."""
    if type(x) is not PyVar or x.dtype.is_scalar:
        raise type_error(
            f"{what} must be a vector, got {x!r}", "load one with S.vload, or broadcast a scalar with S.vbcast"
        )
    return x.dtype


def integer(x: object, what: str) -> int:
    """An integer argument."""
    return x if type(x) is int else index_of(x, what)

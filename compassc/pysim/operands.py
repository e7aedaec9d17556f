"""Operands of special operations in PySim: broadcast groups, vectors, integers."""

from __future__ import annotations

from typing import Any

from compassc.ir.dtypes import DataType
from compassc.ops.permute import group_types
from compassc.ops.typing import type_error

from .impl import converter, operand_type
from .memory import index_of
from .values import PyVar


def broadcast(name: str, items: list[Any]) -> tuple[list[DataType], list[Any]]:
    """The types and arrays of a broadcast group, scalars in every lane."""
    first = items[0]
    if type(first) is PyVar and first.dtype.is_vector:
        own = first.dtype
        if all(type(x) is PyVar and x.dtype is own for x in items):
            return [own] * len(items), [x.value for x in items]
    types = group_types([operand_type(name, x) for x in items])
    arrays = []
    for x, t in zip(items, types):
        how = converter(x, t)
        arrays.append(x.value if how is None else how(x.value) if callable(how) else how)
    return types, arrays


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

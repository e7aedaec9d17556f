"""Checks of the arguments that several special operations share; each returns the argument in its canonical form."""

from __future__ import annotations

import operator
from typing import SupportsIndex, TypeVar

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import INT32, DataType, dtype
from .core import imm, scalar_cast
from .typing import check_literal, is_literal, type_error

Option = TypeVar("Option")


def dtype_arg(value: object, what: str) -> DataType:
    """A dtype argument: a DataType, its text (short names allowed), a NumPy dtype or scalar type, or a dtype name of the
    script module."""
    if isinstance(value, DataType):
        return value
    found = getattr(value, "dtype", None)
    if isinstance(found, DataType) and not isinstance(value, E.Expr):
        return found
    try:
        return dtype(value)
    except (TypeError, ValueError):  # what cannot be hashed is no type either
        shown = repr(value) if isinstance(value, str) else getattr(value, "__name__", None) or type(value).__name__
    if isinstance(value, str):
        raise type_error(f"{what}: {shown} is not a data type", "types are written like int32, fp16 or int8x32")
    raise type_error(f"{what}: a data type is expected, got {shown}")


def pointer_arg(x: object, what: str) -> E.Expr:
    """An address: a pointer expression (also a bare pointer variable)."""
    if isinstance(x, E.Pointer):
        return x
    if isinstance(x, E.Buffer):
        return E.Pointer(x.dtype, x.data, E.IntImm(INT32, 0))
    if isinstance(x, E.Expr) and hasattr(x.dtype, "elem"):
        return E.Pointer(x.dtype.elem, x, E.IntImm(INT32, 0))
    raise type_error(f"{what} must be a pointer or a buffer, got {kind_of(x)}", "p + i is the address of p[i]")


def kind_of(x: object) -> str:
    """An argument for messages."""
    return str(x.dtype) if isinstance(x, E.Expr) else f"{x!r}" if is_literal(x) else type(x).__name__


def refuse_constant(scope: str) -> None:
    """Refuse to write through a pointer of this scope when it is to constants of the program."""
    if scope == "constant":
        raise CompassError(
            "constant memory cannot be written",
            code="constant-store",
            help="copy what changes to storage of S.alloc or S.alloc_buffer",
        )


def int_arg(x: object, what: str) -> E.Expr:
    """A scalar integer operand; literals become int32."""
    if type(x) is int:
        check_literal(x, INT32)
        return imm(x, INT32)
    if isinstance(x, E.Expr) and isinstance(x.dtype, DataType) and x.dtype.is_scalar and x.dtype.is_integer:
        return x
    raise type_error(f"{what} must be an integer scalar, got {kind_of(x)}", "convert it with S.i32(...)")


def int32_arg(x: object, what: str) -> E.Expr:
    """A scalar integer operand converted to int32."""
    return scalar_cast(int_arg(x, what), INT32)


def vector_arg(x: object, what: str, *, mask_ok: bool = False) -> E.Expr:
    """A vector operand."""
    if (
        isinstance(x, E.Expr)
        and isinstance(x.dtype, DataType)
        and x.dtype.is_vector
        and (mask_ok or not x.dtype.is_mask)
    ):
        return x
    raise type_error(f"{what} must be a vector, got {kind_of(x)}", "load one with S.vload, or fill one with S.vbcast")


def choice(value: Option, allowed: tuple[object, ...], what: str) -> Option:
    """An option restricted to a few values."""
    if value not in allowed:
        raise CompassError(f"{what} must be one of {', '.join(map(repr, allowed))}, got {value!r}", code="option")
    return value


def known_int(x: object) -> object:
    """An integer that is known while the kernel is compiled as a Python int; anything else unchanged."""
    if type(x) is E.IntImm:
        return x.value
    return operator.index(x) if getattr(x, "known", False) and isinstance(x, SupportsIndex) else x


def lanes_arg(lanes: object, what: str) -> int:
    """A lane count: an integer constant above 1."""
    lanes = known_int(lanes)
    if type(lanes) is not int:
        raise CompassError(
            f"{what}: lanes must be an integer constant, got {kind_of(lanes)}",
            code="lanes",
            help="the lanes of a vector are part of its type",
        )
    if lanes <= 1:
        raise CompassError(
            f"{what}: lanes must be greater than 1, got {lanes}", code="lanes", help="use a scalar for one value"
        )
    return lanes


def times(e: E.Expr, factor: int) -> E.Expr:
    """An int32 expression multiplied by a constant, folded."""
    if factor == 1:
        return e
    if type(e) is E.IntImm:
        return E.IntImm(INT32, e.value * factor)
    return E.Binary("mul", e, E.IntImm(INT32, factor))


def product(a: E.Expr, b: E.Expr) -> E.Expr:
    """The product of two int32 expressions, folded where one is constant."""
    if type(b) is E.IntImm:
        return times(a, b.value)
    return times(b, a.value) if type(a) is E.IntImm else E.Binary("mul", a, b)

"""Buffers of several dimensions in memory: where an element is, and how much of it they take."""

from __future__ import annotations

from ..ir import exprs as E
from ..ir.dtypes import INT32
from ..ir.exprs import Binary, Buffer, Expr, IntImm
from .structure import Interner


def elements(buffer: Buffer) -> int:
    """How many elements a buffer of constant extents has."""
    count = 1
    for extent in buffer.shape:
        assert isinstance(extent, IntImm)
        count *= extent.value
    return count


def size_of(buffer: Buffer) -> int:
    """The bytes of a buffer of constant extents."""
    return elements(buffer) * buffer.dtype.total_bytes


def position(shape: tuple[Expr, ...], indices: tuple[Expr, ...]) -> Expr:
    """Row-major position of an element, in 32 bits; a Ramp in the last index stays the outermost node."""
    *outer, last = indices
    if not outer:
        return last
    position = outer[0] if outer[0].dtype.bits == 32 else E.Cast(INT32, outer[0])
    for extent, index in zip(shape[1:-1], outer[1:]):
        position = _next(position, extent, index)
    if type(last) is E.Ramp:
        row = Binary("mul", position, as_type(shape[-1], position))
        return E.Ramp(Binary("add", row, as_type(last.base, row)), last.stride, last.lanes)
    return _next(position, shape[-1], last)


def _next(position: Expr, extent: Expr, index: Expr) -> Expr:
    """The position on one more axis; the quotient and the rest of a number by the extent are that number."""
    if type(position) is Binary and type(index) is Binary and _REST.get(position.op) == index.op:
        whole = _divided(position, extent, index)
        if whole is not None:
            return whole
    return Binary("add", Binary("mul", position, as_type(extent, position)), as_type(index, position))


_REST = {"floordiv": "floormod", "div": "mod"}


def _divided(quotient: Binary, extent: Expr, rest: Binary) -> Expr | None:
    """`x // n * n + x % n`, and `x // (n * m) * n + x // m % n`, without the division by n."""
    if not (isinstance(quotient.b, IntImm) and isinstance(extent, IntImm) and isinstance(rest.b, IntImm)):
        return None
    same, by, count = Interner().same, quotient.b.value, extent.value
    if rest.b.value != count:
        return None
    if by == count and same(quotient.a, rest.a):
        return rest.a
    inner = rest.a
    if type(inner) is Binary and inner.op == quotient.op and type(inner.b) is IntImm:
        return inner if by == count * inner.b.value and same(quotient.a, inner.a) else None
    return None


def as_type(e: Expr, like: Expr) -> Expr:
    """`e` in the type of `like`, for index arithmetic."""
    if e.dtype is like.dtype:
        return e
    return IntImm(like.data_type, e.value) if type(e) is IntImm else E.Cast(like.data_type, e)

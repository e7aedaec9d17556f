"""Structural identity of expressions, and what evaluating one may do."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from compass_core.operators import DIVISIONS

from ..ir import exprs as E
from ..ir.exprs import Call, Expr, IntImm, Var

_SCALAR_MINMAX = {"min": "min", "max": "max"}


class _Numbers(dict[Expr, int]):
    """The numbers of an `Interner`, which are found without a call of Python once they are known."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: dict[object, int] = {}

    def __missing__(self, e: Expr) -> int:
        if type(e) is Var:
            shape: object = e
        elif type(e) is E.Binary:
            shape = (e.op, self[e.a], self[e.b])
        elif type(e) is IntImm:
            shape = (e.dtype, e.value)
        elif type(e) is E.BufferLoad:
            b, mask = e.buffer, None if e.mask is None else self[e.mask]
            extents, indices = tuple([self[x] for x in b.shape]), tuple([self[x] for x in e.indices])
            shape = (E.BufferLoad, self[b.data], b.dtype, extents, indices, mask)
        elif type(e) is E.Cast:
            shape = (E.Cast, e.dtype, self[e.value])
        elif type(e) is E.FloatImm:
            shape = (E.FloatImm, e.dtype, repr(e.value))
        else:
            shape = (type(e), *[self._part(getattr(e, f)) for f in e.fields])
        number = self[e] = self.shapes.setdefault(shape, len(self.shapes))
        return number

    def _part(self, value: object) -> Any:
        if isinstance(value, Expr):
            return self[value]
        if isinstance(value, tuple):
            return tuple([self._part(v) for v in value])
        if type(value) is E.Buffer:
            return (self[value.data], value.dtype, self._part(value.shape))
        return value


class Interner:
    """Numbers expressions so that two have the same number exactly when they have the same structure.

    Variables are equal only to themselves. Each node is visited once, however often it is asked for.
    """

    def __init__(self) -> None:
        self.key: Callable[[Expr], int] = _Numbers().__getitem__
        """The number of an expression."""

    def same(self, a: Expr, b: Expr) -> bool:
        """Whether two expressions have the same structure. Sums that are not are mostly told apart without numbers."""
        while a is not b:
            if a.dtype is not b.dtype or type(a) is not type(b):
                return False
            if type(a) is not E.Binary or type(b) is not E.Binary:
                return self.key(a) == self.key(b)
            if a.op != b.op or (a.b is not b.b and self.key(a.b) != self.key(b.b)):
                return False
            a, b = a.a, b.a
        return True


def effect_of(call: Call) -> str:
    """The declared effect of an operation: pure, read, write, sync or io. Names that are not declared may do anything."""
    from ..ops import core

    op = core.load().get(call.op)
    return op.effect if op is not None else "io"


def is_pure(e: Expr) -> bool:
    """Whether evaluating `e` changes nothing, so that it may be left out (it may read memory)."""
    if not e.flags & (E.F_CALL | E.F_FUNC):
        return True
    if e.flags & E.F_FUNC:
        return False
    return all(type(x) is not Call or effect_of(x) in ("pure", "read") for x in _walk(e))


def is_stable(e: Expr, mutable: AbstractSet[Var]) -> bool:
    """Whether `e` has the same value wherever its variables are defined: no loads, no calls, no mutable variables."""
    if e.flags & (E.F_CALL | E.F_FUNC | E.F_LOAD):
        return False
    return not mutable or not any(type(x) is Var and x in mutable for x in _walk(e))


def may_divide_by_zero(e: Expr) -> bool:
    """Whether the node is a scalar integer division whose divisor could be 0.

    The result is defined then, too, but a checked run reports it, so the division must not be moved.
    """
    if type(e) is not E.Binary or e.op not in DIVISIONS or not e.dtype.is_integer or e.dtype.is_vector:
        return False
    return type(e.b) is not IntImm or e.b.value == 0


def may_be_reported(e: Expr) -> bool:
    """Whether a checked run could report `e` if it were evaluated where the program did not."""
    return any(map(may_divide_by_zero, _walk(e)))


def variables(e: Expr) -> set[Var]:
    """The variables an expression mentions, storage variables of its loads included."""
    if type(e) in E.LEAVES:
        return {e} if type(e) is Var else set()
    return {x for x in _walk(e) if type(x) is Var}


def _walk(e: Expr) -> list[Expr]:
    """The distinct nodes of an expression."""
    seen = {e: None}
    stack = [e]
    while stack:
        for child in stack.pop().children():
            if child not in seen:
                seen[child] = None
                stack.append(child)
    return list(seen)


def scalar_min_max(call: Call) -> str | None:
    """`min` or `max` when the call is that operation on two scalars, which is the operator of the same name."""
    if call.mask is None and len(call.args) == 2 and call.dtype.is_scalar:
        return _SCALAR_MINMAX.get(call.op)
    return None

"""Bring operands and results to the signedness that each instruction has.

Before: a call's types are those the language gives it. After: they are those of the instruction, with `Reinterpret`
around operands and results where the two differ. Bits never change.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import exprs as E
from ..ir.visit import Rewriter, for_each_function, rewrites
from ..ops import core, spelling
from ._vectors import reinterpret

NAME = "LegalizeSignedness"


class _Rewrite(Rewriter):
    interest = E.F_CALL

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        form = _rule(e.op)
        if form is None or not e.args or not any(a.dtype.is_vector for a in e.args):
            return e
        return form(e)


def computed_as(e: E.Call, unsigned: bool) -> E.Expr:
    """The call with a result of the given sign, read back with the type it had."""
    kind = e.data_type.with_uint() if unsigned else e.data_type.with_int()
    if kind is e.dtype:
        return e
    r = None if e.r is None else reinterpret(e.r, kind)
    return reinterpret(e.replace(dtype=kind, r=r), e.data_type)


def _argument(e: E.Call, index: int, unsigned: bool) -> E.Call:
    """The call with one operand read with the given sign."""
    old = e.args[index]
    new = reinterpret(old, old.data_type.with_uint() if unsigned else old.data_type.with_int())
    return e if new is old else e.replace(args=(*e.args[:index], new, *e.args[index + 1 :]))


def _abs(e: E.Call) -> E.Expr:
    if not e.args[0].dtype.is_int or e.attr("saturate"):
        return e
    return computed_as(e, unsigned=True)


def _add(e: E.Call) -> E.Expr:
    x, y = e.args
    if e.attr("saturate") or (x.dtype is e.dtype and y.dtype is e.dtype):
        return e
    return e.replace(args=(reinterpret(x, e.data_type), reinterpret(y, e.data_type)))


def _multiply(e: E.Call) -> E.Expr:
    return _add(e) if e.dtype.is_integer else e


def _table(e: E.Call) -> E.Expr:
    return _argument(e, len(e.args) - 1, unsigned=True)


def _widening_multiply(e: E.Call) -> E.Expr:
    return computed_as(e, unsigned=all(a.dtype.is_uint for a in e.args))


def _shift_left(e: E.Call) -> E.Expr:
    return _argument(e, 1, unsigned=e.args[0].dtype.is_uint and not e.attr("saturate"))


def _narrowing_shift(e: E.Call) -> E.Expr:
    e = _argument(e, 1, unsigned=True)
    return e if e.attr("saturate") else computed_as(e, unsigned=e.args[0].dtype.is_uint)


def _count(e: E.Call) -> E.Expr:
    return computed_as(_argument(e, 0, unsigned=False), unsigned=True)


def _offsets(first: int) -> Callable[[E.Call], E.Expr]:
    def form(e: E.Call) -> E.Expr:
        for index in range(first, len(e.args)):
            e = _argument(e, index, unsigned=True)
        return e

    return form


RULES: dict[str, Callable[[E.Call], E.Expr]] = {
    "magnitude": _abs,
    "operands": _add,
    "product": _multiply,
    "table": _table,
    "widening": _widening_multiply,
    "shift": _shift_left,
    "narrowing": _narrowing_shift,
    "count": _count,
}
"""By the name that operations declare (`Op.signs`)."""
BUILTINS: dict[str, Callable[[E.Call], E.Expr]] = {
    "__vload_gather": _offsets(1),
    "__vstore_scatter": _offsets(2),
}


def _rule(name: str) -> Callable[[E.Call], E.Expr] | None:
    if spelling.is_builtin(name):
        return BUILTINS.get(name)
    return RULES.get(core.get(name).signs)


run = for_each_function(lambda f: _Rewrite().function(f))

"""Pointers that a turn of a loop keeps to an array of its own: the next turn has the same array, not one more."""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.errors import CompassError

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import PointerType
from ...ir.visit import walk_exprs, walk_stmts
from .errors import language_error


def kept_by_turns(body: S.Body) -> Iterator[CompassError]:
    """The mistakes of a function's loops: a turn uses a pointer that the turn before set to an array which it allocates."""
    for loop in walk_stmts(body):
        if not isinstance(loop, (S.For, S.While)) or not any(type(s) is S.Alloc for s in walk_stmts(loop.body)):
            continue
        arrays = _arrays(loop.body)
        defined = {s.var for s in walk_stmts(loop.body) if type(s) is S.Let}
        for s in walk_stmts(loop.body, E.F_CHANGES) if arrays else ():
            if type(s) is not S.Assign or s.var in defined or not arrays.get(s.var):
                continue
            if _mentions(s.value, arrays, arrays[s.var]) and _is_read_first(loop, s.var):
                array = min(x.name for x in arrays[s.var])
                error = language_error(
                    "kept-array",
                    f"{s.var.name!r} keeps {array.removesuffix('_buf')!r} for the next turn of the loop, which has the same "
                    "memory for it",
                    "allocate two arrays before the loop and exchange them: p, q = q, p",
                )
                error.span = s.span
                yield error
                break


def _arrays(body: S.Body) -> dict[E.Var, set[E.Var]]:
    """The arrays allocated in a body that pointers may point to there."""
    found: dict[E.Var, set[E.Var]] = {s.buffer.data: {s.buffer.data} for s in walk_stmts(body) if type(s) is S.Alloc}
    if not found:
        return found
    moves = [s for s in walk_stmts(body) if isinstance(s, (S.Let, S.Assign)) and isinstance(s.var.dtype, PointerType)]
    before = -1
    while before != (before := sum(map(len, found.values()))):
        for s in moves:
            for x in walk_exprs(s.value):
                if type(x) is E.Var and isinstance(x.dtype, PointerType) and found.get(x):
                    found.setdefault(s.var, set()).update(found[x])
    return found


def _mentions(e: E.Expr, arrays: dict[E.Var, set[E.Var]], of: set[E.Var]) -> bool:
    return any(type(x) is E.Var and arrays.get(x, set()) & of for x in walk_exprs(e))


def _is_read_first(loop: S.For | S.While, var: E.Var) -> bool:
    """Whether a turn may use a variable before it gives it a value."""
    if any(x is var for e in loop.exprs() for x in walk_exprs(e)):
        return True
    for s in loop.body:
        inside = (x for inner in walk_stmts((s,)) for e in inner.exprs() for x in walk_exprs(e))
        if type(s) is S.Assign and s.var is var:
            return any(x is var for x in walk_exprs(s.value))
        if any(x is var for x in inside):
            return True
    return False

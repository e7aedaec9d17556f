"""Loops of which the parser makes one copy of the body per turn: those over constant sequences, and S.unroll where its
variable is asked for as a constant.

The loop S.unroll is one loop in the IR as long as its body can be parsed with a run-time variable; the pass UnrollLoop
copies it later. Where that is not possible it is parsed once per turn, with the variable known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from compass_core.reading import pyast

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import INT32, DataType
from ..tiles.tile import Tile
from .constants import items_of, unpacked
from .context import Abandoned, FunctionContext
from .errors import language_error
from .flow import refuse_changed
from .values import Constant

_JUMPS = (S.Break, S.Continue)


def parse_items(fp: FunctionContext, node: ast.For, items: Sequence[object]) -> None:
    """A loop over constant items: its body for each of them."""
    turns = [list(unpacked(node.target, fp.keep(item))) for item in items]
    _parse(fp, node, turns)


def parse_constant(fp: FunctionContext, node: ast.For, name: str, turns: range, dtype: DataType) -> None:
    """S.unroll with a variable that is known."""
    items_of(turns, "S.unroll")
    _parse(fp, node, [[(name, Constant(E.IntImm(dtype, i)))] for i in turns])


def _parse(fp: FunctionContext, node: ast.For, turns: list[list[tuple[str, object]]]) -> None:
    before = fp.scope.names()
    copies = [*_copies(fp, node, turns)]
    if any(map(_jumps, copies)) and (carried := fp.scope.changed_since(before)):
        raise language_error(
            "loop-turns",
            f"{carried[0]!r} names other values after each turn, and a break or continue depends on the run",
            "leave the loop's turns alone with an `if`, or keep the values in variables or memory",
        )
    _emit(fp, copies)


def attempt(fp: FunctionContext, parse: Callable[[], None]) -> bool:
    """Whether something is parsed without a mistake, and names stand for the same as before; if not, nothing of it stays."""
    state, first, before = fp.state(), len(fp.errors), fp.scope.names()
    held = fp.scope.reached()
    fp.attempts += 1
    try:
        parse()
        if len(fp.errors) == first and not fp.scope.changed_since(before):
            return True
    except Abandoned:
        pass
    finally:
        fp.attempts -= 1
    fp.restore(state)
    del fp.errors[first:]
    refuse_changed(
        held,
        "is changed in S.unroll, whose body is read once more than it has turns",
        "make a loop over numbers that are known: for i in (0, 1, 2, 3)",
    )
    return False


def begins_with_part(fp: FunctionContext, name: str, body: list[ast.stmt]) -> bool:
    """Whether a body first of all finds a part of a tile by a variable, which has to be known there: an attempt to parse one loop
    would end with that."""
    first: ast.AST = body[0]
    while not isinstance(first, ast.Subscript):
        if isinstance(first, (ast.Assign, ast.Expr)):
            first = first.value
        elif isinstance(first, ast.Call) and first.args:
            first = first.args[0]
        else:
            return False
    tile = isinstance(first.value, ast.Name) and isinstance(fp.scope.local(first.value.id), Tile)
    return tile and any(isinstance(x, ast.Name) and x.id == name for x in pyast.walk((first.slice,)))


def _copies(fp: FunctionContext, node: ast.For, turns: list[list[tuple[str, object]]]) -> Iterator[S.Body]:
    """The body for each turn, up to one that certainly leaves the loop."""
    for bindings in turns:
        first = len(fp.errors)
        fp.scope.push()
        try:
            for name, value in bindings:
                _define(fp, name, value)
            body = fp.nested(node.body)
        finally:
            fp.scope.pop()
        end = next((i for i, s in enumerate(body) if isinstance(s, (*_JUMPS, S.Return))), len(body))
        last = body[end] if end < len(body) else None
        yield body[: end + 1] if type(last) is S.Return else body[:end]
        if isinstance(last, (S.Break, S.Return)) or len(fp.errors) > first:
            return


def _define(fp: FunctionContext, name: str, value: object) -> None:
    if fp.scope.local(name) is not None:
        raise language_error(
            "loop-name",
            f"the loop variable {name!r} is already in use here",
            "choose another name",
            *fp.scope.defined_here(name),
        )
    fp.define(name, value)
    fp.scope.loop_names.add(name)


def _emit(fp: FunctionContext, copies: list[S.Body]) -> None:
    """The copies one after the other; where one may go on with the next or leave, as turns of a loop."""
    if not any(map(_jumps, copies)):
        fp.out += [s for body in copies for s in body]
        return
    turn, place = E.Var("turn", INT32), fp.evaluator.place(fp.current)
    zero, one, count = (E.IntImm(INT32, n) for n in (0, 1, len(copies)))
    body = [
        S.IfThenElse(E.Binary("eq", turn, E.IntImm(INT32, i)), copy, (), span=place) for i, copy in enumerate(copies)
    ]
    fp.emit(S.For, turn, "serial", zero, count, one, tuple(body))


def _jumps(body: S.Body) -> bool:
    """Whether a break or continue in a loop's body is of that loop."""
    return any(
        isinstance(s, _JUMPS) or (not isinstance(s, (S.For, S.While)) and any(map(_jumps, s.bodies()))) for s in body
    )

"""What each TEC does: loops that are shared out stay, what stands beside them runs on one TEC, with barriers between.

Statements are looked at level by level. A level without shared loops is one TEC's (or, inside of a shared loop, that of
the TEC whose turn it is). A level with some is a sequence of segments, after each of which all TECs wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, VOID
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.stmts import Body, Stmt
from compassc.ir.visit import walk_stmts
from compassc.te.errors import LowerError

_FOR_ALL = (S.Alloc, S.Let, S.DeclBuffer)
"""Statements that every TEC runs."""


def tec() -> Expr:
    """The number of the TEC."""
    return E.Call("get_local_id", (), INT32)


def shared_out(body: Sequence[Stmt], tecs: int) -> list[Stmt]:
    """The statements of a kernel for all TECs. LowerError where TECs would wait for others that do not come."""
    if not any(map(_shared, body)):
        return _own(list(body), _first())
    return _level(tuple(body), _first(), (), tecs, loop=False)


def _first() -> Expr:
    return Binary("eq", tec(), IntImm(INT32, 0))


def is_shared_out(s: Stmt) -> bool:
    """Whether a statement is a loop of which each TEC runs some turns, or none."""
    return isinstance(s, S.For) and (s.kind == "tec" or isinstance(s.min, E.Call))


def _shared(s: Stmt) -> bool:
    return any(map(is_shared_out, walk_stmts((s,))))


def _own(body: list[Stmt], turn: Expr | None) -> list[Stmt]:
    """Statements of one TEC, or of those for which `turn` holds."""
    if turn is None or not body:
        return body
    kept = [s for s in body if isinstance(s, (S.Alloc, S.DeclBuffer))]
    rest = tuple(s for s in body if not isinstance(s, (S.Alloc, S.DeclBuffer)))
    return [*kept, S.IfThenElse(turn, rest, ())]


def _level(body: Body, turn: Expr | None, own: tuple[Var, ...], tecs: int, loop: bool) -> list[Stmt]:
    """The statements of a level. `turn`: when the TEC runs what is not shared out (None: always); `own`: variables that
    are not the same for all TECs."""
    segments: list[list[Stmt]] = []
    waiting: list[Stmt] = []
    for s in body:
        if not _shared(s):
            waiting.append(s)
            continue
        if any(not isinstance(x, _FOR_ALL) for x in waiting):
            segments.append(_own(waiting, turn))
        elif waiting:
            segments.append(waiting)
        waiting = []
        segments.append(_segment(s, turn, own, tecs))
    if waiting:
        segments.append(_own(waiting, turn))
    made: list[Stmt] = []
    for i, segment in enumerate(segments):
        if i and any(not isinstance(x, _FOR_ALL) for x in segments[i - 1]):
            made.append(_barrier())
        made += segment
    if loop and (len(segments) > 1 or any(_waits(x) for x in made)):
        made.append(_barrier())  # the next turn writes what this one reads
    return made


def _segment(s: Stmt, turn: Expr | None, own: tuple[Var, ...], tecs: int) -> list[Stmt]:
    """A statement with shared loops in it."""
    if isinstance(s, S.For) and is_shared_out(s):
        return [s] if not any(map(_shared, s.body)) else _together(s, own, tecs)
    if isinstance(s, S.For):
        bounds = {v for e in (s.min, s.stop, s.step) for v in variables(e)}
        _check(bounds, own, f"the loop '{s.loop_var.name}'")
        return [s.replace(body=tuple(_level(s.body, turn, own, tecs, loop=True)))]
    if isinstance(s, S.IfThenElse):
        _check(variables(s.condition), own, "a condition")
        then, orelse = (tuple(_level(b, turn, own, tecs, loop=False)) for b in (s.then_case, s.else_case or ()))
        return [s.replace(then_case=then, else_case=orelse)]
    raise LowerError("a loop over the TECs stands inside of a statement that they do not run together")


def _check(mentioned: set[Var], own: tuple[Var, ...], what: str) -> None:
    found = sorted(v.name for v in mentioned & set(own))
    if found:
        raise LowerError(
            f"TECs compute a stage together inside of {what}, which is another one for each ({', '.join(found)})",
            "compute it at a loop outside, or let the loops divide",
        )


def _together(s: S.For, own: tuple[Var, ...], tecs: int) -> list[Stmt]:
    """A loop over the TECs in whose turns they compute stages together: all TECs go through it, those without a turn
    only for what is shared out."""
    if s.kind != "tec" or not isinstance(s.stop, IntImm):
        raise LowerError(
            f"'{s.loop_var.name}' has more turns than the {tecs} TECs, but stages inside are computed by all of them together",
            f"bind a loop of at most {tecs} turns",
        )
    below = Binary("lt", s.loop_var, s.stop) if s.stop.value < tecs else None
    return [S.Let(s.loop_var, tec()), *_level(s.body, below, (*own, s.loop_var), tecs, loop=False)]


def _waits(s: Stmt) -> bool:
    return isinstance(s, S.Evaluate) and isinstance(s.value, E.Call) and s.value.op == "barrier"


def _barrier() -> Stmt:
    return S.Evaluate(E.Call("barrier", (), VOID))

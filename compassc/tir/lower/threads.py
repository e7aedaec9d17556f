"""Loops that are bound to threads: TECs, in rounds where there are more turns than TECs; and what the others do meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.analysis.structure import is_pure
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, VOID
from compassc.ir.exprs import Binary, IntImm
from compassc.ir.stmts import Body, Stmt
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.te.errors import LowerError
from compassc.te.machine import Grid, Machine, Npu
from compassc.te.meetings import between_launches
from compassc.tir.blocks import constant, is_declaration
from compassc.tir.lower.memory import OWN

_SERIAL = ("parallel", "blockIdx", "vthread", "threadIdx")
"""Loops that are shared out over what there is one of here."""


def spread(body: Body, machine: Machine, alone: bool) -> Body:
    """The statements of a function for the TECs of an NPU, a grid of threads, or one processor. `alone`: what is not shared
    out is run by one of the TECs."""
    if isinstance(machine, Grid):
        return _launches(_plain(body, S.THREAD_LOOPS))
    if not isinstance(machine, Npu):
        return _plain(body)
    head = tuple(s for s in body if is_declaration(s))
    rest = tuple(s for s in body if not is_declaration(s))
    alone = alone and (any(map(_shared, rest)) or not _same_for_all(rest))
    return (*head, *_Spread(machine, alone).level(rest, False))


def _same_for_all(body: Body) -> bool:
    """Whether TECs that all run the statements store what one of them would: values of memory that none of them writes.
    So do statements that ask for the TEC, move data or wait themselves."""
    roots = [e for s in walk_stmts(body) for e in s.exprs()]
    calls = [e for root in roots if root.flags & (E.F_CALL | E.F_FUNC) for e in walk_exprs(root)]
    if any(isinstance(e, E.FuncCall) or (isinstance(e, E.Call) and not (e.args and is_pure(e))) for e in calls):
        return True
    written = {s.buffer.data for s in walk_stmts(body) if isinstance(s, S.BufferStore)}
    read = {e.buffer.data for root in roots for e in walk_exprs(root) if isinstance(e, E.BufferLoad)}
    return not any(data.pointer_type.scope not in OWN for data in written & read)


def _launches(body: Body) -> Body:
    """A launch for each statement of the outermost level."""
    made: list[Stmt] = [s for s in body if is_declaration(s)]
    for i, s in enumerate(s for s in body if not is_declaration(s)):
        made += [*(between_launches() if i else ()), s]
    return tuple(made)


def _shared(s: Stmt) -> bool:
    return (isinstance(s, S.For) and s.kind.startswith("threadIdx")) or any(_shared(x) for b in s.bodies() for x in b)


class _Spread:
    def __init__(self, machine: Npu, alone: bool) -> None:
        self.machine, self.alone = machine, alone

    def level(self, body: Body, repeated: bool) -> Body:
        """Statements that all TECs come to: some shared out, a barrier after each of them where another follows."""
        if not any(map(_shared, body)):
            return self._alone(_plain(body))
        pieces: list[Body] = []
        waiting: list[Stmt] = []
        for s in body:
            if not _shared(s):
                waiting.append(_plain((s,))[0])
                continue
            if waiting:
                pieces.append(self._alone(tuple(waiting)))
                waiting = []
            pieces.append((self._open(s),))
        if waiting:
            pieces.append(self._alone(tuple(waiting)))
        barrier = S.Evaluate(E.Call("barrier", (), VOID))
        made: list[Stmt] = []
        for i, piece in enumerate(pieces):
            made += piece
            if repeated or i < len(pieces) - 1:
                made.append(barrier)
        return tuple(made)

    def _alone(self, body: Body) -> Body:
        if not self.alone or not body:
            return body
        tid = E.Call("get_local_id", (), INT32)
        return (S.IfThenElse(Binary("eq", tid, IntImm(INT32, 0)), body, ()),)

    def _open(self, s: Stmt) -> Stmt:
        """A statement with a loop over TECs in it."""
        if isinstance(s, S.For):
            if s.kind.startswith("threadIdx"):
                return self._threads(s)
            return s.replace(kind=_kind(s), body=self.level(s.body, True), annotations=())
        if isinstance(s, S.IfThenElse):
            return S.IfThenElse(
                s.condition, self.level(s.then_case, False), self.level(s.else_case or (), False), span=s.span
            )
        raise LowerError("a loop that is bound to threadIdx.x stands inside of a while loop")

    def _threads(self, s: S.For) -> Stmt:
        if any(_shared(x) for x in s.body):
            raise LowerError(
                f"inside of '{s.loop_var.name}', which is bound to threadIdx.x, another loop is bound to it"
            )
        body = _plain(s.body)
        if constant(s.min) != 0:
            raise LowerError(f"'{s.loop_var.name}', which is bound to threads, does not begin at 0")
        return self.machine.threads(s.kind.replace("_", "."), s.loop_var, s.stop, body)


def _plain(body: Body, kept: Sequence[str] = ()) -> Body:
    """Statements without loops over TECs: what is bound to something else is a plain loop. `kept`: kinds that stay."""
    return tuple(_plain_stmt(s, kept) for s in body)


def _plain_stmt(s: Stmt, kept: Sequence[str]) -> Stmt:
    made = s.map(lambda e: e, lambda b: _plain(b, kept))
    if not isinstance(made, S.For):
        return made
    kind = made.kind if made.kind in kept else _kind(made)
    if kept and made.kind in S.VIRTUAL_LOOPS and constant(made.stop) is not None:
        kind = "unrolled"
    if kind == "vectorized" and constant(made.stop) is None:
        raise LowerError(f"the vectorized loop '{made.loop_var.name}' has no constant extent")
    return made.replace(kind=kind, annotations=()) if kind != made.kind or made.annotations else made


def _kind(s: S.For) -> str:
    return "serial" if s.kind.startswith(_SERIAL) else s.kind

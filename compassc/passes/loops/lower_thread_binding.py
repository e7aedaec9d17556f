"""Share loops that are bound to threads out, and say what runs beside them and where everybody waits.

Before: functions whose schedule is being lowered (`EXPRESSIONS`). After, on an NPU: loops of `threadIdx.x` are loops over TECs,
in rounds where there are more turns than TECs; statements are looked at level by level: a level without such loops is one
TEC's (or, inside of one, that of the TEC whose turn it is), a level with some is a sequence of segments, after each of which
all TECs wait; loops of one turn are gone, but those of vectors. On a grid threads and blocks stay loops, and each statement of
blocks' outermost level is a launch. Elsewhere, and for all other threads, there are plain loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from compassc.analysis.statements import mutable_vars, own_breaks
from compassc.analysis.structure import is_pure, variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.stmts import EXPRESSIONS, STAGES, Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import substitute_body, walk_exprs, walk_stmts
from compassc.passes.loops._functions import on_schedules
from compassc.te.errors import LowerError
from compassc.te.machine import OWN_MEMORY, Machine, Npu, barrier, is_barrier, launched, machine_of
from compassc.tir.blocks import constant, is_declaration, loop_extent

NAME = "LowerThreadBinding"
_SERIAL = ("parallel", "blockIdx", "vthread", "threadIdx")
"""Loops that are shared out over what there is one of here."""
_MEMORY = (S.Alloc, S.DeclBuffer)
_FOR_ALL = (*_MEMORY, S.Let)
"""Statements that every TEC runs."""
_ZERO, _ONE = IntImm(INT32, 0), IntImm(INT32, 1)


def run(module: IRModule) -> IRModule:
    machine = machine_of(module)
    step = _FORMS[machine.stage]
    return on_schedules(module, lambda f: f.replace(body=step(f, machine)))


def is_shared_out(s: Stmt) -> bool:
    """Whether a statement is a loop of which each TEC runs some turns, or none."""
    return isinstance(s, S.For) and (s.kind == "tec" or isinstance(s.min, E.Call))


# ----------------------------------------------------------------------------------------------------------- plain loops


def _on_host(f: PrimFunc, machine: Machine) -> Body:
    return _plain(f.body, ("parallel",) if f.attr(EXPRESSIONS) == STAGES else ())


def _on_grid(f: PrimFunc, machine: Machine) -> Body:
    body = _plain(f.body, S.THREAD_LOOPS, "unrolled")
    if f.attr(EXPRESSIONS) == STAGES:
        return body  # whose launches are apart already
    return (*filter(is_declaration, body), *launched((s,) for s in body if not is_declaration(s)))


def _plain(body: Body, kept: Sequence[str] = (), virtual: str = "serial") -> Body:
    """Statements in which loops that are bound to something are plain loops. `kept`: kinds that stay; `virtual`: what loops
    over virtual threads of constant extents become."""
    return tuple([_plain_stmt(s, kept, virtual) for s in body])


def _plain_stmt(s: Stmt, kept: Sequence[str], virtual: str) -> Stmt:
    made = s.map(lambda e: e, lambda b: _plain(b, kept, virtual)) if s.bodies() else s
    if not isinstance(made, S.For):
        return made
    kind = made.kind if made.kind in kept else _kind(made)
    if made.kind in S.VIRTUAL_LOOPS and constant(made.stop) is not None:
        kind = virtual
    if kind == "vectorized" and constant(made.stop) is None:
        raise LowerError(f"the vectorized loop '{made.loop_var.name}' has no constant extent")
    return made.replace(kind=kind, annotations=()) if kind != made.kind or made.annotations else made


def _kind(s: S.For) -> str:
    return "serial" if s.kind.startswith(_SERIAL) else s.kind


# ------------------------------------------------------------------------------------------------------------------ TECs


def _on_tecs(f: PrimFunc, machine: Machine) -> Body:
    assert isinstance(machine, Npu)
    head = tuple(s for s in f.body if is_declaration(s))
    rest = tuple(s for s in f.body if not is_declaration(s))
    stages = f.attr(EXPRESSIONS) == STAGES
    alone = stages or bool(f.attr(EXPRESSIONS)) and (any(map(_shared, rest)) or not _same_for_all(rest))
    turn, mutable = Binary("eq", _tec(), _ZERO) if alone else None, mutable_vars(f)
    rest = _without_single_turns(rest, mutable)
    return (*head, *_Tecs(machine.tecs, stages, mutable).level(rest, turn, (), repeated=False))


def _runs_once(s: S.For, mutable: frozenset[Var]) -> bool:
    """Whether a loop has one turn, and its variable one value, which may stand for it. `mutable`: variables that change."""
    return loop_extent(s) == 1 and s.loop_var not in mutable and not own_breaks(s.body)


def _only_turn(s: S.For) -> Body:
    """What a loop of one turn does."""
    return substitute_body(s.body, {s.loop_var: s.min})


def _without_single_turns(body: Body, mutable: frozenset[Var]) -> Body:
    """Statements without the loops of one turn that run in order."""
    made: list[Stmt] = []
    for s in body:
        new = s.map(lambda e: e, partial(_without_single_turns, mutable=mutable)) if s.bodies() else s
        if isinstance(new, S.For) and _plain_kind(new) and _runs_once(new, mutable):
            made += _only_turn(new)
        else:
            made.append(new)
    return tuple(made)


def _plain_kind(s: S.For) -> bool:
    return not s.kind.startswith("threadIdx") and _kind(s) in ("serial", "unrolled")


_FORMS: Mapping[str, Callable[[PrimFunc, Machine], Body]] = {"": _on_host, "loops": _on_tecs, "grid": _on_grid}
"""By the stage of the machine."""


def _tec() -> Expr:
    """The number of the TEC."""
    return E.Call("get_local_id", (), INT32)


def _same_for_all(body: Body) -> bool:
    """Whether TECs that all run the statements store what one of them would: values of memory that none of them writes.
    So do statements that ask for the TEC, move data or wait themselves."""
    roots = [e for s in walk_stmts(body) for e in s.exprs()]
    calls = [e for root in roots if root.flags & (E.F_CALL | E.F_FUNC) for e in walk_exprs(root)]
    if any(isinstance(e, E.FuncCall) or (isinstance(e, E.Call) and not (e.args and is_pure(e))) for e in calls):
        return True
    written = {s.buffer.data for s in walk_stmts(body) if isinstance(s, S.BufferStore)}
    read = {e.buffer.data for root in roots for e in walk_exprs(root) if isinstance(e, E.BufferLoad)}
    return not any(data.pointer_type.scope not in OWN_MEMORY for data in written & read)


def _shared(s: Stmt) -> bool:
    return any(isinstance(x, S.For) and x.kind.startswith("threadIdx") for x in walk_stmts((s,)))


def _owned(body: Sequence[Stmt], turn: Expr | None) -> list[Stmt]:
    """Statements of one TEC, or of those for which `turn` holds (None: all)."""
    plain = _plain(tuple(body))
    if turn is None or not plain:
        return list(plain)
    rest = tuple(s for s in plain if not isinstance(s, _MEMORY))
    return [*(s for s in plain if isinstance(s, _MEMORY)), S.IfThenElse(turn, rest, ())]


class _Tecs:
    """What TECs run. `stages`: the loops are those of stages, which other turns of theirs do not read. `mutable`: variables
    that change."""

    def __init__(self, tecs: int, stages: bool, mutable: frozenset[Var]) -> None:
        self.tecs, self.stages, self.mutable = tecs, stages, mutable

    def level(self, body: Body, turn: Expr | None, own: tuple[Var, ...], repeated: bool) -> Body:
        """The statements of a level. `turn`: when the TEC runs what is not shared out (None: always); `own`: variables that
        are not the same for all TECs; `repeated`: the last statement is followed by the first."""
        if not any(map(_shared, body)):
            return tuple(_owned(body, turn))
        segments: list[list[Stmt]] = []
        waiting: list[Stmt] = []
        for s in body:
            if not _shared(s):
                waiting.append(s)
                continue
            segments += self._beside(waiting, turn)
            waiting = []
            segments.append(self._segment(s, turn, own))
        segments += [_owned(waiting, turn)] if waiting else []
        made: list[Stmt] = []
        for i, segment in enumerate(segments):
            if i and any(not isinstance(x, _FOR_ALL) for x in segments[i - 1]):
                made.append(barrier())
            made += segment
        if repeated and (not self.stages or len(segments) > 1 or any(map(is_barrier, made))):
            made.append(barrier())  # the next turn writes what this one reads
        return tuple(made)

    def _beside(self, waiting: list[Stmt], turn: Expr | None) -> list[list[Stmt]]:
        """The segment of what stands before something that is shared out, if anything does."""
        if any(not isinstance(x, _FOR_ALL) for x in waiting):
            return [_owned(waiting, turn)]
        return [waiting] if waiting else []

    def _segment(self, s: Stmt, turn: Expr | None, own: tuple[Var, ...]) -> list[Stmt]:
        """A statement with loops over TECs in it."""
        if isinstance(s, S.For) and s.kind.startswith("threadIdx"):
            return self._threads(s, own)
        if isinstance(s, S.For):
            _check({v for e in (s.min, s.stop, s.step) for v in variables(e)}, own, f"the loop '{s.loop_var.name}'")
            return [s.replace(kind=_kind(s), body=self.level(s.body, turn, own, repeated=True), annotations=())]
        if isinstance(s, S.IfThenElse):
            _check(variables(s.condition), own, "a condition")
            then, orelse = (self.level(b, turn, own, repeated=False) for b in (s.then_case, s.else_case or ()))
            return [s.replace(then_case=then, else_case=orelse)]
        raise LowerError("a loop over the TECs stands inside of a statement that they do not run together")

    def _threads(self, s: S.For, own: tuple[Var, ...]) -> list[Stmt]:
        tag = s.kind.replace("_", ".")
        if s.kind != "threadIdx_x":
            raise LowerError(f"the TECs are threadIdx.x; there is no {tag}")
        if constant(s.min) != 0:
            raise LowerError(f"'{s.loop_var.name}', which is bound to threads, does not begin at 0")
        fits = isinstance(s.stop, IntImm) and s.stop.value <= self.tecs
        if any(map(_shared, s.body)):
            return self._together(s, own, fits)
        if _runs_once(s, self.mutable):
            return _owned(_only_turn(s), Binary("eq", _tec(), _ZERO))
        body = _plain(s.body)
        if fits:
            return [S.For(s.loop_var, "tec", _ZERO, s.stop, _ONE, body, span=s.span)]
        return [S.For(s.loop_var, "serial", _tec(), s.stop, E.Call("get_local_size", (), INT32), body, span=s.span)]

    def _together(self, s: S.For, own: tuple[Var, ...], fits: bool) -> list[Stmt]:
        """A loop over the TECs in whose turns they compute stages together: all TECs go through it, those without a turn
        only for what is shared out."""
        if not self.stages:
            raise LowerError(
                f"inside of '{s.loop_var.name}', which is bound to threadIdx.x, another loop is bound to it"
            )
        if not fits or not isinstance(s.stop, IntImm):
            raise LowerError(
                f"'{s.loop_var.name}' has more turns than the {self.tecs} TECs, but stages inside are computed by all of them "
                "together",
                f"bind a loop of at most {self.tecs} turns",
            )
        below = Binary("lt", s.loop_var, s.stop) if s.stop.value < self.tecs else None
        return [S.Let(s.loop_var, _tec()), *self.level(s.body, below, (*own, s.loop_var), repeated=False)]


def _check(mentioned: set[Var], own: tuple[Var, ...], what: str) -> None:
    found = sorted(v.name for v in mentioned & set(own))
    if found:
        raise LowerError(
            f"TECs compute a stage together inside of {what}, which is another one for each ({', '.join(found)})",
            "compute it at a loop outside, or let the loops divide",
        )

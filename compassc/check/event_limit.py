"""More events than a TEC has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Note, Span

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Var
from ..ir.stmts import Body, PrimFunc, Stmt
from ..ir.visit import assigned_vars, walk_exprs, walk_stmts
from . import Subject

CODE = "event-limit"
Held = Counter[Var]
"""The number of events allocated to each variable that no statement may have freed."""


def run(subject: Subject) -> Iterator[CompassError]:
    """An error where a line, whenever it runs, needs an event and none can be free."""
    for function in subject.functions():
        events = _events(function)
        if events:
            yield from _Function(function, events, subject.target.events).run()


def _events(function: PrimFunc) -> dict[Var, Span | None]:
    """The variables that are given an event, and nothing else, with their lines."""
    mutable = assigned_vars(function)
    events: dict[Var, Span | None] = {}
    for s in walk_stmts(function.body):
        if type(s) is S.Let and type(s.value) is E.Call and s.value.op == "alloc_event" and s.var not in mutable:
            events[s.var] = s.span
    return events


@dataclass
class _Function:
    function: PrimFunc
    events: dict[Var, Span | None]
    limit: int
    found: list[CompassError] = field(default_factory=list)

    def run(self) -> list[CompassError]:
        self.body(self.function.body, Counter())
        return self.found

    def body(self, body: Body, held: Held) -> Held:
        for s in body:
            if self.found:
                break
            held = self.statement(s, held)
        return held

    def statement(self, s: Stmt, held: Held) -> Held:
        if type(s) is S.Let and s.var in self.events:
            held = held + Counter([s.var])
            if held.total() > self.limit:
                self.found.append(self.error(s, held))
            return held
        freed = _freed(s)
        if freed is None or not freed <= self.events.keys():
            return Counter()
        held = Counter({var: count for var, count in held.items() if var not in freed})
        if type(s) is S.IfThenElse:
            return self.body(s.then_case, held) & self.body(s.else_case or (), held)
        if type(s) is S.For:
            return self.loop(s, held)
        for inner in s.bodies():
            held = held & self.body(inner, held)
        return held

    def loop(self, s: S.For, held: Held) -> Held:
        """Walk the body as often as the loop certainly runs, up to the number of iterations that exceeds the limit."""
        bounds = [b.value for b in (s.min, s.stop, s.step) if isinstance(b, E.IntImm)]
        whole = not any(isinstance(x, (S.Break, S.Continue, S.Return)) for x in walk_stmts(s.body))
        if not whole or s.kind == "tec" or len(bounds) < 3:
            return held & self.body(s.body, held)
        for _ in range(*bounds)[: self.limit + 1]:
            before, held = held, self.body(s.body, held)
            if held == before:
                break
        return held

    def error(self, s: S.Let, held: Held) -> CompassError:
        others = [Note(f"{v.name!r} holds one", self.events[v]) for v in held if v is not s.var]
        several = [f"{v.name!r} was given {count} that are not freed" for v, count in held.items() if count > 1]
        return CompassError(
            f"no event is free for {s.var.name!r}: a TEC has {self.limit}",
            s.span,
            code=CODE,
            notes=(*others, *several),
            help="free events with S.free_events, or use one event for several transfers",
        )


def _freed(s: Stmt) -> set[Var] | None:
    """The variables whose events the statement itself may free; None where that may be any."""
    freed: set[Var] = set()
    for root in s.exprs():
        for e in walk_exprs(root):
            if type(e) is E.FuncCall:
                return None
            if type(e) is E.Call and e.op == "free_events":
                freed |= {v for v in walk_exprs(e) if type(v) is Var}
    return freed

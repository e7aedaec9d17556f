"""Events that are not given back, and events used after that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Finding, Note, Span

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr, Var
from ..ir.stmts import Body, PrimFunc, Stmt
from ..ir.visit import assigned_vars, walk_exprs, walk_stmts
from . import Subject

LEAK, FREED = "event-not-freed", "event-freed"


def run(subject: Subject) -> Iterator[CompassError]:
    """A warning per event that no path frees, an error per event that is used where it has been freed for certain."""
    for function in subject.functions():
        events = _events(function)
        if events:
            yield from _Function(function, events).run()


def _events(function: PrimFunc) -> dict[Var, Span | None]:
    """The variables that hold an event of this function for all of their life, with their definitions."""
    mutable = assigned_vars(function)
    return {
        s.var: s.span
        for s in walk_stmts(function.body)
        if type(s) is S.Let and type(s.value) is E.Call and s.value.op == "alloc_event" and s.var not in mutable
    }


@dataclass
class _Function:
    function: PrimFunc
    events: dict[Var, Span | None]
    freed_somewhere: set[Var] = field(default_factory=set)
    escaped: set[Var] = field(default_factory=set)
    found: list[CompassError] = field(default_factory=list)

    def run(self) -> Iterator[CompassError]:
        self.body(self.function.body, {})
        yield from self.found
        for var, span in self.events.items():
            if var not in self.freed_somewhere and var not in self.escaped:
                yield Finding(
                    f"the event {var.name!r} is never freed",
                    span,
                    code=LEAK,
                    notes=("a TEC has few events, and one that is not freed is lost for the rest of the kernel",),
                    help=f"call S.free_events({var.name}) where it is no longer needed",
                )

    def body(self, body: Body, freed: dict[Var, Span | None]) -> dict[Var, Span | None]:
        """The events that are freed for certain after the statements, with the place."""
        for s in body:
            self.statement(s, freed)
        return freed

    def statement(self, s: Stmt, freed: dict[Var, Span | None]) -> None:
        if type(s) is S.Let and s.var in self.events:
            freed.pop(s.var, None)
            return
        for root in s.exprs():
            self.expression(s, root, freed)
        if type(s) is S.IfThenElse:
            ends = [self.body(inner, dict(freed)) for inner in s.bodies()]
            freed.clear()
            freed.update({var: span for var, span in ends[0].items() if var in ends[1]})
        else:
            for (
                inner
            ) in s.bodies():  # the loop may run zero times: events freed in it are not certainly free afterwards
                self.body(inner, dict(freed))

    def expression(self, s: Stmt, root: Expr, freed: dict[Var, Span | None]) -> None:
        used = {e for e in walk_exprs(root) if type(e) is Var and e in self.events}
        if not used:
            return
        call = root.op if type(root) is E.Call else ""
        if call == "free_events":
            self.freed_somewhere |= used
            freed.update(dict.fromkeys(used, s.span))
            return
        for var in used & set(freed):
            note = Note("it is freed here", freed[var])
            help = "free it after its last use"
            self.found.append(
                CompassError(
                    f"the event {var.name!r} is used after it was freed", s.span, code=FREED, notes=(note,), help=help
                )
            )
        if call != "wait_events" and not call.startswith("async"):
            self.escaped |= used

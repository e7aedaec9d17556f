"""Constraints of calls, solved as soon as what they ask is known, in the order they were met in."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.relay.attributes import Attrs
from compassc.relay.expr import Expr
from compassc.relay.infer.errors import TypeInferenceError, error
from compassc.relay.infer.unify import Mismatch, Unifier
from compassc.relay.type_visit import holes
from compassc.relay.types import IncompleteType, Related, Relation, Type


@dataclass(eq=False)
class Constraint:
    """The result of `e` follows from the types of what it is applied to by a relation."""

    e: Expr
    what: str
    relation: Relation
    args: Sequence[Type]
    attrs: Attrs | None
    result: Type
    waiting: bool = True


class Solver:
    """A queue of constraints. One that cannot go on waits for the holes that it met, and is queued again when one of them
    becomes known. Errors are collected, so that one run shows all."""

    def __init__(self) -> None:
        self.unifier = Unifier(self._wake)
        self.errors: list[TypeInferenceError] = []
        self._queue: deque[Constraint] = deque()
        self._asleep: dict[int, list[Constraint]] = {}

    def apply(self, e: Expr, what: str, relation: Relation, args: Sequence[Type], attrs: Attrs | None) -> Type:
        """The type of a call: at once where its arguments are known, else a hole that is found when they are."""
        made = Constraint(e, what, relation, args, attrs, IncompleteType())
        self._run(made)
        return self.unifier.find(made.result)

    def solve(self) -> bool:
        """Work until nothing changes. Whether all constraints are finished."""
        while self._queue:
            self._run(self._queue.popleft())
        return not any(c.waiting for waiting in self._asleep.values() for c in waiting)

    def unify(self, e: Expr, a: Type, b: Type, what: str, names: tuple[str, str], keep_b: bool = False) -> Type:
        """The type that both are; where they cannot be the same an error of `e` is collected. `what` of it does not fit, `names`
        say what the types are those of."""
        try:
            return self.unifier.unify(a, b, keep_b)
        except Mismatch as wrong:
            self._refuse(e, f"{what}: {wrong.message}", names, (a, b))
            return IncompleteType()

    def _refuse(self, e: Expr, message: str, names: Sequence[str], types: Sequence[Type], help: str = "") -> None:
        found = [f"{name} is {self.unifier.resolved(t)}" for name, t in zip(names, types)]
        self.errors.append(error(e, message, found, help))

    def _wake(self, hole: IncompleteType) -> None:
        self._queue.extend(c for c in self._asleep.pop(id(hole), ()) if c.waiting)

    def _run(self, c: Constraint) -> None:
        if not c.waiting:
            return
        types = [self.unifier.resolved(t) for t in c.args]
        names = [f"argument {i}" for i in range(len(types))]
        try:
            found = c.relation(types, c.attrs)
            inputs = found.inputs if isinstance(found, Related) else {}
            result = found.result if isinstance(found, Related) else found
            for place, t in inputs.items():
                self.unifier.unify(c.args[place], t)
        except Mismatch as wrong:
            c.waiting = False
            return self._refuse(c.e, f"{c.what}: {wrong.message}", names, types)
        except CompassError as wrong:
            c.waiting = False
            message = wrong.message if wrong.message.startswith(c.what) else f"{c.what}: {wrong.message}"
            return self._refuse(c.e, message, names, types, wrong.help)
        if result is None:
            for t in c.args:
                for hole in holes(self.unifier.resolved(t)):
                    self._asleep.setdefault(id(hole), []).append(c)
            return None
        c.waiting = False
        self.unify(c.e, c.result, result, f"the type that is asked of {c.what}", ("the type asked", "the type found"))
        return None

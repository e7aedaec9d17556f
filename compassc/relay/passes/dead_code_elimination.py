"""Drop bindings that nothing uses.

Before: a typed module.
After: each variable that is bound by `let` is used, or its value has effects; with `inline_once` no value without effects is
used once only. `ignore_impurity`: values with effects are dropped, too.
"""

from __future__ import annotations

from collections import Counter

from compassc.relay.expr import Expr, Function, Let, Var
from compassc.relay.module import IRModule
from compassc.relay.passes._effects import Effects
from compassc.relay.passes._functions import on_functions
from compassc.relay.visit import children, is_primitive, post_order, with_children

NAME = "DeadCodeElimination"
LEVEL = 1
REQUIRED = ("InferType",)


def run(module: IRModule, inline_once: bool = False, ignore_impurity: bool = False) -> IRModule:
    effects = Effects(module)

    def one(f: Function) -> Function:
        effects.look_at(f)
        return _Dead(f, effects, ignore_impurity).without(inline_once)

    return on_functions(module, lambda f, _: one(f))


class _Dead:
    """Uses of variables in the live parts of a function."""

    def __init__(self, f: Function, effects: Effects, ignore_impurity: bool) -> None:
        self.f, self._effects, self._ignore = f, effects, ignore_impurity
        self.uses: Counter[int] = Counter()
        self._walk()

    def pure(self, e: Expr) -> bool:
        """Whether a value may be dropped."""
        return self._ignore or not self._effects.has(e)

    def _walk(self) -> None:
        """Count uses from what is live: values of variables are looked into when the first use of these is met. Uses within
        functions count twice."""
        values: dict[int, tuple[Expr, bool]] = {}
        waiting: list[tuple[Expr, bool]] = [(self.f.body, False)]
        seen: set[int] = set()
        while waiting:
            e, inside = waiting.pop()
            if isinstance(e, Var):
                self.uses[id(e)] += 2 if inside else 1
                if id(e) in values:
                    waiting.append(values.pop(id(e)))
                continue
            if id(e) in seen:
                continue
            seen.add(id(e))
            if isinstance(e, Let):
                if self.pure(e.value) and not self.uses[id(e.var)]:
                    values[id(e.var)] = (e.value, inside)
                else:
                    waiting.append((e.value, inside))
                waiting.append((e.body, inside))
            elif isinstance(e, Function):
                waiting.append((e.body, True))
            else:
                waiting += [(c, inside) for c in children(e)]

    def without(self, inline_once: bool) -> Function:
        """The function without dead bindings."""
        lets: dict[int, list[Let]] = {}
        order = list(post_order(self.f, is_primitive))
        for e in order:
            if isinstance(e, Let):
                lets.setdefault(id(e.value), []).append(e)
        made: dict[int, Expr] = {}
        gone: set[int] = set()
        for e in order:
            if isinstance(e, Let) and (id(e) in gone or (not self.uses[id(e.var)] and self.pure(e.value))):
                made[id(e)] = made[id(e.body)]
                continue
            after = e if e is not self.f and is_primitive(e) else with_children(e, [made[id(c)] for c in children(e)])
            made[id(e)] = after
            for let in lets.get(id(e), ()):
                if inline_once and self.uses[id(let.var)] == 1 and self.pure(e):
                    made[id(let.var)] = after
                    gone.add(id(let))
        found = made[id(self.f)]
        assert isinstance(found, Function), "a function stays one"
        return found

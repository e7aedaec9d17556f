"""Drop statements without effect: unused definitions, empty loops and branches, values nobody uses.

Before: any module.
After: every variable that stays defined is used, assigned or set by element; a definition that is not used but computes
an address or calls something is evaluated for its effect; no loop or If is empty, and no If has only an else branch; no
store writes back the element it loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..analysis.simplify import negate
from ..analysis.statements import is_const, used_vars
from ..analysis.structure import Interner, is_pure
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr, Var
from ..ir.rules import method, table
from ..ir.stmts import Body, IRModule, PrimFunc, Stmt
from ..ir.visit import walk_exprs, walk_stmts

NAME = "RemoveNoOp"
_KEPT = E.F_CALL | E.F_FUNC | E.F_POINTER
"""What makes an unused value worth evaluating: calls, and addresses (which the language keeps as statements)."""


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _function(f: PrimFunc) -> PrimFunc:
    body = _Remove(f).body(f.body)
    return f if body is f.body else f.replace(body=body)


class _Remove:
    """Walks backwards, so that dropping a use is seen where the used variable is defined."""

    def __init__(self, f: PrimFunc) -> None:
        self.uses = Counter(used_vars(f.body))
        changes = walk_stmts(f.body, E.F_CHANGES)
        self.uses.update(s.var for s in changes if isinstance(s, (S.Assign, S.SetElement)))
        self.interner = Interner()

    def body(self, body: Body) -> Body:
        out: list[Stmt] = []
        changed = False
        for s in reversed(body):
            new = self.stmt(s)
            changed |= new is not s
            if new is not None:
                out.append(new)
        return tuple(reversed(out)) if changed else body

    def stmt(self, s: Stmt) -> Stmt | None:
        rule = _RULES.get(type(s))
        return s if rule is None else rule(self, s)

    def _forget(self, e: Expr) -> None:
        self.uses.subtract(x for x in walk_exprs(e) if type(x) is Var)

    def _value(self, value: Expr, s: Stmt) -> Stmt | None:
        """The part of an unused value that must still be evaluated."""
        if value.flags & _KEPT:
            return s if type(s) is S.Evaluate else S.Evaluate(value, span=s.span)
        self._forget(value)
        return None

    def _let(self, s: S.Let) -> Stmt | None:
        return s if self.uses[s.var] > 0 else self._value(s.value, s)

    def _eval(self, s: S.Evaluate) -> Stmt | None:
        return self._value(s.value, s)

    def _alloc(self, s: S.Alloc | S.AllocConst) -> Stmt | None:
        return s if self.uses[s.buffer.data] > 0 else None

    def _store(self, s: S.BufferStore) -> Stmt | None:
        if type(s.value) is not E.BufferLoad or s.mask is not None or s.value.mask is not None or not is_pure(s.value):
            return s
        if not self.interner.same(s.value, E.BufferLoad(s.buffer, s.indices)):
            return s
        for e in s.exprs():
            self._forget(e)
        return None

    def _if(self, s: S.IfThenElse) -> Stmt | None:
        then, orelse = self.body(s.then_case), self.body(s.else_case or ())
        if is_const(s.condition, 0):
            then = ()
        if not then and not orelse:
            if not is_pure(s.condition):
                return S.Evaluate(s.condition, span=s.span)
            self._forget(s.condition)
            return None
        if not then:
            return S.IfThenElse(negate(s.condition), orelse, (), span=s.span)
        return (
            s
            if then is s.then_case and orelse is (s.else_case or ())
            else S.IfThenElse(s.condition, then, orelse, span=s.span)
        )

    def _for(self, s: S.For) -> Stmt | None:
        body = self.body(s.body)
        bounds = (s.min, s.stop, s.step)
        if (not body or _is_empty_range(s)) and all(map(is_pure, bounds)):
            for e in bounds:
                self._forget(e)
            return None
        return s if body is s.body else S.For(s.loop_var, s.kind, *bounds, body, span=s.span)

    def _while(self, s: S.While) -> Stmt | None:
        body = self.body(s.body)
        if is_const(s.condition, 0):
            return None
        return s if body is s.body else S.While(s.condition, body, span=s.span)


def _is_empty_range(s: S.For) -> bool:
    if type(s.min) is not E.IntImm or type(s.stop) is not E.IntImm or type(s.step) is not E.IntImm:
        return False
    return s.stop.value <= s.min.value and s.step.value > 0


_RULES: dict[type, Callable[[_Remove, Stmt], Stmt | None]] = table(
    method(S.Let, _Remove._let),
    method(S.Evaluate, _Remove._eval),
    method(S.Alloc, _Remove._alloc),
    method(S.AllocConst, _Remove._alloc),
    method(S.BufferStore, _Remove._store),
    method(S.IfThenElse, _Remove._if),
    method(S.For, _Remove._for),
    method(S.While, _Remove._while),
)

"""Simplify integer expressions and drop statements that cannot matter, using ranges and enclosing conditions.

Before: any module; buffers may be N-dimensional or flat.
After: integer expressions are in the normal form of `compassc.analysis.simplify`; `gt` and `ge` are gone; an If whose
condition is known is the branch it takes; loops that run no time are gone, and those that run once are their body.
Variables are never replaced by their values, and nothing is assumed about variables that change.
"""

from __future__ import annotations

from collections.abc import Callable

from ..analysis.arith import Arith
from ..analysis.simplify import Simplifier
from ..analysis.statements import is_const, mutable_vars, own_breaks
from ..analysis.structure import is_pure, is_stable
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr
from ..ir.rules import method, table
from ..ir.stmts import Body, IRModule, PrimFunc, Stmt
from ..ir.visit import substitute_body

NAME = "Simplify"


def run(module: IRModule) -> IRModule:
    return module.map_functions(simplify_function)


def simplify_function(f: PrimFunc) -> PrimFunc:
    """One function, simplified."""
    body = _Simplify(f).body(f.body)
    return f if body is f.body else f.replace(body=body)


class _Simplify:
    def __init__(self, f: PrimFunc) -> None:
        self.arith = Arith(mutable_vars(f))
        self.expr = Simplifier(self.arith).expr

    def body(self, body: Body) -> Body:
        """The simplified block; facts learnt in it hold until its end."""
        mark = self.arith.mark()
        out: list[Stmt] = []
        changed = False
        for s in body:
            new = self.stmt(s)
            changed |= new is not s
            if type(new) is S.Evaluate:
                self.arith.learn_assumption(new.value)
            if isinstance(new, tuple):
                out.extend(new)
            else:
                out.append(new)
        self.arith.release(mark)
        return tuple(out) if changed else body

    def stmt(self, s: Stmt) -> Stmt | Body:
        rule = _RULES.get(type(s))
        return s.map(self.expr, self.body) if rule is None else rule(self, s)

    def _let(self, s: S.Let) -> Stmt:
        s = s.map(self.expr, self.body)
        self.arith.bind_value(s.var, s.value)
        return s

    def _store(self, s: S.BufferStore) -> Stmt:
        s = s.map(self.expr, self.body)
        if type(s.mask) is E.ConstMask and s.mask.all_true:
            return S.BufferStore(s.buffer, s.indices, s.value, None, span=s.span)
        return s

    def _under(self, body: Body, cond: Expr, truth: bool) -> Body:
        mark = self.arith.mark()
        self.arith.assume(cond, truth)
        new = self.body(body)
        self.arith.release(mark)
        return new

    def _if(self, s: S.IfThenElse) -> Stmt | Body:
        cond = self.expr(s.condition)
        if type(cond) is E.IntImm:
            return self.body(s.then_case if cond.value else s.else_case or ())
        then, orelse = self._under(s.then_case, cond, True), self._under(s.else_case or (), cond, False)
        if cond is s.condition and then is s.then_case and orelse is (s.else_case or ()):
            return s
        return S.IfThenElse(cond, then, orelse, span=s.span)

    def _while(self, s: S.While) -> Stmt | Body:
        cond = self.expr(s.condition)
        if is_const(cond, 0):
            return ()
        body = self._under(s.body, cond, True)
        return s if cond is s.condition and body is s.body else S.While(cond, body, span=s.span)

    def _for(self, s: S.For) -> Stmt | Body:
        start, stop, step = self.expr(s.min), self.expr(s.stop), self.expr(s.step)
        least, most = self.arith.difference(stop, start)
        removable = is_pure(start) and is_pure(stop) and is_pure(step) and self.arith.range_of(step)[0] > 0
        if most <= 0 and removable:
            return ()
        if least == most == 1 and is_const(step, 1) and self._is_once(s, start):
            return self.body(substitute_body(s.body, {s.loop_var: start}))
        mark = self.arith.mark()
        self.arith.bind_loop(s.loop_var, start, stop, step)
        body = self.body(s.body)
        self.arith.release(mark)
        if start is s.min and stop is s.stop and step is s.step and body is s.body:
            return s
        return S.For(s.loop_var, s.kind, start, stop, step, body, span=s.span)

    def _is_once(self, s: S.For, start: Expr) -> bool:
        """Whether a loop of one iteration can be replaced by its body with `start` for the variable: one that threads share
        says that one of them runs it."""
        stable = s.loop_var not in self.arith.mutable and is_stable(start, self.arith.mutable)
        return s.kind not in ("tec", *S.THREAD_LOOPS) and stable and not own_breaks(s.body)


_RULES: dict[type, Callable[[_Simplify, Stmt], Stmt | Body]] = table(
    method(S.Let, _Simplify._let),
    method(S.BufferStore, _Simplify._store),
    method(S.IfThenElse, _Simplify._if),
    method(S.While, _Simplify._while),
    method(S.For, _Simplify._for),
)

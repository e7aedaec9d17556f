"""If-conversion of loops: a bound checked inside a loop becomes a bound of the loop, and a mask of vectors.

Before: any module.
After: a loop of step 1 whose body is only `if var + rest < limit` (no else) runs up to the limit instead, where nothing
the condition reads changes in the loop. VectorizeLoop then makes a mask of the bound of a vectorized loop. Vectorized
loops take their guard to be free of wrap-around, as indices are; other loops only change where that is proven. Unrolled
loops need constant bounds and stay as they are.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ..analysis.arith import Arith, Linear
from ..analysis.simplify import Simplifier
from ..analysis.statements import is_const, mutable_vars
from ..analysis.structure import is_pure, is_stable, may_be_reported, variables
from ..ir import stmts as S
from ..ir.exprs import Binary, Expr, IntImm, Var
from ..ir.stmts import Body, IRModule, PrimFunc, Stmt
from ..ir.visit import walk_stmts

NAME = "IfConversion"


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _guard(s: Stmt) -> tuple[S.For, Body, Binary] | None:
    """A loop whose whole body is guarded by a comparison, what is guarded, and the comparison."""
    if type(s) is not S.For or s.kind in ("tec", "unrolled") or len(s.body) != 1:
        return None
    (guard,) = s.body
    if type(guard) is not S.IfThenElse or guard.else_case or type(guard.condition) is not Binary:
        return None
    return (s, guard.then_case, guard.condition) if guard.condition.op in ("lt", "le", "gt", "ge") else None


def _function(f: PrimFunc) -> PrimFunc:
    if not any(_guard(s) is not None for s in walk_stmts(f.body)):
        return f
    body = _Convert(mutable_vars(f)).body(f.body)
    return f if body is f.body else f.replace(body=body)


class _Convert:
    def __init__(self, mutable: AbstractSet[Var]) -> None:
        self.arith = Arith(mutable)
        self.simplify = Simplifier(self.arith).expr

    def body(self, body: Body) -> Body:
        new = tuple([self.stmt(s) for s in body])
        return body if all(a is b for a, b in zip(new, body)) else new

    def stmt(self, s: Stmt) -> Stmt:
        mark = self.arith.mark()
        if type(s) is S.For:
            self.arith.bind_loop(s.loop_var, s.min, s.stop, s.step)
        s = s.map(lambda e: e, self.body)
        guard = _guard(s)
        limit = None if guard is None else self._limit(*guard)
        self.arith.release(mark)
        return s if guard is None or limit is None else self._bounded(*guard, limit)

    def _limit(self, s: S.For, then: Body, cond: Binary) -> Expr | None:
        """The first value of the loop variable for which the guard fails, when it fails for all larger ones too."""
        low, high = (cond.a, cond.b) if cond.op in ("lt", "le") else (cond.b, cond.a)
        if not is_const(s.step, 1) or not is_stable(cond, self.arith.mutable) or not is_pure(s.stop):
            return None
        if low.dtype is not s.loop_var.dtype or s.loop_var in self.arith.mutable or may_be_reported(cond):
            return None
        if s.kind != "vectorized" and low is s.loop_var:
            return None
        strict = cond.op in ("lt", "gt")
        form = self.arith.linear(low).add(self.arith.linear(high), -1)
        form.const += 0 if strict else -1
        return self._solve(s, form, (low, high))

    def _solve(self, s: S.For, form: Linear, sides: tuple[Expr, Expr]) -> Expr | None:
        """`var + rest < 0` as the bound `-rest` of var."""
        key = self.arith.interner.key(s.loop_var)
        if form.terms.get(key) != 1:
            return None
        rest = Linear({k: f for k, f in form.terms.items() if k != key}, form.const)
        if any(self._mentions(k, s.loop_var) for k in rest.terms):
            return None
        least, most = s.loop_var.data_type.integer_range()
        low, high = self.arith.bounds(rest)
        exact = all(self._is_exact(x) for x in sides) and least < low and high <= most
        if s.kind != "vectorized" and not exact:
            return None
        limit: Expr = IntImm(s.loop_var.data_type, 0)
        for k, factor in rest.terms.items():
            limit = Binary("sub", limit, Binary("mul", self.arith.atoms[k], IntImm(s.loop_var.data_type, factor)))
        return self.simplify(Binary("sub", limit, IntImm(s.loop_var.data_type, rest.const)))

    def _is_exact(self, e: Expr) -> bool:
        return self.arith.exact(e).same(self.arith.linear(e))

    def _mentions(self, key: int, var: Var) -> bool:
        return var in variables(self.arith.atoms[key])

    def _bounded(self, s: S.For, then: Body, cond: Binary, limit: Expr) -> Stmt:
        stop = Binary("min", limit, s.stop)
        if is_const(s.min, 0):
            stop = Binary("max", stop, s.min)
        elif s.kind == "vectorized":
            stop = Binary("add", s.min, Binary("max", Binary("min", *self._extents(s, limit)), _zero(s)))
        return S.For(s.loop_var, s.kind, s.min, stop, s.step, then, span=s.span)

    def _extents(self, s: S.For, limit: Expr) -> tuple[Expr, Expr]:
        low, full = (self.simplify(Binary("sub", x, s.min)) for x in (limit, s.stop))
        return low, full


def _zero(s: S.For) -> Expr:
    return IntImm(s.loop_var.data_type, 0)

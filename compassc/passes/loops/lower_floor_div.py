"""Simplify indices and conditions, and make divisions that round down of those that C has.

Before: functions whose schedule is being lowered (`EXPRESSIONS`). After: no function has that attribute; `floordiv` and
`floormod` are C's divisions where nothing is negative, stay with powers of two, and are a correction of C's elsewhere.
"""

from __future__ import annotations

from compass_core.operators import is_power_of_two
from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm
from compassc.ir.operators import kind_of
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import Rewriter, rewrites
from compassc.passes.loops._functions import on_schedules

NAME = "LowerFloorDiv"
_ZERO = IntImm(INT32, 0)


def run(module: IRModule) -> IRModule:
    return on_schedules(module, _function)


def _function(f: PrimFunc) -> PrimFunc:
    return f.without_attr(S.EXPRESSIONS).replace(body=_Finish().body(f.body))


class _Finish(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.facts = Arith()
        self.simplify = Simplifier(self.facts).expr

    def expr(self, e: Expr) -> Expr:
        return super().expr(self.simplify(e) if e.dtype.is_integer else e)

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Stmt:
        mark = self.facts.mark()
        over_tecs = isinstance(s.min, E.Call)  # from the TEC's number on, in steps of their number
        start, step = (_ZERO, IntImm(INT32, 1)) if over_tecs else (s.min, s.step)
        self.facts.bind_loop(s.loop_var, start, s.stop, step)
        made = self.default_stmt(s)
        self.facts.release(mark)
        return made

    @rewrites(S.Alloc)
    def rewrite_alloc(self, s: S.Alloc) -> Stmt:
        shape = tuple(self.expr(e) for e in s.buffer.shape)
        return S.Alloc(Buffer(s.buffer.data, s.buffer.dtype, shape), span=s.span)

    @rewrites(S.IfThenElse)
    def rewrite_if(self, s: S.IfThenElse) -> Stmt | Body:
        condition = self.expr(s.condition)
        if isinstance(condition, IntImm):
            return self.body(s.then_case if condition.value else s.else_case or ())
        mark = self.facts.mark()
        self.facts.assume(condition)
        then = self.body(s.then_case)
        self.facts.release(mark)
        return s.replace(condition=condition, then_case=then, else_case=self.body(s.else_case or ()))

    @rewrites(E.Binary)
    def rewrite_binary(self, e: Binary) -> Expr:
        a, b = self.expr(e.a), self.expr(e.b)
        if e.op not in ("floordiv", "floormod"):
            return e if a is e.a and b is e.b else Binary(e.op, a, b)
        if isinstance(b, IntImm) and is_power_of_two(b.value):
            return Binary(e.op, a, b)
        quotient, rest = Binary("div", a, b), Binary("mod", a, b)
        if self.facts.range_of(a)[0] >= 0 and self.facts.range_of(b)[0] >= 0:  # by 0 all of them are 0
            return quotient if e.op == "floordiv" else rest
        zero = IntImm(kind_of(a), 0)
        if isinstance(b, IntImm) and b.value:
            below = Binary("lt" if b.value > 0 else "gt", rest, zero)
        else:
            differ = Binary("lt", Binary("bitxor", rest, b), zero)  # in their signs
            below = Binary("and", Binary("ne", rest, zero), differ)
        if e.op == "floordiv":
            return Binary("sub", quotient, E.Select(below, IntImm(kind_of(a), 1), zero))
        return Binary("add", rest, E.Select(below, b, zero))

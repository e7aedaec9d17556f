"""Count in 32 bits in loops and indices of 64, as far as their values are known to fit: shapes may be of type int64.

Before: functions whose schedule is being lowered (`EXPRESSIONS`). After: their loops count in 32 bits, as many turns as a
loop can have; indices and conditions are of 32 bits, too, where nothing in them can be larger.
"""

from __future__ import annotations

from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, DataType, dtype
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.stmts import IRModule, PrimFunc, Stmt
from compassc.ir.visit import Rewriter, all_exprs, rewrites, substitute_body
from compassc.passes.loops._functions import on_schedules

NAME = "NarrowDataType"
INT64 = dtype("int64")
_OPERATORS = frozenset("add sub mul div mod floordiv floormod min max".split())
_LOW, _HIGH = (int(x) for x in INT32.range())


def run(module: IRModule) -> IRModule:
    return on_schedules(module, _function)


def _function(f: PrimFunc) -> PrimFunc:
    wide = any(e.dtype is INT64 for e in all_exprs(f.body))
    return _Narrow().function(f) if wide else f


class _Narrow(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.facts = Arith()
        self.simplify = Simplifier(self.facts).expr

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Stmt:
        if s.loop_var.dtype is INT64:
            var = Var(s.loop_var.name, INT32, s.loop_var.nonneg)
            inside = substitute_body(s.body, {s.loop_var: E.Cast(INT64, var)})
            start, stop, step = (self._index(e) for e in (s.min, s.stop, s.step))
            s = s.replace(loop_var=var, min=start, stop=stop, step=step, body=inside)
        mark = self.facts.mark()
        self.facts.bind_loop(s.loop_var, s.min, s.stop, s.step)
        made = self.default_stmt(s)
        self.facts.release(mark)
        return made

    def _index(self, e: Expr) -> Expr:
        """The bound of a loop or an index in 32 bits."""
        if e.dtype is not INT64:
            return e
        simple = self.simplify(e)
        fitting = self._fitting(simple, sizes=True)
        return E.Cast(INT32, simple) if fitting is None else fitting

    def _fitting(self, e: Expr, sizes: bool = False) -> Expr | None:
        """The expression in 32 bits; None where something in it may be larger. `sizes`: no variable is."""
        if isinstance(e, Var) and sizes:
            return E.Cast(INT32, e)
        if isinstance(e, IntImm):
            return _imm(e.value) if _LOW <= e.value <= _HIGH else None
        if isinstance(e, E.Cast):
            kind = e.value.dtype
            narrow = isinstance(kind, DataType) and kind.is_integer and (kind is INT32 or kind.bits < INT32.bits)
            return (e.value if kind is INT32 else E.Cast(INT32, e.value)) if narrow else None
        if not isinstance(e, Binary) or e.op not in _OPERATORS:
            return None
        low, high = self.facts.range_of(e)
        a, b = self._fitting(e.a, sizes), self._fitting(e.b, sizes)
        fits = sizes or (_LOW <= low and high <= _HIGH)
        return Binary(e.op, a, b) if a is not None and b is not None and fits else None

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        mask = None if e.mask is None else self.expr(e.mask)
        return E.BufferLoad(e.buffer, tuple(self._at(i) for i in e.indices), mask)

    @rewrites(S.BufferStore)
    def rewrite_store(self, s: S.BufferStore) -> Stmt:
        return s.replace(indices=tuple(self._at(i) for i in s.indices), value=self.expr(s.value))

    def _at(self, e: Expr) -> Expr:
        inner = self.expr(e)
        if inner.dtype is not INT64:
            return inner
        simple = self.simplify(inner)
        fitting = self._fitting(simple)
        return simple if fitting is None else fitting

    @rewrites(E.Binary)
    def rewrite_binary(self, e: Binary) -> Expr:
        a, b = self.expr(e.a), self.expr(e.b)
        if e.op in E.COMPARISON and a.dtype is INT64:
            narrow, other = self._fitting(self.simplify(a)), self._fitting(self.simplify(b))
            if narrow is not None and other is not None:
                a, b = narrow, other
        return e if a is e.a and b is e.b else Binary(e.op, a, b)


def _imm(value: int) -> Expr:
    return IntImm(INT32, value)

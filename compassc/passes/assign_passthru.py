"""Give every operation that needs one a source for its inactive lanes.

Unspecified lanes may hold anything, so the cheapest register is chosen: in the definition of a variable the variable
itself (the builtin `__self`), in a store the old destination where it is a register or the value loads it anyway (a load
of its own would cost time, and race with other TECs), elsewhere zero. After: no call that takes a source is without one.
"""

from __future__ import annotations

from typing import TypeGuard

from ..analysis.structure import Interner
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.visit import Rewriter, Rewritten, for_each_function, rewrites, walk_exprs
from ..ops import spelling
from ._vectors import builtin, zero

NAME = "AssignPassthru"


def lacks_r(e: E.Expr) -> TypeGuard[E.Call]:
    return type(e) is E.Call and e.r is None and e.dtype.is_vector and spelling.needs_r(e)


def _within(e: E.Expr, part: E.Expr) -> bool:
    """Whether an expression is a part of another one."""
    same = Interner().same
    return any(same(x, part) for x in walk_exprs(e))


class _Assign(Rewriter):
    interest = E.F_RAW_R
    skips_statements = True

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        return e.replace(r=zero(e.data_type)) if lacks_r(e) else e

    def with_source(self, e: E.Call, r: E.Expr) -> E.Expr:
        return e.map(self.expr).replace(r=r)

    @rewrites(S.Let)
    def rewrite_let(self, s: S.Let) -> Rewritten:
        if lacks_r(s.value):
            itself = builtin("__self", dtype=s.var.dtype).at(s.span)
            return S.Let(s.var, self.with_source(s.value, itself), span=s.span)
        return self.default_stmt(s)

    @rewrites(S.BufferStore)
    def rewrite_store(self, s: S.BufferStore) -> Rewritten:
        if lacks_r(s.value):
            old = E.BufferLoad(s.buffer, s.indices, span=s.span)
            if s.buffer.scope != "private" and not _within(s.value, old):
                return self.default_stmt(s)
            return S.BufferStore(s.buffer, s.indices, self.with_source(s.value, old), s.mask, span=s.span)
        return self.default_stmt(s)

    @rewrites(S.Evaluate)
    def rewrite_eval(self, s: S.Evaluate) -> Rewritten:
        call = s.value
        if type(call) is not E.Call or call.op != "vstore":
            return self.default_stmt(s)
        value, pointer, stride = call.args
        if not lacks_r(value):
            return self.default_stmt(s)
        pointer, stride = self.expr(pointer), self.expr(stride)
        mask = None if call.mask is None else self.expr(call.mask)
        old = E.Call("vload", (pointer, stride), value.dtype, mask, span=call.span)
        if not _within(value, old):
            return self.default_stmt(s)
        kept = self.with_source(value, old)
        return S.Evaluate(E.Call("vstore", (kept, pointer, stride), call.dtype, mask, span=call.span), span=s.span)


run = for_each_function(lambda f: _Assign().function(f))

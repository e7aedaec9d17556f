"""Tail masks become arithmetic on the predicate word.

The word of the first n lanes is 2^t - 1 with t = n * (32 / lanes); written so that t = 32 gives all ones without
shifting by 32. Constant masks stay: they are literals of C.
"""

from __future__ import annotations

from ..ir import exprs as E
from ..ir.dtypes import INT32
from ..ir.visit import Rewriter, for_each_function, rewrites
from ._vectors import builtin, first_lanes, int32, is_all_true

NAME = "LowerPredicates"
_LETTERS = {32: "b", 16: "h", 8: "w"}


class _Lower(Rewriter):
    interest = E.F_MASK

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        return e.replace(mask=None) if e.mask is not None and is_all_true(e.mask) else e

    @rewrites(E.TailMask)
    def rewrite_tail_mask(self, e: E.TailMask) -> E.Expr:
        count = self.expr(e.count)
        if type(count) is E.IntImm:
            return first_lanes(max(0, min(count.value, e.lanes)), e.lanes)
        if count.dtype is not INT32:
            count = E.Cast(INT32, count)
        shift = (32 // e.lanes) >> 1
        t = E.Binary("shl", count, int32(shift)) if shift else count
        whole = E.Binary("bitxor", E.Binary("shr", t, int32(5)), int32(1))
        word = E.Binary("sub", E.Binary("shl", whole, t), int32(1))
        return builtin(f"__vmov_{_LETTERS[e.lanes]}", word, dtype=e.dtype)


run = for_each_function(lambda f: _Lower().function(f))

"""Multiply by a power of two as a shift. The vendor calls this pass Simplify.

Applies to an integer `vmul` whose right operand is a splat of a constant 2^k, k >= 0, and has the result's type.
"""

from __future__ import annotations

from ..ir import exprs as E
from ..ir.visit import Rewriter, for_each_function, rewrites

NAME = "StrengthReduction"


class _Reduce(Rewriter):
    interest = E.flags_of_calls("vmul")

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        if e.op != "vmul" or not e.dtype.is_integer:
            return e
        x, y = e.args
        if type(y) is not E.Broadcast or type(y.value) is not E.IntImm or x.dtype is not e.dtype:
            return e
        factor = y.value.value
        if factor <= 0 or factor & (factor - 1):
            return e
        shift = E.Broadcast(E.IntImm(y.value.dtype, factor.bit_length() - 1), y.lanes)
        return E.Call("vsl", (x, shift), e.dtype, e.mask, e.r, (("saturate", False),))


run = for_each_function(lambda f: _Reduce().function(f))

"""Replace operations for which there is no single instruction.

A concatenation of constant masks is one constant.
"""

from __future__ import annotations

from ..ir import exprs as E
from ..ir.visit import Rewriter, for_each_function, rewrites

NAME = "LegalizeOperations"


class _Lower(Rewriter):
    interest = E.flags_of_calls("vconcat")

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        if e.op == "vconcat" and e.dtype.is_mask and e.attr("part", "all") == "all":
            return _constant(e)
        return e


def _constant(e: E.Call) -> E.Expr:
    bits = shift = 0
    for x in e.args:
        if type(x) is not E.ConstMask:
            return e
        bits |= x.bits << shift
        shift += x.dtype.lanes
    return E.ConstMask(bits, shift)


run = for_each_function(lambda f: _Lower().function(f))

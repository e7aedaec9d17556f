"""Turn floor division and modulo into what C has.

Before: any module.
After: there is no `floordiv` and `floormod`: they are shifts and masks; `div` and `mod` cut towards zero, as in C.
"""

from __future__ import annotations

from ..ir import exprs as E
from ..ir.exprs import Binary, IntImm
from ..ir.stmts import IRModule
from ..ir.visit import Rewriter, rewrites

NAME = "ExpandDivMod"


def run(module: IRModule) -> IRModule:
    return module.map_functions(lambda f: _Canonicalize().function(f))


class _Canonicalize(Rewriter):
    interest = E.F_FLOORDIV

    @rewrites(E.Binary)
    def rewrite_binary(self, e: E.Binary) -> E.Expr:
        a, b = self.expr(e.a), self.expr(e.b)
        if e.op not in ("floordiv", "floormod"):
            return e if a is e.a and b is e.b else Binary(e.op, a, b)
        assert type(b) is IntImm, "the verifier lets only constants divide so"
        if e.op == "floordiv":
            return Binary("shr", a, IntImm(b.dtype, b.value.bit_length() - 1))
        return Binary("bitand", a, IntImm(b.dtype, b.value - 1))

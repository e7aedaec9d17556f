"""Turn floor division and modulo into what C has.

Before: any module.
After: there is no `floordiv` and `floormod`: scalars with a constant power of two are shifted or masked, everything
else uses C's truncating `div` and `mod`.
"""

from __future__ import annotations

from ..analysis.arith import is_power_of_two
from ..ir import exprs as E
from ..ir.exprs import Binary, Expr, IntImm
from ..ir.stmts import IRModule
from ..ir.visit import Rewriter

NAME = "CanonicalizeDivMod"
_TRUNCATED = {"floordiv": "div", "floormod": "mod"}


def run(module: IRModule) -> IRModule:
    return module.map_functions(lambda f: _Canonicalize().function(f))


class _Canonicalize(Rewriter):
    interest = E.F_FLOORDIV

    def Binary(self, e: Binary) -> Expr:
        a, b = self.expr(e.a), self.expr(e.b)
        if e.op not in _TRUNCATED:
            return e if a is e.a and b is e.b else Binary(e.op, a, b)
        if type(b) is not IntImm or not is_power_of_two(b.value):
            return Binary(_TRUNCATED[e.op], a, b)
        if e.op == "floordiv":
            return Binary("shr", a, IntImm(b.dtype, b.value.bit_length() - 1))
        return Binary("bitand", a, IntImm(b.dtype, b.value - 1))

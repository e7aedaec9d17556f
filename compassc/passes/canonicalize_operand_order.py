"""Put a constant operand of a commutative vector operation second, where later patterns look for it."""

from __future__ import annotations

from ..ir import exprs as E
from ..ir.visit import Rewriter, for_each_function, rewrites
from ..ops import core, spelling
from ._vectors import is_constant

NAME = "CanonicalizeOperandOrder"


class _Canonicalize(Rewriter):
    interest = E.F_CALL

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        if spelling.is_builtin(e.op) or not core.get(e.op).commutative:
            return e
        if is_constant(e.args[0]) and not is_constant(e.args[1]):
            return e.replace(args=(e.args[1], e.args[0]))
        return e


run = for_each_function(lambda f: _Canonicalize().function(f))

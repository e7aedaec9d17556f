"""Replace loops of kind unrolled by one copy of their body per iteration.

Before: loops of kind unrolled have constant bounds (CompassError otherwise).
After: there is no loop of kind unrolled; one that a `break` leaves is a serial loop. Each copy has variables of its own.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from compass_core.errors import CompassError

from ..analysis.statements import fresh_copy, mutable_vars, own_breaks
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import IntImm
from ..ir.printer import print_expr
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import Rewritten, StatementRewriter, rewrites, substitute_body, walk_stmts

NAME = "UnrollLoop"


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _function(f: PrimFunc) -> PrimFunc:
    if not any(type(s) is S.For and s.kind == "unrolled" for s in walk_stmts(f.body)):
        return f
    return _Unroll(mutable_vars(f)).function(f)


class _Unroll(StatementRewriter):
    def __init__(self, mutable: AbstractSet[E.Var]) -> None:
        super().__init__()
        self.mutable = mutable

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        s = self.default_stmt(s)
        if s.kind != "unrolled":
            return s
        if own_breaks(s.body) or s.loop_var in self.mutable:
            return S.For(s.loop_var, "serial", s.min, s.stop, s.step, s.body, span=s.span)
        values = _values(s)
        copies = [substitute_body(s.body, {s.loop_var: IntImm(s.loop_var.data_type, value)}) for value in values]
        return [x for i, copy in enumerate(copies) for x in (fresh_copy(copy) if i else copy)]


def _values(s: S.For) -> range:
    """The values of the loop variable."""
    bounds = []
    for e in (s.min, s.stop, s.step):
        if type(e) is IntImm:
            bounds.append(e.value)
        else:
            message = f"an unrolled loop needs constant bounds, got {print_expr(e)}"
            raise CompassError(
                message, s.span, code="unroll", help="use range() where the bounds are known at run time"
            )
    return range(*bounds)

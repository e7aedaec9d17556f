"""Transfers with an event: started, and waited for."""

from __future__ import annotations

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, VOID
from ..ir.exprs import Binary, Expr, IntImm, Var
from ..ir.stmts import Stmt
from ..ir.visit import Rewriter, rewrites


def bit(event: Expr) -> Expr:
    """The bit of an event in a set of them."""
    return Binary("shl", IntImm(INT32, 1), event)


def wait(event: Expr) -> Stmt:
    """Wait for the transfers of an event."""
    return S.Evaluate(E.Call("wait_events", (bit(event),), VOID))


class Started(Rewriter):
    """Statements whose copies are only started, with an event."""

    def __init__(self, event: Var) -> None:
        super().__init__()
        self.event = event

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> Expr:
        if e.op != "dma_copy":
            return e
        return E.Call("async_dma_copy", (*e.args, self.event), VOID, span=e.span)

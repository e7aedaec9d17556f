"""Replace loops over the TECs by the number of the TEC that runs.

Before: loops of kind tec may stand anywhere; nested ones have equal bounds (CompassError otherwise).
After: there is no loop of kind tec. A function that had one begins with `tid = get_local_id()`, and each body stands
under the condition that `tid` lies in the loop's range, which is left out where all TECs do.
"""

from __future__ import annotations

from compass_core import targets
from compass_core.errors import CompassError, Note

from ..analysis.statements import is_const, own_breaks
from ..analysis.structure import Interner
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import BOOL, INT32
from ..ir.exprs import Binary, Cast, Expr, Var
from ..ir.printer import print_expr
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import Rewritten, StatementRewriter, rewrites, substitute_body, walk_stmts

NAME = "LowerThreadLoops"


def run(module: IRModule) -> IRModule:
    return module.map_functions(lambda f: _function(f, module.target))


def _function(f: PrimFunc, target: str) -> PrimFunc:
    if not any(type(s) is S.For and s.kind == "tec" for s in walk_stmts(f.body)):
        return f
    tid = Var("tid", INT32, True)
    body = _Lower(tid, targets.load(target).tecs).body(f.body)
    return f.replace(body=(S.Let(tid, E.Call("get_local_id", (), INT32, span=f.span), span=f.span), *body))


class _Lower(StatementRewriter):
    def __init__(self, tid: Var, tecs: int) -> None:
        super().__init__()
        self.tid, self.tecs = tid, tecs
        self.outer: list[S.For] = []
        self.interner = Interner()

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        if s.kind != "tec":
            return self.default_stmt(s)
        self._check(s)
        value: Expr = self.tid if s.loop_var.dtype is INT32 else Cast(s.loop_var.data_type, self.tid)
        self.outer.append(s)
        body = self.body(substitute_body(s.body, {s.loop_var: value}))
        self.outer.pop()
        guard = self._guard(s, value)
        if guard is None or self.outer:
            return body
        return S.IfThenElse(guard, body, (), span=s.span)

    def _check(self, s: S.For) -> None:
        if own_breaks(s.body):
            help = "put what follows under an if"
            raise CompassError(
                "break and continue cannot be of a loop over the TECs", s.span, code="tec-range", help=help
            )
        if not self.outer:
            return
        outer = self.outer[-1]
        if not (self.interner.same(s.min, outer.min) and self.interner.same(s.stop, outer.stop)):
            inner_text, outer_text = (f"{print_expr(x.min)}..{print_expr(x.stop)}" for x in (s, outer))
            message = f"nested tec_range loops must have equal bounds, got {inner_text} inside {outer_text}"
            help = "write the outer range inside too, or put the inner loop's condition into an if"
            raise CompassError(
                message, s.span, code="tec-range", notes=(Note("the outer loop", outer.span),), help=help
            )

    def _guard(self, s: S.For, value: Expr) -> Expr | None:
        """The condition that the running TEC is in the loop's range; None when it always is."""
        below = None if type(s.stop) is E.IntImm and s.stop.value >= self.tecs else Binary("lt", value, s.stop)
        if is_const(s.min, 0):
            return below
        above = Binary("le", s.min, value)
        guard = above if below is None else Binary("and", above, below)
        assert guard.dtype is BOOL
        return guard

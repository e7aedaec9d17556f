"""Evaluate the bounds of a loop once, before it, where the loop could change them.

C evaluates the condition of a `for` in every iteration, the language evaluates a range once. After: no bound of a loop
uses a variable that the loop assigns, memory that it may write, or the result of a sub-function.
"""

from __future__ import annotations

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.visit import Rewritten, StatementRewriter, all_exprs, for_each_function, rewrites, walk_exprs, walk_stmts
from ..ops import core, spelling

NAME = "FreezeLoopBounds"


class _Freeze(StatementRewriter):
    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        s = self.default_stmt(s)
        if all(type(e) is E.IntImm for e in (s.min, s.stop, s.step)):
            return s
        bounds = s.min.flags | s.stop.flags | s.step.flags
        assigned = {x.var for x in walk_stmts(s.body, E.F_CHANGES) if isinstance(x, (S.Assign, S.SetElement))}
        writes = bool(bounds & (E.F_LOAD | E.F_POINTER)) and _writes_memory(s.body)
        before: list[S.Stmt] = []

        def frozen(e: E.Expr, word: str) -> E.Expr:
            if not _may_change(e, assigned, writes):
                return e
            var = E.Var(f"{s.loop_var.name}_{word}", e.dtype)
            before.append(S.Let(var, e, span=s.span))
            return var

        start, stop, step = frozen(s.min, "start"), frozen(s.stop, "stop"), frozen(s.step, "step")
        if not before:
            return s
        return [*before, S.For(s.loop_var, s.kind, start, stop, step, s.body, span=s.span)]


def _writes_memory(body: S.Body) -> bool:
    """Whether a body may write memory."""
    calls = E.F_CALL | E.F_FUNC
    return any(type(s) is S.BufferStore for s in walk_stmts(body)) or any(map(_writes, all_exprs(body, calls)))


def _writes(e: E.Expr) -> bool:
    if type(e) is E.FuncCall:
        return True
    if type(e) is not E.Call:
        return False
    return spelling.is_builtin(e.op) or core.get(e.op).effect not in ("pure", "read")


def _may_change(e: E.Expr, assigned: set[E.Var], writes: bool) -> bool:
    if e.flags & E.F_FUNC:
        return True
    if writes and e.flags & (E.F_LOAD | E.F_POINTER):
        return True
    return any(type(x) is E.Var and x in assigned for x in walk_exprs(e))


run = for_each_function(lambda f: _Freeze().function(f))

"""Whole-register loads and stores through a pointer to registers become subscripts again."""

from __future__ import annotations

from ..analysis.statements import is_const
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.visit import Rewriter, Rewritten, for_each_function, rewrites

NAME = "RaiseVectorAccesses"


def _element(pointer: E.Expr, stride: E.Expr, kind: object, mask: E.Expr | None) -> tuple[E.Buffer, E.Expr] | None:
    """The register that an access means, when it is exactly one behind a pointer variable."""
    if mask is not None or type(pointer) is not E.Pointer or not is_const(stride, 1):
        return None
    base = pointer.base
    if type(base) is not E.Var or pointer.elem is not kind or base.pointer_type.elem is not kind:
        return None
    return E.Buffer(base, kind), pointer.offset


class _Revert(Rewriter):
    interest = E.flags_of_calls("vload", "vstore")
    skips_statements = True

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        found = _element(e.args[0], e.args[1], e.dtype, e.mask) if e.op == "vload" else None
        return e if found is None else E.BufferLoad(found[0], (found[1],))

    @rewrites(S.Evaluate)
    def rewrite_eval(self, s: S.Evaluate) -> Rewritten:
        call = s.value
        if type(call) is not E.Call or call.op != "vstore":
            return self.default_stmt(s)
        call = call.map(self.expr)
        value, pointer, stride = call.args
        found = _element(pointer, stride, value.dtype, call.mask)
        if found is None:
            return s if call is s.value else S.Evaluate(call, span=s.span)
        return S.BufferStore(found[0], (found[1],), value, None, span=s.span)


run = for_each_function(lambda f: _Revert().function(f))

"""Replace variables that are defined once, as a constant, by the constant.

Before: any module.
After: no unchanging variable is defined as a literal, a splat of a literal, or a constant mask. Variables that are
assigned, set by element, address-taken or given to inline assembly stay.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from compass_core.operators import DIVISIONS, div

from ..analysis.statements import mutable_vars
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.exprs import Expr
from ..ir.folding import fold
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import Rewriter, Rewritten, rewrites, walk_stmts

NAME = "ConstantPropagation"


def run(module: IRModule) -> IRModule:
    return module.map_functions(_function)


def _is_constant(e: Expr) -> bool:
    return isinstance(e, (E.IntImm, E.FloatImm, E.ConstMask)) or (type(e) is E.Broadcast and _is_constant(e.value))


def _function(f: PrimFunc) -> PrimFunc:
    if not any(type(s) is S.Let and type(s.value) in _CANDIDATES for s in walk_stmts(f.body)):
        return f
    return _Fold(mutable_vars(f)).function(f)


_CANDIDATES = (E.IntImm, E.FloatImm, E.ConstMask, E.Broadcast, E.Var)


_UNNAMED = E.F_MASK | E.F_DIVISION | E.F_MASK_TYPE
"""What has constants to fold although no variable is one: masks, divisions, splats of bools."""


class _Fold(Rewriter):
    def __init__(self, mutable: AbstractSet[E.Var]) -> None:
        super().__init__()
        self.mutable = mutable
        self.values: dict[E.Var, Expr] = {}

    def expr(self, e: E.Expr) -> E.Expr:
        if type(e) is E.Var:
            return self.values.get(e, e)
        return super().expr(e) if self.values or e.flags & _UNNAMED else e

    @rewrites(E.Broadcast)
    def rewrite_broadcast(self, e: E.Broadcast) -> E.Expr:
        """A splat of a bool literal is a constant mask."""
        value = self.expr(e.value)
        if type(value) is E.IntImm and value.dtype.is_bool:
            return E.ConstMask(-value.value, e.lanes)
        return e if value is e.value else E.Broadcast(value, e.lanes)

    @rewrites(E.Binary)
    def rewrite_binary(self, e: E.Binary) -> E.Expr:
        """A quotient of constants is computed here: where C leaves it undefined, the compiler could do anything."""
        e = self.default(e)
        a, b = (x.value if type(x) is E.Broadcast else x for x in (e.a, e.b))
        if e.op not in DIVISIONS or not type(a) is type(b) is E.IntImm:
            return e
        value = fold(e.op, a.value, b.value, a.dtype)
        assert value is not None  # divisions have one for all operands
        if e.op == "div" and e.dtype.is_vector:  # lanes saturate
            value = int(min(div(a.value, b.value), a.data_type.range()[1]))
        quotient = E.IntImm(a.dtype, value)
        return E.Broadcast(quotient, e.dtype.lanes) if e.dtype.is_vector else quotient

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = self.default(e)
        all_lanes = type(e.mask) is E.ConstMask and e.mask.all_true
        return e.replace(mask=None, r=None) if all_lanes else e

    @rewrites(S.Let)
    def rewrite_let(self, s: S.Let) -> Rewritten:
        s = self.default_stmt(s)
        if s.var in self.mutable or not _is_constant(s.value):
            return s
        self.values[s.var] = s.value
        return None

"""Turn loops of kind vectorized into vector operations.

Before: the number of iterations of a vectorized loop is constant, or bounded by a constant through `% c`, `min(..., c)`
(CompassError otherwise).
After: there is no loop of kind vectorized. The loop variable has become a Ramp, loads and stores that depend on it are
vectors, masked by a TailMask where fewer lanes than the bound are active and by the condition of an If or a Select around
them; elements that lie apart are gathered where 16 bits reach them; functions of floats such as exp take vectors. A loop
whose body has no vector form (other calls, assignments, elements that may lie anywhere, numbers of 64 bits, ...) is a
serial loop.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from compass_core.errors import CompassError

from ..analysis.arith import Arith
from ..analysis.simplify import Simplifier
from ..analysis.statements import is_const, mutable_vars
from ..analysis.structure import is_pure, may_divide_by_zero
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, PointerType
from ..ir.exprs import Binary, Expr, IntImm, Var
from ..ir.printer import print_expr
from ..ir.stmts import Body, IRModule, PrimFunc
from ..ir.visit import Rewritten, StatementRewriter, all_exprs, rewrites, walk_stmts
from ._carried import conditions_of_turns
from ._vectorizer import NoVectorForm, Vectorizer

NAME = "VectorizeLoop"
_MOST_LANES = 64
"""Lanes up to which the number of iterations need not be written so that its bound is seen."""


def run(module: IRModule) -> IRModule:
    return module.map_functions(lambda f: _function(f, module.target != "host"))


def _function(f: PrimFunc, on_npu: bool) -> PrimFunc:
    if not any(type(s) is S.For and s.kind == "vectorized" for s in walk_stmts(f.body)):
        return f
    return VectorLoops(mutable_vars(f), on_npu).function(f)


class VectorLoops(StatementRewriter):
    """The vectorized loops of a function with `mutable` variables. `on_npu`: whether there are the operations of NPUs."""

    def __init__(self, mutable: AbstractSet[Var], on_npu: bool = True) -> None:
        super().__init__()
        self.mutable, self.on_npu = mutable, on_npu
        self.pointers: dict[Var, Expr] = {}
        self.arith = Arith(mutable)
        self.simplify = Simplifier(self.arith).expr

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        s = self.inside(s)
        if s.kind != "vectorized":
            return s
        extent = self._extent(s)
        lanes = self.lanes_of(extent)
        if lanes is None:
            message = f"a vectorized loop needs a constant number of iterations, got {print_expr(extent)}"
            help = "use a constant, `x % constant`, or an if that bounds the loop variable as the whole body"
            raise CompassError(message, s.span, code="vectorize", help=help)
        serial = S.For(s.loop_var, "serial", s.min, s.stop, s.step, s.body, span=s.span)
        if lanes < 2 or not is_const(s.step, 1) or s.loop_var in self.mutable or not is_pure(s.min):
            return serial
        mask = None if type(extent) is IntImm else self._tail(extent, lanes)
        if mask is not None and any(map(may_divide_by_zero, all_exprs(s.body))):
            return serial  # with no lane active, a checked run must not report the division
        made = self.vector_form(s, lanes, mask)
        if made is not None and self.on_npu:
            made = (*conditions_of_turns(s, lanes, extent, self.arith, self.pointers), *made)
        return serial if made is None else made

    @rewrites(S.Let)
    def rewrite_let(self, s: S.Let) -> Rewritten:
        if isinstance(s.var.dtype, PointerType) and s.var not in self.mutable:
            self.pointers[s.var] = s.value
        return s

    @rewrites(S.IfThenElse)
    def rewrite_if(self, s: S.IfThenElse) -> Rewritten:
        return S.IfThenElse(
            s.condition,
            self._under(s.condition, True, s.then_case),
            self._under(s.condition, False, s.else_case or ()),
            span=s.span,
        )

    def _under(self, cond: Expr, truth: bool, body: Body) -> Body:
        mark = self.arith.mark()
        self.arith.assume(cond, truth)
        body = self.body(body)
        self.arith.release(mark)
        return body

    def inside(self, s: S.For) -> S.For:
        """The loop with its body rewritten under the ranges that hold inside."""
        mark = self.arith.mark()
        self.arith.bind_loop(s.loop_var, s.min, s.stop, s.step)
        s = self.default_stmt(s)
        self.arith.release(mark)
        return s

    def lanes_of(self, extent: Expr) -> int | None:
        """The number of lanes for a number of iterations: the constant that it is, or that it cannot exceed."""
        lanes = bound(extent)
        if lanes is None:
            most = self.arith.range_of(extent)[1]
            if most > _MOST_LANES and (known := self._most(extent)) < most:
                most = 1 << (known - 1).bit_length()  # lanes behind the end are masked
            lanes = most if 0 < most <= _MOST_LANES else None
        return lanes

    def _most(self, extent: Expr) -> int:
        """What a number cannot exceed, by the conditions around it, too; at least 1."""
        if type(extent) is Binary and extent.op == "max":
            return max(self._most(extent.a), self._most(extent.b))
        return max(self.arith.difference(extent, IntImm(extent.data_type, 0))[1], 1)

    def vector_form(self, s: S.For, lanes: int, mask: Expr | None) -> Body | None:
        """The body of a loop for all iterations at once, None where it has no such form."""
        try:
            return Vectorizer(self.arith, self.simplify, s, lanes, mask, self.on_npu).body(s.body)
        except NoVectorForm:
            return None

    def _extent(self, s: S.For) -> Expr:
        if is_const(s.min, 0):
            return s.stop
        if type(s.stop) is Binary and s.stop.op == "add" and s.stop.a is s.min:
            return s.stop.b
        return self.simplify(Binary("sub", s.stop, s.min))

    def _tail(self, extent: Expr, lanes: int) -> Expr:
        """The mask of the lanes below `extent`."""
        if self.arith.range_of(extent)[0] < 0:
            extent = Binary("max", extent, IntImm(extent.data_type, 0))
        return E.TailMask(extent if extent.dtype is INT32 else E.Cast(INT32, extent), lanes)


def bound(extent: Expr) -> int | None:
    """The value of a number of iterations, or the constant that it is limited to."""
    if type(extent) is IntImm:
        return extent.value
    if type(extent) is not Binary:
        return None
    if extent.op in ("floormod", "mod"):
        return extent.b.value if type(extent.b) is IntImm and extent.b.value > 0 else None
    if extent.op == "min":
        bounds = [b for b in (bound(extent.a), bound(extent.b)) if b is not None]
        return min(bounds) if bounds else None
    if extent.op == "max":
        pairs = ((extent.a, extent.b), (extent.b, extent.a))
        return next((bound(x) for x, zero in pairs if is_const(zero, 0)), None)
    return None

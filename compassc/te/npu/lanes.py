"""Vectorised loops as vector operations, those that reduce, too.

A vectorised loop that only joins values into one element (`c[i] = c[i] + ...`) becomes a `LaneUpdate`: the element is
joined with all lanes of a vector. `registers` makes accumulators of these. Other loops are those of VectorizeLoop.
"""

from __future__ import annotations

from typing import Any

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, DataType
from compassc.ir.exprs import Binary, Buffer, Expr, FloatImm, IntImm
from compassc.ir.node import node
from compassc.ir.stmts import Body, PrimFunc
from compassc.ir.visit import Rewritten, rewrites, walk_exprs
from compassc.passes._blocks import is_const, mutable_vars
from compassc.passes.vectorize_loop import NoVectorForm, Vectorizer, VectorLoops
from compassc.te.npu.facts import guarded

JOINS = ("add", "min", "max")
_BYTES = ("int8", "uint8")


@node()
class LaneUpdate(S.Stmt):
    """`buffer[indices] = op(buffer[indices], all active lanes of value)`; `dot`: the value is the sum of products of
    `value` and `other`, four lanes each."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    other: Expr | None
    mask: Expr | None
    op: str


def vectors(f: PrimFunc) -> PrimFunc:
    """The function without vectorised loops; with `LaneUpdate`s, which are no statements of kernels."""
    return _Loops(mutable_vars(f)).function(f)


class _Loops(VectorLoops):
    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        if s.kind == "vectorized" and _reduces(s):
            s = self.inside(s)
            return self._reduced(s) or S.For(s.var, "serial", s.start, s.stop, s.step, s.body, span=s.span)
        return super().rewrite_for(s)

    def _reduced(self, s: S.For) -> Body | None:
        """A loop that joins values into one element; None where it has no vector form."""
        found = _reduction(s.body)
        extent = self._extent(s)
        lanes = self.lanes_of(extent)
        if found is None or lanes is None or lanes < 2 or not is_const(s.step, 1):
            return None
        store, op, value, all_conditions = found
        lane = Vectorizer(self.arith, self.simplify, s, lanes, None)
        try:
            around = [c for c in all_conditions if lane.expr(c) is c]
        except NoVectorForm:
            return None
        conditions = [c for c in all_conditions if not any(c is a for a in around)]
        kind = store.buffer.dtype
        if any(i.flags & E.F_LOAD for i in store.indices) or not _joins(op, kind):
            return None
        each = lanes if op == "add" else kind.native_lanes
        if lanes % each:
            return None
        updates = []
        for first in range(0, lanes, each):
            start = self.simplify(Binary("add", s.start, IntImm(s.var.data_type, first)))
            left = extent if not first else self.simplify(Binary("sub", extent, IntImm(extent.data_type, first)))
            mask = None if isinstance(extent, IntImm) else self._tail(left, each)
            made = self._update(s.replace(start=start), each, mask, value, conditions)
            if made is None:
                return None
            vector, mask = made
            pair = _dot(op, vector)
            x, y = pair if pair is not None else (vector, None)
            updates.append(LaneUpdate(store.buffer, store.indices, x, y, mask, op, span=store.span))
        return tuple(guarded(around, list(updates)))

    def _update(
        self, s: S.For, lanes: int, mask: Expr | None, value: Expr, conditions: list[Expr]
    ) -> tuple[Expr, Expr | None] | None:
        """The vector of values, and the lanes of it that count."""
        try:
            for cond in conditions:
                chosen = Vectorizer(self.arith, self.simplify, s, lanes, mask).vector(cond)
                mask = chosen if mask is None else Binary("bitand", mask, chosen)
            made = Vectorizer(self.arith, self.simplify, s, lanes, mask)
            made.guarded = bool(conditions)
            return made.vector(value), mask
        except NoVectorForm:
            return None


def _reduces(s: S.For) -> bool:
    """Whether a loop only joins values into one element."""
    found = _reduction(s.body)
    return found is not None and not any(s.var in set(walk_exprs(i)) for i in found[0].indices)


def _joins(op: str, dtype: DataType) -> bool:
    """Whether the lanes of a vector of this type can be joined in it."""
    if op == "add":
        return dtype in ("int32", "uint32", "float32")
    return bool(dtype.native_lanes) and not dtype.is_bfloat and dtype.bits <= 32


def _reduction(body: Body) -> tuple[S.Store, str, Expr, list[Expr]] | None:
    """The store of a loop that only joins values into one element, how, the value, and the conditions around it."""
    conditions: list[Expr] = []
    while len(body) == 1 and isinstance(body[0], S.If) and not body[0].orelse:
        conditions.append(body[0].cond)
        body = body[0].then
    if len(body) != 1 or not isinstance(body[0], S.Store):
        return None
    store = body[0]
    value = store.value
    if not isinstance(value, Binary) or value.op not in JOINS:
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        if isinstance(old, E.Load) and old.buffer.data is store.buffer.data and _same(old.indices, store.indices):
            if any(isinstance(x, E.Load) and x.buffer.data is store.buffer.data for x in walk_exprs(new)):
                return None
            return store, value.op, new, conditions
    return None


def _same(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    from compassc.analysis.structure import Interner

    interner = Interner()
    return len(a) == len(b) and all(map(interner.same, a, b))


def _dot(op: str, value: Expr) -> tuple[Expr, Expr] | None:
    """The vectors of bytes whose products are added, where that is what is added."""
    if op != "add" or not isinstance(value, Binary) or value.op != "mul" or value.dtype.lanes % 32:
        return None
    if value.data_type.element_of is not INT32:
        return None
    sides = [_widened(x) for x in (value.a, value.b)]
    if sides[0] is None or sides[1] is None:
        return None
    return sides[0], sides[1]


def _widened(e: Expr) -> Expr | None:
    """The vector of bytes that a vector of 32-bit integers was converted from."""
    while isinstance(e, E.Call) and e.op == "cast" and e.dtype.is_integer:
        e = e.args[0]
        if str(e.data_type.element_of) in _BYTES:
            return e
    return None


def identity(op: str, kind: DataType) -> Expr:
    """What changes nothing when it is joined."""
    if kind.is_integer:
        low, high = kind.integer_range()
        return IntImm(kind, {"add": 0, "min": high, "max": low}[op])
    return FloatImm(kind, {"add": 0.0, "min": float("inf"), "max": float("-inf")}[op])


def across(op: str, vector: Expr) -> Expr:
    """All lanes of a vector joined."""
    attrs: Any = () if op == "add" else (("return_idx", False),)
    name = {"add": "vrpadd", "min": "vrpmin", "max": "vrpmax"}[op]
    return E.GetElement(E.Call(name, (vector,), vector.dtype, attrs=attrs), IntImm(INT32, 0))

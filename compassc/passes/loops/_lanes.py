"""Vectorised loops as vector operations, those that reduce, too.

A vectorised loop that only joins values into one element (`c[i] = c[i] + ...`) becomes a `LaneUpdate`: the element is
joined with all lanes of a vector. VectorizeReductions makes accumulators of these. Other loops are those of VectorizeLoop.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import reduce
from typing import Any

from compass_core.targets import Target
from compassc.analysis.conditions import guarded
from compassc.analysis.statements import is_const, mutable_vars
from compassc.analysis.structure import Interner
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import FLOAT32, INT32, DataType
from compassc.ir.exprs import Binary, Buffer, Expr, FloatImm, IntImm, Var
from compassc.ir.node import node
from compassc.ir.stmts import Body, PrimFunc
from compassc.ir.visit import Rewritten, rewrites, walk_exprs
from compassc.passes._vectorizer import NoVectorForm, Vectorizer
from compassc.passes.vectorize_loop import VectorLoops

JOINS = ("add", "mul", "min", "max")
_BYTES = ("int8", "uint8")
HALVES = ("float16", "bfloat16")


@node()
class LaneUpdate(S.Stmt):
    """`buffer[indices] = op(buffer[indices], all active lanes of value)`; with `other` the products of the two, which are
    narrower than what they are added to."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    other: Expr | None
    mask: Expr | None
    op: str


def vectors(f: PrimFunc, target: Target) -> PrimFunc:
    """The function without vectorised loops; with `LaneUpdate`s, which are no statements of kernels."""
    return _Loops(mutable_vars(f), target.version == "X2").function(f)


class _Loops(VectorLoops):
    def __init__(self, mutable: AbstractSet[Var], sums_of_halves: bool) -> None:
        super().__init__(mutable)
        self.sums_of_halves = sums_of_halves
        """Whether products of halves can be added four at a time."""

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        if s.kind == "vectorized" and _reduces(s):
            s = self.inside(s)
            return self._reduced(s) or S.For(s.loop_var, "serial", s.min, s.stop, s.step, s.body, span=s.span)
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
        each = lanes if op in ("add", "mul") else kind.native_lanes
        updates = []
        for first in range(0, lanes, each):
            start = self.simplify(Binary("add", s.min, IntImm(s.loop_var.data_type, first)))
            left = extent if not first else self.simplify(Binary("sub", extent, IntImm(extent.data_type, first)))
            whole = isinstance(left, IntImm) and left.value >= each
            mask = None if whole else self._tail(left, each)
            made = self._update(s.replace(min=start), each, mask, value, conditions)
            if made is None:
                return None
            vector, mask = made
            x, y = self._dot(op, vector, mask) or (vector, None)
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

    def _dot(self, op: str, value: Expr, mask: Expr | None) -> tuple[Expr, Expr] | None:
        """The vectors of bytes or halves whose products are added, where that is what is added and there is an operation;
        bytes that are added alone are products with 1."""
        if op == "add" and value.data_type.element_of is INT32 and not value.dtype.lanes % 32:
            alone = _widened(value)
            if alone is not None and str(alone.data_type.element_of) in _BYTES:
                kind = alone.data_type
                return alone, E.Broadcast(IntImm(kind.element_of, 1), kind.lanes)
        if op != "add" or not isinstance(value, Binary) or value.op != "mul" or value.dtype.bits != 32:
            return None
        a, b = _widened(value.a), _widened(value.b)
        if a is None or b is None:
            return None
        if a.dtype.is_integer:
            return (a, b) if value.data_type.element_of is INT32 and not value.dtype.lanes % 32 else None
        fits = a.dtype is b.dtype and not value.dtype.lanes % 16
        if not self.sums_of_halves:  # even and odd lanes are added one after the other, one register at a time
            fits = fits and mask is None and value.dtype.lanes == 16
        return (a, b) if fits else None


def _reduces(s: S.For) -> bool:
    """Whether a loop only joins values into one element."""
    found = _reduction(s.body)
    return found is not None and not any(s.loop_var in set(walk_exprs(i)) for i in found[0].indices)


def _joins(op: str, dtype: DataType) -> bool:
    """Whether the lanes of a vector of this type can be joined in it."""
    if op == "mul" and dtype.bits < 16:
        return False
    return bool(dtype.native_lanes) and not dtype.is_bfloat and dtype.bits <= 32


def _reduction(body: Body) -> tuple[S.BufferStore, str, Expr, list[Expr]] | None:
    """The store of a loop that only joins values into one element, how, the value, and the conditions around it."""
    conditions: list[Expr] = []
    while len(body) == 1 and isinstance(body[0], S.IfThenElse) and not body[0].else_case:
        conditions.append(body[0].condition)
        body = body[0].then_case
    if len(body) != 1 or not isinstance(body[0], S.BufferStore):
        return None
    store = body[0]
    value = store.value
    if not isinstance(value, Binary) or value.op not in JOINS:
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        if isinstance(old, E.BufferLoad) and old.buffer.data is store.buffer.data and _same(old.indices, store.indices):
            if any(isinstance(x, E.BufferLoad) and x.buffer.data is store.buffer.data for x in walk_exprs(new)):
                return None
            return store, value.op, new, conditions
    return None


def _same(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    interner = Interner()
    return len(a) == len(b) and all(map(interner.same, a, b))


def _widened(e: Expr) -> Expr | None:
    """The vector of bytes or halves that a vector of 32 bits was converted from."""
    while isinstance(e, E.Call) and e.op == "cast" and e.dtype.is_floating == e.args[0].dtype.is_floating:
        e = e.args[0]
        if str(e.data_type.element_of) in (*_BYTES, *HALVES):
            return e
    return None


def identity(op: str, kind: DataType) -> Expr:
    """What changes nothing when it is joined."""
    if kind.is_integer:
        low, high = kind.integer_range()
        return IntImm(kind, {"add": 0, "mul": 1, "min": high, "max": low}[op])
    return FloatImm(kind, {"add": 0.0, "mul": 1.0, "min": float("inf"), "max": float("-inf")}[op])


def across(op: str, vector: Expr) -> Expr:
    """All lanes of a vector joined: sums of halves are float32."""
    if op == "mul":  # there is no operation that multiplies them
        lanes: list[Expr] = [E.GetElement(vector, IntImm(INT32, i)) for i in range(vector.dtype.lanes)]
        return reduce(lambda a, b: Binary("mul", a, b), lanes)
    attrs: Any = () if op == "add" else (("return_idx", False),)
    name = {"add": "vrpadd", "min": "vrpmin", "max": "vrpmax"}[op]
    kind = vector.data_type
    if op == "add" and kind.is_floating and kind.bits == 16:
        kind = FLOAT32.with_lanes(kind.lanes // 2)
    return E.GetElement(E.Call(name, (vector,), kind, attrs=attrs), IntImm(INT32, 0))

"""Layouts that go with an order of loops."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.analysis.conditions import conjuncts
from compassc.analysis.itermap import Digit, digits_of, disjoint, is_dense
from compassc.ir import stmts as S
from compassc.ir.exprs import Buffer, Expr, Var
from compassc.ir.operators import as_expr, binary
from compassc.tir.blocks import constant, number
from compassc.tir.index_map import IndexMap


def suggest_index_map(
    buffer: Buffer, indices: Sequence[object], loops: Sequence[S.For], predicate: object = True
) -> IndexMap | None:
    """The layout in which loops, the outermost first, go through a buffer element by element that they access at `indices`:
    a dimension for each part of an index that a loop is. None where indices are no such sums, or where a condition leaves
    turns out."""
    if predicate is not True and conjuncts(as_expr(predicate)):
        return None
    sizes = {s.loop_var: constant(s.stop) for s in loops}
    if any(n is None for n in sizes.values()) or len(indices) != len(buffer.shape):
        return None
    known = {v: n for v, n in sizes.items() if n is not None}
    forms = [digits_of(as_expr(e), known) for e in indices]
    found = [f for f in forms if f is not None and is_dense(f) and not f.moved and not f.base]
    parts = [(d, i) for i, f in enumerate(found) for d in f.digits]
    if len(found) < len(forms) or not disjoint([d for d, _ in parts]):
        return None
    order = list(known)
    parts.sort(key=lambda part: (order.index(part[0].var), -part[0].lower))
    params = [Var(f"i{i}", as_expr(e).dtype) for i, e in enumerate(indices)]
    top = [max((d.scale for d in f.digits), default=1) for f in found]
    return IndexMap(params, [_part(params[i], d, d.scale == top[i]) for d, i in parts])


def _part(index: Var, digit: Digit, is_highest: bool) -> Expr:
    """The value of one part of an index."""
    value: Expr = index if digit.scale == 1 else binary("floordiv", index, number(digit.scale, index))
    return value if is_highest else binary("floormod", value, number(digit.extent, index))

"""Intrinsics for random loops of a stage: described by what the stage computes, done by loops that run backwards."""

from __future__ import annotations

import itertools
import random

from compassc import te
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL
from compassc.ir.operators import as_expr
from compassc.ir.tensor_exprs import ProducerLoad, Reduce, reads
from compassc.ir.visit import rewrite
from compassc.te.tensor import tensor_of


def tensorize(draw: random.Random, stage: te.Stage) -> None:
    """Splits some axes of a stage, puts those parts inside and has them done by an intrinsic."""
    if not isinstance(stage.op, te.ComputeOp) or stage.relations or not stage.leaf_iter_vars:
        raise te.ScheduleError("its loops were scheduled")
    tile: dict[te.IterVar, tuple[te.IterVar, int]] = {}
    roots = list(stage.leaf_iter_vars)
    for axis in roots:
        extent = axis.dom.extent.value
        way = draw.choice(("whole", "part", "outside"))
        if way == "whole":
            tile[axis] = axis, extent
        elif way == "part":
            factor = draw.choice([n for n in range(1, extent + 1) if extent % n == 0 or draw.random() < 0.1])
            tile[axis] = stage.split(axis, factor=factor)[1], factor
    if not tile:
        raise te.ScheduleError("nothing is left")
    inside = [leaf for leaf, _ in tile.values()]
    stage.reorder(*(a for a in stage.leaf_iter_vars if a not in inside), *inside)
    stage.tensorize(inside[0], _intrinsic(stage, roots, tile))


def _intrinsic(stage: te.Stage, roots: list[te.IterVar], tile: dict) -> te.TensorIntrin:
    spatial = [a for a in stage.axis if a in tile]
    reduced = [a for a in stage.reduce_axis if a in tile]
    order = [a for a in roots if a in tile]  # an intrinsic's axes are those of the loops, in their order
    spatial.sort(key=order.index)
    reduced.sort(key=order.index)
    kept = [te.reduce_axis((0, tile[a][1]), name=a.name) for a in reduced]
    inputs: dict[tuple, tuple[te.Tensor, tuple]] = {}

    def body(*points):
        values = {a.as_expr(): as_expr(p) for a, p in zip(spatial, points)}
        values |= {a.as_expr(): k.as_expr() for a, k in zip(reduced, kept)}
        sizes = {as_expr(p): tile[a][1] for a, p in zip(spatial, points)}
        sizes |= {k.as_expr(): tile[a][1] for a, k in zip(reduced, kept)}
        zero = {a.as_expr(): E.IntImm(a.as_expr().dtype, 0) for a in roots if a not in tile}

        def placed(x):
            if not isinstance(x, ProducerLoad):
                return values.get(x, zero.get(x))
            if any(reads(i) for i in x.indices):
                raise te.ScheduleError("it reads where what it reads says")
            indices = tuple(rewrite(i, lambda y: values.get(y, zero.get(y))) for i in x.indices)
            key = (tensor_of(x).op, tensor_of(x).value_index, *(str(i) for i in x.indices))
            if key not in inputs:
                dims = tuple(i for i in indices if any(v in sizes for v in _variables(i)))
                shape = [_most(i, sizes) + 1 for i in dims]
                inputs[key] = te.placeholder(shape, x.dtype, name=f"in{len(inputs)}"), dims
            tensor, dims = inputs[key]
            return ProducerLoad(tensor, dims)

        made = []
        for e in stage.body:
            if isinstance(e, Reduce):
                if not reduced:
                    raise te.ScheduleError("what is reduced over stays outside")
                sources = tuple(rewrite(s, placed) for s in e.source)
                condition = rewrite(e.condition, placed)
                made.append(Reduce(e.combiner, sources, tuple(kept), condition, e.value_index, e.init))
            else:
                made.append(rewrite(e, placed))
        return made if len(made) > 1 else made[0]

    shape = [tile[a][1] for a in spatial]
    made = te.compute(shape, lambda *i: body(*i), name="tile")
    op = made[0].op if isinstance(made, (tuple, list)) else made.op
    return te.decl_tensor_intrin(op, lambda ins, outs: _statements(op, ins, outs), name="tile")


def _variables(e: E.Expr) -> list[E.Var]:
    from compassc.ir.visit import walk_exprs

    return [x for x in walk_exprs(e) if isinstance(x, E.Var)]


def _most(e: E.Expr, sizes: dict) -> int:
    """The largest value of an index over a tile."""
    from compassc.analysis.arith import Arith
    from compassc.analysis.simplify import Simplifier
    from compassc.ir.visit import substitute

    used = [v for v in dict.fromkeys(_variables(e)) if v in sizes]
    found = 0
    for point in itertools.product(*(range(sizes[v]) for v in used)):
        value = Simplifier(Arith()).expr(substitute(e, {v: E.IntImm(v.dtype, n) for v, n in zip(used, point)}))
        found = max(found, value.value if isinstance(value, E.IntImm) else 0)
    return found


def _statements(op: te.ComputeOp, ins: list[te.View], outs: list[te.View]):
    """What the operation says, from the last element to the first."""
    views = dict(zip(op.input_tensors, ins))
    first = op.body[0]

    def nest(axes, make, values=None):
        values = values or {}
        if len(values) == len(axes):
            return make(values)
        axis = axes[len(values)]
        extent = axis.dom.extent.value
        return te.for_range(0, extent, lambda i: nest(axes, make, {**values, axis.as_expr(): as_expr(extent - 1 - i)}))

    def value(e, values):
        def replace(x):
            if isinstance(x, ProducerLoad):
                indices = tuple(value(i, values) for i in x.indices)
                return E.BufferLoad(views[tensor_of(x)].buffer, indices or (E.IntImm(te.const(0).dtype, 0),))
            return values.get(x)

        return rewrite(e, replace)

    def points(values):
        return [values[a.as_expr()] for a in op.axis] or [0]

    if not isinstance(first, Reduce):
        return nest(op.axis, lambda v: [o.store(value(e, v), *points(v)) for o, e in zip(outs, op.body, strict=True)])

    def update(v):
        here = points(v)
        joined = first.combiner.combine([as_expr(o[tuple(here)]) for o in outs], [value(s, v) for s in first.source])
        kept = [E.Var(f"kept{i}", e.dtype) for i, e in enumerate(joined)]
        stores = [*map(S.Let, kept, joined), *(o.store(k, *here) for o, k in zip(outs, kept))]
        condition = value(first.condition, v)
        plain = isinstance(condition, E.IntImm) and condition.dtype is BOOL
        return stores if plain else S.IfThenElse(condition, tuple(stores), ())

    start = first.init or first.combiner.identity_element
    reset = nest(op.axis, lambda v: [o.store(e, *points(v)) for o, e in zip(outs, start)])
    return None, reset, nest([*op.axis, *op.reduce_axis], update)

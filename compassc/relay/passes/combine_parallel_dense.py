"""Combine products of the same data with matrices.

Before: a typed module.
After: `min_num_branches` or more calls of `nn.dense` on the same data are one product: with `to_batch`, and for weights of one
shape, a batch of products, else one with all their units, whose result is sliced.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from compassc.relay.builders import build
from compassc.relay.expr import Call, Expr, TupleGetItem
from compassc.relay.module import IRModule
from compassc.relay.passes._parallel import combine, sizes, slices

NAME = "CombineParallelDense"
LEVEL = 4
REQUIRED = ("InferType",)


def run(module: IRModule, min_num_branches: int = 3, to_batch: bool = True) -> IRModule:
    if to_batch:
        return combine(module, "nn.dense", min_num_branches, _equal, _batch)
    return combine(module, "nn.dense", min_num_branches, _common, _one)


def _equal(e: Call) -> Hashable | None:
    assert e.attrs is not None
    return (e.attrs["out_dtype"], sizes(e.args[1])) if len(sizes(e.args[0])) == 2 else None


def _common(e: Call) -> Hashable | None:
    assert e.attrs is not None
    return (e.attrs["out_dtype"], sizes(e.args[1])[1])


def _batch(calls: Sequence[Call], data: Expr, weights: Sequence[Expr]) -> Sequence[Expr]:
    attrs = calls[0].attrs
    assert attrs is not None
    left, right = build("stack", [data] * len(calls), axis=0), build("stack", list(weights), axis=0)
    made = build("nn.batch_matmul", left, right, attrs["out_dtype"], transpose_a=False, transpose_b=True)
    parts = build("split", made, len(calls), axis=0)
    return [build("squeeze", TupleGetItem(parts, i), [0]) for i in range(len(calls))]


def _one(calls: Sequence[Call], data: Expr, weights: Sequence[Expr]) -> Sequence[Expr]:
    attrs = calls[0].attrs
    assert attrs is not None
    units = [sizes(c.args[1])[0] for c in calls]
    weight = build("concatenate", list(weights), axis=0)
    changed = attrs.changed(units=sum(units)) if attrs["units"] is not None else attrs
    return slices(Call(calls[0].op, [data, weight], changed), len(sizes(calls[0])) - 1, units)

"""Combine batches of products of the same matrices.

Before: a typed module.
After: `min_num_branches` or more calls of `nn.batch_matmul` on the same first operand, with equal flags and types, are one, whose
result is sliced.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from compassc.relay.builders import build
from compassc.relay.expr import Call, Expr
from compassc.relay.module import IRModule
from compassc.relay.passes._parallel import combine, sizes, slices

NAME = "CombineParallelBatchMatmul"
LEVEL = 4
REQUIRED = ("InferType",)


def run(module: IRModule, min_num_branches: int = 3) -> IRModule:
    return combine(module, "nn.batch_matmul", min_num_branches, _key, _one)


def _key(e: Call) -> Hashable | None:
    assert e.attrs is not None
    y = sizes(e.args[1])
    depth = y[2] if e.attrs["transpose_b"] else y[1]
    return (e.attrs, y[0], depth)


def _one(calls: Sequence[Call], data: Expr, others: Sequence[Expr]) -> Sequence[Expr]:
    attrs = calls[0].attrs
    assert attrs is not None
    axis = 1 if attrs["transpose_b"] else 2
    made = Call(calls[0].op, [data, build("concatenate", list(others), axis=axis)], attrs)
    return slices(made, 2, [sizes(c)[2] for c in calls])

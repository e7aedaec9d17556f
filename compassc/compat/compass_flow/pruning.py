"""How much a function of the NPU computes for what it moves: what decides whether it is worth a start."""

from __future__ import annotations

from math import prod

import numpy as np

from compassc.relay.analysis.counts import mac_number
from compassc.relay.backend.referenced import tensors_of
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.operators import op_name
from compassc.relay.visit import post_order

PER_PRODUCT = {"nn.conv2d": 2, "nn.conv2d_transpose": 2, "nn.dense": 1, "nn.matmul": 1, "nn.batch_matmul": 1}
"""What a multiplication of an operator counts for."""


def _elements(e: Expr) -> int:
    return sum(prod(t.concrete_shape) for t in tensors_of(e.checked_type))


def _bytes(e: Expr) -> int:
    return sum(prod(t.concrete_shape) * np.dtype(t.dtype).itemsize for t in tensors_of(e.checked_type))


def _count(call: Call) -> int:
    """What a call computes; 0 for operators that count for nothing."""
    name = op_name(call)
    if name == "nn.matmul":
        return _elements(call) * int(tensors_of(call.args[0].checked_type)[0].concrete_shape[-1])
    if name in PER_PRODUCT:
        return PER_PRODUCT[name] * mac_number(call)
    return _elements(call.args[0]) if name == "multiply" else 0


def worth(f: Function) -> float:
    """The sum of `count * count / bytes` of the calls of a typed function: what they compute by what they read and write."""
    total = 0.0
    for e in post_order(f.body):
        if isinstance(e, Call) and op_name(e) and (count := _count(e)):
            total += count * count / (_bytes(e) + sum(map(_bytes, e.args)))
    return total

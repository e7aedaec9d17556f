"""Operators of Relay as functions of tensors: what they compute is what the graph's kernels compute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array

from ... import relay
from ...ir.errors import ExpressionError
from ...ir.exprs import FloatImm, IntImm
from ...operators.declare import numbers
from ...operators.implementations import HOSTS
from ...relay.backend.kernels import results_of
from ...relay.builders import build
from ...relay.expr import as_expr
from ...relay.passes import infer_type
from ...relay.types import TensorType
from ...targets import Target
from ...te.tensor import Tensor

Sizes = int | Sequence[int]
"""A number for all axes, or one for each."""
Pads = int | str | Sequence[int]
"""Elements before and after: a number, one for each axis or end, `VALID` or `SAME`."""


def _host() -> Target:
    current = Target.current()
    return current if current is not None and current.kind.name in HOSTS else Target.of("llvm")


def _type(t: Tensor, operator: str) -> TensorType:
    return TensorType(numbers(t, operator), str(t.dtype))


def several(name: str, *operands: object, **attributes: object) -> list[Tensor]:
    """The results of an operator of Relay by the name of its builder. Operands: tensors, lists of them, numbers and arrays.
    ExpressionError where it does not take them."""
    tensors: list[Tensor] = []

    def argument(given: object) -> object:
        if isinstance(given, Tensor):
            tensors.append(given)
            return relay.var(f"p{len(tensors)}", _type(given, name))
        if isinstance(given, (list, tuple)) and any(isinstance(g, Tensor) for g in given):
            return relay.Tuple([as_expr(argument(g)) for g in given])
        if isinstance(given, np.ndarray):
            return relay.const(given, str(given.dtype))
        return given.value if isinstance(given, (IntImm, FloatImm)) else given

    arguments = [argument(o) for o in operands]
    named = {key: argument(value) for key, value in attributes.items()}
    parts = [v for a in (*arguments, *named.values()) for v in (a.fields if isinstance(a, relay.Tuple) else [a])]
    parameters = [v for v in parts if isinstance(v, relay.Var)]
    body = build(name, *arguments, **named)
    module = infer_type.run(relay.IRModule.from_expr(relay.Function(parameters, body)))
    function = module["main"]
    if not isinstance(function, relay.Function):
        raise ExpressionError(f"{name} made no function")
    return results_of(function, [[t] for t in tensors], _host(), None)


def one(name: str, *operands: object, **attributes: object) -> Tensor:
    """The result of an operator of Relay that has one."""
    return several(name, *operands, **attributes)[0]


def per_axis(value: Sizes, rank: int) -> list[int]:
    """A number for each axis."""
    return [int(value)] * rank if isinstance(value, int) else [int(v) for v in value]


def array_of(given: object) -> Array:
    """A list of numbers as an array of whole ones."""
    return np.asarray(given, "int32")

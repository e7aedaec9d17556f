"""Put scales of the data of convolutions and products into their weights.

Before: a typed module.
After: what only a convolution or a product with weights uses is not multiplied by a scale of its channels,
directly or (positive constants) in front of rectifiers and vectors that are added: weights are multiplied and vectors are divided instead, within
rounding.
"""

from __future__ import annotations

from collections import Counter

from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.passes import _scales as S
from compassc.relay.passes._functions import is_primitive, on_functions, op_name
from compassc.relay.visit import rewrite

NAME = "ForwardFoldScaleAxis"
LEVEL = 3
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _function(f))


def _function(f: Function) -> Function:
    uses = S.users(f)
    known: dict[int, Expr] = {}

    def folded(before: Expr, after: Expr) -> Expr:
        found = _fold(before, uses, known) or after
        known[id(before)] = found
        return found

    made = rewrite(f, folded, is_primitive)
    assert isinstance(made, Function), "a function stays one"
    return made


def _fold(e: Expr, uses: Counter[int], known: dict[int, Expr]) -> Expr | None:
    """What takes the place of a call with weights whose data are scaled; None where they are not."""
    weights = S.weights(e)
    if weights is None or weights.for_data is None or not isinstance(e, Call):
        return None
    at, axis = e.args[0], weights.data_axis
    path: list[tuple[Call, Expr]] = []
    while isinstance(at, Call) and uses[id(at)] == 1:
        parts = S.other_and_scale(at)
        if parts is not None:
            data, scale, along = parts
            factor = known[id(scale)]
            if along != axis or not (S.is_positive(factor) or not path):
                return None
            return _rebuilt(e, data, factor, weights.for_data, path, known)
        if op_name(at) in S.RECTIFIERS:
            path.append((at, at.args[0]))
            at = at.args[0]
        elif op_name(at) in S.SUMS and (inner := S.inner_and_addend(at, axis)) is not None:
            path.append((at, inner[0]))
            at = inner[0]
        else:
            return None
    return None


def _rebuilt(
    e: Call, data: Expr, factor: Expr, axis: int, path: list[tuple[Call, Expr]], known: dict[int, Expr]
) -> Expr:
    made = known[id(data)]
    for step, inner in reversed(path):
        args = [made if a is inner else call("divide", known[id(a)], factor) for a in step.args]
        made = Call(step.op, args, step.attrs, (), step.span)
    rank = len(S.shape(e.args[1]) or ())
    return Call(e.op, [made, S.scaled(known[id(e.args[1])], factor, axis, rank)], e.attrs, (), e.span)

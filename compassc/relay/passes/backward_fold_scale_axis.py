"""Put scales of the results of convolutions and products into their weights.

Before: a typed module.
After: a convolution or product with weights, of which nothing else uses the result, is not multiplied by a scale of its
channels, directly or behind rectifiers (of positive constants) and vectors that are added: weights and vectors are
multiplied instead, within rounding.
"""

from __future__ import annotations

from collections import Counter

from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.passes import _scales as S
from compassc.relay.passes._functions import is_primitive, on_functions, op_name
from compassc.relay.visit import rewrite

NAME = "BackwardFoldScaleAxis"
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
    """What takes the place of a product with a scale; None where its weights are not found."""
    parts = S.other_and_scale(e)
    if parts is None:
        return None
    at, scale, axis = parts
    factor = known[id(scale)]
    path: list[tuple[Call, Expr]] = []
    while isinstance(at, Call) and uses[id(at)] == 1:
        weights = S.weights(at)
        if weights is not None:
            if weights.result_axis != axis or weights.for_result is None:
                return None
            return _rebuilt(at, factor, weights.for_result, path, known)
        if op_name(at) in S.RECTIFIERS and S.is_positive(factor):
            path.append((at, at.args[0]))
            at = at.args[0]
        elif op_name(at) in S.SUMS and (inner := S.inner_and_addend(at, axis)) is not None:
            path.append((at, inner[0]))
            at = inner[0]
        else:
            return None
    return None


def _rebuilt(at: Call, factor: Expr, axis: int, path: list[tuple[Call, Expr]], known: dict[int, Expr]) -> Expr:
    data, weight = (known[id(a)] for a in at.args)
    rank = len(S.shape(at.args[1]) or ())
    made: Expr = Call(at.op, [data, S.scaled(weight, factor, axis, rank)], at.attrs, (), at.span)
    for step, inner in reversed(path):
        args = [made if a is inner else call("multiply", known[id(a)], factor) for a in step.args]
        made = Call(step.op, args, step.attrs, (), step.span)
    return made

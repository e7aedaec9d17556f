"""Write variances as means.

Before: a typed module.
After: no `variance`, but unbiased ones: the mean of squares of differences, within rounding.
"""

from __future__ import annotations

from compassc.relay.builders import build
from compassc.relay.expr import Call, Expr
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import rewrite_functions

NAME = "DecomposeVariance"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return rewrite_functions(module, _mean)


def _mean(before: Expr, after: Expr) -> Expr:
    if op_name(after) != "variance" or not isinstance(after, Call) or after.attrs is None or after.attrs["unbiased"]:
        return after
    x, mean = after.args
    away = x - mean
    made: Expr = build("mean", away * away, **{n: after.attrs[n] for n in ("axis", "keepdims", "exclude")})
    return made

"""Write the addition of a bias as an addition.

Before: a typed module.
After: no `nn.bias_add`.
"""

from __future__ import annotations

from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import rewrite_functions, shape

NAME = "CanonicalizeOps"
LEVEL = 3
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return rewrite_functions(module, _added)


def _added(before: Expr, after: Expr) -> Expr:
    if op_name(after) != "nn.bias_add":
        return after
    assert isinstance(before, Call) and isinstance(after, Call) and after.attrs is not None
    rank = len(shape(before.args[0]))
    after_axis = rank - 1 - after.attrs["axis"] % rank
    data, bias = after.args
    if after_axis:
        bias = call("expand_dims", bias, axis=1, num_newaxis=after_axis)
    return call("add", data, bias)

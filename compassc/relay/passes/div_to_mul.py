"""Multiply by the inverse where a constant divides.

Before: any module.
After: no real number is divided by a constant scalar other than 0: within rounding.
"""

from __future__ import annotations

from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr, const
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import rewrite_functions

NAME = "DivToMul"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return rewrite_functions(module, _product)


def _product(before: Expr, after: Expr) -> Expr:
    if op_name(after) != "divide" or not isinstance(after, Call):
        return after
    data, by = after.args
    if not isinstance(by, Constant) or by.array.dtype.kind != "f" or by.array.size != 1 or not by.array.all():
        return after
    return call("multiply", data, const(1 / by.array.astype("float64"), by.array.dtype.name))

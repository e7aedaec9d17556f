"""Have each call that uses a widening cast cast for itself, so that the cast goes into its kernel.

Before: a typed module.
After: a cast to more bits, of which several element-wise calls use the result, is repeated for each of them but the first: what
lies between kernels is narrow.
"""

from __future__ import annotations

from compassc.ir.dtypes import dtype as data_type
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.operators import Op, OpPattern, op_name
from compassc.relay.passes._functions import on_functions, rewritten
from compassc.relay.types import TensorType

NAME = "CanonicalizeCast"
LEVEL = 3
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _function(f))


def _function(f: Function) -> Function:
    used: set[int] = set()

    def repeated(before: Expr, after: Expr) -> Expr:
        if not isinstance(before, Call) or not isinstance(after, Call) or not isinstance(after.op, Op):
            return after
        if after.op.get_attr("TOpPattern") not in (OpPattern.ELEMWISE, OpPattern.BROADCAST):
            return after
        args = [_own(old, new, used) for old, new in zip(before.args, after.args)]
        return after if all(a is b for a, b in zip(args, after.args)) else after.replace(args=args)

    return rewritten(f, repeated)


def _own(before: Expr, after: Expr, used: set[int]) -> Expr:
    """An argument: a cast that another call has used is made again."""
    if op_name(before) != "cast" or not isinstance(before, Call) or not isinstance(after, Call):
        return after
    wide, narrow = before.checked_type, before.args[0].checked_type
    if not isinstance(wide, TensorType) or not isinstance(narrow, TensorType):
        return after
    if data_type(wide.dtype).bits <= data_type(narrow.dtype).bits:
        return after
    if id(before) not in used:
        used.add(id(before))
        return after
    return after.replace()

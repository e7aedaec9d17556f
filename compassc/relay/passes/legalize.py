"""Let operators say what is called instead of them.

Before: a typed module.
After: of each call whose operator has a function registered under the key, that function, asked with the attributes, the
arguments and the types of arguments and result, gave None, or the call in its place.
"""

from __future__ import annotations

from functools import partial

from compassc.ir.errors import ExpressionTypeError
from compassc.relay.expr import Call, Expr
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes._functions import rewrite_functions

NAME = "Legalize"
LEVEL = 1
REQUIRED = ("InferType",)


def run(module: IRModule, legalize_map_attr_name: str = "FTVMLegalize") -> IRModule:
    return rewrite_functions(module, partial(_legal, legalize_map_attr_name))


def _legal(key: str, before: Expr, after: Expr) -> Expr:
    if not isinstance(before, Call) or not isinstance(after, Call) or not isinstance(after.op, Op):
        return after
    given = after.op.get_attr(key)
    if given is None:
        return after
    types = [*(a.checked_type for a in before.args), before.checked_type]
    found = given(after.attrs, after.args, types)
    if found is not None and not isinstance(found, Call):
        raise ExpressionTypeError(
            f"what is registered under {key} for {after.op.name} gave a {type(found).__name__}",
            "give a Call, or None to keep the one there is",
        )
    return found or after

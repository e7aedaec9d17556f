"""Let operators say in which layout they are computed.

Before: a typed module.
After: of each call whose operator has a function under `FTVMAlterOpLayout`, that function, asked with the attributes, the
arguments, their types and the type of the result, gave None, or the call in its place. What follows is in its layout where it
can be; elsewhere stand transformations of layouts.
"""

from __future__ import annotations

from collections.abc import Sequence

from compassc.ir.errors import ExpressionTypeError
from compassc.relay.expr import Call, Expr
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes._layouts import Layouts

NAME = "AlterOpLayout"
LEVEL = 3
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: Layouts(f, _altered).function())


def _altered(e: Call, args: Sequence[Expr]) -> Call:
    assert isinstance(e.op, Op)
    given = e.op.get_attr("FTVMAlterOpLayout")
    types = [a.checked_type for a in e.args]
    found = given(e.attrs, args, types, e.checked_type) if given is not None else None
    if found is None:
        return Call(e.op, args, e.attrs, e.type_args, e.span)
    if not isinstance(found, Call):
        raise ExpressionTypeError(
            f"what is registered under FTVMAlterOpLayout for {e.op.name} gave a {type(found).__name__}",
            "give a Call, or None to keep the one there is",
        )
    return found

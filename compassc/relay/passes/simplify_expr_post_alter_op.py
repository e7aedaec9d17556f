"""Drop what transformations of layouts left: neutral operands, and reshapes, casts and bounds that follow each other.

Before: a typed module.
After: as after SimplifyExpr, of whose rules these are a part.
"""

from __future__ import annotations

from compassc.relay.module import IRModule
from compassc.relay.passes import simplify_expr

NAME = "SimplifyExprPostAlterOp"
LEVEL = 0
REQUIRED = ("InferType",)
_PART = ("add", "subtract", "multiply", "divide", "reshape", "contrib_reverse_reshape", "cast", "clip")


def run(module: IRModule) -> IRModule:
    return simplify_expr.run(module, _PART)

"""Call operators with known shapes where the shapes that are given to them are known.

Before: a typed module.
After: no `dyn` operator that has a static form has only constants for its shapes; types say what is known.
"""

from __future__ import annotations

from collections.abc import Mapping

from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Call, Constant, Expr
from compassc.relay.module import IRModule
from compassc.relay.operators import get, op_name
from compassc.relay.passes import fold_constant, infer_type
from compassc.relay.passes._functions import rewrite_functions

NAME = "DynamicToStatic"
LEVEL = 2
REQUIRED = ()
MOST_ROUNDS = 100


def run(module: IRModule) -> IRModule:
    module = infer_type.run(module)
    for _ in range(MOST_ROUNDS):
        after = rewrite_functions(fold_constant.run(module), _static)
        if after is module:
            return module
        module = after
    raise ExpressionError(f"DynamicToStatic changes a program after {MOST_ROUNDS} rounds", "leave it out of this build")


def _static(before: Expr, after: Expr) -> Expr:
    fields = _FIELDS.get(op_name(after))
    if fields is None or not isinstance(after, Call):
        return after
    values = {name: after.args[place] for place, name in fields.items()}
    known = {name: v.array.tolist() for name, v in values.items() if isinstance(v, Constant)}
    if len(known) < len(values):
        return after
    op = get(op_name(after).removeprefix("dyn."))
    assert op.record is not None
    kept = {name: value for name, value in (after.attrs or {}).items() if name in op.record.fields}
    args = [a for place, a in enumerate(after.args) if place not in fields]
    return Call(op, args, op.record(**{**kept, **known}), (), after.span)


_FIELDS: Mapping[str, Mapping[int, str]] = {
    "dyn.reshape": {1: "newshape"},
    "dyn.squeeze": {1: "axis"},
    "dyn.expand_dims": {1: "axis"},
    "dyn.tile": {1: "reps"},
    "dyn.broadcast_to": {1: "shape"},
    "dyn.zeros": {0: "shape"},
    "dyn.ones": {0: "shape"},
    "dyn.full": {1: "shape"},
    "dyn.one_hot": {3: "depth"},
    "dyn.topk": {1: "k"},
    "dyn.strided_slice": {1: "begin", 2: "end", 3: "strides"},
    "dyn.image.resize2d": {1: "size", 2: "roi"},
    "dyn.nn.upsampling": {1: "scale_h", 2: "scale_w"},
    "dyn.nn.upsampling3d": {1: "scale_d", 2: "scale_h", 3: "scale_w"},
    "dyn.nn.pad": {1: "pad_width"},
    "dyn.sparse_to_dense": {3: "output_shape"},
}
"""The arguments that are shapes or numbers, by their place, and the attributes of the static operator that they become."""

"""Give inputs another size of the batch.

Before: any module.
After: parameters named in `data` (a variable, or its name, and its axis of the batch) have `batch_size` there; types that followed are
found again.
"""

from __future__ import annotations

from collections.abc import Mapping

from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Function, Var
from compassc.relay.module import IRModule
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.types import TensorType
from compassc.relay.visit import rewrite

NAME = "ChangeBatch"
LEVEL = 1
REQUIRED = ()


def run(module: IRModule, data: Mapping[Var | str, int], batch_size: int = 16) -> IRModule:
    axes = {v.name_hint if isinstance(v, Var) else v: axis for v, axis in data.items()}
    made = {v: _function(f, axes, batch_size) if isinstance(f, Function) else f for v, f in module.functions.items()}
    return infer_type.run(changed(module, made))


def _function(f: Function, axes: Mapping[str, int], size: int) -> Function:
    new: dict[int, Var] = {}
    for p in f.params:
        if p.name_hint in axes:
            t = p.type_annotation or p.checked_type_
            if not isinstance(t, TensorType):
                raise ExpressionError(f"the parameter {p.name_hint} is no tensor", "give variables that are tensors")
            shape = list(t.shape)
            shape[axes[p.name_hint]] = size
            new[id(p)] = Var(p.name_hint, TensorType(shape, t.dtype))
    if not new:
        return f
    made = rewrite(f, lambda before, after: new.get(id(before), after))
    assert isinstance(made, Function), "a function stays one"
    return made.replace(ret_type=None)

"""Take weights transposed where products transpose them.

Before: a typed module.
After: `nn.dense(x, transpose(w))` of a parameter `w` that `target_weights` names is `nn.dense(x, w.T)` of a new parameter, which is to be
given the transposed weight. It takes the place of the old one, unless that is used otherwise, too.
"""

from __future__ import annotations

from collections.abc import Collection

from compassc.relay.expr import Call, Expr, Function, Var
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import on_functions, rewritten, tensor
from compassc.relay.types import TensorType
from compassc.relay.variables import free_vars

NAME = "SimplifyFCTranspose"
LEVEL = 0
REQUIRED = ("InferType",)
SUFFIX = ".T"
"""Behind the name of a weight, where it is transposed."""


def run(module: IRModule, target_weights: Collection[str]) -> IRModule:
    return on_functions(module, lambda f, _: _function(f, target_weights))


def is_transposed(e: Expr) -> bool:
    """Whether an expression is a matrix with its axes exchanged."""
    if op_name(e) != "transpose" or not isinstance(e, Call) or e.attrs is None:
        return False
    axes = e.attrs["axes"]
    return len(tensor(e).shape) == 2 and (axes is None or [a % 2 for a in axes] == [1, 0])


def _function(f: Function, names: Collection[str]) -> Function:
    new: dict[int, Var] = {}

    def fn(before: Expr, after: Expr) -> Expr:
        if op_name(after) != "nn.dense" or not isinstance(after, Call) or not isinstance(before, Call):
            return after
        weight = after.args[1]
        source = weight.args[0] if isinstance(weight, Call) and is_transposed(before.args[1]) else None
        if not isinstance(source, Var) or source.name_hint not in names:
            return after
        t = tensor(source)
        made = new.setdefault(id(source), Var(source.name_hint + SUFFIX, TensorType(list(t.shape)[::-1], t.dtype)))
        return after.replace(args=(after.args[0], made))

    made = rewritten(f, fn)
    if not new:
        return f
    used = {id(v) for v in free_vars(made.body)}
    params = [new.get(id(p), p) if id(p) not in used else p for p in made.params]
    params += [v for i, v in new.items() if i in used]
    return made.replace(params=tuple(params), ret_type=f.ret_type)

"""Make functions within functions functions of the module.

Before: a typed module; kernels stay where they are.
After: no function literal lies within a function. One without variables from outside is a function of its own, named by its
structure. Others are made by a function of these variables (`Closure`), which is called where they were. Recursive functions call the function
of the module.
"""

from __future__ import annotations

from compassc.relay.attributes import DictAttrs
from compassc.relay.equal import structural_hash
from compassc.relay.expr import Call, Expr, Function, GlobalVar, Let, Var
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.passes._fusion import is_closed
from compassc.relay.variables import free_vars
from compassc.relay.visit import children, post_order, rewrite, with_children

NAME = "LambdaLift"
LEVEL = 1
REQUIRED = ("InferType",)


def run(module: IRModule) -> IRModule:
    lifted: dict[GlobalVar, Function] = {}
    names = {v.name_hint: v for v in module.functions}
    made: dict[GlobalVar, BaseFunc] = {}
    for v, f in module.functions.items():
        made[v] = _lift(f, lifted, names) if isinstance(f, Function) and not is_closed(f) else f
    return infer_type.run(changed(module, {**made, **lifted})) if lifted else module


def _lift(f: Function, lifted: dict[GlobalVar, Function], names: dict[str, GlobalVar]) -> Function:
    order = list(post_order(f, is_closed))
    bound = {id(e.value): e.var for e in order if isinstance(e, Let) and isinstance(e.value, Function)}
    made: dict[int, Expr] = {}
    for e in order:
        if e is not f and is_closed(e):
            made[id(e)] = e
            continue
        after = with_children(e, [made[id(c)] for c in children(e)])
        if isinstance(after, Function) and e is not f:
            after = _global(e, after, bound.get(id(e)), lifted, names)
        made[id(e)] = after
    found = made[id(f)]
    assert isinstance(found, Function), "a function stays one"
    return found


def _global(
    before: Expr, after: Function, own: Var | None, lifted: dict[GlobalVar, Function], names: dict[str, GlobalVar]
) -> Expr:
    """What takes the place of a function literal, which knows itself as `own`."""
    name = f"lifted_name{structural_hash(before) & (1 << 64) - 1}"
    known = names.get(name)
    v = known or names.setdefault(name, GlobalVar(name))
    captured = [x for x in free_vars(after) if x is not own]
    value: Expr = Call(v, captured) if captured else v
    if known is None:
        inner = rewrite(after, lambda x, y: value if x is own else y) if own is not None else after
        assert isinstance(inner, Function)
        lifted[v] = Function(captured, inner, before.checked_type, (), DictAttrs({"Closure": 1})) if captured else inner
    return value

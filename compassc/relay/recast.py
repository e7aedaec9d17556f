"""Operators in another type of elements, by their names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import overload

from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Function, Tuple
from compassc.relay.module import MAIN, IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.types import TensorType
from compassc.relay.visit import post_order, rewrite


@overload
def recast(
    expr: IRModule,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] | None = None,
    skip_layers: Collection[int] | None = None,
) -> IRModule: ...
@overload
def recast(
    expr: Expr, dtype: str, out_dtype: str, ops: Sequence[str] | None = None, skip_layers: Collection[int] | None = None
) -> Expr: ...
def recast(
    expr: Expr | IRModule,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] | None = None,
    skip_layers: Collection[int] | None = None,
) -> Expr | IRModule:
    """An expression, or a module's `main`, in which calls of `ops` (by default "nn.conv2d") take arguments of `dtype` and give
    `out_dtype`, which is cast back. `skip_layers`: calls to leave alone by their numbers, the first one is 0; numbers below 0
    count from the last. What is made of an expression has no types yet."""
    if isinstance(expr, IRModule):
        whole = infer_type.run(expr)
        functions = dict(whole.functions.items())
        functions[whole.get_global_var(MAIN)] = _recast(whole[MAIN], dtype, out_dtype, ops, skip_layers)
        return infer_type.run(changed(whole, functions))
    typed = infer_type.run(IRModule.from_expr(expr))[MAIN]
    made = _recast(typed, dtype, out_dtype, ops, skip_layers)
    return made.replace(ret_type=expr.ret_type) if isinstance(expr, Function) else made.body


def _recast(
    f: Function, dtype: str, out_dtype: str, ops: Sequence[str] | None, skip: Collection[int] | None
) -> Function:
    names = tuple(ops) if ops is not None else ("nn.conv2d",)
    calls = [e for e in post_order(f) if op_name(e) in names]
    skipped = {n % len(calls) for n in skip or ()} if calls else set()
    chosen = {id(e) for n, e in enumerate(calls) if n not in skipped}

    def cast(e: Expr) -> Expr:
        return Tuple([cast(f) for f in e.fields]) if isinstance(e, Tuple) else call("cast", e, dtype=dtype)

    def one(before: Expr, after: Expr) -> Expr:
        if id(before) not in chosen or not isinstance(after, Call):
            return after
        attrs = after.attrs
        if attrs is not None and "out_dtype" in attrs:
            attrs = attrs.changed(out_dtype=out_dtype)
        made = Call(after.op, [cast(a) for a in after.args], attrs, after.type_args, after.span)
        t = before.checked_type
        return call("cast", made, dtype=t.dtype) if isinstance(t, TensorType) else made

    made = rewrite(f, one)
    assert isinstance(made, Function), "a function stays one"
    return made.replace(ret_type=None)

"""Concatenate in steps where a kernel would have too many arguments.

Before: a typed module.
After: no concatenation has more than `max_function_args` tensors, which count once, and once more for each open extent; 0: any
number. Parts are kernels of their own.
"""

from __future__ import annotations

from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Tuple
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import rewrite_functions
from compassc.relay.types import TensorType, TupleType, Type

NAME = "SplitArgs"
LEVEL = 1
REQUIRED = ("InferType",)


def run(module: IRModule, max_function_args: int) -> IRModule:
    if not max_function_args:
        return module
    return rewrite_functions(module, lambda before, after: _split(before, after, max_function_args))


def _arguments(t: Type) -> int:
    return 1 + sum(not isinstance(d, int) for d in t.shape) if isinstance(t, TensorType) else 1


def _split(before: Expr, after: Expr, most: int) -> Expr:
    if op_name(after) != "concatenate" or not isinstance(after, Call) or not isinstance(before, Call):
        return after
    whole, t = after.args[0], before.args[0].checked_type
    if not isinstance(whole, Tuple) or not isinstance(t, TupleType) or sum(map(_arguments, t.fields)) <= most:
        return after
    groups: list[list[Expr]] = [[]]
    room = most
    for f, kind in zip(whole.fields, t.fields):
        if groups[-1] and room < _arguments(kind):
            groups.append([])
            room = most
        groups[-1].append(f)
        room -= _arguments(kind)
    parts = [call("annotation.stop_fusion", Call(after.op, [Tuple(g)], after.attrs)) for g in groups]
    return Call(after.op, [Tuple(parts)], after.attrs, (), after.span)

"""Compute what depends on constants only, by the references of operators.

Before: any module; kernels (`Primitive`) are left alone.
After: no operator is called with constants only, but those without arguments, with a state, without a reference, and those that
are no computation; no `If` has a constant condition, no field is taken of a literal tuple, no variable is bound to a
constant. Shapes that are known are constants.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from compass_core.errors import CompassError
from compassc.relay.expr import Call, Constant, Expr, Function, If, Let, Tuple, TupleGetItem
from compassc.relay.module import IRModule
from compassc.relay.operators import Op, op_name
from compassc.relay.passes._functions import (
    constant,
    expression,
    on_functions,
    type_of_constant,
    values,
)
from compassc.relay.types import IncompleteType, Related, TensorType, Type, is_dynamic
from compassc.relay.visit import children, is_primitive, post_order, with_children

NAME = "FoldConstant"
LEVEL = 2
REQUIRED = ()
_SHAPES = ("shape_of", "vm.shape_of", "ndarray_size")


def run(module: IRModule, fold_qnn: bool = False) -> IRModule:
    return on_functions(module, lambda f, _: _function(f, fold_qnn))


def _function(f: Function, fold_qnn: bool) -> Function:
    made = fold(f, fold_qnn)
    assert isinstance(made, Function), "a function stays one"
    return made


def fold(root: Expr, fold_qnn: bool = False) -> Expr:
    """An expression with its constant parts computed."""
    step = partial(_folded, fold_qnn=fold_qnn)
    bound = {id(e.value): e.var for e in post_order(root, is_primitive) if isinstance(e, Let)}
    made: dict[int, Expr] = {}
    for e in post_order(root, is_primitive):
        after = e if is_primitive(e) else with_children(e, [made[id(c)] for c in children(e)])
        made[id(e)] = after = step(e, after)
        if id(e) in bound and isinstance(after, Constant):
            made[id(bound[id(e)])] = after
    return made[id(root)]


def _folded(before: Expr, after: Expr, fold_qnn: bool) -> Expr:
    if isinstance(after, Call):
        return _call(before, after, fold_qnn)
    if isinstance(after, Let) and isinstance(after.value, Constant):
        return after.body
    if isinstance(after, If) and isinstance(after.cond, Constant):
        return after.true_branch if bool(after.cond.array) else after.false_branch
    if isinstance(after, TupleGetItem) and isinstance(after.tuple_value, Tuple):
        return after.tuple_value.fields[after.index]
    return after


def _call(before: Expr, after: Call, fold_qnn: bool) -> Expr:
    op = after.op
    if not isinstance(op, Op) or not after.args:
        return after
    if op.name in _SHAPES and isinstance(before, Call) and (found := _extents(before, after)) is not None:
        return found
    return computed(after, fold_qnn) or after


def computed(made: Call, fold_qnn: bool = False) -> Expr | None:
    """What a call of an operator gives; None where it is not computed before the program runs."""
    op = made.op
    assert isinstance(op, Op)
    if not made.args or op.stateful or op.reference is None or (op.get_attr("TNonComputational") and not fold_qnn):
        return None
    if op.name.startswith("qnn.") and not fold_qnn:
        return None
    arrays = values(made.args)
    t = result_type(op, made) if arrays is not None else None
    if arrays is None or t is None:
        return None
    try:
        return expression(op.reference(made.attrs, arrays, t))
    except CompassError:  # it may stand where it is never computed: whoever runs it is told
        return None


def result_type(op: Op, made: Call) -> Type | None:
    """The type of a call with constants."""
    if op.relation is None:
        return None
    found = op.relation([type_of_constant(a) for a in made.args], made.attrs)
    t = found.result if isinstance(found, Related) else found
    return None if isinstance(t, IncompleteType) else t


def _extents(before: Call, after: Call) -> Constant | None:
    """The value of a call that asks a shape that is known."""
    of: Type | None = after.args[0].checked_type_ or before.args[0].checked_type_
    if isinstance(after.args[0], Constant):
        of = after.args[0].tensor_type
    if not isinstance(of, TensorType) or is_dynamic(of):
        return None
    dtype = after.attrs["dtype"] if after.attrs and after.attrs.get("dtype") else "int32"
    sizes = np.asarray(of.concrete_shape, dtype)
    return constant(np.asarray(sizes.prod(), dtype) if op_name(after) == "ndarray_size" else sizes)

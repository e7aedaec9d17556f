"""Names of Relay in the framework that have no object of the same form: copies of nodes with some fields changed, attributes by
their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compass_core.errors import UsageError
from compassc.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.interpreter import ConstructorValue
from compassc.relay.std import Prelude
from compassc.relay.types import TypeKind, TypeVar


def ShapeVar(name: str) -> TypeVar:
    """A variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def _with_fields(kind: type[Expr], **fields: str) -> Callable[..., Expr]:
    """A function of a node and new values of its fields, in this order: parameter=field. Those that are None stay."""

    def copied(node: Any, *values: Any, **named: Any) -> Any:
        if not isinstance(node, kind):
            raise UsageError(f"a {type(node).__name__} is no {kind.__name__}", code="input")
        given = dict(zip(fields, values)) | named
        given.pop("virtual_device", None)
        unknown = [name for name in given if name not in fields]
        if unknown or len(values) > len(fields):
            raise UsageError(
                f"there is no field {', '.join(unknown) or len(values)}", code="input", help=str([*fields])
            )
        changes = {fields[name]: value for name, value in given.items() if value is not None}
        return node.replace(**changes) if changes else node

    copied.__name__ = copied.__qualname__ = f"{kind.__name__}WithFields"
    copied.__doc__ = f"A {kind.__name__} with some fields changed."
    return copied


FunctionWithFields = _with_fields(
    Function, params="params", body="body", ret_type="ret_type", ty_params="type_params", attrs="attrs", span="span"
)
CallWithFields = _with_fields(Call, op="op", args="args", attrs="attrs", type_args="type_args", span="span")
TupleWithFields = _with_fields(Tuple, fields="fields", span="span")
LetWithFields = _with_fields(Let, var="var", value="value", body="body", span="span")
IfWithFields = _with_fields(If, cond="cond", true_branch="true_branch", false_branch="false_branch", span="span")
VarWithFields = _with_fields(Var, vid="vid", type_annotation="type_annotation", span="span")
ConstantWithFields = _with_fields(Constant, data="data", span="span")
TupleGetItemWithFields = _with_fields(TupleGetItem, tuple_value="tuple_value", index="index", span="span")
RefCreateWithFields = _with_fields(RefCreate, value="value", span="span")
RefReadWithFields = _with_fields(RefRead, ref="ref", span="span")
RefWriteWithFields = _with_fields(RefWrite, ref="ref", value="value", span="span")


# -------------------------------------------------------------------------------------------------------- natural numbers


def _nat(prelude: Prelude) -> Any:
    prelude.mod.import_from_std("nat.rly")
    return prelude.mod.get_type("nat")[1:]


def make_nat_value(prelude: Prelude, n: int) -> ConstructorValue:
    """A natural number of `nat.rly` as a value."""
    zero, succ = _nat(prelude)
    made = ConstructorValue(zero.tag, [], zero)
    for _ in range(n):
        made = ConstructorValue(succ.tag, [made], succ)
    return made


def make_nat_expr(prelude: Prelude, n: int) -> Expr:
    """A natural number of `nat.rly` as an expression."""
    zero, succ = _nat(prelude)
    made: Expr = zero()
    for _ in range(n):
        made = succ(made)
    return made


def count(prelude: Prelude, n: ConstructorValue) -> int:
    """The number that a value of `nat.rly` is."""
    _, succ = _nat(prelude)
    steps = 0
    while n.tag == succ.tag:
        n, steps = n.fields[0], steps + 1
    return steps

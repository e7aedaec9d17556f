"""Names of Relay in the framework that have no object of the same form: copies of nodes with some fields changed, attributes by
their keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import compass_core.errors as core
import compass_runtime.packed as runtime
from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compassc.ir.expr_op import ExprOp
from compassc.relay.attributes import Attrs
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
from compassc.relay.node import Node
from compassc.relay.operators import named_relation
from compassc.relay.passes import RelayPass, make
from compassc.relay.std import Prelude
from compassc.relay.types import Type, TypeKind, TypeVar
from compassc.te.tensor import Tensor


def ShapeVar(name: str) -> TypeVar:
    """A variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def _with_fields(kind: type[Expr], **fields: str) -> Callable[..., Expr]:
    """A function of a node and new values of its fields, in this order: parameter=field. Those that are None stay."""

    def copied(node: Expr, *values: object, **named: object) -> Expr:
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


# ----------------------------------------------------------------------------------------------------- places and functions


@dataclass(frozen=True)
class SourceName:
    """The name of a text."""

    name: str


class Span(core.Span):
    """A range of a text, with the framework's order of numbers: lines, then columns."""

    def __init__(
        self, source_name: SourceName | str | None, line: int, end_line: int, column: int, end_column: int
    ) -> None:
        name = source_name.name if isinstance(source_name, SourceName) else source_name or ""
        super().__init__(name, line, column, end_line, end_column)

    @property
    def source_name(self) -> SourceName | None:
        """The text, if it has a name."""
        return SourceName(self.file) if self.file else None

    def same_as(self, other: object) -> bool:
        """Whether it is this object."""
        return self is other

    @property
    def column(self) -> int:
        """The first column."""
        return self.col

    @property
    def end_column(self) -> int:
        """The last column."""
        return self.end_col


class EnvFunc:
    """A type rule by its name, `tvm.relay.type_relation.NAME`."""

    prefix = "tvm.relay.type_relation."
    _known: ClassVar[dict[str, EnvFunc]] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self._rule = named_relation(name.removeprefix(self.prefix))

    @classmethod
    def get(cls, name: str) -> EnvFunc:
        """The rule, the same object each time. CompassError for names that no rule has."""
        if name not in cls._known:
            cls._known[name] = cls(name)
        return cls._known[name]

    def __call__(self, types: Sequence[Type], attrs: Attrs | None) -> Any:
        return self._rule(types, attrs)

    def __repr__(self) -> str:
        return f"EnvFunc({self.name})"


def SpanCheck() -> RelayPass:
    """The pass that warns of calls without places."""
    return make("SpanCheck")


ADT: type[tuple[object, ...]] = tuple
"""What tuples are when a program runs."""


def tuple_object(fields: Sequence[object] | None = None) -> tuple[Any, ...]:
    """A tuple of values, for calls of programs."""
    return tuple(fields or ())


def convert(value: object, span: object = None) -> Any:
    """A value as functions see it: sequences become tuples, nodes and tensors stay themselves, others are as `compass_runtime.convert` says."""
    if isinstance(value, (list, tuple)):
        return tuple([convert(v) for v in value])
    if isinstance(value, dict):
        return {k: convert(v) for k, v in value.items()}
    return value if value is None or isinstance(value, (Node, ExprOp, Tensor)) else runtime.convert(value)


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

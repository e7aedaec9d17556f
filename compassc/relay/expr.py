"""Expressions of Relay: immutable, compared by identity. After type inference each has its `checked_type`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compass_runtime.ndarray import NDArray
from compassc.ir.errors import ExpressionError, ExpressionTypeError, caller
from compassc.relay.attributes import Attrs, DictAttrs
from compassc.relay.node import Node, node
from compassc.relay.types import Dim, GlobalTypeVar, TensorType, Type, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

    from compass_core.errors import Span


Annotate = Callable[["Expr"], str]
"""What gives the comments of expressions in a text."""


class NotTyped(ExpressionError, ValueError):
    """The type of an expression that type inference has not seen."""


class Expr(Node):
    """Base of expressions. `+ - * /`, the comparisons and `-x` make calls of operators, `f(x)` a call of `f`."""

    checked_type_: Type | None = None
    """What type inference found, None before it."""
    made_at_: Span | None = None
    """The line of a program in Python that made a call of an operator or a function; `span` is a place in a text of Relay."""

    def replace(self, **changes: object) -> Self:
        """A copy with other values in some fields, made at the same line."""
        made = super().replace(**changes)
        if self.made_at_ is not None:
            made._keep(made_at_=self.made_at_)
        return made

    @property
    def checked_type(self) -> Type:
        """The type that type inference found. NotTyped before it."""
        if self.checked_type_ is None:
            raise NotTyped(
                "the type checker has not populated the checked_type of this expression",
                "run relay.transform.InferType() on its module and ask what that gives",
            )
        return self.checked_type_

    def typed(self, found: Type) -> Expr:
        """Note its type, and give the expression itself."""
        object.__setattr__(self, "checked_type_", found)
        return self

    def __call__(self, *args: object) -> Call:
        made = Call(self, _exprs(args))
        made._keep(made_at_=caller())
        return made

    def astype(self, dtype: object) -> Expr:
        """A cast to another type of elements."""
        return _operator("cast", self, dtype)

    def astext(self, show_meta_data: bool = True, annotate: Annotate | None = None) -> str:
        """Its text with a version line; `annotate`, a function of expressions, gives comments."""
        from compassc.relay.printer import astext

        return astext(self, show_meta_data, annotate)

    def __repr__(self) -> str:
        from compassc.relay.printer import text

        return text(self)

    def __neg__(self) -> Expr:
        return _operator("negative", self)

    def __add__(self, other: object) -> Expr:
        return _binary("add", self, other)

    def __sub__(self, other: object) -> Expr:
        return _binary("subtract", self, other)

    def __mul__(self, other: object) -> Expr:
        return _binary("multiply", self, other)

    def __truediv__(self, other: object) -> Expr:
        return _binary("divide", self, other)

    def __lt__(self, other: object) -> Expr:
        return _binary("less", self, other)

    def __gt__(self, other: object) -> Expr:
        return _binary("greater", self, other)

    def __le__(self, other: object) -> Expr:
        return _binary("less_equal", self, other)

    def __ge__(self, other: object) -> Expr:
        return _binary("greater_equal", self, other)

    def __radd__(self, other: object) -> Expr:
        return _binary("add", other, self)

    def __rsub__(self, other: object) -> Expr:
        return _binary("subtract", other, self)

    def __rmul__(self, other: object) -> Expr:
        return _binary("multiply", other, self)

    def __rtruediv__(self, other: object) -> Expr:
        return _binary("divide", other, self)


def _operator(name: str, *args: object) -> Expr:
    from compassc.relay.builders import build

    return build(name, *args)


def _binary(name: str, a: object, b: object) -> Expr:
    for given in (a, b):
        if isinstance(given, (int, float, complex, np.generic)):
            raise ExpressionTypeError(
                f"{given!r} is no Relay expression", f"convert it with const first: relay.const({given!r})"
            )
        if not isinstance(given, (Expr, TupleWrapper)):
            raise ExpressionTypeError(f"operators on a {type(given).__name__} are not supported")
    return _operator(name, a, b)


def as_expr(given: object) -> Expr:
    """The expression of what stands for one. ExpressionTypeError for anything else."""
    if isinstance(given, TupleWrapper):
        return given.tuple_value
    if isinstance(given, Expr):
        return given
    raise ExpressionTypeError(
        f"a {type(given).__name__} is no Relay expression", "make constants with relay.const, tuples with relay.Tuple"
    )


def _exprs(given: Sequence[object]) -> tuple[Expr, ...]:
    return tuple([as_expr(e) for e in given])


class Id:
    """The identity of a variable: two variables of one name are different."""

    __slots__ = ("name_hint",)

    def __init__(self, name_hint: str) -> None:
        self.name_hint = name_hint


@node
class Var(Expr):
    """A local variable, equal to itself only. `type_annotation`: its type, where it is given."""

    name_hint: str
    type_annotation: Type | None = None
    span: Span | None = None

    vid: Id = field(init=False)

    def __post_init__(self) -> None:
        self._keep(vid=Id(self.name_hint))


@node
class GlobalVar(Expr):
    """The name of a function of a module, which looks it up by name."""

    name_hint: str
    span: Span | None = None


@node
class Constant(Expr):
    """A tensor that is known."""

    data: NDArray
    span: Span | None = None

    def __post_init__(self) -> None:
        if isinstance(self.data, (np.ndarray, np.generic)):
            self._keep(data=NDArray(np.asarray(self.data, order="C")))

    @property
    def array(self) -> Array:
        """The tensor as a NumPy array, which shares its memory."""
        return np.asarray(self.data)

    @property
    def tensor_type(self) -> TensorType:
        """The type of the tensor."""
        return TensorType(self.data.shape, self.data.dtype)


@node
class Tuple(Expr):
    """Several values as one."""

    fields: Sequence[Expr]
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(fields=_exprs(self.fields))

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.fields)

    def __getitem__(self, index: int) -> Expr:
        if not -len(self.fields) <= index < len(self.fields):
            raise OutOfTuple("Tuple index out of range", f"the tuple has {len(self.fields)} fields")
        return self.fields[index]

    def astype(self, dtype: object) -> Expr:
        raise ExpressionTypeError("a tuple has no type of elements", "cast its fields one by one")


class OutOfTuple(ExpressionError, IndexError):
    """An index that a tuple does not have."""


@node
class TupleGetItem(Expr):
    """One field of a tuple."""

    tuple_value: Expr
    index: int
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(tuple_value=as_expr(self.tuple_value))


@node
class Call(Expr):
    """An operator, a function or a constructor applied to arguments."""

    op: Expr
    args: Sequence[Expr]
    attrs: Attrs | None = None
    type_args: Sequence[Type] = ()
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(args=_exprs(self.args), type_args=tuple(self.type_args or ()))


@node
class Function(Expr):
    """A function. `attrs`: notes by name, such as `Primitive` (a kernel of its own) or `Compiler`."""

    params: Sequence[Var]
    body: Expr
    ret_type: Type | None = None
    type_params: Sequence[TypeVar] = ()
    attrs: DictAttrs = field(default_factory=DictAttrs)
    span: Span | None = None

    def __post_init__(self) -> None:
        attrs = self.attrs if isinstance(self.attrs, DictAttrs) else DictAttrs(self.attrs)
        self._keep(
            params=tuple(self.params), body=as_expr(self.body), type_params=tuple(self.type_params or ()), attrs=attrs
        )

    def with_attr(self, key: str | Mapping[str, object], value: object = None) -> Function:
        """The function with one more attribute, or several of a mapping."""
        changed = {key: value} if isinstance(key, str) else dict(key)
        return self.replace(attrs=DictAttrs({**self.attrs, **changed}))

    def without_attr(self, key: str) -> Function:
        """The function without an attribute."""
        return self.replace(attrs=DictAttrs({k: v for k, v in self.attrs.items() if k != key}))


@node
class Let(Expr):
    """`body`, in which `var` is `value`. A function may call itself by the variable."""

    var: Var
    value: Expr
    body: Expr
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(value=as_expr(self.value), body=as_expr(self.body))


@node
class If(Expr):
    """One of two values, by a scalar bool; only that one is computed."""

    cond: Expr
    true_branch: Expr
    false_branch: Expr
    span: Span | None = None


@node
class RefCreate(Expr):
    """A new mutable cell with a value."""

    value: Expr
    span: Span | None = None


@node
class RefRead(Expr):
    """What a cell holds."""

    ref: Expr
    span: Span | None = None


@node
class RefWrite(Expr):
    """Puts a value into a cell; worth the empty tuple."""

    ref: Expr
    value: Expr
    span: Span | None = None


# ------------------------------------------------------------------------------------------------- algebraic data types


@node
class Constructor(Expr):
    """One way to make a value of an algebraic data type. `tag` is given by the module that it is added to."""

    name_hint: str
    inputs: Sequence[Type]
    belong_to: GlobalTypeVar
    tag: int = field(init=False, default=-1)
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(inputs=tuple(self.inputs))

    def tag_with(self, tag: int) -> None:
        """Note the tag that a module gives it."""
        self._keep(tag=tag)


class Pattern(Node):
    """Base of the patterns of `Match`."""

    def __repr__(self) -> str:
        from compassc.relay.printer import text

        return text(self)


@node
class PatternWildcard(Pattern):
    """Any value."""

    span: Span | None = None


@node
class PatternVar(Pattern):
    """Any value, by a name."""

    var: Var
    span: Span | None = None


@node
class PatternConstructor(Pattern):
    """A value that a constructor made, whose fields fit patterns."""

    constructor: Constructor
    patterns: Sequence[Pattern] = ()
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(patterns=tuple(self.patterns or ()))


@node
class PatternTuple(Pattern):
    """A tuple whose fields fit patterns."""

    patterns: Sequence[Pattern] = ()
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(patterns=tuple(self.patterns or ()))


@node
class Clause(Node):
    """What a `Match` is worth where its pattern fits."""

    lhs: Pattern
    rhs: Expr
    span: Span | None = None


@node
class Match(Expr):
    """The value of the first clause that fits. `complete`: the clauses cover all values, which type inference checks."""

    data: Expr
    clauses: Sequence[Clause]
    complete: bool = True
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(clauses=tuple(self.clauses))


class TempExpr(Expr):
    """An expression that a pass uses while it runs."""

    def realize(self) -> Expr:
        """The expression that it stands for."""
        raise NotImplementedError  # by the pass


class TupleWrapper:
    """The result of an operator with several results: can be unpacked, and stands for its tuple wherever an expression is
    asked for."""

    def __init__(self, tuple_value: Expr, size: int) -> None:
        self.tuple_value, self.size = tuple_value, size

    def astuple(self) -> Expr:
        """The tuple as an expression."""
        return self.tuple_value

    def astext(self) -> str:
        """The text of the tuple."""
        return self.tuple_value.astext()

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Expr]:
        return (self[i] for i in range(self.size))

    def __getitem__(self, index: int) -> Expr:
        if not 0 <= index < self.size:
            raise OutOfTuple("Tuple index out of range", f"there are {self.size} results")
        return TupleGetItem(self.tuple_value, index)


# --------------------------------------------------------------------------------------------------------- how to make them


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Sequence[Dim] | None = None,
    dtype: str = "float32",
    span: Span | None = None,
) -> Var:
    """A variable with a type, a type of elements (a scalar), or a shape. TwoTypes for a type and a shape."""
    if type_annotation is not None and shape is not None:
        raise TwoTypes(f"'{name_hint}' is given a type and a shape", "give one of them")
    if shape is not None:
        return Var(name_hint, TensorType(shape, dtype), span)
    if isinstance(type_annotation, str):
        return Var(name_hint, TensorType((), type_annotation), span)
    return Var(name_hint, type_annotation, span)


class TwoTypes(ExpressionError, ValueError):
    """A variable that is given a type twice."""


class NoConstant(ExpressionError, ValueError):
    """A value that is no tensor."""


_NARROW = {"int64": "int32", "float64": "float32"}


def const(value: object, dtype: str | None = None, span: Span | None = None) -> Constant:
    """A constant of a number, nested lists or an array. Without `dtype` numbers of 64 bits become 32. NoConstant for anything
    else."""
    if isinstance(value, NDArray):
        return Constant(value, span)
    if not isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        raise NoConstant(f"a {type(value).__name__} is no constant", "give a number, a list or an array")
    array = np.array(value)
    if array.dtype.kind not in "biuf":
        raise NoConstant(f"{value!r} is no tensor of numbers", "give a number, a list or an array of numbers")
    wanted = dtype or _NARROW.get(array.dtype.name)
    return Constant(NDArray(array.astype(wanted) if wanted else array), span)

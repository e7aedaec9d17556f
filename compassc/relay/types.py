"""Types of Relay expressions. Types are equal (`==`) when their structure is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, SupportsIndex

from compass_core.dataclass import dataclass
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Var
from compassc.relay.node import Node, node

if TYPE_CHECKING:
    from compass_core.errors import Span
    from compassc.relay.attributes import Attrs
    from compassc.relay.expr import Constructor


class TypeKind(IntEnum):
    """What a type describes: values, shapes, base types, constraints between types, ADTs and their definitions."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class Open:
    """An extent that is known when the program runs, `relay.Any` to programs. One extent says nothing about another: each is an object of its own,
    and all are equal in structure."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"


SizeVar = Var
"""A symbolic extent."""
Dim = int | Open | SizeVar
"""An extent of a tensor; a symbolic one (`te.size_var("n")`) is equal to itself, and bound to a number by unification."""


class Type(Node):
    """Base of types."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        from compassc.relay.equal import structural_equal

        return self is other or (isinstance(other, Type) and structural_equal(self, other))

    def __hash__(self) -> int:
        from compassc.relay.equal import structural_hash

        return structural_hash(self)

    def __repr__(self) -> str:
        from compassc.relay.printer import text

        return text(self)


def _dims(shape: object) -> tuple[Dim, ...]:
    return tuple([_dim(d) for d in (shape if isinstance(shape, Iterable) else (shape,))])


def _dim(given: object) -> Dim:
    if type(given) is int:  # most are
        return given
    if isinstance(given, (Open, SizeVar)):
        return given
    if isinstance(given, SupportsIndex):
        return int(given)
    value = getattr(given, "value", None)  # an IntImm
    if isinstance(value, int):
        return value
    raise ExpressionError(f"{given!r} is no extent of a tensor", "give a whole number, relay.Any() or a size variable")


def element_type(dtype: object) -> str:
    """The name of a type of elements: `float32`, `bool`."""
    name = str(dtype)
    return "bool" if name == "uint1" else str(data_type(name))


@node
class TensorType(Type):
    """A tensor of a shape and a type of elements (its name: `float32`, `bool`)."""

    shape: Sequence[Dim]
    dtype: str = "float32"
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(shape=_dims(self.shape), dtype=element_type(self.dtype))

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The extents as numbers. ExpressionError where one is open."""
        if is_dynamic(self):
            raise ExpressionError(f"the shape of {self} is open")
        return tuple([d for d in self.shape if isinstance(d, int)])


@node
class TupleType(Type):
    """A tuple of values."""

    fields: Sequence[Type]
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(fields=tuple(self.fields))


@node
class FuncType(Type):
    """A function: its arguments, its result, the types it is polymorphic in, and relations between them."""

    arg_types: Sequence[Type]
    ret_type: Type
    type_params: Sequence[TypeVar] = ()
    type_constraints: Sequence[Type] = ()
    span: Span | None = None

    def __post_init__(self) -> None:
        self._keep(
            arg_types=tuple(self.arg_types),
            type_params=tuple(self.type_params or ()),
            type_constraints=tuple(self.type_constraints or ()),
        )


@node
class TypeVar(Type):
    """A type that a function or a definition is polymorphic in; equal to itself only, but under binders."""

    name_hint: str
    kind: TypeKind = TypeKind.Type

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


@node
class GlobalTypeVar(Type):
    """The name of a type that a module defines."""

    name_hint: str
    kind: TypeKind = TypeKind.AdtHandle

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


@node
class TypeCall(Type):
    """A defined type applied to types: `List[int32]`."""

    func: Type
    args: Sequence[Type] = ()

    def __post_init__(self) -> None:
        self._keep(args=tuple(self.args or ()))


@node
class IncompleteType(Type):
    """A type that inference is to find."""

    kind: TypeKind = TypeKind.Type


@node
class RefType(Type):
    """A mutable cell that holds a value of a type."""

    value: Type


class RelationError(ExpressionError):
    """Types that an operator or a relation does not take together."""


@dataclass(frozen=True)
class Related:
    """What a relation found that knows types of arguments, too. `result`: the type of the result, None to wait for more;
    `inputs`: what an argument is to be unified with, by its place."""

    result: Type | None
    inputs: Mapping[int, Type]


Relation = Callable[[Sequence[Type], "Attrs | None"], "Type | Related | None"]
"""The type rule of an operator: from the types of arguments and the attributes to the type of the result, or None to wait
for more. Arguments may be holes (`IncompleteType`). RelationError where types do not fit."""


@node
class TypeRelation(Type):
    """A constraint: `func` relates `args`, of which the first `num_inputs` are inputs."""

    func: Relation
    args: Sequence[Type]
    num_inputs: int
    attrs: Attrs | None = None

    def __post_init__(self) -> None:
        self._keep(args=tuple(self.args))


@node
class TypeData(Type):
    """The definition of an algebraic data type."""

    header: GlobalTypeVar
    type_vars: Sequence[TypeVar]
    constructors: Sequence[Constructor]

    def __post_init__(self) -> None:
        self._keep(type_vars=tuple(self.type_vars or ()), constructors=tuple(self.constructors or ()))


def scalar_type(dtype: str) -> TensorType:
    """The type of a tensor without axes."""
    return TensorType((), dtype)


def is_dynamic(given: Type) -> bool:
    """Whether an extent is known only when the program runs."""
    if isinstance(given, TensorType):
        return any(not isinstance(d, int) for d in given.shape)
    if isinstance(given, TupleType):
        return any(map(is_dynamic, given.fields))
    return False

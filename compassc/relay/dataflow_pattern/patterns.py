"""Dataflow patterns: what a part of a program looks like. Immutable, compared by identity: a pattern that stands at two places
stands for one expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from compassc.ir.errors import ExpressionTypeError
from compassc.relay import operators
from compassc.relay.attributes import DictAttrs
from compassc.relay.expr import Expr, OutOfTuple, as_expr
from compassc.relay.node import Node, node
from compassc.relay.types import Dim, TensorType, Type, element_type


class DFPattern(Node):
    """Base of patterns. `p(*args)` is a call, `p | q` one or the other, `+ - * /` are calls of the operators."""

    def __post_init__(self) -> None:
        """Keep lists of patterns as tuples, and refuse what is none."""
        for name in _CHILDREN.get(type(self), ()):
            value = getattr(self, name)
            if isinstance(value, (list, tuple)):
                self._keep(**{name: tuple([_pattern(p) for p in value])})
            elif value is not None or name not in _OPTIONAL:
                _pattern(value)

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        return CallPattern(self, None if args == (None,) else args)  # type: ignore[arg-type]  # None among others is refused

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, object]) -> AttrPattern:
        """The pattern, with attributes of these values."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        """The pattern, of a type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: object) -> DataTypePattern:
        """The pattern, a tensor of a type of elements."""
        return DataTypePattern(self, dtype)  # type: ignore[arg-type]  # made a name by it

    def has_shape(self, shape: Sequence[Dim]) -> ShapePattern:
        """The pattern, a tensor of a shape."""
        return ShapePattern(self, shape)

    def optional(self, option: Callable[[DFPattern], DFPattern]) -> AltPattern:
        """The pattern, or what `option` makes of it."""
        return self | option(self)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """The pattern, all inputs of which come from one `parent` by nodes that match `path` (any without it)."""
        return DominatorPattern(parent, path if path is not None else wildcard(), self)

    def match(self, expr: Expr) -> bool:
        """Whether an expression matches."""
        from compassc.relay.dataflow_pattern.matcher import match

        return match(self, expr)

    def partition(
        self, expr: Expr, attrs: Mapping[str, object] | None = None, check: Callable[[Expr], bool] = lambda e: True
    ) -> Expr:
        """The program with each match as a call of a function of its own; see `relay.dataflow_pattern.partition`."""
        from compassc.relay.dataflow_pattern.rewriting import partition

        return partition(self, expr, attrs, check)

    def __repr__(self) -> str:
        from compassc.relay.dataflow_pattern.text import text

        return text(self)


def _pattern(given: object) -> DFPattern:
    if not isinstance(given, DFPattern):
        raise ExpressionTypeError(
            f"a {type(given).__name__} is no dataflow pattern", "make patterns of expressions with is_expr"
        )
    return given


@node
class ExprPattern(DFPattern):
    """An expression that is structurally equal to this one."""

    expr: Expr

    def __post_init__(self) -> None:
        self._keep(expr=as_expr(self.expr))


@node
class VarPattern(DFPattern):
    """A variable, of a name where one is given."""

    name_hint: str = ""

    @property
    def name(self) -> str:
        """The name of the variable, "" for any."""
        return self.name_hint


@node
class ConstantPattern(DFPattern):
    """A constant."""


@node
class WildcardPattern(DFPattern):
    """Any expression, or what it is redirected to: so a pattern may contain itself."""

    target: DFPattern | None = field(init=False, default=None)

    def redirect_to(self, pattern: DFPattern) -> None:
        """Have it stand for a pattern, which may contain it."""
        self._keep(target=_pattern(pattern))


@node
class CallPattern(DFPattern):
    """A call; without `args` of any arguments."""

    op: DFPattern
    args: Sequence[DFPattern] | None = None


@node
class FunctionPattern(DFPattern):
    """A function; without `params` of any parameters."""

    params: Sequence[DFPattern] | None
    body: DFPattern


@node
class IfPattern(DFPattern):
    """A branch."""

    cond: DFPattern
    true_branch: DFPattern
    false_branch: DFPattern


@node
class LetPattern(DFPattern):
    """A let."""

    var: DFPattern
    value: DFPattern
    body: DFPattern


@node
class TuplePattern(DFPattern):
    """A tuple; without `fields` any."""

    fields: Sequence[DFPattern] | None = None

    def __len__(self) -> int:
        return len(self.fields or ())

    def __iter__(self) -> Iterator[DFPattern]:
        return iter(self.fields or ())

    def __getitem__(self, index: int) -> DFPattern:
        fields = self.fields or ()
        if not -len(fields) <= index < len(fields):
            raise OutOfTuple("Tuple index out of range", f"the pattern has {len(fields)} fields")
        return fields[index]


@node
class TupleGetItemPattern(DFPattern):
    """A field of a tuple; without `index` any."""

    tuple: DFPattern
    index: int | None = None


@node
class AltPattern(DFPattern):
    """One pattern or the other, which is tried second."""

    left: DFPattern
    right: DFPattern


@node
class AttrPattern(DFPattern):
    """What matches `pattern` and has attributes of these values."""

    pattern: DFPattern
    attrs: Mapping[str, object]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(attrs=DictAttrs(self.attrs))


@node
class TypePattern(DFPattern):
    """What matches `pattern` and has a type."""

    pattern: DFPattern
    type: Type


@node
class DataTypePattern(DFPattern):
    """What matches `pattern` and is a tensor of a type of elements."""

    pattern: DFPattern
    dtype: str

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(dtype=element_type(self.dtype))


@node
class ShapePattern(DFPattern):
    """What matches `pattern` and is a tensor of a shape."""

    pattern: DFPattern
    shape: Sequence[Dim]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(shape=TensorType(self.shape).shape)


@node
class DominatorPattern(DFPattern):
    """What matches `child` and takes all its inputs from one node that matches `parent`, by nodes that match `path`. Leaves
    that match `path` are inputs from nowhere."""

    parent: DFPattern
    path: DFPattern
    child: DFPattern


_CHILDREN: Mapping[type, Sequence[str]] = {
    AltPattern: ("left", "right"),
    AttrPattern: ("pattern",),
    CallPattern: ("op", "args"),
    DataTypePattern: ("pattern",),
    DominatorPattern: ("parent", "path", "child"),
    FunctionPattern: ("params", "body"),
    IfPattern: ("cond", "true_branch", "false_branch"),
    LetPattern: ("var", "value", "body"),
    ShapePattern: ("pattern",),
    TupleGetItemPattern: ("tuple",),
    TuplePattern: ("fields",),
    TypePattern: ("pattern",),
    WildcardPattern: ("target",),
}
"""The fields of each class that hold patterns, in the order they are visited in. Classes left out have none."""

_OPTIONAL = ("args", "fields", "params", "target")
"""Those of them that may be None."""


def parts(p: DFPattern) -> list[DFPattern]:
    """The patterns that a pattern consists of."""
    found: list[DFPattern] = []
    for name in _CHILDREN.get(type(p), ()):
        value = getattr(p, name)
        if value is not None:
            found += value if isinstance(value, tuple) else [value]
    return found


def pattern_order(root: DFPattern) -> Iterator[DFPattern]:
    """Each pattern once, parts before what they are part of; a redirected one may come before what it stands for."""
    seen = {root}
    stack = [(root, iter(parts(root)))]
    while stack:
        p, rest = stack[-1]
        following = next((q for q in rest if q not in seen), None)
        if following is None:
            stack.pop()
            yield p
        else:
            seen.add(following)
            stack.append((following, iter(parts(following))))


# --------------------------------------------------------------------------------------------------- how patterns are made


def is_var(name: str = "") -> VarPattern:
    """A variable, of a name where one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: Expr) -> ExprPattern:
    """An expression that is structurally equal to `expr`; its free variables are the same ones."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator: `is_op("add")(a, b)` is a call of it. OperatorError for unknown names."""
    return ExprPattern(operators.get(op_name))


def wildcard() -> WildcardPattern:
    """Any expression."""
    return WildcardPattern()


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """A tuple of these fields, None for any tuple."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple, None for any."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """A branch."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """A let."""
    return LetPattern(var, value, body)


def _or_any(pattern: DFPattern | None) -> DFPattern:
    return wildcard() if pattern is None else _pattern(pattern)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """Any expression, or what matches a pattern, of a type."""
    return _or_any(pattern).has_type(ttype)


def has_dtype(dtype: object, pattern: DFPattern | None = None) -> DataTypePattern:
    """Any tensor, or one that matches a pattern, of a type of elements."""
    return _or_any(pattern).has_dtype(dtype)


def has_shape(shape: Sequence[Dim], pattern: DFPattern | None = None) -> ShapePattern:
    """Any tensor, or one that matches a pattern, of a shape."""
    return _or_any(pattern).has_shape(shape)


def has_attr(attrs: Mapping[str, object], pattern: DFPattern | None = None) -> AttrPattern:
    """Any expression, or what matches a pattern, with attributes of these values."""
    return _or_any(pattern).has_attr(attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """What matches `child` and takes all its inputs from one `parent`, by nodes that match `path`."""
    return DominatorPattern(parent, path, child)

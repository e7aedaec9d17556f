"""Nodes of the IR as programs for the framework see them: fields under its names, and nodes made with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, TypeVar

from compass_core.errors import UsageError
from compassc.dsl import script
from compassc.ir import PrimFunc
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import DataType
from compassc.ir.exprs import Buffer, Expr
from compassc.ir.operators import as_expr, binary, cast, immediate, kind_of
from compassc.language.specs import VALUE_ATTRIBUTES
from compassc.te.buffers import View, whole
from compassc.te.construct import data_type, var
from compassc.te.ir_builder import truth
from compassc.te.opaque import body_of


class _NoField(UsageError, AttributeError):
    """A node has no such field."""


class _WrongArgument(UsageError, TypeError):
    """A node cannot be made of an argument."""


def _extent(loop: S.For) -> Expr:
    """The number of turns. _NoField for loops with steps, which the framework does not have."""
    if not isinstance(loop.step, E.IntImm) or loop.step.value != 1:
        raise _NoField(
            f"the loop of '{loop.loop_var.name}' goes in steps of {loop.step}, and has no extent",
            code="compat-name",
            help="its fields are min, stop and step",
        )
    if isinstance(loop.min, E.IntImm) and loop.min.value == 0:
        return loop.stop
    return binary("sub", loop.stop, loop.min)


def _buffer_map(function: PrimFunc) -> dict[E.Var, Buffer]:
    """The buffers of the parameters that are addresses."""
    declared = (s.buffer for s in function.body if isinstance(s, S.DeclBuffer))
    return {buffer.data: buffer for buffer in declared if buffer.data in function.params}


def variable(given: Any) -> E.Var:
    """The variable itself. TypeError for other values."""
    found = as_expr(given)
    if not isinstance(found, E.Var):
        raise _WrongArgument(f"{found} is no variable", code="input", help="take te.var(name)")
    return found


def _stored(given: Any) -> Buffer:
    """The buffer itself of what was declared."""
    found = given.buffer if isinstance(given, View) else given
    if not isinstance(found, Buffer):
        raise _WrongArgument(f"a {type(given).__name__} is no buffer", code="input", help="take te.decl_buffer(shape)")
    return found


FIELDS: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    S.For: {"extent": _extent},
    PrimFunc: {"buffer_map": _buffer_map},
}
"""Names of fields in the framework, where these are other ones than here."""


def _added() -> Iterator[tuple[type, str, Any]]:
    for cls, fields in FIELDS.items():
        for name, get in fields.items():
            yield cls, name, property(get)


def add_fields() -> None:
    """Nodes have their fields under the framework's names, too."""
    for cls, name, value in _added():
        setattr(cls, name, value)


def remove_fields() -> None:
    """Undo `add_fields`."""
    for cls, name, _ in _added():
        if name in vars(cls):
            delattr(cls, name)


class Statements(tuple[S.Stmt, ...]):
    """A body as programs see it: a tuple of statements, and where it has one, that has its fields, too. A body that begins
    with a `Let` or an `Alloc` is that statement, whose `body` is the rest. Declared buffers do not count."""

    __slots__ = ()

    def alone(self) -> S.Stmt | None:
        """The statement that the body is; None for several, or none."""
        counted = [s for s in self if not isinstance(s, S.DeclBuffer)]
        return counted[0] if len(counted) == 1 or (counted and isinstance(counted[0], _SCOPES)) else None

    def __getattr__(self, name: str) -> Any:
        first = self.alone()
        if name.startswith("__"):  # asked for by Python itself, which has a fallback
            raise AttributeError(name)
        if first is None:
            raise _NoField(
                f"a body of {len(self)} statements has no '{name}'",
                code="compat-name",
                help="take one of them: body[0]",
            )
        if name == "body" and isinstance(first, _SCOPES):
            return Statements(self[self.index(first) + 1 :])
        if not hasattr(first, name):
            raise _NoField(
                f"a body that is one {type(first).__name__} has no '{name}'",
                code="compat-name",
                help=f"a {type(first).__name__} has {', '.join(sorted({*first.fields, *FIELDS.get(type(first), ())}))}",
            )
        return getattr(first, name)


_SCOPES = (S.Let, S.Alloc)
"""What holds for the rest of a body, which is a part of it in the framework."""
_B = TypeVar("_B", PrimFunc, S.Stmt, S.Body)


def seen(given: _B) -> _B:
    """A function, statement or body whose bodies are `Statements`, all the way down; itself if they are."""
    return _with_bodies(given, Statements)


def plain(given: _B) -> _B:
    """Undo `seen`."""
    return _with_bodies(given, tuple)


def _with_bodies(given: Any, kind: type[S.Body]) -> Any:
    def body(statements: S.Body) -> S.Body:
        made = kind([stmt(s) for s in statements])
        return statements if type(statements) is kind and all(map(is_, made, statements)) else made

    def stmt(s: S.Stmt) -> S.Stmt:
        return s.map(lambda e: e, body) if s.bodies() else s

    if isinstance(given, PrimFunc):
        made = body(given.body)
        return given if made is given.body else given.replace(body=made)
    return body(given) if isinstance(given, tuple) else stmt(given)


KINDS = {"SERIAL": "serial", "PARALLEL": "parallel", "VECTORIZED": "vectorized", "UNROLLED": "unrolled"}
"""The framework's kinds of loops, and those here."""


class _Kinds(type):
    def __getattr__(cls, name: str) -> str:
        if name in KINDS:
            return KINDS[name]
        raise _NoField(
            f"there is no kind of loops '{name}'",
            code="compat-name",
            help=f"known are {', '.join(KINDS)}; loops over threads are of kinds such as 'threadIdx_x' and 'tec'",
        )


class ForKind(metaclass=_Kinds):
    """What a loop is, by the names of KINDS: the same words as `loop.kind`."""


class NodeType(type):
    """A name that stands for nodes of the class `node`, and makes them of the framework's arguments."""

    node: type
    make: Callable[..., Any]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value.alone() if isinstance(value, Statements) else value, cls.node)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return cls.make(*args, **options)


class For(metaclass=NodeType):
    """A loop: `For(loop_var, min, extent, kind, body)`; `kind` is one of `ForKind`."""

    node = S.For

    @staticmethod
    def make(
        loop_var: Any,
        min: Any,
        extent: Any,
        kind: str,
        body: Any,
        thread_binding: None = None,
        annotations: Mapping[str, Any] | None = None,
    ) -> S.For:
        """The loop. TypeError for a variable that is none, and for kinds that there are not."""
        var = variable(loop_var)
        if thread_binding is not None or kind not in KINDS.values():
            raise _WrongArgument(
                f"there is no loop of the kind {kind!r}",
                code="input",
                help=f"ForKind has {', '.join(KINDS)}; threads are bound by schedules",
            )
        start, size = (cast(whole(e, f"an end of the loop '{var.name}'"), var.data_type) for e in (min, extent))
        stop = size if isinstance(start, E.IntImm) and start.value == 0 else binary("add", start, size)
        one, notes = E.IntImm(var.data_type, 1), tuple((annotations or {}).items())
        return S.For(var, kind, start, stop, one, seen(body_of(body, "For")), notes)


class IfThenElse(metaclass=NodeType):
    """A condition: `IfThenElse(condition, then_case, else_case=None)`."""

    node = S.IfThenElse

    @staticmethod
    def make(condition: Any, then_case: Any, else_case: Any = None) -> S.IfThenElse:
        """The condition. TypeError for what is no bool."""
        other = None if else_case is None else seen(body_of(else_case, "IfThenElse"))
        return S.IfThenElse(truth(condition), seen(body_of(then_case, "IfThenElse")), other)


class BufferStore(metaclass=NodeType):
    """What writes an element: `BufferStore(buffer, value, indices)`."""

    node = S.BufferStore

    @staticmethod
    def make(buffer: Any, value: Any, indices: Sequence[Any]) -> S.BufferStore:
        """The statement; a number takes the elements' type. ExpressionTypeError for values of other types."""
        written = View(_stored(buffer)).store(value, *indices)
        assert isinstance(written, S.BufferStore)
        return written


class BufferLoad(metaclass=NodeType):
    """The value of an element: `BufferLoad(buffer, indices)`."""

    node = E.BufferLoad

    @staticmethod
    def make(buffer: Any, indices: Sequence[Any]) -> Expr:
        """The expression."""
        return View(_stored(buffer))[tuple(indices)]


class Evaluate(metaclass=NodeType):
    """An expression that is evaluated: `Evaluate(value)`."""

    node = S.Evaluate

    @staticmethod
    def make(value: Any) -> S.Evaluate:
        """The statement."""
        return S.Evaluate(as_expr(value))


class Var(metaclass=NodeType):
    """A variable: `Var(name, dtype="int32")`."""

    node = E.Var
    make = staticmethod(var)


class IntImm(metaclass=NodeType):
    """A whole number: `IntImm(dtype, value)`."""

    node = E.IntImm

    @staticmethod
    def make(dtype: Any, value: int) -> Expr:
        """The node. ExpressionError for what the type does not hold, TypeError for types of other numbers."""
        return _number(dtype, value, "whole numbers", lambda kind: kind.is_integer)


class FloatImm(metaclass=NodeType):
    """A real number: `FloatImm(dtype, value)`."""

    node = E.FloatImm

    @staticmethod
    def make(dtype: Any, value: float) -> Expr:
        """The node. TypeError for types of other numbers."""
        return _number(dtype, value, "real numbers", lambda kind: kind.is_floating)


def _number(dtype: Any, value: float, what: str, fits: Callable[[DataType], bool]) -> Expr:
    kind = data_type(dtype)
    if not kind.is_scalar or not fits(kind):
        raise _WrongArgument(f"{kind} is no type of {what}", code="input", help="tvm.tir.const(value, dtype) takes any")
    return immediate(value, kind)


class Cast(metaclass=NodeType):
    """A value converted to another type: `Cast(dtype, value)`, which is `value.astype(dtype)`."""

    node = E.Cast

    @staticmethod
    def make(dtype: Any, value: Any) -> Any:
        """The value, by the rules of C: an expression, or in kernels what `S.cast` gives. TypeError for expressions of
        vectors."""
        kind = data_type(dtype)
        if getattr(type(value), "attributes", None) is VALUE_ATTRIBUTES:  # of a kernel that is called or built
            return script.cast(value, kind)
        given = as_expr(value)
        if not kind.is_scalar or not kind_of(given).is_scalar:
            raise _WrongArgument(
                f"a cast of {given.dtype} to {kind}", code="input", help="expressions are made of scalars"
            )
        return cast(given, kind)


class Broadcast(metaclass=NodeType):
    """A scalar in every lane: `Broadcast(value, lanes)`."""

    node = E.Broadcast

    @staticmethod
    def make(value: Any, lanes: int) -> Expr:
        """The vector."""
        return E.Broadcast(as_expr(value), lanes)


class Ramp(metaclass=NodeType):
    """The numbers `base`, `base + stride`, ... as lanes: `Ramp(base, stride, lanes)`."""

    node = E.Ramp

    @staticmethod
    def make(base: Any, stride: Any, lanes: int) -> Expr:
        """The vector; the stride takes the type of the base."""
        first = as_expr(base)
        return E.Ramp(first, cast(stride, kind_of(first)), lanes)

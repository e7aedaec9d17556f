"""What programs compute: closures, recursion, branches, data types and references, with operators by their references.

Calls are by value, from left to right. An expression that is used at several places is evaluated once per call of the function
that all its users stand in. Recursion of the program takes no stack of Python's; calls in the last place take nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

import numpy as np

from compass_core.errors import CompassError
from compass_runtime.ndarray import NDArray
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.rules import method, table
from compassc.relay.attributes import Attrs
from compassc.relay.errors import DiagnosticError
from compassc.relay.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    as_expr,
    const,
)
from compassc.relay.module import MAIN, IRModule
from compassc.relay.operators import Arrays, Op
from compassc.relay.steps import Steps, run
from compassc.relay.types import Related, RelationError, TensorType, TupleType, Type
from compassc.relay.variables import free_vars
from compassc.relay.visit import children, post_order

CODE = "relay-run"
MOST_WAITING = 1_000_000
"""Evaluations that wait for others, at most."""
_SHOWN = 4
"""Levels of a value of a data type that its text shows."""
Value = Union[NDArray, Op, Constructor, "ConstructorValue", "RefValue", Callable[..., "Value"], tuple["Value", ...]]
"""A value of the language: a tensor, a function (of the language, an operator, a constructor), a value of a data type, a cell, or a
tuple of values."""


class ConstructorValue:
    """A value of a data type: the constructor that made it, its tag, and its fields."""

    __slots__ = ("constructor", "fields", "tag")

    def __init__(self, tag: int, fields: Sequence[Any], constructor: Constructor | None = None) -> None:
        self.tag, self.fields, self.constructor = tag, tuple(fields), constructor

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]

    def __repr__(self) -> str:
        return _shown(self, _SHOWN)


class RefValue:
    """A mutable cell."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"RefValue({self.value!r})"


class Frame:
    """The values of the variables of one call of a function, within those of the function it stands in."""

    __slots__ = ("function", "known", "outer", "values")

    def __init__(self, function: Function | None, outer: Frame | None) -> None:
        self.function, self.outer = function, outer
        self.values: dict[int, Value] = {}
        self.known: dict[int, Value] = {}
        """The values of shared expressions."""

    def __iter__(self) -> Iterator[Frame]:
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.outer


class Closure:
    """A function with the values of the variables that it uses. It can be called with values."""

    __slots__ = ("frame", "function", "interpreter")

    def __init__(self, function: Function, frame: Frame, interpreter: Interpreter) -> None:
        self.function, self.frame, self.interpreter = function, frame, interpreter

    def __call__(self, *args: object, **named: object) -> Value:
        values = arguments(self.function.params, args, named)
        return self.interpreter.called(self, values)

    def __repr__(self) -> str:
        return f"Closure({self.function!r})"


def _shown(value: Value, levels: int) -> str:
    if isinstance(value, ConstructorValue):
        name = value.constructor.name_hint if value.constructor is not None else f"constructor {value.tag:#x}"
        inner = ", ".join([_shown(f, levels - 1) for f in value.fields]) if levels else "..."
        return f"{name}({inner})" if value.fields else name
    return repr(value)


# ------------------------------------------------------------------------------------------------------------- arguments


def arguments(params: Sequence[Var], args: Sequence[object], named: Mapping[str, object]) -> list[Value]:
    """The values of a function's parameters by position and by name. ExpressionError for values that are given twice, are
    missing, or do not fit."""
    values = dict(enumerate(args))
    names = {p.name_hint: i for i, p in enumerate(params)}
    for name, value in named.items():
        if name not in names:
            raise ExpressionError(f"there is no parameter '{name}'", f"parameters: {', '.join(names) or 'none'}")
        if names[name] in values:
            raise ExpressionError(
                "duplicate argument supplied in both positional args "
                f"(at position: {names[name]}), and keyword argument (with name: {name})",
                "give it once",
            )
        values[names[name]] = value
    if sorted(values) != list(range(len(params))):
        raise ExpressionError(
            f"insufficient arguments, expected {len(params)}, provided {len(values)}",
            f"parameters: {', '.join(names) or 'none'}",
        )
    return [value_of(values[i], p.type_annotation, p.name_hint) for i, p in enumerate(params)]


def value_of(given: object, wanted: Type | None = None, name: str = "the value") -> Value:
    """A value of the language: an NDArray of numbers and arrays, a tuple of a tuple or list. ExpressionError where it does not
    fit the type that is wanted."""
    if isinstance(given, (Closure, ConstructorValue, RefValue, Op, Constructor)):
        return given
    if isinstance(given, (tuple, list)) and not (isinstance(given, list) and isinstance(wanted, TensorType)):
        types: Sequence[Type | None] = wanted.fields if isinstance(wanted, TupleType) else [None] * len(given)
        if len(types) != len(given):
            raise ExpressionError(f"{name} is a tuple of {len(given)} values", f"its type is {wanted}")
        return tuple([value_of(v, t, f"{name}.{i}") for i, (v, t) in enumerate(zip(given, types))])
    if isinstance(given, NDArray):
        made = given
    elif isinstance(given, (np.ndarray, np.generic)):
        made = NDArray(np.asarray(given, order="C"))
    elif isinstance(given, (bool, int, float, list)):
        made = const(given, wanted.dtype if isinstance(wanted, TensorType) else None).data
    else:
        raise ExpressionTypeError(f"{name} is a {type(given).__name__}", "give numbers, arrays, or tuples of these")
    if isinstance(wanted, TensorType):
        shape = tuple(made.shape)
        fits = len(shape) == len(wanted.shape) and all(
            a == b or not isinstance(b, int) for a, b in zip(shape, wanted.shape)
        )
        if not fits or made.dtype != wanted.dtype:
            found = TensorType(shape, made.dtype)
            raise ExpressionError(f"{name} is {found}, and its parameter {wanted}", "give an array of that type")
    return made


def _type_of(value: Value) -> Type | None:
    """The type of a tensor, or a tuple of them."""
    if isinstance(value, NDArray):
        return TensorType(value.shape, value.dtype)
    if isinstance(value, tuple):
        types = [_type_of(v) for v in value]
        return TupleType([t for t in types if t is not None]) if None not in types else None
    return None


def _arrays(value: Value) -> Arrays:
    return [_arrays(v) for v in value] if isinstance(value, tuple) else np.asarray(value)


def _values(found: object) -> Value:
    if isinstance(found, (tuple, list)):
        return tuple([_values(v) for v in found])
    return NDArray(np.asarray(found, order="C"))


def is_settled(t: Type | None) -> bool:
    """Whether a type is that of tensors with known extents."""
    if isinstance(t, TupleType):
        return all(map(is_settled, t.fields))
    return isinstance(t, TensorType) and all(isinstance(d, int) for d in t.shape)


# ------------------------------------------------------------------------------------------------------------ evaluation


class Interpreter:
    """Evaluates expressions with the functions of a module."""

    def __init__(self, module: IRModule | None = None) -> None:
        self.module = module if module is not None else IRModule()
        self._home: dict[int, Function | None] = {}
        """Of each shared expression the function that all its users stand in, None for the outermost."""
        self._roots: dict[int, Expr] = {}
        self._outermost = Frame(None, None)

    def evaluate(self, expr: object = None, binds: Mapping[Var, object] | None = None) -> Any:
        """The value of an expression; of a function (or its name; `main` by default) something that is called with values, and
        gives values. `binds`: values of free variables. ExpressionError where variables stay free."""
        given = self.module.get_global_var(MAIN) if expr is None else as_expr(expr)
        frame = Frame(None, self._outermost)
        for v, value in (binds or {}).items():
            frame.values[id(v)] = value_of(value, v.type_annotation, v.name_hint)
        missing = [v.name_hint for v in free_vars(given) if id(v) not in frame.values]
        if missing:
            raise ExpressionError(
                f"the expression has free variables: {', '.join(missing)}", "give their values as binds"
            )
        self._look_at(given, frame)
        return self._run(self._value(given, frame))

    def called(self, callee: Value, args: Sequence[Value]) -> Value:
        """The value of a function of values."""
        return self._run(self._apply(callee, args, None))

    def _run(self, steps: Steps[Value]) -> Value:
        def too_deep() -> CompassError:
            return ExpressionError(
                f"the program recurses: {MOST_WAITING:,} evaluations wait for each other",
                "make the call that recurses the last thing that its function does, or end the recursion",
            )

        return run(steps, MOST_WAITING, too_deep)

    def _look_at(self, root: Expr, frame: Frame | None = None) -> None:
        """Find the shared expressions of a program that is seen for the first time."""
        if id(root) in self._roots:
            return
        self._roots[id(root)] = root
        order = list(post_order(root))
        uses = Counter(id(c) for e in order for c in children(e))
        inside: dict[int, tuple[Function, ...]] = {id(root): ()}
        for e in reversed(order):
            here = inside[id(e)] + ((e,) if isinstance(e, Function) else ())
            for child in children(e):
                known = inside.get(id(child))
                inside[id(child)] = here if known is None else _common(known, here)
        shared = [e for e in order if uses[id(e)] > 1 and not isinstance(e, _ATOMS)]
        self._home.update({id(e): (inside[id(e)] or (None,))[-1] for e in shared})

    # ------------------------------------------------------------------------------------------------------- expressions

    def _value(self, e: Expr, frame: Frame, first: Expr | None = None) -> Steps[Value]:
        """The value of an expression in a frame. What comes last is done in the same turn, so that loops take no stack.
        `first`: a shared expression whose value is not known."""
        while True:
            if id(e) in self._home and e is not first:
                shared: Value = yield self._shared(e, frame)
                return shared
            if isinstance(e, Let):
                frame.values[id(e.var)] = yield self._value(e.value, frame)
                e = e.body
            elif isinstance(e, If):
                cond = yield self._value(e.cond, frame)
                e = e.true_branch if self._truth(cond, e) else e.false_branch
            elif isinstance(e, Match):
                data = yield self._value(e.data, frame)
                e = self._matched(e, data, frame)
            elif isinstance(e, Call) and not isinstance(e.op, (Op, Constructor)):
                callee = yield self._value(e.op, frame)
                args = yield self._all(e.args, frame)
                if not isinstance(callee, Closure):
                    applied: Value = yield self._apply(callee, args, e)
                    return applied
                frame = self._entered(callee, args, e)
                e = callee.function.body
            else:
                read = _FORMS.get(type(e))
                if read is None:
                    raise self._error(f"a {type(e).__name__} cannot be evaluated", e)
                made: Value = yield read(self, e, frame)
                return made

    def _all(self, parts: Sequence[Expr], frame: Frame) -> Steps[list[Value]]:
        found: list[Value] = []
        for part in parts:
            found.append((yield self._value(part, frame)))
        return found

    def _shared(self, e: Expr, frame: Frame) -> Steps[Value]:
        """The value of an expression with several users, which is found once per call of the function they stand in."""
        home = self._home[id(e)]
        inside = next((f for f in frame if f.function is home), frame)
        if id(e) not in inside.known:
            inside.known[id(e)] = yield self._value(e, inside, e)
        return inside.known[id(e)]

    def _variable(self, e: Var, frame: Frame) -> Steps[Value]:
        yield from ()
        for inside in frame:
            if id(e) in inside.values:
                return inside.values[id(e)]
        raise self._error(f"variable {e.name_hint} has no value here", e)

    def _constant(self, e: Constant, frame: Frame) -> Steps[Value]:
        yield from ()
        return e.data

    def _itself(self, e: Op | Constructor, frame: Frame) -> Steps[Value]:
        yield from ()
        return e

    def _global(self, e: GlobalVar, frame: Frame) -> Steps[Value]:
        yield from ()
        if e not in self.module:
            raise self._error(f"the module has no function @{e.name_hint}", e)
        function = self.module[e]
        if not isinstance(function, Function):
            raise self._error(f"@{e.name_hint} is a kernel, which is not evaluated", e, "build the module")
        self._look_at(function)
        return Closure(function, self._outermost, self)

    def _closure(self, e: Function, frame: Frame) -> Steps[Value]:
        yield from ()
        return Closure(e, frame, self)

    def _tuple(self, e: Tuple, frame: Frame) -> Steps[Value]:
        fields = yield self._all(e.fields, frame)
        return tuple(fields)

    def _item(self, e: TupleGetItem, frame: Frame) -> Steps[Value]:
        whole = yield self._value(e.tuple_value, frame)
        if not isinstance(whole, tuple) or not 0 <= e.index < len(whole):
            raise self._error(f"there is no item {e.index} of {_shown(whole, _SHOWN)}", e)
        item: Value = whole[e.index]
        return item

    def _ref_create(self, e: RefCreate, frame: Frame) -> Steps[Value]:
        value = yield self._value(e.value, frame)
        return RefValue(value)

    def _cell(self, e: RefRead | RefWrite, frame: Frame) -> Steps[RefValue]:
        cell = yield self._value(e.ref, frame)
        if not isinstance(cell, RefValue):
            raise self._error(f"{_shown(cell, _SHOWN)} is no reference", e)
        return cell

    def _ref_read(self, e: RefRead, frame: Frame) -> Steps[Value]:
        cell: RefValue = yield self._cell(e, frame)
        return cell.value

    def _ref_write(self, e: RefWrite, frame: Frame) -> Steps[Value]:
        cell: RefValue = yield self._cell(e, frame)
        cell.value = yield self._value(e.value, frame)
        return ()

    def _call(self, e: Call, frame: Frame) -> Steps[Value]:
        """A call of an operator or a constructor."""
        args = yield self._all(e.args, frame)
        applied: Value = yield self._apply(e.op, args, e)
        return applied

    # ------------------------------------------------------------------------------------------------------------- calls

    def _apply(self, callee: Value, args: Sequence[Value], e: Call | None) -> Steps[Value]:
        """The value of a function, an operator or a constructor of values."""
        if isinstance(callee, Closure):
            inner: Value = yield self._value(callee.function.body, self._entered(callee, args, e))
            return inner
        if isinstance(callee, Constructor):
            if len(args) != len(callee.inputs):
                raise self._error(f"{callee.name_hint} takes {len(callee.inputs)} values, not {len(args)}", e)
            return ConstructorValue(callee.tag, args, callee)
        if isinstance(callee, Op):
            return self._computed(callee, args, e)
        raise self._error(f"{_shown(callee, _SHOWN)} is no function", e)

    def _entered(self, callee: Closure, args: Sequence[Value], e: Call | None) -> Frame:
        """The frame of a call."""
        params = callee.function.params
        if len(params) != len(args):
            raise self._error(f"a function of {len(params)} parameters is called with {len(args)} values", e)
        frame = Frame(callee.function, callee.frame)
        frame.values = {id(p): value for p, value in zip(params, args)}
        return frame

    def _computed(self, op: Op, args: Sequence[Value], e: Call | None) -> Value:
        """The value of an operator by its reference."""
        if op.reference is None:
            raise self._error(f"operator {op.name} has no reference, and cannot be evaluated", e)
        attrs = e.attrs if e is not None else None
        try:
            found = op.reference(attrs, [_arrays(a) for a in args], self._result(op, attrs, args, e))
        except ExpressionError as error:
            if error.span is None:
                error.span = getattr(e, "span", None)
            raise
        return _values(found)

    def _result(self, op: Op, attrs: Attrs | None, args: Sequence[Value], e: Call | None) -> Type:
        """The type of an operator's result: with the extents that the values have, as far as the values tell."""
        known = e.checked_type_ if e is not None else None
        if known is not None and is_settled(known):
            return known
        types = [_type_of(a) for a in args]
        given = [t for t in types if t is not None]
        if op.relation is not None and len(given) == len(types):
            try:
                found = op.relation(given, attrs)
            except RelationError as error:
                raise self._error(f"{op.name} does not take {', '.join(map(str, given))}: {error.message}", e) from None
            made = found.result if isinstance(found, Related) else found
            if made is not None:
                return made
        if known is None:
            raise self._error(f"the type of what {op.name} gives is not known", e, "infer the types of the program")
        return known

    def _error(self, message: str, e: Expr | None, help: str = "") -> DiagnosticError:
        return DiagnosticError(message, getattr(e, "span", None), code=CODE, help=help)

    def _truth(self, given: Value, e: If) -> bool:
        if not isinstance(given, NDArray) or given.shape != ():
            raise self._error(f"a condition is a scalar, not {_shown(given, _SHOWN)}", e)
        return bool(np.asarray(given))

    # ---------------------------------------------------------------------------------------------------------- patterns

    def _matched(self, e: Match, data: Value, frame: Frame) -> Expr:
        """The side of the first clause that fits, whose variables have values then."""
        for clause in e.clauses:
            bound: dict[int, Value] = {}
            if _fits(clause.lhs, data, bound):
                frame.values.update(bound)
                return clause.rhs
        raise self._error(f"no clause takes {_shown(data, _SHOWN)}", e, "add a clause for it")


def _fits(pattern: Pattern, data: Value, bound: dict[int, Value]) -> bool:
    """Whether a value fits a pattern; notes the values of its variables."""
    todo = [(pattern, data)]
    while todo:
        p, value = todo.pop()
        if isinstance(p, PatternVar):
            bound[id(p.var)] = value
        elif isinstance(p, PatternTuple):
            if not isinstance(value, tuple) or len(value) != len(p.patterns):
                return False
            todo.extend(zip(p.patterns, value))
        elif isinstance(p, PatternConstructor):
            if not isinstance(value, ConstructorValue) or not made_by(value, p.constructor):
                return False
            todo.extend(zip(p.patterns, value.fields))
    return True


def made_by(value: ConstructorValue, constructor: Constructor) -> bool:
    """Whether a constructor made a value: the same one, or one of its name of a data type of its type's name."""
    made = value.constructor
    if made is None:
        return value.tag == constructor.tag
    return made is constructor or (
        made.name_hint == constructor.name_hint and made.belong_to.name_hint == constructor.belong_to.name_hint
    )


def _common(a: tuple[Function, ...], b: tuple[Function, ...]) -> tuple[Function, ...]:
    """The functions that two places are both inside of."""
    count = next((i for i, (f, g) in enumerate(zip(a, b)) if f is not g), min(len(a), len(b)))
    return a[:count]


_ATOMS = (Var, GlobalVar, Constant, Op, Constructor)
"""What is not worth keeping."""
_FORMS: Mapping[type, Callable[[Interpreter, Expr, Frame], Steps[Value]]] = table(
    method(Var, Interpreter._variable),
    method(Constant, Interpreter._constant),
    method(GlobalVar, Interpreter._global),
    method(Op, Interpreter._itself),
    method(Constructor, Interpreter._itself),
    method(Function, Interpreter._closure),
    method(Tuple, Interpreter._tuple),
    method(TupleGetItem, Interpreter._item),
    method(RefCreate, Interpreter._ref_create),
    method(RefRead, Interpreter._ref_read),
    method(RefWrite, Interpreter._ref_write),
    method(Call, Interpreter._call),
)

"""The steps of a schedule as data: printed as Python text, kept as JSON, replayed on the same expressions."""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.operators import OPERATORS
from compass_core.reading import jsontext
from compass_core.reading.names import is_label, is_name
from compassc.ir.dtypes import INT32
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.expr_op import ExprOp
from compassc.ir.exprs import Binary, Cast, Expr, IntImm, Unary, Var
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.operators import as_expr, cast, const
from compassc.te.axes import thread_of
from compassc.te.errors import ScheduleError
from compassc.te.opaque import TensorIntrin
from compassc.te.schedule import record
from compassc.te.tensor import Operation, Tensor

if TYPE_CHECKING:
    from compassc.te.schedule.schedule import Schedule
    from compassc.te.schedule.stage import Stage

_V = TypeVar("_V")
_F = TypeVar("_F", bound=Callable[..., object])
FORMAT = "compassc-trace/1"


@dataclass(frozen=True)
class Step:
    """One primitive: on which stage ("": the schedule itself), its name and its arguments.

    Arguments are numbers, words, lists, and references: {"axis": [stage, label]}, {"stage": label},
    {"tensor": [stage, output]}, {"thread": tag} or {"thread": [tag, begin, extent]}, {"intrin": name}, {"var": [name]},
    {"const": [number, type]}, {"cast": [type, expression]}, {"expr": [operator, expression, ...]}.
    """

    stage: str
    primitive: str
    args: tuple[object, ...] = ()
    options: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        words = [_shown(a) for a in self.args] + [f"{k}={_shown(v)}" for k, v in self.options]
        on = f"s[{_quoted(self.stage)}]" if self.stage else "s"
        return f"{on}.{self.primitive}({', '.join(words)})"


@dataclass
class Trace:
    """The steps taken so far, in order."""

    steps: list[Step] = field(default_factory=list)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def as_python(self) -> str:
        """The text of a Python file with `apply_trace(s)`, which takes the steps on a schedule of the same expressions."""
        lines = ["from compassc import te", "", "", "def apply_trace(s: te.Schedule) -> None:"]
        lines += [f"    {step}" for step in self.steps] or ["    pass"]
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """The trace as JSON text, a line per step."""
        rows = [json.dumps([s.stage, s.primitive, list(s.args), dict(s.options)]) for s in self.steps]
        return '{"format": "' + FORMAT + '", "steps": [\n' + ",\n".join(rows) + "\n]}\n"

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """The trace that `to_json` wrote; ScheduleError for other text."""
        read = parsed(text, f"a trace ({FORMAT})")
        if not isinstance(read, dict) or read.get("format") != FORMAT or not isinstance(read.get("steps"), list):
            raise ScheduleError(f"not a trace ({FORMAT}): it has no format and steps")
        return cls([_step(row, number) for number, row in enumerate(read["steps"])])


def parsed(text: str, what: str) -> Any:
    """The value of JSON text that is to be `what`; ScheduleError for other text."""
    try:
        return jsontext.parse(text, "the trace", "te-schedule", what)
    except CompassError as error:
        raise ScheduleError(f"not {what}: {error.message}") from None


@contextmanager
def step_of_trace(number: int, kind: str) -> Iterator[None]:
    """Errors say which step of a trace it is."""
    try:
        yield
    except CompassError as error:
        error.message = f"step {number}, {kind}: {error.message}"
        raise


def _step(row: object, number: int) -> Step:
    """The step of a row of JSON. ScheduleError for a value that no argument is recorded as."""
    if not (isinstance(row, list) and len(row) == 4 and isinstance(row[2], list) and isinstance(row[3], dict)):
        raise ScheduleError(f"step {number}: not [stage, primitive, arguments, options]")
    stage, primitive, args, options = row
    if not is_label(stage) or not is_name(primitive) or not all(map(is_name, options)):
        raise ScheduleError(f"step {number}: a stage, a primitive or an option has a name that is none")
    for value in (*args, *options.values()):
        if not _is_argument(value):
            raise ScheduleError(f"step {number}: {str(value)[:80]} is no argument")
    return Step(stage, primitive, tuple(args), tuple(options.items()))


def _is_argument(value: object) -> bool:
    """Whether a value of JSON is one that arguments are recorded as; see Step."""
    if isinstance(value, list):
        return all(map(_is_argument, value))
    if not isinstance(value, dict):
        return value is None or isinstance(value, (bool, str)) or _is_number(value)
    if len(value) != 1:
        return False
    ((kind, what),) = value.items()
    return kind in _FORMS and _FORMS[kind](what)


def _is_number(value: object) -> bool:
    """Whether it is a number, of at most 64 bits where it is whole."""
    whole = isinstance(value, int) and -(1 << 63) <= value < 1 << 64
    return whole or (isinstance(value, float) and math.isfinite(value))


def _is_tree(tree: object) -> bool:
    """Whether a value of JSON is an expression, as `_tree` writes it."""
    if isinstance(tree, list):
        return (
            bool(tree)
            and isinstance(tree[0], str)
            and _ARITY.get(tree[0]) == len(tree) - 1
            and all(map(_is_tree, tree[1:]))
        )
    if isinstance(tree, dict):
        return tree.keys() <= {"axis", "var", "const", "cast"} and _is_argument(tree)
    return isinstance(tree, int) and not isinstance(tree, bool) and _is_number(tree)


def _items(*kinds: Callable[[object], bool]) -> Callable[[object], bool]:
    """Whether a value is a list of such items."""
    return lambda value: (
        isinstance(value, list) and len(value) == len(kinds) and all(k(v) for k, v in zip(kinds, value))
    )


def _is_place(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


_is_range = _items(is_label, _is_argument, _is_argument)
_FORMS: dict[str, Callable[[object], bool]] = {
    "axis": _items(is_label, is_label),
    "stage": is_label,
    "tensor": _items(is_label, _is_place),
    "thread": lambda value: is_label(value) or _is_range(value),
    "intrin": is_label,
    "var": _items(is_label),
    "const": _items(_is_number, is_label),
    "cast": _items(is_label, _is_tree),
    "expr": lambda value: isinstance(value, list) and _is_tree(value),
}
"""What references hold, by their kinds."""


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _shown(argument: object) -> str:
    """An argument as Python text, in which `s` is the schedule."""
    if isinstance(argument, list):
        return f"[{', '.join(map(_shown, argument))}]"
    if not isinstance(argument, dict):
        return json.dumps(argument) if isinstance(argument, str) else repr(argument)
    ((kind, value),) = argument.items()
    return _REFERENCES[kind](value)


def _shown_thread(value: Any) -> str:
    if isinstance(value, str):
        return f"te.thread_axis({_quoted(value)})"
    tag, begin, extent = value
    pair = f"({_shown(begin)}, {_shown(extent)})"
    return f"te.thread_axis({pair if begin == 0 else f'te.Range.from_min_extent{pair}'}, {_quoted(tag)})"


def _shown_tree(tree: object) -> str:
    """An expression as Python text, in which every operand is a value."""
    if isinstance(tree, list):
        op, *operands = tree
        return _OPERATORS[op].format(*map(_shown_tree, operands))
    if not isinstance(tree, dict):
        return f"te.const({tree!r})"
    shown = _shown(tree)
    return f"{shown}.var" if "axis" in tree else shown


_REFERENCES: dict[str, Callable[[Any], str]] = {
    "axis": lambda value: f"s[{_quoted(value[0])}][{_quoted(value[1])}]",
    "stage": lambda value: f"s[{_quoted(value)}]",
    "tensor": lambda value: f"s[{_quoted(value[0])}].op.output({value[1]})",
    "thread": _shown_thread,
    "intrin": lambda value: f"s.intrinsics[{_quoted(value)}]",
    "var": lambda value: f"s.variables[{_quoted(value[0])}]",
    "const": lambda value: f"te.const({value[0]!r}, {_quoted(value[1])})",
    "cast": lambda value: f"te.cast({_shown_tree(value[1])}, {_quoted(value[0])})",
    "expr": lambda value: _shown_tree(value),
}
_CALLS = {"and": "all", "or": "any", "div": "truncdiv", "mod": "truncmod", "min": "min", "max": "max"}
_OPERATORS = {
    **{name: f"({{}} {operator.python} {{}})" for name, operator in OPERATORS.items() if operator.python},
    **{op: f"te.{name}({{}}, {{}})" for op, name in _CALLS.items()},
    **dict.fromkeys(("not", "bitnot"), "(~{})"),
    "eq": "{}.equal({})",
}
"""How operators are written."""
_ARITY = {op: form.count("{}") for op, form in _OPERATORS.items()}


def primitive(function: _F) -> _F:
    """Marks a method of Schedule or Stage as a primitive: a call that succeeds is recorded, once, whatever it calls; one
    that is refused changes nothing."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(self, *args, **options).arguments
        except TypeError as error:
            raise ExpressionTypeError(f"{function.__name__}: {error}") from None
        schedule: Schedule = getattr(self, "schedule", self)
        before = schedule.snapshot(self) if not schedule.running else None
        schedule.running.append(function.__name__)
        try:
            try:
                words = _recorded(schedule, list(args)), {k: _recorded(schedule, v) for k, v in options.items()}
            except ScheduleError:  # what is no part of the schedule: the step itself says best what is wrong with it
                function(self, *args, **options)
                raise
            made = function(self, *args, **options)
        except BaseException:  # an interrupted step changes nothing either
            if before is not None:
                schedule.restore(before)
            raise
        finally:
            schedule.running.pop()
        if all(step in record.MADE_OF_OTHERS for step in schedule.running):
            record.keep(schedule, record.name_of(function.__name__, bound.get("nparts")))
        if not schedule.running:
            stage = "" if self is schedule else self.label
            schedule.trace.steps.append(Step(stage, function.__name__, tuple(words[0]), tuple(words[1].items())))
        return made

    return run  # type: ignore[return-value]


def _recorded(schedule: Schedule, value: Any) -> Any:
    """An argument as data."""
    if isinstance(value, IterVar):
        if value.iter_type is IterKind.THREAD:
            return {"thread": _recorded_thread(schedule, value)}
        stage = schedule.owner(value)
        return {"axis": [stage.label, stage.label_of(value)]}
    if isinstance(value, Tensor):
        return {"tensor": [schedule[value].label, value.value_index]}
    if isinstance(value, Operation):
        return {"stage": schedule[value].label}
    if hasattr(value, "schedule"):
        return {"stage": value.label}
    if isinstance(value, (list, tuple)):
        return [_recorded(schedule, v) for v in value]
    if isinstance(value, TensorIntrin):
        return {"intrin": _named(schedule.intrinsics, value.name, value)}
    if isinstance(value, ExprOp):
        e = as_expr(value)
        return _tree(schedule, e) if isinstance(e, (IntImm, Var, Cast)) else {"expr": _tree(schedule, e)}
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def _recorded_thread(schedule: Schedule, thread: IterVar) -> Any:
    """The tag of a thread, with its range where it has one of its own."""
    if thread.dom is None:
        return thread.thread_tag
    return [thread.thread_tag, *(_recorded(schedule, e) for e in (thread.dom.min, thread.dom.extent))]


def _named(known: dict[str, _V], name: str, value: _V) -> str:
    """The name by which traces know a value: its own, with a number where another one has it."""
    label, count = name, 0
    while known.setdefault(label, value) is not value:
        count += 1
        label = f"{name}#{count}"
    return label


def _tree(schedule: Schedule, e: Expr) -> Any:
    """An expression on axes as data: numbers, references to axes, and lists of an operator and its operands."""
    if isinstance(e, IntImm):
        return e.value if e.dtype is INT32 else {"const": [e.value, str(e.dtype)]}
    if isinstance(e, Cast):
        return {"cast": [str(e.dtype), _tree(schedule, e.value)]}
    if isinstance(e, Var):
        for stage in schedule.stages:
            for axis in stage.all_iter_vars:
                if axis.as_expr() is e:
                    return {"axis": [stage.label, stage.label_of(axis)]}
        return {"var": [_named(schedule.variables, e.name, e)]}
    if isinstance(e, (Binary, Unary)):
        return [e.op, *(_tree(schedule, x) for x in e.children())]
    raise ScheduleError(f"{e} cannot be an argument of a step: use numbers, axes and operators")


def _expression(schedule: Schedule, tree: object) -> Expr:
    """The expression that `_tree` wrote."""
    if isinstance(tree, list):
        operands = [_expression(schedule, x) for x in tree[1:]]
        return Binary(tree[0], *operands) if len(operands) == 2 else Unary(tree[0], *operands)
    found = _resolved(schedule, tree)
    return as_expr(found)


def replay(schedule: Schedule, trace: Trace) -> Schedule:
    """Takes the steps of a trace on a schedule; gives the schedule. ScheduleError where a step does not go with it."""
    for number, step in enumerate(trace):
        with step_of_trace(number, step.primitive):
            on = schedule.stage(step.stage) if step.stage else schedule
            method = getattr(type(on), step.primitive, None)
            if method is None or not hasattr(method, "__wrapped__"):
                raise ScheduleError(f"there is no primitive '{step.primitive}'")
            args = [_resolved(schedule, a) for a in step.args]
            method(on, *args, **{k: _resolved(schedule, v) for k, v in step.options})
    return schedule


def _resolved(schedule: Schedule, value: object) -> Any:
    if isinstance(value, list):
        return [_resolved(schedule, v) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, what),) = value.items()
    if kind == "thread":
        if isinstance(what, str):
            return thread_of(None, what)
        return thread_of(Range.from_min_extent(*_resolved(schedule, what[1:])), what[0])
    if kind == "const":
        return const(what[0], what[1])
    if kind == "cast":
        return cast(_expression(schedule, what[1]), what[0])
    if kind == "stage":
        return schedule.stage(what)
    if kind == "expr":
        return _expression(schedule, what)
    if kind == "intrin":
        if what not in schedule.intrinsics:
            raise ScheduleError(f"the intrinsic '{what}' is not known", "schedule.intrinsics[name] = intrinsic")
        return schedule.intrinsics[what]
    if kind == "var":
        if what[0] not in schedule.variables:
            raise ScheduleError(f"the variable '{what[0]}' is not known", "schedule.variables[name] = variable")
        return schedule.variables[what[0]]
    stage: Stage = schedule.stage(what[0])
    return stage[what[1]] if kind == "axis" else stage.origin_op.output(what[1])

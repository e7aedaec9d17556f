"""Schedules as data: each step that is taken is an instruction; a trace of them is printed, stored and replayed.

A step is a method that says which of its arguments are inputs (what other steps gave) and which are attributes; record,
JSON, Python text and replay follow from that.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from compass_core.dataclass import dataclass
from compass_core.errors.suggest import help_for
from compass_core.namedtuple import NamedTuple
from compass_core.reading.names import is_name
from compassc.ir.errors import ExpressionTypeError
from compassc.te.errors import ScheduleError
from compassc.te.schedule.trace import parsed, step_of_trace
from compassc.tir.arguments import check_argument
from compassc.tir.index_map import IndexMap

if TYPE_CHECKING:
    from compassc.tir.base import Base

_F = TypeVar("_F", bound=Callable[..., object])


class Symbol:
    """What a step gave: it stands for a block, a loop or a number as long as that exists."""

    __slots__ = ()
    letter = "x"

    def same_as(self, other: object) -> bool:
        """Whether the other one is this symbol."""
        return self is other


class BlockRV(Symbol):
    """A block of a schedule."""

    letter = "b"


class LoopRV(Symbol):
    """A loop of a schedule."""

    letter = "l"


class ExprRV(Symbol):
    """A number that was sampled."""

    letter = "v"


_SYMBOLS = {cls.letter: cls for cls in (BlockRV, LoopRV, ExprRV)}


class Kind(NamedTuple):
    """One kind of instruction: the method, and the names of its arguments in their order. `*name`: a list of them."""

    method: str
    inputs: tuple[str, ...]
    attrs: tuple[str, ...]
    sampled: bool
    pure: bool
    variadic: bool
    several: bool
    """Whether it gives a list."""
    order: tuple[str, ...]
    """The arguments in the order of the method's parameters."""


KINDS: dict[str, Kind] = {}


class InstructionKind(str):
    """The name of a kind of instruction."""

    __slots__ = ()

    @classmethod
    def get(cls, name: str) -> InstructionKind:
        """The kind of a name. ScheduleError where there is none."""
        if name not in KINDS:
            raise ScheduleError(f"there is no instruction '{name}'", help_for(name, KINDS, "instructions"))
        return cls(name)

    @property
    def name(self) -> str:
        return str(self)

    @property
    def is_pure(self) -> bool:
        """Whether it only finds something."""
        return KINDS[self].pure


@dataclass(frozen=True, eq=False)
class Instruction:
    """A step that was taken: its kind, inputs, attributes and what it gave."""

    kind: InstructionKind
    inputs: Sequence[Any]
    attrs: Sequence[Any]
    outputs: Sequence[Symbol]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", InstructionKind.get(self.kind))

    def __str__(self) -> str:
        return _python(self, lambda _: "_", None)


_IN_ORDER = frozenset(
    "Split Fuse AddUnitLoop Unroll Annotate Unannotate EnterPostproc TransformLayout SetAxisSeparator".split()
)
"""Steps that leave everything in its order, whatever it is."""
_ON_LOOPS = frozenset("Reorder Merge Parallel Vectorize Bind".split())
"""Steps that are for loops with other statements than blocks in them, too; they look at them by themselves."""
_TYPES: dict[str, tuple[type, ...]] = {
    "block": (BlockRV,),
    "scope_block": (BlockRV,),
    "loop": (LoopRV,),
    "block_or_loop": (BlockRV, LoopRV),
    "loops": (LoopRV,),
    "consumer_blocks": (BlockRV,),
    "target": (BlockRV, LoopRV),
}
"""Arguments that are symbols: their kinds. Where a block may stand, its name may."""


def instruction(
    kind: str, inputs: Sequence[str] = (), attrs: Sequence[str] = (), sampled: bool = False, pure: bool = False
) -> Callable[[_F], _F]:
    """Mark a method as a step. Its arguments are checked before, it is recorded after; if it fails nothing has changed."""

    def make(function: _F) -> _F:
        signature = inspect.signature(function)
        variadic = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
        several = str(signature.return_annotation).startswith("list")
        defaults: dict[str, object] = {} if variadic else {p.name: p.default for p in signature.parameters.values()}
        KINDS[kind] = Kind(
            function.__name__,
            tuple(inputs),
            tuple(attrs),
            sampled,
            pure,
            variadic,
            several,
            tuple(signature.parameters),
        )

        @functools.wraps(function)
        def run(self: Base, *args: Any, **options: Any) -> Any:
            saved = self.snapshot()
            try:
                bound = _arguments(self, function.__name__, signature, defaults, args, options)
                if kind not in _IN_ORDER and not pure:
                    arguments = list(_flat(bound.arguments.values()))
                    self.check_blocks_only(function.__name__, arguments, kind in _ON_LOOPS)
            except BaseException:
                self.restore(saved)
                raise
            self.depth += 1
            try:
                made = function(*bound.args, **bound.kwargs)
            except BaseException as error:
                known = self.symbols
                self.restore(saved)
                if isinstance(error, ScheduleError) and error.places is None and not self.depth - 1:
                    error.places = self.places_of(_flat(bound.arguments.values()), known)
                    error.step, error.level = function.__name__.replace("_", "-"), self.error_render_level
                raise
            finally:
                self.depth -= 1
            if not self.depth and self.trace is not None:
                recorded = {**bound.arguments, **self.noted}
                self.trace.append(_recorded(kind, recorded, made), self.decided if sampled else None)
            self.noted = {}
            return made

        return run  # type: ignore[return-value]

    return make


def _arguments(
    schedule: Base,
    step: str,
    signature: inspect.Signature,
    defaults: dict[str, object],
    args: tuple[object, ...],
    options: dict[str, object],
) -> inspect.BoundArguments:
    """The arguments of a step by their names, looked at: symbols in the place of names of blocks. `defaults`: of all
    parameters; none where they take any number of arguments."""
    by_place = dict(zip(defaults, (schedule, *args)))
    found = {**defaults, **by_place, **options}
    fits = len(found) == len(defaults) and len(by_place) == len(args) + 1 and by_place.keys().isdisjoint(options)
    if fits and not any(value is inspect.Parameter.empty for value in found.values()):
        bound = inspect.BoundArguments(signature, found)  # as `bind` does, which takes far longer
    else:
        try:
            bound = signature.bind(schedule, *args, **options)
        except TypeError as error:
            raise ExpressionTypeError(f"{step}: {error}") from None
        bound.apply_defaults()
    for name, value in bound.arguments.items():
        annotation = signature.parameters[name].annotation
        if name in _TYPES:
            bound.arguments[name] = _symbols(schedule, step, name, value, signature)
        elif name not in _BY_NAME_OR_PLACE:
            check_argument(step, name, annotation, value, lambda v: isinstance(v, ExprRV))
            bound.arguments[name] = bool(value) if annotation == "bool" else value
    return bound


_BY_NAME_OR_PLACE = ("self", "buffer_index", "write_buffer_index", "dtype")
"""Arguments that steps look at themselves: buffers by place or name, types by name or as they are."""


def _recorded(kind: str, arguments: dict[str, Any], made: Any) -> Instruction:
    spec = KINDS[kind]
    inputs: list[Any] = []
    for name in spec.inputs:
        value = arguments[name.lstrip("*")]
        inputs += list(value) if name.startswith("*") else [value]
    outputs = made if isinstance(made, (list, tuple)) else () if made is None else (made,)
    kept = tuple(x for x in outputs if isinstance(x, Symbol))
    return Instruction(InstructionKind(kind), tuple(inputs), tuple(arguments[n] for n in spec.attrs), kept)


def _symbols(
    schedule: Base, step: str, name: str, value: object, signature: inspect.Signature, nested: bool = False
) -> Any:
    """An argument that stands for blocks or loops, with blocks in the place of their names."""
    kinds = _TYPES[name]
    if isinstance(value, (list, tuple)) and name in ("loops", "consumer_blocks", "target") and not nested:
        return type(value)(_symbols(schedule, step, name, v, signature, nested=True) for v in value)
    if value is None and signature.parameters[name].default is None and not nested:
        return None
    if name == "consumer_blocks" and not nested:
        raise ExpressionTypeError(f"{step}: {name} is a list of BlockRV, got {type(value).__name__}")
    if isinstance(value, str) and BlockRV in kinds:
        return schedule.get_block(value)  # type: ignore[attr-defined]
    if not isinstance(value, kinds) and not (name == "loop" and isinstance(value, int) and step in _MARKS):
        words = " or ".join(k.__name__ for k in kinds)
        raise ExpressionTypeError(f"{step}: {name} is a {words}, got {type(value).__name__}")
    return value


_MARKS = ("compute_at", "reverse_compute_at")


@dataclass
class Trace:
    """The steps of a schedule, in order, and what was decided where something was sampled."""

    insts: list[Instruction] = field(default_factory=list)
    decisions: dict[Instruction, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.insts)

    def __len__(self) -> int:
        return len(self.insts)

    def get_decision(self, inst: Instruction) -> Any:
        """What was decided at a step; None for steps that decide nothing."""
        return self.decisions.get(inst)

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add a step."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self) -> Instruction | None:
        """Take the last step away; None where there is none, or it is the mark of what prepares for lowering."""
        if not self.insts or self.insts[-1].kind == "EnterPostproc":
            return None
        last = self.insts.pop()
        self.decisions.pop(last, None)
        return last

    def with_decision(self, inst: Instruction, decision: object, remove_postproc: bool = False) -> Trace:
        """The trace with another decision at one step. ScheduleError for a step that decides nothing."""
        if not KINDS[inst.kind].sampled:
            raise ScheduleError(f"{inst.kind} decides nothing")
        kept = self._kept(remove_postproc)
        return Trace(kept, {i: d for i, d in {**self.decisions, inst: decision}.items() if i in kept})

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """The trace without queries and samples of which nothing is used."""
        used: set[int] = set()
        kept: list[Instruction] = []
        for inst in reversed(self._kept(remove_postproc)):
            if KINDS[inst.kind].pure and not any(id(o) in used for o in inst.outputs):
                continue
            kept.insert(0, inst)
            used.update(id(x) for x in _flat(inst.inputs) if isinstance(x, Symbol))
        return Trace(kept, {i: d for i, d in self.decisions.items() if i in kept})

    def _kept(self, remove_postproc: bool) -> list[Instruction]:
        ends = [i for i, inst in enumerate(self.insts) if inst.kind == "EnterPostproc"]
        return self.insts[: ends[0]] if remove_postproc and ends else list(self.insts)

    # ---------------------------------------------------------------------------------------------------------- replay

    def apply_to_schedule(
        self, sch: Base, remove_postproc: bool = False, decision_provider: Callable[..., object] | None = None
    ) -> None:
        """Take the steps on another schedule. `decision_provider(inst, inputs, attrs, decision)` may decide otherwise."""
        known: dict[Symbol, Any] = {}
        for number, inst in enumerate(self._kept(remove_postproc)):
            with step_of_trace(number, inst.kind):
                inputs, decision = [_replaced(x, known) for x in inst.inputs], self.decisions.get(inst)
                if decision_provider is not None and KINDS[inst.kind].sampled:
                    decision = decision_provider(inst, inputs, list(inst.attrs), decision)
                made = _take(sch, KINDS[inst.kind], inputs, list(inst.attrs), decision)
                if len(made) != len(inst.outputs):
                    raise ScheduleError(f"it gives {len(made)} values, not {len(inst.outputs)}")
            known.update(zip(inst.outputs, made))

    # ------------------------------------------------------------------------------------------------------------ text

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """The trace as lists, texts and numbers that `json.dumps` writes."""
        names = _Names()
        kept = self._kept(remove_postproc)
        rows = [
            [
                i.kind,
                [_encoded(x, names) for x in i.inputs],
                [x for name, a in zip(KINDS[i.kind].attrs, i.attrs) for x in _written(name, a)],
                [names(o) for o in i.outputs],
            ]
            for i in kept
        ]
        return [rows, [[n, self.decisions[i]] for n, i in enumerate(kept) if i in self.decisions]]

    @staticmethod
    def from_json(json_obj: object) -> Trace:
        """The trace that `as_json` gave, or the text of that. ScheduleError (a ValueError) for anything else."""
        parts, decisions = _rows(parsed(json_obj, "a trace") if isinstance(json_obj, str) else json_obj)
        made, known = Trace(), dict[str, Symbol]()
        for number, (kind, inputs, attrs, outputs) in enumerate(parts):
            if kind not in KINDS:
                raise ScheduleError(f"step {number}: there is no instruction '{kind}'")
            with step_of_trace(number, kind):
                values, listed = [_decoded(x, known) for x in inputs], _read(kind, [_unplain(x) for x in attrs])
            symbols = [known.setdefault(name, _SYMBOLS.get(name[:1], Symbol)()) for name in outputs]
            made.append(Instruction(InstructionKind(kind), values, listed, symbols), _unplain(decisions.get(number)))
        return made

    @staticmethod
    def apply_json_to_schedule(json_obj: object, sch: Base) -> None:
        """Take the steps that `as_json` gave (or its text) on a schedule. ScheduleError (a ValueError) for anything else."""
        Trace.from_json(json_obj).apply_to_schedule(sch)

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """The steps as lines of Python, calls of methods of `sch`."""
        names = _Names()
        return [_python(i, names, self.decisions.get(i)) for i in self._kept(remove_postproc)]

    def __str__(self) -> str:
        lines = ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
        return "\n".join([*lines, *(f"  {line}" for line in self.as_python() or ["pass"])])

    def show(self, *_: object, **__: object) -> None:
        """Print the trace as Python text."""
        print(self)


def _rows(value: Any) -> tuple[list[tuple[str, list[Any], list[Any], list[str]]], dict[int, Any]]:
    """The steps of a trace in JSON (kind, inputs, attributes, names of what it gives), and the decisions by their numbers.
    ScheduleError for other values."""
    if not (_is_list(value) and len(value) == 2 and all(map(_is_list, value))):
        raise ScheduleError("this is no trace: not [steps, decisions]")
    parts = []
    for number, row in enumerate(value[0]):
        if not (_is_list(row) and len(row) == 4 and all(map(_is_list, row[1:]))):
            raise ScheduleError(f"step {number}: not [kind, inputs, attributes, outputs]")
        kind, inputs, attrs, outputs = row[0], *map(list, row[1:])
        if not isinstance(kind, str) or not all(map(is_name, outputs)):
            raise ScheduleError(f"step {number}: its kind or a name of what it gives is none")
        parts.append((kind, inputs, attrs, outputs))
    decisions: dict[int, Any] = {}
    for item in value[1]:
        if not (_is_list(item) and len(item) == 2 and type(item[0]) is int):
            raise ScheduleError(f"{str(item)[:80]} is no decision: not [step, decision]")
        if not 0 <= item[0] < len(parts):
            raise ScheduleError(f"there is a decision for step {str(item[0])[:80]}, of {len(parts)}")
        decisions[item[0]] = item[1]
    return parts, decisions


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _take(sch: Base, spec: Kind, inputs: list[object], attrs: list[object], decision: object) -> list[Any]:
    """What a step gives."""
    if decision is not None and not spec.sampled:
        raise ScheduleError(f"it decides nothing, the decision is {decision!r}")
    arguments: dict[str, Any] = {}
    rest = list(inputs)
    for i, name in enumerate(spec.inputs):
        if name.startswith("*"):
            cut = len(rest) - (len(spec.inputs) - i - 1)
            arguments[name[1:]], rest = rest[:cut], rest[cut:]
        elif not rest:
            raise ScheduleError(f"the input {name} is missing")
        else:
            arguments[name] = rest.pop(0)
    if rest or len(attrs) > len(spec.attrs):
        raise ScheduleError(f"it takes {len(spec.inputs)} inputs and {len(spec.attrs)} attributes, not more")
    arguments.update(zip(spec.attrs, attrs))
    if spec.sampled:
        arguments["decision"] = decision
    positional = arguments.pop(spec.inputs[0].lstrip("*")) if spec.variadic else ()
    made = getattr(sch, spec.method)(*positional, **arguments)
    return list(made) if isinstance(made, (list, tuple)) else [] if made is None else [made]


def _written(name: str, value: Any) -> list[Any]:
    """An attribute as JSON has it: a buffer is its place and "read" or "write"."""
    return [value[1], value[0]] if name == "buffer" else [_plain(value)]


def _read(kind: str, attrs: list[Any]) -> list[Any]:
    """Attributes as JSON has them, by those of a kind of step."""
    found: list[Any] = []
    rest = list(attrs)
    for name in KINDS[kind].attrs:
        if name == "buffer" and len(rest) > 1 and not isinstance(rest[0], list):
            found.append([rest.pop(1), rest.pop(0)])
        elif rest:
            found.append(rest.pop(0))
    return [*found, *rest]


def _flat(values: Any) -> Iterator[Any]:
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from _flat(v)
        else:
            yield v


def _replaced(value: object, known: dict[Symbol, object]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_replaced(v, known) for v in value]
    if isinstance(value, Symbol):
        if value not in known:
            raise ScheduleError("an input was not made by the steps before")
        return known[value]
    return value


class _Names:
    """b0, l1, v2, ...: one counter for all."""

    def __init__(self) -> None:
        self.of: dict[Symbol, str] = {}

    def __call__(self, symbol: Symbol) -> str:
        return self.of.setdefault(symbol, f"{symbol.letter}{len(self.of)}")


def _encoded(value: object, names: _Names) -> Any:
    if isinstance(value, Symbol):
        return names(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return [_encoded(v, names) for v in value]
    if isinstance(value, dict):
        return {k: _encoded(v, names) for k, v in sorted(value.items())}
    return _plain(value)


def _plain(value: object) -> Any:
    if value is None:
        return "None"
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "as_text"):
        return value.as_text()
    return int(value) if isinstance(value, bool) else value


def _decoded(value: object, known: dict[str, Symbol]) -> Any:
    if isinstance(value, list):
        return [_decoded(v, known) for v in value]
    if isinstance(value, dict):
        return {k: _decoded(v, known) for k, v in value.items()}
    if not isinstance(value, str):
        return value
    if value.startswith('"'):
        return value[1:-1]
    if value != "None" and value not in known:
        raise ScheduleError(f"'{value}' was not made by the steps before")
    return known.get(value)


def _unplain(value: object) -> Any:
    if isinstance(value, list):
        return [_unplain(v) for v in value]
    if isinstance(value, str) and value.startswith("{"):
        return IndexMap.from_text(value)
    return None if value == "None" else value


_UNSAID: dict[str, tuple[Any, ...]] = {"consumer_blocks": (None, [], ()), "disable_predication": (False,)}
"""Arguments that are not written with these values."""


def _python(inst: Instruction, names: Callable[[Symbol], str], decision: Any) -> str:
    spec = KINDS[inst.kind]
    rest, first, told = list(inst.inputs), [], dict(zip(spec.attrs, inst.attrs))
    for i, name in enumerate(spec.inputs):
        if name.startswith("*"):
            cut = len(rest) - (len(spec.inputs) - i - 1)
            listed, rest = rest[:cut], rest[cut:]
            if spec.variadic:
                first += [_shown(x, names) for x in listed]
            else:
                told[name[1:]] = listed
        else:
            told[name] = rest.pop(0)
    unsaid = {n for n, v in _UNSAID.items() if n in told and told[n] in v}
    words = first + [f"{n}={_shown(told[n], names)}" for n in spec.order if n in told and n not in unsaid]
    if decision is not None:
        words.append(f"decision={_shown(decision, names)}")
    call = f"sch.{spec.method}({', '.join(words)})"
    outputs = ", ".join(map(names, inst.outputs)) + "," * (spec.several and len(inst.outputs) == 1)
    return f"{outputs} = {call}" if inst.outputs else call


def _shown(value: Any, names: Callable[[Symbol], str]) -> str:
    if isinstance(value, Symbol):
        return names(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_shown(v, names) for v in value)}]"
    return value.as_python() if hasattr(value, "as_python") else repr(value)

"""Where each call of a program runs, and why: the passes of a partition, with choices of the user and of the graph builder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, ErrorGroup, Span, UsageError
from compass_core.errors.suggest import help_for
from compass_runtime.module import Module
from compassc.pass_manager.context import PassContext
from compassc.relay.backend.regions import COMPILER, has_regions, is_region
from compassc.relay.contrib import get_pattern_table
from compassc.relay.expr import Call, Expr, Function, Var
from compassc.relay.module import MAIN, IRModule
from compassc.relay.operators import OPERATORS, Op, op_name
from compassc.relay.passes import annotate_target, infer_type, merge_compiler_regions, merge_composite, partition_graph
from compassc.relay.passes._annotated import BEGIN, END, RegionSet, is_closed
from compassc.relay.passes._functions import changed
from compassc.relay.types import Type
from compassc.relay.visit import children, post_order, rewrite

SETTING = "relay.ext.compass.options"
HOST, NPU = "host", "NPU"
BuildRegion = Callable[[Function, str], Module]


@dataclass(frozen=True)
class PartitionOptions:
    """What a user says of a partition. `host`: operators (`nn.softmax`), or calls by their numbers in the table (`12`), that run
    on the host; `npu`: the only operators and calls that may run on the NPU, all where it is empty. `minimal_calls`: smaller
    regions run on the host."""

    host: tuple[str, ...] = ()
    npu: tuple[str, ...] = ()
    minimal_calls: int = 1

    def __post_init__(self) -> None:
        for given in (*self.host, *self.npu):
            if not given.isdigit() and given not in OPERATORS:
                raise UsageError(
                    f"there is no operator '{given}'", code="relay-target", help=help_for(given, OPERATORS, "operators")
                )

    @staticmethod
    def current() -> PartitionOptions:
        """Those of the current `PassContext`."""
        given = dict(PassContext.current().config.get(SETTING, {}))
        try:
            return PartitionOptions(
                tuple(map(str, given.pop("host", ()))),
                tuple(map(str, given.pop("npu", ()))),
                int(given.pop("minimal_calls", 1)),
                **given,
            )
        except TypeError:
            names = ", ".join(PartitionOptions.__dataclass_fields__)
            raise UsageError(f"{SETTING} takes {names}", code="relay-target") from None

    def why_not(self, number: int, names: Sequence[str]) -> str:
        """Why a call of operators does not run on the NPU; "" where nothing is said of it."""
        called = {*names, str(number)}
        if called & set(self.host):
            return "it is asked to run on the host"
        return (
            "it is not among those that are asked to run on the NPU" if self.npu and not called & set(self.npu) else ""
        )


@dataclass(frozen=True)
class Placed:
    """Where a call runs. `place`: HOST or NPU; `region`: the name of its function on the NPU; `why`: the reason that it is on the
    host. `takes`: the calls whose values it uses, `params`: the parameters."""

    number: int
    operator: str
    type: Type
    place: str
    region: str = ""
    why: str = ""
    takes: tuple[int, ...] = ()
    params: tuple[str, ...] = ()
    span: Span | None = None


@dataclass
class Placement:
    """A partitioned module with what is known of it. `rows`: a line for each call of `main`; `params`: its parameters with their
    types, `results`: the calls that its value consists of. `modules`: the programs of regions by name, where they were built."""

    module: IRModule
    rows: list[Placed] = field(default_factory=list)
    params: dict[str, Type] = field(default_factory=dict)
    results: tuple[int, ...] = ()
    modules: dict[str, Module] = field(default_factory=dict)


class Decision:
    """Which calls of one typed function run on the NPU: by identity, why not."""

    def __init__(self, why_not: Callable[[Call], str]) -> None:
        self.why_not = why_not
        self.reasons: dict[int, str] = {}

    def takes(self, call: Call) -> bool:
        """Whether a call runs on the NPU."""
        if id(call) not in self.reasons:
            self.reasons[id(call)] = self.why_not(call)
        return not self.reasons[id(call)]


_CURRENT: ContextVar[Decision | None] = ContextVar("decision", default=None)


def supported(why_not: Callable[[Call], str]) -> Callable[[Call], bool]:
    """What `target.compass` of operators is: by the decision in force, or by what layers do."""

    def takes(call: Call) -> bool:
        decision = _CURRENT.get()
        return decision.takes(call) if decision is not None else not why_not(call)

    return takes


@contextmanager
def _deciding(decision: Decision) -> Iterator[None]:
    token = _CURRENT.set(decision)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def place(
    module: IRModule,
    why_not: Callable[[Call], str],
    mod_name: str = "default",
    build: BuildRegion | None = None,
    options: PartitionOptions | None = None,
) -> Placement:
    """A typed module with what the NPU's layers do in functions of their own; itself where it has such functions. `build`: makes the
    program of a region; what it refuses runs on the host."""
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    if any(is_region(f) or has_regions(f) for f in functions):
        return Placement(module)
    chosen = options or PartitionOptions.current()
    merged = infer_type.run(merge_composite.run(module, get_pattern_table(COMPILER) or ()))
    return _Placing(merged, why_not, mod_name, build, chosen).placement()


class _Placing:
    """A placement in the making: regions are made anew until all of them are large enough and can be built."""

    def __init__(
        self,
        module: IRModule,
        why_not: Callable[[Call], str],
        name: str,
        build: BuildRegion | None,
        options: PartitionOptions,
    ) -> None:
        self.module, self.name, self.build, self.options = module, name, build, options
        self.numbers: dict[int, int] = {}
        self.decision = Decision(lambda c: why_not(c) or options.why_not(self.numbers.get(id(c), -1), _names(c)))
        self._number()

    def _main(self, module: IRModule) -> Function:
        main = module[MAIN]
        assert isinstance(main, Function)
        return main

    def _number(self) -> None:
        self.numbers = {id(c): n for n, c in enumerate(numbered_calls(self._main(self.module)))}
        refused = {
            id(c): why
            for c in numbered_calls(self._main(self.module))
            if isinstance(c.op, Function) and (why := self.options.why_not(self.numbers[id(c)], _names(c)))
        }
        if refused:
            self._deny(refused)

    def placement(self) -> Placement:
        """The placement. Each time something is refused there is less on the NPU, so that it ends."""
        while True:
            with _deciding(self.decision):
                annotated = annotate_target.run(self.module, COMPILER, free_inputs=True)
            merged = merge_compiler_regions.run(annotated)
            made = Placement(partition_graph.run(merged, self.name))
            calls = self._rows(merged, made)
            refused = self._small(calls) or self._unbuilt(made, calls)
            if not refused:
                return made
            self._deny(refused)

    def _rows(self, merged: IRModule, made: Placement) -> dict[str, list[Call]]:
        """Note where each call is; gives the calls of regions."""
        regions = RegionSet(self._main(merged))
        names = [str(f.attrs["global_symbol"]) for f in _regions(made.module)]
        by = dict(zip((r for r in regions if r.compiler == COMPILER), names))
        found: dict[str, list[Call]] = {}
        main = self._main(self.module)
        sources = self._sources(main)
        made.params, made.results = {p.name_hint: p.checked_type for p in main.params}, sources[id(main)][0]
        for c, placed in zip(numbered_calls(main), numbered_calls(self._main(merged)), strict=True):
            region = regions.region_of(placed)
            name = by.get(region, "") if region is not None else ""
            if name:
                found.setdefault(name, []).append(c)
            if isinstance(c.op, Op):
                self.decision.takes(c)  # of operators without layers no one has asked
            why = "" if name else self.decision.reasons.get(id(c), "it calls a function")
            row = (self.numbers[id(c)], " ".join(_names(c)), c.checked_type, NPU if name else HOST, name, why)
            made.rows.append(Placed(*row, *sources[id(c)], c.span))
        return found

    def _sources(self, main: Function) -> dict[int, tuple[tuple[int, ...], tuple[str, ...]]]:
        """For each call, and the function itself, the numbers of calls and the parameters that it takes values of."""
        params = {id(p) for p in main.params}
        reached: dict[int, dict[int, Expr]] = {}
        found: dict[int, tuple[tuple[int, ...], tuple[str, ...]]] = {}
        for e in post_order(main, is_closed):
            ends = {i: end for child in children(e) for i, end in reached.get(id(child), {}).items()}
            if isinstance(e, (Call, Function)):
                names = tuple(end.name_hint for end in ends.values() if isinstance(end, Var) and e is not main)
                found[id(e)] = tuple(self.numbers[i] for i in ends if i in self.numbers), names
            reached[id(e)] = {id(e): e} if id(e) in params or isinstance(e, Call) else ends
        return found

    def _small(self, calls: dict[str, list[Call]]) -> dict[int, str]:
        least = self.options.minimal_calls
        return {
            id(c): f"its region has {len(inside)} of {least} calls"
            for inside in calls.values()
            if len(inside) < least
            for c in inside
        }

    def _unbuilt(self, made: Placement, calls: Mapping[str, Sequence[Call]]) -> dict[int, str]:
        """Build the regions; gives what the graph builder refuses: calls of the operators that it names, or all of a region."""
        refused: dict[int, str] = {}
        for f in _regions(made.module) if self.build else ():
            name = str(f.attrs["global_symbol"])
            if name not in calls:
                continue  # of another function than main
            try:
                made.modules[name] = self.build(f, name)  # type: ignore[misc]  # there is one
            except CompassError as error:
                named = {m.rpartition("_")[0] for m in _LAYER.findall(_text(error))}
                guilty = [c for c in calls[name] if named & {*_names(c), _composite(c)}] or calls[name]
                refused.update((id(c), f"the graph builder refuses it: {error.message}") for c in guilty)
        return refused

    def _deny(self, refused: Mapping[int, str]) -> None:
        """Have calls on the host. Composite functions among them are put back where they are called."""
        main, known = self._main(self.module), self.decision.reasons
        known.update(refused)
        composite = {id(c) for c in numbered_calls(main) if id(c) in refused and isinstance(c.op, Function)}
        if not composite:
            return
        reasons: dict[int, str] = {}
        numbers: dict[int, int] = {}

        def noted(made: Expr, before: Expr, call: Expr) -> Expr:
            """What takes the place of an expression, which has its type, and is placed as a call is."""
            if made is not before and made.checked_type_ is None:
                made.typed(before.checked_type)
            if id(call) in self.numbers:
                numbers[id(made)] = self.numbers[id(call)]
            if id(call) in known:
                reasons[id(made)] = known[id(call)]
            return made

        def one(before: Expr, after: Expr) -> Expr:
            if id(before) not in composite:
                return noted(after, before, before)
            assert isinstance(after, Call) and isinstance(after.op, Function)
            given = dict(zip(map(id, after.op.params), after.args))
            return rewrite(after.op.body, lambda b, a: given[id(b)] if id(b) in given else noted(a, b, before))

        made = rewrite(main, one, is_closed)
        functions = dict(self.module.functions.items()) | {self.module.get_global_var(MAIN): made}
        self.module = infer_type.run(changed(self.module, functions))  # type: ignore[arg-type]  # a function stays one
        self.decision.reasons, self.numbers = reasons, numbers


_LAYER = re.compile(r"'([a-z][\w.]*?_\d+)(?=['_])")
"""The names that layers of calls have, in messages."""


def _text(error: CompassError) -> str:
    errors = error.errors if isinstance(error, ErrorGroup) else [error]
    return "\n".join(text for e in errors for text in (e.message, *map(str, e.notes)))


def numbered_calls(f: Function) -> list[Call]:
    """The calls of a function but annotations, in post-order."""
    return [e for e in post_order(f, is_closed) if isinstance(e, Call) and op_name(e) not in (BEGIN, END)]


def _names(c: Call) -> list[str]:
    """The operators that a call, or the composite function it calls, consists of."""
    inner = [c] if isinstance(c.op, Op) else post_order(c.op)
    return [e.op.name for e in inner if isinstance(e, Call) and isinstance(e.op, Op)]


def _composite(c: Call) -> str:
    return str(c.op.attrs.get("Composite", "")) if isinstance(c.op, Function) else ""


def _regions(module: IRModule) -> list[Function]:
    """The functions of a module for the NPU."""
    return [f for f in module.functions.values() if isinstance(f, Function) and is_region(f)]

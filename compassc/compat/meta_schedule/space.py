"""Space generators, and their designs as a space of `compassc.tuning`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log2
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.ir import IRModule
from compassc.tir import Schedule, ScheduleError, Trace

from . import blocks
from .defaults import mutators_for, postprocs_for, rules_for
from .mutators import Mutator
from .postprocs import Postproc
from .rules import ApplyCustomRule, ScheduleRule

if TYPE_CHECKING:
    from typing_extensions import Self

    from .tune import TuneContext

FROM_TARGET = "from-target"
_TRIES = 16


Candidate = dict[str, Any]
"""A design by its number, and its trace as JSON: `{"design": number, "trace": JSON}`."""


class Part(Protocol):
    """A rule, a postprocessor or a mutator."""

    def initialize(self, context: TuneContext) -> None:
        """Takes what it has to know of the context."""


Kind = str | None
"""The kind of a target whose parts are taken, or `from-target`."""


class SpaceGenerator:
    """The base of what makes designs: schedules whose choices are open."""

    def __init__(
        self,
        sch_rules: Sequence[ScheduleRule] | Kind = FROM_TARGET,
        postprocs: Sequence[Postproc] | Kind = FROM_TARGET,
        mutator_probs: Mapping[Mutator, float] | Kind = FROM_TARGET,
    ) -> None:
        self._given = sch_rules, postprocs, mutator_probs
        self.sch_rules: list[ScheduleRule] = []
        self.postprocs: list[Postproc] = []
        self.mutator_probs: dict[Mutator, float] = {}

    def initialize(self, context: TuneContext) -> None:
        """Takes the rules of the context's target where none are given. ValueError for targets without rules."""
        rules, postprocs, mutators = self._given
        self.sch_rules = list(rules_for(_kind(rules, context)) if isinstance(rules, str) else rules or ())
        self.postprocs = list(
            postprocs_for(_kind(postprocs, context)) if isinstance(postprocs, str) else postprocs or ()
        )
        known = (
            mutators_for(_kind(mutators, context)) if isinstance(mutators, str) else mutators or mutators_for("llvm")
        )
        self.mutator_probs = dict(known)
        parts: list[Part] = [*self.sch_rules, *self.postprocs, *self.mutator_probs]
        for one in parts:
            one.initialize(context)

    _initialize_with_tune_context = initialize

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The designs for a module."""
        raise NotImplementedError

    def clone(self) -> Self:
        """Another one like it."""
        return copy.copy(self)

    @staticmethod
    def create(kind: object = "post-order-apply", *args: Any, **options: Any) -> SpaceGenerator:
        """A generator by name, or of a function that schedules. ValueError for other names."""
        if isinstance(kind, SpaceGenerator):
            return kind
        if callable(kind):
            return ScheduleFn(kind, *args, **options)
        if kind == "post-order-apply":
            return PostOrderApply(*args, **options)
        if kind == "union":
            return SpaceGeneratorUnion(*args, **options)
        name = str(kind)
        return PostOrderApply(sch_rules=name, postprocs=name, mutator_probs=name)


def _kind(given: str, context: TuneContext) -> str:
    """The kind of target that is meant. ValueError where it is that of the context, which has none."""
    if given != FROM_TARGET:
        return given
    if context.target is None:
        raise ValueError("the target is needed for rules that are `from-target`")
    return context.target.kind.name


PySpaceGenerator = SpaceGenerator


class PostOrderApply(SpaceGenerator):
    """Each rule in turn for each block, the last one first."""

    def __init__(self, f_block_filter: Callable[..., bool] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._filter = f_block_filter

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        designs = [Schedule(mod, seed=1)]
        for rule in self.sch_rules:
            designs = [made for sch in designs for made in self._applied(rule, sch)]
        return designs

    def _applied(self, rule: ScheduleRule, sch: Schedule) -> list[Schedule]:
        states = [(sch, list(reversed(blocks.all_blocks(sch))))]
        done: list[Schedule] = []
        while states:
            current, left = states.pop(0)
            if not left:
                done.append(current)
                continue
            (function, name), *rest = left
            if (function, name) not in blocks.all_blocks(current):
                states.insert(0, (current, rest))
                continue
            block = current.get_block(name, function)
            found = blocks.block_of(current, block)
            custom = blocks.note_of(found, "schedule_rule") is not None
            skipped = (custom and not isinstance(rule, ApplyCustomRule)) or (
                self._filter is not None and not self._filter(found)
            )
            made = [current] if skipped else rule.apply(current, block)
            states[:0] = [(one, rest) for one in made]
        return done


class ScheduleFn(SpaceGenerator):
    """A function that schedules: in place, or giving one schedule or several."""

    def __init__(self, sch_fn: Callable[[Schedule], Schedule | Sequence[Schedule] | None], **options: Any) -> None:
        super().__init__(**options)
        self._function = sch_fn

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        sch = Schedule(mod, seed=1)
        made = self._function(sch)
        if made is None:
            return [sch]
        return [made] if isinstance(made, Schedule) else list(made)


class SpaceGeneratorUnion(SpaceGenerator):
    """The designs of several."""

    def __init__(self, space_generators: Sequence[SpaceGenerator], **options: Any) -> None:
        super().__init__(**options)
        self._parts = list(space_generators)

    def initialize(self, context: TuneContext) -> None:
        super().initialize(context)
        for part in self._parts:
            part.initialize(context)

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        return [sch for part in self._parts for sch in part.generate_design_space(mod)]


class DesignSpace:
    """Traces of designs with their choices, as candidates of `compassc.tuning`: `{"design": number, "trace": JSON}`."""

    size = None

    def __init__(self, mod: IRModule, designs: Sequence[Schedule], generator: SpaceGenerator) -> None:
        self.mod, self.generator = mod, generator
        self.traces = [sch.trace for sch in designs if sch.trace is not None]
        self._widest = max((len(_numbers(t)) for t in self.traces), default=0)

    def _replayed(self, trace: Trace, rng: Random, mutated: bool = False) -> dict[str, object] | None:
        """A candidate of a trace whose open choices are drawn; None where there is no legal one."""
        sch = Schedule(self.mod, seed=rng.randrange(1, 2**31 - 1))
        try:
            trace.apply_to_schedule(sch, remove_postproc=True)
            assert sch.trace is not None
            sch.enter_postproc()
            if not all(p.apply(sch) for p in self.generator.postprocs):
                return None
        except (ScheduleError, CompassError):
            return None
        return {"trace": sch.trace.as_json()}

    def sample(self, rng: Random) -> Candidate:
        """A random candidate. ScheduleError where none is found."""
        for _ in range(_TRIES):
            number = rng.randrange(len(self.traces))
            found = self._replayed(_open(self.traces[number]), rng)
            if found is not None:
                return {"design": number, **found}
        raise ScheduleError("no schedule of the design space is legal")

    def mutate(self, candidate: Candidate, rng: Random) -> Candidate:
        """A candidate with another choice."""
        weights = self.generator.mutator_probs
        trace = self.schedule(candidate).trace
        assert trace is not None
        for _ in range(_TRIES if weights else 0):
            mutator = rng.choices(list(weights), list(weights.values()))[0]
            other = mutator.apply(trace, rng)
            made = None if other is None else self._replayed(other, rng)
            if made is not None:
                return {"design": candidate["design"], **made}
        return candidate

    def crossover(self, a: Candidate, b: Candidate, rng: Random) -> Candidate:
        return rng.choice((a, b))

    def near(self, candidate: Candidate, rng: Random) -> Candidate | None:
        return candidate if candidate in self else None

    def grid(self) -> Iterator[Candidate]:
        raise ScheduleError("the traces of a design space are not counted")

    def __contains__(self, candidate: object) -> bool:
        return isinstance(candidate, dict) and candidate.get("design", -1) in range(len(self.traces))

    def schedule(self, candidate: Candidate) -> Schedule:
        """The schedule of a candidate."""
        sch = Schedule(self.mod, seed=1)
        Trace.apply_json_to_schedule(candidate["trace"], sch)
        return sch

    def features(self, candidate: Candidate) -> Array:
        """What a model learns from: the number of the design, and its choices as logarithms."""
        row = [float(candidate["design"]), *_flat(candidate["trace"][1])]
        return np.array((row + [0.0] * (1 + self._widest))[: 1 + self._widest], dtype="float64")

    @property
    def fields(self) -> list[str]:
        """The names of the features."""
        return ["design", *(f"choice{i}" for i in range(self._widest))]


def _open(trace: Trace) -> Trace:
    """A trace whose choices are all drawn again."""
    return Trace(list(trace.insts), {})


def _numbers(trace: Trace) -> list[float]:
    return _flat(trace.as_json()[1])


def _flat(decisions: Iterable[Sequence[Any]]) -> list[float]:
    found: list[float] = []
    for _, value in decisions:
        for v in value if isinstance(value, (list, tuple)) else [value]:
            found.append(log2(v) if isinstance(v, int) and v > 0 else float(v))
    return found

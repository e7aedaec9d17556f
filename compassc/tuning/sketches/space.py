"""Schedules without a template: a space of traces, which rules make of the expressions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from compass_core import targets
from compass_core.errors import UsageError
from compassc import te, topi
from compassc.ir.exprs import IntImm
from compassc.targets import Target
from compassc.te.errors import LowerError, ScheduleError
from compassc.te.kernels import TEKernel
from compassc.te.lowering import normalised
from compassc.te.schedule import Schedule
from compassc.te.tensor import PlaceholderOp, Tensor
from compassc.topi.schedules import Knobs
from compassc.tuning.expressions import ExpressionTask, replayed
from compassc.tuning.sketches.choices import Choices
from compassc.tuning.sketches.rules import RULES, Graph, Rule
from compassc.tuning.space import Candidate
from compassc.tuning.task import Infeasible

_TRIES = 200
DEFAULT = "default"
"""The name of the operator library's own schedule, which has no decisions."""


class SketchSpace:
    """The sketches of some expressions for an NPU. A candidate is {"decisions": {name: value}, "trace": [step, ...]}:
    what was chosen, and the schedule that came of it, which needs no rules to be made again."""

    size = None

    def __init__(self, outputs: Sequence[Tensor], target: str) -> None:
        self.outputs, self.target = list(outputs), targets.load(target)
        plain = te.create_schedule(self.outputs)
        self.rules: dict[str, Rule] = {r.name: r for r in RULES if r.applies(plain, self.target)}
        self.reasons: dict[str, int] = {}
        """Why random sketches were none, and how often."""

    def made(self, choices: Choices) -> Candidate:
        """The candidate of some choices. Infeasible where they give no legal schedule, or one that has no room."""
        name = choices.one_of("sketch", [*self.rules, DEFAULT], [*[20.0] * len(self.rules), 1.0])
        try:
            if name == DEFAULT:
                s = topi.schedule(self.outputs, self.target.name, Knobs())
            else:
                s = te.create_schedule(self.outputs)
                self.rules[name].make(Graph(s, self.target, choices))
                self._fits(s)
        except (ScheduleError, LowerError) as error:
            raise Infeasible(error.message.splitlines()[0]) from None
        return {"decisions": choices.made, "trace": json.loads(s.trace.to_json())["steps"]}

    def _fits(self, s: Schedule) -> None:
        """Infeasible where the arrays of a TEC take more memory than it has."""
        plain = normalised(s, Target.of(self.target.name).machine())
        bounds = te.infer_bounds(plain)
        taken = 0
        for stage in plain.stages:
            if stage.attached is not None and stage.scope in ("", "lsram"):
                extents = [bounds.regions[stage][a].extent for a in stage.axis]
                size = stage.origin_op.output(0).dtype.bytes * (2 if stage.double_buffered else 1)
                for e in extents:
                    if not isinstance(e, IntImm):
                        return  # what it takes is found when it is lowered
                    size *= e.value
                taken += size
        if taken > self.target.lsram_bytes:
            raise Infeasible(f"the LSRAM has {self.target.lsram_bytes:,} bytes, the schedule needs {taken:,}")

    def _tried(
        self, given: Mapping[str, object], rng: Random, changed: str = "", near: bool = False
    ) -> Candidate | None:
        try:
            return self.made(Choices(given, rng, changed, near))
        except Infeasible as error:
            self.reasons[error.reason] = self.reasons.get(error.reason, 0) + 1
            return None

    def sample(self, rng: Random) -> Candidate:
        for _ in range(_TRIES):
            found = self._tried({}, rng)
            if found is not None:
                return found
        return self.default

    @property
    def default(self) -> Candidate:
        """The operator library's own schedule."""
        return self.made(Choices({"sketch": DEFAULT}))

    def mutate(self, candidate: Candidate, rng: Random) -> Candidate:
        """Another decision at one place; later ones stay where they are still possible."""
        decisions = candidate["decisions"]
        for _ in range(_TRIES):
            found = self._tried(decisions, rng, rng.choice(list(decisions)))
            if found is not None and found["decisions"] != decisions:
                return found
        return self.sample(rng)

    def crossover(self, a: Candidate, b: Candidate, rng: Random) -> Candidate:
        """Each stage's decisions from one of two candidates."""
        first, second = a["decisions"], b["decisions"]
        for _ in range(_TRIES):
            side: dict[str, Mapping[str, object]] = {}
            given = {}
            for name in dict.fromkeys([*first, *second]):
                chosen = side.setdefault(name.rpartition(".")[0], rng.choice((first, second)))
                given[name] = chosen.get(name, first.get(name, second.get(name)))
            found = self._tried(given, rng)
            if found is not None:
                return found
        return self.mutate(a, rng)

    def near(self, candidate: Candidate, rng: Random) -> Candidate | None:
        """The schedule that the same decisions give, with the tiles that are most like those."""
        decisions = candidate.get("decisions") if isinstance(candidate, dict) else None
        return self._tried(decisions, rng, near=True) if isinstance(decisions, dict) else None

    def grid(self) -> Iterator[Candidate]:
        raise UsageError(
            "the schedules that rules make are not counted",
            code="tuning-space",
            help="--strategy random or evolutionary",
        )

    def __contains__(self, candidate: object) -> bool:
        """Whether the decisions still give the same schedule."""
        if not isinstance(candidate, dict) or not isinstance(candidate.get("decisions"), dict):
            return False
        try:
            return bool(self.made(Choices(candidate["decisions"])) == candidate)
        except Infeasible:
            return False


class SketchTask(ExpressionTask):
    """Tensor expressions without a template."""

    space: SketchSpace

    def __init__(self, name: str, tensors: Sequence[Tensor], target: str) -> None:
        outputs = [t for t in tensors if not isinstance(t.op, PlaceholderOp)]
        super().__init__(name, tensors, target, SketchSpace(outputs, target))

    @property
    def default(self) -> Candidate:
        return self.space.default

    def made(self, candidate: Candidate) -> tuple[Schedule, Sequence[Tensor]]:
        """The schedule of a trace. Infeasible where it is none of these expressions."""
        return replayed(self.outputs, candidate["trace"]), self.tensors


def tasks_of_expressions(kernel: TEKernel, target: str, sizes: Mapping[str, object]) -> list[SketchTask] | None:
    """The task of a function that gives the tensors of a kernel and no schedule; None for one with a schedule of its own.
    `sizes`: values of the function's parameters. UsageError for others."""
    given = kernel.given(target, sizes)
    return None if given is None else [SketchTask(kernel.__name__, given, target)]

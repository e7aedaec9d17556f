"""Search strategies: which traces of a design space are measured, by the strategies of `compassc.tuning`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from compass_core.errors import CompassError
from compassc.ir import structural_hash
from compassc.tir import Schedule
from compassc.tuning import task as tuned
from compassc.tuning.result import Result
from compassc.tuning.search.plain import RandomSearch
from compassc.tuning.search.ranked import RankedSearch

from .cost import CostModel, RandomModel
from .database import FAILED, ArgInfo, Database, MeasureCandidate
from .space import Candidate, DesignSpace

if TYPE_CHECKING:
    from typing_extensions import Self

    from .measure import RunnerResult
    from .tune import TuneContext


class SearchStrategy:
    """The base of strategies."""

    def __init__(self) -> None:
        self._context: TuneContext | None = None
        self._search: RandomSearch | RankedSearch | None = None

    def initialize(self, context: TuneContext) -> None:
        """Takes the context."""
        self._context = context

    _initialize_with_tune_context = initialize

    def pre_tuning(
        self, max_trials: int, num_trials_per_iter: int, design_spaces: Sequence[Schedule], database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:  # fmt: skip
        """Begins a search. ValueError where one is under way."""
        if self._search is not None:
            raise ValueError("`pre_tuning` is already invoked without corresponding `post_tuning`.")
        context = self._context
        if context is None or context.mod is None or context.space_generator is None:
            raise ValueError(
                "a search needs a context with a module and a generator of spaces: call `initialize` first"
            )
        self._mod = context.mod
        self._space = DesignSpace(context.mod, design_spaces, context.space_generator)
        self._left, self._count = max_trials, num_trials_per_iter
        self._seen: set[int] = set()
        self._asked: dict[int, tuple[MeasureCandidate, Candidate]] = {}
        self._search = self._strategy(context.seed, cost_model or RandomModel())

    def _strategy(self, seed: int, model: CostModel) -> RandomSearch | RankedSearch:
        return RandomSearch(_searched(self._space), seed)

    def post_tuning(self) -> None:
        """Ends the search."""
        self._search = None

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """What to measure next; None when the search is at its end."""
        assert self._search is not None, "the search has not begun"
        wanted, made = min(self._count, self._left), list[MeasureCandidate]()
        while len(made) < wanted:
            try:
                asked = self._search.ask(wanted - len(made))
            except CompassError:
                break
            if not asked:
                break
            for candidate in asked:
                sch = self._space.schedule(candidate)
                key = structural_hash(sch.mod)
                if key in self._seen:
                    self._search.tell([(candidate, Result(None, "infeasible", "it is measured already"))])
                    continue
                self._seen.add(key)
                one = MeasureCandidate(sch, ArgInfo.from_entry_func(self._mod))
                self._asked[id(one)] = one, candidate
                made.append(one)
        self._left -= len(made)
        return made or None

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Tells it what was measured."""
        assert self._search is not None, "the search has not begun"
        told = []
        for one, result in zip(measure_candidates, results):
            _, candidate = self._asked[id(one)]
            seconds = [float(s) for s in result.run_secs or ()]
            mean = sum(seconds) / len(seconds) if seconds else FAILED
            told.append((candidate, Result(mean) if mean < FAILED else Result(None, "build", result.error_msg or "")))
        self._search.tell(told)

    def clone(self) -> Self:
        """Another one like it."""
        made = copy.copy(self)
        made._search = None
        return made

    @staticmethod
    def create(kind: object = "evolutionary", *args: object, **options: object) -> SearchStrategy:
        """A strategy by name. ValueError for others."""
        if isinstance(kind, SearchStrategy):
            return kind
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(f"Unknown SearchStrategy: {kind}")
        return _KINDS[kind](*args, **options)


PySearchStrategy = SearchStrategy


class _Searched:
    """What strategies need of a task."""

    default = None

    def __init__(self, space: DesignSpace) -> None:
        self.space = space


def _searched(space: DesignSpace) -> tuned.Task:
    return cast("tuned.Task", _Searched(space))  # all that strategies ask of one


class ReplayTrace(SearchStrategy):
    """Random choices in random designs."""

    def __init__(self, max_fail_count: int = 100) -> None:
        super().__init__()
        self.max_fail_count = max_fail_count


class ReplayFunc(SearchStrategy):
    """Random choices in designs that are made anew."""


class EvolutionarySearch(SearchStrategy):
    """Children of the best traces, of which those are measured that the model of costs ranks first."""

    def __init__(
        self, *, population_size: int = 512, init_measured_ratio: float = 0.2, init_min_unmeasured: int = 50,
        max_fail_count: int = 5, genetic_num_iters: int = 4, genetic_mutate_prob: float = 0.85,
        genetic_max_fail_count: int = 10, eps_greedy: float = 0.05,
    ) -> None:  # fmt: skip
        """`eps_greedy`: the share of candidates that the model does not choose; the other numbers change nothing."""
        super().__init__()
        self.population_size, self.eps_greedy = population_size, eps_greedy

    def _strategy(self, seed: int, model: CostModel) -> RandomSearch | RankedSearch:
        learned = model.learned(self._space, seed)
        if learned is None:
            return super()._strategy(seed, model)
        made = RankedSearch(_searched(self._space), seed, learned, fresh=2, random=self.eps_greedy)
        made.features = lambda task, candidates: [self._space.features(c) for c in candidates]
        return made


_KINDS: dict[str, Callable[..., SearchStrategy]] = {
    "evolutionary": EvolutionarySearch,
    "replay-trace": ReplayTrace,
    "replay-func": ReplayFunc,
}

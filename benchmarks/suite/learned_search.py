"""How many trials a search that learns needs to find what random search finds in many: schedules without a template.

Cycles are the same whenever they are measured, so each candidate is measured once, for all searches: random search draws
from a table of candidates, and what the learning searches ask for joins it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks.core import Goal, Result
from benchmarks.te_forms import depthwise_3x3, layer_norm, matmul_int8, softmax
from compassc import te
from compassc.tuning import measure as measuring
from compassc.tuning.cost.programs import features_of
from compassc.tuning.result import Result as Measured
from compassc.tuning.search import strategy_named
from compassc.tuning.search.ranked import RankedSearch
from compassc.tuning.sketches import SketchTask
from compassc.tuning.space import Candidate, key_of

from ._examples import TARGET

POOL, TRIALS, SEEDS = 192, 64, 5
"""Random candidates in the table, how many of them each random search tries, and searches with different seeds."""
TASKS: dict[str, Callable[[], Sequence[te.Tensor]]] = {
    "matmul_int8": lambda: matmul_int8(64, 64, 64)[1],
    "depthwise_3x3": lambda: depthwise_3x3(8, 16, 32)[1],
    "softmax": lambda: softmax(32, 128)[1],
    "layer_norm": lambda: layer_norm(32, 128)[1],
}
MODELS = {"ridge": "ridge regression", "xgboost": "xgboost"}
GOALS = {
    f"{model} {name}": Goal(f"{name}, {words}: trials of random search per trial", "x")
    for name in TASKS
    for model, words in MODELS.items()
} | {
    model: Goal(f"the same, median of all searches with {words}", "x", 3.0, at_most=False)
    for model, words in MODELS.items()
}


def measure() -> dict[str, Result]:
    found: dict[str, Result] = {}
    ratios: dict[str, list[float]] = {model: [] for model in MODELS}
    for name, tensors in TASKS.items():
        table = _Table(SketchTask(name, tensors(), TARGET))
        for model in ratios:
            if model == "xgboost" and not _has_xgboost():
                found[f"{model} {name}"] = Result(None, "xgboost is not installed")
                continue
            own = [_ratio(table, model, seed) for seed in range(SEEDS)]
            ratios[model] += [r for r, _ in own]
            found[f"{model} {name}"] = Result(
                statistics.median(r for r, _ in own), f"trials: {', '.join(text for _, text in own)}"
            )
    for model, all_ in ratios.items():
        detail = f"{len(all_)} searches against {TRIALS} random trials each"
        found[model] = Result(statistics.median(all_), detail) if all_ else Result(None, "xgboost is not installed")
    return found


def _has_xgboost() -> bool:
    from importlib.util import find_spec

    return find_spec("xgboost") is not None


@dataclass
class _Table:
    """What is known of a task's candidates: results and features by key. `pool`: random candidates."""

    task: SketchTask
    results: dict[str, Measured] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    pool: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pool = strategy_named("random", self.task, 0).ask(POOL)

    def costs(self, candidates: Sequence[Candidate]) -> list[float]:
        """Cycles of candidates; infinite for those that have none."""
        new = [c for c in candidates if key_of(c) not in self.results]
        self.results |= dict(zip(map(key_of, new), measuring.measure(self.task, new), strict=True))
        return [self.results[key_of(c)].cost or float("inf") for c in candidates]

    def features_of(self, task: object, candidates: Sequence[Candidate]) -> list[Any]:
        for c in candidates:
            if key_of(c) not in self.features:
                self.features[key_of(c)] = features_of(self.task, c)
        return [self.features[key_of(c)] for c in candidates]


def _ratio(table: _Table, model: str, seed: int) -> tuple[float, str]:
    """How many times fewer trials the model needs to come to the best of random search; as many as that where it does
    not."""
    random = table.costs(Random(seed).sample(table.pool, TRIALS))
    learned = _learned(table, model, seed, min(random))
    needed = next((i + 1 for i, c in enumerate(learned) if c <= min(random)), TRIALS)
    return TRIALS / needed, f"{needed} ({min(learned):,.0f}, random {min(random):,.0f})"


def _learned(table: _Table, model: str, seed: int, goal: float) -> list[float]:
    """The costs of the trials of a search with a model, until one is as good as the goal. The default schedule, which
    random search hardly ever draws, is none of them."""
    search, costs = RankedSearch(table.task, seed, model=model), list[float]()
    search.features = table.features_of
    search.tell([(table.task.default, Measured(None, "infeasible", "not to be found"))])
    while len(costs) < TRIALS and (not costs or min(costs) > goal):
        asked = search.ask(min(search.generation, TRIALS - len(costs)))
        if not asked:
            break
        costs += table.costs(asked)
        search.tell([(c, table.results[key_of(c)]) for c in asked])
    return costs

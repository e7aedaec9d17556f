"""How many trials a search that learns needs to find what random search finds in many: schedules without a template."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.core import Goal, Result
from benchmarks.te_forms import depthwise_3x3, layer_norm, matmul_int8, softmax
from compassc import te
from compassc.tuning import measure as measuring
from compassc.tuning.result import Result as Measured
from compassc.tuning.search import strategy_named
from compassc.tuning.sketches import SketchTask
from compassc.tuning.space import Candidate, key_of

from ._examples import TARGET

TRIALS, SEEDS = 36, 3
TASKS: dict[str, Callable[[], Sequence[te.Tensor]]] = {
    "matmul_int8": lambda: matmul_int8(64, 64, 64)[1],
    "depthwise_3x3": lambda: depthwise_3x3(8, 16, 32)[1],
    "softmax": lambda: softmax(32, 128)[1],
    "layer_norm": lambda: layer_norm(32, 128)[1],
}
GOALS = {
    **{name: Goal(f"{name}, trials of random search per trial", "x") for name in TASKS},
    "all": Goal("the same, median of all searches", "x", 3.0, at_most=False),
}


def measure() -> dict[str, Result]:
    found: dict[str, Result] = {}
    ratios: list[float] = []
    for name, tensors in TASKS.items():
        task = SketchTask(name, tensors(), TARGET)
        own = [_ratio(task, seed) for seed in range(SEEDS)]
        ratios += [r for r, _ in own]
        words = ", ".join(text for _, text in own)
        found[name] = Result(statistics.median(r for r, _ in own), words)
    found["all"] = Result(statistics.median(ratios), f"{len(ratios)} searches, {TRIALS} random trials each")
    return found


def _ratio(task: SketchTask, seed: int) -> tuple[float, str]:
    """How many times fewer trials the model needs to come to the best of random search; as many as that where it does
    not."""
    random = _costs(task, "random", seed, TRIALS, 0.0)
    goal, at = min((c, i + 1) for i, c in enumerate(random))
    learned = _costs(task, "model", seed, TRIALS, goal)
    needed = next((i + 1 for i, c in enumerate(learned) if c <= goal), TRIALS)
    return TRIALS / needed, f"{needed} (random {goal:,.0f} at {at}, learned {min(learned):,.0f})"


def _costs(task: SketchTask, strategy: str, seed: int, trials: int, goal: float) -> list[float]:
    """The costs of the trials of a search, until one is as good as the goal. The default schedule is none of them."""
    search, costs = strategy_named(strategy, task, seed), list[float]()
    search.tell([(task.default, Measured(None, "infeasible", "not to be found"))])
    while len(costs) < trials and (not costs or min(costs) > goal):
        asked = search.ask(min(search.generation, trials - len(costs)))
        if not asked:
            break
        results = _measured(task, asked)
        search.tell(list(zip(asked, results, strict=True)))
        costs += [r.cost if r.cost is not None else float("inf") for r in results]
    return costs


_known: dict[tuple[str, str], Measured] = {}
"""Results by task and candidate: the same for each search."""


def _measured(task: SketchTask, candidates: Sequence[Candidate]) -> list[Measured]:
    new = [c for c in candidates if (task.name, key_of(c)) not in _known]
    for candidate, result in zip(new, measuring.measure(task, new), strict=True):
        _known[task.name, key_of(candidate)] = result
    return [_known[task.name, key_of(c)] for c in candidates]

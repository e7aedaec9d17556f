"""Tuning the layers of a network: the distinct kernels with choices, and how a budget is shared out among them.

Trials go in rounds to the task from which most is expected: what its kernel takes in the whole network, times the part
of that which the last trials have brought, or, of tasks that were tried little, may bring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import targets
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.gbuilder.nodes import nodes_of
from compassc.graph import Graph, LayerError
from compassc.layers.library import LayerLibrary
from compassc.tuning.history import apply_history_best
from compassc.tuning.layer_task import LayerTask
from compassc.tuning.tune import Search, TuneOptions, tune
from compassc.tuning.workers import Workers

if TYPE_CHECKING:
    from compass_runtime.profile.result import Profile

ROUND, LEAST_ROUND = 16, 4
"""Trials that a task gets at once: at most, and at least where there are few for all tasks."""
_HOPE, _FIRST_HOPE = 0.1, 0.5
"""The part of its cost that a task's rounds may save, as far as nothing is known, halved with each; and its first one."""


@dataclass
class NetworkTask:
    """The task of a kernel, how often the network calls it, and its search so far."""

    task: LayerTask
    calls: int = 1
    cycles: float = float("inf")
    """Of a call as the builder decides, as far as that is known before the first trial."""
    search: Search | None = None
    trials: int = 0
    gains: list[float] = field(default_factory=list)
    """By round, the part of the cost that it saved."""

    @property
    def done(self) -> bool:
        """Whether there is nothing more to be tried."""
        return self.search is not None and self.search.ended in ("exhausted", "patience")

    @property
    def expected_gain(self) -> float:
        """Cycles of the network that the next round may save."""
        best = self.search.best if self.search is not None else None
        if self.search is None:
            return self.calls * self.cycles * _FIRST_HOPE
        cost = best.cost if best is not None and best.cost is not None else 0.0
        hope: float = max(_HOPE / 2 ** len(self.gains), self.gains[-1] if self.gains else 0.0)
        return self.calls * cost * hope

    @property
    def untried(self) -> int:
        """Candidates of which nothing is known."""
        return 0 if self.done else max((self.task.space.size or 0) - len(self.search.records if self.search else ()), 0)


def tasks_of_graph(graph: Graph, target: str, folder: Path, profile: Profile | None = None) -> list[NetworkTask]:
    """The distinct kernels of a graph that leave something to be chosen, as the builder groups layers to kernels.

    `profile`: of a run, which tells what they take. CompassError when layers have no kernel.
    """
    nodes = nodes_of(graph)
    computing = [n for n in nodes.nodes if n.layer.type not in ("Input", "Constant")]
    taken, refused = LayerLibrary(folder, targets.load(target).name).take(nodes, computing)
    if refused:
        raise CompassError(f"a layer has no kernel: {next(iter(refused.values()))}", code="layer-unsupported")
    cycles = {run.layers: run.cycles for run in profile.layers} if profile is not None else {}
    found: dict[str, NetworkTask] = {}
    for _, group in taken:
        try:
            task = LayerTask(tuple(node.layer for node in group), targets.load(target).name, folder)
        except LayerError:  # a kernel that only the whole graph can make
            continue
        if task.space.size > 1:
            key = task.workload.key
            if key in found:
                found[key].calls += 1
            else:
                names = " + ".join(node.layer.name for node in group)
                found[key] = NetworkTask(task, cycles=cycles.get(names, float("inf")))
    return list(found.values())


NetworkListener = Callable[[Sequence[NetworkTask], NetworkTask, Search], object]
"""Called as results come: all tasks, the one at work, and its search."""


def tune_network(
    tasks: Sequence[NetworkTask],
    options: TuneOptions,
    store: Path,
    workers: Workers,
    listener: NetworkListener = lambda tasks, task, search: None,
) -> None:
    """Shares `options.trials` out among tasks, by what each may save. What is on record is not measured again."""
    left, size = options.trials, max(LEAST_ROUND, min(ROUND, options.trials // (2 * max(len(tasks), 1))))
    while left > 0 and (open_ := [t for t in tasks if not t.done]):
        one = max(open_, key=lambda t: t.expected_gain)
        asked = min(size, left)
        before = one.search.best if one.search is not None else None

        def told(search: Search, one: NetworkTask = one) -> None:
            listener(tasks, one, search)

        search = tune(one.task, replace(options, trials=one.trials + asked), store, workers, told)
        left -= max(len(search.records) - one.trials, 0) if search.ended != "trials" else asked
        before = before or search.default
        if before is not None and before.cost and search.best is not None:
            one.gains.append(1 - (search.best.cost or 0.0) / before.cost)
        one.search, one.trials = search, len(search.records)


@dataclass(frozen=True)
class LayerCycles:
    """A launch of the network before and after tuning, in estimated cycles."""

    layers: str
    before: float
    after: float


@dataclass(frozen=True)
class NetworkResult:
    """What tuning a network brought: its launches in order, the cycles of the whole run, and the tasks."""

    layers: tuple[LayerCycles, ...]
    before: int
    after: int
    tasks: tuple[NetworkTask, ...]

    @property
    def verdict(self) -> str:
        """Whether there is more to be gained."""
        if not self.tasks:
            return "nothing to gain: the kernels of these layers leave nothing to choose"
        sizes = [one.task.space.size or 0 for one in self.tasks]
        untried, kernels = sum(one.untried for one in self.tasks), f"{len(sizes)} kernel{'s' * (len(sizes) > 1)}"
        if untried:
            return f"{untried:,} of {sum(sizes):,} candidates of {kernels} were not tried: more --trials may gain more"
        left = "nothing more" if self.after < self.before else "nothing"
        return f"{left} to gain: all {sum(sizes):,} candidates of {kernels} are known"

    @classmethod
    def of(cls, before: Profile, after: Profile, tasks: Sequence[NetworkTask]) -> NetworkResult:
        pairs = zip(before.layers, after.layers, strict=True)
        layers = tuple(LayerCycles(a.layers or a.kernel, a.cycles, b.cycles) for a, b in pairs)
        return cls(layers, before.cycles, after.cycles, tuple(tasks))


Build = Callable[[], Any]
"""Builds the network with what is on record now; gives a `compassc.models.model.Model`."""


def tune_model(
    build: Build, target: str, options: TuneOptions, store: Path, workers: Workers, listener: NetworkListener
) -> NetworkResult:
    """Tunes the kernels of a model; the records go to `store`. The model is built and profiled before, without the records
    of the store, and after, with them."""
    model = build()
    before = model.profile()
    tasks = tasks_of_graph(model.graph, target, model.folder, before)
    tune_network(tasks, options, store, workers, listener)
    if not any(one.gains and max(one.gains) > 0 for one in tasks):
        return NetworkResult.of(before, before, tasks)
    with apply_history_best(store):
        after = build().profile()
    return NetworkResult.of(before, after, tasks)

"""The entry points: contexts, the scheduler of tasks, `tune_tir`, `tune_tasks` and `compile_tir`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from compass_core.dataclass import dataclass
from compass_core.hostcc.host import num_threads as processors
from compassc.ir import IRModule, PrimFunc
from compassc.targets import Target
from compassc.tir import Schedule

from .cost import CostModel, RandomModel
from .database import FAILED, Database, MeasureCandidate, MemoryDatabase, module_of
from .measure import Builder, BuilderInput, MeasureCallback, Runner, RunnerInput, RunnerResult
from .search import SearchStrategy
from .space import SpaceGenerator

_log = logging.getLogger("tvm.meta_schedule")


class TuneContext:
    """What one search is about."""

    def __init__(
        self, mod: IRModule | PrimFunc | None = None, *, target: object = None, space_generator: object = None,
        search_strategy: object = None, task_name: str = "main", rand_state: int = -1, num_threads: int | str = "physical",
        logger: logging.Logger | None = None,
    ) -> None:  # fmt: skip
        """ValueError for numbers of threads that are none."""
        if isinstance(num_threads, str) and num_threads not in ("physical", "logical"):
            raise ValueError(f"Invalid num_threads: {num_threads}")
        self.mod = None if mod is None else module_of(mod)
        self.target = None if target is None else Target.of(target)
        self.task_name, self.logger = task_name, logger or _log
        self.num_threads = num_threads if isinstance(num_threads, int) else processors()
        self.rand_state = rand_state
        self.seed = rand_state if rand_state >= 0 else int(np.random.default_rng().integers(1, 2**30))
        self.space_generator = None if space_generator is None else SpaceGenerator.create(space_generator)
        self.search_strategy = None if search_strategy is None else SearchStrategy.create(search_strategy)
        for part in (self.space_generator, self.search_strategy):
            if part is not None:
                part.initialize(self)

    def _strategy(self) -> SearchStrategy:
        if self.search_strategy is None:
            raise ValueError("search_strategy is not provided. Please construct TuneContext with search_strategy")
        return self.search_strategy

    def generate_design_space(self) -> list[Schedule]:
        """The designs of the module."""
        for name in ("space_generator", "mod"):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is not provided. Please construct TuneContext with {name}")
        assert self.space_generator is not None and self.mod is not None
        return self.space_generator.generate_design_space(self.mod)

    def pre_tuning(
        self, max_trials: int, num_trials_per_iter: int = 64, design_spaces: Sequence[Schedule] | None = None,
        database: Database | None = None, cost_model: CostModel | None = None,
    ) -> None:  # fmt: skip
        """Begins the search."""
        strategy = self._strategy()
        spaces = design_spaces if design_spaces is not None else self.generate_design_space()
        strategy.pre_tuning(
            max_trials, num_trials_per_iter, spaces, database or MemoryDatabase(), cost_model or RandomModel()
        )

    def post_tuning(self) -> None:
        """Ends the search."""
        self._strategy().post_tuning()

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """What to measure next."""
        return self._strategy().generate_measure_candidates()

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Tells the strategy what was measured."""
        self._strategy().notify_runner_results(measure_candidates, results)

    def clone(self) -> TuneContext:
        """Another one like it."""
        return TuneContext(
            self.mod, target=self.target, task_name=self.task_name, rand_state=self.rand_state, logger=self.logger,
            space_generator=None if self.space_generator is None else self.space_generator.clone(),
            search_strategy=None if self.search_strategy is None else self.search_strategy.clone(),
        )  # fmt: skip


@dataclass
class TaskRecord:
    """A task as it stands."""

    ctx: TuneContext
    task_weight: float = 1.0
    flop: float = 1.0
    is_terminated: bool = False
    build_error_count: int = 0
    run_error_count: int = 0
    latency: list[float] = field(default_factory=list)
    """The best seconds after each round."""


class TaskScheduler:
    """Says which task is next. Subclasses have `next_task_id`."""

    def __init__(self, **options: object) -> None:
        self.tasks_: list[TaskRecord] = []
        self.database: Database | None = None
        self.cost_model: CostModel | None = None

    def next_task_id(self) -> int:
        """The number of the task that is next; -1 when all are at their end."""
        raise ValueError("next_task_id is not defined")

    def tune(
        self, tasks: Sequence[TuneContext], task_weights: Sequence[float], max_trials_global: int, max_trials_per_task: int,
        num_trials_per_iter: int, builder: Builder, runner: Runner, measure_callbacks: Sequence[MeasureCallback],
        database: Database | None, cost_model: CostModel | None,
    ) -> None:  # fmt: skip
        """Searches until the trials are spent."""
        self.tasks_ = [TaskRecord(c, w) for c, w in zip(tasks, task_weights)]
        self.database, self.cost_model = database, cost_model
        for task in tasks:
            task.pre_tuning(max_trials_per_task, num_trials_per_iter, None, database, cost_model)
        spent = 0
        while spent < max_trials_global and (number := self.next_task_id()) >= 0:
            spent += self._round(number, builder, runner, measure_callbacks, max_trials_global - spent)
        for record in self.tasks_:
            record.ctx.post_tuning()

    def _round(
        self, number: int, builder: Builder, runner: Runner, callbacks: Sequence[MeasureCallback], most: int
    ) -> int:
        record = self.tasks_[number]
        candidates = record.ctx.generate_measure_candidates()
        if candidates is None:
            record.is_terminated = True
            return 0
        candidates = candidates[:most]
        target = record.ctx.target
        built = builder.build([BuilderInput(c.sch.mod, target) for c in candidates])
        good = [(c, b.artifact_path) for c, b in zip(candidates, built) if b.error_msg is None]
        device = target.kind.device if target is not None else "cpu"
        futures = runner.run([RunnerInput(str(path), device, c.args_info) for c, path in good])
        measured = {id(c): f.result() for (c, _), f in zip(good, futures)}
        results = [measured.get(id(c)) or RunnerResult(None, b.error_msg) for c, b in zip(candidates, built)]
        record.build_error_count += len(candidates) - len(good)
        record.run_error_count += sum(r.error_msg is not None for r in measured.values())
        record.ctx.notify_runner_results(candidates, results)
        for callback in callbacks:
            callback.apply(self, number, candidates, built, results)
        best = min((sum(r.run_secs) / len(r.run_secs) for r in results if r.run_secs), default=FAILED)
        record.latency.append(min([best, *record.latency[-1:]]))
        for result in (r for r in results if r.error_msg):
            record.ctx.logger.debug("%s", result.error_msg)
        return len(candidates)

    def terminate_task(self, task_id: int) -> None:
        """Has a task be at its end."""
        self.tasks_[task_id].is_terminated = True

    def touch_task(self, task_id: int) -> None:
        """Nothing: rounds are waited for."""

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Nothing: rounds are waited for."""
        return []

    def print_tuning_statistics(self) -> None:
        """Tells the log how all tasks stand."""
        head = "ID | Name | FLOP | Weight | Speed (GFLOPS) | Latency (us) | Weighted Latency (us) | Trials | Done"
        rows = []
        for i, record in enumerate(self.tasks_):
            latency = record.latency[-1] * 1e6 if record.latency else FAILED
            rows.append(
                f"{i} | {record.ctx.task_name} | {record.flop:g} | {record.task_weight:g} | - | {latency:.4f} | {latency * record.task_weight:.4f} | {len(record.latency)} | {'Y' if record.is_terminated else ''}"
            )
        _log.info("%s", "\n".join([head, *rows]))

    @staticmethod
    def create(kind: TaskScheduler | str = "gradient", *args: object, **options: object) -> TaskScheduler:
        """A scheduler by name. ValueError for others."""
        if not isinstance(kind, str):
            return kind
        kinds: dict[str, Callable[..., TaskScheduler]] = {"gradient": GradientBased, "round-robin": RoundRobin}
        if kind not in kinds:
            raise ValueError(f"Unknown TaskScheduler: {kind}")
        return kinds[kind](*args, **options)


PyTaskScheduler = TaskScheduler


class RoundRobin(TaskScheduler):
    """One task after another."""

    _last = -1

    def next_task_id(self) -> int:
        count = len(self.tasks_)
        order = [(self._last + 1 + i) % count for i in range(count)]
        self._last = next((i for i in order if not self.tasks_[i].is_terminated), -1)
        return self._last


class GradientBased(TaskScheduler):
    """Each task once, then the one of which most is to be expected."""

    def __init__(self, *, alpha: float = 0.2, window_size: int = 3, seed: int = -1) -> None:
        super().__init__()
        self.alpha, self.window_size = alpha, window_size

    def next_task_id(self) -> int:
        alive = [i for i, t in enumerate(self.tasks_) if not t.is_terminated]
        fresh = [i for i in alive if not self.tasks_[i].latency]
        if fresh or not alive:
            return fresh[0] if fresh else -1
        return max(alive, key=self._gain)

    def _gain(self, number: int) -> float:
        task = self.tasks_[number]
        best, n, w = task.latency, len(task.latency), self.window_size
        if best[-1] >= FAILED:
            return -1e9
        past = (best[n - 1 - w] - best[n - 1]) / w if n - 1 >= w else best[n - 1]
        return task.task_weight * (self.alpha * past + (1 - self.alpha) * best[n - 1] / n)


def _database(given: Database | str | None, work_dir: str, equality: str) -> Database | None:
    if given in ("none", None):
        return None
    if not isinstance(given, str):
        return given
    options = {"work_dir": work_dir} if given == "json" else {}
    return Database.create(given, module_equality=equality, **options)


def tune_tasks(
    *, tasks: Sequence[TuneContext], task_weights: Sequence[float], work_dir: str, max_trials_global: int,
    max_trials_per_task: int | None = None, num_trials_per_iter: int = 64, builder: Builder | str = "local", runner: Runner | str = "local",
    database: Database | str | None = "json", cost_model: CostModel | str = "xgb", measure_callbacks: MeasureCallback | list[MeasureCallback] | str = "default",
    task_scheduler: TaskScheduler | str = "gradient",
    module_equality: str = "structural",
) -> Database | None:  # fmt: skip
    """Searches schedules of several tasks. ValueError without tasks, and where there are not as many weights."""
    if not tasks:
        raise ValueError("No tasks to tune.")
    if len(tasks) != len(task_weights):
        raise ValueError(f"Length of tasks ({len(tasks)}) and task_weights ({len(task_weights)}) do not match.")
    Path(work_dir).mkdir(parents=True, exist_ok=True)
    kept = _database(database, str(work_dir), module_equality)
    TaskScheduler.create(task_scheduler).tune(
        tasks, task_weights, max_trials_global, max_trials_per_task or max_trials_global, num_trials_per_iter,
        Builder.create(builder), Runner.create(runner), MeasureCallback.create(measure_callbacks), kept,
        CostModel.create(cost_model),
    )  # fmt: skip
    return kept


def tune_tir(
    mod: object, target: object, work_dir: str, max_trials_global: int, *, max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64, builder: Builder | str = "local", runner: Runner | str = "local", database: Database | str | None = "json",
    cost_model: CostModel | str = "xgb", measure_callbacks: MeasureCallback | list[MeasureCallback] | str = "default", task_scheduler: TaskScheduler | str = "gradient",
    space: object = "post-order-apply", strategy: object = "evolutionary", num_tuning_cores: int | str = "physical",
    seed: int | None = None, module_equality: str = "structural", special_space: Mapping[str, object] | None = None,
) -> Database | None:  # fmt: skip
    """Searches schedules of the functions of a module, each a task of its own. The same `seed` gives the same candidates as
    long as the times are alike; with a strategy that learns nothing, always."""
    module, chosen = module_of(mod), Target.of(target)
    functions = sorted(module.functions, key=lambda f: f.name)
    special = dict(special_space or {})
    wanted = [f for f in functions if special.get(f.name, space) is not None]
    states = [-1] * len(wanted) if seed is None else np.random.RandomState(seed).randint(1, 2**30, len(wanted)).tolist()
    tasks = []
    for function, state in zip(wanted, states):
        generator, search = special.get(function.name, space), strategy
        tasks.append(
            TuneContext(
                IRModule((function,), function.name, ""),
                target=chosen,
                space_generator=generator.clone() if isinstance(generator, SpaceGenerator) else generator,
                search_strategy=search.clone() if isinstance(search, SearchStrategy) else search,
                task_name=function.name,
                rand_state=int(state),
                num_threads=num_tuning_cores,
            )
        )
    return tune_tasks(
        tasks=tasks, task_weights=[1.0] * len(tasks), work_dir=work_dir, max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task, num_trials_per_iter=num_trials_per_iter, builder=builder, runner=runner,
        database=database, cost_model=cost_model, measure_callbacks=measure_callbacks, task_scheduler=task_scheduler,
        module_equality=module_equality,
    )  # fmt: skip


def compile_tir(database: Database, mod: IRModule | PrimFunc, target: object) -> Schedule | None:
    """The best schedule of a module in a database; None where there is none."""
    return database.query_schedule(mod, Target.of(target), "main")

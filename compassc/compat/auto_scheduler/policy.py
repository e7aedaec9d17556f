"""Policies, models of costs, options, and the scheduler of several tasks."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.tuning import cost
from compassc.tuning import task as tuned
from compassc.tuning.result import Result
from compassc.tuning.search.plain import RandomSearch
from compassc.tuning.search.ranked import RankedSearch

from .record import LocalBuilder, LocalRunner, MeasureInput, MeasureResult, load_records, measured
from .sketch import Candidate, SketchSpace
from .state import State
from .workload import SearchTask

_log = logging.getLogger("auto_scheduler")
_MOST_IN_VAIN = 200
"""Candidates in a row that give nothing new, after which a search has all."""


class RandomModel:
    """A model that learns nothing."""

    ranks = False

    def update(self, inputs: object, results: object) -> None:
        """Nothing."""

    def predict(self, task: object, states: Sequence[object]) -> list[float]:
        """Scores at random."""
        return [random.random() for _ in states]


class XGBModel(RandomModel):
    """Has the policy rank programs by their sizes, with ridge regression."""

    ranks = True

    def __init__(
        self, verbose_eval: int = 25, num_warmup_sample: int = 100, seed: int | None = None, model_file: str | None = None,
        adaptive_training: bool = False,
    ) -> None:  # fmt: skip
        self.seed = seed

    def update_from_file(self, file_name: str, n_lines: int | None = None) -> None:
        """Nothing: what is on record is given to a policy (`PreloadMeasuredStates`)."""

    def save(self, file_name: str) -> None:
        """Nothing: the policy learns anew of records."""

    load = save


class PythonBasedModel(RandomModel):
    """The base of a program's own models, which are not asked."""


class MeasureCallback(Protocol):
    """What is called after each round."""

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Takes measurements."""


@dataclass
class TuningOptions:
    """When a search ends, and who measures."""

    num_measure_trials: int = 0
    early_stopping: int | None = None
    num_measures_per_round: int = 64
    verbose: int = 1
    builder: LocalBuilder | str = "local"
    runner: LocalRunner | str = "local"
    measure_callbacks: Sequence[MeasureCallback] | None = None

    def __post_init__(self) -> None:
        kinds: dict[str, Callable[[], object]] = {"builder": LocalBuilder, "runner": LocalRunner}
        for name, kind in kinds.items():
            given = getattr(self, name)
            if isinstance(given, str):
                if given != "local":
                    raise ValueError(f"Invalid {name}: {given}")
                setattr(self, name, kind())

    def measured(self, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        """What states take, in order."""
        assert isinstance(self.builder, LocalBuilder) and isinstance(self.runner, LocalRunner), (
            "words have become these"
        )
        return measured(self.builder, self.runner, inputs)


class PythonBasedMeasureCallback:
    """The base of what is called after each round."""

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Takes measurements."""
        raise NotImplementedError


class PreloadMeasuredStates:
    """Has a policy leave out what a file has already."""

    def __init__(self, filename: str) -> None:
        self.filename = filename


class PreloadCustomSketchRule:
    """ValueError: sketches are made by the rules of here."""

    def __init__(self, meet_condition_func: object, apply_func: object, rule_name: str = "CustomSketchRule") -> None:
        raise ValueError(
            f"the sketch rule {rule_name} is not supported: sketches are made by the rules of this toolchain"
        )


class SearchPolicy:
    """The base of policies."""

    def __init__(self, task: SearchTask) -> None:
        self.task = task


class SketchPolicy(SearchPolicy):
    """Programs of sketches, by a model of costs. The same `seed` gives the same programs."""

    DEFAULT_PARAMS: ClassVar[Mapping[str, Any]] = {
        "eps_greedy": 0.05, "retry_search_one_round_on_empty": 1, "sample_init_min_population": 50,
        "sample_init_use_measured_ratio": 0.2, "evolutionary_search_population": 2048, "evolutionary_search_num_iters": 4,
        "evolutionary_search_mutation_prob": 0.85, "cpu_multi_level_tiling_structure": "SSRSRS",
        "gpu_multi_level_tiling_structure": "SSSRRSRS", "max_innermost_split_factor": 64, "max_vectorize_size": 16,
        "disable_change_compute_location": 0,
    }  # fmt: skip

    def __init__(
        self, task: SearchTask, program_cost_model: object = None, params: Mapping[str, object] | None = None, seed: int | None = None,
        verbose: int = 1, init_search_callbacks: Sequence[object] | None = None,
    ) -> None:  # fmt: skip
        """ValueError for targets without sketch rules."""
        super().__init__(task)
        if task.target.kind.name not in ("llvm", "c"):
            raise ValueError(f"No default sketch rules for target: {task.target}")
        self.params = {**self.DEFAULT_PARAMS, **(params or {})}
        self.verbose, self.seed = verbose, random.getrandbits(31) if seed is None else seed
        self.space = SketchSpace(task)
        model = program_cost_model or RandomModel()
        self._strategy = self._made(model)
        self._seen = {
            str(inp.state.transform_steps)
            for one in init_search_callbacks or ()
            if isinstance(one, PreloadMeasuredStates) and Path(one.filename).is_file()
            for inp, _ in load_records(one.filename)
        }
        self.best = float("inf")

    def _made(self, model: object) -> RandomSearch | RankedSearch:
        searched = cast("tuned.Task", _Searched(self.space))  # all that these strategies ask of one
        if not getattr(model, "ranks", False):
            return RandomSearch(searched, self.seed)
        count = len(self.space.features(self.space.sample(random.Random(0))))
        learned = cost.create("auto", self.seed, tuple(f"size{i}" for i in range(count)))
        made = RankedSearch(searched, self.seed, learned, random=float(self.params["eps_greedy"]))
        made.features = lambda task, candidates: [self.space.features(c) for c in candidates]
        return made

    def generate_sketches(self, print_for_debug: bool = False) -> list[State]:
        """A state of each sketch."""
        rng = random.Random(self.seed)
        one = self.space.sample(rng)
        return [self.space.state({**one, "sketch": i}) for i in range(len(self.space.sketches))]

    def sample_initial_population(self) -> list[State]:
        """Random states."""
        rng = random.Random(self.seed)
        return [self.space.state(self.space.sample(rng)) for _ in range(int(self.params["sample_init_min_population"]))]

    def set_verbose(self, verbose: int) -> None:
        """How much is told."""
        self.verbose = verbose

    def next_states(self, count: int) -> list[tuple[Candidate, State]]:
        """Programs that were not asked for, so many at most: no further ones where none of many was new."""
        made: list[tuple[Candidate, State]] = []
        vain = 0
        while len(made) < count and vain < _MOST_IN_VAIN and (asked := self._strategy.ask(count - len(made))):
            vain += len(asked)
            for candidate in asked:
                try:
                    state = self.space.state(candidate)
                except CompassError as error:
                    self._strategy.tell([(candidate, Result(None, "infeasible", error.message))])
                    continue
                key = str(state.transform_steps)
                if key not in self._seen:
                    self._seen.add(key)
                    made.append((candidate, state))
                    vain = 0
        return made

    def one_round(self, count: int, options: TuningOptions) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Measures some programs."""
        chosen = self.next_states(count)
        inputs = [MeasureInput(self.task, state) for _, state in chosen]
        results = options.measured(inputs)
        told = []
        for (candidate, _), result in zip(chosen, results):
            mean = float(np.mean(result.costs))
            told.append(
                (candidate, Result(mean) if result.error_no == 0 else Result(None, "build", str(result.error_msg)))
            )
            self.best = min(self.best, mean if result.error_no == 0 else self.best)
            if result.error_no:
                _log.debug("%s", result.error_msg)
        self._strategy.tell(told)
        for one in options.measure_callbacks or ():
            one.callback(self, inputs, results)
        return inputs, results

    continue_search_one_round = one_round

    def search(self, options: TuningOptions) -> State | None:
        """Measures until the trials are spent, or nothing better was found in `early_stopping` of them; without trials the
        first state."""
        if options.num_measure_trials <= 0:
            found = self.next_states(1)
            return found[0][1] if found else None
        done, last, best = 0, 0, float("inf")
        while done < options.num_measure_trials:
            count = min(options.num_measures_per_round, options.num_measure_trials - done)
            inputs, _ = self.one_round(count, options)
            if not inputs:
                break
            done += len(inputs)
            if self.best < best:
                best, last = self.best, done
            elif options.early_stopping is not None and done - last >= options.early_stopping:
                break
            if options.verbose >= 1:
                _log.info("Time elapsed: %d of %d programs, best %.3g s", done, options.num_measure_trials, self.best)
        return None


class EmptyPolicy(SearchPolicy):
    """The graph as it is."""

    def __init__(self, task: SearchTask, init_search_callbacks: object = None) -> None:
        super().__init__(task)

    def search(self, options: TuningOptions) -> State:
        """Measures the state without steps, once."""
        found = self.task.compute_dag.init_state
        inp = MeasureInput(self.task, found)
        if options.num_measure_trials > 0:
            results = options.measured([inp])
            for one in options.measure_callbacks or ():
                one.callback(self, [inp], results)
        return found


class _Searched:
    """What strategies need of a task."""

    default = None

    def __init__(self, space: SketchSpace) -> None:
        self.space = space


class TaskScheduler:
    """Shares trials out over tasks: one round each, then to that of which most is to be expected."""

    def __init__(
        self, tasks: Sequence[SearchTask], task_weights: Sequence[float] | None = None,
        objective_func: Callable[[Sequence[float]], float] | None = None,
        strategy: str = "gradient", load_model_file: object = None, load_log_file: str | None = None, alpha: float = 0.2,
        beta: float = 2, gamma: float = 0.5, backward_window_size: int = 3, callbacks: Iterable[TaskSchedulerCallback] | None = None,
    ) -> None:  # fmt: skip
        if strategy not in ("gradient", "round-robin"):
            raise ValueError(f"Invalid strategy: {strategy}. Available options: gradient, round-robin")
        self.tasks, self.strategy, self._log_file = list(tasks), strategy, load_log_file
        self.weights = list(task_weights or [1.0] * len(self.tasks))
        self.objective_func = objective_func or (lambda costs: sum(c * w for c, w in zip(costs, self.weights)))
        self.callbacks = (
            [PrintTableInfo(), LogEstimatedLatency("total_latency.tsv")] if callbacks is None else list(callbacks)
        )
        self.best_costs = [1e10] * len(self.tasks)
        self.task_cts = [0] * len(self.tasks)
        self.ct, self.start, self.cur_score = 0, time.time(), 1e10

    def tune(
        self, tune_option: TuningOptions, search_policy: str | Sequence[SketchPolicy] = "default",
        search_policy_params: Mapping[str, object] | None = None,
        adaptive_training: bool = False, per_task_early_stopping: int | None = None,
    ) -> None:  # fmt: skip
        """Searches. ValueError where there are fewer trials than tasks."""
        if tune_option.num_measure_trials < len(self.tasks):
            raise ValueError(
                f"num_measure_trials is too small. Please set it to a higher value. It should be at least {len(self.tasks)} for this model."
            )
        each = max(min(tune_option.num_measures_per_round, tune_option.num_measure_trials // len(self.tasks)), 1)
        preload = [PreloadMeasuredStates(self._log_file)] if self._log_file else None
        policies = (
            list(search_policy)
            if isinstance(search_policy, (list, tuple))
            else [
                SketchPolicy(
                    t,
                    RandomModel() if search_policy == "sketch.random" else XGBModel(),
                    search_policy_params,
                    init_search_callbacks=preload,
                )
                for t in self.tasks
            ]
        )
        done: set[int] = set()
        while self.ct < tune_option.num_measure_trials and len(done) < len(self.tasks):
            number = self._next(done)
            inputs, results = policies[number].one_round(
                min(each, tune_option.num_measure_trials - self.ct), tune_option
            )
            if not inputs:
                done.add(number)
                continue
            self.ct += len(inputs)
            self.task_cts[number] += 1
            good = [float(np.mean(r.costs)) for r in results if r.error_no == 0]
            self.best_costs[number] = min([self.best_costs[number], *good])
            self.cur_score = float(self.objective_func(self.best_costs))
            for one in self.callbacks:
                one.post_tune(self, number)

    def _next(self, done: set[int]) -> int:
        left = [i for i in range(len(self.tasks)) if i not in done]
        fresh = [i for i in left if not self.task_cts[i]]
        if fresh or self.strategy == "round-robin":
            return min(fresh or left, key=lambda i: self.task_cts[i])
        return max(left, key=lambda i: self.weights[i] * self.best_costs[i] / self.task_cts[i])


class TaskSchedulerCallback:
    """The base of what is called by the scheduler."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Before a round."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """After a round."""


class PrintTableInfo(TaskSchedulerCallback):
    """Tells the log how the tasks stand."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        rows = [
            f"{i} | {1e3 * c:.3f} ms | {n} rounds"
            for i, (c, n) in enumerate(zip(task_scheduler.best_costs, task_scheduler.task_cts))
        ]
        _log.info("%s", "\n".join(rows))


class LogEstimatedLatency(TaskSchedulerCallback):
    """Adds a line to a file after each round."""

    def __init__(self, log_file: str) -> None:
        self.log_file, self._lines = log_file, list[str]()

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        known = all(c < 1e9 for c in task_scheduler.best_costs)
        score = f"{task_scheduler.cur_score * 1e3:.3f}" if known else "N/A"
        self._lines.append(
            f"ElapsedTime(s)\t{time.time() - task_scheduler.start:.0f}\tEstimatedLatency(ms)\t{score}\tTrials\t{task_scheduler.ct}"
        )
        files.write(Path(self.log_file), "\n".join(self._lines) + "\n")

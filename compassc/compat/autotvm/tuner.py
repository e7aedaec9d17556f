"""Tuners: strategies of `compassc.tuning` that measure in batches."""

from __future__ import annotations

import logging
import os
import random
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from compass_core import files
from compassc.targets import Target
from compassc.tuning import cost
from compassc.tuning import task as tuned
from compassc.tuning.result import Result
from compassc.tuning.search.evolutionary import EvolutionarySearch
from compassc.tuning.search.plain import GridSearch, RandomSearch
from compassc.tuning.search.ranked import RankedSearch

from .callback import Callback, si_scale
from .contexts import Pair
from .measure import MeasureInput, MeasureOption, MeasureResult, create_measure_batch
from .space import ConfigEntity
from .task import Task

_log = logging.getLogger("autotvm")


class Strategy(Protocol):
    """Says which configurations to measure, by their indices."""

    def ask(self, count: int) -> list[int]:
        """At most so many that were not asked for before; none when there are no more."""

    def tell(self, results: Sequence[tuple[int, Result]]) -> None:
        """What became of some."""


class Tuner:
    """Measures configurations of a task. Random choices follow from `random.seed`."""

    def __init__(self, task: Task, **kwargs: object) -> None:
        self.param, self.task = kwargs, task
        self.best_config: ConfigEntity | None = None
        self.best_flops = 0.0
        self.best_measure_pair: Pair | None = None
        self.best_iter = 0
        self.ttl: int | None = None
        self.n_trial = 0
        self.error_ct_threshold = 150

    def has_next(self) -> bool:
        """Whether there is anything left to measure."""
        raise NotImplementedError

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """What to measure next, so many at most."""
        raise NotImplementedError

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learns from measurements."""

    def load_history(self, data_set: Iterable[Pair], min_seed_records: int = 500) -> None:
        """Learns from measurements that others made."""
        pairs = list(data_set)
        self.update([i for i, _ in pairs], [r for _, r in pairs])

    def set_error_threshold(self, threshold: int) -> None:
        """So many errors one after another make the messages detailed."""
        self.error_ct_threshold = threshold

    def reset(self) -> None:
        """Forgets the best."""
        self.best_config, self.best_flops, self.best_measure_pair = None, 0.0, None

    def tune(
        self, n_trial: int, measure_option: MeasureOption, early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (), si_prefix: str = "G",
    ) -> None:  # fmt: skip
        """Measures `n_trial` configurations, or until `early_stopping` of them brought nothing better."""
        scale = si_scale(si_prefix)
        measured = create_measure_batch(self.task, measure_option)
        self.n_trial, done, errors, failures = n_trial, 0, 0, list[str]()
        while done < n_trial and self.has_next():
            configs = self.next_batch(min(measured.n_parallel, n_trial - done))
            if not configs:
                break
            inputs = [MeasureInput(Target.of(self.task.target), self.task, config) for config in configs]
            results = measured(inputs)
            for k, (inp, result) in enumerate(zip(inputs, results)):
                flops = 0.0
                if result.error_no == 0:
                    flops, errors = (inp.task.flop or 0.0) / float(np.mean(result.costs)), 0
                else:
                    errors += 1
                    failures.append(str(result.costs[0]))
                if flops > self.best_flops:
                    self.best_flops, self.best_config = flops, inp.config
                    self.best_measure_pair, self.best_iter = (inp, result), done + k
                _log.debug(
                    "No: %d\t%sFLOPS: %.2f/%.2f\tresult: %s\t%s",
                    done + k + 1,
                    si_prefix,
                    flops / scale,
                    self.best_flops / scale,
                    result,
                    inp.config,
                )
            done += len(results)
            self.ttl = min(early_stopping + self.best_iter if early_stopping else n_trial, n_trial) - done
            self.update(inputs, results)
            for called in callbacks:
                called(self, inputs, results)
            if early_stopping is not None and done >= self.best_iter + early_stopping:
                _log.debug("Early stopped. Best iter: %d.", self.best_iter)
                break
            _log.setLevel(logging.DEBUG if errors > self.error_ct_threshold else _log.level)
        if done and self.best_config is None and failures:
            self._tell(failures)

    @staticmethod
    def _tell(failures: Sequence[str]) -> None:
        path = Path(tempfile.gettempdir(), f"tvm_tuning_errors_{os.getpid()}_{time.time_ns()}.log")
        files.write(path, "\n".join(failures))
        _log.warning(
            "Could not find any valid schedule for the task. A file containing the errors has been written to %s.",
            path,
        )


class _Searching(Tuner):
    """A tuner whose configurations a strategy chooses."""

    def __init__(self, task: Task, **kwargs: object) -> None:
        super().__init__(task, **kwargs)
        self._seed = random.getrandbits(31)
        self._searched = cast("tuned.Task", task)  # which has a space, all that these strategies ask of it
        self._strategy = self._new()
        self._ahead: list[int] = []
        self._visited: set[int] = set()

    def _new(self) -> Strategy:
        raise NotImplementedError

    def _fill(self, count: int) -> None:
        while len(self._ahead) < count:
            found = [i for i in self._strategy.ask(max(count - len(self._ahead), 1)) if i not in self._visited]
            if not found:
                return
            self._visited.update(found)
            self._ahead += found

    def has_next(self) -> bool:
        self._fill(1)
        return bool(self._ahead)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        self._fill(batch_size)
        taken, self._ahead = self._ahead[:batch_size], self._ahead[batch_size:]
        return [self.task.config_space.get(i) for i in taken]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        told: list[tuple[int, Result]] = []
        for inp, result in zip(inputs, results):
            index = inp.config.index
            if index is None or not self.task.config_space.is_index_valid(index):
                continue
            good = result.error_no == 0
            told.append((index, Result(float(np.mean(result.costs))) if good else Result(None, "build", "failed")))
        self._strategy.tell(told)

    def reset(self) -> None:
        super().reset()
        self._strategy, self._ahead, self._visited = self._new(), [], set()


def _within(indices: Iterable[int], ends: tuple[int, int] | None) -> list[int]:
    """Indices from the one end up to the other, both included."""
    return [i for i in indices if ends is None or ends[0] <= i <= ends[1]]


class RandomTuner(_Searching):
    """Configurations at random, each once."""

    def __init__(self, task: Task, range_idx: tuple[int, int] | None = None) -> None:
        self._range = range_idx
        super().__init__(task)

    def _new(self) -> Strategy:
        return _Part(RandomSearch(self._searched, self._seed), self._range)


class GridSearchTuner(_Searching):
    """Configurations by their indices."""

    def __init__(self, task: Task, range_idx: tuple[int, int] | None = None) -> None:
        self._range = range_idx
        super().__init__(task)

    def _new(self) -> Strategy:
        return _Part(GridSearch(self._searched, self._seed), self._range)


class _Part:
    """A strategy of which only indices in a range are taken."""

    def __init__(self, strategy: Strategy, ends: tuple[int, int] | None) -> None:
        self._strategy, self._ends = strategy, ends

    def ask(self, count: int) -> list[int]:
        while asked := self._strategy.ask(count):
            if found := _within(asked, self._ends):
                return found
        return []

    def tell(self, results: Sequence[tuple[int, Result]]) -> None:
        self._strategy.tell(results)


class GATuner(_Searching):
    """Children of the best configurations, after `pop_size` random ones. `elite_num` and `mutation_prob` change nothing: what
    children are made of is the strategy's."""

    def __init__(self, task: Task, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1) -> None:
        assert elite_num <= pop_size, "The number of elites must be less than population size"
        self._first = pop_size
        super().__init__(task)

    def _new(self) -> Strategy:
        return EvolutionarySearch(self._searched, self._seed, min(self._first, len(self.task.config_space)))


class XGBTuner(_Searching):
    """Configurations by ridge regression that learns from the values of knobs. `loss_type`, `plan_size` and what is about the
    optimizer change nothing."""

    def __init__(
        self, task: Task, plan_size: int = 64, feature_type: str = "itervar", loss_type: str = "reg",
        num_threads: int | None = None, optimizer: object = "sa", diversity_filter_ratio: float | None = None,
        log_interval: int = 50,
    ) -> None:  # fmt: skip
        """RuntimeError for types of features and losses that there are not."""
        if feature_type not in ("itervar", "knob", "curve"):
            raise RuntimeError(f"Invalid feature type {feature_type}")
        if loss_type not in ("reg", "rank", "rank-binary"):
            raise RuntimeError(f"Invalid loss type: {loss_type}")
        super().__init__(task)

    def _new(self) -> Strategy:
        space = self.task.config_space
        count = len(space.features(next(space.grid())))
        model = cost.create("auto", self._seed, tuple(f"knob{i}" for i in range(count)))
        strategy = RankedSearch(self._searched, self._seed, model)
        strategy.features = lambda task, candidates: [space.features(i).astype("float64") for i in candidates]
        return strategy


class DropletTuner(_Searching):
    """From a configuration to its neighbours, knob by knob, as long as one is better."""

    def __init__(self, task: Task, start_position: Sequence[int] | None = None, pvalue: float = 0.05) -> None:
        self._start = start_position
        super().__init__(task)

    def _new(self) -> Strategy:
        return _Descent(self.task, self._start)


class _Descent:
    def __init__(self, task: Task, start: Sequence[int] | None) -> None:
        self._space = task.config_space
        first = self._space.knob2point(start) if start is not None else next(self._space.grid())
        self._waiting, self._known = [first], {first}
        self._best: tuple[float, int] | None = None

    def ask(self, count: int) -> list[int]:
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def tell(self, results: Sequence[tuple[int, Result]]) -> None:
        for index, result in results:
            if result.cost is not None and (self._best is None or result.cost < self._best[0]):
                self._best = result.cost, index
                self._waiting = [i for i in self._around(index) if i not in self._known]
                self._known.update(self._waiting)

    def _around(self, index: int) -> list[int]:
        found = []
        for which, size in enumerate(self._space.dims):
            for step in (-1, 1):
                knobs = self._space.point2knob(index)
                knobs[which] += step
                if 0 <= knobs[which] < size and self._space.is_index_valid(point := self._space.knob2point(knobs)):
                    found.append(point)
        return found

"""Contexts: where builds of Relay get the schedules of whole kernels from."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from os import PathLike
from typing import ClassVar, Union, cast

import numpy as np

from compassc.relay.tuned import AUTO_SCHEDULER, scheduled_by
from compassc.targets import Target
from compassc.te.schedule import Schedule
from compassc.te.tensor import ComputeOp, Tensor

from ..autotvm.contexts import places_of
from ..nesting import Nested
from .record import (
    LocalBuilder,
    LocalRunner,
    MeasureInput,
    MeasureResult,
    calc_workload_dis_factor,
    load_records,
)
from .state import State, Steps
from .workload import ComputeDAG, SearchTask, Workload, decode_workload_key

_log = logging.getLogger("auto_scheduler")
Records = Union[str, "PathLike[str]", Iterable[Union[tuple[MeasureInput, MeasureResult], "Records"]]]
"""Records of a file by its name, or pairs; or several of these."""
Found = State | Steps
"""What has the steps of a schedule."""


class DispatchContext(Nested):
    """A place to look for states; as a context it is asked first, and those around it then."""

    current: ClassVar[DispatchContext | None]

    def query(
        self, target: object, workload_key: str, has_complex_op: bool, dag: ComputeDAG, func_name: str
    ) -> Found | None:
        """The state (its steps) for a kernel on a target, None where nobody has one."""
        found, outer = self._query_inside(target, workload_key, func_name), self.outer
        if found is None and isinstance(outer, DispatchContext):
            return outer.query(target, workload_key, has_complex_op, dag, func_name)
        return found

    def _query_inside(self, target: object, workload_key: str, func_name: str) -> Found | None:
        raise NotImplementedError

    def update(self, target: object, workload_key: str, state: Found) -> None:
        """Takes a state for a workload from now on."""

    def _asked_by_builds(self) -> AbstractContextManager[None]:
        return scheduled_by(AUTO_SCHEDULER, self._schedule)

    def _schedule(self, tensors: Sequence[Tensor], target: Target, name: str) -> Schedule | None:
        """What builds of Relay ask: see `compassc.relay.tuned`."""
        dag = ComputeDAG(tensors)
        sums = any(isinstance(op, ComputeOp) and op.reduce_axis for op in dag.ops)
        state = self.query(target, dag.workload_key(), sums, dag, name)
        return None if state is None else dag.apply_steps_from_state(state)[0]


class ApplyHistoryBest(DispatchContext):
    """The best states of records: those of a file, or pairs of inputs and results. With `include_compatible` also those of the same
    graph in sizes that divide the ones that are asked for."""

    def __init__(self, records: Records | None, n_lines: int | None = None, include_compatible: bool = False) -> None:
        super().__init__()
        self.include_compatible = include_compatible
        self.best_by_targetkey: dict[str, dict[Workload, tuple[Found, float]]] = {}
        self.best_by_model: dict[str, dict[Workload, tuple[Found, float]]] = {}
        self._own: dict[tuple[tuple[str, str], Workload], Found] = {}
        if records is not None:
            self.load(records, n_lines)

    def load(self, records: Records, n_lines: int | None = None) -> None:
        """Adds records, so many lines at most."""
        for inp, result in islice(_pairs(records), n_lines):
            if result.error_no != 0 or not isinstance(
                inp.task.target, Target
            ):  # a target that is not known has its name only
                continue
            cost, workload = (
                float(np.mean([float(c) for c in result.costs])),
                decode_workload_key(inp.task.workload_key),
            )
            for kind, key in places_of(inp.task.target):
                best = self._best(kind).setdefault(key, {})
                if workload not in best or cost < best[workload][1]:
                    best[workload] = inp.state, cost

    def _best(self, kind: str) -> dict[str, dict[Workload, tuple[Found, float]]]:
        return self.best_by_model if kind == "model" else self.best_by_targetkey

    def _query_inside(self, target: object, workload_key: str, func_name: str) -> Found | None:
        if target is None:
            raise RuntimeError(
                "Need a target context to find the history best. Hint: If your target is llvm, use `with tvm.target.Target('llvm'):` above the dispatcher call."
            )
        wanted = decode_workload_key(workload_key)
        for kind, key in places_of(Target.of(target)):
            if ((kind, key), wanted) in self._own:
                return self._own[(kind, key), wanted]
            states = [
                (cost * factor, state)
                for known, (state, cost) in self._best(kind).get(key, {}).items()
                if (factor := self._distance(wanted, known)) is not None
            ]
            if states:
                return min(states, key=lambda pair: pair[0])[1]
        return None

    def _distance(self, wanted: Workload, known: Workload) -> float | None:
        if wanted == known:
            return 1.0
        return calc_workload_dis_factor(wanted, known) if self.include_compatible else None

    def update(self, target: object, workload_key: str, state: Found) -> None:
        for place in places_of(Target.of(target)):
            self._own[place, decode_workload_key(workload_key)] = state


def _pairs(records: Records) -> Iterable[tuple[MeasureInput, MeasureResult]]:
    if isinstance(records, (str, PathLike)):
        yield from load_records(str(records))
        return
    for one in records:
        if isinstance(one, tuple) and len(one) == 2 and hasattr(one[0], "task"):
            yield cast("tuple[MeasureInput, MeasureResult]", one)
        else:
            yield from _pairs(cast("Records", one))


class ApplyHistoryBestOrSample(ApplyHistoryBest):
    """The best states of records; where there is none, one of a search: of `num_measure` programs that are measured, or without them
    of one that is not."""

    def __init__(
        self, records: Records | None, sample_simple_workloads: bool = False, cost_model_file: str | None = None, num_measure: int = -1
    ) -> None:  # fmt: skip
        """ValueError for a file of a model: policies learn of what they measure."""
        if cost_model_file is not None:
            raise ValueError(f"the model {cost_model_file} cannot be loaded: models learn of records here")
        super().__init__(records, include_compatible=True)
        self.sample_simple_workloads, self.num_measure = sample_simple_workloads, num_measure

    def query(
        self, target: object, workload_key: str, has_complex_op: bool, dag: ComputeDAG, func_name: str
    ) -> Found | None:
        found = self._query_inside(target, workload_key, func_name)
        if found is not None or not (has_complex_op or self.sample_simple_workloads):
            return found
        from .policy import SketchPolicy, TuningOptions

        task = SearchTask(workload_key=workload_key, compute_dag=dag, target=target, desc=func_name)
        policy = SketchPolicy(task, seed=0, verbose=0)
        if self.num_measure <= 0:
            return policy.search(TuningOptions())
        options = TuningOptions(self.num_measure, builder=LocalBuilder(), runner=LocalRunner())
        inputs, results = policy.one_round(self.num_measure, options)
        good = [(float(np.mean(r.costs)), i) for i, r in enumerate(results) if r.error_no == 0]
        return inputs[min(good)[1]].state if good else None


class FallbackContext(DispatchContext):
    """What there is without records: the default schedule, with one warning for each kernel with a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[tuple[str, str], Found] = {}
        self.verbose = 1
        self._told: set[str] = set()

    def query(
        self, target: object, workload_key: str, has_complex_op: bool, dag: ComputeDAG, func_name: str
    ) -> Found | None:
        found = self.memory.get((str(target), workload_key))
        if found is None and has_complex_op and self.verbose and workload_key not in self._told:
            self._told.add(workload_key)
            _log.warning(
                "-----------------------------------\n%s\nCannot find tuned schedules for target=%s, workload_key=%s. A fallback TOPI schedule is used, which may bring great performance regression or even compilation failure. Compute DAG info:\n%s",
                func_name, target, workload_key, dag,
            )  # fmt: skip
        return found

    def clear_cache(self, target: object, workload_key: str) -> None:
        """Forgets what is known of a workload, which is told of again."""
        self.memory.pop((str(target), workload_key), None)
        self._told.discard(workload_key)

    def update(self, target: object, workload_key: str, state: Found) -> None:
        self.memory[str(target), workload_key] = state


DispatchContext.current = FallbackContext()

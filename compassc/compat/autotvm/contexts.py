"""Contexts: where templates get their configuration from."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, ClassVar, TextIO, Union, cast

import numpy as np

from compassc.relay.tuned import Workload, consulted
from compassc.targets import Target
from compassc.te.tensor import Operation, Tensor

from ..nesting import Nested
from .space import ConfigEntity, ConfigSpace, FallbackConfigEntity

if TYPE_CHECKING:
    from .measure import MeasureInput, MeasureResult
    from .task import Task

Pair = tuple["MeasureInput", "MeasureResult"]
"""A record: what was measured, and what came of it."""
Records = Union[str, "PathLike[str]", TextIO, Iterable[Union[Pair, "Records"]]]
"""Records of files by their names, of an open file, or pairs; or several of these."""
_log = logging.getLogger("autotvm")


def get_workload(outs: Tensor | Iterable[Tensor], task_name: str | None = None) -> Workload | None:
    """The workload that an operation behind these tensors knows, of a task where one is named."""
    waiting: list[Operation] = [t.op for t in ([outs] if isinstance(outs, Tensor) else outs)]
    seen: set[Operation] = set()
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        found = (op.attrs or {}).get("workload")
        if found is not None and task_name in (None, found[0]):
            return deserialized(found)
        waiting += [t.op for t in op.input_tensors]
    return None


def deserialized(workload: Iterable[object]) -> Workload:
    """A workload with tuples where attributes or JSON have lists."""
    return tuple(deserialized(x) if isinstance(x, (list, tuple)) else x for x in workload)


class DispatchContext(Nested):
    """A place to look for configurations; as a context it is asked first, and those around it then."""

    current: ClassVar[DispatchContext | None]

    def query(self, target: Target | None, workload: Workload | None) -> ConfigSpace | None:
        """The configuration for a workload on a target."""
        found, outer = self._query_inside(target, workload), self.outer
        return outer.query(target, workload) if found is None and isinstance(outer, DispatchContext) else found

    def _query_inside(self, target: Target | None, workload: Workload | None) -> ConfigSpace | None:
        raise NotImplementedError

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        """Takes a configuration for a workload from now on."""

    def _asked_by_builds(self) -> AbstractContextManager[None]:
        return consulted(self)

    # what builds of Relay ask: see compassc.relay.tuned
    def cost(self, op: str, outputs: Sequence[Tensor], target: Target) -> float | None:
        """The cost of the configuration of a template's results; None for other results, and for those of fallbacks."""
        workload = get_workload(outputs)
        found = None if workload is None else self._measured(workload, target)
        return None if found is None else found.cost

    def knobs(self, workload: Workload, target: Target) -> Mapping[str, object] | None:
        """The values of the configuration for a call of Relay; None where there is none."""
        found = self._measured(workload, target)
        return None if found is None else found.get_other_option()

    def _measured(self, workload: Workload, target: Target) -> ConfigEntity | None:
        """The configuration of a workload that was measured. That there is none is told in detail to who listens, and once to all."""
        silent, FallbackContext.silent = FallbackContext.silent, True
        try:
            found = self.query(target, workload)
        finally:
            FallbackContext.silent = silent
        if isinstance(found, ConfigEntity):
            return found
        _log.debug(
            "Cannot find tuning records for:\n    target=%s\n    key=%s\nTVM will apply a default schedule which may negatively impact performance.",
            target,
            workload,
        )
        if not (silent or DispatchContext._told_of_missing):
            DispatchContext._told_of_missing = True
            _log.warning(
                "One or more operators have not been tuned. Please tune your model for better performance. Use DEBUG logging level to see more details."
            )
        return None

    _told_of_missing: ClassVar[bool] = False


class ApplyConfig(DispatchContext):
    """One configuration for everything."""

    def __init__(self, config: ConfigSpace) -> None:
        super().__init__()
        self._config = config
        self.workload: Workload | None = None

    def _query_inside(self, target: Target | None, workload: Workload | None) -> ConfigSpace | None:
        self.workload = workload
        return self._config


class ApplyFixedConfig(DispatchContext):
    """The first configuration of tasks, those whose schedules are named as good as possible."""

    def __init__(self, tasks: Iterable[Task], schedule_names: str | Iterable[str]) -> None:
        super().__init__()
        self._tasks = list(tasks)
        self._names = [schedule_names] if isinstance(schedule_names, str) else list(schedule_names)

    def _query_inside(self, target: Target | None, workload: Workload | None) -> ConfigSpace | None:
        for task in self._tasks:
            if workload is not None and task.workload[0] == workload[0]:
                found = task.config_space.get(0)
                found.cost = 0.000001 if workload[0] in self._names else 100000
                return found
        return None


def keys_of(target: Target) -> list[str]:
    """The words by which records of a target are found."""
    return list(dict.fromkeys([*target.keys, target.kind.name]))


class ApplyHistoryBest(DispatchContext):
    """The best configurations of records: those of a file, or pairs of inputs and results."""

    def __init__(self, records: Records | None) -> None:
        super().__init__()
        self.best_by_targetkey: dict[tuple[str, Workload | None], Pair] = {}
        self.best_by_model: dict[tuple[str, Workload | None], Pair] = {}
        self._own: dict[tuple[tuple[str, str], Workload | None], ConfigSpace] = {}
        if records is not None:
            self.load(records)

    def load(self, records: Records) -> None:
        """Adds records."""
        for inp, result in _pairs(records):
            if result.error_no != 0:
                continue
            workload = inp.task.workload
            for key in places_of(inp.target):
                best = self.best_by_model if key[0] == "model" else self.best_by_targetkey
                old = best.get((key[1], workload))
                if old is None or np.mean(result.costs) < np.mean(old[1].costs):
                    best[key[1], workload] = inp, result

    def _query_inside(self, target: Target | None, workload: Workload | None) -> ConfigSpace | None:
        if target is None:
            raise RuntimeError(
                "Need a target context to find the history best. Hint: If your target is llvm, use `with tvm.target.Target('llvm'):` above the dispatcher call."
            )
        for key in places_of(target):
            if (key, workload) in self._own:
                return self._own[key, workload]
            best = self.best_by_model if key[0] == "model" else self.best_by_targetkey
            if (key[1], workload) in best:
                inp, result = best[key[1], workload]
                inp.config.cost = float(np.mean(result.costs))
                return inp.config
        return None

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        for key in places_of(target):
            self._own[key, workload] = cfg
        cfg.cost = 0


def places_of(target: Target) -> list[tuple[str, str]]:
    """Where records of a target are kept: by its model, then by its keys."""
    model = str(target.attrs.get("model", "unknown"))
    return [*([("model", model)] if model != "unknown" else []), *(("key", key) for key in keys_of(target))]


def _pairs(records: Records) -> Iterator[Pair]:
    from . import record

    if isinstance(records, (str, PathLike)):
        yield from record.load_from_file(records)
    elif hasattr(records, "readline"):
        yield from record.load_from_buffer(cast("TextIO", records))
    else:
        for one in records:
            if isinstance(one, tuple) and len(one) == 2 and (not isinstance(one[0], tuple) or hasattr(one[0], "task")):
                yield cast("Pair", one)
            elif hasattr(one, "task"):
                raise TypeError("records are pairs of an input and a result")
            else:
                yield from _pairs(cast("Records", one))


class ApplyGraphBest(DispatchContext):
    """The n-th of some records for the n-th question."""

    def __init__(self, records: Records) -> None:
        super().__init__()
        self._records = list(_pairs(records))
        self._asked = 0
        self._known: dict[tuple[str, Workload | None], ConfigSpace] = {}

    def _query_inside(self, target: Target | None, workload: Workload | None) -> ConfigSpace | None:
        if self._asked < len(self._records):
            config = self._records[self._asked][0].config
            self._asked += 1
            self._known[str(target), workload] = config
            return config
        found = self._known.get((str(target), workload))
        if found is None:
            _log.warning(
                "Config for target=%s, workload=%s is missing in ApplyGraphBest context. A fallback configuration is used, which may bring great performance regression.",
                target,
                workload,
            )
            return FallbackConfigEntity()
        return found

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        self._known[str(target), workload] = cfg


class FallbackContext(DispatchContext):
    """What there is without records: the template's own choice, with one warning for each workload."""

    silent = False

    def __init__(self) -> None:
        super().__init__()
        self._told: set[tuple[str, Workload | None]] = set()
        self._known: dict[tuple[str, Workload | None], ConfigSpace] = {}

    def _query_inside(self, target: Target | None, workload: Workload | None) -> ConfigSpace | None:
        key = str(target), workload
        if key in self._known:
            return self._known[key]
        if key not in self._told and not FallbackContext.silent:
            self._told.add(key)
            _log.warning(
                "Cannot find config for target=%s, workload=%s. A fallback configuration is used, which may bring great performance regression.",
                target,
                workload,
            )
        return FallbackConfigEntity()

    def update(self, target: Target, workload: Workload, cfg: ConfigSpace) -> None:
        self._known[str(target), workload] = cfg

    def clear_cache(self, target: object, workload: Workload) -> None:
        """Has a workload be told of again."""
        self._told.discard((str(target), workload))
        self._known.pop((str(target), workload), None)


DispatchContext.current = FallbackContext()


def clear_fallback_cache(target: object, workload: Workload) -> None:
    """Forgets what the outermost context knows of a workload."""
    context: Nested | None = DispatchContext.current
    while context is not None and context.outer is not None:
        context = context.outer
    if isinstance(context, FallbackContext):
        context.clear_cache(target, workload)

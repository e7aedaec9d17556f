"""`tvm.driver.tvmc.tune`, and `compile` with records: the kernels of a model for the host, searched by autotvm or auto_scheduler."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.pass_manager.context import PassContext
from compassc.relay import tvmc
from compassc.relay.module import IRModule
from compassc.relay.tuned import AUTO_SCHEDULER
from compassc.relay.tvmc import TVMCException, TVMCModel, TVMCPackage, target_of
from compassc.targets import Target

from .auto_scheduler import dispatcher, policy
from .auto_scheduler import record as states
from .auto_scheduler.relay_integration import extract_tasks
from .autotvm import callback, measure, record, tuner
from .autotvm.contexts import ApplyHistoryBest
from .autotvm.relay_tasks import extract_from_program

Pair = TypeVar("Pair")
TUNERS: Mapping[str, tuple[type[tuner.Tuner], Mapping[str, object]]] = {
    "ga": (tuner.GATuner, {"pop_size": 50}),
    "gridsearch": (tuner.GridSearchTuner, {}),
    "random": (tuner.RandomTuner, {}),
    **{
        f"xgb{'_' * bool(loss)}{loss}{'_' * bool(feature)}{feature}": (
            tuner.XGBTuner,
            {"loss_type": loss.replace("_", "-") or "reg", "feature_type": feature or "itervar"},
        )
        for loss in ("", "rank", "rank_binary")
        for feature in ("", "knob", "itervar", "curve")
    },
}
"""Tuners by the names that `tvmc` has for them."""


def compile(
    tvmc_model: TVMCModel,
    target: str,
    *arguments: Any,
    tuning_records: str | Path | None = None,
    pass_context_configs: Mapping[str, object] | None = None,
    **options: Any,
) -> TVMCPackage:
    """`compassc.relay.tvmc.compile`, whose kernels take the best of a file of records, of either search."""
    configs: Mapping[str, object] = pass_context_configs or {}
    records: AbstractContextManager[object] = nullcontext()
    if tuning_records is not None and _is_scheduled(tuning_records):
        records, configs = dispatcher.ApplyHistoryBest(_scheduled(tuning_records)), {**configs, AUTO_SCHEDULER: True}
    elif tuning_records is not None:
        records = ApplyHistoryBest(_measured(tuning_records))
    with records:
        return tvmc.compile(tvmc_model, target, *arguments, **{"pass_context_configs": configs, **options})


def tune(
    tvmc_model: TVMCModel,
    target: str,
    tuning_records: str | Path | None = None,
    prior_records: str | Path | None = None,
    enable_autoscheduler: bool = False,
    trials: int = 1000,
    tuner: str = "xgb",
    min_repeat_ms: float | None = None,
    early_stopping: int | None = None,
    timeout: float = 10,
    repeat: int = 1,
    number: int = 10,
    include_simple_tasks: bool = False,
    log_estimated_latency: bool = False,
    tasks_filter: str = "all",
    desired_layout: Sequence[str] = (),
    desired_layout_ops: Sequence[str] = tvmc.LAYOUT_OPS,
    mixed_precision: bool = False,
    hostname: str | None = None,
) -> str:
    """Search the tasks of a model, and add all measurements to the file `tuning_records`; gives its path.

    `prior_records`: measurements to begin with. `tasks_filter`: `all`, or numbers and ranges of tasks, `0,3-5`; `list` prints them, and
    nothing is searched. `desired_layout`, `mixed_precision`: as they are for `compile`. The search is that of autotvm, whose trials are
    shared out evenly; with `enable_autoscheduler` that of auto_scheduler, `include_simple_tasks` also of kernels without sums,
    `log_estimated_latency` with the file total_latency.tsv in the current folder. TVMCException for tuners and tasks that there are not,
    and for what is not searched: other machines.
    """
    if hostname is not None:
        raise TVMCException("kernels of models are searched on this machine alone", "leave the option out")
    if tuner not in TUNERS:
        raise TVMCException(f"there is no tuner {tuner}", help_for(tuner, list(TUNERS), "tuners"))
    module, chosen_target = tvmc_model.mod, target_of(target)
    if desired_layout or mixed_precision:
        with PassContext(opt_level=3):
            module = tvmc.prepared(module, desired_layout, desired_layout_ops, mixed_precision)
    plan = {"timeout": timeout, "number": number, "repeat": repeat, "min_repeat_ms": min_repeat_ms or 0}
    given = _Given(prior_records, trials, early_stopping, plan, tuner, include_simple_tasks, log_estimated_latency)
    try:
        found, search = (_loops if enable_autoscheduler else _knobs)(module, tvmc_model.params, chosen_target, given)
    except UsageError as error:
        raise TVMCException(error.message, error.help) from None
    path = str(tuning_records or tvmc_model.default_tuning_records_path())
    if tasks_filter == "list":
        print("\n".join(["Available Tasks for tuning:", *(f"  {i}. {text}" for i, text in enumerate(found))]))
        return path
    if not found:
        raise TVMCException("no kernel of the model leaves anything to be chosen", "compile it as it is")
    search(chosen_tasks(tasks_filter, len(found)), path)
    return path


@dataclass(frozen=True)
class _Given:
    """What a search is told: measurements to begin with, how many to make, how long, and what is its own."""

    prior: str | Path | None
    trials: int
    early_stopping: int | None
    plan: Mapping[str, Any]
    tuner: str
    simple: bool
    told: bool


Search = tuple[Sequence[str], Callable[[Sequence[int], str], None]]
"""The tasks of a model in words, and what searches some of them, by number, and adds measurements to a file."""


def _knobs(module: IRModule, params: Mapping[str, object], target: Target, given: _Given) -> Search:
    """The search of autotvm."""
    tasks = extract_from_program(module, params, target)

    def search(numbers: Sequence[int], path: str) -> None:
        prior = _measured(given.prior) if given.prior is not None else []
        option = measure.measure_option(
            measure.LocalBuilder(given.plan["timeout"]), measure.LocalRunner(cooldown_interval=0, **given.plan)
        )
        kind, settings = TUNERS[given.tuner]
        for task in (tasks[i] for i in numbers):
            made = kind(task, **settings)
            made.load_history([pair for pair in prior if pair[0].task.workload == task.workload])
            most = min(max(1, given.trials // len(numbers)), len(task.config_space))
            made.tune(most, option, given.early_stopping, [callback.log_to_file(path)])

    return [str(t) for t in tasks], search


def _loops(module: IRModule, params: Mapping[str, object], target: Target, given: _Given) -> Search:
    """The search of auto_scheduler."""
    tasks, weights = extract_tasks(module, params, target, include_simple_tasks=given.simple)

    def search(numbers: Sequence[int], path: str) -> None:
        if given.trials < len(numbers):
            raise TVMCException(f"{given.trials} trials are too few for {len(numbers)} tasks", "give one for each")
        if given.prior is not None:
            _scheduled(given.prior)  # what cannot be read is refused before anything is searched
        scheduler = policy.TaskScheduler(
            [tasks[i] for i in numbers], [weights[i] for i in numbers],
            load_log_file=None if given.prior is None else str(given.prior),
            callbacks=[policy.PrintTableInfo(), *([policy.LogEstimatedLatency("total_latency.tsv")] if given.told else [])],
        )  # fmt: skip
        scheduler.tune(
            policy.TuningOptions(
                given.trials, given.early_stopping, builder=states.LocalBuilder(given.plan["timeout"]),
                runner=states.LocalRunner(**given.plan), measure_callbacks=[states.RecordToFile(path)],
            )
        )  # fmt: skip

    return [f"{t.desc} {t.workload_key}" for t in tasks], search


def _is_scheduled(path: str | Path) -> bool:
    """Whether a file holds records of auto_scheduler. TVMCException for files that cannot be read."""
    try:
        lines = [line for line in files.read_text(Path(path)).splitlines() if line.strip() and not line.startswith("#")]
        first = json.loads(lines[0]) if lines else None
    except OSError as error:
        raise TVMCException(f"cannot read the records '{path}': {error.strerror}") from None
    except ValueError:
        return False
    return isinstance(first, dict) and "i" in first


def _scheduled(path: str | Path) -> list[tuple[states.MeasureInput, states.MeasureResult]]:
    """The measurements of auto_scheduler in a file. TVMCException for files that are none of records."""
    return _read(path, states.load_records)


def _measured(path: str | Path) -> list[tuple[measure.MeasureInput, measure.MeasureResult]]:
    """The measurements of autotvm in a file. TVMCException for files that are none of records."""
    return _read(path, record.load_from_file)


def _read(path: str | Path, load: Callable[[str], Iterable[Pair]]) -> list[Pair]:
    try:
        return list(load(str(path)))
    except OSError as error:
        raise TVMCException(f"cannot read the records '{path}': {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise TVMCException(
            f"'{path}' holds no records: {error}", "compassc tvmc tune --target llvm writes some"
        ) from None


def chosen_tasks(text: str, count: int) -> Sequence[int]:
    """The numbers of tasks that a text names. TVMCException for others than there are."""
    if text == "all":
        return range(count)
    parts = [re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip()) for part in text.split(",")]
    numbers = [n for m in parts if m is not None for n in range(int(m[1]), int(m[2] or m[1]) + 1)]
    if None in parts or not numbers or max(numbers) >= count:
        raise TVMCException(
            f"the tasks {text!r} are not understood, or not there: the model has {count}", "give all, or as 0,2-3"
        )
    return sorted(set(numbers))

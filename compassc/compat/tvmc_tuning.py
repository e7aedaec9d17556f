"""`tvm.driver.tvmc.tune`, and `compile` with records: the kernels of a model for the host, searched by autotvm."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.relay import tvmc
from compassc.relay.tvmc import TVMCException, TVMCModel, TVMCPackage, target_of

from .autotvm import callback, measure, record, tuner
from .autotvm.contexts import ApplyHistoryBest
from .autotvm.relay_tasks import extract_from_program

TUNERS: Mapping[str, tuple[type[tuner.Tuner], Mapping[str, Any]]] = {
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
    tvmc_model: TVMCModel, target: str, *arguments: Any, tuning_records: str | Path | None = None, **options: Any
) -> TVMCPackage:
    """`compassc.relay.tvmc.compile`, whose kernels take the best of a file of records."""
    with ApplyHistoryBest(_measured(tuning_records)) if tuning_records is not None else nullcontext():
        return tvmc.compile(tvmc_model, target, *arguments, **options)


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
    tasks_filter: str = "all",
    hostname: str | None = None,
) -> str:
    """Search the tasks of a model, `trials` shared out evenly, and add all measurements to the file `tuning_records`; gives its path.

    `prior_records`: measurements to begin with. `tasks_filter`: `all`, or numbers and ranges of tasks, `0,3-5`.
    TVMCException for tuners and tasks that there are not, and for what is not searched: other machines, other searches.
    """
    if enable_autoscheduler or hostname is not None:
        raise TVMCException("kernels of models are searched by autotvm on this machine alone", "leave the option out")
    if tuner not in TUNERS:
        raise TVMCException(f"there is no tuner {tuner}", help_for(tuner, list(TUNERS), "tuners"))
    try:
        found = extract_from_program(tvmc_model.mod, tvmc_model.params, target_of(target))
    except UsageError as error:
        raise TVMCException(error.message, error.help) from None
    if not found:
        raise TVMCException("no kernel of the model leaves anything to be chosen", "compile it as it is")
    chosen = [found[i] for i in chosen_tasks(tasks_filter, len(found))]
    path = str(tuning_records or "tuning_records.json")
    prior = _measured(prior_records) if prior_records is not None else []
    option = measure.measure_option(
        measure.LocalBuilder(timeout),
        measure.LocalRunner(timeout, number, repeat, min_repeat_ms or 0, cooldown_interval=0),
    )
    for task in chosen:
        kind, settings = TUNERS[tuner]
        made = kind(task, **settings)
        made.load_history([pair for pair in prior if pair[0].task.workload == task.workload])
        most = min(max(1, trials // len(chosen)), len(task.config_space))
        made.tune(most, option, early_stopping, [callback.log_to_file(path)])
    return path


def _measured(path: str | Path) -> list[tuple[measure.MeasureInput, measure.MeasureResult]]:
    """The measurements in a file. TVMCException for files that are none of records."""
    try:
        return list(record.load_from_file(path))
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

"""Evaluating a model on a data set: here, or on several processes and machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from compass_core.errors import CompassError, UsageError
from compassc.evaluation.data import DataSet, load
from compassc.evaluation.metrics import Metric, TopK
from compassc.evaluation.result import Evaluation
from compassc.evaluation.running import Asked, Part, run_part
from compassc.evaluation.subjects import Subjects, framework_of
from compassc.models.ends import with_real_inputs
from compassc.models.model import Model
from compassc.quantizer.data import Pictures
from compassc.quantizer.execute import at_once
from compassc.quantizer.state_sequences import followed

AT_ONCE, TOGETHER = 8, 64
"""Samples of a part, after which progress is told: at least, and at most where the references take so many together."""


_NO_ONNX = "the framework's own results are not among these: the model's ONNX file is not known"
_NOT_ASKED = "the framework was not asked"


def evaluate(
    model: Model,
    data: Any,
    *,
    labels: Any = None,
    pictures: Pictures | None = None,
    metric: Metric | None = None,
    limit: int | None = None,
    reference: bool = True,
    reference_samples: int | None = None,
    detail: bool = False,
    profile: bool = True,
    jobs: int = 1,
    scheduler: str | None = None,
    done: Callable[[int, int], object] = lambda count, all: None,
) -> Evaluation:
    """Runs a data set (`data.load` says which there are) through the model as its framework computes it, the float graph,
    the quantised graph, and the simulator, and measures how good and how near to each other they are.

    `labels`: instead of those of the data. `pictures`: how images become arrays. `metric`: what is measured with them, by default top-1 and top-5. `limit`: of
    samples. `reference`: the framework is asked, where the model came from ONNX. `reference_samples`: only so many samples, the first ones,
    are computed by the references (float graph, quantised graph, layers). `detail`: histograms of the tensors.
    A model with a session (`rpc_sess`) runs on its server, where only its outputs are seen. `profile`: a run is profiled, on this
    machine's simulator. `jobs`: processes; `scheduler`: the address of a Dask scheduler. `done(count, all)` is
    called as samples are done. CompassError for data that do not fit, and as the parts raise it.
    """
    given = data if isinstance(data, DataSet) else load(data, with_real_inputs(model.graph), labels, pictures, limit)
    given = replace(given, samples=followed(model.floats or model.graph, given.samples))
    used = metric or TopK()
    framework = framework_of(model) if reference else None
    asked = used if given.labels is not None else None
    whole = Part()
    for part in _parts(
        model, framework, given, Asked(asked, detail, reference_samples, given.source, given.rows), jobs, scheduler
    ):
        whole.merge(part)
        done(whole.count, len(given))
    metrics = {name: used.total([kept[i] for i in sorted(kept)]) for name, kept in whole.kept.items()}
    profiled = model.profile(*(given.samples[0][t.name] for t in model.inputs)) if profile else None
    model.reset()
    missing = "" if framework is not None else _NO_ONNX if reference else _NOT_ASKED
    return Evaluation(model, whole, metrics, profiled, missing, given.rows)


def _parts(
    model: Model, framework: bytes | None, given: DataSet, asked: Asked, jobs: int, scheduler: str | None
) -> Iterable[Part]:
    """The parts of the result, in any order."""
    size = max(AT_ONCE, min(TOGETHER, at_once(model.graph), len(given) // (4 * jobs)))
    groups = [range(i, min(i + size, len(given))) for i in range(0, len(given), size)]
    if (jobs > 1 or scheduler is not None) and model.rpc_sess is not None:
        raise UsageError(
            "a model runs on one server, or on several processes", code="remote-run", help="leave --jobs out"
        )
    if jobs > 1 or scheduler is not None:
        from compassc.evaluation.cluster import run_parts

        yield from run_parts(model, framework, given, groups, asked, jobs, scheduler)
        return
    subjects = Subjects(model, framework)
    for numbers in groups:
        yield run_part(subjects, given.part(numbers), asked)


def check(found: Evaluation) -> None:
    """CompassError when the simulator gives something else than the exact references."""
    if found.agreement.first is not None:
        sample, name = found.agreement.first
        raise CompassError(
            f"the simulator's '{name}' is not what the reference gives for sample {sample}",
            code="evaluation-differs",
            help="this is a defect of the toolchain: please report it with the model",
        )

"""Schedules of operators from records: knobs of default schedules, and traces of sketches."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.te.schedule import Schedule
from compassc.te.tensor import Tensor
from compassc.tuning.history import history
from compassc.tuning.records import Record
from compassc.tuning.sketches.space import SketchTask
from compassc.tuning.templates import KnobsTask


def best_schedule(outputs: Sequence[Tensor], target: str) -> Schedule | None:
    """The schedule that is best on record for these operators, of these sizes; None where there is none that can still be
    made. Sizes that are open are on no record."""
    known = history()
    if not known:
        return None
    try:
        task = KnobsTask("operators", outputs, target)
        workload = task.workload
    except (ExpressionError, ExpressionTypeError):
        return None
    return known.taken(workload, lambda record: _made(record, task))


def _made(record: Record, task: object) -> Schedule | None:
    """The schedule of a record's candidate, by the kind of task that it is of."""
    assert isinstance(task, KnobsTask)
    if record.candidate in task.space:
        return task.made(record.candidate)[0]
    sketched = SketchTask(task.name, task.tensors, task.target)
    return sketched.made(record.candidate)[0] if record.candidate in sketched.space else None

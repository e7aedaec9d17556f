"""Default schedules of operators are those that are best on record."""

from __future__ import annotations

from pathlib import Path
from random import Random

from compassc import te, topi
from compassc.ir import print_module
from compassc.te.tensor import Tensor
from compassc.tuning import records
from compassc.tuning.history import apply_history_best
from compassc.tuning.records import Record
from compassc.tuning.sketches.space import SketchTask
from compassc.tuning.templates import KnobsTask

TARGET = "X2_1204"


def doubled(size: int = 4096) -> tuple[Tensor, Tensor]:
    x = te.placeholder((size,), "int32", name="x")
    return x, te.compute((size,), lambda i: x[i] * 2, name="y")


def lowered(x: Tensor, y: Tensor, target: str = TARGET, **knobs: int) -> str:
    return print_module(te.lower(topi.schedule(y, target, **knobs), [x, y], target=target))


def test_knobs_and_traces_on_record_are_taken(tmp_path: Path) -> None:
    """For the sizes and the target that they are of; records of another space are passed over."""
    path = tmp_path / "r.jsonl"
    x, y = doubled()
    default = lowered(x, y)
    chunked = lowered(x, y, chunk=256)
    assert chunked != default
    workload = KnobsTask("doubled", y, TARGET).workload
    knobs = {"lanes": 0, "chunk": 256, "rows": 0, "columns": 0, "cache": True}
    nonsense = Record(workload, {"no": "such"}, "cycles", 1.0)
    records.write(path, [nonsense, Record(workload, knobs, "cycles", 5.0)])
    with apply_history_best(path):
        assert lowered(*doubled()) == chunked
        assert lowered(*doubled(), chunk=0) == default, "knobs that are given count"
        assert lowered(*doubled(2048)) == without_records(2048)
    assert lowered(*doubled()) == default
    sketch = SketchTask("doubled", [x, y], TARGET)
    assert sketch.workload.key == workload.key
    drawn = sketch.space.sample(Random(3))
    records.append(path, [Record(workload, drawn, "cycles", 2.0)])
    with apply_history_best(path):
        made, tensors = sketch.made(drawn)
        assert lowered(*doubled()) == print_module(te.lower(made, tensors, target=TARGET))


def without_records(size: int) -> str:
    x, y = doubled(size)
    knobs = topi.schedules.Knobs()
    return print_module(te.lower(topi.schedule(y, TARGET, knobs), [x, y], target=TARGET))

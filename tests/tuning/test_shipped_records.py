"""The database that is part of the package."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from compassc import topi
from compassc.topi.schedules import Knobs
from compassc.tuning import may_be_on_record, records, shipping
from compassc.tuning.history import history
from compassc.tuning.layer_task import LayerTask, best_choices
from compassc.tuning.sketches import SketchTask
from compassc.tuning.task import toolchain_version

from .invented import Valley

FILES = sorted(shipping.FOLDER.glob("*" + records.SUFFIX))


def test_records_are_in_order_and_of_this_version() -> None:
    """Where this fails the tables of costs have changed: `python -m compassc.tuning.shipping` makes the files anew."""
    assert {path.stem for path in FILES} == set(shipping.KINDS)
    for path in FILES:
        found = records.read(path)
        assert found.records and not found.problems
        assert {r.workload.version for r in found.records} == {toolchain_version()}
        assert len(records.pruned(found.records)) == len(found.records)


def test_names_on_record_are_found_without_what_reads_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "compassc.tuning.history")
    names = {r.workload.name for path in FILES for r in records.read(path).records}
    assert all(map(may_be_on_record, names)) and may_be_on_record() and not may_be_on_record("NoSuchLayer")


@pytest.mark.parametrize("kind", sorted(shipping.KINDS))
def test_builds_take_what_is_on_record(kind: str) -> None:
    """And every record is of a task that is made anew with the others. Where this fails kernels or schedules have changed:
    `python -m compassc.tuning.shipping --again` measures the records anew."""
    tasks = {task.workload.key: task for target in shipping.TARGETS for task in shipping.KINDS[kind](target)}
    found = records.read(shipping.FOLDER / f"{kind}{records.SUFFIX}").records
    assert found
    for record in found:
        task = tasks[record.workload.key]
        best = history().best(task.workload, task.space)
        assert best is not None and best.candidate == record.candidate, task.name
        assert record.candidate != task.default, "the default needs no record"


def test_layers_and_schedules_come_from_records() -> None:
    conv = next(r for r in records.read(shipping.FOLDER / "layers.jsonl").records)
    tasks = [t for t in shipping.layer_tasks(conv.workload.target) if isinstance(t, LayerTask)]
    layers = next(t.layers for t in tasks if t.workload.key == conv.workload.key)
    assert best_choices(layers, conv.workload.target) == conv.candidate
    operator = next(r for r in records.read(shipping.FOLDER / "operators.jsonl").records)
    task = next(t for t in shipping.operator_tasks(operator.workload.target) if t.workload.key == operator.workload.key)
    assert isinstance(task, SketchTask)
    made = topi.schedule(task.outputs, operator.workload.target)
    assert json.loads(made.trace.to_json())["steps"] == operator.candidate["trace"]
    with_knobs = topi.schedule(task.outputs, operator.workload.target, Knobs())
    assert made.trace.to_json() != with_knobs.trace.to_json()


def test_only_what_is_better_than_the_default_is_kept(tmp_path: Path) -> None:
    task, path = Valley(), tmp_path / "r.jsonl"

    def record(tile: int, cost: float) -> records.Record:
        candidate = {**task.default, "tile": tile}
        return records.Record(task.workload, candidate, "cycles", cost)

    shipping.keep(path, task, [record(1, 100.0), record(8, 90.0), record(4, 95.0)])
    assert [r.candidate["tile"] for r in records.read(path).records] == [8]
    shipping.keep(path, task, [record(1, 80.0), record(8, 90.0)])
    assert not records.read(path).records


def test_what_left_the_space_is_not_kept(tmp_path: Path) -> None:
    task, path = Valley(), tmp_path / "r.jsonl"
    inside, outside = ({**task.default, "tile": tile} for tile in (8, 12345))
    assert outside not in task.space
    best = [records.Record(task.workload, c, "cycles", cost) for c, cost in ((inside, 90.0), (outside, 10.0))]
    usual = records.Record(task.workload, task.default, "cycles", 100.0)
    assert shipping.keep(path, task, [usual, *best]).endswith("best 90.0: kept, 1 outside of the space")
    assert [r.candidate for r in records.read(path).records] == [inside]
    records.write(path, best[1:])
    assert shipping.keep(path, task, []) == "nothing on record, 1 outside of the space"
    assert not records.read(path).records

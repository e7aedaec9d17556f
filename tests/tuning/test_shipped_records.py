"""The database that is part of the package."""

from __future__ import annotations

import pytest

from compassc.tuning import records, shipping
from compassc.tuning.history import history
from compassc.tuning.layer_task import LayerTask, best_choices, workload_of
from compassc.tuning.task import toolchain_version

FILES = sorted(shipping.FOLDER.glob("*" + records.SUFFIX))


def test_records_are_in_order_and_of_this_version() -> None:
    """Where this fails the tables of costs have changed: `python -m compassc.tuning.shipping` makes the files anew."""
    assert {path.stem for path in FILES} == set(shipping.KINDS)
    for path in FILES:
        found = records.read(path)
        assert found.records and not found.problems
        assert {r.workload.version for r in found.records} == {toolchain_version()}
        assert len(records.pruned(found.records)) == len(found.records)


def test_layers_of_known_networks_are_on_record() -> None:
    tasks = [task for task in shipping.layer_tasks("X2_1204") if isinstance(task, LayerTask)]
    for task in tasks:
        assert history().best(workload_of(task.layers, "X2_1204"), task.space) is not None, task.name
    assert best_choices(tasks[-1].layers, "X2_1204") is not None


@pytest.mark.parametrize("number", [0, 1])
def test_products_are_on_record(number: int) -> None:
    task = list(shipping.operator_tasks("X2_1204"))[number]
    found = history().best(task.workload, task.space)
    assert found is not None and found.cost

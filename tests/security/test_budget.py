"""What a foreign file asks for is added up, and refused before it is spent."""

from __future__ import annotations

import pytest

from compass_core.errors import CompassError, UsageError
from compass_core.reading.budget import Budget
from compass_core.reading.limits import Limit

NODES = Limit(100, "nodes", "a model", elastic=True, per_byte=2)


def test_a_budget_adds_up_and_its_refusal_says_what_asked_for_how_much_and_how_the_limit_is_raised():
    budget = Budget("m.onnx", lambda: 25)
    budget.take(NODES, 100)
    budget.take(NODES, 50)
    with pytest.raises(
        CompassError, match=r"^m\.onnx: the node 'x': 151 nodes, but a model may have 150 nodes"
    ) as caught:
        budget.take(NODES, 1, "the node 'x'")
    assert caught.value.code == "limit-exceeded" and "COMPASS_BUDGET=2" in caught.value.help


def test_the_switch_multiplies_what_is_elastic_and_nothing_else(monkeypatch):
    monkeypatch.setenv("COMPASS_BUDGET", "3")
    budget = Budget("m.onnx")
    budget.take(NODES, 300)
    with pytest.raises(CompassError, match="300 nodes at most"):
        budget.take(NODES, 1)
    with pytest.raises(CompassError, match="100 nodes at most"):
        NODES._replace(elastic=False).check(101, "m.onnx")
    assert NODES.row == "100 nodes, and 2 more for each byte of the file (`COMPASS_BUDGET`)"
    monkeypatch.setenv("COMPASS_BUDGET", "0")
    with pytest.raises(UsageError, match="whole number from 1"):
        NODES.check(101, "m.onnx")

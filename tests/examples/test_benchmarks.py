"""Benchmarks are complete without being run: each declares goals, and the C programs compile."""

from __future__ import annotations

import pytest

from benchmarks import native
from benchmarks.core import Goal, benchmark_names, load


@pytest.mark.parametrize("name", benchmark_names())
def test_goals_are_declared(name: str) -> None:
    benchmark = load(name)
    assert benchmark.goals and callable(benchmark.measure)
    assert all(goal.what and goal.unit for goal in benchmark.goals.values())


@pytest.mark.parametrize("program", sorted(p.stem for p in native.HERE.glob("*.c")))
def test_c_programs_compile(program: str) -> None:
    assert getattr(native.load(program), program)


def test_verdicts() -> None:
    assert Goal("", "s", 1).met(1) and not Goal("", "s", 1).met(1.1)
    assert Goal("", "x", 0.8, at_most=False).met(0.8) and not Goal("", "x", 0.8, at_most=False).met(0.7)
    assert Goal("", "s").met(5) is None

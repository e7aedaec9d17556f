"""Benchmarks are complete without being run: each declares goals, and each loop has its three forms."""

from __future__ import annotations

import pytest

from benchmarks import native, opencl
from benchmarks.core import ROOT, Goal, benchmark_names, load
from benchmarks.loops import EXAMPLES, GROWING, Loop
from benchmarks.suite.tiles import PAIRS


@pytest.mark.parametrize("name", benchmark_names())
def test_goals_are_declared(name: str) -> None:
    benchmark = load(name)
    assert benchmark.goals and callable(benchmark.measure)
    assert all(goal.what and goal.unit for goal in benchmark.goals.values())


@pytest.mark.parametrize("loop", [*EXAMPLES, *GROWING], ids=lambda loop: loop.name)
def test_loops_have_three_forms(loop: Loop) -> None:
    assert loop.kernel().__name__ == loop.name
    assert native.Function(loop.name, ())  # compiles
    assert f"__kernel void {loop.name}(" in (opencl.HERE / f"{loop.name}.cl").read_text(encoding="utf-8")


def test_every_example_is_compared() -> None:
    kernels = {p.parent.name for p in (ROOT / "examples").glob("*/kernel.py")}
    assert kernels == {loop.name for loop in EXAMPLES} | {name for name, _ in PAIRS}


def test_verdicts() -> None:
    assert Goal("", "s", 1).met(1) and not Goal("", "s", 1).met(1.1)
    assert Goal("", "x", 0.8, at_most=False).met(0.8) and not Goal("", "x", 0.8, at_most=False).met(0.7)
    assert Goal("", "s").met(5) is None and Goal("", "x", 1).met(None) is None

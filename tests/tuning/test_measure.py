"""What measuring candidates gives: the cycles of the profiler, and for bad ones what is the matter with them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from compass_runtime.profile.run import profiled_call
from compassc.dsl import BuildManager
from compassc.tuning.measure import ERRORS, MeasureOptions, Result, measure

from .kernels_tried import KINDS, Finished, Twice

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from harness import Example

SHORT = MeasureOptions(timeout=2.0)
"""Long enough for those that end, on a busy machine too."""


@pytest.mark.parametrize("name", ["matmul_int8", "silu_lut", "bitonic_sort"])
def test_cycles_are_those_of_the_profile(name: str) -> None:
    """Also when kernels with functions, tables and transfers of the same names are compiled together."""
    example = Example(name)
    case = max(example.cases(1), key=lambda c: sum(np.size(v) for v in c.args.values()))
    names = list(case.args)
    expected = {names.index(n): a for n, a in case.expected.items()}
    got = measure(Finished([example.kernel] * 2, (case.fresh_args(), expected)), [0, 1])
    profile = profiled_call(BuildManager("X2_1204").build(example.kernel).program, case.fresh_args())
    assert [r.cost for r in got] == [profile.cycles] * 2, got
    assert profile.cycles > 0


def test_every_kind_of_failure_is_told_apart() -> None:
    """In one batch, and a bad candidate leaves no trace on those after it."""
    candidates = [["good", 8], *([kind, 8] for kind in KINDS if kind != "good"), ["good", 8], ["good", 16]]
    results = measure(Twice(candidates), candidates, SHORT)
    assert [r.error for r in results] == [KINDS[kind][1] for kind, _ in candidates], results
    assert {r.error for r in results} == {"", *ERRORS}
    assert results[0].cost == results[-2].cost != results[-1].cost
    assert all(bool(r.message) == bool(r.error) == (r.cost is None) for r in results)


def test_a_candidate_that_does_not_compile_is_found_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from compassc.tuning import measure as module

    made = module.artifact

    def spoilt(task: Twice, candidate: list[object]) -> object:
        one = made(task, candidate)
        return one if candidate[1] != 16 else type(one)(one.text.replace("* 2", "* nothing"), one.params, one.names)

    monkeypatch.setattr(module, "artifact", spoilt)
    candidates = [["good", 8], ["good", 16], ["good", 32]]
    results = measure(Twice(candidates), candidates)
    assert [r.error for r in results] == ["", "build", ""]
    assert "nothing" in results[1].message


def test_results_do_not_depend_on_the_batch() -> None:
    candidates = [["good", tile] for tile in (1, 2, 4)]

    def costs(batch: int) -> list[float | None]:
        return [r.cost for r in measure(Twice(candidates), candidates, MeasureOptions(batch=batch))]

    assert costs(3) == costs(1)


def test_seconds() -> None:
    (result,) = measure(Twice([["good", 4]]), [["good", 4]], MeasureOptions(metric="seconds"))
    assert isinstance(result, Result) and result.cost is not None
    assert 0 < result.cost < 1

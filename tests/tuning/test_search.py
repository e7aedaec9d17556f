"""Laws of strategies and of the search loop, with invented costs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from compass_core.errors import CompassError, UsageError
from compassc.tuning import records
from compassc.tuning.history import apply_history_best
from compassc.tuning.measure import Result
from compassc.tuning.search import STRATEGIES, strategy_named
from compassc.tuning.space import key_of
from compassc.tuning.task import Workload
from compassc.tuning.tune import Search, TuneOptions, check, tune

from .invented import Invented, Valley, cost

ALL = 64
strategies = pytest.mark.parametrize("name", sorted(STRATEGIES))


@strategies
def test_every_candidate_is_asked_for_once_and_is_of_the_space(name: str) -> None:
    task = Valley()
    strategy = strategy_named(name, task, 1)
    seen: list[str] = []
    while asked := strategy.ask(5):
        assert len(asked) <= 5
        assert all(c in task.space for c in asked)
        seen += map(key_of, asked)
        strategy.tell([(c, cost(c)) for c in asked])
    assert len(seen) == len(set(seen)) <= ALL
    if name in ("random", "grid"):
        assert len(seen) == ALL


@strategies
def test_what_is_told_is_not_asked_for(name: str) -> None:
    task = Valley()
    strategy = strategy_named(name, task, 3)
    strategy.tell([(task.default, cost(task.default))])
    asked = [key_of(c) for _ in range(8) for c in strategy.ask(8)]
    assert asked and key_of(task.default) not in asked


@strategies
def test_a_seed_gives_the_same_search_on_any_workers(name: str) -> None:
    def trials(seed: int, at_once: int) -> list[str]:
        options = TuneOptions(trials=40, strategy=name, seed=seed)
        return [key_of(r.candidate) for r in tune(Valley(), options, workers=Invented(at_once)).records]

    assert trials(1, 1) == trials(1, 16)
    assert name == "grid" or trials(1, 16) != trials(2, 16)


@strategies
@pytest.mark.parametrize("kept", [0, 1, 13, 30])
def test_a_search_goes_on_where_it_was(name: str, kept: int, tmp_path: Path) -> None:
    """With part of its records it gives the whole search, and measures the rest alone."""
    options, path = TuneOptions(trials=40, strategy=name, seed=5), tmp_path / "r.jsonl"
    whole = tune(Valley(), options, path, Invented())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:kept]) + lines[kept][:20])
    workers = Invented()
    again = tune(Valley(), options, path, workers)
    assert again.records == whole.records
    assert again.known == kept and len(workers.asked) == 40 - kept


def test_the_default_is_the_first_trial() -> None:
    search = tune(Valley(), TuneOptions(trials=3), workers=Invented())
    assert search.records[0].candidate == Valley().default
    assert search.default is not None and search.default.cost == cost(Valley().default).cost


def test_ends() -> None:
    assert tune(Valley(), TuneOptions(trials=9), workers=Invented()).ended == "trials"
    assert tune(Valley(), TuneOptions(trials=1000), workers=Invented()).ended == "exhausted"
    assert tune(Valley(), TuneOptions(seconds=0.0), workers=Invented()).ended == "seconds"
    assert not tune(Valley(), TuneOptions(trials=0), workers=Invented()).records


def test_patience() -> None:
    search = tune(
        replace(Valley(), default={"tile": 16, "unroll": 3, "wide": True}), TuneOptions(patience=5), None, Invented()
    )
    assert search.ended == "patience" and search.stale >= 5


def test_failures_are_kept_and_never_win(tmp_path: Path) -> None:
    seen: list[int] = []
    search = tune(
        Valley(), TuneOptions(trials=ALL), tmp_path / "r.jsonl", Invented(), lambda s: seen.append(len(s.records))
    )
    assert search.errors == {"infeasible": 8}
    assert search.best is not None and search.best.candidate == {"tile": 16, "unroll": 3, "wide": True}
    assert seen == sorted(seen) and seen[-1] == ALL
    assert list(records.read(tmp_path / "r.jsonl").records) == search.records


def test_a_search_without_any_result_says_why() -> None:
    class Hopeless(Invented):
        def measure(self, task, candidates, options):  # type: ignore[no-untyped-def]
            yield [(i, Result(None, "build", "no such thing")) for i in range(len(candidates))]

    search: Search = tune(Valley(), TuneOptions(trials=5), workers=Hopeless())
    with pytest.raises(CompassError, match="none of 5 trials") as caught:
        check(search)
    assert "no such thing" in str(caught.value.notes)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(UsageError, match="rnadom") as caught:
        strategy_named("rnadom", Valley(), 0)
    assert "random" in (caught.value.help or "")


_KILLED = """
import sys, time
from pathlib import Path
from compassc.tuning.tune import TuneOptions, tune
from tests.tuning.invented import Invented, Valley

class Slow(Invented):
    def measure(self, *args):
        for group in super().measure(*args):
            time.sleep(0.02)
            yield group

tune(Valley(), TuneOptions(trials=60, seed=2), Path(sys.argv[1]), Slow(1))
"""


def test_kill_9_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(path)], cwd=Path(__file__).parents[2])
    until = time.monotonic() + 60
    while (not path.exists() or path.read_bytes().count(b"\n") < 5) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = len(records.read(path).records)
    assert 5 <= there < 60
    workers = Invented()
    again = tune(Valley(), TuneOptions(trials=60, seed=2), path, workers)
    assert again.known == there and len(workers.asked) == 60 - there
    assert again.records == tune(Valley(), TuneOptions(trials=60, seed=2), workers=Invented()).records


def of_size(size: int) -> Valley:
    return Valley(workload=Workload("valley", "valley", ((size,),), ("int8",), "X2_1204"))


def test_other_sizes_on_record_come_first_the_nearest_before_others(tmp_path: Path) -> None:
    """And what is best for the same size before them; a search that goes on begins as it did."""
    path, near, far = (
        tmp_path / "r.jsonl",
        {"tile": 16, "unroll": 2, "wide": True},
        {"tile": 8, "unroll": 3, "wide": True},
    )
    for size, candidate in ((1000, far), (9, near)):
        records.append(path, [records.Record.of(of_size(size).workload, candidate, "cycles", cost(candidate))])
    options = TuneOptions(trials=6)
    first = tune(Valley(), options, path, Invented())
    assert [r.candidate for r in first.records[:3]] == [Valley().default, near, far]
    assert tune(Valley(), options, path, Invented()).records == first.records
    assert near not in [
        r.candidate for r in tune(Valley(), TuneOptions(trials=3, warm=False), None, Invented()).records
    ]
    with apply_history_best(path):
        best = min(first.records, key=lambda r: r.cost or 1e9).candidate
        assert [r.candidate for r in tune(Valley(), options, None, Invented()).records][:2] == [Valley().default, best]

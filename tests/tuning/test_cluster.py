"""Laws of the one door to workers: this process, several, and those of a Dask scheduler."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import compassc.cluster
from compass_core.errors import CompassError
from compassc.cluster import Here, Lost, need, open_cluster
from compassc.cluster.processes import processes
from compassc.dsl import load_kernels
from compassc.tuning import records
from compassc.tuning.kernel_task import KernelTask
from compassc.tuning.measure import MeasureOptions
from compassc.tuning.space import key_of
from compassc.tuning.tune import Search, TuneOptions, tune
from compassc.tuning.workers import ClusterWorkers

from .kernels_tried import Twice
from .parts_tried import add, deadly, fails, hears_interrupts, is_told_to_end_while_it_ends

if TYPE_CHECKING:
    from distributed import LocalCluster

WORKERS = 3
HERE = Path(__file__).parent
PATIENCE = 600.0
"""Seconds of a run: no candidate here is without end, and on a loaded machine a good one may take more than usual."""


@pytest.fixture(scope="module")
def dask() -> Iterator[LocalCluster]:
    """A scheduler with worker processes, as on other machines."""
    from distributed import LocalCluster  # a second, for who collects tests

    with LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, memory_limit=0, silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster


def test_a_door_gives_what_this_process_gives(dask: LocalCluster) -> None:
    expected = {n: 100 + n for n in range(20)}
    assert dict(Here().run(add, 100, range(20))) == expected
    with open_cluster(scheduler=dask.scheduler_address) as cluster:
        assert cluster.jobs == WORKERS
        assert dict(cluster.run(add, 100, range(20))) == expected
        assert dict(cluster.run(add, 0, [])) == {}
        with pytest.raises(ValueError, match="part 3"):
            dict(cluster.run(fails, 3, range(20)))
        assert dict(cluster.run(add, 100, range(20))) == expected


def test_a_worker_is_killed_in_the_middle(dask: LocalCluster, tmp_path: Path) -> None:
    """And nothing is missing, nothing is there twice."""
    victim = next(iter(dask.workers.values())).pid
    kernel = vars(load_kernels(HERE / "tuned_kernel.py").module)["twofold"]
    task, options = (
        KernelTask.of_sizes(kernel, "X2_1204", {"n": 64}),
        TuneOptions(seed=1, measure=MeasureOptions(batch=1, timeout=PATIENCE)),
    )
    dead: list[int] = []

    def kill(search: Search) -> None:
        if not dead and len(search.records) >= 3:  # the default, and two of those that all workers are at
            os.kill(victim, signal.SIGKILL)
            dead.append(len(search.records))

    with open_cluster(scheduler=dask.scheduler_address) as cluster:
        search = tune(task, options, tmp_path / "records.jsonl", ClusterWorkers(cluster), kill)
    alone = tune(task, options)
    assert dead[0] < len(alone.records) == task.space.size
    assert [(r.candidate, r.cost, r.error) for r in search.records] == [
        (r.candidate, r.cost, r.error) for r in alone.records
    ]
    kept = records.read(tmp_path / "records.jsonl").records
    assert sorted(key_of(r.candidate) for r in kept) == sorted(key_of(r.candidate) for r in alone.records)


def test_candidates_are_measured_alike_everywhere(dask: LocalCluster) -> None:
    candidates = [["good", 8], ["wrong", 8], ["crash", 8], ["infeasible", 8], ["good", 32]]
    task, options = Twice(candidates), MeasureOptions(batch=2, timeout=PATIENCE)

    def results(workers: ClusterWorkers) -> dict[int, tuple[float | None, str]]:
        found = [one for group in workers.measure(task, candidates, options) for one in group]
        return {i: (r.cost, r.error) for i, r in found}

    with open_cluster(scheduler=dask.scheduler_address) as cluster:
        assert results(ClusterWorkers(cluster, trusted=False)) == results(ClusterWorkers())


def test_a_model_learns_the_same_everywhere(dask: LocalCluster) -> None:
    kernel = vars(load_kernels(HERE / "tuned_kernel.py").module)["twofold"]
    task = KernelTask.of_sizes(kernel, "X2_1204", {"n": 64})
    options = TuneOptions(trials=6, strategy="model")
    with open_cluster(scheduler=dask.scheduler_address) as cluster:
        search = tune(task, options, workers=ClusterWorkers(cluster))
    assert search.predicted == tune(task, options).predicted
    assert search.predicted


def test_another_toolchain_is_refused(dask: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compassc.cluster.dask_workers.identity", lambda: "0.0.9+other")
    with (
        open_cluster(scheduler=dask.scheduler_address) as cluster,
        pytest.raises(CompassError, match="another toolchain") as caught,
    ):
        list(cluster.run(add, 1, [1]))
    assert caught.value.code == "other-version" and compassc.cluster.identity() in caught.value.message


def test_processes_give_what_this_process_gives() -> None:
    """A part that ends its process is found among others, which are done."""
    expected = {n: 100 + n for n in range(20)}
    with open_cluster(2) as cluster:
        assert dict(cluster.run(add, 100, range(20))) == expected
        assert dict(cluster.run(add, 0, [])) == {}
        outcomes = dict(cluster.run(deadly, 2, range(5)))
        assert {n: one for n, one in outcomes.items() if n != 2} == {n: n for n in range(5) if n != 2}
        assert isinstance(outcomes[2], Lost) and "signal 9" in outcomes[2].message
        with pytest.raises(CompassError, match="part 3"):
            need(list(outcomes.items()))
        with pytest.raises(ValueError, match="part 1") as caught:
            dict(cluster.run(fails, 1, range(3)))
        assert "in fails" in str(caught.value.__cause__)
        assert not any(dict(cluster.run(hears_interrupts, None, range(2))).values())
        assert dict(cluster.run(add, 100, range(20))) == expected


def test_parts_are_made_as_they_are_needed() -> None:
    """Few are there at once, and who stops early ends the rest."""
    made: list[int] = []
    with processes(2) as cluster:
        outcomes = cluster.run(add, 1, (made.append(n) or n for n in range(1000)))  # type: ignore[func-returns-value]
        assert next(outcomes)[1] >= 1 and len(made) <= 6
        outcomes.close()  # type: ignore[attr-defined]
        assert dict(cluster.run(add, 1, range(3))) == {0: 1, 1: 2, 2: 3}


def test_processes_end_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    with processes(2) as cluster:
        assert dict(cluster.run(is_told_to_end_while_it_ends, None, range(2))) == {0: 0, 1: 1}
    assert capfd.readouterr().err == ""


_TOLD_AT_ITS_END = """
import atexit, os, signal, socket
from compassc.cluster import worker

replaced = signal.signal
def told_before(number, handler):
    if number == signal.SIGTERM and handler == signal.SIG_IGN:
        signal.signal = replaced
        signal.raise_signal(number)
    return replaced(number, handler)

signal.signal = told_before
atexit.register(signal.raise_signal, signal.SIGTERM)
ours, theirs = socket.socketpair()
ours.close()
worker.main(os.dup(theirs.fileno()))
"""
"""A process whose work is over, and which is told to end just before it would ignore that, and again when it ends."""


def test_a_process_that_is_told_to_end_at_its_end_says_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", _TOLD_AT_ITS_END], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_what_is_defined_here_alone_is_refused() -> None:
    """Names of the program itself, and of functions."""
    with processes(1) as cluster:
        for mine in (lambda shared, part: part, type("Mine", (), {"__module__": "__main__"})):
            with pytest.raises(CompassError, match="other processes cannot do this work") as caught:
                list(cluster.run(add, mine, [1]))
            assert caught.value.code == "work-not-sent"


def test_one_job_is_this_process() -> None:
    with open_cluster() as cluster:
        assert isinstance(cluster, Here)

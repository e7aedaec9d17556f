"""`compassc tune` and `compassc records`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compassc.tuning import records

Command = Callable[..., Any]
FILE = Path(__file__).parent / "tuned_kernel.py"
TUNE = ("tune", f"{FILE}:twofold", "-t", "X2_1204", "--strategy", "grid")


def test_tune_records_and_build(compassc: Command) -> None:
    """A search that is repeated measures nothing again; builds take what it found."""
    first = compassc(*TUNE, "--trials", "4", "-o", "r.jsonl")
    assert first.status == 0, first.err
    assert "twofold n=256" in first.out and "r.jsonl" in first.err
    whole = compassc(*TUNE, "-o", "r.jsonl", "--json", "--html", "page.html")
    assert "TILE" in Path("page.html").read_text()
    (found,) = json.loads(whole.out)
    assert (found["trials"], found["known"], found["ended"]) == (10, 4, "exhausted")
    assert found["best"]["candidate"] == {"TILE": 64, "SPOILT": 0}
    assert found["errors"] == {"wrong": 3, "infeasible": 2, "build": 2}
    listed = compassc("records", "list", "r.jsonl")
    assert "TILE=64 SPOILT=0" in listed.out and "n=256" in listed.out
    built = compassc("build", FILE, "-k", "twofold", "-t", "X2_1204", "--set", "n=256", "--tuned", "r.jsonl")
    assert built.status == 0, built.err
    assert "[64];" in Path("tuned_kernel.compass/twofold.cl").read_text()


def test_a_build_says_what_it_takes_from_records(compassc: Command, caplog: pytest.LogCaptureFixture) -> None:
    """Of seconds, too; a better record that is of no use any more is named; lines that are none are warnings."""
    assert compassc(*TUNE, "--trials", "4", "--metric", "seconds", "-o", "r.jsonl").status == 0
    known = records.read(Path("r.jsonl")).records
    best = min((r for r in known if r.cost is not None), key=lambda r: r.cost or 0)
    gone = replace(best, candidate={"TILE": 12345, "SPOILT": 0}, cost=0.0)
    Path("r.jsonl").write_text("".join(r.line() + "\n" for r in (*known, gone)) + "{broken\n")
    words = ("build", FILE, "-k", "twofold", "-t", "X2_1204", "--set", "n=256", "--tuned", "r.jsonl")
    built = compassc(*words, "-v")
    assert built.status == 0, built.err
    took = f"twofold n=256: as on record, {records.candidate_text(best)} ({best.cost:g} seconds)"
    assert took in built.err
    assert "(TILE=12345 SPOILT=0, 0 seconds) is not used: its space has no such candidate" in caplog.text
    shown = compassc("inspect", "tuned_kernel.compass").out
    assert "from tuning records" in shown and records.candidate_text(best) in shown
    (problem,) = records.read(Path("r.jsonl")).problems
    assert problem.severity == "warning"
    assert "warning: this line is not used" in compassc("records", "list", "r.jsonl").err


def test_merge_prune_and_diff(compassc: Command, tmp_path: Path) -> None:
    from .test_records import record

    records.write(tmp_path / "a.jsonl", [record(1, 10), record(2, 8), record(3, None)])
    records.write(tmp_path / "b.jsonl", [record(2, 8), record(4, 6), record(5, 3, size=9)])
    with open(tmp_path / "b.jsonl", "a") as stream:
        stream.write("{broken\n")
    merged = compassc("records", "merge", "a.jsonl", "b.jsonl", "-o", "c.jsonl")
    assert merged.status == 0 and "b.jsonl:4" in merged.err
    assert [r.candidate["tile"] for r in records.read(tmp_path / "c.jsonl").records] == [1, 2, 3, 4, 5]
    assert compassc("records", "prune", "c.jsonl", "--keep", "2", "-o", "d.jsonl").status == 0
    assert [r.candidate["tile"] for r in records.read(tmp_path / "d.jsonl").records] == [4, 2, 5]
    compassc("records", "prune", "d.jsonl")
    assert [r.cost for r in records.read(tmp_path / "d.jsonl").records] == [6, 3]
    difference = compassc("records", "diff", "a.jsonl", "b.jsonl").out.splitlines()
    assert any(line.split()[-3:-1] == ["6", "0.750"] for line in difference)


EXPRESSION = """
from compassc import te


@te.kernel
def doubled(n=512):
    x = te.placeholder((n,), "int32", name="x")
    return [x, te.compute((n,), lambda i: x[i] * 2, name="y")]
"""


def test_expressions_without_a_schedule_are_searched(compassc: Command, tmp_path: Path) -> None:
    """And their builds take what was found."""
    (tmp_path / "expression.py").write_text(EXPRESSION)
    words = (
        "tune",
        "expression.py",
        "-t",
        "X2_1204",
        "--strategy",
        "random",
        "--trials",
        "6",
        "-o",
        "r.jsonl",
        "--json",
    )
    done = compassc(*words)
    assert done.status == 0, done.err
    (found,) = json.loads(done.out)
    texts = set()
    for options in ((), ("--tuned", "r.jsonl")):
        built = compassc("build", "expression.py", "-t", "X2_1204", *options)
        assert built.status == 0, built.err
        texts.add(Path("expression.compass/doubled.cl").read_text())
    assert found["best"]["candidate"]["trace"] and len(texts) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tune", FILE, "-k", "nothing"), "nothing"),
        (("tune", FILE, "--strategy", "rnadom"), "rnadom"),
        (("tune", FILE, "--set", "m=3"), "'m'"),
        (("tune", FILE, "--scheduler", "tcp://127.0.0.1:1"), "no Dask scheduler"),
        (("tune", "plain.py"), "nothing to be tuned"),
        (("tune", "hopeless.py"), "none of 1 trials"),
        (("records", "merge", "plain.py"), "do not go with it"),
        (("records", "diff", "plain.py"), "do not go with it"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: tuple[str, ...], said: str, compassc: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compassc.cluster.dask_workers.WAIT_SECONDS", 1)
    (tmp_path / "plain.py").write_text("from compassc.dsl import script as S\n")
    (tmp_path / "hopeless.py").write_text(HOPELESS)
    done = compassc(*words)
    assert done.status in (1, 2) and said in done.err, done.err
    assert "internal" not in done.err


HOPELESS = """
from compassc.dsl import script as S


@S.autotune(configs=[{"A": 1}], reference=lambda x: x + 7)
def filled(A):
    @S.prim_func
    def filled(x: S.ptr("i32", "global")):
        x[0] = A

    return filled
"""

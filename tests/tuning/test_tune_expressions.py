"""Expressions and templates on the command line: searched, shown as a page, and built from what was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compassc.tuning import records

Command = Callable[..., Any]
FILE = Path(__file__).parent / "tuned_expressions.py"


def test_expressions_are_tuned_and_builds_take_the_best_schedule(compassc: Command, tmp_path: Path) -> None:
    run = compassc(
        "tune", f"{FILE}:doubled_rows", "-t", "X2_1204", "--trials", "3", "-o", "r.jsonl", "--html", "p.html"
    )
    assert run.status == 0, run.err
    page = (tmp_path / "p.html").read_text()
    assert "<h2>Convergence</h2>" in page and "<h3>Its schedule</h3>" in page
    found = records.read(tmp_path / "r.jsonl").records
    assert len(found) == 3 and all(r.cost for r in found)
    own = next(r for r in found if r.candidate["decisions"]["sketch"] != "default")
    texts = []
    for cost in (1.0, 1e9):  # as if it were the best, and the worst
        records.write(tmp_path / "one.jsonl", [type(own)(own.workload, own.candidate, own.metric, cost)])
        options = ("--tuned", "one.jsonl") if cost == 1.0 else ()
        built = compassc("build", FILE, "-k", "doubled_rows", "-t", "X2_1204", *options)
        assert built.status == 0, built.err
        texts.append((tmp_path / "tuned_expressions.compass" / "doubled_rows.cl").read_text())
    assert texts[0] != texts[1]


def test_templates_take_sizes_from_the_command_line(compassc: Command, tmp_path: Path) -> None:
    run = compassc("tune", f"{FILE}:tiled", "-t", "X2_1204", "--set", "n=128", "--strategy", "grid", "-o", "r.jsonl")
    assert run.status == 0, run.err
    assert [r.candidate for r in records.read(tmp_path / "r.jsonl").records] == [{"tile": "-1,16"}, {"tile": "-1,32"}]
    missing = compassc("tune", f"{FILE}:tiled", "-t", "X2_1204")
    assert missing.status == 2 and "needs values of n" in missing.err


def test_functions_with_a_schedule_of_their_own_are_left_alone(compassc: Command) -> None:
    run = compassc("tune", f"{FILE}:scheduled", "-t", "X2_1204")
    assert run.status == 1 and "nothing to be tuned" in run.err
    other = compassc("tune", f"{FILE}:doubled_rows", "-t", "X2_1204", "--set", "depth=3")
    assert other.status and "no parameter 'depth'" in other.err

"""Results as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .core import Benchmark, Goal, Result

Row = tuple[Benchmark, Goal, Result]
WIDEST = 220
"""Columns of the table where no terminal limits it."""
VERDICTS = {True: "ok", False: "MISSED", None: ""}


def rows(benchmark: Benchmark, results: dict[str, Result]) -> list[Row]:
    """Goals and results of a benchmark, paired."""
    return [(benchmark, goal, results[key]) for key, goal in benchmark.goals.items()]


def limit_text(goal: Goal) -> str:
    return "" if goal.limit is None else f"{'<=' if goal.at_most else '>='} {goal.limit:g}"


def show(found: Iterable[Row]) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width: nothing is to be wrapped
        console = Console(width=WIDEST)
    table = Table(box=None, pad_edge=False)
    for title in ("benchmark", "what", "measured", "unit", "goal", "verdict", "detail"):
        table.add_column(title, justify="right" if title in ("measured", "goal") else "left", overflow="fold")
    for benchmark, goal, result in found:
        verdict = VERDICTS[goal.met(result.value)]
        style = "red" if verdict == "MISSED" else ""
        table.add_row(
            benchmark.name,
            goal.what,
            "-" if result.value is None else f"{result.value:.3g}",
            goal.unit,
            limit_text(goal),
            verdict,
            result.detail,
            style=style,
        )
    console.print(table)


def as_json(found: Iterable[Row]) -> dict[str, Any]:
    """The results with what they were measured on."""
    import numpy

    items = [
        {
            "benchmark": benchmark.name,
            "what": goal.what,
            "value": None if result.value is None else float(f"{result.value:.6g}"),
            "unit": goal.unit,
            "goal": limit_text(goal),
            "met": goal.met(result.value),
            "detail": result.detail,
        }
        for benchmark, goal, result in found
    ]
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    return {"machine": {**machine, "numpy": numpy.__version__}, "results": items}


def save(path: Path, found: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_json(found), indent=1) + "\n", encoding="utf-8")

"""What `compassc tune` does with a model or a graph."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import switches, targets
from compassc.cli.console import Console, artifact, shown
from compassc.cli.option_types import Given
from compassc.cli.quantizing import request_of, telling
from compassc.cli.tables import Table, tables_text
from compassc.cli.tuning import number_text, pages, progress_line, search_options, store_of
from compassc.cluster import open_cluster
from compassc.driver.build import STAGE_FOLDER_SUFFIX
from compassc.models.build import ModelRequest, run_model_build
from compassc.models.model import Model
from compassc.tuning.networks import tune_model
from compassc.tuning.records import candidate_text
from compassc.tuning.workers import ClusterWorkers

if TYPE_CHECKING:
    from compassc.tuning.networks import NetworkResult, NetworkTask
    from compassc.tuning.tune import Search


def run_model(console: Console, source: Path, given: Given) -> None:
    """Tunes the kernels of a model's layers, and prints the cycles of its launches before and after."""

    wanted, store = search_options(given), store_of(given["output"])
    target = targets.load(given["target"] or switches.TARGET.get()).name
    folder = Path(source.stem + STAGE_FOLDER_SUFFIX)
    console.folder = folder
    quantize = request_of(given)

    def build() -> Model:
        nonlocal quantize
        request = ModelRequest(
            source=source,
            target=target,
            shapes=given["shapes"],
            quantize=quantize,
            folder=folder,
            output=folder / "aipu.bin",
        )
        with telling(console):
            made = run_model_build(request, console.stage, console.waiting)
        if quantize is not None:
            quantize = replace(quantize, outcome=made.quantised)
        return Model.of(made)

    start = time.monotonic()
    try:
        with (
            open_cluster(given["jobs"], given["scheduler"]) as cluster,
            progress_line(source.stem, wanted.trials) as show,
        ):

            def listener(tasks: Sequence[NetworkTask], one: NetworkTask, search: Search) -> None:
                console.clear_progress()
                others = [t.search for t in tasks if t is not one and t.search is not None]
                done = sum(len(s.records) for s in others) + len(search.records)
                failed = sum(s.errors.total() for s in (*others, search))
                show(one.task.name, done, done, time.monotonic() - start, search.best, failed)

            workers = ClusterWorkers(cluster, trusted=given["scheduler"] is None)
            result = tune_model(build, target, wanted, store, workers, listener)
    except KeyboardInterrupt:
        console.say(f"what was measured is in {shown(store)}; the same command goes on from there")
        raise
    artifact(_as_json(result) if given["as_json"] else f"{tables_text(tables(result))}\n{result.verdict}\n")
    if store.exists():
        console.made(store)
    pages(console, given["html"], [one.search for one in result.tasks if one.search is not None])


def tables(result: NetworkResult) -> Iterator[Table]:
    """The launches before and after, their sum, and what was searched."""
    rows = [(one.layers, *_change(one.before, one.after)) for one in result.layers]
    yield ("", ("layers", "before", "after", "gain"), [*rows, ("total", *_change(result.before, result.after))])
    if not result.tasks:
        return
    yield (
        "searched",
        ("kernel", "calls", "trials", "default", "best", "failed", "choice"),
        list(map(_row, result.tasks)),
    )


def _change(before: float, after: float) -> tuple[str, str, str]:
    return number_text(before), number_text(after), f"{before / after:.2f}x" if after else "-"


def _row(one: NetworkTask) -> tuple[object, ...]:
    search = one.search
    if search is None:
        return (one.task.name, one.calls, 0, "-", "-", 0, "-")
    costs = [number_text(r.cost) if r is not None else "-" for r in (search.default, search.best)]
    choice = candidate_text(search.best) if search.best is not None else "-"
    return (one.task.name, one.calls, len(search.records), *costs, search.errors.total(), choice)


def _as_json(result: NetworkResult) -> str:
    content = {
        "before": result.before,
        "after": result.after,
        "verdict": result.verdict,
        "layers": [{"layers": one.layers, "before": one.before, "after": one.after} for one in result.layers],
        "tasks": [
            {
                "task": one.task.name,
                "calls": one.calls,
                "trials": one.trials,
                "best": None if one.search is None or one.search.best is None else json.loads(one.search.best.line()),
            }
            for one in result.tasks
        ],
    }
    return json.dumps(content, indent=1) + "\n"

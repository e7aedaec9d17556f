"""What `compassc tune` and `compassc records` do with their options."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from compass_core import files, switches
from compass_core.errors import UsageError
from compassc.cli import options, quantizing
from compassc.cli.console import Console, artifact, shown
from compassc.cli.option_types import Given
from compassc.cli.tables import Table, tables_text
from compassc.cluster import open_cluster
from compassc.graph.files import is_graph
from compassc.importers import is_model
from compassc.tuning.history import database_file
from compassc.tuning.measure import MeasureOptions, Metric
from compassc.tuning.records import candidate_text
from compassc.tuning.report import report_of
from compassc.tuning.report_page import page
from compassc.tuning.search import STRATEGIES
from compassc.tuning.server_pool import Place
from compassc.tuning.tasks import tasks_of_file
from compassc.tuning.tune import TuneOptions, check, tune
from compassc.tuning.workers import ClusterWorkers

if TYPE_CHECKING:
    from compassc.tuning.records import Record
    from compassc.tuning.task import Task
    from compassc.tuning.tune import Listener, Search

_BEST = 5
"""Candidates that are listed."""
_STRATEGIES = ("model", "random")
"""What searches when nothing is said: the first of these that there is."""


def run(console: Console, source: Path, given: Given) -> None:
    """Searches for each task of a file, shows how it goes, and prints tables or JSON."""

    console.inputs.append(source)
    if is_model(source) or is_graph(source):
        from compassc.cli.tuning_models import run_model

        run_model(console, source, given)
        return
    quantizing.refuse(given)
    wanted, store = search_options(given), store_of(given["output"])
    target = given["target"] or switches.TARGET.get()
    tasks = tasks_of_file(source, options.entry(given["entry"]), target, {**given["values"], **given["shapes"]})
    console.detail(f"{len(tasks)} tasks; records go to {shown(store)}")
    searches: list[Search] = []
    try:
        with open_cluster(given["jobs"], given["scheduler"]) as cluster:
            workers = ClusterWorkers(cluster, trusted=given["scheduler"] is None)
            for task in tasks:
                with _progress(task, wanted) as listener:
                    searches.append(tune(task, wanted, store, workers, listener))
    except KeyboardInterrupt:
        console.say(f"what was measured is in {shown(store)}; the same command goes on from there")
        raise
    artifact(_as_json(searches) if given["as_json"] else tables_text(tables(searches)))
    console.made(store)
    pages(console, given["html"], searches)
    for search in searches:
        check(search)


def pages(console: Console, path: Path | None, searches: Sequence[Search]) -> None:
    """A page for each search: the second one's file has a 2 in its name, and so on."""

    for number, search in enumerate(searches if path is not None else (), 1):
        assert path is not None
        own = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        files.write(own, page(report_of(search)))
        console.made(own)


def search_options(given: Given) -> TuneOptions:

    strategy = given["strategy"] or next(name for name in _STRATEGIES if name in STRATEGIES)
    measuring = MeasureOptions(metric=cast(Metric, given["metric"]), timeout=given["timeout"], place=place_of(given))
    budget = given["trials"], given["seconds"], given["patience"]
    return TuneOptions(*budget, strategy, given["seed"], measuring, warm=not given["cold"])


def place_of(given: Given) -> Place | None:
    """The servers that measure, where there are such. UsageError where the options do not go together."""

    tracker, key = given["tracker"], given["key"]
    if tracker is None and not key:
        return None
    if tracker is None or not key:
        raise UsageError(
            "--tracker and --key are given together", code="remote-run", help="--tracker HOST:PORT --key board"
        )
    if given["scheduler"] is not None:
        raise UsageError(
            "--tracker does not go with --scheduler", code="remote-run", help="--jobs N builds on this machine"
        )
    return Place(tracker, key)


def store_of(output: Path | None) -> Path:
    return output or database_file() or Path("records.jsonl")


@contextmanager
def _progress(task: Task, wanted: TuneOptions) -> Iterator[Listener]:
    """A line on the terminal: what was done, the best so far, the rate, failures, the time left."""
    with progress_line(task.name, wanted.trials) as show:

        def listener(search: Search) -> None:
            done, best = len(search.records), search.best
            show(task.name, done, done - search.known, search.seconds, best, search.errors.total())

        yield listener


@contextmanager
def progress_line(name: str, total: int) -> Iterator[Callable[..., None]]:
    """A line on the terminal, shown by a function of the name, trials done and measured, seconds, best record, failures."""
    if not sys.stderr.isatty():
        yield lambda *about: None
        return
    from rich.console import Console as Terminal
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("best {task.fields[best]}  {task.fields[rate]}/s  {task.fields[failed]} failed"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as progress:
        line = progress.add_task(name, total=total, best="-", rate="-", failed=0)

        def show(name: str, done: int, new: int, seconds: float, best: Record | None, failed: int) -> None:
            cost = "-" if best is None else number_text(best.cost)
            rate = f"{new / max(seconds, 1e-9):.1f}"
            progress.update(line, description=name, completed=done, best=cost, rate=rate, failed=failed)

        yield show


def tables(searches: Sequence[Search]) -> Iterator[Table]:
    """What came of searches: a line for each, and the best candidates of a single one."""
    columns = ("task", "trials", "ended", "default", "best", "gain", "failed", "seconds", "configuration")
    yield ("", columns, [_row(search) for search in searches])
    if len(searches) == 1:
        good = sorted((r for r in searches[0].records if r.cost is not None), key=lambda r: r.cost or 0)
        rows = [(number_text(r.cost), candidate_text(r)) for r in good[:_BEST]]
        yield (f"the best of {len(good)}", (searches[0].options.measure.metric, "configuration"), rows)
        failures = [(kind, count) for kind, count in searches[0].errors.most_common()]
        yield ("failures", ("error", "trials"), failures)


_ENDS = {"trials": "all trials", "seconds": "time is up", "exhausted": "no other programs"}
"""Why a search ended, in words."""


def _row(search: Search) -> tuple[object, ...]:
    best, default = search.best, search.default
    gain = "-"
    if best is not None and default is not None and default.cost and best.cost:
        gain = f"{default.cost / best.cost:.2f}x"
    trials = f"{len(search.records)}" + (f" ({search.known} known)" if search.known else "")
    return (
        search.task.name,
        trials,
        _ENDS.get(search.ended, search.ended),
        number_text(default.cost if default is not None else None),
        number_text(best.cost if best is not None else None),
        gain,
        search.errors.total(),
        f"{search.seconds:.1f}",
        candidate_text(best) if best is not None else "-",
    )


def number_text(cost: float | None) -> str:
    return "-" if cost is None else f"{cost:,.0f}" if cost >= 1 else f"{cost:.3g}"


def _as_json(searches: Sequence[Search]) -> str:
    def line(record: Record | None) -> object:
        return None if record is None else json.loads(record.line())

    found = [
        {
            "task": search.task.name,
            "trials": len(search.records),
            "known": search.known,
            "ended": search.ended,
            "seconds": search.seconds,
            "errors": dict(search.errors),
            "default": line(search.default),
            "best": line(search.best),
        }
        for search in searches
    ]
    return json.dumps(found, indent=1) + "\n"

"""What `compassc records` does with its options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core.errors import UsageError
from compass_core.files import claims
from compassc.cli.console import Console, artifact
from compassc.cli.tables import table_text
from compassc.cli.tuning import number_text
from compassc.tuning import history, records
from compassc.tuning.records import candidate_text, workload_text
from compassc.tuning.task import toolchain_version

if TYPE_CHECKING:
    from compassc.tuning.records import Record


def run(console: Console, action: str, paths: Sequence[Path], output: Path | None, keep: int) -> None:
    """Does an action. UsageError for files and options that do not go with it."""
    wrong = {
        "list": output is not None,
        "merge": not paths or output is None,
        "prune": len(paths) != 1,
        "diff": len(paths) != 2 or output is not None,
    }
    if wrong[action]:
        raise UsageError(f"records {action}: the files do not go with it", code="usage", help=_HELP[action])
    read = [records.read(path) for path in (paths or history.sources())]
    for file in read:
        for problem in file.problems:
            console.diagnose(problem)
    if action == "diff":
        artifact(_difference(read[0].records, read[1].records))
        return
    every = [record for file in read for record in file.records]
    if action == "list":
        artifact(_listed(every))
        return
    kept = records.pruned(every, keep) if action == "prune" else list(records.distinct(every))
    target = output or paths[0]
    if output is None:
        claims.changes(target)
    records.write(target, kept)
    console.say(f"{len(kept)} of {len(every)} records")
    console.made(target)


_HELP = {
    "list": "compassc records list FILE.jsonl ...",
    "merge": "compassc records merge ONE.jsonl TWO.jsonl -o BOTH.jsonl",
    "prune": "compassc records prune FILE.jsonl, with -o OTHER.jsonl to leave it as it is",
    "diff": "compassc records diff BEFORE.jsonl AFTER.jsonl",
}


def _listed(every: Sequence[Record]) -> str:
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in every:
        groups.setdefault(record.identity[:3], []).append(record)
    best = records.best(every)
    rows = []
    for group, found in groups.items():
        first, one = found[0], best.get(group)
        applied = "" if first.workload.version == toolchain_version() else first.workload.version
        failed = sum(r.cost is None for r in found)
        cost = number_text(one.cost) if one is not None else "-"
        about = (workload_text(first), first.workload.target, first.metric, cost, len(found), failed, applied)
        rows.append((*about, candidate_text(one) if one is not None else "-"))
    columns = ("workload", "target", "metric", "best", "records", "failed", "other version", "configuration")
    return table_text(("", columns, sorted(rows)))


def _difference(before: Sequence[Record], after: Sequence[Record]) -> str:
    """The best of each workload and metric, of any version, in two files."""

    def best(many: Sequence[Record]) -> dict[tuple[str, str], Record]:
        found: dict[tuple[str, str], Record] = {}
        for (key, _, metric), record in records.best(many).items():
            if (key, metric) not in found or (record.cost or 0) < (found[key, metric].cost or 0):
                found[key, metric] = record
        return found

    old, new = best(before), best(after)
    rows = []
    for group in dict.fromkeys([*old, *new]):
        one, two = old.get(group), new.get(group)
        record = two or one
        assert record is not None
        costs = [None if r is None else r.cost for r in (one, two)]
        change = f"{costs[1] / costs[0]:.3f}" if costs[0] and costs[1] is not None else "-"
        shown = [number_text(cost) for cost in costs]
        rows.append(
            (workload_text(record), record.workload.target, record.metric, *shown, change, candidate_text(record))
        )
    columns = ("workload", "target", "metric", "first", "second", "second/first", "configuration")
    return table_text(("", columns, rows))

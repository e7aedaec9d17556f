"""`python -m tests.replay record|compare|text [CASE ...]`: what every kernel was, gave and cost, and whether it still does.

`compare` measures the cases and holds them against the record: exit status 1 where a result differs, a kernel is refused,
or cycles grew by more than `--tolerance`. `record` measures them and writes the record. Cases are patterns such as
`layers/Softmax`, `'topi/*/int8'`, all without one. `text` prints the C of cases, for `diff` between two checkouts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from compassc.cluster import open_cluster
from tests.replay.compare import BAD, compared, report
from tests.replay.families import FAMILIES, ROOT, measure, programs
from tests.replay.outcome import Outcome, texts
from tests.replay.record import Outcomes, existing, load, matching, recorded, store

UNDER_WAY = ROOT / "build" / "replay.jsonl"


def part(shared: None, case: str) -> tuple[str, Outcome]:
    """`measure`, as workers call it."""
    return case, measure(case)


def measured(cases: Sequence[str], jobs: int, resume: bool) -> Outcomes:
    """The outcomes of cases. Each is kept as soon as it is there, for a run that goes on with this one."""
    from tests.replay.__main__ import part  # workers know it by this name, whatever was started here

    UNDER_WAY.parent.mkdir(exist_ok=True)
    found = {n: o for n, o in load(UNDER_WAY).items() if n in set(cases)} if resume else {}
    rest, began = [n for n in cases if n not in found], time.monotonic()
    with UNDER_WAY.open("a" if resume else "w", encoding="utf-8") as kept, open_cluster(jobs) as cluster:
        for number, (_, (case, one)) in enumerate(cluster.run(part, None, rest), 1):
            found[case] = one
            print(one.line(case), file=kept, flush=True)
            if number % 50 == 0 or number == len(rest):
                print(f"{number} of {len(rest)} cases, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found


def _compare(given: argparse.Namespace) -> int:
    before = recorded()
    names = existing()
    cases = matching(names, given.cases)
    now = measured(cases, given.jobs, given.resume)
    gone = set(matching(before, given.cases)) - set(names)
    found = compared({n: o for n, o in before.items() if n in now or n in gone}, now, given.tolerance / 100)
    print(report(found), end="")
    return int(any(one.verdict in BAD for one in found))


def _record(given: argparse.Namespace) -> int:
    before = recorded()
    names = existing()
    cases = [n for n in matching(names, given.cases) if not given.missing or n not in before]
    now = measured(cases, given.jobs, given.resume)
    kept = {n: o for n, o in before.items() if n in set(names)}
    print(report(compared({n: o for n, o in before.items() if n in now or n not in kept}, now)), end="")
    store(kept | now)
    return 0


def _text(given: argparse.Namespace) -> int:
    for case in matching(existing(), given.cases):
        for text in (text for program in programs(case) for text in texts(program)):
            print(f"// {case}\n{text}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=(__doc__ or "").partition("\n\n")[2])
    commands = parser.add_subparsers(required=True, metavar="record|compare|text")
    for name, run in (("record", _record), ("compare", _compare), ("text", _text)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("cases", nargs="*", metavar="CASE", help=f"patterns of cases of {', '.join(FAMILIES)}")
        if name == "text":
            continue
        command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that share the cases")
        command.add_argument("--resume", action="store_true", help="keep what a run that was cut off has measured")
        if name == "compare":
            command.add_argument("--tolerance", type=float, default=0.0, help="per cent by which cycles may grow")
        else:
            command.add_argument("--missing", action="store_true", help="only cases that are not on record")
    given = parser.parse_args()
    return int(given.run(given))


if __name__ == "__main__":
    sys.exit(main())

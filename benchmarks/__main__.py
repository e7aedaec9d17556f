"""`python -m benchmarks [NAME...]`: measure, print a table, keep it as JSON in benchmarks/results/latest.json.

Exit status 1 when a goal is missed. Values are medians; what is compared was measured in turns in the same run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .core import benchmark_names, load
from .report import Row, rows, save, show

RESULTS = Path(__file__).resolve().parent / "results"


def main() -> int:
    names = benchmark_names()
    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure what speed is promised for.")
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"which (default: all of {', '.join(names)})")
    parser.add_argument(
        "--reference", action="store_true", help="also store the results as the committed reference run"
    )
    given = parser.parse_args()
    unknown = set(given.name) - set(names)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(names)}")

    found: list[Row] = []
    for name in given.name or names:
        print(f"measuring {name} ...", file=sys.stderr)
        benchmark = load(name)
        found += rows(benchmark, benchmark.measure())
    show(found)
    save(RESULTS / "latest.json", found)
    if given.reference:
        save(RESULTS / "reference.json", found)
    return 1 if any(goal.met(result.value) is False for _, goal, result in found) else 0


if __name__ == "__main__":
    sys.exit(main())

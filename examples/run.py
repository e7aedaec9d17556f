"""`python examples/run.py NAME... [--via cli|python|pysim|all] [--seed N] [--bin FILE]`: run examples and check them.

Every case of an example runs in the chosen ways; results are compared with NumPy, and with each other bit for bit.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness import WAYS, Example, Mismatch, check_expected, check_identical, names

from compass_core.errors import CompassError, render


def check(example: Example, ways: list[str], seed: int, binary: Path | None) -> int:
    """Run all cases; the number of cases. Raises Mismatch."""
    count = 0
    for case in example.cases(seed):
        results = {}
        for way in ways:
            results[way] = example.run_cli(case, binary) if way == "cli" else WAYS[way](example, case)
            check_expected(case, results[way], f"{example.name} via {way}")
        for way, outputs in results.items():
            first = next(iter(results))
            check_identical(case, outputs, results[first], f"{example.name}, {way} and {first}")
        count += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description="Run examples and check their results.")
    parser.add_argument("name", nargs="*", help="examples to run; all when none is given", metavar="NAME")
    parser.add_argument("--via", choices=[*WAYS, "all"], default="all", help="how to run them (default: all ways)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    parser.add_argument("--bin", type=Path, help="an aipu.bin that is already built, for --via cli")
    given = parser.parse_args()
    ways = list(WAYS) if given.via == "all" else [given.via]
    for name in given.name or names():
        try:
            count = check(Example(name), ways, given.seed, given.bin)
        except (CompassError, Mismatch) as error:
            print(f"{name}: wrong", file=sys.stderr)
            print(render(error) if isinstance(error, CompassError) else error, file=sys.stderr)
            return 1
        print(f"{name}: {count} cases as expected via {', '.join(ways)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

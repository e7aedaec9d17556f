"""`python -m tests.fuzz --seed S --count N`: run N random programs; print failing ones, made small, as kernel files."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .campaign import BATCH, check, failures

PROGRESS = 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random programs, run both ways.")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first program; the next have the next seeds")
    parser.add_argument("--count", type=int, default=2000, help="number of programs")
    parser.add_argument("--keep", type=int, default=5, help="failing programs to make small and print")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for making one program small")
    given = parser.parse_args()
    start, kinds = time.monotonic(), Counter[str]()
    for seed, outcome in failures(given.seed, given.count):
        kinds[outcome.kind] += 1
        print(f"== seed {seed}: {outcome.kind}\n{outcome.detail}" if kinds.total() > given.keep else "", end="\n")
        if kinds.total() <= given.keep:
            print(check(seed, given.seconds))
        sys.stdout.flush()
    seconds = time.monotonic() - start
    print(f"{given.count} programs from seed {given.seed}: {kinds.total()} fail, {seconds:.0f} s", file=sys.stderr)
    for kind, count in kinds.most_common():
        print(f"  {count:5d}  {kind}", file=sys.stderr)
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())


__all__ = ["BATCH"]

"""`python -m tests.fuzz --seed S --count N`: run N random programs; print failing ones, made small, as kernel files."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from compassc.cluster import need, open_cluster

from .campaign import BATCH, part


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random programs, run both ways.")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first program; the next have the next seeds")
    parser.add_argument("--count", type=int, default=2000, help="number of programs")
    parser.add_argument("--jobs", type=int, default=1, help="processes to share the programs")
    parser.add_argument("--scheduler", help="a Dask scheduler whose workers, in a checkout too, share the programs")
    parser.add_argument("--keep", type=int, default=5, help=f"failing programs to make small and print, of {BATCH}")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for making one program small")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    start, kinds, done = time.monotonic(), Counter[str](), 0
    parts = [(first, min(BATCH, given.seed + given.count - first)) for first in starts(given.seed, given.count)]
    with open_cluster(given.jobs, given.scheduler) as cluster:
        for number, outcome in cluster.run(part, (given.keep, given.seconds), parts):
            ((texts, found),) = need([(number, outcome)])
            kinds += found
            for text in texts:
                print(text, flush=True)
            done += parts[number][1]
            tell(done)
    seconds = time.monotonic() - start
    print(f"{given.count} programs from seed {given.seed}: {kinds.total()} fail, {seconds:.0f} s", file=sys.stderr)
    for kind, count in kinds.most_common():
        print(f"  {count:5d}  {kind}", file=sys.stderr)
    return 1 if kinds else 0


def starts(seed: int, count: int) -> range:
    """The first seed of each part."""
    return range(seed, seed + count, BATCH)


def tell(done: int) -> None:
    if done and done % (25 * BATCH) == 0:
        print(f"{done} programs done", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

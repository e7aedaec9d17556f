"""`python -m tests.fuzz --seed S --count N`: run N random programs; print failing ones, made small, as kernel files."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter

from .campaign import BATCH, check, failures


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random programs, run both ways.")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first program; the next have the next seeds")
    parser.add_argument("--count", type=int, default=2000, help="number of programs")
    parser.add_argument("--jobs", type=int, default=1, help="processes to share the programs")
    parser.add_argument("--keep", type=int, default=5, help="failing programs to make small and print, per process")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for making one program small")
    return parser.parse_args()


def share(given: argparse.Namespace) -> int:
    """Split the seeds over processes; 1 when one of them found something."""
    each = -(-given.count // given.jobs // BATCH) * BATCH
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    running = []
    for first in range(0, given.count, each):
        options = {"seed": given.seed + first, "count": min(each, given.count - first), "keep": given.keep}
        words = [f"--{k}={v}" for k, v in (options | {"seconds": given.seconds}).items()]
        running.append(subprocess.Popen([sys.executable, "-m", __spec__.parent, *words], env=environment))
    return max([process.wait() for process in running], default=0)


def tell(done: int) -> None:
    if done and done % (25 * BATCH) == 0:
        print(f"{done} programs done", file=sys.stderr, flush=True)


def main() -> int:
    given = arguments()
    if given.jobs > 1:
        return share(given)
    start, kinds = time.monotonic(), Counter[str]()
    for seed, outcome in failures(given.seed, given.count, tell):
        kinds[outcome.kind] += 1
        print(
            check(seed, given.seconds) if kinds.total() <= given.keep else f"# seed {seed}: {outcome.kind}", flush=True
        )
    seconds = time.monotonic() - start
    print(f"{given.count} programs from seed {given.seed}: {kinds.total()} fail, {seconds:.0f} s", file=sys.stderr)
    for kind, count in kinds.most_common():
        print(f"  {count:5d}  {kind}", file=sys.stderr)
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())

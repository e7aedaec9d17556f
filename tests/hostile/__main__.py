"""`python -m tests.hostile TARGET --count N --seed S`: N damaged inputs for a reader."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.hostile import native
from tests.hostile.commands import CLI
from tests.hostile.harness import campaign
from tests.hostile.targets import TARGETS as READERS

TARGETS = {**READERS, CLI.name: CLI}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description="Damaged input for readers of files.")
    parser.add_argument("target", choices=(*TARGETS, *native.NATIVE))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000, help="number of inputs")
    given = parser.parse_args()
    if given.target in TARGETS:
        run = campaign(TARGETS[given.target], given.seed, given.count)
        print(run.report(given.count))
        return 1 if run.failures else 0
    if reason := native.why_not():
        print(f"{given.target}: not run: {reason}")
        return 0
    found = native.run(native.NATIVE[given.target], given.count, given.seed, Path.cwd())
    print(found.report(given.seed))
    return 1 if found.failure else 0


if __name__ == "__main__":
    sys.exit(main())

"""Tries every operator on a target: python -m tests.topi --target X2_1204 [NAME ...]"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from compassc import topi
from tests.targets.emulated_cuda import emulated
from tests.topi.trying import tried


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.topi")
    parser.add_argument("--target", default="X2_1204")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nvrtc", action="store_true", help="for cuda: NVRTC has to take the texts, too")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    if given.target.split()[0] != "cuda":
        return _all(given)
    with tempfile.TemporaryDirectory() as folder, emulated(Path(folder)) as driver:
        driver.nvrtc = given.nvrtc
        return _all(given)


def _all(given: argparse.Namespace) -> int:
    failed, count = [], 0
    for name in given.names or topi.OPERATORS:
        try:
            count += tried(topi.OPERATORS[name], given.target, given.seed)
        except AssertionError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
    print(f"{count} cases on {given.target}, failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())

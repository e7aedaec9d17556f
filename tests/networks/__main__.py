"""Whole networks in every form of numbers: `python -m tests.networks [--networks A,B] [--forms C,D] [--jobs N]`."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase

from compass_core.errors import CompassError
from tests.networks.catalogue import NETWORKS
from tests.networks.whole import FORMS, faults


def run(name: str, forms: list[str]) -> list[tuple[str, float, list[str]]]:
    """Of each form: its name, how long it took, and what is wrong."""
    found = []
    for form in forms:
        began = time.perf_counter()
        try:
            wrong = faults(name, form)
        except CompassError as error:
            wrong = [f"{name} {form}: refused: {error}"]
        except Exception:  # noqa: BLE001 (any failure is a finding)
            wrong = [f"{name} {form}: {traceback.format_exc(limit=-4)}"]
        found.append((form, time.perf_counter() - began, wrong))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.networks", description="Whole networks in every form.")
    parser.add_argument("--networks", default="*", help="names, apart by commas; * and ? stand for letters")
    parser.add_argument("--forms", default="*", help=", ".join(FORMS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that share the networks")
    given = parser.parse_args()

    def chosen(of: dict[str, object], patterns: str) -> list[str]:
        return [name for name in of if any(fnmatchcase(name, p) for p in patterns.split(","))]

    networks, forms = chosen({**NETWORKS}, given.networks), chosen(FORMS, given.forms)
    bad = count = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for name, results in zip(networks, pool.map(run, networks, [forms] * len(networks)), strict=True):
            for form, seconds, wrong in results:
                count += 1
                bad += bool(wrong)
                print(f"{name} {form}: {'FAILS' if wrong else 'ok'} ({seconds:.1f} s)", flush=True)
                for fault in wrong:
                    print(f"  {fault}", flush=True)
    print(f"{count} networks in forms of numbers: {bad} fail", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

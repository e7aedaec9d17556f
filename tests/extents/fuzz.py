"""Random extents programs against what they really access, and damaged ones: `make fuzz-extents`.

An extent must be at least what a run accesses, and what is certain at most that; a damaged program must be answered or
refused within a second. Stops at the first that is not, with its seed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from compass_core.errors import CompassError
from compass_core.extents import evaluate
from tests.extents.programs import TECS, Generator, Reference, TooLong, damaged

SECONDS = 1.0


def wrong(seed: int) -> str:
    """What is wrong with the extents of the program of `seed`; empty when nothing is."""
    generator = Generator(seed)
    program, scalars = generator.program(), generator.scalars()
    found = evaluate(program, scalars, TECS)
    for draw in range(3):
        try:
            reference = Reference(program, scalars, draw)
        except TooLong:
            return ""
        for name, elem in program["params"].items():
            needed, extent = -(-reference.top[name] // elem), found[name]
            if extent.certain > needed or (extent.elements is not None and extent.elements < needed):
                return f"seed {seed}: {name!r} accesses {needed} elements, extent {extent}\n{scalars}\n{json.dumps(program)}"
    return ""


def harmful(seed: int) -> str:
    """What goes wrong with a damaged program; empty when nothing does."""
    generator = Generator(seed)
    program: Any = damaged(generator.program(), seed)
    start = time.process_time()
    try:
        evaluate(program, generator.scalars(), TECS)
    except CompassError as error:
        if error.code != "invalid-gbin" or len(str(error)) > 1000:
            return f"seed {seed}: {error!r}"
    except Exception as error:  # noqa: BLE001 - whoever reads the file would see it
        return f"seed {seed}: {error!r}"
    taken = time.process_time() - start
    return f"seed {seed}: takes {taken:.1f} s" if taken > SECONDS else ""


ATTEMPTS = {"whole": wrong, "damaged": harmful}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(ATTEMPTS), help="whole programs, or damaged ones")
    options = parser.parse_args()
    attempts = [ATTEMPTS[options.only]] if options.only else list(ATTEMPTS.values())
    for done, seed in enumerate(range(options.seed, options.seed + options.count)):
        if done and done % 50_000 == 0:
            print(f"{done} programs, none wrong", file=sys.stderr)
        message = next(filter(None, (attempt(seed) for attempt in attempts)), "")
        if message:
            print(message)
            return 1
    print(f"{options.count} programs from seed {options.seed}: none {' or '.join(a.__name__ for a in attempts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

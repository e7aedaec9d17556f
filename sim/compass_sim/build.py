"""`python -m compass_sim.build`: build the simulator engine into the package, as set-up does."""

from __future__ import annotations

import sys

from compass_core.errors import CompassError, render
from compass_sim.engine import engine_path, install

__all__ = ["engine_path", "main"]


def main() -> int:
    """Builds what is missing and prints the executable's path; the exit code of the error otherwise."""
    try:
        print(install())
    except CompassError as error:
        print(render(error), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

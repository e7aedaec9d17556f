"""A whole `compassc build` as a new process, against clang alone on the C text of the same kernel.

The compile cache is off. The build uses its precompiled header; clang alone reads the headers, as `clang -c` does, and
is also timed with the precompiled header, to inform.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.core import Goal, Result, environment, median, median_ratio, seconds, side_by_side

from ._examples import FOLDER, TARGET, compassc_command

GOALS = {
    "seconds": Goal("compassc build of vadd, new process", "s", 0.35),
    "ratio": Goal("the same, against clang -c of its C", "x", 4),
    "pch": Goal("the same, against clang -c with precompiled header", "x"),
}
ROUNDS = 9


def measure() -> dict[str, Result]:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        work = Path(folder)
        build = [*compassc_command(), "build", str(FOLDER / "vadd" / "kernel.py"), "-t", TARGET, "--no-cache"]
        build += ["-o", str(work / "aipu.bin"), "--save-temps-dir", str(work / "stages")]
        variables = environment(work)
        run = _runner(build, work, variables)
        run()  # writes the log with clang's command line, and makes the precompiled header
        log = (work / "stages" / "vadd.cc.log").read_text(encoding="utf-8")
        clang = shlex.split(next(line for line in log.splitlines() if line.startswith("command: "))[len("command: ") :])
        plain = _without(clang, "-include-pch")
        samplers = [run, *(_runner(c, work / "stages", variables) for c in (plain, clang))]
        whole, alone, with_pch = side_by_side(samplers, ROUNDS)
    return {
        "seconds": Result(median(whole)),
        "ratio": Result(median_ratio(whole, alone), f"clang alone {median(alone):.3f} s"),
        "pch": Result(median_ratio(whole, with_pch), f"clang alone {median(with_pch):.3f} s"),
    }


def _without(command: list[str], option: str) -> list[str]:
    """A command line without an option and its value."""
    at = command.index(option)
    return command[:at] + command[at + 2 :]


def _runner(command: list[str], folder: Path, variables: dict[str, str]) -> Callable[[], float]:
    def sample() -> float:
        return seconds(lambda: subprocess.run(command, cwd=folder, env=variables, check=True, capture_output=True))

    return sample

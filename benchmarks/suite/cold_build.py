"""A whole `compassc build` as a new process, against clang alone on the C text of the same kernel.

The compile cache is off for both; both use the precompiled header.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from pathlib import Path

from benchmarks.core import Goal, Result, median, median_ratio, seconds, side_by_side

from ._examples import FOLDER, TARGET, compassc_command

GOALS = {
    "seconds": Goal("compassc build of vadd, new process", "s", 0.35),
    "ratio": Goal("the same, against clang -c of its C", "x", 4),
}
ROUNDS = 9


def measure() -> dict[str, Result]:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        work = Path(folder)
        build = [*compassc_command(), "build", str(FOLDER / "vadd" / "kernel.py"), "-t", TARGET, "--no-cache"]
        build += ["-o", str(work / "aipu.bin"), "--save-temps-dir", str(work / "stages")]
        run = _runner(build, work)
        run()  # writes the log with clang's command line, and makes the precompiled header
        log = (work / "stages" / "vadd.cc.log").read_text(encoding="utf-8")
        clang = shlex.split(next(line for line in log.splitlines() if line.startswith("command: "))[len("command: ") :])
        whole, alone = side_by_side([run, _runner(clang, work / "stages")], ROUNDS)
    detail = f"clang alone {median(alone):.3f} s"
    return {"seconds": Result(median(whole)), "ratio": Result(median_ratio(whole, alone), detail)}


def _runner(command: list[str], folder: Path):
    def sample() -> float:
        return seconds(lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True))

    return sample

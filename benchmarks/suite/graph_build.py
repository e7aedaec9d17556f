"""`compassc gbuild` of a graph of 50 layers as a new process. Objects come from the compile cache: no clang runs."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.core import Goal, Result, environment, median, seconds

from ._examples import TARGET, compassc_command
from ._graph import write_graph

GOALS = {"seconds": Goal("compassc gbuild of 50 layers, new process, without clang", "s", 2)}
ROUNDS = 5


def measure() -> dict[str, Result]:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        work = Path(folder)
        graph, _ = write_graph(work)
        command = [*compassc_command(), "gbuild", str(graph), "-w", str(work / "weight.bin"), "-t", TARGET]
        command += ["-o", str(work / "aipu.bin")]
        variables = environment(work)

        def build() -> str:
            return subprocess.run(command, cwd=work, env=variables, check=True, capture_output=True, text=True).stderr

        summary = build().splitlines()[0]
        return {"seconds": Result(median(seconds(build) for _ in range(ROUNDS)), summary)}

"""`compassc gbuild` of a residual network of 50 layers with weights, as a new process: cold (nothing is cached, clang's
time is in it) and warm (its kernels are known)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.core import Goal, Result, environment, median, seconds

from ._examples import TARGET, compassc_command
from ._resnet import write_resnet

WIDTHS = {"int8": 32, "float32": 64}
"""Channels of the first stage: the int8 kernels hold a window's rows of all channels in LSRAM."""
GOALS = {
    "int8": Goal("int8 network of 7 MB, known kernels", "s", 0.5),
    "int8 cold": Goal("the same, no kernel known", "s", 3),
    "float32": Goal("float32 network of 102 MB, known kernels", "s", 0.5),
    "float32 cold": Goal("the same, no kernel known", "s", 3),
}
ROUNDS = 3


def measure() -> dict[str, Result]:
    found = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        for dtype, width in WIDTHS.items():
            work = Path(folder, dtype)
            graph = write_resnet(work, dtype, width)
            command = [*compassc_command(), "gbuild", str(graph), "-w", str(work / "weight.bin"), "-t", TARGET]
            command += ["-o", str(work / "aipu.bin")]
            variables = environment(work) | {"COMPASS_CACHE_DIR": str(work / "cache")}
            build = partial(
                subprocess.run, command, cwd=work, env=variables, check=True, capture_output=True, text=True
            )
            found[f"{dtype} cold"] = Result(median(seconds(partial(_cold, work, build)) for _ in range(ROUNDS)))
            found[dtype] = Result(median(seconds(build) for _ in range(ROUNDS)))
    return found


def _cold(work: Path, build: Callable[[], object]) -> None:
    shutil.rmtree(work / "cache", ignore_errors=True)
    build()

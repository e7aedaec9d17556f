"""`compassc build` of a ResNet-18 for images of 224x224 from ONNX to an aipu.bin of 8-bit integers, as a new process: import,
passes, calibration, quantisation, kernels. Cold: nothing is cached, clang's time is in it. Warm: its kernels are known."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.core import Goal, Result, environment, seconds
from benchmarks.networks import NETWORKS

from ._examples import TARGET, compassc_command

SAMPLES = 8
"""Images to calibrate with."""
GOALS = {
    "cold": Goal(f"ResNet-18, ONNX to int8 aipu.bin with {SAMPLES} images, no kernel known", "s", 30),
    "warm": Goal("the same, known kernels", "s", 30),
}


def measure() -> dict[str, Result]:
    try:
        model = NETWORKS["resnet18"].model()
    except ImportError:
        return {key: Result(None, "onnx is not installed") for key in GOALS}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        work = Path(folder)
        (work / "net.onnx").write_bytes(model.SerializeToString())
        images = np.random.default_rng(1).normal(0, 1, (SAMPLES, 3, 224, 224)).astype(np.float32)
        np.savez(work / "samples.npz", x=images)
        command = [*compassc_command(), "build", "net.onnx", "-t", TARGET, "--calibrate", "samples.npz", "-v"]
        variables = environment(work) | {"COMPASS_CACHE_DIR": str(work / "cache")}
        found = {}
        for key in GOALS:
            if key == "cold":
                shutil.rmtree(work / "cache", ignore_errors=True)
            said: list[str] = []

            def run(said: list[str] = said) -> None:
                done = subprocess.run(command, cwd=work, env=variables, check=True, capture_output=True, text=True)
                said += done.stderr.splitlines()

            found[key] = Result(seconds(run), ", ".join(" ".join(line.split()[:3]) for line in said[:4]))
    return found

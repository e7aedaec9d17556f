"""What the zoo's networks are worth in each form of numbers: built by the command that a deployer gives, measured on samples
that they have not seen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from compassc.models import Model
from tests.zoo.tasks import CALIBRATED, CALIBRATION, MEASURED, MODELS, TASKS, TEST

TARGET = "X2_1204"
FORMS = ("float", "int8", "w8a16", "int16", "fp16", "auto")
"""Without `--quantize`, and what it is given."""


Outputs = Sequence[np.ndarray[Any, Any]]


class Measured(NamedTuple):
    """How good a network's answers are, the estimated cycles of a run, and its outputs for all samples."""

    score: float
    cycles: float
    outputs: Outputs

    def near(self, floats: Measured) -> float:
        """The ratio of signal to error in dB of the output that is farthest from the float network's."""
        pairs = zip(floats.outputs, self.outputs, strict=True)
        return min(10 * np.log10((a**2).sum() / ((a - b) ** 2).sum()) for a, b in pairs)


def build(name: str, form: str, folder: Path) -> Model:
    """A network built in a form by `compassc build`."""
    samples = folder / "samples.npz"
    if not samples.exists():
        np.savez(samples, x=TASKS[name].samples(CALIBRATION, CALIBRATED)[0])
    words = [
        str(MODELS / f"{name}.onnx"),
        "-t",
        TARGET,
        "-o",
        f"{form}-aipu.bin",
        "--save-temps-dir",
        f"{form}.compass",
    ]
    if form != "float":
        words += ["--quantize", form] + (["--calibrate", samples.name] if form != "fp16" else [])
    ran = subprocess.run(
        [sys.executable, "-m", "compassc", "build", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"compassc build {' '.join(words)}: {ran.stderr}")
    return Model.load(folder / f"{form}.compass")


def answers(model: Model, inputs: np.ndarray[Any, Any]) -> Outputs:
    """The outputs of all samples on the simulator."""
    made = model(inputs)
    return made if isinstance(made, tuple) else (made,)


def measure(name: str, form: str, folder: Path, count: int = MEASURED) -> Measured:
    """A network in a form: built in a folder, measured on so many samples."""
    model = build(name, form, folder)
    inputs, wanted = TASKS[name].samples(TEST, count)
    outputs = answers(model, inputs)
    return Measured(TASKS[name].score(outputs, wanted), model.profile(inputs[:1]).cycles, outputs)


def faults(name: str, found: Mapping[str, Measured]) -> list[str]:
    """What a network loses in the form `auto` more than it may."""
    lost = found["float"].score - found["auto"].score
    task = TASKS[name]
    return [f"{name}: auto loses {lost:.2f} {task.unit}, more than {task.loss}"] if lost > task.loss else []

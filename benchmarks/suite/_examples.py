"""The kernels of `examples/`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.core import ROOT
from compassc.dsl import load_kernels
from compassc.language.functions import PyPrimFunc

TARGET = "X2_1204"
FOLDER = ROOT / "examples"


def example_names() -> list[str]:
    return sorted(p.parent.name for p in FOLDER.glob("*/kernel.py"))


def kernel(name: str) -> PyPrimFunc:
    return load_kernels(FOLDER / name / "kernel.py").entry()


def compassc_command() -> list[str]:
    """The installed program where there is one, as a user runs it."""
    program = Path(sys.executable).with_name("compassc")
    return [str(program)] if os.access(program, os.X_OK) else [sys.executable, "-m", "compassc"]

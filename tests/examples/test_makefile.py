"""`make check` of the examples builds and checks, does nothing when nothing changed, and follows what a kernel imports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", copy, ignore=shutil.ignore_patterns("build", "__pycache__", "*.compass"))
    return copy


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_only_what_changed_is_built(folder: Path) -> None:
    kernel = folder / "vadd" / "kernel.py"
    text = kernel.read_text().replace("S.vadd(va, 1)", "S.vadd(va, STEP)")
    kernel.write_text(text.replace("import script as S\n", "import script as S\nfrom step import STEP\n"))
    (folder / "vadd" / "step.py").write_text("STEP = 1\n")

    first = _make(folder)
    assert "compassc build" in first and "2 cases as expected" in first
    assert "compassc" not in _make(folder)

    _date_later(folder / "vadd" / "check.py")
    again = _make(folder)
    assert "compassc build" not in again and "2 cases as expected" in again

    (folder / "vadd" / "step.py").write_text("STEP = 2\n")
    _date_later(folder / "vadd" / "step.py")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        _make(folder)
    assert "'b' differs in 8 of 8 elements" in failed.value.stderr


def _date_later(path: Path) -> None:
    """Make a file newer than everything, on file systems with coarse times too."""
    later = time.time() + 2
    os.utime(path, (later, later))


def _make(folder: Path) -> str:
    command = ["make", "-C", str(folder), "check", "NAMES=vadd", f"PYTHON={sys.executable}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

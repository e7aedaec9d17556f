"""Programs as they are written for TVM, each as its documents teach a topic: they run to their end."""

import runpy
from pathlib import Path

import pytest

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.py"))


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_it_runs_to_its_end(path):
    runpy.run_path(str(path), run_name="__main__")

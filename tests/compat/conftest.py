"""Programs written for the vendor's packages, run as users run them."""

import os
import subprocess
import sys

import pytest

from compassc.compat import modules


@pytest.fixture
def compat(tmp_path):
    """Run `python -m compassc.compat WORDS` in a folder of its own; `text` is written to program.py there."""

    def run(*words, text=None, **environment):
        if text is not None:
            (tmp_path / "program.py").write_text(text)
        return subprocess.run(
            [sys.executable, "-m", "compassc.compat", *map(str, words)],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            env=os.environ | environment,
            check=False,
        )

    return run


@pytest.fixture
def names():
    """The names in this process, for the time of one test."""
    modules.take_names()
    yield
    modules.give_back_names()

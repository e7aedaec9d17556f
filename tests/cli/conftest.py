"""Running `compassc` inside the test process."""

import io
import sys
from dataclasses import dataclass

import pytest

from compassc.cli import errors
from compassc.cli.main import cli


@dataclass(frozen=True)
class Outcome:
    """Exit status, stdout and stderr of a command."""

    status: int
    out: str
    err: str


@pytest.fixture
def compassc(capsys, monkeypatch, tmp_path):
    """A function that runs `compassc ARGS...` in a fresh folder, with the user's switches and cache out of sight."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPASS_CONFIG", str(tmp_path / "no config"))
    for name in ("COMPASS_TRACEBACK", "COMPASS_COLOR", "COMPASS_TARGET", "COMPASS_CACHE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*args: object, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        status = errors.run(cli, [str(arg) for arg in args])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run

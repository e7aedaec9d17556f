"""What is served is what is started: streams, status, arguments, folder and variables are the same."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from served_python import ServedPython

SHOWN = """
import atexit, os, sys
atexit.register(print, "at the end")
print(__name__, sys.argv, sys.path[0], os.getcwd(), os.environ["HERE"], vars().get("__file__"), input())
print("to stderr", file=sys.stderr)
"""
CALLS = {
    "text": ("-c", SHOWN, "a", "b c"),
    "file": ("shown.py", "-a"),
    "module": ("-m", "shown", "--b"),
    "status": ("-c", "raise SystemExit(3)"),
    "no status": ("-c", "raise SystemExit"),
    "words": ("-c", "import sys; sys.exit('it ends so')"),
    "no module": ("-m", "not_there"),
    "options": ("-O", "-c", "print(__debug__)"),
    "threads": ("-c", "import threading; threading.Timer(0.01, print, ['late']).start()"),
    "children": ("-c", "import subprocess; raise SystemExit(subprocess.run(['false']).returncode + 1)"),
}


@pytest.fixture(scope="module")
def served() -> Iterator[ServedPython]:
    process = ServedPython(("json",))
    yield process
    process.close()


def done(python: str, call: tuple[str, ...], folder: Path, served: ServedPython) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a call by a shell."""
    line = f"{python} {shlex.join(call)}"
    environment = {**os.environ, "HERE": str(folder), **served.environment}
    run = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=environment,
        pass_fds=served.passed,
        input="a line\n",
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize("name", CALLS)
def test_what_is_served_is_what_is_started(name: str, served: ServedPython, tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(SHOWN)
    started, called = (
        done(python, CALLS[name], tmp_path, served) for python in (f'"{sys.executable}"', served.command)
    )
    assert called == started


def test_an_exception_is_shown_and_what_is_killed_has_failed(served: ServedPython, tmp_path: Path) -> None:
    status, out, err = done(served.command, ("-c", "print(1); raise ValueError('no')"), tmp_path, served)
    assert (status, out) == (1, "1\n") and err.endswith("ValueError: no\n")
    assert done(served.command, ("-c", "import os; os.kill(os.getpid(), 9)"), tmp_path, served)[0] != 0


def test_modules_are_there_at_once(served: ServedPython, tmp_path: Path) -> None:
    assert done(served.command, ("-c", "import sys; print('json' in sys.modules)"), tmp_path, served)[1] == "True\n"

"""What comes from files and kernels does not command a terminal."""

import io
import json
import re
import sys

import numpy as np
import pytest

from compassc.cli import errors
from compassc.cli.main import cli
from compassc.dsl import script as S

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\r\u202e"
FILES = {
    "k.cc.log": f"folder: {EVIL}\n\n{EVIL}\n",
    "k.json": json.dumps({EVIL: EVIL}, ensure_ascii=False),
    "compass_ir.txt": f"model_name={EVIL}\n{EVIL}=1\n",
    "k.params.json": json.dumps({"format": "compassc-params/1", "target": EVIL, "params": []}, ensure_ascii=False),
    "k.ir.txt": f"# {EVIL}\nclass {EVIL}: pass",
    f"{EVIL}.cl": "__kernel void k(__global int* a) {}\n",
}


class Terminal(io.TextIOWrapper):
    """A stream that says that it is a terminal."""

    def __init__(self):
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")

    def isatty(self):
        return True

    def text(self):
        self.flush()
        return self.buffer.getvalue().decode()


@pytest.fixture
def terminal(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPASS_COLOR", "never")

    def attach():
        """In the test itself, for pytest puts its own streams there before each phase."""
        made = Terminal()
        monkeypatch.setattr(sys, "stdout", made)
        monkeypatch.setattr(sys, "stderr", made)
        return made

    return attach


def assert_tame(text):
    """But for the line of progress, which takes itself away."""
    text = re.sub(r"\r(\w+ \.\.\.)?\x1b\[K", "", text)
    assert text and not [one for one in EVIL if not one.isprintable() and one in text]


@pytest.mark.parametrize("name", FILES)
def test_tables_and_errors_about_files(terminal, tmp_path, name):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8", newline="")
    screen = terminal()
    errors.run(cli, ["inspect", name])
    errors.run(cli, ["cc", name, "-o", "-", "-v"])
    assert_tame(screen.text())


def test_what_a_kernel_prints_in_pysim(terminal):
    @S.prim_func
    def k(a: S.ptr("i32", "global")):
        S.printf("\x1b[2J%d\n", a[0])

    screen = terminal()
    k(np.array([7], "int32"))
    assert "7\n" in screen.text()
    assert_tame(screen.text())


def test_ir_that_is_printed(terminal, tmp_path):
    (tmp_path / "k.py").write_text(
        "from compassc.dsl import script as S\n\n@S.prim_func\ndef k(a: S.ptr('i32', 'global')):\n"
        "    S.printf('\\x1b[2J')\n    a[0] = 1  # \x9b31m\n",
        encoding="utf-8",
    )
    screen = terminal()
    assert errors.run(cli, ["parse", "k.py", "-o", "-"]) == 0
    assert errors.run(cli, ["build", "k.py", "--stop-after", "lower", "--print-after", "all", "-v"]) == 0
    assert_tame(screen.text())

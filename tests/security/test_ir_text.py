"""IR text of somebody else: its places name any file, whose lines are nobody's business."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from compassc.cli import errors
from compassc.cli.main import cli

SECRET = "correct_horse_battery_staple"
KERNEL = """from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    the_array = S.alloc((16,), "int32", "lsram")
    for i in range(16):
        the_array[i] = a[i]
    for i in range(16):
        a[i] = the_array[15 - i]
"""


def forms(folder):
    """The IR text of a kernel, and the same with the name of a secret file in its places and a mistake behind."""
    (folder / "secret").write_text(f"line\n{SECRET}\n" * 9)
    (folder / "k.py").write_text(KERNEL)
    assert errors.run(cli, ["parse", "k.py", "-o", "honest.ir.txt", "-t", "X2_1204"]) == 0
    text = (folder / "honest.ir.txt").read_text()
    assert hashlib.sha256(KERNEL.encode()).hexdigest() in text
    return text, re.sub(r"#@ (k.py:)?[0-9]+:", "#@ secret:2:", text)


def outcomes(capfd, *words):
    """The status of a command, and all that it says and writes to the named file."""
    status = errors.run(cli, list(words))
    return status, "".join(capfd.readouterr())


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_lines_of_the_file_that_was_parsed_are_shown(tmp_path, capfd):
    text, _ = forms(tmp_path)
    (tmp_path / "x.ir.txt").write_text(text.replace("(16,)", "(4000000,)"))
    status, said = outcomes(capfd, "lower", "x.ir.txt")
    assert status == 1 and "k.py:6" in said and "the_array = S.alloc" in said
    assert outcomes(capfd, "lower", "honest.ir.txt")[0] == 0
    assert outcomes(capfd, "legalize", "k.lowered.txt")[0] == 0
    assert outcomes(capfd, "codegen", "k.legal.txt")[0] == 0
    assert json.loads((tmp_path / "k.cl.map").read_text())["sha256"] == [hashlib.sha256(KERNEL.encode()).hexdigest()]


def test_lines_of_other_files_are_not(tmp_path, capfd):
    _, text = forms(tmp_path)
    (tmp_path / "x.ir.txt").write_text(text.replace("(16,)", "(4000000,)"))
    status, said = outcomes(capfd, "lower", "x.ir.txt")
    assert status == 1 and "secret:2" in said and SECRET not in said
    (tmp_path / "x.ir.txt").write_text(text)
    assert outcomes(capfd, "lower", "x.ir.txt", "-o", "x.lowered.txt")[0] == 0
    assert outcomes(capfd, "legalize", "x.lowered.txt", "-o", "x.legal.txt")[0] == 0
    assert outcomes(capfd, "codegen", "x.legal.txt", "-o", "x.cl")[0] == 0
    noted = json.loads((tmp_path / "x.cl.map").read_text())
    assert noted["files"] == ["secret"] and noted["sha256"] == [None]
    (tmp_path / "x.cl").write_text((tmp_path / "x.cl").read_text().replace("15 -", "nothing_known -"))
    status, said = outcomes(capfd, "cc", "x.cl", "-t", "X2_1204")
    assert status == 1 and "secret:2" in said and SECRET not in said

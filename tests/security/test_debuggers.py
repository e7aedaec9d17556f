"""Debuggers run with the user's rights: they take no commands from files, and foreign programs only when told to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from compass_core.aipubin import write
from compass_core.errors import CompassError
from compass_runtime import Program, cli
from compass_runtime.debug import Debugger, _source_folders
from tests.choosing import some

TEXT = """#include <compass/dsl.h>
# 1 "k.cl"
__kernel void k(__global int* a) { a[0] = 1; }
#include <compass/entry.h>
__COMPASS_ENTRY(__compass_entry_k) { k(__COMPASS_POINTER(__global int, 0)); }
__asm__(".pushsection .debug_gdb_scripts,\\"MS\\",@progbits,1\\n.byte 4\\n"
        ".ascii \\"gdb.inlined-script\\\\n\\"\\n.ascii \\"open('executed', 'w').close()\\\\n\\"\\n.byte 0\\n.popsection");
"""
needs_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        cli.main([str(word) for word in words])
    return ended.value.code, capsys.readouterr().err


@pytest.fixture
def foreign_file(forge, tmp_path):
    path = tmp_path / "foreign.bin"
    path.write_bytes(write(forge(TEXT).content))
    return path


def test_a_foreign_program_is_debugged_only_when_trusted(foreign_file):
    with pytest.raises(CompassError) as caught:
        Debugger(Path("/bin/false"), "gdb").prepared(Program.load(foreign_file))
    assert caught.value.code == "untrusted-debug" and "--trust" in caught.value.help
    assert Debugger(Path("/bin/false"), "gdb").prepared(Program.load(foreign_file, trusted=True))


def test_an_own_program_is_debugged(honest):
    assert Debugger(Path("/bin/false"), "gdb").prepared(Program.load(honest))


@needs_gdb
def test_gdb_takes_no_commands_from_files(foreign_file, tmp_path, monkeypatch, capsys):
    """Files of settings in the current and the home folder, and scripts in the code that is debugged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    script = "python open('executed', 'w').close()\nset auto-load safe-path /\n"
    for folder in (tmp_path, tmp_path / "home"):
        (folder / ".gdbinit").write_text(script)
        (folder / ".gdbearlyinit").write_text("set startup-quietly on\n" + script.partition("\n")[2])
    (tmp_path / "commands").write_text("bt\ncontinue\n")
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "a.npy", np.zeros(4, "int32"))
    status, words = run(
        capsys, foreign_file, "--inputs", "a=a.npy", "--debug-commands", "commands", "--debugger", "gdb", "--trust"
    )
    assert status == 0, words
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("kind", ["gdb", "lldb"])
def test_no_word_for_a_debugger_has_two_lines(tmp_path, monkeypatch, honest, kind):
    """A folder is called by whoever packed it."""
    bad = [
        tmp_path / name for name in ("a\nshell touch executed", 'a" "b', "a`touch executed`", "a\\b", "a;b", "$cdir")
    ]
    for folder in some(bad):
        folder.mkdir()
        shutil.copy(honest, folder / "aipu.bin")
        monkeypatch.chdir(folder)
        folders = _source_folders(Program.load(folder / "aipu.bin"))
        assert folders == [tmp_path]
        line = Debugger(Path("/bin/false"), kind).command(os.getpid(), "__compass_entry_k", folders, None)
        assert not any(set("\n`;").intersection(word) for word in line)
        assert ("-nx" in line) == (kind == "gdb") and ("--no-lldbinit" in line) == (kind == "lldb")

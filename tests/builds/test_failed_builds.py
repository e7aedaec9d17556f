"""A build that fails leaves nothing that it made itself, and nothing else changes."""

import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S

BAD = """from compassc.dsl import script as S

@S.prim_func
def k(a: S.ptr("i32", "global")):
    a[0] = nowhere
"""
NO_C = BAD.replace("nowhere", "1") + '    S.asm("bogus %9")\n'


@pytest.fixture
def here(tmp_path, compassc):
    (tmp_path / "kernel.py").write_text(BAD)
    return tmp_path


def content(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in str(path))


@pytest.mark.parametrize("words", [["build"], ["build", "-o", "new/folder/aipu.bin"], ["parse"], ["lower"]])
def test_of_commands(here, words, compassc):
    assert compassc(words[0], "kernel.py", *words[1:]).status == 1
    assert content(here) == ["kernel.py"]


def test_what_was_there_stays(here, compassc):
    (here / "kernel.compass").mkdir()
    (here / "kernel.compass" / "mine.txt").write_text("mine")
    assert compassc("build", "kernel.py").status == 1
    assert content(here) == ["kernel.compass", "kernel.compass/mine.txt", "kernel.py"]


def test_a_failure_of_the_c_compiler(here, compassc):
    (here / "kernel.py").write_text(NO_C)
    assert compassc("build", "kernel.py", "--cc-option=-Xclang", "--cc-option=-no-such-option").status != 0
    assert content(here) == ["kernel.py"]


@S.prim_func
def mistaken(a: S.ptr("i32", "global")):
    a[0] = nowhere  # noqa: F821


def test_of_the_python_api(tmp_path):
    with pytest.raises(CompassError):
        BuildManager("X2_1204", output_dir=tmp_path / "out").build(mistaken)
    with pytest.raises(CompassError):
        BuildManager("X2_1204").gen_op_lib(mistaken, output_path=tmp_path / "lib" / "k.o")
    assert content(tmp_path) == []


@pytest.mark.parametrize("command", ["lower", "legalize", "codegen", "cc", "build"])
def test_a_folder_without_plain_files_stays(tmp_path, command, compassc):
    folder = tmp_path / "there"
    (folder / "empty").mkdir(parents=True)
    (folder / "k.ir.txt").symlink_to("/dev/zero")
    assert compassc(command, "there/k.ir.txt").status == 1
    assert content(tmp_path) == ["there", "there/empty", "there/k.ir.txt"]
    (folder / "k.ir.txt").unlink()
    (folder / "empty").rmdir()
    (tmp_path / "kernel.py").write_text(BAD)
    assert compassc("build", "kernel.py", "-o", "there/aipu.bin").status == 1
    assert content(tmp_path) == ["kernel.py", "there"]

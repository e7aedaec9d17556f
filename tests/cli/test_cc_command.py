"""`compassc cc` as one arrow: files, stdin, stdout, what is said."""

import subprocess
import sys
from pathlib import Path

import pytest

TEXT = "#include <compass/dsl.h>\n__kernel void k(__global int* a) {\n  a[0] = 1;\n}\n"


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "stages"
    folder.mkdir()
    (folder / "k.cl").write_text(TEXT)
    return Path("stages/k.cl")


def test_success_says_only_the_path(compassc, source):
    done = compassc("cc", source)
    assert (done.status, done.out, done.err) == (0, "", "stages/k.o\n")
    assert Path("stages/k.o").read_bytes()[:4] == b"\x7fELF"
    assert Path("stages/k.cc.log").read_text().startswith("working directory: ")


def test_output_names_the_object(compassc, source, tmp_path):
    done = compassc("cc", source, "-o", "other/x.obj")
    assert (done.status, done.err) == (0, "other/x.obj\n")
    assert {path.name for path in (tmp_path / "other").iterdir()} == {"x.obj", "x.cc.log", "x.cc.cl"}


def test_dash_reads_stdin_and_writes_stdout(source):
    command = [sys.executable, "-m", "compassc", "cc", "-"]
    done = subprocess.run(command, input=TEXT.encode(), capture_output=True, check=True)
    assert done.stdout.startswith(b"\x7fELF")
    assert done.stderr == b""


def test_verbose_shows_the_stage_and_the_warnings(compassc, source):
    source.write_text("#warning careful\n" + TEXT)
    done = compassc("cc", source, "-v")
    assert done.out == ""
    assert "careful" in done.err
    assert done.err.splitlines()[-1] == "stages/k.o"
    assert "careful" not in compassc("cc", source).err


def test_dry_run_prints_the_command_and_makes_no_object(compassc, source):
    done = compassc("cc", source, "--dry-run")
    assert done.status == 0
    assert "-cl-std=CL1.2" in done.out.splitlines()[-1]
    assert not Path("stages/k.o").exists()


def test_errors_are_clangs_at_the_line(compassc, source):
    source.write_text(TEXT.replace("1;", "y;"))
    done = compassc("cc", source)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("stages/k.cl:3: error: C compiler: use of undeclared identifier 'y'")


def test_the_target_is_taken_from_the_parameters_beside(compassc, source):
    Path("stages/k.params.json").write_text('{"format": "compassc-params/1", "target": "X3P_1304"}')
    assert "-D__AIPUX3P__" in compassc("cc", source, "--dry-run").out
    done = compassc("cc", source, "-t", "X2_1204")
    assert done.status == 2
    assert "made for target X3P_1304" in done.err

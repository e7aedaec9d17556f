"""Programs whose surroundings are not in order: streams that are closed, full or without a reader, folders that are gone
or called oddly, nowhere to write to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    for i in S.tec_range(0, n):
        b[i] = a[i] + 1
"""
PROGRAMS = {
    "compassc": "from compassc.cli.main import main; main()",
    "compass-run": "from compass_runtime.cli import main; main()",
}


def shell(words: str, program: str = "compassc", **given):
    """A command line of a shell in which `@` is the program."""
    line = words.replace("@", f"{sys.executable} -c '{PROGRAMS[program]}'")
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, **given)
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert "Traceback" not in said and "internal error" not in said, said
    return done.returncode, said


@pytest.mark.parametrize(
    ("program", "words", "status"),
    [
        ("compassc", "@ targets >&-", 1),
        ("compassc", "@ targets 2>&-", 0),
        ("compassc", "@ targets >/dev/full", 1),
        ("compassc", "@ nothing 2>/dev/full", 2),
        ("compassc", "@ nothing >&- 2>&- <&-", 2),
        ("compass-run", "@ nothing >&- 2>&- <&-", 1),
        ("compass-run", "@ nothing >/dev/full", 1),
        ("compass-run", "@ --nothing 2>/dev/full", 2),
        ("compass-run", "@ --version >/dev/full", 1),
    ],
)
def test_streams_that_take_nothing(program, words, status):
    assert shell(words, program)[0] == status


def test_a_stdout_that_takes_nothing_is_told():
    assert "cannot be written" in shell("@ targets >/dev/full")[1]


def test_folders_that_are_gone_or_no_text(tmp_path):
    (tmp_path / "gone").mkdir()
    status, said = shell("cd gone && rmdir ../gone && @ parse k.py -o -; @ targets", cwd=tmp_path)
    assert status == 0 and "X2_1204" in said
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff")
    Path(odd).mkdir()
    Path(odd, "k.py").write_text(KERNEL)
    status, said = shell("@ build k.py -t X2_1204 && @ inspect k.compass && @ build k.py -o b.bin -t X2_1204", cwd=odd)
    assert status == 0, said


def test_a_report_that_cannot_be_kept_is_told(monkeypatch):
    from compass_core.errors.defects import defect

    monkeypatch.setattr("tempfile.tempdir", "/proc/none")
    told = defect(ZeroDivisionError("oops"), ["compassc", "targets"])
    assert told.exit_code == 70 and "could not be kept" in told.notes[1].message


@pytest.mark.parametrize("room", ["ulimit -f 0", "export TMPDIR=/proc/none"])
def test_nowhere_to_write_to(tmp_path, room):
    (tmp_path / "k.py").write_text(KERNEL)
    status, said = shell(f"{room}; @ build k.py -t X2_1204", cwd=tmp_path)
    assert status in (0, 1) and ("cannot write" in said) == bool(status)


def test_a_cache_that_cannot_be_written_does_not_stop_a_build(tmp_path):
    (tmp_path / "k.py").write_text(KERNEL)
    status, said = shell("COMPASS_CACHE_DIR=/proc/none @ build k.py -t X2_1204", cwd=tmp_path)
    assert status == 0 and said.count("'/proc/none' cannot be written") == 1, said


def test_an_interrupt_in_a_finaliser_is_not_lost():
    program = """
import os, signal, sys, time
from compass_core.errors import boundary

signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the tests may ignore it

class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

def run():
    Late()
    time.sleep(60)

sys.exit(boundary.run(run, ["x"], lambda error: 1, lambda: ((), None)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_a_program_still_gives_back_cycles_of_garbage():
    program = """
import gc, sys
from compass_core.errors import boundary

usual = gc.get_threshold()[0]

class Own:
    gone = 0

    def __init__(self):
        self.own = self

    def __del__(self):
        Own.gone += 1

def run():
    for _ in range(700_000):
        Own()
    print(gc.get_threshold()[0] > usual, Own.gone > 300_000)

sys.exit(boundary.run(run, ["x"], lambda error: 1, lambda: ((), None)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr

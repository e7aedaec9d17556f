"""compass-run --debug: kernels under gdb and lldb, in batch mode."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from compass_core.errors import CompassError
from compass_runtime import Program, cli
from compass_runtime.debug import Debugger, find_debugger
from compassc.driver.build import Request, run_build

KERNEL = """\
from compassc.dsl import script as S


@S.prim_func
def twice(x: S.i32) -> S.i32:
    y = x + x
    return y


@S.prim_func
def mix(a: S.ptr("i32", "global"), b: S.ptr("bf16", "global"), c: S.ptr("u8", "global"), at: S.i32):
    tid = S.get_local_id()
    number = twice(tid + 20)
    va = S.vload(a)
    wanted = va > 2
    vb = S.vload(b)
    vc = S.vload(c)
    S.barrier()
    if tid == 0:
        S.vstore(vc, c, vc > 250)
        S.vstore(vb, b)
        S.vstore(va, a, wanted)
        a[at] = number
    while a[6] == 100:
        a[7] = tid
"""
LINES = {text.strip(): number for number, text in enumerate(KERNEL.splitlines(), 1)}
RESULT = [0, 1, 40, 3, 4, 5, 6, 7]
"""What `a` is in the end, for at=2."""
needs_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
needs_lldb = pytest.mark.skipif(shutil.which("lldb") is None, reason="no lldb")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The folder of the kernel, its aipu.bin and inputs; a is 0 to 7, b is -0.5 to 3.25, c is 0 to 31."""
    folder = tmp_path_factory.mktemp("debug")
    kernel = folder / "kernel.py"
    kernel.write_text(KERNEL)
    run_build(Request(kernel=kernel, output=folder / "aipu.bin", shapes={"a": (8,), "b": (16,), "c": (32,)}))
    np.arange(8, dtype="int32").tofile(folder / "a.bin")
    (np.arange(-2, 14, dtype="float32") / 4).view("uint16")[1::2].tofile(folder / "b.bin")
    np.arange(32, dtype="uint8").tofile(folder / "c.bin")
    return folder


@pytest.fixture
def session(program, tmp_path):
    """Runs compass-run with a script of debugger commands, in another folder; gives (status, stdout, stderr)."""

    def call(debugger, commands, at=2):
        script = tmp_path / "commands"
        script.write_text("\n".join(commands) + "\n")
        arguments = [
            program / "aipu.bin",
            "--inputs",
            ",".join(f"{n}={program / n}.bin" for n in "abc"),
            "--set",
            f"at={at}",
            "--debugger",
            debugger,
            "--debug-commands",
            script,
        ]
        done = subprocess.run(
            [sys.executable, "-c", "from compass_runtime.cli import main; main()", *map(str, arguments)],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, done.stdout, done.stderr

    return call


@needs_gdb
def test_a_session_of_gdb(session, tmp_path):
    last = LINES["a[at] = number"]
    status, out, err = session(
        "gdb",
        [
            "next",
            "step",
            "step",
            "info locals",
            "bt",
            "finish",
            "next",
            "next",
            f"break kernel.py:{last}",
            "tec",
            "continue",
            "p va",
            "p wanted",
            "p vb",
            "p vb[1]",
            "p vc[31]",
            "p a[0]@8",
            "p b[0]@3",
            "p c[0]@3",
            "p number",
            "p va + 1",
            "tec",
            "tec 1",
            "p tid",
            "bt",
            "continue",
        ],
    )
    assert (status, err) == (0, ""), out
    shown = out.splitlines()
    assert shown[0].startswith("mix (") and shown[0].endswith(f"kernel.py:{LINES['tid = S.get_local_id()']}")
    assert shown[1].split("\t") == [str(LINES["tid = S.get_local_id()"]), "    tid = S.get_local_id()"]
    assert shown[2] == f"{LINES['number = twice(tid + 20)']}\t    number = twice(tid + 20)"
    assert shown[3].startswith("mix_twice (x=20)") and shown[4] == f"{LINES['y = x + x']}\t    y = x + x"
    assert shown[5] == f"{LINES['return y']}\t    return y" and shown[6] == "y = 40"
    backtrace = [line for line in shown if line.startswith("#")]
    assert re.fullmatch(r"#0 .*mix_twice.*kernel.py:7", backtrace[0]) and re.fullmatch(r"#1 .*mix .*:13", backtrace[1])
    values = dict(re.findall(r"^\$(\d+) = (.*)$", out, re.MULTILINE))
    quarters = ["-0.5", "-0.25", "0", *(f"{n / 4:g}" for n in range(1, 14))]
    assert [values[str(n)] for n in range(2, 12)] == [
        "int32x8 {0, 1, 2, 3, 4, 5, 6, 7}",
        "boolx8 {0, 0, 0, 1, 1, 1, 1, 1}",
        f"bfloat16x16 {{{', '.join(quarters)}}}",
        "-0.25",
        "31",
        "{0, 1, 2, 3, 4, 5, 6, 7}",
        "{-0.5, -0.25, 0}",
        "{0, 1, 2}",
        "40",
        "int32x8 {1, 2, 3, 4, 5, 6, 7, 8}",
    ]
    assert values["12"] == "1", "tec 1 selects that TEC's kernel frame, wherever it waits"
    assert re.search(rf"^\* TEC 0  \S*kernel.py:{last}$", out, re.MULTILINE) and re.search(
        r"^  TEC 3  ", out, re.MULTILINE
    )
    assert "exited normally" in out and out.index("exited normally") < out.index("output0.npy")
    assert np.load(tmp_path / "output0.npy").tolist() == RESULT


@needs_gdb
def test_stepping_stays_on_one_tec(session):
    """Others stand still, though they would come to a breakpoint first; at a barrier they run, and the step ends here."""
    where = "python print('on', gdb.selected_thread().name, gdb.selected_frame().find_sal().line)"
    steps = ["next", where] * 4
    commands = [f"break kernel.py:{LINES['va = S.vload(a)']}", *steps, "delete", *["next", where] * 3, "continue"]
    status, out, err = session("gdb", commands)
    assert status == 0, err
    seen = [line for line in out.splitlines() if line.startswith("on ")]
    assert len(seen) == 7 and {line.rpartition(" ")[0] for line in seen} == {"on TEC 0"}, out
    lines = [int(line.rpartition(" ")[2]) for line in seen]
    assert lines == sorted(lines) and lines[-1] > LINES["S.barrier()"]


@needs_lldb
def test_a_session_of_lldb(session, tmp_path):
    first, last = LINES["tid = S.get_local_id()"], LINES["a[at] = number"]
    status, out, err = session(
        "lldb",
        [
            "frame variable --no-args",
            f"breakpoint set --file kernel.py --line {last}",
            "continue",
            "frame variable va wanted vb number",
            "parray 4 a",
            "p va + 1",
            "continue",
        ],
    )
    assert status == 0, out + err
    assert f"kernel.py:{first}:" in out and f"-> {first}" in out
    for shown in (
        "(int8) va = (0, 1, 2, 3, 4, 5, 6, 7)",
        "(int) number = 40",
        "(1, 2, 3, 4, 5, 6, 7, 8)",
        "(bool8) wanted = (0, 0, 0, -1, -1, -1, -1, -1)",
        "(bf1616) vb = (48896, 48768, 0, 16000,",
    ):
        assert shown in out
    assert np.load(tmp_path / "output0.npy").tolist() == RESULT


@needs_gdb
def test_a_fault_stops_in_the_kernel_and_is_reported(session):
    status, out, err = session("gdb", ["continue", "bt 1", "continue"], at=-70000)
    line = LINES["a[at] = number"]
    assert status == 1 and "SIGSEGV" in out and f"kernel.py:{line}\n{line}\t        a[at] = number" in out
    assert "[kernel-segv]" in err and f"kernel.py:{line}: error: TEC 0 accessed" in err


@needs_gdb
def test_a_kernel_without_end_ends_with_its_debugger(session, tmp_path):
    status, out, err = session(
        "gdb", ["python print('worker', gdb.selected_inferior().pid)", "set var a[6] = 100", "next", "bogus"]
    )
    assert status == 1 and "[debugger-left]" in err and "bogus" in err
    (worker,) = re.findall(r"^worker (\d+)$", out, re.MULTILINE)
    assert not Path("/proc", worker).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["commands"]


@needs_gdb
def test_other_tecs_wait_for_the_first_stop(session):
    """A breakpoint set at the first stop is reached by every TEC."""
    stops = [f"break kernel.py:{LINES['va = S.vload(a)']}", *["continue"] * 4, "delete", "continue"]
    status, out, _ = session("gdb", stops)
    assert status == 0 and sorted(re.findall(r'"TEC (\d)" hit Breakpoint', out)) == ["0", "1", "2", "3"]


def test_lldb_gets_a_language_and_types_that_it_reads(program):
    prepared = Debugger(Path("lldb"), "lldb").prepared(Program.load(program / "aipu.bin"))
    (unit,) = ELFFile(io.BytesIO(prepared.code.elf)).get_dwarf_info().iter_CUs()
    assert unit.get_top_DIE().attributes["DW_AT_language"].value == 0x0C
    types = {
        die.attributes["DW_AT_name"].value: die.attributes["DW_AT_encoding"].value
        for die in unit.iter_DIEs()
        if die.tag == "DW_TAG_base_type"
    }
    assert (types[b"__bf16"], types[b"int"]) == (7, 5)


def run_here(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main([str(a) for a in arguments])
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("wish", [(), ("--debugger", "gdb"), ("--debugger", "/nowhere/lldb-99")])
def test_no_debugger(program, tmp_path, monkeypatch, capsys, wish):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, err = run_here(capsys, program / "aipu.bin", "--debug", *wish)
    assert status == 3 and "[no-debugger]" in err and "install gdb or lldb" in err


@pytest.mark.parametrize("option", [("--schedule", "seed=1"), ("--timeout", "5"), ("--repeat", "2")])
def test_options_that_need_an_undisturbed_run(program, capsys, option):
    status, err = run_here(capsys, program / "aipu.bin", "--debug", *option)
    assert status == 2 and f"--debug does not go with {option[0]}" in err


def test_which_debugger(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("lldb", "gdb", "arm-gdb"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
        wish = name if name == "arm-gdb" else None
        assert find_debugger(wish) == Debugger(tmp_path / name, "lldb" if name == "lldb" else "gdb")
    with pytest.raises(CompassError, match="neither a gdb nor an lldb") as caught:
        find_debugger("vi")
    assert caught.value.code == "bad-debugger"


def test_a_debugger_that_does_not_attach(program, tmp_path, capfd, monkeypatch):
    """Its end is the end of the run; nothing hangs and nothing is written."""
    monkeypatch.chdir(tmp_path)
    fake = tmp_path / "gdb"
    fake.write_text("#!/bin/sh\necho not today\nexit 4\n")
    fake.chmod(0o755)
    inputs = ",".join(f"{n}={program / n}.bin" for n in "abc")
    with pytest.raises(SystemExit) as ended:
        cli.main([str(program / "aipu.bin"), "--inputs", inputs, "--set", "at=2", "--debugger", str(fake)])
    out, err = capfd.readouterr()
    assert (ended.value.code, out) == (1, "not today\n") and "[debugger-left]" in err
    assert [path.name for path in tmp_path.iterdir()] == ["gdb"]

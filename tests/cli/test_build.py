"""The whole chain on the seed kernel: one command, or one command per stage with the same result."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import yaml

KERNEL = """\
import numpy as np

import helper
from compassc.dsl import script as S

TABLE = np.load("table.npy")


@S.prim_func
def vadd(a: S.ptr("int32", "global"), b: S.ptr("int32", "global")):
    va = S.vload(a)
    vb = S.vadd(va, helper.ONE)
    S.vstore(vb, b)
"""
OUTPUTS = {
    "build": "aipu.bin",
    "parse": "vadd.ir.txt",
    "lower": "vadd.lowered.txt",
    "legalize": "vadd.legal.txt",
    "codegen": "vadd.cl",
    "cc": "vadd.o",
    "gbuild": "aipu.bin",
}
STAGE_FILES = [".ir.txt", ".lowered.txt", ".legal.txt", ".cl", ".cl.map", ".params.json", ".o"]


@pytest.fixture(autouse=True)
def kernel(tmp_path, monkeypatch, tmp_path_factory):
    """kernel.py with a module and a data file, in the current folder; a cache shared by all tests of the session."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    Path("helper.py").write_text("ONE = 1\n")
    np.save("table.npy", np.arange(3))
    path = Path("kernel.py")
    path.write_text(KERNEL)
    yield path
    sys.modules.pop("helper", None)


def test_build_makes_the_container_and_every_stage_file(compassc):
    done = compassc("build", "kernel.py", "-t", "X2_1204")
    assert (done.status, done.out, done.err) == (0, "", "aipu.bin\n")
    for suffix in STAGE_FILES:
        assert Path(f"kernel.compass/vadd{suffix}").is_file()
    record = yaml.safe_load(Path("kernel.compass/build.yaml").read_text())
    assert (record["entry"], record["target"], record["kernel"]) == ("vadd", "X2_1204", "kernel.py")
    assert [stage["name"] for stage in record["stages"]] == ["parse", "lower", "legalize", "codegen", "cc", "gbuild"]
    for stage in record["stages"]:
        assert hashlib.sha256(Path(stage["output"]).read_bytes()).hexdigest() == stage["sha256"]
        assert stage["seconds"] > 0
    assert [(p["name"], p["role"], p["shape"]) for p in record["parameters"]] == [
        ("a", "input", [8]),
        ("b", "output", [8]),
    ]


def test_stages_by_hand_make_the_same_files(compassc):
    assert compassc("build", "kernel.py").status == 0
    built = {path.name: path.read_bytes() for path in Path("kernel.compass").iterdir()}
    container = Path("aipu.bin").read_bytes()
    Path("kernel.compass").rename("by build")
    Path("aipu.bin").unlink()
    for command in (
        ["parse", "kernel.py"],
        ["lower", "kernel.compass/vadd.ir.txt"],
        ["legalize", "kernel.compass/vadd.lowered.txt"],
        ["codegen", "kernel.compass/vadd.legal.txt"],
        ["cc", "kernel.compass/vadd.cl"],
        ["gbuild", "kernel.compass/vadd.o"],
    ):
        done = compassc(*command)
        assert (done.status, done.out) == (0, ""), done.err
        assert Path(done.err.strip()).is_file()
    for suffix in STAGE_FILES:
        assert Path(f"kernel.compass/vadd{suffix}").read_bytes() == built[f"vadd{suffix}"], suffix
    assert Path("aipu.bin").read_bytes() == container


def test_stages_in_a_pipe_print_what_build_prints(compassc):
    wanted = compassc("build", "kernel.py", "--stop-after", "codegen", "-o", "-")
    parsed = compassc("parse", "kernel.py", "-o", "-")
    lowered = compassc("lower", "-", stdin=parsed.out)
    legalised = compassc("legalize", "-", stdin=lowered.out)
    printed = compassc("codegen", "-", stdin=legalised.out)
    assert printed.out == wanted.out
    assert wanted.out.startswith("#include <compass/dsl.h>\n")
    assert wanted.err == parsed.err == lowered.err == legalised.err == printed.err == ""
    assert {path.name for path in Path().iterdir()} <= {"kernel.py", "helper.py", "table.npy", "__pycache__"}


@pytest.mark.parametrize(
    ("stage", "suffix"),
    [("parse", ".ir.txt"), ("lower", ".lowered.txt"), ("legalize", ".legal.txt"), ("codegen", ".cl")],
)
def test_stop_after_ends_there(compassc, stage, suffix):
    done = compassc("build", "kernel.py", "--stop-after", stage)
    assert (done.status, done.err) == (0, f"kernel.compass/vadd{suffix}\n")
    assert not Path("aipu.bin").exists()
    assert compassc("build", "kernel.py", "--stop-after", stage, "-o", "here.txt").err == "here.txt\n"
    assert Path("here.txt").read_bytes() == Path(f"kernel.compass/vadd{suffix}").read_bytes()


def test_output_decides_where_the_stage_files_go(compassc):
    assert compassc("build", "kernel.py", "-o", "out/x.bin").err == "out/x.bin\n"
    assert Path("out/kernel.compass/build.yaml").is_file()
    assert compassc("build", "kernel.py", "-o", "out/y.bin", "--save-temps-dir", "stages").status == 0
    assert Path("stages/vadd.cl").is_file()
    assert Path("out/x.bin").read_bytes() == Path("out/y.bin").read_bytes()


def test_depfile_names_the_kernel_its_modules_and_its_data(compassc):
    # a process of its own: its hook for opened files would make all tests slower that follow
    words = ["build", "kernel.py", "-o", "x.bin", "--stop-after", "codegen", "--depfile", "x.d"]
    subprocess.run([sys.executable, "-m", "compassc", *words], check=True)
    rule = Path("x.d").read_text().partition("\n\n")[0].replace("\\\n", " ").split()
    assert rule[:2] == ["x.bin:", "kernel.py"]
    assert set(rule[2:]) == {"helper.py", "table.npy"}


def test_dumps_go_to_stderr_and_files_and_survive_a_cache_hit(compassc):
    args = ["build", "kernel.py", "--print-after", "Simplify", "--dump-dir", "dumps", "--time-passes"]
    first, second = compassc(*args), compassc(*args)
    for done in (first, second):
        assert (done.status, done.out) == (0, "")
        assert "IR after Simplify" in done.err
        assert "total" in done.err
    names = sorted(path.name for path in Path("dumps").iterdir())
    assert names[0] == "00-input.txt"
    assert [int(name[:2]) for name in names] == list(range(len(names)))
    assert (Path("dumps") / names[-1]).read_text().startswith("# compassc IR")


def test_the_printed_pipeline_is_what_passes_takes(compassc):
    text = compassc("build", "--print-pipeline").out.strip()
    wanted = compassc("build", "kernel.py", "--stop-after", "codegen", "-o", "-").out
    assert compassc("build", "kernel.py", "--passes", text, "--stop-after", "codegen", "-o", "-").out == wanted
    lower = compassc("lower", "--print-pipeline").out.strip()
    parsed = compassc("parse", "kernel.py", "-o", "-").out
    assert compassc("lower", "-", "--passes", lower, stdin=parsed).out == compassc("lower", "-", stdin=parsed).out


def test_passes_replaces_the_pipeline_of_each_stage(compassc):
    assert compassc("build", "kernel.py", "--passes", "legalize:", "--stop-after", "legalize").status == 0
    lowered, legalised = (Path(f"kernel.compass/vadd.{stage}.txt").read_text() for stage in ("lowered", "legal"))
    assert legalised.partition("# interface")[0] == lowered
    done = compassc(
        "legalize", "kernel.compass/vadd.lowered.txt", "--passes", "ReviseParamR,LowerPred", "--time-passes"
    )
    assert done.status == 0 and re.findall("[A-Z]\\w{3,}", done.err) == ["AssignPassthru", "LowerPredicates"]


def test_codegen_wants_legalised_ir(compassc):
    assert compassc("build", "kernel.py", "--stop-after", "legalize").status == 0
    done = compassc("codegen", "kernel.compass/vadd.lowered.txt")
    assert done.status == 1 and "compassc legalize kernel.compass/vadd.lowered.txt" in done.err
    path = Path("kernel.compass/vadd.legal.txt")
    text = path.read_text()
    line = text[: text.index('"role"')].count("\n") + 1
    for damaged, where in (
        (text.replace('"role": "input"', '"role": 1'), line - 2),
        (text.replace('"role":', '"role"'), line),
    ):
        path.write_text(damaged)
        done = compassc("codegen", str(path))
        assert done.status == 1 and f"{path}:{where}:" in done.err and "[bad-params]" in done.err


def test_a_dry_run_ends_with_the_clang_command(compassc):
    done = compassc("build", "kernel.py", "--dry-run")
    assert (done.status, done.err) == (0, "")
    subprocess.run(done.out, shell=True, check=True)
    assert Path("kernel.compass/vadd.o").is_file()
    assert not Path("aipu.bin").exists()


def test_an_unknown_pass_to_disable_is_a_usage_error(compassc):
    done = compassc("build", "kernel.py", "--disable-pass", "Simplfy")
    assert (done.status, done.out) == (2, "")
    assert "did you mean 'Simplify'?" in done.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("va, helper.ONE", "va, other"), "other"),
        (("S.vadd(", "S.vad("), "vad"),
        (("TABLE = ", "TABLE == "), "TABLE"),
        (("ONE)", "ONE"), ""),
    ],
)
def test_a_mistake_in_the_kernel_is_shown_at_its_line(compassc, kernel, change, message):
    kernel.write_text(KERNEL.replace(*change))
    done = compassc("build", "kernel.py")
    assert (done.status, done.out) == (1, "")
    assert "kernel.py:" in done.err.splitlines()[0]
    assert message in done.err
    assert "Traceback" not in done.err
    assert not Path("aipu.bin").exists()


def test_several_kernels_need_a_choice(compassc, kernel):
    one, other = (KERNEL.replace("def vadd", f"def {name}") for name in ("one", "other"))
    kernel.write_text(one + other[other.index("\n@S") :])
    done = compassc("build", "kernel.py")
    assert done.status == 1
    assert "one, other" in done.err
    assert compassc("build", "kernel.py", "-k", "other", "--stop-after", "parse").err == "kernel.compass/other.ir.txt\n"


def test_a_pass_that_breaks_leaves_what_reruns_it(compassc, monkeypatch, tmp_path):
    from compassc import pass_manager

    def fail(module):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(pass_manager.load_pass("Simplify"), "run", fail)
    done = compassc("build", "kernel.py")
    assert (done.status, done.out) == (70, "")
    assert "pass Simplify" in done.err
    rerun = shlex.split(done.err.split("`")[1])
    again = compassc(*rerun[1:])
    assert again.status == 70
    assert "ZeroDivisionError: oops" in again.err
    (report, *_) = sorted(tmp_path.glob("compassc-report-*/kernel.py"))
    assert report.read_text() == KERNEL


def test_inspect_shows_every_file_of_a_build(compassc):
    assert compassc("build", "kernel.py").status == 0
    for path in ["aipu.bin", "kernel.compass", *sorted(Path("kernel.compass").iterdir())]:
        done = compassc("inspect", path)
        assert (done.status, done.err) == (0, ""), path
        assert "---" in done.out
    entries = compassc("inspect", "aipu.bin").out.splitlines()[-1].split()
    assert entries == ["0x40", "__compass_entry_vadd", "00"]


def test_builds_in_parallel_do_not_disturb_each_other():
    def start(number: int) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-m", "compassc", "build", "kernel.py", "-o", f"{number}/a.bin"])

    assert [process.wait() for process in [start(0), start(1), start(2)]] == [0, 0, 0]
    assert Path("0/a.bin").read_bytes() == Path("1/a.bin").read_bytes() == Path("2/a.bin").read_bytes()


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_go_through_links_and_into_what_is_no_file(compassc, kernel, name):
    """Neither a link nor a pipe is replaced, and what comes out of a pipe is what lies in a file."""
    assert compassc("build", "kernel.py").status == 0
    stages = [
        "kernel.py",
        *(f"kernel.compass/vadd{suffix}" for suffix in (".ir.txt", ".lowered.txt", ".legal.txt", ".cl", ".o")),
    ]
    source = stages[max(0, list(OUTPUTS).index(name) - 1)]
    Path("far").mkdir()
    Path("link").symlink_to("far/result")
    assert compassc(name, source, "-o", "link").status == 0
    assert Path("link").is_symlink() and Path("far/result").is_file()
    os.mkfifo("pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append(Path("pipe").read_bytes()))
    reader.start()
    before = {path.name for path in Path().iterdir()}
    done = compassc(name, source, "-o", "pipe")
    assert (done.status, done.err) == (0, "")
    reader.join()
    assert Path("pipe").is_fifo() and {path.name for path in Path().iterdir()} == before
    assert found == [compassc_bytes(name, source)]


def compassc_bytes(name: str, source: str) -> bytes:
    """What the command writes to stdout."""
    command = [sys.executable, "-m", "compassc", name, source, "-o", "-"]
    return subprocess.run(command, capture_output=True, check=True).stdout


@pytest.mark.parametrize("kind", ["obj", "pch", "cc-log"])
def test_damaged_entries_of_the_cache_are_made_anew(compassc, kernel, monkeypatch, tmp_path, kind):
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "own"))
    assert compassc("build", "kernel.py").status == 0
    made = Path("kernel.compass/vadd.o").read_bytes()
    for damage in (lambda data: data[: len(data) // 2], lambda data: data[:-1] + bytes([data[-1] ^ 1])):
        entries = [path for path in (tmp_path / "own" / kind).glob("*/*") if path.suffix != ".sum"]
        assert entries
        for path in entries:
            path.write_bytes(damage(path.read_bytes() or b"x"))
        if kind == "pch":
            shutil.rmtree(tmp_path / "own" / "obj")
        done = compassc("build", "kernel.py")
        assert done.status == 0, done.err
        assert Path("kernel.compass/vadd.o").read_bytes() == made


def test_a_kernel_is_built_without_numpy():
    program = """
import sys
from compassc.cli import errors
from compassc.cli.main import cli

status = errors.run(cli, ["build", "plain.py", "-t", "X2_1204"])
print(status, [name for name in ("numpy", "compassc.te", "yaml") if name in sys.modules])
"""
    Path("plain.py").write_text(
        "from compassc.dsl import script as S\n\n\n@S.prim_func\n"
        'def plain(a: S.ptr("i32", "global")):\n    S.vstore(S.vload(a) + 1, a)\n'
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "0 []\n", done.stderr

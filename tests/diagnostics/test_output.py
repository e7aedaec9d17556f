"""Errors as text, in colour, as JSON; a defect of the compiler; exit statuses."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compass_core.errors import CompassError, ErrorGroup, Finding, Note, Span
from compass_core.errors.rendering import colored, json_lines, text

BAD = """from compassc.dsl import script as S


@S.prim_func
def g(p: S.ptr("i32", "global")):
    p[0] = missing


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    g(a)
    a[0] = a[1.5]
"""
WARNS = """from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    t = n + 1
    a[0] = n
"""


@pytest.fixture(autouse=True)
def _reports_go_to_the_tests_own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "kernel.py"
        path.write_text(content, encoding="utf-8")
        return path

    return write


def test_json_has_one_object_per_error(compassc, file):
    file(BAD)
    done = compassc("parse", "kernel.py", "--error-format", "json")
    first, second = map(json.loads, done.err.splitlines())
    assert done.status == 1 and done.out == ""
    assert (first["code"], first["severity"], first["file"]) == ("undefined", "error", "kernel.py")
    assert (first["line"], first["column"], first["end_line"], first["end_column"]) == (6, 12, 6, 19)
    assert first["notes"][-1]["line"] == 11 and "g()" in first["notes"][-1]["message"]
    assert second["code"] == "index" and second["help"]


def test_json_by_switch_and_for_usage_errors(compassc, file, monkeypatch):
    file(BAD)
    assert json.loads(compassc("parse", "kernel.py", "--nothing", "--error-format=json").err)["code"] == "usage"
    monkeypatch.setenv("COMPASS_ERROR_FORMAT", "json")
    assert len(compassc("check", "kernel.py").err.splitlines()) == 2


def test_compass_run_answers_the_same_way(tmp_path):
    program = "from compass_runtime.cli import main; main()"
    run = [sys.executable, "-c", program, str(tmp_path / "no.bin")]
    done = subprocess.run([*run, "--error-format", "json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and json.loads(done.stderr)["code"] == "open-file-fail"
    done = subprocess.run([*run, "--color", "always"], capture_output=True, text=True, check=False)
    assert "\x1b[" in done.stderr
    done = subprocess.run([*run, "--nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "[usage]" in done.stderr and "Traceback" not in done.stderr


def test_check_exit_status(compassc, file):
    file(WARNS)
    done = compassc("check", "kernel.py")
    assert done.status == 0 and "warning: the variable 't' is never used [unused-variable]" in done.err
    assert compassc("check", "kernel.py", "--strict").status == 1
    file(BAD)
    done = compassc("check", "kernel.py")
    assert done.status == 1 and done.err.rstrip().endswith("2 errors generated.")
    file(WARNS.replace("t = n + 1\n    ", ""))
    done = compassc("check", "kernel.py", "-v")
    assert done.status == 0 and "nothing found" in done.err


def test_check_reports_a_comparison_meant_as_assignment(compassc, file):
    file(WARNS.replace("t = n + 1", "a[1] == n"))
    done = compassc("check", "kernel.py")
    assert done.status == 0 and "kernel.py:6:5: warning: the value of this line is not used [unused-result]" in done.err
    assert "`=`" in done.err


def test_check_looks_at_every_kernel_of_the_file(compassc, file):
    file(WARNS + WARNS.partition("\n\n\n")[2].replace("def k", "def other").replace("t =", "s ="))
    done = compassc("check", "kernel.py")
    assert "'t'" in done.err and "'s'" in done.err
    assert "'s'" not in compassc("check", "kernel.py", "-k", "k").err


@pytest.mark.parametrize("words", [("build",), ("build", "--stop-after", "parse"), ("parse",)])
def test_what_the_system_refuses_is_no_defect(compassc, file, tmp_path, words):
    file(WARNS)
    (tmp_path / "taken").write_text("")
    done = compassc(*words, "kernel.py", "-o", "taken/out")
    assert done.status == 1 and "taken" in done.err and "[unwritable]" in done.err, done.err


@pytest.mark.parametrize("where", ["compassc.passes.simplify.run", "compassc.codegen.emit"])
def test_a_defect_of_the_compiler_asks_for_a_report(compassc, file, monkeypatch, where):
    def fail(*_):
        raise ZeroDivisionError("oops")

    file(WARNS)
    monkeypatch.setattr(where, fail)
    done = compassc("build", "kernel.py", "--stop-after", "codegen")
    assert done.status == 70 and "Traceback" not in done.err and "report it" in done.err
    folder = done.err.partition("see it again is in ")[2].partition("\n")[0]
    found = {path.name for path in Path(folder).rglob("*")}
    assert {"kernel.py", "traceback.txt", "versions.txt", "k.ir.txt"} <= found
    assert ("before.ir.txt" in found) == ("simplify" in where)
    done = compassc("build", "kernel.py", "--stop-after", "codegen", "--error-format", "json")
    assert done.status == 70 and json.loads(done.err)["code"] == "internal"


@pytest.mark.parametrize("command", ["check", "parse", "build", "lower", "legalize", "codegen"])
def test_a_defect_is_reported_by_every_command(compassc, file, monkeypatch, command):
    file(WARNS)
    assert compassc("parse", "kernel.py", "-o", "k.ir.txt").status == 0
    assert compassc("lower", "k.ir.txt", "-o", "k.lowered.txt").status == 0
    assert compassc("legalize", "k.lowered.txt", "-o", "k.legal.txt").status == 0
    given = {"lower": "k.ir.txt", "legalize": "k.lowered.txt", "codegen": "k.legal.txt"}.get(command, "kernel.py")
    where = {
        "parse": "compassc.language.parser.function.FunctionParser.stmt_Assign",
        "legalize": "compassc.passes.expand_div_mod.run",
        "codegen": "compassc.codegen.emit",
    }.get(command, "compassc.passes.simplify.run")
    monkeypatch.setattr(where, lambda *_: 1 // 0)
    done = compassc(command, given, *(["-o", "-"] if command in ("lower", "legalize", "codegen") else []))
    assert done.status == 70
    assert "this is a defect of compassc" in done.err and "Traceback" not in done.err
    folder = Path(done.err.partition("see it again is in ")[2].partition("\n")[0])
    assert (folder / given).is_file()
    assert "ZeroDivisionError" in (folder / "traceback.txt").read_text()


def test_a_defect_of_compass_run(tmp_path, monkeypatch, capsys):
    from compass_runtime import cli

    (tmp_path / "aipu.bin").write_bytes(b"content")
    monkeypatch.setattr(cli, "run", lambda _options: 1 // 0)
    with pytest.raises(SystemExit) as ended:
        cli.main([str(tmp_path / "aipu.bin")])
    err = capsys.readouterr().err
    assert ended.value.code == 70
    assert "this is a defect of compass-run" in err
    folder = Path(err.partition("see it again is in ")[2].partition("\n")[0])
    assert (folder / "aipu.bin").read_bytes() == b"content"


@pytest.mark.parametrize("method", ["lower", "build", "gen_op_lib"])
def test_a_defect_in_the_python_api(file, monkeypatch, tmp_path, method):
    from compass_core.errors.defects import InternalError
    from compassc.dsl import BuildManager, load_kernels

    kernel = load_kernels(file(WARNS)).entry(None)
    monkeypatch.setattr("compassc.passes.simplify.run", lambda *_: 1 // 0)
    with pytest.raises(InternalError, match="in pass Simplify: ZeroDivisionError") as caught:
        getattr(BuildManager(output_dir=tmp_path), method)(kernel)
    assert caught.value.exit_code == 70 and "report it" in caught.value.help
    folder = Path(caught.value.notes[1].message.rpartition(" ")[2])
    assert (folder / "before.ir.txt").is_file() and (folder / "kernel.py").is_file()


def test_the_report_of_a_build_in_memory_has_the_texts_of_its_stages(file, monkeypatch):
    from compass_core.errors.defects import InternalError
    from compassc.dsl import BuildManager, load_kernels

    kernel = load_kernels(file(WARNS)).entry(None)
    assert not list(BuildManager().build(kernel).path.parent.rglob("*.lowered.txt"))
    monkeypatch.setattr("compassc.codegen.emit", lambda *_: 1 // 0)
    with pytest.raises(InternalError) as caught:
        BuildManager().build(kernel)
    folder = Path(caught.value.notes[1].message.rpartition(" ")[2])
    assert {path.name for path in folder.rglob("k.*")} == {"k.lowered.txt", "k.legal.txt"}


def test_an_uncaught_error_of_the_python_api_shows_all_there_is_to_see(file):
    path = file(BAD + '\n\nfrom compassc.dsl import BuildManager\n\nBuildManager("X2_1204").build(k)\n')
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert "undefined variable 'missing'" in done.stderr and "2 errors" in done.stderr
    if sys.version_info >= (3, 11):  # which shows notes
        assert "help: convert" in done.stderr and "2 errors generated." in done.stderr
    frames = re.findall(r'File "(.*?)", line', done.stderr)
    assert len(frames) == 2 and frames[0] == str(path)


def test_a_group_of_errors_as_text():
    group = ErrorGroup(
        [CompassError("one", Span("k.py", 1, 2)), ErrorGroup([CompassError("two"), CompassError("three")])]
    )
    assert str(group).splitlines() == [
        "3 errors",
        "k.py:1:2: error: one",
        "error: two",
        "error: three",
        "3 errors generated.",
    ]


def test_long_spans_show_their_ends(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("".join(f"line{i}\n" for i in range(1, 9)))
    shown = text(CompassError("wrong", Span(str(path), 2, 3, 7, 4)))
    assert shown.splitlines()[1:] == [
        "  line2",
        "    ^~~",
        "  line3",
        "  ~~~~~",
        "  ...",
        "  line7",
        "  ~~~",
    ]


def test_tabs_and_wide_characters_align(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("\tx = '日本' + y\n", encoding="utf-8")
    shown = text(CompassError("wrong", Span(str(path), 1, 13, 1, 14)))
    assert shown.splitlines()[2] == "  \t" + 13 * " " + "^"


def test_groups_count_errors_and_warnings():
    group = ErrorGroup([CompassError("a"), Finding("b"), Finding("c")])
    assert text(group).splitlines()[-1] == "1 error and 2 warnings generated."
    assert len(json_lines(group).splitlines()) == 3


def test_colours_change_nothing_but_colours():
    import click

    plain = text(CompassError("wrong", code="x", notes=(Note("why"),), help="do"))
    assert click.unstyle(colored(plain)) == plain and colored(plain) != plain


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        (lambda file: Span(file, 1), "  " + "x" * 200 + "..."),
        (lambda file: Span(file, 1, 5000, 1, 5003), "  ..." + "x" * 50 + "bad" + "x" * 147 + "..."),
        (lambda file: Span(file, 1, 9990, 1, 9999), "  ..." + "x" * 61),
    ],
)
def test_of_long_lines_the_part_at_the_place_is_shown(tmp_path, span, shown):
    line = "x" * 4999 + "bad" + "x" * 4998
    (tmp_path / "long.txt").write_text(line)
    place = span(str(tmp_path / "long.txt"))
    _, source, carets = text(CompassError("wrong", place)).split("\n")
    assert source == shown
    if place.col:
        marked = source[carets.index("^") : len(carets)]
        assert marked == line[place.col - 1 : place.end_col - 1]
    assert len(carets) <= len(source)

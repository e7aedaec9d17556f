"""compass-run: files in, files out, and one-screen errors."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from runtime_kernels import pointer

from compass_runtime import cli


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(8, dtype=np.int32).reshape(2, 4))
    np.save("gt.npy", np.arange(8, dtype=np.int32) + 1)
    return tmp_path


@pytest.fixture
def run(here, capsys):
    """Runs compass-run; gives (status, stdout, stderr)."""

    def call(*args):
        with pytest.raises(SystemExit) as ended:
            cli.main([str(a) for a in args])
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def leftovers(folder):
    return sorted(p.name for p in folder.iterdir() if p.name not in ("a.npy", "gt.npy"))


def test_the_plain_line(run, here, add_fixed):
    status, out, err = run(add_fixed, "--inputs", "a.npy")
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split() == ["name", "role", "dtype", "shape", "bytes", "file"]
    assert out.splitlines()[1].split() == ["a", "input", "int32", "2x4", "32", "a.npy"]
    assert out.splitlines()[2].split() == ["b", "output", "int32", "2x4", "32", "output0.npy"]
    np.testing.assert_array_equal(np.load("output0.npy"), np.arange(8, dtype=np.int32).reshape(2, 4) + 1)
    assert leftovers(here) == ["output0.npy"]


@pytest.mark.parametrize(
    "words",
    [
        ("-o", "a.npy"),
        ("-o", "linked.npy"),
        ("-o", "gt.npy", "--expect", "gt.npy"),
        ("--profile-html", "a.npy"),
        ("--trace", "p.bin"),
        ("--trace", "new", "--profile-html", "new"),
        ("--profile-html", "new.npy", "-o", "new.npy"),
    ],
)
def test_no_file_is_written_that_is_read_or_written_for_something_else(run, here, add_fixed, words):
    os.symlink("a.npy", "linked.npy")
    (here / "p.bin").write_bytes(add_fixed.read_bytes())
    before = {p: p.read_bytes() for p in here.iterdir()}
    status, out, err = run("p.bin", "--inputs", "a.npy", *words)
    assert (status, out) == (2, "") and "[output-is-input]" in err
    assert {p: p.read_bytes() for p in here.iterdir()} == before


def test_an_empty_text_names_no_input(run, add_fixed):
    status, out, err = run(add_fixed, "--inputs", "")
    assert (status, out) == (1, "") and "no file for the input a" in err


@pytest.mark.parametrize("inputs", ["a.npy", "a=a.npy", "a.bin", "a=a.bin"])
def test_inputs_in_order_by_name_and_raw(run, add_fixed, inputs):
    np.load("a.npy").tofile("a.bin")
    assert run(add_fixed, "--inputs", inputs, "--expect", "gt.npy")[0] == 0


@pytest.mark.parametrize(
    ("options", "file"),
    [(["-o", "c.npy"], "c.npy"), (["--output", "b=c.bin"], "c.bin"), (["--outputs-dir", "d/e"], "d/e/output0.npy")],
)
def test_where_outputs_go(run, here, add_fixed, options, file):
    assert run(add_fixed, "--inputs", "a.npy", *options)[0] == 0
    path = here / file
    got = np.load(path) if path.suffix == ".npy" else np.fromfile(path, np.int32)
    assert got.reshape(-1).tolist() == list(range(1, 9))


def test_open_sizes_and_scalars(run, add):
    status, out, _ = run(add, "--inputs", "a.npy", "--set", "n=0x4", "--shape", "b=2x3", "--json")
    assert status == 0
    data = json.loads(out)
    assert data["scalars"] == {"n": 4}
    assert [t["shape"] for t in data["tensors"]] == [[2, 4], [2, 3]]
    assert np.load("output0.npy").tolist() == [[1, 2, 3], [4, 0, 0]]


def test_expect_reports_a_mismatch(run, here, add_fixed):
    np.save("gt.npy", np.array([1, 2, 3, 4, 50, 6, 7, 9], np.int32).reshape(2, 4))
    status, _, err = run(add_fixed, "--inputs", "a.npy", "--expect", "gt.npy")
    assert status == 1
    assert "'b' differs in 2 of 8 elements" in err
    assert "largest difference 45 at [1, 0]" in err
    assert "at [1, 3]: got 8, expected 9" in err
    assert run(add_fixed, "--inputs", "a.npy", "--expect", "gt.npy", "--atol", "45")[0] == 0
    assert run(add_fixed, "--inputs", "a.npy", "--expect", "b=gt.npy", "--rtol", "0.9")[0] == 0


def test_repeat_shows_engine_times(run, accumulate):
    np.save("v.npy", np.array([1, 2, 3, 4], np.int32))
    status, out, err = run(accumulate, "--inputs", "a=v.npy,sum=v.npy", "--repeat", "3", "--expect", "old=v.npy")
    assert (status, err) == (0, "")  # every run starts from the same content
    assert "engine time of 3 runs: min" in out


def test_in_outputs_by_position_and_a_note_when_left_out(run, accumulate):
    np.save("v.npy", np.array([1, 2, 3, 4], np.int32))
    assert run(accumulate, "--inputs", "v.npy,v.npy", "--expect", "old=v.npy")[0] == 0
    status, _, err = run(accumulate, "--inputs", "v.npy")
    assert status == 0
    assert "note: 'sum' is also read" in err


def test_bfloat16_files(run, build):
    text = "__kernel void k(__global ushort* a, __global ushort* b) { b[0] = a[0]; b[1] = a[1]; }"
    path = build(
        text, pointer("a", "input", dtype="bfloat16", shape=(2,)), pointer("b", "output", dtype="bfloat16", shape=(2,))
    )
    np.save("x.npy", np.array([1.5, -2], ml_dtypes.bfloat16))
    assert run(path, "--inputs", "x.npy", "--expect", "x.npy")[0] == 0
    assert np.load("output0.npy").view(ml_dtypes.bfloat16).tolist() == [1.5, -2]


def test_what_a_kernel_printed_before_its_fault_is_shown(run, build):
    text = """
    __kernel void k(__global int* b) {
      if (get_local_id(0) == 0) { printf("before\\n"); b[-(1 << 29)] = 1; }
    }
    """
    path = build(text, pointer("b", "output", shape=(1,)), uses_printf=True)
    status, out, err = run(path)
    assert status == 1
    assert "before" in out
    assert "TEC 0" in err
    assert "k.cl:5" in err


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["--inputs", "a.npy,a.npy"], 1, "2 input files, but the kernel takes 1 (a)"),
        ([], 1, "no file for the input a"),
        (["--inputs", "none.npy"], 1, "cannot read 'none.npy'"),
        (["--inputs", "q=a.npy"], 1, "there is no tensor 'q'"),
        (["--inputs", "f.npy"], 1, "elements of type float32, but 'a' is int32"),
        (["--inputs", "small.npy"], 1, "is to have 8 elements"),
        (["--inputs", "odd.bin"], 1, "3 bytes"),
        (["--inputs", "cut.npy"], 1, "damaged"),
        (["--inputs", "text.npy"], 1, "not a .npy file"),
        (["--inputs", "objects.npy"], 1, "Python objects"),
        (["--inputs", "a.npy", "--expect", "small.npy"], 1, "'b' has 8 elements"),
        (["--inputs", "a.npy", "-o", "x.npy,y.npy"], 1, "2 files, but the kernel has 1 output"),
        (["--inputs", "a.npy", "-o", "folder"], 1, "cannot write 'folder'"),
        (["--inputs", "a.npy", "--set", "n"], 2, "not NAME=NUMBER"),
        (["--inputs", "a.npy", "--set", "n=4"], 1, "was fixed to 8"),
        (["--inputs", "a.npy", "--shape", "b=4y4"], 2, "not NAME=SIZExSIZE"),
        (["--inputs", "a.npy", "--nothing"], 2, "--nothing"),
        (["--inputs", "a.npy", "--repeat", "0"], 2, "--repeat"),
    ],
)
def test_errors_name_what_is_wrong_and_write_nothing(run, here, add_fixed, args, status, message):
    np.save("f.npy", np.zeros(8, np.float32))
    np.save("small.npy", np.zeros(2, np.int32))
    np.save("objects.npy", np.array([None]), allow_pickle=True)
    (here / "odd.bin").write_bytes(b"123")
    (here / "cut.npy").write_bytes((here / "a.npy").read_bytes()[:-4])
    (here / "text.npy").write_text("text")
    (here / "folder").mkdir()
    before = leftovers(here)
    got, out, err = run(add_fixed, *args)
    assert (got, out) == (status, "")
    assert message in err
    assert len(err.splitlines()) < 12
    assert leftovers(here) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "too few"),
        (b"\x7fELF" + b"\2" * 60, "EI_CLASS"),
        (b"PK" + bytes(60), "not an aipu.bin"),
        (None, "cannot read"),
    ],
)
def test_foreign_programs(run, here, content, message):
    if content is not None:
        (here / "x.bin").write_bytes(content)
    status, out, err = run("x.bin")
    assert (status, out) == (1, "")
    assert message in err


def test_a_truncated_program(run, here, add_fixed):
    (here / "x.bin").write_bytes(add_fixed.read_bytes()[:-10])
    status, _, err = run("x.bin")
    assert status == 1
    assert "truncated" in err


def test_help_shows_an_example(run):
    status, out, _ = run("--help")
    assert status == 0
    assert "compass-run aipu.bin --inputs" in out


def test_an_internal_error_asks_for_a_report(run, add_fixed, monkeypatch):
    monkeypatch.setattr(cli, "run", lambda options: 1 / 0)
    status, _, err = run(add_fixed)
    assert status == 70
    assert "report it with that folder" in err


def test_profile_prints_tables_and_writes_files(run, here, add_fixed):
    status, out, err = run(
        add_fixed,
        "--inputs",
        "a.npy",
        "--expect",
        "gt.npy",
        "--profile",
        "--profile-html",
        "p/p.html",
        "--trace",
        "t.json",
    )
    assert (status, err) == (0, "") and out.startswith("name") and "as expected: b\n\nk: " in out
    assert "</html>" in (here / "p" / "p.html").read_text() and json.loads((here / "t.json").read_text())["traceEvents"]
    status, out, _ = run(add_fixed, "--inputs", "a.npy", "--profile", "--json")
    assert json.loads(out)["profile"]["total"]["operations"]["scalar_store"] == 8
    status, out, _ = run(add_fixed, "--inputs", "a.npy", "--trace", "t.json")
    assert status == 0 and "cycles" not in out


@pytest.mark.parametrize("other", [["--debug"], ["--schedule", "explore=2"]])
def test_profile_needs_a_run_of_its_own(run, add_fixed, other):
    status, out, err = run(add_fixed, "--inputs", "a.npy", "--profile", *other)
    assert (status, out) == (2, "") and f"--profile does not go with {' '.join(other).split('=')[0]}" in err


def test_profiles_that_cannot_be_written(run, here, add_fixed):
    (here / "file").write_text("")
    status, _, err = run(add_fixed, "--inputs", "a.npy", "--profile-html", "file/p.html")
    assert status == 1 and "cannot write 'file/p.html'" in err


# -------------------------------------------------------------------------------------------------- kinds of files


DATA = np.arange(8, dtype=np.int32).reshape(2, 4)


def _npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    ("arrays", "inputs"),
    [
        ({"a": DATA, "other": DATA[0]}, "in.npz"),
        ({"a": DATA, "other": DATA[0]}, "a=in.npz"),
        ({"x": DATA}, "in.npz"),
        ({"x": DATA, "a": DATA * 2}, "a=in.npz:x"),
        ({"x": DATA, "y": DATA * 2}, "in.npz:x"),
        ({"arr_0": DATA}, "in.npz"),
    ],
)
def test_archives_give_arrays_by_name(run, here, add_fixed, arrays, inputs):
    np.savez("in.npz", **arrays)
    status, _, err = run(add_fixed, "--inputs", inputs, "--expect", "gt.npy")
    assert (status, err) == (0, "")


def test_suffixes_count_whatever_their_case(run, here, add_fixed):
    (here / "A.NPY").write_bytes(_npy(DATA))
    np.savez("B.npz", b=DATA + 1)
    (here / "B.npz").rename(here / "B.NPZ")
    assert run(add_fixed, "--inputs", "A.NPY", "--expect", "B.NPZ", "-o", "C.Npy")[0] == 0
    assert np.load("C.Npy").tolist() == (DATA + 1).tolist()


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.json", "a.np", "a.bin.gz"])
def test_files_of_unknown_kinds_are_taken_when_raw_bytes_are_asked_for(run, here, add_fixed, name):
    (here / name).write_bytes(DATA.tobytes())
    status, out, err = run(add_fixed, "--inputs", name)
    assert (status, out) == (1, "") and "is no tensor [tensor-file]" in err and "--raw" in err
    assert run(add_fixed, "--inputs", name, "--raw", "--expect", "gt.npy")[0] == 0
    status, _, err = run(add_fixed, "--inputs", "a.npy", "-o", f"out-{name}")
    assert status == 1 and "it is not clear what to write" in err
    assert run(add_fixed, "--inputs", "a.npy", "-o", f"out-{name}", "--raw")[0] == 0
    assert (here / f"out-{name}").read_bytes() == (DATA + 1).tobytes()


def test_a_npy_file_under_another_name_is_not_read_as_raw_bytes(run, here, build):
    path = build(
        "__kernel void k(__global int* a, __global int* b) { *b = *a; }",
        pointer("a", "input"),
        pointer("b", "output", shape=(1,)),
    )
    (here / "a.bin").write_bytes(_npy(DATA))
    status, _, err = run(path, "--inputs", "a.bin")
    assert status == 1 and "'a.bin' is a .npy file, but is not called so" in err


def test_stdin_and_stdout(here, add_fixed):
    def run(*args, stdin=b"") -> tuple[int, bytes, str]:
        done = subprocess.run(
            [sys.executable, "-c", "from compass_runtime.cli import main; main()", str(add_fixed), *args],
            input=stdin,
            capture_output=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr.decode()

    status, out, err = run("--inputs", "-", "-o", "-", stdin=_npy(DATA))
    assert (status, out) == (0, _npy(DATA + 1)) and err.startswith("name")
    status, out, _ = run("--inputs", "a=-", "-o", "b=-", "--raw", stdin=DATA.tobytes())
    assert (status, out) == (0, (DATA + 1).tobytes())
    status, _, err = run("--inputs", "-", stdin=DATA.tobytes())
    assert status == 1 and "stdin is no .npy file" in err
    assert run("--inputs", "a.npy", "-o", "-", "--json")[0] == 2
    assert leftovers(here) == []


def test_outputs_go_into_one_archive(run, here, build):
    text = "__kernel void k(__global int* b, __global int* c) { if (get_local_id(0) == 0) { *b = 1; *c = 2; } }"
    path = build(text, pointer("b", "output", shape=(1,)), pointer("c", "output", index=1, shape=(1,)))
    assert run(path, "-o", "b=o.npz,c=o.npz")[0] == 0
    with np.load("o.npz") as found:
        assert {name: found[name].tolist() for name in found.files} == {"b": [1], "c": [2]}
    assert run(path, "--expect", "o.npz")[0] == 0
    status, _, err = run(path, "-o", "b=o.npy,c=o.npy")
    assert status == 1 and "two outputs would go to the same file" in err


def test_outputs_go_through_links_and_into_pipes(run, here, add_fixed):
    (here / "d").mkdir()
    (here / "link.npy").symlink_to("d/real.npy")
    assert run(add_fixed, "--inputs", "a.npy", "-o", "link.npy")[0] == 0
    assert (here / "link.npy").is_symlink() and np.load("d/real.npy").tolist() == (DATA + 1).tolist()
    os.mkfifo("pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((here / "pipe").read_bytes()))
    reader.start()
    assert run(add_fixed, "--inputs", "a.npy", "-o", "pipe")[0] == 0
    reader.join()
    assert found == [(DATA + 1).tobytes()] and (here / "pipe").is_fifo()


def test_inputs_without_an_end_are_refused(run, here, add_fixed):
    (here / "zero.bin").symlink_to("/dev/zero")
    status, _, err = run(add_fixed, "--inputs", "zero.bin")
    assert status == 1 and "it is a device, not a file" in err

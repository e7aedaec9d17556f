"""Functions that give schedules, from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from compassc.te import Trace

FILE = """
from compassc import te, tir, topi
from compassc.dsl import script as S

@te.kernel
def twice(n=100, target=None):
    a = te.placeholder((4, n), "int32", name="a")
    b = te.compute((4, n), lambda i, j: a[i, j] * 2, name="b")
    s = te.create_schedule(b.op)
    if target == "X3P_1304":
        s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    s[b].vectorize(s[b].split(b.op.axis[1], factor=8)[1])
    return s, [a, b]

@te.kernel
def shrunk():
    x = te.placeholder((8, 40), name="x")
    return [x, topi.nn.softmax(x)]

@te.kernel
def doubled():
    a = te.placeholder((4, 96), "int32", name="a")
    b = te.compute((4, 96), lambda i, j: a[i, j] * 2, name="b")
    s = tir.Schedule(te.create_prim_func([a, b]))
    i, j = s.get_loops(s.get_block("b"))
    s.bind(i, "threadIdx.x")
    s.vectorize(s.split(j, [None, 8])[1])
    return s

@S.prim_func
def written(a: S.ptr("int32", "global")):
    a[0] = 1
"""

OPEN = """@te.kernel
def f():
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i], name="b")
    c = te.compute((n,), lambda i: b[i], name="c")
    return te.create_schedule(c), [a, c]
"""


@pytest.fixture
def run(tmp_path, compassc):
    (tmp_path / "k.py").write_text(FILE)

    def command(*words, fails=False):
        done = compassc(*words)
        assert (done.status != 0) is fails, done
        return done.err if fails else done.out

    return command


def test_all_stages_leave_their_files(run, tmp_path):
    run("build", "k.py:twice", "-t", "X2_1204")
    names = {p.name for p in (tmp_path / "k.compass").iterdir()}
    assert {f"twice.{x}" for x in "ir.txt trace.json trace.py lowered.txt legal.txt cl o".split()} <= names
    from compass_runtime.program import Program

    given, found = np.arange(400, dtype="int32").reshape(4, 100), np.zeros((4, 100), "int32")
    Program.load((tmp_path / "aipu.bin").read_bytes()).call([given, found])
    np.testing.assert_array_equal(found, given * 2)
    rows = [line.split() for line in run("inspect", "aipu.bin").splitlines()]
    assert {row[0]: row[-1] for row in rows if row and row[0] in ("a", "b") and "int32" in row} == {
        "a": "4x100",
        "b": "4x100",
    }
    trace = Trace.from_json((tmp_path / "k.compass/twice.trace.json").read_text())
    assert trace.as_python() == (tmp_path / "k.compass/twice.trace.py").read_text()


def test_lower_and_codegen_begin_at_the_file(run):
    assert "def twice(" in run("lower", "k.py:twice", "-o", "-")
    assert "T.tec(0, 4, 1" in run("lower", "k.py:twice", "-t", "X3P_1304", "-o", "-")
    assert "__kernel void shrunk(" in run("codegen", "k.py:shrunk", "-o", "-")
    assert "__kernel void written(" in run("codegen", "k.py:written", "-o", "-")


def test_the_file_says_which_when_it_has_several(run):
    assert "kernels here: twice, shrunk, doubled, written" in run("lower", "k.py", fails=True)
    assert "no kernel 'thrice'" in run("build", "k.py:thrice", fails=True)
    assert "both 'twice' and 'shrunk'" in run("build", "k.py:twice", "-k", "shrunk", fails=True)


def test_other_targets(run, tmp_path):
    assert "int compass_entry(" in run("codegen", "k.py:twice", "-t", "llvm", "-o", "-")
    assert "__global__ void shrunk_kernel(" in run("codegen", "k.py:shrunk", "-t", "cuda", "-o", "-")
    run("build", "k.py:twice", "-t", "llvm -num-cores=1", "-o", "twice.so")
    from compass_runtime import load_module

    given, found = np.arange(400, dtype="int32").reshape(4, 100), np.zeros((4, 100), "int32")
    load_module(tmp_path / "twice.so")(given, found)
    np.testing.assert_array_equal(found, given * 2)
    assert json.loads((tmp_path / "k.compass/twice.trace.json").read_text())
    assert "no llvm form" in run("build", "k.py:written", "-t", "llvm", fails=True)
    assert "no stage 'cc'" in run("build", "k.py:twice", "-t", "llvm", "--stop-after", "cc", fails=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@te.kernel\ndef f(n):\n    return []\n", "need defaults"),
        ("@te.kernel\ndef f():\n    return 3\n", "bad.py:2: error: 'f' gives int"),
        ("@te.kernel\ndef f():\n    return 1 // 0\n", "bad.py:4: error: 'f' failed: ZeroDivisionError: "),
        (
            OPEN,
            "bad.py:2: error: the memory of 'b' has no constant size",
        ),
        ("f = te.kernel(3)\n", "decorates a function, got int"),
    ],
)
def test_what_is_no_kernel(run, tmp_path, text, said):
    (tmp_path / "bad.py").write_text("from compassc import te\n" + text)
    assert said in run("lower", "bad.py", fails=True)


def test_what_becomes_of_the_loops_is_seen_pass_by_pass(run, compassc, tmp_path):
    shown = compassc(
        "lower", "k.py:shrunk", "-o", "low.txt", "--print-after", "InjectDmaCopy", "--print-before", "LoopPartition"
    )
    loops, doubled = shown.err.split("IR before LoopPartition")
    assert "IR after InjectDmaCopy" in loops and "S.dma_copy(" in loops and "scalar_loops=" in loops
    assert "S.async_dma_copy(" in doubled and "scalar_loops=" not in doubled
    assert "T.vectorized" not in (tmp_path / "low.txt").read_text()
    run("parse", "k.py:shrunk", "-o", "shrunk.ir.txt")
    assert "S.dma" not in (tmp_path / "shrunk.ir.txt").read_text()
    assert run("lower", "shrunk.ir.txt", "-o", "-") == (tmp_path / "low.txt").read_text()


@pytest.mark.parametrize("target", ["X2_1204", "llvm -num-cores=1"])
def test_functions_of_blocks_are_taken_too(run, tmp_path, target):
    made = "aipu.bin" if target == "X2_1204" else "doubled.so"
    run("build", "k.py:doubled", "-t", target, "-o", made)
    given, found = np.arange(384, dtype="int32").reshape(4, 96), np.zeros((4, 96), "int32")
    if target == "X2_1204":
        from compass_runtime.program import Program

        Program.load((tmp_path / made).read_bytes()).call([given, found])
    else:
        from compass_runtime import load_module

        load_module(tmp_path / made)(given, found)
    np.testing.assert_array_equal(found, given * 2)
    assert "sch.vectorize(" in (tmp_path / "k.compass/doubled.trace.py").read_text()


@pytest.mark.parametrize(
    ("name", "target", "passes"),
    [
        ("doubled", "X2_1204", ("FlattenNestedBlocks", "LowerThreadBinding", "VectorizeReductions", "FlattenBuffer")),
        ("twice", "X3P_1304", ("LowerThreadBinding", "InjectDoubleBuffer", "FlattenBuffer")),
        ("twice", "llvm", ("FlattenBuffer",)),
        ("doubled", "cuda", ("FlattenNestedBlocks", "LowerFloorDiv", "ThreadSync")),
    ],
)
def test_all_passes_of_schedules_are_shown_and_left_out(run, compassc, name, target, passes):
    command = ("codegen" if target == "cuda" else "lower", f"k.py:{name}", "-t", target, "-o", "low.txt")
    shown = compassc("build", *command[1:-1], "made", "--print-changed").err
    assert [p for p in passes if f"+++ after {p}\n" not in shown] == []
    assert (
        f"+++ after {passes[0]}\n"
        not in compassc("build", *command[1:], "--disable-pass", passes[0], "--print-changed").err
    )


def test_stages_of_schedules_are_replaced(run, compassc):
    text = run("lower", "k.py:doubled", "-o", "-", "--passes", "loops:Simplify/lower:FlattenBuffer")
    assert "T.vectorized(" in text and "T.block(" not in text
    assert "T.block(" in run("lower", "k.py:doubled", "-o", "-", "--passes", "RemoveNoOp")
    assert "are not replaced" in run("lower", "k.py:doubled", "-t", "llvm", "--passes", "lower:Simplify", fails=True)
    assert "expected STAGE:A,B" in run("lower", "k.py:doubled", "--passes", "legalize:LowerTag", fails=True)


def test_what_has_no_program_is_about_the_function(run, tmp_path):
    text = "from compassc import te\n\n" + OPEN.replace('n = te.var("n")', "n = 100000").replace(
        "te.create_schedule(c), [a, c]", "te.create_schedule(c), [a, c]"
    )
    (tmp_path / "large.py").write_text(text)
    err = run("lower", "large.py", "-o", "-", fails=True)
    assert "large.py:3" in err and "the LSRAM of a TEC on X2_1204 has 32,768 bytes" in err

"""Programs on the simulator: arrays in, arrays out, and what goes wrong in between."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from runtime_kernels import ADD, extents, pointer, scalar

from compass_core.errors import CompassError, Span, render
from compass_runtime import Program
from compass_runtime.faults import note_changed_sources


def ints(*values):
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize("target", ["X2_1204", "X2_1204MP3", "X3P_1304", "X3S_1304MP2"])
def test_a_kernel_runs_on_every_family(build, target):
    program = Program.load(build(ADD, pointer("a", "input"), pointer("b", "output"), scalar("n"), target=target))
    assert program.target == target
    a = np.arange(1000, dtype=np.int32)
    job = program.create_job(shapes={"b": (1000,)}, values={"n": 1000}, arrays={"a": a.shape})
    np.testing.assert_array_equal(job.run([a])["b"], a + 1)


def test_metadata(add, add_fixed):
    program = Program.load(add_fixed)
    assert [(t.name, t.dtype.name, t.shape) for t in program.inputs] == [("a", "int32", (2, 4))]
    assert [(t.name, t.in_out) for t in program.outputs] == [("b", False)]
    assert Program.load(add.read_bytes()).inputs[0].shape is None


def test_outputs_have_the_shape_of_the_build(add_fixed):
    out = Program.load(add_fixed).create_job().run({"a": np.zeros((2, 4), np.int32)})["b"]
    assert out.shape == (2, 4)


def test_a_job_runs_again_and_scalars_change(add):
    job = Program.load(add).create_job(shapes={"b": (4,)}, values={"n": 4}, arrays={"a": (4,)})
    a = ints(1, 2, 3, 4)
    assert job.run([a])["b"].tolist() == [2, 3, 4, 5]
    job.set_values({"n": 2})
    assert job.run([a])["b"].tolist() == [2, 3, 0, 0]


def test_call_works_in_place_and_follows_sizes_and_scalars(add):
    program = Program.load(add)
    for size in (1, 5, 3, 5000, 5):
        a, b = np.arange(size, dtype=np.int32), np.full(size, 7, np.int32)
        program.call([a, b, size // 2])
        np.testing.assert_array_equal(b, np.where(np.arange(size) < size // 2, a + 1, 7))


def test_many_sizes_do_not_use_up_the_device(add):
    program = Program.load(add)
    for size in range(1, 40):
        b = np.zeros(size * 100_000, np.int32)
        program.call([b, b.copy(), 1])
    assert len(program.caller._jobs) < 10


def test_outputs_that_are_read_have_initial_content(accumulate):
    job = Program.load(accumulate).create_job()
    a = ints(1, 2, 3, 4)
    assert job.run([a])["sum"].tolist() == [1, 2, 3, 4]
    out = job.run([a], initial={"sum": ints(10, 20, 30, 40)})
    assert (out["sum"].tolist(), out["old"].tolist()) == ([11, 22, 33, 44], [10, 20, 30, 40])
    assert job.run([a])["old"].tolist() == [0, 0, 0, 0]


def test_empty_tensors(add):
    empty = np.zeros(0, np.int32)
    job = Program.load(add).create_job(shapes={"b": (0,)}, values={"n": 0}, arrays={"a": (0,)})
    assert job.run([empty])["b"].shape == (0,)


def test_constants_and_narrow_types(build):
    text = """
    __kernel void k(__constant short* w, __global half* x, __global half* y, short s) {
      if (get_local_id(0) == 0) for (int i = 0; i < 4; i++) y[i] = x[i] + (half)w[i] + (half)s;
    }
    """
    path = build(
        text,
        pointer("w", "const", dtype="int16", shape=(4,)),
        pointer("x", "input", dtype="float16", shape=(4,)),
        pointer("y", "output", dtype="float16", shape=(4,)),
        scalar("s", "int16"),
        consts={"w": np.array([1, -2, 3, -4], np.int16).tobytes()},
    )
    x = np.array([0.5, 0.5, 0.5, 0.5], np.float16)
    out = Program.load(path).create_job(values={"s": -10}).run([x])["y"]
    assert out.tolist() == [-8.5, -11.5, -6.5, -13.5]


def test_a_constant_may_be_given_again(build):
    text = "__kernel void k(__global int* b, __constant int* w) { b[0] = w[0] + w[1]; }"
    path = build(
        text, pointer("b", "output", shape=(1,)), pointer("w", "const", shape=(2,)), consts={"w": ints(3, 4).tobytes()}
    )
    program, b = Program.load(path), ints(0)
    assert program.create_job().run()["b"].tolist() == [7]
    program.call([b, ints(10, 20)])
    assert b.tolist() == [30]
    with pytest.raises(CompassError, match="built with 8 bytes"):
        program.call([b, ints(1)])


def test_null_pointers(build):
    text = "__kernel void k(__global int* a, __global int* b) { b[0] = a ? a[0] : -1; }"
    program = Program.load(build(text, pointer("a", "input"), pointer("b", "output")))
    b = ints(0)
    for a, expected in ((ints(5), 5), (None, -1), (ints(6), 6)):
        program.call([a, b])
        assert b.tolist() == [expected]


def test_void_pointers_take_any_dtype(build):
    text = "__kernel void k(__global char* a, __global char* b) { for (int i = 0; i < 8; i++) b[i] = a[i]; }"
    program = Program.load(build(text, pointer("a", "input", dtype="void"), pointer("b", "output", dtype="void")))
    b = np.zeros(2, np.float32)
    program.call([np.array([1.5, -2], np.float32), b])
    assert b.tolist() == [1.5, -2]


VIEWS = {
    "every second": lambda a: a.reshape(-1)[::2],
    "a column": lambda a: a[:, 3],
    "backwards": lambda a: a[::-1, ::-1],
    "transposed": lambda a: a.T,
    "a block": lambda a: a[1:5, 2:7],
    "of a field": lambda a: np.zeros(10, [("x", "i1"), ("y", "<i4")])["y"],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_arrays_with_gaps_are_copied_in_and_out(add, view):
    """Each element of a view is an element of the kernel's array, and nothing but the view changes."""
    source, target = np.arange(64, dtype=np.int32).reshape(8, 8), np.full((8, 8), -1, np.int32)
    a, b = view(source), view(target)
    expected = target.copy()
    view(expected)[...] = a + 1
    Program.load(add).call([a, b, a.size])
    np.testing.assert_array_equal(b, a + 1)
    np.testing.assert_array_equal(target, expected)
    Program.load(add).call([b, b, b.size])  # in place
    np.testing.assert_array_equal(b, a + 2)


def test_a_view_that_cannot_be_written_is_no_output(add):
    with pytest.raises(CompassError, match="read-only"):
        Program.load(add).call([ints(1, 2), np.broadcast_to(ints(0), 2), 2])


def test_elements_of_another_dtype_are_a_warning(add, caplog):
    b = np.zeros(1, np.uint32)
    Program.load(add).call([np.array([1.0], np.float32), b, 1])
    assert b.view(np.int32).tolist() == [0x3F800001]
    assert "holds float32, the kernel reads its bytes as int32" in caplog.text


def test_printf_is_handed_over(build):
    text = """
    __kernel void k(__global int* b) { if (get_local_id(0) == 1) printf("hello %d\\n", 42); b[0] = 1; }
    """
    job = Program.load(build(text, pointer("b", "output", shape=(1,)), uses_printf=True)).create_job()
    job.run()
    assert job.result.printf == "hello 42\n"


def test_a_shape_that_was_built_in_must_hold_what_the_kernel_accesses(build):
    a = pointer("a", "input", shape=(6,))
    path = build(ADD, a, pointer("b", "output"), scalar("n"), extents=extents("a", "b"))
    program = Program.load(path)
    with pytest.raises(CompassError, match="'a' has 6 elements, but with these scalars the kernel accesses 7"):
        program.create_job(values={"n": 7})
    with pytest.raises(CompassError, match="is to have 6 elements, but the array has 1 element") as caught:
        program.create_job(values={"n": 5}, arrays={"a": (1,)})
    assert not caught.value.help
    with pytest.raises(CompassError, match="the array has 8 elements .2x4.") as caught:
        program.create_job(values={"n": 5}, arrays={"a": (2, 4)})
    assert "--shape a=2x4" in caught.value.help


def test_sizes_come_from_the_extents(build):
    path = build(ADD, pointer("a", "input"), pointer("b", "output"), scalar("n"), extents=extents("a", "b"))
    program = Program.load(path)
    a = np.arange(6, dtype=np.int32)
    assert program.create_job(values={"n": 5}, arrays={"a": a.shape}).run([a])["b"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(CompassError, match="'a' has 6 elements, but with these scalars the kernel accesses 7"):
        program.create_job(values={"n": 7}, arrays={"a": a.shape})
    b = np.zeros(6, np.int32)
    program.call([a, b, 6])
    with pytest.raises(CompassError, match="accesses 7"):
        program.call([a, b, 7])


CRASH = """
__kernel void k(__global int* a, __global int* b) {
  if (get_local_id(0) == 2)
    b[a[0]] = 1;
  b[0] = 5;
}
"""


@pytest.fixture(scope="module")
def crash(build):
    return build(CRASH, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,)))


def test_a_fault_names_tec_and_line_and_harms_nothing(crash):
    program = Program.load(crash)
    job = program.create_job()
    index = ints(-(2**28))
    with pytest.raises(CompassError) as caught:
        job.run([index])
    assert caught.value.tec == 2
    assert caught.value.span.line == 6
    assert "k.cl:6" in render(caught.value)
    assert job.run([ints(0)])["b"].tolist() == [5]
    b = ints(0)
    with pytest.raises(CompassError, match="TEC 2"):
        program.call([index, b])
    program.call([ints(0), b])
    assert b.tolist() == [5]


def test_an_endless_loop_ends_at_the_time_limit(build):
    text = "__kernel void k(__global volatile int* b) {\n  b[0] = 1;\n  while (b[0]) b[1] += 1;\n}"
    job = Program.load(build(text, pointer("b", "output", shape=(2,), read=True))).create_job()
    with pytest.raises(CompassError, match=r"time limit of 0.2 s"):
        job.run(timeout=0.2)


def test_threads_share_a_program(add):
    program = Program.load(add)
    wrong = []

    def work(number):
        a = np.full(100 + number % 3, number, np.int32)
        for _ in range(20):
            b = np.zeros_like(a)
            program.call([a, b, len(a)])
            if not (b == number + 1).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda p: p.create_job(), "scalar 'n' .* has no value"),
        (lambda p: p.create_job(values={"n": 4}, arrays={"a": (4,)}), "size of output 'b' is not known"),
        (lambda p: p.create_job(values={"n": 2**31}), "scalar 'n'"),
        (lambda p: p.create_job(values={"m": 1}), "no parameter 'm'"),
        (lambda p: p.create_job(shapes={"q": (1,)}, values={"n": 1}), "no parameter 'q'"),
        (lambda p: p.call([ints(1)]), "takes 3 arguments"),
        (lambda p: p.call([[1], ints(1), 1]), r"argument 1 \('a'\) must be a NumPy array, not list"),
        (lambda p: p.call([ints(1), ints(1), "x"]), "scalar 'n'|argument 3"),
        (
            lambda p: p.call([ints(1), np.frombuffer(bytes(4), np.int32), 1]),
            "'b'. is an output, but the array is read-only",
        ),
        (
            lambda p: p.call([ints(1), np.zeros(1, np.int16), 1]),
            "'b'. holds int16, but the kernel takes int32",
        ),
        (lambda p: job(p).run([ints(1)]), "'a' takes 8 bytes"),
        (lambda p: job(p).run([]), "0 inputs for a kernel with 1"),
        (lambda p: job(p).run({}), "input 'a' is missing"),
        (lambda p: job(p).run([np.zeros(2, np.float32)]), "the array is float32"),
        (lambda p: p.create_job(shapes={"a": (1 << 29,), "b": (1 << 29,)}, values={"n": 1}), "bytes of memory left"),
    ],
)
def test_wrong_use_is_an_error_that_says_what(add, act, message):
    with pytest.raises(CompassError, match=message):
        act(Program.load(add))


def job(program):
    return program.create_job(shapes={"a": (2,), "b": (2,)}, values={"n": 2})


def test_values_fixed_at_build_stay(add_fixed):
    with pytest.raises(CompassError, match="was fixed to 8"):
        Program.load(add_fixed).create_job(values={"n": 4})
    with pytest.raises(CompassError, match="built for the shape 2x4"):
        Program.load(add_fixed).create_job(shapes={"b": (9,)})


def test_code_for_another_machine_is_refused(add, tmp_path):
    data = add.read_bytes()
    at = data.index(b"CPSHOST1") + 24
    triple = data[at : data.index(b"\0", at)]
    other = data.replace(triple, b"riscv64" + triple[7:])
    with pytest.raises(CompassError, match="was compiled for riscv64"):
        job(Program.load(other))


def test_outputs_have_the_shape_that_the_kernel_gives_them(build):
    text = "__kernel void k(__global int* b, int n) { for (int i = 0; i < 4 * n; i++) b[i] = i; }"
    path = build(text, pointer("b", "output") | {"dims": [4, "n"]}, scalar("n"))
    program = Program.load(path)
    assert program.params[0].dims == (4, "n")
    (b,) = program.create_job(values={"n": 3}).run({}).values()
    assert b.tolist() == np.arange(12).reshape(4, 3).tolist()
    (b,) = program.create_job(values={"n": 3}, shapes={"b": (12,)}).run({}).values()
    assert b.shape == (12,)


@pytest.mark.parametrize(("age", "notes"), [(-10, 0), (10, 1)])
def test_a_place_in_a_file_that_was_changed_after_the_build_is_noted(tmp_path, age, notes):
    (program := tmp_path / "aipu.bin").write_bytes(b"")
    (source := tmp_path / "kernel.py").write_text("")
    changed = program.stat().st_mtime + age
    os.utime(source, (changed, changed))
    error = CompassError("wrong", Span(str(source), 1))
    note_changed_sources(error, program)
    assert [note.message.partition(":")[0] for note in error.notes] == [
        "kernel.py was changed after aipu.bin was built"
    ] * notes

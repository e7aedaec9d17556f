"""The host target: kernels as shared libraries of this machine, checked calls, export, threads."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import compass_runtime as runtime
from compass_core.errors import CompassError
from compassc import te
from compassc.ir.dtypes import DataType

TYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


def built(shape, dtype, body, step=None, target="llvm", more=()):
    """The module of an element-wise expression of one tensor, and its schedule's output."""
    a = te.placeholder(shape, dtype, name="a")
    out = te.compute(shape, lambda *i: body(a[i]), name="out")
    schedule = te.create_schedule(out)
    if step is not None:
        step(schedule[out], schedule[out].op.axis)
    return te.build(schedule, [*more, a, out], target, name="kernel")


def mapped(function, *tensors):
    """A function of the elements of tensors."""
    return te.compute(tensors[0].shape, lambda *i: function(*(t[i] for t in tensors)), name=function.__name__)


def array(shape, dtype, seed=0):
    from compass_runtime.program import numpy_dtype

    rng = np.random.default_rng(seed)
    kind = numpy_dtype(dtype)
    if DataType(dtype).is_integer:
        low, high = DataType(dtype).integer_range()
        return rng.integers(low, high, shape, dtype=kind, endpoint=True)
    return rng.uniform(-4, 4, shape).astype(kind)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lanes", [1, 8, 7, 3])
def test_arithmetic_of_every_type(dtype, lanes):
    """Scalars and vectors (with a tail) give what NumPy gives; whole numbers wrap around."""

    def step(stage, axes):
        if lanes > 1:
            stage.vectorize(stage.split(axes[0], factor=lanes)[1])

    def body(x):
        return te.max(x * x + x, x - te.const(3, dtype))

    module = built((45,), dtype, body, step)
    given, found = array(45, dtype), np.zeros(45, array(1, dtype).dtype)
    module(given, found)
    with np.errstate(all="ignore"):
        wanted = np.maximum(given * given + given, given - given.dtype.type(3))
    if DataType(dtype).is_integer:
        np.testing.assert_array_equal(found, wanted)
    else:
        tolerance = {16: 3e-2, 32: 1e-5, 64: 1e-12}[DataType(dtype).bits]
        np.testing.assert_allclose(found.astype("float64"), wanted.astype("float64"), rtol=tolerance, atol=tolerance)


FUNCTIONS = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "floor": np.floor,
    "ceil": np.ceil, "nearbyint": np.rint, "rsqrt": lambda x: 1 / np.sqrt(x), "exp2": np.exp2, "abs": np.abs,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("vectors", [False, True])
def test_functions_of_reals(dtype, vectors):
    a = te.placeholder((24,), dtype, name="a")
    outs = [mapped(getattr(te, f), a) for f in FUNCTIONS]
    schedule = te.create_schedule(outs)
    for out in outs if vectors else ():
        schedule[out].vectorize(out.op.axis[0])
    given = np.random.default_rng(0).uniform(0.1, 4, 24).astype(dtype)
    found = [np.zeros(24, dtype) for _ in outs]
    te.build(schedule, [a, *outs], "llvm")(given, *found)
    for (name, wanted), values in zip(FUNCTIONS.items(), found, strict=True):
        expected = wanted(given.astype("float64"))
        np.testing.assert_allclose(values, expected, rtol=2e-3 if dtype == "float16" else 1e-6, err_msg=name)


@pytest.mark.parametrize("name", ["exp", "erf", "tanh"])
def test_functions_of_vectors_are_within_two_units(name):
    """Of all exponents and signs, borders of their polynomials, infinities and NaN; denormals to a few of their units."""
    exact = np.vectorize(math.erf, otypes=["f8"]) if name == "erf" else getattr(np, name)
    bits = np.arange(0, 1 << 32, 150_001, dtype="uint32").view("float32")
    x = np.concatenate(
        [bits, np.linspace(-5, 5, 9_973, dtype="float32"), np.float32([0, -0.0, np.inf, -np.inf, np.nan])]
    )
    out = np.zeros_like(x)

    def step(stage, axes):
        stage.vectorize(stage.split(axes[0], factor=15)[1])

    built(x.shape, "float32", getattr(te, name), step)(x, out)
    with np.errstate(all="ignore"):
        wanted = exact(x.astype("float64"))
        rounded = wanted.astype("float32")
    np.testing.assert_array_equal(np.isfinite(out), np.isfinite(rounded))
    np.testing.assert_array_equal(np.isnan(out), np.isnan(rounded))
    number = np.isfinite(rounded)
    small = np.abs(rounded) < np.finfo("float32").tiny
    units = np.abs(out[number] - wanted[number]) / np.spacing(np.abs(rounded[number])).astype("float64")
    assert units[~small[number]].max() <= 2
    assert np.abs(out[small] - wanted[small]).max() < 1e-42
    np.testing.assert_array_equal(np.signbit(out[number]), np.signbit(rounded[number]))


def test_division_is_that_of_the_npu():
    """By 0 it gives 0, the least number by -1 itself: no trap, in scalars and in vectors."""
    least = -(1 << 31)
    a, b = np.array([least, 7, -7, 5, least], "int32"), np.array([-1, 0, 2, -2, 1], "int32")
    x, y = (te.placeholder((5,), "int32", name=n) for n in "xy")
    outs = [mapped(f, x, y) for f in (te.truncdiv, te.truncmod, te.floordiv)]
    for vectors in (False, True):
        schedule = te.create_schedule(outs)
        for out in outs if vectors else ():
            schedule[out].vectorize(out.op.axis[0])
        found = [np.ones(5, "int32") for _ in outs]
        te.build(schedule, [x, y, *outs], "llvm")(a, b, *found)
        assert [f.tolist() for f in found] == [
            [least, 0, -3, -2, least],
            [0, 0, -1, 1, 0],
            [least, 0, -4, -3, least],
        ]


def test_largest_and_smallest_pass_over_what_is_no_number():
    given = np.array([np.nan, 1, -1, np.inf], "float32")
    for vectors in (False, True):
        module = built(
            (4,), "float32", lambda x: te.max(x, te.const(0.0)), lambda s, axes, v=vectors: v and s.vectorize(axes[0])
        )
        found = np.zeros(4, "float32")
        module(given, found)
        assert found.tolist() == [0, 1, 0, np.inf]


@pytest.mark.parametrize("lanes", [1, 3, 8])
def test_truths_are_stored(lanes):
    """A byte each, by vectors of them, too."""
    module = built((10,), "int32", lambda x: x > 2, lambda s, axes: s.vectorize(s.split(axes[0], factor=lanes)[1]))
    found = np.zeros(10, bool)
    module(np.arange(10, dtype="int32"), found)
    assert found.tolist() == [False] * 3 + [True] * 7


# ---------------------------------------------------------------------------------------------------- calls of modules


def add_one(target="llvm", shape=(4, 3)):
    return built(shape, "int32", lambda x: x + 1, target=target)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((np.zeros((4, 3), "int32"),), "takes 2 arguments, 1 are given"),
        ((np.zeros((4, 3), "int32"), np.zeros((3, 4), "int32")), r"argument 2 \('out'\).*shape \(4, 3\), got \(3, 4\)"),
        ((np.zeros((4, 3), "int16"), np.zeros((4, 3), "int32")), r"argument 1 \('a'\).*type int32, got int16"),
        (([1, 2], np.zeros((4, 3), "int32")), r"argument 1 \('a'\).*must be an array, got list"),
    ],
)
def test_arguments_are_checked(args, said):
    with pytest.raises(CompassError, match=said):
        add_one().find("kernel")(*args)


def test_a_read_only_output_is_refused():
    out = np.zeros((4, 3), "int32")
    out.flags.writeable = False
    with pytest.raises(CompassError, match="read-only"):
        add_one()(np.zeros((4, 3), "int32"), out)


def test_arrays_in_any_layout():
    """Views with gaps, and an output that is an input, too."""
    module = add_one()
    wide = np.arange(24, dtype="int32").reshape(4, 6)
    out = np.zeros((3, 4), "int32").T
    module(wide[:, ::2], out)
    np.testing.assert_array_equal(out, wide[:, ::2] + 1)
    same = np.arange(12, dtype="int32").reshape(4, 3)
    module(same, same)
    np.testing.assert_array_equal(same.reshape(-1), np.arange(1, 13))


def test_an_input_that_overlaps_an_output():
    a = te.placeholder((8,), "int32", name="a")
    b = te.compute((8,), lambda i: a[7 - i], name="b")
    memory = np.arange(12, dtype="int32")
    te.build(te.create_schedule(b), [a, b], "llvm")(memory[:8], memory[4:])
    assert memory.tolist() == [0, 1, 2, 3, *range(7, -1, -1)]


def test_sizes_that_are_arguments():
    n = te.var("n")
    a = te.placeholder((n, 2), "int32", name="a")
    b = te.compute((n, 2), lambda i, j: a[i, j] * n, name="b")
    module = te.build(te.create_schedule(b), [n, a, b], "llvm")
    for size in (1, 5, 0):
        given, found = np.arange(size * 2, dtype="int32").reshape(size, 2), np.zeros((size, 2), "int32")
        module(size, given, found)
        np.testing.assert_array_equal(found, given * size)
    with pytest.raises(CompassError, match=r"shape \(3, 2\), got \(2, 2\)"):
        module(3, np.zeros((2, 2), "int32"), np.zeros((2, 2), "int32"))
    for wrong in ("3", 2.5, 1 << 40):
        with pytest.raises(CompassError, match="'n' of 'default_function' is a number of type int32"):
            module(wrong, np.zeros((2, 2), "int32"), np.zeros((2, 2), "int32"))


def test_functions_by_name_and_source():
    module = add_one()
    assert module.implements_function("kernel") and not module.implements_function("other")
    assert module.format == "c" and "a[" in module.get_source()
    assert "define" in module.get_source("ll") and module.get_source("nothing") == ""
    assert module.get_property_mask() == 1 + 2 + 4
    given, found = np.zeros((4, 3), "int32"), np.zeros((4, 3), "int32")
    result = module.time_evaluator(module.entry_name, runtime.device("llvm", 0), number=3, repeat=2)(given, found)
    assert len(result.results) == 2 and result.mean > 0 and (found == 1).all()


def test_a_module_file_runs_without_the_compiler(tmp_path):
    def step(stage, axes):
        stage.parallel(axes[0])

    module = built((50, 3), "int32", lambda x: x * 2, step)
    module.export_library(tmp_path / "twice.so", fcompile=None, workspace_dir=str(tmp_path))
    with pytest.raises(RuntimeError, match="takes no 'fcompile'"):
        module.export_library(tmp_path / "other.so", fcompile=print)
    program = f"""
import sys, numpy as np, compass_runtime as runtime
module = runtime.load_module({str(tmp_path / "twice.so")!r})
a, out = np.arange(150, dtype="int32").reshape(50, 3), np.zeros((50, 3), "int32")
module["kernel"](a, out)
assert (out == 2 * a).all() and "turns_0" in module.get_source()
assert not any(name.split(".")[0] == "compassc" for name in sys.modules), "the compiler was loaded"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("of_file", [False, True], ids=["content", "file"])
def test_no_bit_of_a_module_changes_unnoticed(of_file):
    """Neither of the code nor of what describes it, by which its memory is laid out; nor of the archive around them."""
    from compass_runtime.host_module import load_content
    from compass_runtime.module import pack, unpack

    module = add_one()
    (library,) = (m for m in module.tree() if m.type_key == "compass.runtime.HostLibrary")
    content = pack(module) if of_file else library.save_to_bytes()
    read = (lambda data: unpack(data, "m.so")) if of_file else load_content
    read(content)
    text = content.index(library.source.encode()[:20])  # every byte around the texts, and some of all others
    places = {*range(0, len(content), 97), *range(max(text - 700, 0), text + 40), len(content) - 1, content.index(b"{")}
    for at in sorted(places):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(CompassError) as refused:
            read(bytes(damaged))
        assert refused.value.code == "module-file", at
    for cut in (0, 1, 31, 40, len(content) // 2, len(content) - 1):
        with pytest.raises(CompassError):
            read(content[:cut])
    with pytest.raises(CompassError):
        read(content + b"\0")


def test_what_describes_code_is_trusted_with_it(tmp_path):
    """Own code with other parameters is not own code: by these its memory is laid out."""
    from compass_runtime.host_module import load_content
    from compass_runtime.module import sealed, unsealed

    (library,) = (m for m in add_one().tree() if m.type_key == "compass.runtime.HostLibrary")
    fields, content = unsealed(library.save_to_bytes(), "m")
    a, out = np.zeros((4, 3), "int32"), np.zeros((4, 3), "int32")
    load_content(sealed(fields, content))(a, out)
    fields["description"]["threads"] = 7
    with pytest.raises(CompassError, match="was not built here"):
        load_content(sealed(fields, content))(a, out)


def test_code_of_somebody_else_does_not_run(tmp_path, monkeypatch):
    """A module file is data: machine code in it runs where it was built, or where the user says so."""
    add_one().export_library(tmp_path / "one.so")
    given, found = np.zeros((4, 3), "int32"), np.zeros((4, 3), "int32")
    runtime.load_module(tmp_path / "one.so")(given, found)
    monkeypatch.setenv("COMPASS_STATE_DIR", str(tmp_path / "another user"))
    module = runtime.load_module(tmp_path / "one.so")
    assert "a[" in module.get_source()
    with pytest.raises(CompassError, match="was not built here"):
        module(given, found)
    module.trust()
    module(given, found)
    assert (found == 1).all()


def test_code_for_another_processor_is_refused():
    from compass_runtime.host_module import load_content

    module = load_content(add_one().save_to_bytes())
    module.trust()
    module.description["features"] = "avx512f quantum"
    with pytest.raises(CompassError, match="quantum"):
        module(np.zeros((4, 3), "int32"), np.zeros((4, 3), "int32"))


def test_operations_of_the_npu_have_no_form():
    from compassc import targets
    from compassc.ir import exprs as E
    from compassc.ir import stmts as S
    from compassc.ir.dtypes import VOID

    barrier = S.PrimFunc("wait", (), (S.Evaluate(E.Call("barrier", (), VOID)),), VOID)
    with pytest.raises(CompassError, match="has no form on the host"):
        targets.build(barrier, target="c")


# ------------------------------------------------------------------------------------------------------ parallel loops


def rows(threads, rows=37):
    """Sums of rows, each with an array of its own for what is inside; large enough not to lie on the stack."""
    a = te.placeholder((rows, 9000), "int32", name="a")
    twice = te.compute((rows, 9000), lambda i, j: a[i, j] * 2, name="twice")
    k = te.reduce_axis((0, 9000), name="k")
    out = te.compute((rows,), lambda i: te.sum(twice[i, k], axis=k), name="out")
    schedule = te.create_schedule(out)
    schedule[twice].compute_at(schedule[out], out.op.axis[0])
    schedule[out].parallel(out.op.axis[0])
    return te.build(schedule, [a, out], f"llvm -num-cores={threads}")


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_parallel_turns_have_arrays_of_their_own(threads):
    module = rows(threads)
    given = np.random.default_rng(0).integers(-1000, 1000, (37, 9000)).astype("int32")
    for _ in range(20):
        found = np.zeros(37, "int32")
        module(given, found)
        np.testing.assert_array_equal(found, 2 * given.sum(axis=1))


def test_parallel_loops_from_many_threads_and_in_a_fork():
    module = rows(3, 8)
    given = np.arange(8 * 9000, dtype="int32").reshape(8, 9000) % 97
    wanted, wrong = 2 * given.sum(axis=1), []

    def work():
        for _ in range(50):
            found = np.zeros(8, "int32")
            module(given, found)
            if not (found == wanted).all():
                wrong.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    child = os.fork()
    if not child:
        work()
        os._exit(len(wrong) > 0)
    assert os.waitpid(child, 0)[1] == 0 and not wrong


def test_memory_of_a_kernel_that_is_not_there():
    """A kernel that wants more memory than there may be says so, and its outputs are as they were."""
    side = (1 << 14, 1 << 14)  # more than the C library keeps for itself of what was given back
    a = te.placeholder(side, "int8", name="a")
    b = te.compute(side, lambda i, j: a[i, j] + te.const(1, "int8"), name="b")
    c = te.compute((2,), lambda i: b[i, 0] + b[i + 1, 1], name="c")
    module = te.build(te.create_schedule(c), [a, c], "llvm")
    given, found = np.zeros(side, "int8"), np.zeros(2, "int8")
    module(given, found)
    assert found.tolist() == [2, 2]
    old = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20), old[1]))
    try:
        found[:] = 7
        with pytest.raises(CompassError, match="out of memory in 'default_function'"):
            module(given, found)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old)
    assert found.tolist() == [7, 7]


def _element(a, at):
    return lambda i: a[at(i)]


@pytest.mark.parametrize("lanes", [6, 16])
@pytest.mark.parametrize("dtype", ["int8", "float16", "int32", "float32", "int64"])
def test_lanes_read_elements_that_lie_apart(dtype, lanes):
    a, t = te.placeholder((48,), dtype, name="a"), te.placeholder((32,), "int32", name="t")
    places = [lambda i: 31 - i, lambda i: (i * 7) % 32, lambda i: (i * 3) // 2]
    found = [te.compute((32,), _element(a, at), name=f"b{n}") for n, at in enumerate(places)]
    found.append(te.compute((32,), lambda i: a[t[i]], name="b3"))
    s = te.create_schedule(found)
    for b in found:
        s[b].vectorize(s[b].split(b.op.axis[0], lanes)[1])
    given, table = np.arange(48).astype(dtype), np.random.default_rng(0).integers(0, 48, 32).astype("int32")
    results = [np.zeros(32, dtype) for _ in found]
    te.build(s, [a, t, *found], "llvm -opt-level=1")(given, table, *results)
    for result, at in zip(results, [*([p(i) for i in range(32)] for p in places), table]):
        np.testing.assert_array_equal(result, given[at])


def test_libraries_are_compiled_side_by_side(tmp_path, monkeypatch):
    """Each is there at the end, what they share is compiled once, and what one of them lacks is said."""
    from compass_core.files.cache import Cache
    from compassc.targets.library import side_by_side

    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path))

    def parallel(stage, axes):
        stage.parallel(axes[0])

    first = built((64,), "float32", lambda x: x + 1.0, parallel)
    with side_by_side():
        modules = [first, *(built((64,), "float32", lambda x, n=n: x * float(n), parallel) for n in (2, 3))]
    x = array((64,), "float32")
    for module, wanted in zip(modules, (x + 1, x * 2, x * 3), strict=True):
        out = np.zeros_like(x)
        module(x, out)
        np.testing.assert_array_equal(out, wanted)
    assert sum(entry.kind == "host" for entry in Cache().entries()) == 3 + 2  # of these two, pool.c and float16.c
    with pytest.raises(CompassError, match="clang knows no processor 'abacus'"), side_by_side():
        built((64,), "float32", lambda x: x, target="llvm -mcpu=abacus")


def test_libraries_that_are_compiled_together_are_those_of_single_builds(tmp_path, monkeypatch):
    """To the byte, whatever their number; one that the cache has lost is made again, and a mistake is that of its kernel."""
    from compass_core.files.cache import Cache
    from compass_sim import engine
    from compassc.targets import library

    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "single"))
    count = library.TOGETHER + 1

    def kernels(numbers=range(count), target="llvm"):
        dtypes = ("float32", "float16")
        return [built((64,), dtypes[n % 2], lambda x, n=n: x * float(n) + 0.5, target=target) for n in numbers]

    single = [m.content for m in kernels()]
    assert len(set(single)) == count
    commands = []
    run = engine._run
    monkeypatch.setattr(engine, "_run", lambda command: commands.append(command) or run(command))
    for entry in Cache(tmp_path / "single").entries():
        entry.path.write_bytes(b"damaged")
    for number in (1, library.TOGETHER, count):
        monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / str(number)))
        with library.side_by_side():
            together = kernels(range(number))
        assert [m.content for m in together] == single[:number]
    assert (
        sum(c[1] == "-cc1" and len([w for w in c if w.endswith("kernel.c")]) == library.TOGETHER for c in commands) == 2
    )
    commands.clear()
    with library.side_by_side():
        assert [m.content for m in kernels()] == single and not commands
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "single"))
    with library.side_by_side():
        assert kernels()[2].content == single[2]  # asked for before the end
        assert commands


def test_a_mistake_in_one_of_the_libraries_that_are_compiled_together_is_its_own(tmp_path, monkeypatch):
    from compassc.targets import Target, library

    text = '__attribute__((visibility("default"))) int compass_entry(void) { return %s; }\n'
    with pytest.raises(CompassError) as caught, library.side_by_side():
        made = [
            library.begun(library.Library({"kernel.c": text % value}, False, Target.of("llvm")))
            for value in ("1", "2", "missing", "3")
        ]
        contents = [made[n]() for n in (0, 1, 3)]
    assert len(set(contents)) == 3 and "missing" in "".join(map(str, caught.value.notes))

"""Bools in memory: operators that take or give them are what NumPy's are, on the loops of an NPU, its simulator, the host."""

import re

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import targets, te, tir, topi
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from tests.choosing import some

TARGET = "X2_1204"
SHAPES = ((3, 37), (37,))
COMPARISONS = "equal not_equal less less_equal greater greater_equal".split()
LOGICAL = "logical_and logical_or logical_xor".split()
BITWISE = "bitwise_and bitwise_or bitwise_xor".split()
ARITHMETIC = "add multiply maximum minimum".split()
KINDS = ["bool", "int8", "uint8", "int32", "float16", "float32"]


def drawn(kind: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small numbers, of which some are 0 and some are alike."""
    found = np.random.default_rng(seed).integers(0 if kind == "uint8" else -2, 3, shape)
    return found > 0 if kind == "bool" else found.astype(kind)


def everywhere(args: list[te.Tensor], outs: list[te.Tensor], given: list[np.ndarray], scalars: bool = False) -> dict:
    """The results of default schedules by where they are computed."""
    found = {}
    for target in (TARGET, "llvm -opt-level=1"):
        results = [np.zeros([d.value for d in t.shape], str(t.dtype)) for t in outs]
        targets.build(topi.schedule(outs, target), [*args, *outs], target)(*given, *results)
        found[target] = results
    module = te.lower(topi.schedule(outs, TARGET), [*args, *outs], "k", target=TARGET)
    assert scalars or not re.search(r"for \w*inner_(inner|v)", module.script()), "no vectorised loop is one of scalars"
    results = [np.zeros([d.value for d in t.shape], str(t.dtype)) for t in outs]
    Interpreter(module.entry_func)(*(a.view("u1") if a.dtype == bool else a for a in [*given, *results]))
    return {**found, "interpreter": results}


def compare(names: list[str], found: dict, wanted: list[np.ndarray]) -> None:
    for where, results in found.items():
        for name, f, w in zip(names, results, wanted, strict=True):
            np.testing.assert_array_equal(f, np.asarray(w).reshape(f.shape), err_msg=f"{name}: {where}")
            assert f.dtype != bool or f.view("u1").max(initial=0) <= 1, f"{name}: {where}"


@pytest.mark.parametrize("kind", ["bool", "int8", "float32"])
def test_operators_of_bools_and_numbers_are_those_of_numpy(kind):
    """A bool is on the right of every other operator, on the left of the rest."""
    a, b = (te.placeholder(s, k, name=n) for s, k, n in zip(SHAPES, (kind, "bool"), "ab"))
    names = [*COMPARISONS, *LOGICAL, *ARITHMETIC, *(() if kind.startswith("float") else BITWISE)]
    given = [drawn(kind, SHAPES[0], 1), drawn("bool", SHAPES[1], 2)]
    orders = [(1, -1)[i % 2] for i in range(len(names))]
    outs = [getattr(topi, n)(*[a, b][::o]) for n, o in zip(names, orders)]
    wanted = [getattr(np, n)(*given[::o]) for n, o in zip(names, orders)]
    for t, w in some(zip(outs, wanted, strict=True)):
        assert str(t.dtype) == w.dtype.name, t.name
    compare(names, everywhere([a, b], outs, given), wanted)


def test_conversions_choices_and_moves():
    a, c = te.placeholder((3, 37), "bool", name="a"), te.placeholder((3, 37), "float32", name="c")
    given = [drawn("bool", (3, 37), 1), drawn("float32", (3, 37), 2)]
    x, y = given
    cases = {
        **{f"as {k}": (topi.cast(a, k), x.astype(k)) for k in KINDS[1:]},
        "is": (topi.cast(c, "bool"), y.astype(bool)),
        "not": (topi.logical_not(a), ~x),
        "not of numbers": (topi.logical_not(c), y == 0),
        "bitwise not": (topi.bitwise_not(a), ~x),
        "where": (topi.where(a, c, 7.0), np.where(x, y, np.float32(7))),
        "where of bools": (topi.where(c, a, topi.logical_not(a)), np.where(y != 0, x, ~x)),
        "transpose": (topi.transpose(a), x.T),
        "concatenate": (topi.concatenate([a, a], 1), np.concatenate([x, x], 1)),
        "pad": (topi.nn.pad(a, [1, 2], [1, 0]), np.pad(x, [(1, 1), (2, 0)])),
        "nan": (topi.isnan(c), np.isnan(y)),
    }
    found = everywhere([a, c], [t for t, _ in cases.values()], given, scalars=True)
    compare(list(cases), found, [w for _, w in cases.values()])


@pytest.mark.parametrize("rows", [0, 33])
def test_reductions(rows):
    a = te.placeholder((rows + 3, 70), "bool", name="a")
    given = np.zeros((rows + 3, 70), bool)
    given[:, 5] = given[2] = given[1, 9] = True
    axes = (0, 1, (0, 1))
    outs = [f(a, axis) for f in (topi.any, topi.all) for axis in axes] + [topi.max(a, 0), topi.min(a, 0)]
    wanted = [f(given, axis) for f in (np.any, np.all) for axis in axes] + [given.max(0), given.min(0)]
    compare([t.name for t in outs], everywhere([a], outs, [given], scalars=True), wanted)


def test_stages_in_sram_and_transfers_of_bools():
    """Copies of rows are transfers of bytes, in halves and padded, too."""
    a = te.placeholder((40, 96), "bool", name="a")
    out = te.compute((40, 96), lambda i, j: ~a[i, j], name="out")
    s = te.create_schedule(out.op)
    copy = s.cache_read(a, "lsram", [out])
    outer, _ = s[out].split(out.op.axis[0], factor=8)
    s[copy].compute_at(s[out], outer)
    s[copy].double_buffer()
    s[out].vectorize(s[out].split(out.op.axis[1], factor=32)[1])
    module = te.lower(s, [a, out], "k", target=TARGET)
    assert "S.async_dma_copy" in module.script() and "T.splat(T.uint8(1), 32)" in module.script()
    given, found = drawn("bool", (40, 96), 3), np.zeros((40, 96), bool)
    BuildManager(TARGET).build(module)(given, found)
    np.testing.assert_array_equal(found, ~given)


def test_blocks_of_bools():
    a, b = te.placeholder((64,), "float32", name="a"), te.placeholder((64,), "bool", name="b")
    above = te.compute((64,), lambda i: te.all(a[i] > 0.0, b[i]), name="above")
    out = te.compute((64,), lambda i: te.if_then_else(above[i], a[i], 0.0), name="out")
    s = tir.Schedule(te.create_prim_func([a, b, above, out]))
    (i,) = s.get_loops("above")
    s.vectorize(s.split(i, [None, 8])[1])
    x, y = np.random.default_rng(0).normal(size=64).astype("f4"), drawn("bool", (64,), 4)
    truth, found = np.zeros(64, bool), np.zeros(64, "f4")
    BuildManager(TARGET).build(s.mod)(x, y, truth, found)
    np.testing.assert_array_equal(truth, (x > 0) & y)
    np.testing.assert_array_equal(found, np.where((x > 0) & y, x, 0))


@S.prim_func
def flips(a: S.ptr("u8", "lsram"), out: S.ptr("u8", "lsram"), n: S.i32):
    for i in range(n):
        out[i] = S.u8(1) if a[i] == S.u8(0) else S.u8(0)


def test_kernels_by_hand_get_bytes():
    a = te.placeholder((40,), "bool", name="a")
    b = te.compute((40,), lambda i: a[i] ^ (i < 20), name="b")
    c = te.extern((40,), [b], lambda i, o: te.call_kernel(flips, i[0], o[0], 40), dtype="bool", name="c")
    d = te.compute((40,), lambda i: c[i] & a[i], name="d")
    given, found = drawn("bool", (40,), 6), np.zeros(40, bool)
    targets.build(te.create_schedule(d.op), [a, d], TARGET)(given, found)
    np.testing.assert_array_equal(found, ~(given ^ (np.arange(40) < 20)) & given)


@pytest.mark.parametrize("simple", [False, True])
def test_parameters_are_tensors_of_bools(simple):
    """C has bytes; files and arrays of the program have bools, of which no array of bytes is made silently."""
    a = te.placeholder((9,), "bool", name="a")
    out = te.compute((9,), lambda i: ~a[i], name="out")
    module = te.lower(te.create_schedule(out.op), [a, out], "k", target=TARGET, simple_mode=simple)
    run = BuildManager(TARGET).build(module)
    assert "__global uchar* a, __global uchar* out" in run.c_code and "bool*" not in run.c_code
    given, found = drawn("bool", (9,), 5), np.zeros(9, bool)
    run(given, found)
    np.testing.assert_array_equal(found, ~given)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda a: a - a, "no sub of bools"),
        (lambda a: a << a, "no shl of bools"),
        (lambda a: a // a, "no floordiv of bools"),
        (lambda a: -a, "no sub of bools"),
    ],
)
def test_what_numbers_alone_have_is_refused(made, said):
    a = te.placeholder((9,), "bool", name="a")
    with pytest.raises(CompassError, match=said) as caught:
        te.compute((9,), lambda i: made(a[i]), name="out")
    assert caught.value.span.file == __file__ and caught.value.help


def test_sums_of_bools_are_refused_for_they_could_mean_counts():
    a, k = te.placeholder((9,), "bool", name="a"), te.reduce_axis((0, 9), "k")
    for refused in (
        lambda: te.sum(a[k], axis=k),
        lambda: te.prod(a[k], axis=k),
        lambda: topi.sum(a),
        lambda: topi.mean(a),
    ):
        with pytest.raises(CompassError, match="of numbers, got bools"):
            refused()

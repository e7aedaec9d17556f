"""Loads from anywhere in vectorised loops: gathers where all elements are known to exist, else a loop as it was."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager

TARGET = "X2_1204"


def clipped(place, extent):
    return te.max(te.min(place, extent - 1), 0)


FORMS = {
    "take": lambda a, p: ((100,), lambda i: a[3, clipped(p[i % 100], 70)]),
    "low bits": lambda a, p: ((100,), lambda i: a[p[i] & 3, 2]),
    "along": lambda a, p: ((5, 70), lambda i, j: a[clipped(p[j], 5), j]),
    "back": lambda a, p: ((5, 70), lambda i, j: a[i, 69 - j]),
    "twice": lambda a, p: ((5, 140), lambda i, j: a[i, j // 2]),
    "guarded": lambda a, p: (
        (5, 100),
        lambda i, j: te.if_then_else(p[j] > 3, a[i, clipped(p[j], 70)], te.const(7, a.dtype)),
    ),
}


def kernel(form, kind, lanes):
    a, p = te.placeholder((5, 70), kind, name="a"), te.placeholder((100,), "int32", name="p")
    shape, body = FORMS[form](a, p)
    out = te.compute(shape, body, name="out")
    s = te.create_schedule(out)
    inner = s[out].split(out.op.axis[-1], factor=64)[1]
    if lanes:
        s[out].vectorize(inner)
    return te.lower(s, [a, p, out], "k", target=TARGET), shape


def given(kind):
    draw = np.random.default_rng(1)
    return draw.integers(-99, 99, (5, 70)).astype(kind), draw.integers(-20, 90, 100).astype("int32")


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "float16", "float32"])
@pytest.mark.parametrize("form", FORMS)
def test_gathers_give_what_scalars_do(form, kind):
    module, shape = kernel(form, kind, True)
    plain, _ = kernel(form, kind, False)
    assert "_inner in" not in module.script() and "_inner in" in plain.script()
    wanted = np.zeros(shape, kind)
    Interpreter(plain.entry_func)(*given(kind), wanted)
    assert len(np.unique(wanted)) > 2
    for run in (Interpreter(module.entry_func), BuildManager(TARGET).build(module)):
        found = np.zeros(shape, kind)
        run(*given(kind), found)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("size", "place"),
    [
        (64, lambda p, i: p[i]),  # anywhere
        (64, lambda p, i: te.min(p[i], 63)),  # before the first
        (64, lambda p, i: clipped(p[i], 65)),  # one behind the last
        (20000, lambda p, i: clipped(p[i], 20000)),  # bytes that 16 bits do not reach
    ],
)
def test_places_that_are_not_known_to_be_reached_stay_a_loop(size, place):
    a, p = te.placeholder((size,), "int32", name="a"), te.placeholder((64,), "int32", name="p")
    out = te.compute((64,), lambda i: a[place(p, i)], name="out")
    s = te.create_schedule(out)
    s[out].vectorize(s[out].split(out.op.axis[0], factor=32)[1])
    module = te.lower(s, [a, p, out], "k", target=TARGET)
    assert "_inner in" in module.script()
    x, y, found = np.arange(size, dtype="int32"), np.arange(64, dtype="int32") % 60, np.zeros(64, "int32")
    BuildManager(TARGET).build(module)(x, y, found)
    np.testing.assert_array_equal(found, y)


def test_places_just_within_reach_are_gathered():
    a, p = te.placeholder((1 << 14,), "int32", name="a"), te.placeholder((64,), "int32", name="p")
    out = te.compute((64,), lambda i: a[clipped(p[i], 1 << 14)], name="out")
    s = te.create_schedule(out)
    s[out].vectorize(s[out].split(out.op.axis[0], factor=32)[1])
    module = te.lower(s, [a, p, out], "k", target=TARGET)
    assert "_inner in" not in module.script()
    x, y = np.arange(1 << 14, dtype="int32"), (np.arange(64, dtype="int32") - 9) * 300
    found = np.zeros(64, "int32")
    BuildManager(TARGET).build(module)(x, y, found)
    np.testing.assert_array_equal(found, x[np.clip(y, 0, (1 << 14) - 1)])


def test_sums_of_gathers_are_those_of_the_loop():
    a, p = te.placeholder((5, 70), "int32", name="a"), te.placeholder((100,), "int32", name="p")
    k = te.reduce_axis((0, 100), "k")
    out = te.compute((5,), lambda i: te.sum(a[i, clipped(p[k], 70)], axis=k), name="out")
    s = te.create_schedule(out)
    s[out].vectorize(s[out].split(k, factor=32)[1])
    module = te.lower(s, [a, p, out], "k", target=TARGET)
    assert "out_lanes" in module.script()
    x, y = given("int32")
    for run in (Interpreter(module.entry_func), BuildManager(TARGET).build(module)):
        found = np.zeros(5, "int32")
        run(x, y, found)
        np.testing.assert_array_equal(found, x[:, np.clip(y, 0, 69)].sum(1))


@pytest.mark.parametrize("size", [(300, 400), (5, 64)])
def test_places_near_what_all_lanes_share_are_gathered_from_there(size):
    """Rows of a buffer of any size, read twice, backwards and in steps that no vector access has."""
    a = te.placeholder(size, "float32", name="a")
    width = size[1]
    out = te.compute(
        (size[0], width), lambda i, j: a[i, j // 2] + a[i, width - 1 - j] * a[i, (j * 3) % width], name="out"
    )
    s = te.create_schedule(out)
    s[out].bind(out.op.axis[0], te.thread_axis("threadIdx.x"))
    s[out].vectorize(s[out].split(out.op.axis[1], factor=16)[1])
    module = te.lower(s, [a, out], "k", target=TARGET)
    assert "_inner in" not in module.script() and "vrevs" in module.script()
    x, found = np.random.default_rng(0).integers(-9, 9, size).astype("f4"), np.zeros(size, "f4")
    BuildManager(TARGET).build(module)(x, found)
    j = np.arange(width)
    np.testing.assert_array_equal(found, x[:, j // 2] + x[:, ::-1] * x[:, (j * 3) % width])


def test_an_element_that_all_lanes_share_exists_where_only_some_of_them_read_it():
    a, b = te.placeholder((64, 48), "float16", name="a"), te.placeholder((64,), "float16", name="b")
    out = te.compute((64, 48), lambda i, j: te.if_then_else(a[i, j] > 0.0, a[i, j], a[i, j] * b[i]), name="out")
    s = te.create_schedule(out)
    s[out].vectorize(s[out].split(out.op.axis[1], factor=16)[1])
    module = te.lower(s, [a, b, out], "k", target=TARGET)
    assert "_inner in" not in module.script() and "mask=" not in module.script()
    x, y = (np.random.default_rng(0).integers(-9, 9, n).astype("f2") for n in ((64, 48), 64))
    found = np.zeros((64, 48), "f2")
    BuildManager(TARGET).build(module)(x, y, found)
    np.testing.assert_array_equal(found, np.where(x > 0, x, x * y[:, None]))


@pytest.mark.parametrize("kind", ["int16", "int32"])
@pytest.mark.parametrize("by", [3, 7, -5])
def test_whole_numbers_are_divided_in_lanes(kind, by):
    a = te.placeholder((100,), kind, name="a")
    out = te.compute((100,), lambda i: (a[i] // te.const(by, kind)) * te.const(9, kind) + a[i] % te.const(by, kind))
    s = te.create_schedule(out)
    s[out].vectorize(s[out].split(out.op.axis[0], factor=16)[1])
    module = te.lower(s, [a, out], "k", target=TARGET)
    assert "_inner in" not in module.script()
    x, found = np.random.default_rng(0).integers(-999, 999, 100).astype(kind), np.zeros(100, kind)
    BuildManager(TARGET).build(module)(x, found)
    np.testing.assert_array_equal(found, x // by * 9 + x % by)
    found[:] = 0
    Interpreter(module.entry_func)(x, found)
    np.testing.assert_array_equal(found, x // by * 9 + x % by)


@pytest.mark.parametrize("kind", ["int8", "int16", "int32"])
def test_whole_numbers_are_divided_by_data_in_lanes(kind):
    a, b = te.placeholder((96,), kind, name="a"), te.placeholder((96,), kind, name="b")
    outs = [te.compute((96,), f, name=n) for n, f in (("q", lambda i: a[i] // b[i]), ("r", lambda i: a[i] % b[i]))]
    s = te.create_schedule(outs)
    for out in outs:
        s[out].vectorize(s[out].split(out.op.axis[0], factor=32)[1])
    module = te.lower(s, [a, b, *outs], "k", target=TARGET)
    assert "_inner in" not in module.script()
    draw, least = np.random.default_rng(0), np.iinfo(kind).min
    x, y = draw.integers(least, -least, 96).astype(kind), draw.integers(1, 9, 96).astype(kind)
    x[:4], y[:6], y[40:] = (least, 0, -1, 6), (least, least, least, -3, -1, 1), -y[40:]
    x[x == least + (y != -1)] += 1  # the quotient that there is not
    found = [np.zeros(96, kind) for _ in outs]
    BuildManager(TARGET).build(module)(x, y, *found)
    x[(x == least) & (y == -1)] = least + 1
    np.testing.assert_array_equal(found[0], x // y)
    np.testing.assert_array_equal(found[1], x % y)

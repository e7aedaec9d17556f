"""Parameters that are computed at a loop of their reader: all of their elements, each by one thread, or an error."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter

TARGET = "X2_1204"
THREAD = te.thread_axis("threadIdx.x")
ROWS, COLUMNS = 10, 6


def program(window: int):
    """a -> b -> c, sums over so many rows of b; b and c are parameters."""
    a = te.placeholder((ROWS, COLUMNS), "int32", name="a")
    k = te.reduce_axis((0, COLUMNS), "k")
    b = te.compute((ROWS, COLUMNS), lambda i, j: te.sum(a[i, k] * (j + k), axis=k), name="b")
    w = te.reduce_axis((0, window), "w")
    c = te.compute((ROWS - window + 1, COLUMNS), lambda i, j: te.sum(b[i + w, j], axis=w), name="c")
    return a, b, c


def arrays(a, b, c):
    given = np.random.default_rng(0).integers(-9, 9, (ROWS, COLUMNS)).astype("int32")
    return [given, *(np.full([d.value for d in t.shape], -7, "int32") for t in (b, c))]


def fused(s, b, c):
    loop = s[c].fuse(*c.op.axis)
    s[b].compute_at(s[c], loop)
    return loop


def rows(s, b, c):
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    return outer


def cached(s, b, c):
    local = s.cache_write(b, "lsram")
    s[b].compute_at(s[c], c.op.axis[0])
    s[local].compute_at(s[b], b.op.axis[0])
    return c.op.axis[0]


@pytest.mark.parametrize("place", [fused, rows, cached])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("outputs", [1, 2])
def test_all_is_computed(place, window, outputs):
    a, b, c = program(window)
    whole, found = arrays(a, b, c), arrays(a, b, c)
    Interpreter(te.lower(te.create_schedule(c), [a, b, c], target=TARGET).entry_func)(*whole)
    s = te.create_schedule([b, c][-outputs:])
    place(s, b, c)
    Interpreter(te.lower(s, [a, b, c], target=TARGET).entry_func)(*found)
    for x, y in zip(whole, found):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("place", [fused, rows])
def test_threads_compute_parts_of_their_own_or_nothing_is_made(place):
    a, b, c = program(1)
    s = te.create_schedule([b, c])
    s[c].bind(place(s, b, c), THREAD)
    whole, found = arrays(a, b, c), arrays(a, b, c)
    Interpreter(te.lower(te.create_schedule(c), [a, b, c], target=TARGET).entry_func)(*whole)
    Interpreter(te.lower(s, [a, b, c], target=TARGET).entry_func)(*found)
    for x, y in zip(whole, found):
        np.testing.assert_array_equal(x, y)
    a, b, c = program(3)
    s = te.create_schedule([b, c])
    s[c].bind(place(s, b, c), THREAD)
    with pytest.raises(te.LowerError, match="side by side compute the same elements"):
        te.lower(s, [a, b, c], target=TARGET)


def taken(index, extent=8):
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] * 2, name="b")
    c = te.compute((extent,), lambda i: b[index(i)], name="c")
    return a, b, c


@pytest.mark.parametrize(
    ("index", "extent", "why"),
    [
        (lambda i: 7 - i, 8, ""),
        (lambda i: i % 8, 16, ""),
        (lambda i: i * 2, 4, "the turns of i compute a part of 'i' only"),
        (lambda i: i % 5, 8, "it is not known whether the turns of i compute all of 'i'"),
    ],
)
def test_elements_that_nobody_reads_are_missed(index, extent, why):
    a, b, c = taken(index, extent)
    s = te.create_schedule([b, c])
    s[b].compute_at(s[c], c.op.axis[0])
    if not why:
        te.lower(s, [a, b, c], target=TARGET)
        return
    with pytest.raises(te.LowerError, match=f"'b' is computed at 'i' of 'c' .* {why}"):
        te.lower(s, [a, b, c], target=TARGET)


@pytest.mark.parametrize(("options", "known"), [({"factor": 4}, True), ({"nparts": 4}, False)])
def test_open_sizes_are_stepped_through(options, known):
    n = te.size_var("n")
    a = te.placeholder((n,), "int32", name="a")
    b = te.compute((n,), lambda i: a[i] * 2, name="b")
    c = te.compute((n,), lambda i: b[i] + 1, name="c")
    s = te.create_schedule([b, c])
    s[b].compute_at(s[c], s[c].split(c.op.axis[0], **options)[0])
    if not known:
        with pytest.raises(te.LowerError, match="it is not known whether the turns of i_outer compute all of 'i'"):
            te.lower(s, [a, b, c], target="llvm")
        return
    given, found = np.arange(11, dtype="int32"), [np.zeros(11, "int32") for _ in range(2)]
    te.build(s, [a, b, c], "llvm")(given, *found)
    assert (found[0] == given * 2).all() and (found[1] == given * 2 + 1).all()


@pytest.mark.parametrize(
    ("step", "take"),
    [
        ("set_scope", lambda stage: stage.set_scope("lsram")),
        ("double_buffer", lambda stage: stage.double_buffer()),
        ("storage_align", lambda stage: stage.storage_align(stage.axis[0], 8, 1)),
    ],
)
def test_the_memory_of_a_parameter_is_as_it_is(step, take):
    a, b, c = program(1)
    s = te.create_schedule(c)
    take(s[b])
    with pytest.raises(te.LowerError, match=f"{step} of 'b': it is a parameter"):
        te.lower(s, [a, b, c], target=TARGET)


def test_elements_are_not_counted_one_by_one():
    a = te.placeholder((1 << 14, 1 << 10), "int8", name="a")
    b = te.compute(a.shape, lambda i, j: a[i, j] + te.const(1, "int8"), name="b")
    c = te.compute(a.shape, lambda i, j: b[i, j] * te.const(2, "int8"), name="c")
    s = te.create_schedule([b, c])
    loop = s[c].fuse(*c.op.axis)
    s[b].compute_at(s[c], s[c].split(loop, factor=1 << 10)[0])
    te.lower(s, [a, b, c], target=TARGET)

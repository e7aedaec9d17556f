"""Sizes that are known when a kernel is called: memory of intermediates on the host and on devices, types of 64 bits."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compass_runtime.errors import RuntimeStateError
from compassc import te

LLVM = "llvm -opt-level=1"
COLUMNS = 6
SIZES = (0, 1, 5, 6000)


def program(kind: str):
    n, m = te.size_var("n", kind), te.const(COLUMNS, kind)
    a = te.placeholder((n, m), "int32", name="a")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2 + j.astype("int32"), name="b")
    k = te.reduce_axis((0, m), "k")
    c = te.compute((n,), lambda i: te.sum(b[i, k], axis=k), name="c")
    return a, b, c, te.create_schedule(c)


def whole(s, b, c):
    """Memory for all of b."""


def in_parallel(s, b, c):
    s[b].parallel(b.op.axis[0])
    s[c].parallel(c.op.axis[0])


def at_a_loop_over_columns(s, b, c):
    (k,) = c.op.reduce_axis
    s[c].reorder(k, c.op.axis[0])
    s[b].compute_at(s[c], k)


def at_tiles_in_vectors(s, b, c):
    outer, inner = s[c].split(c.op.axis[0], factor=np.int64(4))
    s[b].compute_at(s[c], outer)
    s[b].vectorize(b.op.axis[1])
    s[c].vectorize(inner)


def in_parts(s, b, c):
    s[b].compute_inline()
    s.rfactor(c, s[c].split(c.op.reduce_axis[0], nparts=2)[0])


STEPS = (whole, in_parallel, at_a_loop_over_columns, at_tiles_in_vectors, in_parts)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_the_host_has_memory_for_open_sizes(steps, kind):
    a, b, c, s = program(kind)
    steps(s, b, c)
    run = te.build(s, [a, c], LLVM)
    for n in SIZES:
        given = np.arange(n * COLUMNS, dtype="int32").reshape(n, COLUMNS) % 997
        found = np.zeros(n, "int32")
        run(given, found)
        np.testing.assert_array_equal(found, (given * 2 + np.arange(COLUMNS)).sum(1))


@pytest.mark.parametrize("target", ["llvm -opt-level=0", "c"])
def test_no_array_has_more_elements_than_positions_count(target):
    n = te.size_var("n")
    a = te.placeholder((n,), "int8", name="a")
    b = te.compute((n, n), lambda i, j: a[i] + a[j], name="b")
    c = te.compute((n,), lambda i: b[i, n - 1 - i], name="c")
    run = te.build(te.create_schedule(c), [a, c], target)
    size = 1 << 16  # a square of this, in 32 bits, is nothing
    with pytest.raises(RuntimeStateError, match="out of memory"):
        run(np.zeros(size, "int8"), np.zeros(size, "int8"))
    whole = te.create_schedule(te.compute((1 << 30, 2), lambda i, j: te.const(0, "int8"), name="whole").op)
    reader = te.compute((4,), lambda i: whole.outputs[0].output(0)[i, 0], name="reader")
    with pytest.raises(CompassError, match="'whole' has 2,147,483,648 elements"):
        te.build(te.create_schedule(reader), [reader], target)


def test_the_npu_has_none():
    a, _, c, s = program("int32")
    with pytest.raises(te.LowerError, match="the memory of 'b' has no constant size: axis 'i' has extent n"):
        te.lower(s, [a, c], target="X2_1204")
    a, b, c, s = program("int64")
    s[b].compute_inline()
    with pytest.raises(
        te.LowerError, match="the parameter 'n' is of type int64, which kernels for X2_1204 do not take"
    ):
        te.lower(s, [a, c], target="X2_1204")


def test_constant_shapes_of_64_bits_are_loops_of_32():
    wide = [te.const(d, "int64") for d in (9, 8)]
    a = te.placeholder(wide, "int32", name="a")
    b = te.compute(wide, lambda i, j: a[i, j] * 2, name="b")
    s = te.create_schedule(b)
    outer, _ = s[b].split(b.op.axis[0], factor=4)
    copy = s.cache_read(a, "lsram", [b])
    s[copy].compute_at(s[b], outer)
    s[b].vectorize(b.op.axis[1])
    body = te.lower(s, [a, b], target="X2_1204").script().split("a_lsram", 1)[1]
    assert "int64" not in body and "S.dma_copy(" in body


def rows_in_one_loop():
    n = te.size_var("n")
    x = te.placeholder((4, n), "int32", name="x")
    y = te.compute((4, n), lambda i, j: x[i, j] + 1, name="y")
    z = te.compute((4, n), lambda i, j: y[i, j] * 2, name="z")
    return n, x, y, z, te.create_schedule(z)


def test_parts_of_fused_loops_of_open_extents_need_whole_axes():
    n, x, y, z, s = rows_in_one_loop()
    outer, _ = s[z].split(s[z].fuse(*z.op.axis), factor=4)
    s[y].compute_at(s[z], outer)
    with pytest.raises(te.LowerError, match="the memory of 'y' has no constant size: axis 'j' has extent n"):
        te.lower(s, [x, z, n], "k", target="X2_1204")
    run = te.build(s, [x, z, n], LLVM)
    for size in SIZES[:3]:
        given = np.arange(4 * size, dtype="int32").reshape(4, size)
        found = np.zeros_like(given)
        run(given, found, size)
        np.testing.assert_array_equal(found, (given + 1) * 2)


@pytest.mark.parametrize("step", ["unroll", "vectorize"])
def test_loops_that_are_written_out_have_constant_extents(step):
    n, x, y, z, s = rows_in_one_loop()
    s[y].compute_inline()
    getattr(s[z], step)(z.op.axis[1])
    with pytest.raises(te.LowerError, match=f"{step} of 'z': 'j' has extent n, no constant"):
        te.lower(s, [x, z, n], "k", target="X2_1204")

"""Loops over TECs: what is shared out, what stands beside it, reductions across TECs, stages computed together."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te
from compassc.analysis.interpret import Interpreter
from compassc.dsl import BuildManager

TARGET = "X2_1204"


def check(schedule, args, given, want):
    """The kernel gives what it should, in turns of TECs and on the simulator, without a race."""
    module = te.lower(schedule, args, "k", target=TARGET)
    for early in (False, True):
        found = np.full_like(want, 99)
        Interpreter(module.entry_func, early=early)(*given, found)
        np.testing.assert_array_equal(found, want)
    found = np.full_like(want, 99)
    run = BuildManager(TARGET).build(module)
    assert run.check(*given, found, modes="race,bounds") == []
    run(*given, found)
    np.testing.assert_array_equal(found, want)
    return module.script()


@pytest.mark.parametrize("parts", [3, 4, 7])
def test_tecs_reduce_a_part_each(parts):
    a = te.placeholder((1000,), "int32", name="a")
    k = te.reduce_axis((0, 1000), "k")
    c = te.compute((1,), lambda i: te.max(a[k], axis=k), name="c")
    s = te.create_schedule(c)
    outer, inner = s[c].split(k, nparts=parts)
    s[c].bind(outer, te.thread_axis("threadIdx.x"))
    s[c].vectorize(s[c].split(inner, factor=8)[1])
    x = np.random.default_rng(0).integers(-9999, 9999, 1000).astype("int32")
    text = check(s, [a, c], [x], x.max(keepdims=True))
    assert "c_rf" in text and "S.barrier" in text


def test_rows_one_after_another_are_reduced_by_all_tecs():
    a = te.placeholder((5, 64), "int32", name="a")
    k = te.reduce_axis((0, 64), "k")
    total = te.compute((5,), lambda i: te.sum(a[i, k], axis=k), name="total")
    b = te.compute((5, 64), lambda i, j: a[i, j] - total[i], name="b")
    s = te.create_schedule(b)
    row, column = b.op.axis
    s[b].bind(row, te.thread_axis("blockIdx.x"))
    s[b].bind(s[b].split(column, nparts=4)[0], te.thread_axis("threadIdx.x"))
    s[total].compute_at(s[b], row)
    s[total].set_scope("shared")
    s[total].bind(s[total].split(k, nparts=4)[0], te.thread_axis("threadIdx.x"))
    x = np.random.default_rng(0).integers(-99, 99, (5, 64)).astype("int32")
    check(s, [a, b], [x], x - x.sum(1, dtype="int32")[:, None])


@pytest.mark.parametrize("threads", [3, 4])
def test_tecs_fetch_what_all_of_them_read_together(threads):
    rows, depth, columns = 4 * threads, 32, 8
    a, b = te.placeholder((rows, depth), "int32", name="a"), te.placeholder((depth, columns), "int32", name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c)
    local = s.cache_write(c, "lsram")
    tile = s.cache_read(b, "shared", [local])
    i, _ = c.op.axis
    share, _ = s[c].split(i, nparts=threads)
    s[c].bind(share, te.thread_axis("threadIdx.x"))
    s[local].compute_at(s[c], share)
    ko, ki = s[local].split(local.op.reduce_axis[0], factor=16)
    s[local].reorder(ko, *local.op.axis, ki)
    s[tile].compute_at(s[local], ko)
    s[tile].bind(s[tile].split(tile.op.axis[0], nparts=4)[0], te.thread_axis("threadIdx.x"))
    x, y = (
        np.random.default_rng(n).integers(-9, 9, t).astype("int32") for n, t in enumerate(((rows, depth), (depth, 8)))
    )
    text = check(s, [a, b, c], [x, y], x @ y)
    assert 'b_shared = T.alloc((16, 8), "int32", "shared")' in text and "S.dma_copy(T.addr(b_shared" in text


def test_stages_computed_together_need_as_many_turns_as_tecs():
    a = te.placeholder((64,), "int32", name="a")
    b = te.compute((64,), lambda i: a[i] + a[63 - i], name="b")
    s = te.create_schedule(b)
    copy = s.cache_read(a, "shared", [b])
    outer, _ = s[b].split(b.op.axis[0], factor=8)
    s[b].bind(outer, te.thread_axis("threadIdx.x"))
    s[copy].compute_at(s[b], outer)
    s[copy].bind(s[copy].split(copy.op.axis[0], nparts=4)[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(te.LowerError, match="'i_outer' has more turns than the 4 TECs"):
        te.lower(s, [a, b], target=TARGET)


def test_two_loops_of_a_reduction_are_not_both_bound():
    a = te.placeholder((8, 8), "int32", name="a")
    k, j = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "j")
    c = te.compute((1,), lambda i: te.sum(a[k, j], axis=[k, j]), name="c")
    s = te.create_schedule(c)
    s[c].bind(k, te.thread_axis("threadIdx.x"))
    s[c].bind(j, te.thread_axis("threadIdx.y"))
    with pytest.raises(te.LowerError, match="two loops of its reduction"):
        te.lower(s, [a, c], target=TARGET)


def test_tecs_wait_before_what_they_share_is_overwritten():
    a = te.placeholder((6, 16), "int32", name="a")
    b = te.compute((6, 16), lambda i, j: a[i, 15 - j] + 1, name="b")
    s = te.create_schedule(b)
    copy = s.cache_read(a, "shared", [b])
    outer, _ = s[b].split(b.op.axis[1], nparts=4)
    s[b].bind(outer, te.thread_axis("threadIdx.x"))
    s[copy].compute_at(s[b], outer)
    s[copy].bind(s[copy].split(copy.op.axis[1], nparts=3)[0], te.thread_axis("threadIdx.x"))
    x = np.arange(96, dtype="int32").reshape(6, 16)
    text = check(s, [a, b], [x], np.ascontiguousarray(x[:, ::-1] + 1))
    assert text.count("S.barrier") == 2  # after the copy, and before the next row's


@pytest.mark.parametrize("scope", ["", "shared"])
@pytest.mark.parametrize("parts", [(4, 4), (4, 3), (2, 4)])
def test_tecs_that_compute_a_stage_together_compute_what_all_of_them_read(parts, scope):
    a = te.placeholder((3, 24), "int32", name="a")
    b = te.compute((3, 24), lambda i, j: a[i, j] + 1, name="b")
    c = te.compute((3, 24), lambda i, j: b[i, 23 - j] * 2, name="c")
    s = te.create_schedule(c)
    outer, _ = s[c].split(c.op.axis[1], nparts=parts[0])
    s[c].bind(outer, te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], outer)
    s[b].bind(s[b].split(b.op.axis[1], nparts=parts[1])[0], te.thread_axis("threadIdx.x"))
    if scope:
        s[b].set_scope(scope)
    x = np.arange(72, dtype="int32").reshape(3, 24)
    text = check(s, [a, c], [x], np.ascontiguousarray(x[:, ::-1] + 1) * 2)
    assert 'T.alloc((1, 24), "int32", "shared")' in text or 'T.alloc((24,), "int32", "shared")' in text


def test_what_one_tec_has_is_not_read_by_all():
    a = te.placeholder((16,), "int32", name="a")
    b = te.compute((16,), lambda i: a[i] + a[15 - i], name="b")
    s = te.create_schedule(b)
    outer, _ = s[b].split(b.op.axis[0], nparts=4)
    s[b].bind(outer, te.thread_axis("threadIdx.x"))
    own = s.cache_read(a, "lsram", [b])
    common = s.cache_read(own, "shared", [b])
    for t in (own, common):
        s[t].compute_at(s[b], outer)
    s[common].bind(s[common].split(common.op.axis[0], nparts=4)[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(
        te.LowerError, match="computed by all TECs together, but 'a.lsram', which it reads, lies in the"
    ):
        te.lower(s, [a, b], target=TARGET)

"""Statements of schedules on tensors: made functions they compute what the schedule does, and they have the framework's fields."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError

pytestmark = pytest.mark.usefixtures("names")
N = 20


def rows(te, steps):
    """Two stages and a sum of each row, with the steps of a case; gives the schedule, its parameters and what is computed."""
    a = te.placeholder((N, 12), name="a")
    b = te.compute((N, 12), lambda i, j: a[i, j] * 2 + 1, name="b")
    k = te.reduce_axis((0, 12), name="k")
    c = te.compute((N,), lambda i: te.sum(b[i, k], axis=k), name="c")
    s = te.create_schedule(c.op)
    steps(te, s, a, b, c)
    return s, [a, c], lambda a: (a * 2 + 1).sum(axis=1)


def guarded(te, s, a, b, c):
    outer, _ = s[c].split(c.op.axis[0], 8)
    s[b].compute_at(s[c], outer)


def threads(te, s, a, b, c):
    block, thread = s[c].split(c.op.axis[0], 6)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], thread)
    s[b].set_scope("local")


def together(te, s, a, b, c):
    thread = te.thread_axis((0, 5), "threadIdx.x")
    block, own = s[c].split(c.op.axis[0], 5)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(own, thread)
    s[b].compute_at(s[c], block)
    s[b].set_scope("shared")
    s[b].bind(b.op.axis[0], thread)


def copies(te, s, a, b, c):
    own = s.cache_read(a, "local", [b])
    kept = s.cache_write(c, "local")
    outer, inner = s[c].split(c.op.axis[0], 7)
    s[kept].compute_at(s[c], outer)
    s[b].compute_at(s[kept], s[kept].op.axis[0])
    s[own].compute_at(s[b], b.op.axis[0])
    s[own].storage_align(own.op.axis[0], 16, 4)
    s[b].double_buffer()
    s[c].vectorize(inner)


def turned(te, s, a, b, c):
    k = c.op.reduce_axis[0]
    outer, inner = s[c].split(k, 5)
    s[c].reorder(outer, c.op.axis[0], inner)
    s[c].unroll(inner)
    s[c].pragma(outer, "auto_unroll_max_step", 8)


def factored(te, s, a, b, c):
    outer, _ = s[c].split(c.op.reduce_axis[0], 4)
    s.rfactor(c, outer)


@pytest.mark.parametrize("steps", [guarded, threads, together, copies, turned, factored])
@pytest.mark.parametrize("keep", [False, True])
def test_functions_of_statements_compute_what_the_schedule_does(steps, keep):
    import tvm
    from tvm import te

    s, args, expected = rows(te, steps)
    s = s.normalize()
    made = te.schedule.ScheduleOps(s, te.schedule.InferBound(s), keep)
    assert isinstance(made, tvm.tir.Stmt) and str(made)
    run = tvm.build(te.schedule.SchedulePostProcToPrimFunc(args, made, None), target="llvm")
    a = np.random.default_rng(1).integers(-9, 9, (N, 12)).astype("float32")
    given, result = tvm.nd.array(a), tvm.nd.array(np.zeros(N, "float32"))
    run(given, result)
    np.testing.assert_array_equal(result.numpy(), expected(a))


def test_scans_and_statements_of_the_users():
    """The parts of a scan are its result; buffers of statements are attributes that say what they are parts of."""
    import tvm
    from tvm import te

    x, state = te.placeholder((6, 4), name="x"), te.placeholder((6, 4), name="state")
    first = te.compute((1, 4), lambda _, i: x[0, i])
    step = te.compute((6, 4), lambda t, i: state[t - 1, i] + x[t, i])
    total = te.scan(first, step, state, inputs=[x])

    def double(ins, outs):
        b = tvm.tir.ir_builder.create()
        source, target = b.buffer_ptr(ins[0]), b.buffer_ptr(outs[0])
        with b.for_range(0, 6) as i, b.for_range(0, 4) as j:
            target[i, j] = source[i, j] * 2.0
        return b.get()

    twice = te.extern((6, 4), [total], double, name="twice", dtype="float32")
    s = te.create_schedule(twice.op).normalize()
    made = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    said = []
    tvm.tir.stmt_functor.post_order_visit(made, lambda x: said.append(x) if isinstance(x, tvm.tir.AttrStmt) else None)
    assert {(x.attr_key, x.node[1].op.name) for x in said} == {
        ("buffer_bind_scope", "scan"),
        ("buffer_bind_scope", "twice"),
    }
    run = tvm.build(te.schedule.SchedulePostProcToPrimFunc([x, twice], made, None), target="llvm")
    given = np.random.default_rng(2).integers(-9, 9, (6, 4)).astype("float32")
    result = tvm.nd.array(np.zeros((6, 4), "float32"))
    run(tvm.nd.array(given), result)
    np.testing.assert_array_equal(result.numpy(), given.cumsum(axis=0) * 2)


def test_intrinsics_stand_for_parts_of_tensors():
    import tvm
    from tvm import te

    a = te.placeholder((16,), name="a")
    b = te.compute((16,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[0], 4)
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="y")

    def instead(ins, outs):
        build = tvm.tir.ir_builder.create()
        with build.for_range(0, 4) as i:
            build.emit(outs[0].vstore(3 - i, ins[0].vload(3 - i) + 1.0))
        return build.get()

    s[b].tensorize(inner, te.decl_tensor_intrin(y.op, instead, default_buffer_params={"offset_factor": 1}))
    s = s.normalize()
    made = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    run = tvm.build(te.schedule.SchedulePostProcToPrimFunc([a, b], made, None), target="llvm")
    given, result = np.arange(16, dtype="float32"), tvm.nd.array(np.zeros(16, "float32"))
    run(tvm.nd.array(given), result)
    np.testing.assert_array_equal(result.numpy(), given + 1)


def test_fields_are_those_of_the_framework():
    import tvm
    from tvm import te

    s, _, _ = rows(te, threads)
    c = s.outputs[0].output(0)
    made = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    assert made.producer == c and made.bounds[0].extent.value == N and made.storage_scope == ""
    block = made.body
    assert block.attr_key == "thread_extent" and block.node.thread_tag == "blockIdx.x" and block.value.value == 4
    local = block.body.body
    assert isinstance(local, tvm.tir.ProducerRealize) and local.storage_scope == "local"
    assert [r.extent.value for r in local.bounds] == [1, 12]
    loop = local.body[0]
    assert isinstance(loop, tvm.tir.For) and loop.extent.value == 12
    found = []
    tvm.tir.stmt_functor.post_order_visit(
        loop, lambda x: found.append(x) if isinstance(x, tvm.tir.ProducerStore) else None
    )
    assert [x.producer.op.name for x in found] == ["b"] and isinstance(found[0].value, tvm.tir.Add)


def test_threads_that_reduce_together_are_refused():
    from tvm import te

    s, _, _ = rows(te, lambda te, s, a, b, c: s[c].bind(c.op.reduce_axis[0], te.thread_axis("threadIdx.x")))
    with pytest.raises(CompassError, match="threads reduce 'c' together"):
        te.schedule.ScheduleOps(s, te.schedule.InferBound(s))

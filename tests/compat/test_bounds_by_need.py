"""Bounds by the framework's rules: what is read decides, threads stand still by memory; and what is asked of tensorized loops."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError

pytestmark = pytest.mark.usefixtures("names")


def run(s, bounds, args, *arrays):
    """What the statements of a schedule compute with these bounds."""
    import tvm
    from tvm import te

    made = te.schedule.ScheduleOps(s, bounds)
    function = tvm.build(te.schedule.SchedulePostProcToPrimFunc(args, made, None), target="llvm")
    given = [tvm.nd.array(a) for a in arrays]
    function(*given)
    return given[-1].numpy()


@pytest.mark.parametrize(
    ("first", "count", "region"), [(0, 10, (0, 10)), (3, 10, (3, 10)), (0, 20, (0, 20)), (15, 4, (15, 4))]
)
def test_outermost_stages_reach_as_far_as_they_are_read(first, count, region):
    from tvm import te

    a = te.placeholder((20,), name="a")
    b = te.compute((20,), lambda i: a[i] * 2, name="b")
    c = te.compute((count,), lambda i: b[i + first] + 1, name="c")
    s = te.create_schedule(c.op)
    bounds = te.schedule.InferBound(s)
    found = bounds[b.op.axis[0]]
    assert (found.min.value, found.extent.value) == region
    given = np.arange(20, dtype="float32")
    result = run(s, bounds, [a, c], given, np.zeros(count, "float32"))
    np.testing.assert_array_equal(result, given[first : first + count] * 2 + 1)


def test_what_is_read_beyond_the_end_is_under_a_condition():
    import tvm
    from tvm import te

    a = te.placeholder((8,), name="a")
    b = te.compute((10,), lambda i: te.if_then_else(te.all(i > 0, i < 9), a[i - 1], 0.0), name="b")
    s = te.create_schedule(b.op)
    own = s.cache_read(a, "local", [b])
    bounds = te.schedule.InferBound(s)
    assert (bounds[own.op.axis[0]].min.value, bounds[own.op.axis[0]].extent.value) == (-1, 10)
    found = []
    made = te.schedule.ScheduleOps(s, bounds)
    tvm.tir.stmt_functor.post_order_visit(
        made, lambda x: found.append(x) if isinstance(x, tvm.tir.IfThenElse) else None
    )
    assert len(found) == 2
    given = np.arange(1, 9, dtype="float32")
    np.testing.assert_array_equal(run(s, bounds, [a, b], given, np.zeros(10, "float32")), np.pad(given, 1))


@pytest.mark.parametrize(
    ("scope", "extent"), [("global", 64), ("shared", 16), ("warp", 16), ("local", 1), ("", 1)]
)  # by how many threads have it
def test_threads_stand_still_where_each_has_memory_of_its_own(scope, extent):
    from tvm import te

    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] * 2, name="b")
    c = te.compute((64,), lambda i: b[i] + 1, name="c")
    s = te.create_schedule(c.op)
    block, thread = s[c].split(c.op.axis[0], 16)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], thread)
    if scope:
        s[b].set_scope(scope)
    bounds = te.schedule.InferBound(s)
    assert bounds[b.op.axis[0]].extent.value == extent
    given = np.arange(64, dtype="float32")
    np.testing.assert_array_equal(run(s, bounds, [a, c], given, np.zeros(64, "float32")), given * 2 + 1)


@pytest.mark.parametrize("factor", [2, 3, 4, 6, 12])
def test_parts_of_fused_loops_reach_as_far_as_the_loop(factor):
    """Turns within one row have one row; others whole rows."""
    from tvm import te

    a = te.placeholder((8, 6), name="a")
    b = te.compute((8, 6), lambda i, j: a[i, j] * 2, name="b")
    c = te.compute((8, 6), lambda i, j: b[i, j] + 1, name="c")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(s[c].fuse(*c.op.axis), factor)
    s[b].compute_at(s[c], outer)
    bounds = te.schedule.InferBound(s)
    within = 6 % factor == 0
    assert bounds[b.op.axis[1]].extent.value == (factor if within else 6)
    if within:
        assert bounds[b.op.axis[0]].extent.value == 1
    given = np.random.default_rng(1).integers(-9, 9, (8, 6)).astype("float32")
    np.testing.assert_array_equal(run(s, bounds, [a, c], given, np.zeros_like(given)), given * 2 + 1)


def test_bounds_of_open_sizes_are_said_by_the_axes():
    import tvm
    from tvm import te

    n, m, f = te.var("n"), te.var("m"), te.var("f")
    a = te.placeholder((n, m), name="a")
    b = te.compute((n, m), lambda i, j: a[i, j], name="b")
    c = te.compute((n, m), lambda i, j: b[i, j], name="c")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(s[c].fuse(*c.op.axis), f)
    s[b].compute_at(s[c], outer)
    bounds = te.schedule.InferBound(s)
    tvm.testing.assert_prim_expr_equal(bounds[b.op.axis[0]].min, tvm.tir.indexdiv(outer * f, m))
    tvm.testing.assert_prim_expr_equal(bounds[b.op.axis[1]].extent, m)


def add(te, tvm, n):
    """An intrinsic that adds vectors."""
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    z = te.compute((n,), lambda i: x[i] + y[i], name="z")
    return te.decl_tensor_intrin(
        z.op, lambda ins, outs: tvm.tir.call_packed("add", *ins, *outs), default_buffer_params={"offset_factor": n}
    )


@pytest.mark.parametrize("factor", [4, 16])
def test_what_an_intrinsic_works_on(factor):
    import tvm
    from tvm import te

    a, b = te.placeholder((64,), name="a"), te.placeholder((64,), name="b")
    c = te.compute((64,), lambda i: a[i] + b[i], name="c")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor)
    intrin = add(te, tvm, factor)
    bounds = te.schedule.InferBound(s)
    infer, match = map(tvm.get_global_func, ("test.op.InferTensorizeRegion", "test.op.MatchTensorizeBody"))
    with pytest.raises(CompassError, match="no loop of 'c' is tensorized"):
        infer(s[c], bounds)
    s[c].tensorize(inner, intrin)
    own, read = infer(s[c], bounds)
    region = own[c.op.axis[0]]
    assert tvm.ir.structural_equal(region.extent, factor) and tvm.ir.structural_equal(region.min, outer * factor)
    assert [t.op.name for t, _ in read.items()] == ["a", "b"] and read.items()[0][1][0] == region
    (body,) = match(s[c], own, read, intrin)
    assert tvm.ir.structural_equal(body, intrin.op.body[0])
    with pytest.raises(CompassError, match="is not the intrinsic of 'c'"):
        match(s[c], own, read, add(te, tvm, factor))


def test_names_of_operations_and_values_of_attributes():
    import json

    import tvm
    from tvm import te

    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: te.exp(a[i]), name="b", attrs={"count": 3, "sizes": [1, 2], "word": "w"})
    call = b.op.body[0]
    assert call.op.name == "tir.exp" and call.op.same_as(tvm.ir.Op.get("tir.exp"))
    assert not call.op.same_as(tvm.ir.Op.get("tir.log")) and tvm.ir.Op.get("nn.relu").name == "nn.relu"
    assert b.op.attrs["count"].value == 3 and [x.value for x in b.op.attrs["sizes"]] == [1, 2]
    assert json.loads(str(b.op.attrs)) == {"count": 3, "sizes": [1, 2], "word": "w"}
    s = te.create_schedule(b.op)
    s[b].pragma(b.op.axis[0], "own", 5)
    (note,) = s[b].iter_var_attrs.values()
    assert [(k.value, v.value) for k, v in zip(note.pragma_keys, note.pragma_values)] == [("own", 5)]


def test_blocks_call_packed_functions():
    import tvm
    from tvm import te

    tvm.register_func("tests.twice", lambda a, b: b.copyfrom(a.numpy() * 2), override=True)
    a = te.placeholder((8,), name="a")
    b = te.extern(
        (8,), [a], lambda ins, outs: tvm.tir.call_packed("tests.twice", ins[0], outs[0]), name="b", dtype="float32"
    )
    c = te.compute((8,), lambda i: b[i] + 1, name="c")
    function = tvm.build(te.create_prim_func([a, c]), target="llvm")
    given, result = np.arange(8, dtype="float32"), tvm.nd.array(np.zeros(8, "float32"))
    function(tvm.nd.array(given), result)
    np.testing.assert_array_equal(result.numpy(), given * 2 + 1)
    with pytest.raises(CompassError, match="calls no packed functions"):
        tvm.build(te.create_prim_func([a, c]), target="X2_1204")


def test_renewed_functions_are_equal_and_share_no_variables():
    import tvm
    from tvm import te

    a = te.placeholder((8, 4), name="a")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((8,), lambda i: te.sum(te.exp(a[i, k]), axis=k), name="c")
    for function in (te.create_prim_func([a, c]), tvm.lower(te.create_schedule(c.op), [a, c])["main"]):
        renewed = tvm.tir.stmt_functor.renew_defs(function)
        tvm.ir.assert_structural_equal(function, renewed)
        found = []
        for f in (function, renewed):
            seen = list(f.params)
            tvm.tir.stmt_functor.post_order_visit(f.body, seen.append)
            found.append({x for x in seen if isinstance(x, tvm.tir.Var)})
        assert found[0] and not found[0] & found[1]

"""What programs ask of schedules of stages: bounds by axis, graphs, ways; texts of modules of the host; tags."""

from __future__ import annotations

import pytest

from compass_core.errors import CompassError, UsageError
from compassc.compat import te_saving

pytestmark = pytest.mark.usefixtures("names")


def chain(te, n=64):
    a = te.placeholder((n, n), name="a")
    b = te.compute((n, n), lambda i, j: a[i, j] + 1, name="b")
    c = te.compute((n, n), lambda i, j: b[i, j] * 2, name="c")
    return a, b, c, te.create_schedule(c.op)


@pytest.mark.parametrize("factor", [3, 8])
def test_bounds_are_those_of_all_axes_and_threads(factor):
    """What is computed at a loop has the range of what is read below it; loops and threads have theirs."""
    import tvm
    from tvm import te

    _, b, c, s = chain(te)
    outer, inner = s[c].split(c.op.axis[0], factor)
    thread = te.thread_axis("blockIdx.x")
    s[c].bind(outer, thread)
    s[b].compute_at(s[c], outer)
    bounds = te.schedule.InferBound(s.normalize())
    assert isinstance(bounds, tvm.container.Map) and {outer, inner, thread, *b.op.axis, *c.op.axis} <= set(bounds)
    assert bounds[b.op.axis[0]].extent.value == bounds[inner].extent.value == factor
    assert bounds[b.op.axis[1]].extent.value == bounds[c.op.axis[0]].extent.value == 64
    assert bounds[thread].extent.value == bounds[outer].extent.value == -(-64 // factor)
    assert "for" in te.schedule.ScheduleOps(s, bounds).script()


def test_bounds_are_there_without_stages_that_are_inlined():
    from tvm import te

    _, b, c, s = chain(te)
    s[b].compute_inline()
    bounds = te.schedule.InferBound(s)
    assert b.op.axis[0] not in bounds and bounds[c.op.axis[1]].extent.value == 64


def test_graphs_and_ways():
    from tvm import te

    a, b, c, s = chain(te)
    graph = te.schedule.CreateReadGraph([c.op])
    assert graph[c.op] == [b] and graph[b.op] == [a]
    assert te.schedule.PostDFSOrder([c.op], graph) == [a.op, b.op, c.op]
    s[b].compute_at(s[c], c.op.axis[1])
    ways = te.schedule.CreateAttachPath(s)
    assert ways[b.op] == [c.op.axis[1], c.op.axis[0]] and ways[c.op] == []
    s[b].fuse(*b.op.axis)
    (relation,) = s[b].relations
    assert isinstance(relation, te.schedule.Fuse) and not isinstance(relation, te.schedule.Split)
    seen = []
    te.extern((4,), [a], lambda ins, outs: seen.append(ins[0]) or te.call_packed("f", ins[0], outs[0]), dtype="float32")
    assert isinstance(seen[0], te.schedule.Buffer)


def test_pragmas_and_memory_of_other_machines_change_nothing():
    from tvm import te

    _, b, c, s = chain(te)
    s[c].pragma(c.op.axis[0], "tensor_core")
    assert [k.value for k in s[c].iter_var_attrs[c.op.axis[0]].pragma_keys] == ["tensor_core"]
    s[b].set_scope("warp")
    assert s[b].scope == "local"


def test_modules_of_the_host_show_what_clang_makes_of_them():
    import tvm
    from tvm import te

    a, _, c, s = chain(te)
    module = tvm.build(s, [a, c], "llvm")
    assert "define" in module.get_source("ll") and "compass_entry:" in module.get_source("asm")
    assert module.get_source("ptx") == ""


def test_tags_tell_tensors_from_numbers():
    from tvm import te, topi

    a, b = te.placeholder((4, 4), name="a"), te.placeholder((4,), name="b")
    assert topi.add(a, b).op.tag == "broadcast" and topi.add(a, 1.0).op.tag == "elemwise"


def test_loop_nests_become_functions_of_the_parameters_that_are_asked_for():
    import tvm
    from tvm import te

    a, _, c, s = chain(te)
    nest = te.schedule.ScheduleOps(s, te.schedule.InferBound(s))
    function = te.schedule.SchedulePostProcToPrimFunc([c, a], nest, None)
    assert [p.name for p in function.params] == ["c", "a"]
    module = tvm.driver.build_module.schedule_to_module(s, [a, c], name="f")
    assert [f.name for f in module.functions] == ["f"] and len(module["f"].params) == 2
    with pytest.raises(CompassError, match="'b' is neither a parameter nor realized"):
        te.schedule.SchedulePostProcToPrimFunc([a], nest.body)


def test_each_step_leaves_a_state_that_can_be_lowered():
    """With `te.keep_schedule_record` there is a state per step, under the names of the framework; others keep nothing."""
    import tvm
    from tvm import te

    with tvm.transform.PassContext(config={"te.keep_schedule_record": True}):
        a, b, c, s = chain(te)
        x, y = c.op.axis
        xo, yo, xi, yi = s[c].tile(x, y, 8, 8)
        s[c].parallel(s[c].fuse(xo, yo))
        s[c].split(xi, nparts=2)
        s[b].compute_inline()
        with pytest.raises(tvm.TVMError):
            s[c].reorder(yi, yi)
    names = ["vanilla", "split", "split", "reorder", "fuse", "fuse", "parallel", "split_by_nparts", "compute_inline"]
    assert s.keep_schedule_record and s.primitive_record == names and len(s.schedule_record) == len(names)
    loops = [len(state[c].leaf_iter_vars) for state in s.schedule_record]
    assert loops == [2, 3, 4, 4, 3, 3, 3, 4, 4], "what comes later does not change a state"
    texts = [str(tvm.lower(state, [a, c], simple_mode=True)) for state in s.schedule_record]
    assert len(set(texts)) == len(names) - 1 and texts[4] == texts[5], "the second `fuse` is the step of the first"
    assert not chain(te)[-1].primitive_record


@pytest.mark.parametrize("wanted", ["ElemWise", "Broadcast", "Injective"])
def test_simple_stages_are_inlined_by_their_kind(wanted):
    from tvm import te

    a = te.placeholder((8, 8), name="a")
    own = te.compute((8, 8), lambda i, j: a[i, j] + 1, name="own")
    turned = te.compute((8, 8), lambda i, j: own[j, i] + 1, name="turned")
    tagged = te.compute((8, 8), lambda i, j: turned[0, j] * 2, name="tagged", tag="broadcast")
    k = te.reduce_axis((0, 8), "k")
    total = te.compute((8, 8), lambda i, j: te.sum(tagged[i, k] + j, axis=k), name="total")
    out = te.compute((8, 8), lambda i, j: total[i, j], name="out")
    s = te.create_schedule(out.op)
    getattr(te.schedule, f"AutoInline{wanted}")(s)
    inlined = {t.name for t in (own, turned, tagged, total, out) if s[t].attach_type == 2}
    assert inlined == {"ElemWise": {"own"}, "Broadcast": {"tagged"}, "Injective": {"own", "turned", "tagged"}}[wanted]


@pytest.mark.parametrize(
    ("read", "carried"), [("s[t - 1, i, j]", [1, 1]), ("s[t - 1, j, i]", [0, 0]), ("s[t - 1, i, 0]", [1, 0])]
)
def test_scans_say_what_is_computed_anew_and_what_is_carried(read, carried):
    from tvm import te

    x, s = te.placeholder((4, 8, 8), name="x"), te.placeholder((4, 8, 8), name="s")
    first = te.compute((1, 8, 8), lambda _, i, j: x[0, i, j])
    mine = eval(f"lambda t, i, j: {read} + x[t, j, i]", {"s": s, "x": x})
    step = te.compute((4, 8, 8), mine, name="step")
    update = te.compute((4, 8, 8), lambda t, i, j: step[t, i, j] * 2, name="update")
    op = te.scan(first, update, s).op
    assert te.schedule.ScanGetBody(op) == [step.op, update.op]
    found = te.schedule.ScanFixPointAnalysis(op)
    assert [found[axis].value for axis in op.spatial_axis_] == carried
    schedule = te.create_schedule(op)
    assert te.schedule.CreateAttachPath(schedule)[step.op] == [op.scan_axis]
    plain = schedule.normalize()
    assert "for" in te.schedule.ScheduleOps(plain, te.schedule.InferBound(plain)).script()


def test_loops_have_no_turns_beyond_what_they_divide():
    """A split of `8 * m` by 8 is exact, one by more than there is has what there is."""
    from tvm import te

    m = te.size_var("m")
    a = te.placeholder((8 * m, 5), name="a")
    b = te.compute((8 * m, 5), lambda i, j: a[i, j], name="b")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], 8)
    parts, rest = s[b].split(b.op.axis[1], nparts=32)
    bounds = te.schedule.InferBound(s)
    assert bounds[outer].extent is m and bounds[inner].extent.value == 8
    assert [bounds[x].extent.value for x in (parts, rest)] == [5, 1]
    assert "if" not in str(te.schedule.ScheduleOps(s, bounds).script())


def test_sums_reach_as_far_as_another_axis_says():
    import numpy as np
    import tvm
    from tvm import te

    x = te.placeholder((10,), name="x")

    def before(n):
        k = te.reduce_axis((0, n))
        return te.sum(x[k], axis=k)

    y = te.compute((10,), before, name="y")
    s = te.create_schedule(y.op)
    s[y].split(y.op.axis[0], 4)
    given, found = np.arange(10, dtype="f4"), np.zeros(10, "f4")
    tvm.build(s, [x, y], "llvm")(given, found)
    assert found.tolist() == [given[:n].sum() for n in range(10)]


def saved_parts():
    from tvm import te

    a, b, c, s = chain(te, te.var("n"))
    s[c].split(c.op.axis[0], 8)
    k = te.reduce_axis((0, 4), "k")
    total = te.compute((4,), lambda i: te.sum(c((i, k)) * 2, axis=k), name="total")
    return {
        "tensor": c,
        "operation": b.op,
        "schedule": s,
        "list": [a, c],
        "expression": c(1, 2) + 1,
        "reduction": total,
    }


@pytest.mark.parametrize("part", ["tensor", "operation", "schedule", "list", "expression", "reduction"])
def test_tensors_are_saved_with_what_they_are_made_of(part):
    """What is read has the text of what was saved, is lowered to the same, and shares its axes."""
    import tvm
    from tvm import te

    saved = saved_parts()[part]
    again = tvm.ir.load_json(tvm.ir.save_json(saved))
    assert type(again) is type(saved)
    if part == "schedule":
        texts = [te.schedule.ScheduleOps(s, te.schedule.InferBound(s)).script() for s in (saved, again)]
        assert texts[0] == texts[1] and "i_outer" in texts[0]
    else:
        assert str(again) == str(saved)
    if part == "reduction":
        assert str(again.op.body) == str(saved.op.body) and again.op.reduce_axis[0] is again.op.body[0].axis[0]


def test_saved_tensors_name_nothing_else():
    """Text that would call anything else is refused before it does, and so are tensors with functions of Python."""
    import json
    import os
    import pickle

    import tvm
    from tvm import te

    class Other:
        def __reduce__(self):
            return os.getcwd, ()

    saved = json.loads(tvm.ir.save_json(te.placeholder((4,), name="a")))
    for payload in (pickle.dumps(Other()), pickle.dumps(saved_parts)[:-4], b"x"):
        saved["text"] = te_saving.sealed(payload)
        with pytest.raises(UsageError, match="no saved tensors"):
            tvm.ir.load_json(json.dumps(saved))
    a = te.placeholder((4,), name="a")
    with pytest.raises(UsageError, match="parts of Python cannot be saved"):
        tvm.ir.save_json(te.compute((4,), lambda i: a[i], attrs={"f": lambda: 0}))


def test_neighbours_along_an_open_loop_are_a_constant_number():
    """Indices do not wrap round: of `i - 1`, `i` and `i + 1` there are three, whatever `i` is."""
    from tvm import te

    n = te.var("n")
    a = te.compute((n + 2,), lambda i: i, name="a")
    b = te.compute((n,), lambda i: a[i + 2] + a[i] + a(i + 1), name="b")
    s = te.create_schedule(b.op)
    s[a].compute_at(s[b], b.op.axis[0])
    assert te.schedule.InferBound(s)[a.op.axis[0]].extent.value == 3


def test_neighbours_by_unsigned_indices_are_both_computed():
    """`u - 1` is below `u`, though it is the sum of `u` and a large number."""
    from tvm import te

    n = te.var("n")
    a = te.compute((n + 2,), lambda i: i, name="a")
    b = te.compute((n,), lambda i: a[(i + 1).astype("uint32")] + a[(i + 1).astype("uint32") - te.const(1, "uint32")])
    s = te.create_schedule(b.op)
    s[a].compute_at(s[b], b.op.axis[0])
    least = te.schedule.InferBound(s)[a.op.axis[0]].min
    assert least.op == "min" and least.dtype == "uint32"


@pytest.mark.parametrize("shape", [(24,), (4, 6)])
def test_statements_of_extern_are_a_block(shape):
    """The block reads and writes its tensors, prints as script that is read as an equal function, and computes."""
    import numpy as np
    import tvm
    from tvm import te

    def statements(ins, outs):
        ib = tvm.tir.ir_builder.create()
        given, made = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 24, name="i") as i:
            at = (i,) if len(shape) == 1 else (i // 6, i % 6)
            made[at] = given[at] + 1.0
        return ib.get()

    a = te.placeholder(shape, name="a")
    b = te.compute(shape, lambda *i: a(*i) * 2, name="b")
    c = te.extern(shape, [b], statements, name="c", dtype="float32")
    d = te.compute(shape, lambda *i: c(*i) * 10, name="d")
    function = te.create_prim_func([a, d])
    tvm.ir.assert_structural_equal(tvm.script.from_source(function.script()), function)
    s = tvm.tir.Schedule(function)
    block = s.get(s.get_block("c"))
    whole = ", ".join(f"0:{n}" for n in shape)
    assert [str(r) for r in (*block.reads, *block.writes)] == [f"b[{whole}]", f"c[{whole}]"]
    s.split(s.get_loops(s.get_block("d"))[0], [None, 2])
    x = np.arange(24, dtype="float32").reshape(shape)
    out = tvm.nd.array(np.zeros(shape, "float32"))
    tvm.build(s.mod, target="llvm")(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), (x * 2 + 1) * 10)

"""What programs ask of schedules of stages: bounds by axis, graphs, ways; texts of modules of the host; tags."""

from __future__ import annotations

import pytest

from compass_core.errors import UsageError

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
    with pytest.raises(UsageError, match="no loop nest of ScheduleOps"):
        te.schedule.SchedulePostProcToPrimFunc([c, a], module)

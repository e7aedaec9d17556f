"""What stages, groups and axes tell of themselves under the names of the field, and what is warned of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from compassc import te
from tests.choosing import some


def chain():
    a = te.placeholder((8, 4), name="a")
    b = te.compute((8, 4), lambda i, j: a[i, j] + 1.0, name="b")
    c = te.compute((8, 4), lambda i, j: b[i, j] * 2.0, name="c")
    d = te.compute((8, 4), lambda i, j: c[i, j] - 1.0, name="d")
    return te.create_schedule(d), a, b, c, d


def test_where_a_stage_is_computed():
    s, _, b, c, d = chain()
    assert [x.attach_type for x in s.stages] == [1, 1, 1, 1]
    s[b].compute_inline()
    s[c].compute_at(s[d], d.op.axis[0])
    assert (s[b].attach_type, s[c].attach_type) == (2, 4)
    assert s[c].attach_stage is s[d] and s[c].attach_ivar is d.op.axis[0]
    s[c].compute_root()
    assert (s[c].attach_type, s[c].attach_stage, s[c].attach_ivar) == (1, None, None)


def test_the_update_of_a_scan_is_in_its_loop():
    state = te.placeholder((8, 4), name="state")
    init = te.compute((1, 4), lambda i, j: 0.0, name="init")
    update = te.compute((8, 4), lambda t, j: state[t - 1, j] + 1.0, name="update")
    s = te.create_schedule(te.scan(init, update, state))
    assert (s[update].attach_type, s[init].attach_type) == (5, 1)


def test_operations_have_their_stages():
    s, *tensors = chain()
    assert s.stage_map == {t.op: s[t] for t in tensors}
    copy = s.cache_write(tensors[-1], "local")
    assert s.stage_map[copy.op] is s[copy] and s.stage_map[tensors[-1].op].origin_op is tensors[-1].op


@pytest.mark.parametrize(
    ("step", "number"),
    [("unroll", te.IterVar.Unrolled), ("vectorize", te.IterVar.Vectorized), ("parallel", te.IterVar.Parallelized)],
)
def test_what_a_loop_has_become(step, number):
    s, *_, d = chain()
    i, j = d.op.axis
    assert i.iter_type == te.IterVar.DataPar and i.dtype == "int32" and i.thread_tag == ""
    getattr(s[d], step)(j)
    s[d].bind(i, te.thread_axis("threadIdx.x"))
    s[d].pragma(i, "unroll_explicit", 1)
    attrs = s[d].iter_var_attrs
    assert attrs[j].iter_type == number and attrs[i].iter_type == te.IterVar.ThreadIndex
    assert attrs[i].bind_thread.thread_tag == "threadIdx.x" and attrs[j].tensor_intrin is None
    assert (attrs[i].pragma_keys, attrs[i].pragma_values) == (["unroll_explicit"], [1])


@pytest.mark.parametrize(
    ("step", "arguments"), [("compute_inline", ()), ("set_scope", ("lsram",)), ("double_buffer", ())]
)
def test_a_step_on_a_group_is_the_step_on_its_stages(step, arguments):
    texts = []
    for grouped in (True, False):
        s, a, b, c, d = chain()
        group = s.create_group(outputs=c, inputs=a)
        assert s[b].group is group and s[c].group is group and s[d].group is None
        for on in [group] if grouped else [s[b], s[c]]:
            getattr(on, step)(*arguments)
        texts.append(te.lower(s, [a, d], target="X2_1204").script())
        assert te.lower(s.replayed(s.trace), [a, d], target="X2_1204").script() == texts[0]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("step", ["split", "fuse", "reorder", "vectorize", "bind", "pragma", "rolling_buffer"])
def test_a_group_has_no_loops(step):
    s, a, _, c, d = chain()
    group = s.create_group(outputs=c, inputs=a)
    with pytest.raises(te.ScheduleError, match=f"{step} of 'group0': a group has no loops.*") as error:
        getattr(group, step)(d.op.axis[0])
    assert "take the step on one of b, c" in error.value.help
    with pytest.raises(AttributeError):
        _ = group.there_is_no_such_step


def test_a_loop_that_is_bound_again_warns_once_and_has_the_last_thread():
    s, *_, d = chain()
    s[d].bind(d.op.axis[0], te.thread_axis("blockIdx.x"))
    with pytest.warns(UserWarning, match="'i' was bound to blockIdx.x and is to threadIdx.x now") as seen:
        s[d].bind(d.op.axis[0], te.thread_axis("threadIdx.x"))
    assert seen[0].filename == __file__
    assert s[d].iter_var_attrs[d.op.axis[0]].bind_thread.thread_tag == "threadIdx.x"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        s[d].bind(d.op.axis[0], te.thread_axis("threadIdx.x"))
        s.replayed(s.trace)


@pytest.mark.parametrize("tag", ["vthread", "cthread"])
def test_virtual_threads_have_a_dimension(tag):
    with pytest.warns(UserWarning, match=f"the thread '{tag}' is better called 'vthread.x'"):
        axis = te.thread_axis(tag)
    s, *_, d = chain()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        te.thread_axis("vthread.x")
        s[d].bind(d.op.axis[0], axis)
        s.replayed(s.trace)


def test_a_tag_scope_without_operations_warns():
    with pytest.warns(UserWarning, match="no operation was made inside of the tag scope 'conv'"), te.tag_scope("conv"):
        te.placeholder((3,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with te.tag_scope("conv"):
            made = te.extern((3,), [te.placeholder((3,))], lambda ins, outs: outs[0].store(ins[0][0], 0))
    assert made.op.tag == "conv"


@pytest.mark.parametrize("index", [1, -1, 7])
def test_an_operation_has_so_many_outputs(index):
    for t in some(chain()[1:]):
        with pytest.raises(te.ExpressionError, match=f"has 1 outputs, counted from 0; there is no {index}"):
            t.op.output(index)
        assert t.same_as(t.op.output(0))


def test_a_stage_gives_the_operation_that_steps_have_made_of_it():
    a, k = te.placeholder((8, 64), "int32", name="a"), te.reduce_axis((0, 64), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="b")
    s = te.create_schedule(b)
    _, inner = s[b].split(k, factor=16)
    assert s[b].op is b.op
    part = s.rfactor(b, inner)
    now = s[b].op
    (left,) = now.reduce_axis
    assert now is not b.op and now.name == "b.repl" and now.input_tensors == [part] and s[now] is s[b] is s[b.op]
    assert now.output(0) == b
    thread = te.thread_axis("threadIdx.x")
    s[b].bind(left, thread)
    s[b].set_store_predicate(thread.var.equal(0))
    for other in (thread.var < 2, thread.var.equal(99)):
        with pytest.raises(te.ScheduleError, match="is none of its axes"):
            s[b].set_store_predicate(other)
    local = s.cache_write(part, "shared")
    assert s[part].op.reduce_axis == () and s[part].op.axis == part.op.axis and s[part].op.input_tensors == [local]
    given, found = np.arange(512, dtype="int32").reshape(8, 64), np.zeros(8, "int32")
    te.build(s, [a, b], "X2_1204")(given, found)
    np.testing.assert_array_equal(found, given.sum(1))

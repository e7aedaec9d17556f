"""Passes under the framework's names: contexts, sequences, passes of one's own; and what `lower` and `build` do with them."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError

pytestmark = pytest.mark.usefixtures("names")


def doubled(target: str = "llvm"):
    import tvm
    from tvm import te

    a = te.placeholder((8,), "int32", name="a")
    b = te.compute((8,), lambda i: a[i] * 2, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], target)


def ran(module) -> list[int]:
    found = np.zeros(8, "int32")
    module(np.arange(8, dtype="int32"), found)
    return found.tolist()


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
def test_passes_of_one_s_own_run_on_what_is_lowered(target):
    import tvm

    seen = []

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def look(function, module, context):
        seen.append(("function", function.name in str(module), context.config.keys()))
        return function

    @tvm.transform.module_pass(opt_level=1, name="whole")
    def look_first(module, context):
        seen.append("module")
        return module

    with tvm.transform.PassContext(opt_level=3, config={"tir.add_lower_pass": [(2, look), (0, look_first)]}):
        assert ran(doubled(target)) == list(range(0, 16, 2))
    assert seen == ["module", ("function", True, {"tir.add_lower_pass"})] and look_first.info.name == "whole"
    assert tvm.transform.PassContext.current().config == {}


def test_a_pass_that_is_left_out_does_not_run():
    import tvm

    loop = doubled  # 8 turns
    with tvm.transform.PassContext(disabled_pass=["tir.UnrollLoop"]):
        kept = loop("X2_1204").get_source()
    assert kept.count("for (") >= loop("X2_1204").get_source().count("for (")
    with pytest.raises(CompassError, match="NoSuchPass"), tvm.transform.PassContext(disabled_pass=["NoSuchPass"]):
        pass
    with pytest.raises(CompassError, match="no setting 'tir.magic'"):
        tvm.transform.PassContext(config={"tir.magic": 1})


def test_a_sequence_runs_what_the_context_wants():
    import tvm

    ran_passes = []

    def named(name, level):
        return tvm.transform.module_pass(lambda m, c: ran_passes.append(name) or m, opt_level=level, name=name)

    all_of_them = tvm.transform.Sequential([named("one", 1), named("three", 3), tvm.tir.transform.Simplify()])
    module = tvm.IRModule({"main": tvm.te.create_prim_func([tvm.te.placeholder((4,), name="a")])})
    all_of_them(module)
    with tvm.transform.PassContext(opt_level=3, disabled_pass=[]):
        all_of_them(module)
    assert ran_passes == ["one", "one", "three"]


def test_plain_loops_are_lowered_for_any_target():
    import tvm
    from tvm import te

    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    text = tvm.lower(s, [a], simple_mode=True).script()
    assert 'target=""' in text and "b: T.ptr" in text, "an output that is not given is a parameter"
    module = tvm.lower(s, [a, b], simple_mode=True)
    found = np.zeros(3, "f4")
    tvm.build(module, target="llvm")(np.ones(3, "f4"), found)
    assert found.tolist() == [2, 2, 2]
    with pytest.raises(CompassError, match="made for X2_1204") as refused:
        tvm.build(tvm.lower(s, [a, b]), target="llvm")
    assert "Target" in str(refused.value.help)


def test_schedules_by_kind_of_target():
    import tvm
    from tvm import te, topi

    x = te.placeholder((4, 16), name="x")
    out = topi.nn.softmax(x)
    with tvm.target.Target("cuda"):
        assert "threadIdx.x" in str(topi.generic.schedule_softmax(out).trace)
    assert "threadIdx.x" in str(topi.cuda.schedule_softmax([out]).trace)
    assert "threadIdx" not in str(topi.x86.schedule_injective(out).trace)
    assert topi.cuda.conv2d_nchw is topi.nn.conv2d_nchw
    with pytest.raises(AttributeError):
        topi.cuda.no_such_operator  # noqa: B018

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


def test_schedules_are_lowered_for_any_target():
    import tvm
    from tvm import te

    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    text = tvm.lower(s, [a], simple_mode=True).script()
    assert "var_b: T.handle" in text, "an output that is not given is a parameter"
    module = tvm.lower(s, [a, b], simple_mode=True)
    found = np.zeros(3, "f4")
    tvm.build(module, target="llvm")(np.ones(3, "f4"), found)
    assert found.tolist() == [2, 2, 2]
    lowered = tvm.lower(s, [a, b])
    found[:] = 0
    tvm.build(lowered, target="llvm")(np.ones(3, "f4"), found)
    assert found.tolist() == [2, 2, 2]
    with tvm.target.Target("X2_1204"):
        lowered = tvm.lower(s, [a, b])
    changed = lowered.map_functions(lambda f: f.replace(name="changed")).replace(entry="changed")
    with pytest.raises(CompassError, match="made for X2_1204") as refused:
        tvm.build(changed, target="llvm")
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
    assert topi.cuda.conv2d_nchw.__wrapped__ is topi.nn.conv2d_nchw
    named = topi.cuda.no_such_operator  # tables of programs name ways of all machines, and call one
    with pytest.raises(CompassError, match="no_such_operator"):
        named(x)


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
def test_passes_see_a_body_of_one_statement_as_that_statement(target):
    import tvm
    from tvm import te, tir

    a = te.placeholder((8,), "int32", name="a")
    b = te.compute((8,), lambda i: a[i] * 2, name="b")

    def rebuilt(loop):
        """The loop with another variable, and its values doubled, as passes that take a program apart make it."""
        store, other = loop.body, te.var("k")
        twice = tir.BufferStore(store.buffer, store.value * 2, store.indices)
        new = tir.stmt_functor.substitute(twice, {loop.loop_var: other})
        return tir.For(other, loop.min, loop.extent, loop.kind, new)

    @tir.transform.prim_func_pass(opt_level=0)
    def twice(f, module, context):
        assert module[f.name].body is f.body
        loop = f.body if isinstance(f.body, tir.For) else f.body.then_case
        assert isinstance(loop, tir.For) and isinstance(loop.body, tir.BufferStore) and loop.extent.value == 8
        changed = f.with_body(tir.stmt_functor.ir_transform(f.body, None, rebuilt, ["tir.For"]))
        inner = changed.body if isinstance(changed.body, tir.For) else changed.body.then_case
        assert inner.loop_var.name == "k" and inner.body.value is not loop.body.value
        return changed

    s = te.create_schedule(b.op)
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, twice)]}):
        assert ran(tvm.build(s, [a, b], target)) == list(range(0, 32, 4))
        lowered = tvm.lower(s, [a, b])
    assert isinstance(lowered["main"].body, (tir.For, tir.IfThenElse))
    if target == "X2_1204":  # what is lowered without a target is for
        assert ran(tvm.build(lowered, target=target)) == list(range(0, 32, 4))


def test_what_a_body_is_not_is_said():
    import tvm
    from tvm import tir

    i, j, a = tvm.te.var("i"), tvm.te.var("j"), tir.decl_buffer((8,), "int32", "a")
    one, two = tir.BufferStore(a, 1, [0]), tir.BufferStore(a, 2, [1])
    loop = tir.For(i, 0, 2, "serial", tir.For(j, 0, 4, "serial", [one, two]))
    assert (loop.body.loop_var.name, loop.body.body, isinstance(loop.body, tir.BufferStore)) == ("j", (one, two), False)
    with pytest.raises(AttributeError, match="a body of 2 statements has no 'value'") as several:
        loop.body.body.value  # noqa: B018
    with pytest.raises(AttributeError, match="a body that is one For has no 'then_case'") as other:
        loop.body.then_case  # noqa: B018
    assert "body[0]" in several.value.help and "loop_var" in other.value.help


def test_a_body_that_begins_with_a_definition_has_the_rest_as_its_body():
    import tvm
    from tvm import tir

    from compassc.ir import stmts as S
    from compassc.ir.node import Statements

    i, a, n = tvm.te.var("i"), tir.decl_buffer((8,), "int32", "a"), tvm.te.var("n")
    loop = tir.For(i, 0, 8, "serial", tir.BufferStore(a, i, [i]))
    body = Statements((S.Let(n.as_expr(), tir.IntImm(i.as_expr().dtype, 3)), S.Alloc(a), loop))
    assert not isinstance(body, tir.For)
    assert (body.value.value, body.body.buffer, body.body.body.loop_var) == (3, a, loop.loop_var)


def test_passes_take_modules_and_give_what_they_were_given():
    import tvm

    module = tvm.IRModule({"main": tvm.te.create_prim_func([tvm.te.placeholder((4,), name="a")])})
    same = tvm.tir.transform.prim_func_pass(lambda f, m, c: f, opt_level=0, name="same")
    assert same(module) is module and tvm.tir.transform.Apply(lambda f: f)(module) is module
    for one in (same, tvm.tir.transform.Simplify(), tvm.transform.PrintIR()):
        with pytest.raises(TypeError, match="takes a module, got a PrimFunc") as refused:
            one(module["main"])
        assert "IRModule" in refused.value.help
    for forgetful in (
        tvm.tir.transform.prim_func_pass(lambda f, m, c: None, opt_level=0, name="none"),
        tvm.transform.module_pass(lambda m, c: None, opt_level=0, name="none"),
        tvm.tir.transform.Apply(lambda f: None),
    ):
        with pytest.raises(TypeError, match="gave a NoneType, not a (PrimFunc|IRModule)"):
            forgetful(module)

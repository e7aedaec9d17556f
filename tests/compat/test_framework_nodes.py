"""Nodes of the IR for programs of the framework: their fields and arguments there, and passes that use them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import te
from compassc.compat import modules
from compassc.compat.nodes import FIELDS
from compassc.ir import parse_module, structural_equal
from compassc.ir import stmts as S

TURNS = 40


@pytest.fixture
def tvm(names):
    import tvm

    return tvm


def doubled():
    a = te.placeholder((TURNS,), "int32", name="a")
    b = te.compute((TURNS,), lambda i: a[i] * 2, name="b")
    return te.create_schedule(b), [a, b]


def vectorizing(tvm, made):
    """A pass that has vectors of 8 in loops whose extent is a multiple of 8, as programs write it."""
    found = []

    def look(op):
        if isinstance(op, tvm.tir.For) and isinstance(op.extent, tvm.tir.IntImm) and op.extent.value % 8 == 0:
            found.append(op)

    def change(op):
        if op not in found:
            return None
        extent, name = op.extent.value, op.loop_var.name
        outer, inner = te.var(name + ".outer"), te.var(name + ".inner")
        body = tvm.tir.stmt_functor.substitute(op.body, {op.loop_var: outer * 8 + inner})
        body = tvm.tir.For(inner, 0, 8, tvm.tir.ForKind.VECTORIZED, body)
        made.append(tvm.tir.For(outer, 0, extent // 8, tvm.tir.ForKind.SERIAL, body))
        return made[-1]

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def vectorize(f, module, context):
        tvm.tir.stmt_functor.post_order_visit(f.body, look)
        return f.with_body(tvm.tir.stmt_functor.ir_transform(f.body, None, change, ["tir.For"]))

    return vectorize


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
def test_a_pass_looks_for_loops_and_makes_others(tvm, target):
    made: list[S.For] = []
    s, args = doubled()
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorizing(tvm, made))]}):
        with tvm.target.Target("X2_1204"):
            text = tvm.lower(s, args).script()
        module = tvm.build(s, args, target)
    assert len(made) == 2 and "T.vectorized(0, 8, 1)" in text and "T.serial(0, 5, 1)" in text
    assert structural_equal(parse_module(text, "text"), parse_module(parse_module(text, "text").script(), "again"))
    found = np.zeros(TURNS, "int32")
    module(np.arange(TURNS, dtype="int32"), found)
    assert found.tolist() == list(range(0, 2 * TURNS, 2))
    if target == "X2_1204":
        assert "__vload" in module.get_source()


def test_nodes_have_the_fields_of_the_framework_while_its_names_are_in_use():
    fields = [(cls, name) for cls, names in FIELDS.items() for name in names]
    before = [vars(cls).get(name) for cls, name in fields]
    modules.take_names()
    try:
        import tvm  # noqa: F401

        own = [vars(cls).get(name) for cls, name in fields]
    finally:
        modules.give_back_names()
    assert fields and None not in own and not any(name in getattr(cls, "fields", ()) for cls, name in fields)
    assert [vars(cls).get(name) for cls, name in fields] == before


def test_names_that_no_program_imported_leave_nodes_as_they_are():
    """In a process of its own, that has not imported them before."""
    code = """
from compassc.compat import modules
from compassc.ir import exprs
own = vars(exprs.Call)["op"]
modules.take_names()
modules.give_back_names()
assert vars(exprs.Call)["op"] is own
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fields_are_what_they_are_called(tvm):
    i, j, a = te.var("i"), te.var("j"), tvm.tir.decl_buffer((8,), "int32", "a")
    store = tvm.tir.BufferStore(a, 1, [i])
    loop = tvm.tir.For(i, 2, 6, tvm.tir.ForKind.UNROLLED, [store, store])
    assert (loop.loop_var, loop.min.value, loop.extent.value) == (i.as_expr(), 2, 6)
    assert (loop.stop.value, loop.kind, loop.body) == (8, "unrolled", (store, store))
    both = tvm.tir.IfThenElse(i < 3, store, [loop])
    assert (both.then_case, both.else_case) == ((store,), (loop,))
    assert both.condition.op == "lt"
    assert tvm.tir.IfThenElse(i < 3, store).else_case is None
    assert isinstance(tvm.tir.Evaluate(tvm.tir.BufferLoad(a, [j])).value, tvm.tir.BufferLoad)
    assert tvm.tir.stmt_functor.substitute((store,), {i: 5})[0].indices[0].value == 5
    with pytest.raises(TypeError, match="i \\+ 1.* is no variable"):
        tvm.tir.stmt_functor.substitute(store, {i + 1: 5})
    with pytest.raises(TypeError, match="a str is no buffer"):
        tvm.tir.BufferLoad("a", [i])
    value = tvm.tir.Select(i < 3, i, j).as_expr()
    assert (value.true_value, value.false_value) == (i.as_expr(), j.as_expr())
    stepped = loop.replace(step=tvm.tir.IntImm(loop.step.dtype, 2))
    with pytest.raises(CompassError, match="the loop of 'i' goes in steps of 2, and has no extent"):
        stepped.extent  # noqa: B018


@pytest.mark.parametrize(
    ("var", "kind", "words"),
    [
        (3, "serial", "3 is no variable"),
        ("i", 7, "kind 7"),
        ("i", 4, "kind 4"),
        ("i", "tec", "kind 'tec'"),
        ("i", "__main__", "kind"),
    ],
)
def test_loops_that_there_are_not_are_refused(tvm, var, kind, words):
    with pytest.raises(TypeError, match=words) as caught:
        tvm.tir.For(te.var(var) if isinstance(var, str) else var, 0, 8, kind, [])
    assert isinstance(caught.value, CompassError) and caught.value.help


def test_what_nodes_are_not_made_of_is_refused(tvm):
    f = te.lower(*doubled(), target="llvm").entry_func
    assert (f.with_body(f.body[0]).body, f.with_body(list(f.body)).body) == (f.body[:1], f.body)
    for make, words in (
        (lambda: tvm.tir.For(te.var("i"), 0, 8.5, "serial", []), "an end of the loop 'i' is a whole number"),
        (lambda: tvm.tir.IfThenElse(te.var("i"), []), "a condition is a bool, got int32"),
        (lambda: f.with_body(3), "the body of 'main' is no statements"),
        (lambda: f.with_body([3]), "the body of 'main' is no statements"),
    ):
        with pytest.raises(CompassError, match=words) as caught:
            make()
        assert caught.value.help


def test_expressions_are_made_with_the_arguments_of_the_framework(tvm):
    x, tir = tvm.tir.Var("x", "int32"), tvm.tir
    made = {
        tir.Var: (x, "int32"),
        tir.IntImm: (tir.IntImm("int16", 300), "int16"),
        tir.FloatImm: (tir.FloatImm("float32", 2), "float32"),
        tir.Cast: (tir.Cast("int8", x), "int8"),
        tir.Ramp: (tir.Ramp(x, 1, 4), "int32x4"),
        tir.Broadcast: (tir.Broadcast(x, 8), "int32x8"),
    }
    for cls, (value, kind) in made.items():
        assert isinstance(value, cls) and value.dtype == kind
        assert not any(isinstance(value, other) for other in made if other is not cls)
    assert (tir.IntImm("int16", 300).value, tir.FloatImm("float32", 2).value) == (300, 2.0)
    for make, words in (
        (lambda: tir.IntImm("int8", 300), "300 does not fit int8"),
        (lambda: tir.IntImm("float32", 3), "float32 is no type of whole numbers"),
        (lambda: tir.FloatImm("int32", 3), "int32 is no type of real numbers"),
        (lambda: tir.Cast("int8x4", x), "a cast of int32 to int8x4"),
    ):
        with pytest.raises(CompassError, match=words):
            make()


def test_casts_are_values_of_tensor_expressions(tvm):
    a = te.placeholder((TURNS,), "int32", name="a")
    b = te.compute((TURNS,), lambda i: tvm.tir.Cast("int8", a[i]) + tvm.tir.IntImm("int8", 1), name="b")
    given, found = np.arange(TURNS, dtype="int32") * 9, np.zeros(TURNS, "int8")
    tvm.build(te.create_schedule(b), [a, b], "llvm")(given, found)
    assert (found == given.astype("int8") + np.int8(1)).all()


def test_modules_are_walked_over(tvm):
    module = tvm.lower(*doubled(), name="twice")
    for visit in (tvm.tir.stmt_functor.post_order_visit, tvm.tir.stmt_functor.pre_order_visit):
        seen: list[object] = []
        visit(module, seen.append)
        assert module in seen and module["twice"] in seen and any(isinstance(x, tvm.tir.For) for x in seen)


def test_what_is_not_changed_stays_the_same_object(tvm):
    f = te.lower(*doubled(), target="llvm").entry_func
    seen = []
    assert tvm.tir.stmt_functor.ir_transform(f.body, None, seen.append) is f.body
    visited: list[object] = []
    tvm.tir.stmt_functor.post_order_visit(f.body, visited.append)
    assert {id(n) for n in seen if isinstance(n, S.Stmt)} == {id(n) for n in visited if isinstance(n, S.Stmt)} != set()
    twice = tvm.tir.stmt_functor.ir_transform(f.body, None, lambda s: (s, s), ["tir.For"])
    assert [type(s) for s in twice].count(S.For) == 2


def test_functions_are_looked_up_by_name(tvm):
    module = tvm.lower(*doubled(), name="twice")
    ((name, function),) = module.functions.items()
    assert (str(name), *module.functions.keys()) == ("twice", name) and module.functions.values() == [function]
    assert module.functions[name] is module.functions["twice"] is module.functions[0] is function
    with pytest.raises(KeyError, match="no function 'twic'"):
        module.functions["twic"]
    assert [p.name for p in function.buffer_map] == ["a", "b"]
    for f in (function, pickle.loads(pickle.dumps(function))):
        assert f.attrs["global_symbol"] == f.attr("global_symbol") == f.attrs.get("global_symbol") == "twice"
        renamed = f.with_attr("global_symbol", "other").with_attr("tir.noalias", True)
        assert (renamed.name, renamed.attrs["global_symbol"], dict(renamed.attrs)) == (
            "other",
            "other",
            {**dict(f.attrs), "tir.noalias": True},
        )

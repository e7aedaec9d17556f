"""Partition of programs: composite functions, annotations, regions, functions for other compilers."""

from __future__ import annotations

import re
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_runtime.packed import register_func, remove_global_func
from compassc import relay
from compassc.relay import transform
from compassc.relay.builders import build as built
from compassc.relay.builders import call
from compassc.relay.contrib import get_pattern_table, register_pattern_table
from compassc.relay.dataflow_pattern import is_op, wildcard
from compassc.relay.expr import Call, Function, GlobalVar, TupleGetItem
from compassc.relay.module import IRModule
from compassc.relay.op import temporary
from compassc.relay.operators import op_name
from compassc.relay.passes import make
from compassc.relay.passes._annotated import BEGIN, END
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.relay.relay_values import BINARY, UNARY, evaluate, functions, module

ARRAYS = [np.arange(6, dtype="float32").reshape(2, 3) - 2, np.full((2, 3), 1.5, "float32")]
CALLED = (*UNARY, *BINARY, "transpose", "less")


def divided(
    f: Function, compilers: tuple[str, ...], salt: int, steps: int = 4
) -> tuple[IRModule, IRModule, dict[int, str]]:
    """A typed module, the same after the first steps of a partition whose calls are taken at random, and by whom."""
    m = transform.InferType()(module(f))
    takes = {
        id(e): (*compilers, "")[crc32(f"{salt} {n}".encode()) % (len(compilers) + 1)]
        for n, e in enumerate(post_order(m["main"].body))
    }
    one: list[IRModule] = [m]
    passes = [
        transform.AnnotateTarget(list(compilers)),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(),
    ]
    with_keys = [(name, c) for name in CALLED for c in compilers]

    def run(left: list[tuple[str, str]]) -> IRModule:
        if left:
            (name, c), *rest = left
            with temporary(name, f"target.{c}", lambda e: takes[id(e)] == c):
                return run(rest)
        made = one[0]
        for p in passes[:steps]:
            made = p(made)
        return made

    return m, run(with_keys), takes


def outer(m: IRModule) -> list[relay.Expr]:
    return list(post_order(m["main"]))


@settings(max_examples=40, deadline=None)
@given(f=functions(branches=True), salt=st.integers(0, 99), compilers=st.sampled_from([("a",), ("a", "b")]))
def test_partitions_compute_what_the_function_does_and_can_be_undone(f, salt, compilers):
    m, made, takes = divided(f, compilers, salt)
    parts = {v.name_hint: g for v, g in made.functions.items() if v.name_hint != "main"}
    for name, g in parts.items():
        compiler = str(g.attrs["Compiler"])
        assert dict(g.attrs) == {"Primitive": 1, "Compiler": compiler, "Inline": 1, "global_symbol": name}
        assert re.fullmatch(rf"tvmgen_default_{compiler}_main_\d+", name)
        inside = [e for e in post_order(g.body) if isinstance(e, Call)]
        assert inside and all(op_name(e) for e in inside)
    everywhere = [e for g in (made["main"], *parts.values()) for e in post_order(g)]
    assert not [e for e in everywhere if op_name(e) in (BEGIN, END)]
    ours = [e for e in post_order(m["main"].body) if isinstance(e, Call) and not takes[id(e)]]
    assert len([e for e in outer(made) if op_name(e)]) == len(ours)
    for changed in (made, transform.Inline()(made), transform.InlineCompilerFunctionsBoundTo(list(parts))(made)):
        for a, b in zip(evaluate(changed, *ARRAYS), evaluate(m, *ARRAYS), strict=True):
            np.testing.assert_array_equal(a, b)
    undone = transform.InlineCompilerFunctionsBoundTo([GlobalVar(n) for n in parts])(made)
    assert [v.name_hint for v in undone.functions] == ["main"]
    assert sorted(filter(None, map(op_name, outer(undone)))) == sorted(filter(None, map(op_name, outer(m))))


@settings(max_examples=15, deadline=None)
@given(f=functions(), salt=st.integers(0, 99))
def test_annotating_again_changes_nothing(f, salt):
    _, once, _ = divided(f, ("a", "b"), salt, steps=1)
    relay.assert_structural_equal(transform.AnnotateTarget(["a", "b"])(once), once)


def network() -> Function:
    """abs; relu of it; tanh of it; their sum."""
    first = built("abs", x := relay.var("x", shape=(2, 3)))
    return Function([x], built("nn.relu", first) + built("tanh", first))


def partitioned(f: Function, **options: object) -> IRModule:
    takes = lambda e: True
    with (
        temporary("abs", "target.a", takes),
        temporary("nn.relu", "target.a", takes),
        temporary("add", "target.a", takes),
    ):
        passes = (transform.AnnotateTarget("a"), transform.MergeCompilerRegions(), transform.PartitionGraph(**options))
        made = transform.InferType()(module(f))
        for p in passes:
            made = p(made)
    return made


def test_what_lies_elsewhere_between_regions_keeps_them_apart():
    made = partitioned(network())
    assert [v.name_hint for v in made.functions] == ["main", "tvmgen_default_a_main_0", "tvmgen_default_a_main_1"]
    first, second = (made[f"tvmgen_default_a_main_{i}"] for i in (0, 1))
    assert [p.name_hint for p in second.params] == ["a_1_i0", "a_1_i1"]
    x = relay.var("x", shape=(2, 3))
    wanted = Function([x], relay.Tuple([built("nn.relu", inner := built("abs", x)), inner]))
    relay.assert_structural_equal(first.body, transform.InferType()(module(wanted))["main"].body, map_free_vars=True)
    assert len([e for e in outer(made) if isinstance(e, TupleGetItem)]) == 2


def test_names_and_constants():
    x = relay.var("x", shape=(2, 3))
    f = Function([x], built("abs", x) + relay.const(ARRAYS[1]))
    inside = partitioned(f, mod_name="my-net")
    name = "tvmgen_my_net_a_main_0"
    assert [v.name_hint for v in inside.functions] == ["main", name] and len(inside[name].params) == 1
    outside = partitioned(f, mod_name="", bind_constants=False)
    assert len(outside["tvmgen_a_main_0"].params) == 2
    for m in (inside, outside):
        np.testing.assert_array_equal(evaluate(m, ARRAYS[0])[0], np.abs(ARRAYS[0]) + 1.5)


def test_functions_are_literals_and_functions_of_the_module_and_elsewhere():
    made = partitioned(network())
    literals = transform.Inline()(made)
    assert [v.name_hint for v in literals.functions] == ["main"]
    again = transform.OutlineCompilerFunctionsWithExistingGlobalSymbols("a")(literals)
    relay.assert_structural_equal(again, made)
    assert transform.OutlineCompilerFunctionsWithExistingGlobalSymbols("b")(literals) is literals
    extern = transform.MarkCompilerFunctionsAsExtern("a")(made)
    assert [dict(f.attrs) for f in extern.functions.values()] == [{}, {"Extern": 1}, {"Extern": 1}]


def test_composite_functions_are_what_tables_say():
    seen = []

    @register_pattern_table("tables")
    def table():
        relu = is_op("nn.relu")(is_op("abs")(wildcard()))
        tanh = is_op("tanh")(is_op("abs")(wildcard()))
        return [("a.never", relu, lambda e: bool(seen.append(e))), ("a.tanh", tanh), ("b.relu", relu)]

    x = relay.var("x", shape=(2, 3))
    f = Function([x], built("nn.relu", built("abs", x)) + built("tanh", built("abs", built("exp", x))))
    merged = transform.MergeComposite(get_pattern_table("tables"))(transform.InferType()(module(f)))
    found = {
        c.op.attrs["Composite"]: c.op.attrs["PartitionedFromPattern"]
        for c in outer(merged)
        if isinstance(c, Call) and isinstance(c.op, Function)
    }
    assert found == {"a.tanh": "abs_tanh_", "b.relu": "abs_nn.relu_"} and [op_name(e) for e in seen] == ["nn.relu"]
    made = transform.PartitionGraph()(transform.AnnotateTarget("b")(merged))
    assert [op_name(e) for e in outer(made) if op_name(e)] == ["abs", "tanh", "exp", "add"]
    (name,) = [v.name_hint for v in made.functions if v.name_hint != "main"]
    undone = transform.InlineCompilerFunctionsBoundTo([name])(made)
    assert "nn.relu" in {op_name(e) for e in outer(undone)}
    for m in (merged, made, undone):
        np.testing.assert_array_equal(evaluate(m, ARRAYS[0])[0], evaluate(module(f), ARRAYS[0])[0])


def test_loops_have_regions_in_them():
    m = relay.parse("""#[version = "0.0.5"]
def @main(%n: int32, %x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  let %loop: fn (int32, Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] =
    fn (%i: int32, %y: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
      if (%i < %n) { %loop(%i + 1, abs(abs(%y) - 1f)) } else { abs(%y) }
    };
  %loop(0, %x)
}""")
    for all_kinds in (True, False):
        with temporary("abs", "target.a", lambda e: True):
            made = transform.AnnotateTarget("a", all_kinds)(m)
            made = transform.PartitionGraph()(transform.MergeCompilerRegions()(made))
        assert len(made.functions) == 4
        args = (np.int32(3), ARRAYS[0])
        np.testing.assert_array_equal(evaluate(made, *args)[0], evaluate(m, *args)[0])


def test_what_waits_for_itself_is_no_region():
    x = relay.var("x", shape=(2, 3))
    begun = call("abs", call(BEGIN, x, compiler="a"))
    elsewhere = built("tanh", call(END, begun, compiler="a"))
    both = call("add", begun, call(BEGIN, elsewhere, compiler="a"))
    m = transform.InferType()(module(Function([x], call(END, both, compiler="a"))))
    with pytest.raises(CompassError, match="waits for what waits for it"):
        transform.PartitionGraph()(m)


def test_other_compilers_build_and_optimise_their_functions():
    from compass_runtime.devices import cpu
    from compass_runtime.graph_executor import GraphModule
    from compassc.relay.backend.kernels import build_kernel
    from compassc.targets import Target

    made = partitioned(network())
    with pytest.raises(CompassError, match=r"Failed to find the external codegen tool for relay\.ext\.a"):
        relay.build(made, "llvm")
    symbols = []

    def generate(f):
        symbols.append((f.attrs["global_symbol"], "Compiler" in f.attrs))
        return build_kernel(f, Target.current(), symbols[-1][0])

    register_func("relay.ext.a", generate)
    register_func("relay.ext.a.optimize", lambda m: symbols.append(len(m.functions)) or m)
    try:
        library = relay.build(partitioned(network()), "llvm")
    finally:
        remove_global_func("relay.ext.a")
        remove_global_func("relay.ext.a.optimize")
    assert symbols == [1, 1, *((f"tvmgen_default_a_main_{i}", False) for i in (0, 1))]
    graph = GraphModule(library["default"](cpu()))
    graph.run(x=ARRAYS[0])
    np.testing.assert_allclose(graph.get_output(0).numpy(), evaluate(module(network()), ARRAYS[0])[0], rtol=1e-6)
    names = [f"tvmgen_default_a_main_{i}" for i in (0, 1)]
    assert all(f'"func_name": "{n}"' in library.get_graph_json() for n in some(names))


def test_what_functions_of_other_compilers_are_given_and_give():
    a, b = relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 3))
    v = relay.GlobalVar("theirs")
    theirs = relay.Function([a, b], relay.Tuple([a + b, a - b])).with_attr({"Compiler": "x", "global_symbol": "theirs"})
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    pair = v(relay.exp(x), y)
    main = relay.Function([x, y], relay.TupleGetItem(pair, 0) * relay.TupleGetItem(pair, 1))
    module = make("InferType")(relay.IRModule({v: theirs, relay.GlobalVar("main"): main}))
    one, two = np.zeros((2, 3), "float32"), np.full((2, 3), 3, "float32")
    found = relay.analysis.get_calibration_data(module, {"x": one, "y": two})
    assert [g.name_hint for g in found] == ["theirs"]
    (told,) = found.values()
    np.testing.assert_array_equal([t.numpy() for t in told["inputs"]], [one + 1, two])
    np.testing.assert_array_equal([t.numpy() for t in told["outputs"]], [one + 4, one - 2])
    twice = relay.Function([x, y], relay.TupleGetItem(v(x, y), 0) * relay.TupleGetItem(v(y, x), 1))
    module = make("InferType")(relay.IRModule({v: theirs, relay.GlobalVar("main"): twice}))
    with pytest.raises(CompassError, match="@theirs is called twice"):
        relay.analysis.get_calibration_data(module, {"x": one, "y": two})


def test_a_region_takes_nothing_that_it_also_waits_for_outside():
    """A value of a region goes into a later one straight, and through a choice that no compiler takes."""
    first = built("negative", x := relay.var("x", shape=(2, 3)))
    choice = relay.If(built("less", relay.const(0), relay.const(1)), x, first)
    m = IRModule.from_expr(Function([x], first + choice))
    takes = lambda e: True
    with temporary("negative", "target.a", takes), temporary("add", "target.a", takes):
        passes = [transform.InferType(), transform.AnnotateTarget("a"), transform.MergeCompilerRegions()]
        made = transform.Sequential([*passes, transform.PartitionGraph()])(m)
    assert len([v for v in made.functions if v.name_hint != "main"]) == 2
    (value,) = evaluate(made, ARRAYS[0])
    np.testing.assert_array_equal(value, ARRAYS[0] * 0)

"""Programs for the framework's graph language: names, modules of kernels and graphs, what is saved and compared."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("names")


def test_a_program_of_expressions_and_operators():
    import tvm
    from tvm import relay
    from tvm.relay.op import nn

    x = relay.var("x", shape=(1, 4))
    w = relay.var("w", shape=(3, 4))
    y = relay.nn.relu(nn.dense(x, w))
    f = relay.Function(relay.analysis.free_vars(y), y + relay.const(1.0))
    assert [p.name_hint for p in f.params] == ["x", "w"]
    module = tvm.IRModule.from_expr(f)
    assert isinstance(module, tvm.IRModule)
    module = relay.transform.InferType()(module)
    again = relay.parse(module.astext())
    tvm.ir.assert_structural_equal(module, again)
    assert tvm.ir.structural_hash(module) == tvm.ir.structural_hash(again)
    with pytest.raises(ValueError, match="not structurally equal"):
        tvm.ir.assert_structural_equal(module["main"], relay.Function([x], x))
    assert tvm.ir.get_first_structural_mismatch(x, x) is None
    values = np.arange(4, dtype="float32").reshape(1, 4), np.ones((3, 4), "float32")
    found = relay.backend.interpreter.Interpreter(module).evaluate()(*values)
    np.testing.assert_array_equal(found.numpy(), values[0] @ values[1].T + 1)
    for kind in ("debug", "graph"):
        again = relay.create_executor(kind, relay.transform.InferType()(module), target="llvm").evaluate()(*values)
        np.testing.assert_array_equal(again.numpy(), found.numpy())
    assert tvm.ir.Op.__name__ == "Op"
    tvm.ir.register_op_attr("nn.relu", "target.compat_names", lambda call: True)
    relay.op.contrib.register.register_pattern_table("compat_names", list)
    assert relay.op.contrib.get_pattern_table("compat_names") == []
    cut = relay.transform.PartitionGraph()(relay.transform.AnnotateTarget("compat_names")(module))
    assert [v.name_hint for v in cut.functions] == ["main", "tvmgen_default_compat_names_main_0"]
    assert relay.op.get("nn.relu").name == "nn.relu"
    assert "dense" in dir(relay.nn)
    assert "relu" not in dir(relay)


def test_errors_of_texts_are_diagnostics():
    import tvm
    from tvm import relay

    with pytest.raises(tvm.error.DiagnosticError, match="not been previously declared"):
        relay.parse('#[version = "0.0.5"]\ndef @main() { %x }')


def test_a_module_grows_from_nothing():
    import tvm
    from tvm import relay, te

    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    kernel = te.create_prim_func([a, b])
    module = tvm.IRModule()
    module["main"] = kernel
    assert isinstance(module, tvm.IRModule)
    built = tvm.build(module, target="llvm")
    out = tvm.nd.array(np.zeros(4, "float32"))
    built["main"](tvm.nd.array(np.arange(4, dtype="float32")), out)
    np.testing.assert_array_equal(out.numpy(), np.arange(4) + 1)
    assert tvm.tir.Schedule(module).get_block("B") is not None
    assert isinstance(tvm.tir.transform.Simplify()(module), tvm.IRModule)
    both = tvm.IRModule({"graph": relay.Function([], relay.const(1)), "kernel": kernel}, attrs={"a": 1})
    assert both.attrs["a"] == 1
    assert isinstance(tvm.IRModule({"main": kernel}), tvm.IRModule)
    tvm.ir.assert_structural_equal(kernel, both["kernel"])


def test_what_is_saved_is_loaded():
    import tvm
    from tvm import relay

    x = relay.var("x", shape=(2,))
    f = relay.Function([x], x + relay.const([1.0, 2.0]))
    for given in (f, tvm.IRModule({"main": f})):
        again = tvm.ir.load_json(tvm.ir.save_json(given))
        wanted = relay.transform.InferType()(given) if isinstance(given, tvm.IRModule) else given
        tvm.ir.assert_structural_equal(again, wanted)


def test_copies_with_other_fields():
    from tvm import relay

    x, y = relay.var("x"), relay.var("y")
    call = relay.GlobalVar("f")(x)
    assert relay.CallWithFields(call) is call
    assert relay.CallWithFields(call, args=[y]).args[0] is y
    assert relay.TupleWithFields(relay.Tuple([x]), [y, x])[0] is y
    f = relay.Function([x], x)
    assert relay.FunctionWithFields(f, ret_type=relay.scalar_type("int8")).ret_type == relay.scalar_type("int8")
    assert relay.FunctionWithFields(f, virtual_device=None) is f
    for wrong in ({"arg": 1}, {"op": None, "nothing": 2}):
        with pytest.raises(RuntimeError, match="there is no field"):
            relay.CallWithFields(call, **wrong)
    with pytest.raises(RuntimeError, match="is no Call"):
        relay.CallWithFields(x)


def test_attributes_by_their_keys():
    import tvm

    attrs = tvm.ir.make_node("relay.attrs.Conv2DAttrs", strides=[2, 2])
    assert list(attrs.strides) == [2, 2]
    assert attrs["groups"] == 1
    with pytest.raises(AttributeError, match="no field 'stride'"):
        tvm.ir.make_node("relay.attrs.Conv2DAttrs", stride=[2, 2])
    assert tvm.ir.make_node("DictAttrs", a=1)["a"] == 1


def test_natural_numbers():
    from tvm import relay
    from tvm.relay.testing import count, make_nat_expr, make_nat_value

    prelude = relay.Prelude()
    assert count(prelude, make_nat_value(prelude, 7)) == 7
    run = relay.backend.interpreter.Interpreter(prelude.mod)
    double = prelude.mod.get_global_var("nat_double")
    assert count(prelude, run.evaluate(double(make_nat_expr(prelude, 5)))) == 10
    assert count(prelude, run.evaluate(double)(make_nat_value(prelude, 3))) == 6


def test_models_are_imported_by_their_names():
    import tvm
    from onnx import parser
    from tvm import relay

    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["": 19]> g (float[N, 2] x) => (float[N, 2] y) { y = Exp(x) }'
    )
    module, params = relay.frontend.from_onnx(model, shape={"x": (3, 2)})
    assert isinstance(module, tvm.IRModule) and not params
    assert module["main"].ret_type == relay.TensorType((3, 2))
    with pytest.raises(tvm.error.OpNotImplemented, match="RandomUniformLike"):
        model.graph.node[0].op_type = "RandomUniformLike"
        relay.frontend.from_onnx(model)


def test_supplies_give_each_name_once():
    import tvm
    from tvm import relay
    from tvm.ir.supply import GlobalVarSupply, NameSupply
    from tvm.relay.backend import name_transforms as styles
    from tvm.runtime.name_transforms import sanitize_name

    names = NameSupply("mod")
    given = [names.fresh_name("a.b"), names.fresh_name("a.b"), names.fresh_name("a.b_1"), names.fresh_name("c", False)]
    assert given == ["mod_a_b", "mod_a_b_1", "mod_a_b_1_1", "c"] and names.contains_name("a.b")
    assert not names.contains_name("d") and names.reserve_name("d") == "mod_d" and names.contains_name("d")
    module = tvm.IRModule({"f": relay.Function([], relay.const(1))})
    supply = GlobalVarSupply(module)
    assert supply.fresh_global("f", False).name_hint == "f_1" and supply.unique_global_for(
        "g"
    ) is supply.unique_global_for("g")
    with pytest.raises(tvm.TVMError, match="conflicts by name"):
        supply.reserve_global(relay.GlobalVar("f"))
    assert styles.to_c_function_style(styles.prefix_name(["my", "Model"])) == "TVMMyModel"
    assert styles.to_c_constant_style("TVM_a") == "TVM_A" and styles.prefix_generated_name("x") == "TVMGen_x"
    for wrong in ("", "model"):
        with pytest.raises(tvm.TVMError, match="Variable n"):
            styles.to_c_variable_style(wrong)
    assert sanitize_name("a+b.c") == "a_b_c"


def test_executors_are_told_by_name_and_options():
    import tvm
    from tvm.relay.backend import Executor, Runtime

    graph = Executor("graph", {"link-params": True})
    assert "link-params" in graph and graph["link-params"] and graph != Executor("graph") and "x" not in graph
    assert (
        Executor("aot")["link-params"]
        and Runtime("crt") == Runtime("crt", {})
        and Runtime.list_registered() == ["cpp", "crt"]
    )
    for wrong in (
        lambda: Executor("none"),
        lambda: Runtime("crt", {"x": 1}),
        lambda: Executor("graph", {"link-params": 3}),
    ):
        with pytest.raises(tvm.TVMError):
            wrong()


def test_values_that_are_converted_stay_nodes():
    import tvm
    from tvm import relay

    x = relay.Var("x")
    assert relay.Function(tvm.runtime.convert([x]), x).params == tvm.runtime.convert([x])
    span = relay.Span(relay.SourceName("text"), 1, 2, 3, 4)
    assert (span.source_name.name, span.line, span.end_line, span.column, span.end_column) == ("text", 1, 2, 3, 4)
    rule = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")
    assert (
        rule is tvm.ir.EnvFunc.get(rule.name) and relay.TypeRelation(rule, [relay.TypeVar("t")], 1, None).func is rule
    )
    assert relay.testing.run_as_python(relay.Tuple([relay.const(3)]))[0].numpy() == 3
    names: dict[str, object] = {}
    exec(compile(relay.testing.to_python(relay.const(3) + relay.const(4)), "program", "exec"), names)  # noqa: S102
    assert names["value"].numpy() == 7


def test_the_plugin_of_pytest_has_its_hooks_itself():
    import tvm.testing.plugin

    assert "pytest_generate_tests" in vars(tvm.testing.plugin)


def test_programs_see_what_is_wrong_with_types():
    import tvm
    from tvm import relay
    from tvm.ir.diagnostics import get_renderer, override_renderer

    seen = []
    override_renderer(lambda context: seen.extend(d.message for d in context.diagnostics))
    try:
        with pytest.raises(tvm.error.DiagnosticError):
            relay.testing.run_infer_type(relay.var("x", shape=(2,)) + relay.var("y", shape=(3,)))
    finally:
        override_renderer(None)
    assert len(seen) == 1 and get_renderer() is not None
    x = relay.var("x", shape=(2,))
    with pytest.warns(UserWarning, match="1 calls have no place"):
        relay.SpanCheck()(tvm.IRModule.from_expr(relay.Function([x], x + x)))


def test_runs_are_measured():
    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    x = relay.var("x", shape=(2,))
    module, value = tvm.IRModule.from_expr(relay.Function([x], x + x)), np.ones(2, "float32")
    graph = graph_executor.GraphModule(relay.build(module, "llvm")["default"](tvm.cpu()))
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(module, "llvm"), tvm.cpu())
    for whole in (False, True):
        assert len(graph.benchmark(tvm.cpu(), repeat=2, number=1, end_to_end=whole, x=value).results) == 2
        assert machine.benchmark(tvm.cpu(), value, repeat=1, number=2, end_to_end=whole).mean > 0


def test_types_and_places_are_saved_and_read():
    import tvm
    from tvm import relay

    t, header = relay.TypeVar("t"), relay.GlobalTypeVar("List")
    tensor, x = relay.TensorType((1, relay.Any()), "int8"), relay.Var("x")
    rule = tvm.ir.EnvFunc.get("tvm.relay.type_relation.Identity")
    attributes = relay.nn.softmax(x, axis=2).attrs
    nodes = [
        tensor, relay.FuncType([t, tensor], t, [t]), relay.TupleType([t, relay.RefType(tensor)]), header(tensor),
        relay.TypeRelation(rule, [t], 1, attributes), relay.PatternTuple([relay.PatternVar(x), relay.PatternWildcard()]),
        relay.Clause(relay.PatternVar(x), x),
    ]  # fmt: skip
    for node in nodes:
        again = tvm.ir.load_json(tvm.ir.save_json(node))
        assert tvm.ir.structural_equal(again, node, map_free_vars=True), node
    span = relay.Span(relay.SourceName("text"), 1, 2, 3, 4)
    assert tvm.ir.load_json(tvm.ir.save_json(span)) == span and not span.same_as(
        tvm.ir.load_json(tvm.ir.save_json(span))
    )
    with pytest.raises(tvm.TVMError, match="cannot be saved"):
        tvm.ir.save_json(relay.TensorType((tvm.te.var("n"),)))
    with pytest.raises(tvm.TVMError, match="no node of the type"):
        tvm.ir.load_json(tvm.ir.save_json(tensor).replace("TensorType", "NoType"))

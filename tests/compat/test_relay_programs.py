"""Programs that optimise and build Relay under the framework's names."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("names")


def test_a_program_is_built_and_run():
    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    weights, data = np.ones((4, 3), "float32"), np.arange(6, dtype="float32").reshape(2, 3) - 3
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(module, target="llvm", params={"w": weights})
    graph = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    graph.set_input("x", data)
    graph.run()
    np.testing.assert_allclose(graph.get_output(0).numpy(), np.maximum(data @ weights.T, 0))
    for kind in ("debug", "graph"):
        run = relay.create_executor(kind, module, tvm.cpu(0), "llvm").evaluate()
        np.testing.assert_allclose(run(data, weights).numpy(), np.maximum(data @ weights.T, 0))
    saved = tvm.runtime.save_param_dict({"w": tvm.nd.array(weights)})
    np.testing.assert_array_equal(relay.load_param_dict(saved)["w"].numpy(), weights)


def test_passes_of_the_framework_and_of_programs():
    import tvm
    from tvm import relay
    from tvm.relay.testing import run_infer_type, run_opt_pass

    x = relay.var("x", shape=(1, 4))
    y = run_infer_type(relay.add(relay.exp(x), relay.const(0.0)))
    assert y.checked_type == relay.TensorType((1, 4), "float32")
    simple = run_opt_pass(relay.Function([x], y), relay.transform.SimplifyExpr())
    tvm.ir.assert_structural_equal(simple, run_infer_type(relay.Function([x], relay.exp(x))))

    @relay.transform.function_pass(opt_level=1)
    def twice(func, mod, ctx):
        return relay.Function(func.params, relay.negative(func.body))

    with tvm.transform.PassContext(opt_level=3):
        found = tvm.transform.Sequential([twice, relay.transform.FuseOps()])(tvm.IRModule.from_expr(simple))
    assert found["main"].body.op.attrs["Primitive"] == 1


def test_builds_in_steps():
    import tvm
    from tvm import relay

    x, w = relay.var("x", shape=(4,)), relay.var("w", shape=(4,))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.exp(x) * w))
    builds = relay.build_module._BuildModule()
    builds["set_params"]({"w": np.ones(4, "float32")})
    builds["build"](module, "llvm", None, None, None, None, None, "default")
    assert builds["list_params"]() == ["p0"]
    optimised, _ = relay.optimize(module, "llvm")
    codegen = relay.backend.graph_executor_codegen.GraphExecutorCodegen(None, "llvm")
    graph, functions, params = codegen.codegen(optimised, optimised["main"])
    name = "tvmgen_default_fused_exp_multiply"
    assert name in graph and [*functions] == [tvm.target.Target("llvm")]
    assert params == {}
    with pytest.raises(tvm.TVMError, match="has no function 'bild'"):
        builds["bild"]


def test_a_strategy_may_be_made_of_the_operator_itself():
    import tvm
    from tvm import autotvm, relay, te, topi
    from tvm.relay.backend import te_compiler
    from tvm.relay.testing import run_infer_type
    from tvm.relay.testing.temp_op_attr import TempOpAttr

    @autotvm.register_topi_compute("compat/dense")
    def compute(cfg, data, weight, bias, out_dtype):
        return topi.nn.dense(data, weight, bias, out_dtype)

    @autotvm.register_topi_schedule("compat/dense")
    def schedule(cfg, outs):
        return topi.generic.schedule_dense(outs)

    @tvm.target.override_native_generic_func("compat_dense_strategy")
    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        of_strategy = relay.op.strategy
        made.add_implementation(
            of_strategy.wrap_compute_dense(compute), of_strategy.wrap_topi_schedule(schedule), name="mine", plevel=15
        )
        return made

    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    call = run_infer_type(relay.nn.dense(x, w))
    tensors = [te.placeholder((2, 4), "float32"), te.placeholder((3, 4), "float32")]
    with TempOpAttr("nn.dense", "FTVMStrategy", strategy):
        chosen, outputs = te_compiler.select_implementation(call.op, call.attrs, tensors, call.checked_type, "llvm")
        assert chosen.name == "mine" and [int(d) for d in outputs[0].shape] == [2, 3]
        lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w))), "llvm")
    graph = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    a, b = np.arange(8, dtype="float32").reshape(2, 4), np.arange(12, dtype="float32").reshape(3, 4)
    graph.run(x=a, w=b)
    np.testing.assert_allclose(graph.get_output(0).numpy(), a @ b.T)


def test_the_executor_aot_and_settings_of_builds():
    import tvm
    from tvm import relay
    from tvm.relay.backend import Executor
    from tvm.relay.backend.executor_factory import AOTExecutorFactoryModule
    from tvm.runtime.executor import AotModule

    x = relay.var("x", shape=(2,))
    module = tvm.IRModule.from_expr(relay.Function([x], x + x))
    with tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_auto_scheduler": False}):
        lib = relay.build(module, "llvm", executor=Executor("aot", {"interface-api": "packed"}))
    assert isinstance(lib, AOTExecutorFactoryModule) and lib.get_executor_config() is None and lib.executor == "aot"
    run = AotModule(lib["default"](tvm.cpu()))
    assert run.get_input_name(0) == "x"
    run.set_input("x", np.ones(2, "float32"))
    run.run()
    np.testing.assert_array_equal(run.get_output(0).numpy(), [2, 2])
    found = relay.create_executor("aot", module, tvm.cpu(), "llvm").evaluate()(np.ones(2, "float32"))
    np.testing.assert_array_equal(found.numpy(), [2, 2])
    with pytest.raises(tvm.TVMError, match="executors are graph, aot"):
        relay.build(module, "llvm", executor="crt")
    shapes, types = run.get_input_info()
    assert isinstance(shapes["x"], tvm.runtime.ShapeTuple) and isinstance(types["x"], tvm.runtime.container.String)

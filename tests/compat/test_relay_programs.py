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

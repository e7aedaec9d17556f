"""Relay programs built for the host: graphs, memory, executors, parameter files."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_runtime.devices import cpu
from compass_runtime.factory import GraphExecutorFactory
from compass_runtime.graph_executor import GraphExecutor, GraphModule, create, read_graph
from compass_runtime.module import Module, load_module
from compass_runtime.ndarray import empty
from compass_runtime.packed import get_global_func, list_global_func_names, remove_global_func
from compass_runtime.param_dict import load_param_dict, save_param_dict
from compassc import relay, te
from compassc.pass_manager.context import PassContext
from compassc.relay.backend.build import build, optimize
from compassc.relay.backend.executors import create_executor
from compassc.relay.backend.referenced import referenced
from compassc.relay.builders import call
from compassc.relay.module import IRModule
from compassc.relay.operators import OPERATORS
from compassc.relay.passes import make
from tests.choosing import some
from tests.relay.relay_values import SHAPE, evaluate, functions, module
from tests.relay.trying_operators import cases, compare, type_of

X, Y = np.arange(6, dtype="float32").reshape(SHAPE) - 2, np.full(SHAPE, 1.5, "float32")
x, y = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE)


_IN_PYTHON = [
    case
    for op in OPERATORS.values()
    if op.samples and op.compute is None and op.reference is not None
    for case in cases(op)[:1]
    if all(isinstance(n, int) for t in case.fields() for n in t.shape)
]


@pytest.mark.parametrize("case", _IN_PYTHON, ids=lambda case: case.op.name)
def test_a_function_that_kernels_call_is_made_of_its_name(case):
    """Other processes find it: it is the same operator, of the same types."""
    types = [relay.TupleType([type_of(a) for a in g]) if isinstance(g, list) else type_of(g) for g in case.arrays]
    given = [np.atleast_1d(a) for a in case.flat()]
    tensors = [te.placeholder(a.shape, str(a.dtype)) for a in case.flat()]
    before = set(list_global_func_names())
    referenced(case.op, case.attrs, types, case.type, tensors)
    (name,) = set(list_global_func_names()) - before
    remove_global_func(name)
    found = [empty(np.empty(t.shape).shape or (1,), t.dtype) for t in case.fields()]
    get_global_func(name)(*given, *found)
    compare(case, [f.numpy().reshape(t.shape) for f, t in zip(found, case.fields(), strict=True)], case.reference())
    remove_global_func(name)


@pytest.mark.parametrize("name", ["relay.reference.unique", "relay.reference.unique.AAAA", "relay.reference.unique.!"])
def test_a_name_that_says_no_call_is_no_function(name):
    with pytest.raises(CompassError, match="there is no global function"):
        get_global_func(name)


@settings(max_examples=6, deadline=None)
@given(f=functions(), level=st.sampled_from([0, 3]))
def test_graphs_compute_what_references_do(f, level):
    expected = evaluate(make("InferType")(module(f)), X, Y)
    with PassContext(opt_level=level):
        found = create_executor("graph").evaluate(f)(X, Y)
    for a, b in some(zip(found if isinstance(found, list) else [found], expected, strict=True)):
        np.testing.assert_array_equal(a.numpy(), b)


def _built(body: relay.Expr, *params: relay.Var, level: int = 3, **options):
    with PassContext(opt_level=level):
        return build(IRModule.from_expr(relay.Function(params, body)), "llvm", **options)


def test_an_exported_program_runs_with_its_parameters(tmp_path):
    lib = _built(call("add", call("multiply", x, y), x), x, y, params={"y": Y})
    lib.export_library(str(tmp_path / "model.tar"))
    graph = GraphModule(load_module(str(tmp_path / "model.tar"))["default"](cpu()))
    graph.run(x=X)
    np.testing.assert_array_equal(graph.get_output(0).numpy(), X * Y + X)
    assert graph.get_num_inputs() == 2 and graph.get_num_outputs() == 1
    assert graph.get_input_info() == ({"x": SHAPE}, {"x": "float32"})
    assert graph.get_input_index("x") == 0 and graph.get_input_index("nobody") == -1
    assert graph.get_input("nobody") is None
    with pytest.raises(CompassError, match="Could not find 'nobody' in graph's inputs"):
        graph.set_input("nobody", X)
    with pytest.raises(CompassError, match="has the shape"):
        graph.set_input("x", X[:1])


def test_parameters_may_be_loaded_apart():
    lib = _built(call("multiply", x, y), x, y, params={"y": Y})
    graph = create(lib.get_graph_json(), lib.get_lib(), cpu())
    graph.load_params(save_param_dict({**lib.get_params(), "nobody": X}))
    graph.set_input(x=X, nobody=Y)
    graph.run()
    np.testing.assert_array_equal(graph.get_output(0).numpy(), X * Y)


def test_the_graph_says_what_is_called_and_where_values_lie():
    chain: relay.Expr = x
    for axes in ((1,), (0,), ()):
        chain = call("exp", call("sum", chain, axis=axes, keepdims=True) if axes else chain)
    text = _built(chain, x, level=0).get_graph_json()
    assert list(json.loads(text)) == ["nodes", "arg_nodes", "heads", "attrs", "node_row_ptr"]
    graph = read_graph(text)
    assert [n.kernel for n in graph.nodes][:3] == ["", "tvmgen_default_fused_sum", "tvmgen_default_fused_exp"]
    assert len(set(graph.storages)) < len(graph.nodes) and graph.storages.count(graph.storages[0]) == 1
    lives = {i: i for i in range(len(graph.nodes))}
    for i, node in enumerate(graph.nodes):
        for entry in node.inputs:
            lives[entry] = i
    for i, node in enumerate(graph.nodes):
        for entry in node.inputs:
            assert graph.storages[entry] != graph.storages[i], "a kernel reads what it writes"


def test_equal_kernels_are_built_once_and_reshapes_run_nothing():
    a = call("exp", call("sum", x, axis=(1,)))
    twice = call("sum", call("reshape", call("exp", a), newshape=(1, 2)), axis=(1,))
    lib = _built(twice, x, level=0)
    assert sorted(m.name for m in lib.get_lib().imported_modules) == [
        "tvmgen_default_fused_exp", "tvmgen_default_fused_sum", "tvmgen_default_fused_sum_1",
    ]  # fmt: skip
    graph = GraphModule(lib["default"](cpu()))
    graph.run(x=X / 9)
    expected = np.exp(np.exp(X.sum(1) / 9)).sum(keepdims=True)
    np.testing.assert_allclose(graph.get_output(0).numpy(), expected, rtol=1e-5)


def test_programs_without_kernels():
    for body, expected in ((x, [X]), (relay.Tuple([x, relay.Tuple([x])]), [X, X]), (relay.Tuple([]), [])):
        graph = GraphModule(_built(body, x)["default"](cpu()))
        graph.run(x=X)
        assert graph.get_num_outputs() == len(expected)
        for i, value in enumerate(expected):
            np.testing.assert_array_equal(graph.get_output(i).numpy(), value)


def test_results_are_nested_as_their_type():
    one, (two,) = create_executor("graph").evaluate(relay.Function([x], relay.Tuple([x, relay.Tuple([x])])))(x=X)
    np.testing.assert_array_equal(one.numpy(), two.numpy())
    assert create_executor("graph").evaluate(call("add", relay.const(1), relay.const(2))).numpy() == 3


u = relay.var("u", shape=(relay.Any(), 3))
REFUSED = {
    "control flow": (relay.If(relay.const(True), x, y), [x, y], "does not support control flow"),
    "open shapes": (call("exp", u), [u], "only supports static graphs"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_graph_executor_cannot_do_is_refused(case):
    body, params, message = REFUSED[case]
    with pytest.raises(CompassError, match=message):
        _built(body, *params, level=0)


def test_parameters_may_be_tuples():
    pair = relay.var("pair", relay.TupleType([relay.TensorType(SHAPE)] * 2))
    f = relay.Function(
        [x, pair], call("add", x, call("multiply", relay.TupleGetItem(pair, 0), relay.TupleGetItem(pair, 1)))
    )
    np.testing.assert_array_equal(create_executor("graph").evaluate(f)(X, (X, Y)).numpy(), X + X * Y)


def test_bad_requests_are_refused():
    for wrong in (
        lambda: build(3, "llvm"),
        lambda: build(IRModule(), "llvm"),
        lambda: optimize(IRModule(), ["llvm", "c"]),
    ):
        with pytest.raises(CompassError):
            wrong()
    with pytest.raises(CompassError, match="unknown execution strategy: fast"):
        create_executor("fast")
    run = create_executor("graph").evaluate(relay.Function([x, y], x))
    with pytest.raises(CompassError, match="insufficient arguments, expected 2, provided 1"):
        run(X)
    with pytest.raises(CompassError, match="duplicate argument"):
        run(X, x=X)
    v = relay.var("x", shape=SHAPE)
    with pytest.raises(CompassError, match="parameters are named 'x'"):
        build(IRModule.from_expr(relay.Function([x, v], x)), "llvm", params={"x": X})


ARRAYS = {"a": X, "b.c": np.array(3, "int64"), "flags": np.array([True, False]), "": np.zeros((0, 2), "uint8")}


def test_parameter_files_give_back_what_was_saved():
    found = load_param_dict(save_param_dict(ARRAYS))
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype.name
        np.testing.assert_array_equal(found[name].numpy(), array)
    head = struct.pack("<QQQQ", 0xF7E58D4F05049CB7, 0, 1, 1) + b"a" + struct.pack("<Q", 1)
    tensor = struct.pack("<QQiiiBBHqqQ", 0xDD5E40F096B4A13F, 0, 1, 0, 2, 2, 32, 1, 2, 3, 24)
    assert bytes(save_param_dict({"a": X})) == head + tensor + X.tobytes()


@given(st.data())
def test_damaged_parameter_files_are_refused(data):
    good = bytes(save_param_dict(ARRAYS))
    end = data.draw(st.integers(0, len(good) - 1))
    with pytest.raises(CompassError, match="Invalid parameters file format"):
        load_param_dict(good[:end])
    flipped = bytearray(good)
    flipped[end] ^= data.draw(st.integers(1, 255))
    try:
        load_param_dict(flipped)  # other numbers in a tensor, or another name
    except CompassError as error:
        assert error.code == "parameter-file"


GOOD = json.loads(
    """{"nodes": [{"op": "null", "name": "x", "inputs": []},
        {"op": "tvm_op", "name": "r", "attrs": {"func_name": "__nop"}, "inputs": [[0, 0, 0]]}],
    "arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
    "attrs": {"dltype": ["list_str", ["float32", "float32"]], "storage_id": ["list_int", [0, 0]],
        "shape": ["list_shape", [[2, 3], [3, 2]]]}}"""
)


def test_a_graph_needs_no_library_for_reshapes():
    graph = GraphModule(GraphExecutor(json.dumps(GOOD), Module(), [cpu()]))
    graph.run(x=X)
    np.testing.assert_array_equal(graph.get_output(0).numpy(), X.reshape(3, 2))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("nodes", 1, "inputs", 0, 0), 1), (("nodes", 1, "inputs", 0, 1), 7), (("nodes", 1, "op"), "x"),
        (("nodes", 1, "inputs"), []), (("nodes", 0), 3), (("arg_nodes",), [1]), (("heads", 0), [2, 0, 0]),
        (("node_row_ptr",), [0, 2, 1]), (("attrs", "storage_id", 1, 0), -1), (("attrs", "shape", 1, 0, 0), -2),
        (("attrs", "dltype", 1), ["float32"]), (("attrs",), {}),
    ],
)  # fmt: skip
def test_damaged_graphs_are_refused(place, value):
    text = json.loads(json.dumps(GOOD))
    at = text
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    with pytest.raises(CompassError, match="no graph that can be run"):
        read_graph(json.dumps(text))


def test_a_kernel_that_the_library_lacks_and_damaged_content():
    text = json.dumps(GOOD).replace("__nop", "nobody")
    with pytest.raises(CompassError, match="no such function in module: nobody"):
        GraphExecutor(text, Module(), [cpu()])
    content = bytearray(GraphExecutorFactory(json.dumps(GOOD), {}).save_to_bytes())
    content[40] ^= 1
    from compass_runtime.factory import load_content

    with pytest.raises(CompassError, match="is damaged"):
        load_content(bytes(content))


@pytest.mark.parametrize(
    ("rows", "units", "constant", "level", "packed"),
    [(9, 32, True, 3, True), (2, 32, True, 3, False), (9, 33, True, 3, False), (9, 32, False, 3, False), (9, 32, True, 2, False)],
)  # fmt: skip
def test_constant_weights_of_products_are_packed_for_the_host(rows, units, constant, level, packed):
    rng = np.random.default_rng(0)
    data, weight = (rng.uniform(-1, 1, shape).astype("float32") for shape in ((3, rows // 3, 5), (units, 5)))
    a, w = relay.var("a", shape=data.shape), relay.var("w", shape=weight.shape)
    program = IRModule.from_expr(
        relay.Function([a, w], call("nn.relu", call("nn.dense", a, w, units=None, out_dtype="")))
    )
    params = {"w": weight} if constant else {}
    with PassContext(opt_level=level):
        for target in ("llvm", "cuda"):
            text = str(optimize(program, target, params)[0])
            assert ("nn.contrib_dense_pack" in text) == (packed and target == "llvm")
        if packed:
            graph = GraphModule(build(program, "llvm", params=params)["default"](cpu()))
            graph.run(a=data)
            np.testing.assert_allclose(
                graph.get_output(0).numpy(), np.maximum(data @ weight.T, 0), rtol=1e-5, atol=1e-6
            )

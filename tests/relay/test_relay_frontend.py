"""ONNX models as programs of Relay: ONNX's own node tests, control flow, open shapes, parameters, refusals."""

from __future__ import annotations

import importlib.util

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from compass_core.errors import UsageError
from compassc import relay
from compassc.importers import torch
from compassc.importers.refusals import RefusedModel
from compassc.relay.frontend import from_onnx, from_pytorch
from tests.choosing import chosen, some
from tests.importers.node_tests import loaded
from tests.relay.onnx_programs import run, values_of

INSTALLED = all(importlib.util.find_spec(name) for name in torch.PACKAGES)
needs_torch = pytest.mark.skipif(not INSTALLED, reason="torch and onnxscript are not installed")
HEAD = '<ir_version: 9, opset_import: ["" : 19]>\n'
BRANCHES = """agraph (float[2, 3] x, bool positive) => (float[N, 3] y) {
    twice = Add(x, x)
    y = If (positive) <
        then_branch = g1 () => (float[2, 3] a) { a = Relu(twice) },
        else_branch = g2 () => (float[4, 3] b) { b = Concat<axis = 0>(twice, x) }
    >
}"""
STEPS = """agraph (float[3] x, int64 n, bool go) => (float[M] last, float[K, 3] rows) {
    one = Constant<value = float[1] {1.0}> ()
    last, rows = Loop(n, go, x) <body = step (int64 i, bool c, float[M] s) => (bool more, float[M2] next, float[3] row) {
        limit = Constant<value = float {40.0}> ()
        row = Add(x, one)
        next = Concat<axis = 0>(s, one)
        total = ReduceSum<keepdims = 0>(next)
        more = Less(total, limit)
    }>
}"""
BATCHES = """agraph (float[N, 3, 8, 8] x, float[5, 16] w) => (float[N, 5] y) {
    k = Constant<value = float[1, 1, 3, 3] {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}> ()
    whole = ReduceMean<keepdims = 1, axes: ints = [1]>(x)
    c = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(whole, k)
    shape = Shape(c)
    zero = Constant<value = int64 {0}> ()
    n = Gather(shape, zero)
    axes = Constant<value = int64[1] {0}> ()
    ns = Unsqueeze(n, axes)
    rest = Constant<value = int64[1] {-1}> ()
    flat_shape = Concat<axis = 0>(ns, rest)
    flat = Reshape(c, flat_shape)
    wt = Transpose(w)
    y = MatMul(flat, wt)
}""".replace("ReduceMean<keepdims = 1, axes: ints = [1]>(x)", "ReduceMean<keepdims = 1>(x, channel)").replace(
    "    whole =", "    channel = Constant<value = int64[1] {1}> ()\n    whole ="
)


def model_of(text: str) -> onnx.ModelProto:
    return parser.parse_model(HEAD + text)


def compare(model: onnx.ModelProto, module: relay.IRModule, kind: str, **inputs: object) -> None:
    """Assertion that a program computes what the reference does."""
    expected = ReferenceEvaluator(model).run(None, {n: np.asarray(v) for n, v in inputs.items()})
    params = {n: np.asarray(inputs[n]) for n in inputs}
    found = values_of(relay.create_executor(kind, module).evaluate()(**params))
    for got, want in some(zip(found, expected, strict=True)):
        assert got.shape == np.shape(want) and got.dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("share", range(4))
def test_a_sample_of_node_tests_is_right_or_refused(share):
    results = [run(name) for name in sorted(chosen(loaded(), 23))[share::4]]
    assert results and [r for r in results if r.status == "failed"] == []
    assert sum(r.status == "refused" for r in results) < len(results) / 3


X = np.array([[1, -2, 3], [-4, 5, -6]], "float32")


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_branches_and_loops_stay_in_the_program(kind):
    model = model_of(BRANCHES)
    module = from_onnx(model)[0]
    for positive in (True, False):
        compare(model, module, kind, x=X, positive=positive)
    model = model_of(STEPS)
    module = from_onnx(model)[0]
    for n, go in ((3, True), (1, True), (1000, True)):
        compare(model, module, kind, x=X[0], n=np.int64(n), go=go)
    for n, go in ((0, True), (5, False)):  # the reference has no rows of no steps
        last, rows = values_of(relay.create_executor(kind, module).evaluate()(X[0], np.int64(n), go))
        assert last.tolist() == X[0].tolist() and rows.shape == (0, 3)


@pytest.mark.parametrize("frozen", [True, False])
def test_batches_of_any_size_are_one_program(frozen):
    model = model_of(BATCHES)
    weights = np.linspace(-1, 1, 80, dtype="float32").reshape(5, 16)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    del model.graph.input[1]
    module, params = from_onnx(model, freeze_params=frozen)
    assert str(module["main"].checked_type.ret_type) == "Tensor[(?, 5), float32]"
    assert [p.name_hint for p in module["main"].params] == ["x", *params] and list(params) == ([] if frozen else ["w"])
    batches = np.random.default_rng(0).random((3, 3, 8, 8), "float32")
    for size in (1, 3):
        compare(model, module, "vm", x=batches[:size], **{n: p.numpy() for n, p in params.items()})
    fixed, _ = from_onnx(model, {"x": (2, 3, 8, 8)})
    assert fixed["main"].checked_type.ret_type == relay.TensorType((2, 5))


def test_what_is_no_expression_is_refused_with_node_and_reason():
    text = "agraph (float[4] x, string s) => (float[4] y) { a = RandomUniformLike(x)  y = Add(x, a)  z = Identity(s) }"
    with pytest.raises(RefusedModel) as refused:
        from_onnx(model_of(text))
    assert [str(r).partition(":")[0] for r in refused.value.refusals] == [
        "the input 's' (graph)",
        "a (RandomUniformLike)",
    ]
    with pytest.raises(UsageError, match=r"\[2, 3\] in the model, not \[3, 3\]"):
        from_onnx(model_of(BRANCHES), {"x": (3, 3)})
    with pytest.raises(UsageError, match="no input 'X'"):
        from_onnx(model_of(BRANCHES), {"X": (2, 3)})


@needs_torch
def test_programs_of_pytorch_compute_what_it_computes():
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Hardswish(), nn.Flatten(), nn.Linear(8, 3)).eval()
    x = torch.randn(3, 1, 4, 4)
    program = torch.export.export(network, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    module, params = from_pytorch(program, [("picture", (-1, 1, 4, 4))])
    assert [p.name_hint for p in module["main"].params] == ["picture"] and not params
    found = relay.create_executor("debug", module).evaluate()(picture=x.numpy()).numpy()
    np.testing.assert_allclose(found, network(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(UsageError, match="1 inputs, 2 are named"):
        from_pytorch(program, [("a", (3, 1, 4, 4)), ("b", (1,))])


def test_what_branches_cannot_share_is_refused():
    text = BRANCHES.replace("Concat<axis = 0>(twice, x)", "ReduceSum<keepdims = 0>(x)").replace(
        "float[4, 3] b", "float b"
    )
    with pytest.raises(RefusedModel, match="no common type") as refused:
        from_onnx(model_of(text))
    assert refused.value.refusals[0].operator == "If"

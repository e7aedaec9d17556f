"""ONNX models as programs of Relay: ONNX's own node tests, control flow, open shapes, parameters, refusals."""

from __future__ import annotations

import importlib.util
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from compass_core.errors import UsageError
from compass_runtime.devices import cpu
from compassc import relay
from compassc.importers import torch
from compassc.importers.refusals import RefusedModel
from compassc.relay.backend import vm
from compassc.relay.visit import post_order
from tests.choosing import chosen, some
from tests.importers import tflite_cases, tflite_reference
from tests.importers.node_tests import loaded
from tests.importers.test_tflite_models import arrays_for
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

DETECTIONS = """agraph (float[1, 3, 8, 8] x, float[8, 3, 3, 3] w, float[1, 2, 16] scores) => (float[K, 4] chosen, int64[1, 2, 5] best) {
    c = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w)
    r = Sigmoid(c)
    rows = Constant<value = int64[3] {1, 8, 16}> ()
    flat = Reshape(r, rows)
    corners, sides = Split<axis = 1, num_outputs = 2>(flat)
    near, more = Split<axis = 1, num_outputs = 2>(corners)
    far = Add(near, more)
    both = Concat<axis = 1>(near, far)
    boxes = Transpose<perm = [0, 2, 1]>(both)
    most = Constant<value = int64[1] {4}> ()
    overlap = Constant<value = float[1] {0.3}> ()
    least = Constant<value = float[1] {0.2}> ()
    kept = NonMaxSuppression(boxes, scores, most, overlap, least)
    column = Constant<value = int64 {2}> ()
    index = Gather<axis = 1>(kept, column)
    zero = Constant<value = int64[1] {0}> ()
    all = Squeeze(boxes, zero)
    chosen = Gather(all, index)
    five = Constant<value = int64[1] {5}> ()
    values, best = TopK(scores, five)
}"""
"""What the NPU's layers lack, the suppression of boxes, gives as many rows as there are."""
OUTSIDE = """agraph (float[3] x, int64 n) => (float[3] y) {
    once = Exp(x)
    more = Constant<value = bool {1}> ()
    y = Loop(n, more, x) <body = step (int64 i, bool c, float[3] s) => (bool on, float[3] t) { on = Identity(c)  t = Add(s, once) }>
}"""
STEPPED = """agraph (float[T, 2, 3] x, float[1, 12, 3] w, float[1, 12, 4] r) => (float[T, 1, 2, 4] y, float[1, 2, 4] last) {
    y, last = GRU<hidden_size = 4, linear_before_reset = 1>(x, w, r)
}"""


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
    module = relay.frontend.from_onnx(model)[0]
    for positive in (True, False):
        compare(model, module, kind, x=X, positive=positive)
    model = model_of(STEPS)
    module = relay.frontend.from_onnx(model)[0]
    for n, go in ((3, True), (1, True), (1000, True)):
        compare(model, module, kind, x=X[0], n=np.int64(n), go=go)
    for n, go in ((0, True), (5, False)):  # the reference has no rows of no steps
        last, rows = values_of(relay.create_executor(kind, module).evaluate()(X[0], np.int64(n), go))
        assert last.tolist() == X[0].tolist() and rows.shape == (0, 3)


def with_content(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    """The model with random content for inputs."""
    numbers = np.random.default_rng(1)
    for item in [i for i in model.graph.input if i.name in names]:
        shape = [d.dim_value for d in item.type.tensor_type.shape.dim]
        array = numbers.normal(0, 1, shape).astype("float32")
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, item.name))
        model.graph.input.remove(item)
    return model


def test_what_no_step_of_a_loop_changes_is_computed_once():
    model = model_of(OUTSIDE)
    module = relay.frontend.from_onnx(model)[0]
    (loop,) = (e.value for e in post_order(module["main"]) if isinstance(e, relay.Let))
    inside, whole = ({str(e.op) for e in post_order(f) if isinstance(e, relay.Call)} for f in (loop, module["main"]))
    assert "exp" in whole and "exp" not in inside and "add" in inside
    compare(model, module, "debug", x=X[0], n=np.int64(3))


def test_recurrent_networks_are_functions_that_call_themselves():
    model = with_content(model_of(STEPPED), ["w", "r"])
    module = relay.frontend.from_onnx(model)[0]
    (loop,) = (e for e in post_order(module["main"]) if isinstance(e, relay.Let))
    assert any(isinstance(e, relay.Call) and e.op is loop.var for e in post_order(loop.value))
    steps = np.random.default_rng(2).random((5, 2, 3), "float32")
    for count in (1, 5):
        compare(model, module, "debug", x=steps[:count])


def test_boxes_are_suppressed_on_the_host_behind_layers_of_the_npu():
    model = with_content(model_of(DETECTIONS), ["w"])
    module = relay.frontend.from_onnx(model)[0]
    numbers = np.random.default_rng(3)
    inputs = {"x": numbers.random((1, 3, 8, 8), "float32"), "scores": numbers.random((1, 2, 16), "float32")}
    expected = ReferenceEvaluator(model).run(None, inputs)
    for target in ("llvm", "X2_1204"):
        program = vm.compile(module, target)
        assert ("tvmgen_default_compass_main_0" in program.stats) == (target != "llvm")
        assert "reference_vision_all_class_non_max_suppression" in program.stats
        for got, want in some(zip(values_of(vm.VirtualMachine(program, cpu()).run(**inputs)), expected, strict=True)):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("frozen", [True, False])
def test_batches_of_any_size_are_one_program(frozen):
    model = model_of(BATCHES)
    weights = np.linspace(-1, 1, 80, dtype="float32").reshape(5, 16)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    del model.graph.input[1]
    module, params = relay.frontend.from_onnx(model, freeze_params=frozen)
    assert str(module["main"].checked_type.ret_type) == "Tensor[(?, 5), float32]"
    assert [p.name_hint for p in module["main"].params] == ["x", *params] and list(params) == ([] if frozen else ["w"])
    batches = np.random.default_rng(0).random((3, 3, 8, 8), "float32")
    for size in (1, 3):
        compare(model, module, "vm", x=batches[:size], **{n: p.numpy() for n, p in params.items()})
    fixed, _ = relay.frontend.from_onnx(model, {"x": (2, 3, 8, 8)})
    assert fixed["main"].checked_type.ret_type == relay.TensorType((2, 5))


def test_what_is_no_expression_is_refused_with_node_and_reason():
    text = "agraph (float[4] x, string s) => (float[4] y) { a = RandomUniformLike(x)  y = Add(x, a)  z = Identity(s) }"
    with pytest.raises(RefusedModel) as refused:
        relay.frontend.from_onnx(model_of(text))
    assert [str(r).partition(":")[0] for r in refused.value.refusals] == [
        "the input 's' (graph)",
        "a (RandomUniformLike)",
    ]
    with pytest.raises(UsageError, match=r"\[2, 3\] in the model, not \[3, 3\]"):
        relay.frontend.from_onnx(model_of(BRANCHES), {"x": (3, 3)})
    with pytest.raises(UsageError, match="no input 'X'"):
        relay.frontend.from_onnx(model_of(BRANCHES), {"X": (2, 3)})


@needs_torch
def test_programs_of_pytorch_compute_what_it_computes():
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Hardswish(), nn.Flatten(), nn.Linear(8, 3)).eval()
    x = torch.randn(3, 1, 4, 4)
    program = torch.export.export(network, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    module, params = relay.frontend.from_pytorch(program, [("picture", (-1, 1, 4, 4))])
    assert [p.name_hint for p in module["main"].params] == ["picture"] and not params
    found = relay.create_executor("debug", module).evaluate()(picture=x.numpy()).numpy()
    np.testing.assert_allclose(found, network(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(UsageError, match="1 inputs, 2 are named"):
        relay.frontend.from_pytorch(program, [("a", (3, 1, 4, 4)), ("b", (1,))])


def test_what_branches_cannot_share_is_refused():
    text = BRANCHES.replace("Concat<axis = 0>(twice, x)", "ReduceSum<keepdims = 0>(x)").replace(
        "float[4, 3] b", "float b"
    )
    with pytest.raises(RefusedModel, match="no common type") as refused:
        relay.frontend.from_onnx(model_of(text))
    assert refused.value.refusals[0].operator == "If"


def test_tflite_models_of_real_numbers_are_right_or_refused():
    counts = Counter()
    for name in some(sorted(chosen(tflite_cases.CASES, 4))):
        content = tflite_cases.build(name)
        given = arrays_for(content, name)
        try:
            module, params = relay.frontend.from_tflite(content)
        except RefusedModel as refused:
            assert refused.refusals
            counts["refused"] += 1
            continue
        counts["right"] += 1
        assert not params
        found = values_of(relay.create_executor("debug", module).evaluate()(*given))
        for got, want in some(zip(found, tflite_reference.run(content, given), strict=True)):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)
    assert counts["right"] > counts["refused"]


def test_what_is_no_tflite_model_is_refused():
    with pytest.raises(UsageError, match="a dict is no TFLite model"):
        relay.frontend.from_tflite({})

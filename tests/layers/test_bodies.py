"""Bodies of layer types, which are made of operators: on arrays, as expressions on the host, and by schedules on NPUs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.run import run_layers
from compassc.layers.choices import deciding
from compassc.layers.declare import all_types, by_body, evaluate
from compassc.layers.expressions import OnTarget, expression_of
from compassc.layers.kernels import BY_HAND, BY_SCHEDULE, IMPLEMENTATION, SCHEDULED, kernel_of, load_kernels
from compassc.layers.matrix import layer_rows, operators_of
from compassc.layers.samples import Draw, drawn
from compassc.layers.support import SHAPES
from tests.choosing import some
from tests.layers.cases import layer_of, tensor
from tests.layers.harness import expect, run
from tests.networks.whole import network

NAMES = [name for name, declared in all_types().items() if declared.body is not None]


def sampled(name: str) -> tuple[Layer, list[np.ndarray]]:
    """A layer of floats with an expression, and inputs."""
    reason = "there is no sample"
    for seed, shape in enumerate(SHAPES * 2):
        layer = drawn(Draw(np.random.default_rng(seed)), name, Tensor("x", shape, "float32"))
        if layer is None:
            continue
        try:
            expression_of([layer])
        except LayerError as error:
            reason = str(error)
            continue
        rng = np.random.default_rng(3)
        inputs = [rng.integers(0, 2, t.shape) if t.is_integer else rng.normal(0, 1, t.shape) for t in layer.inputs]
        return layer, [a.astype(t.dtype) for a, t in zip(inputs, layer.inputs, strict=True)]
    raise AssertionError(f"{name}: {reason}")


def near(got, want):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.astype("f8"), w.astype("f8"), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_body_is_what_the_reference_is(name):
    layer, inputs = sampled(name)
    with np.errstate(all="ignore"):
        made = by_body(all_types()[name].body)(layer, *inputs)
    near(made if isinstance(made, (list, tuple)) else [made], evaluate(layer, inputs))
    assert operators_of(name)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NAMES)
def test_expressions_on_the_host(name):
    layer, inputs = sampled(name)
    on_host = OnTarget("llvm -opt-level=0")
    near(on_host(layer, inputs), evaluate(layer, inputs))
    assert not on_host.references


def test_a_network_runs_on_the_host_by_schedules():
    graph, on_host = network("small_residual"), OnTarget("llvm -opt-level=1")
    inputs = {t.name: np.random.default_rng(1).normal(0, 1, t.shape).astype(t.dtype) for t in graph.inputs}
    for done, known in zip(run_layers(graph, inputs, on_host), run_layers(graph, inputs), strict=True):
        near(done.outputs, known.outputs)
    assert not on_host.references


def first_scheduled(name: str) -> Layer:
    """A layer of floats whose schedule comes before the kernel by hand."""
    shapes = enumerate(((3, 20), *SHAPES) * 3)
    drawings = (drawn(Draw(np.random.default_rng(i)), name, Tensor("x", shape, "float32")) for i, shape in shapes)
    return next(layer for layer in drawings if layer is not None and SCHEDULED[name](layer))


def test_kernels_by_schedule_and_by_hand(tmp_path):
    load_kernels()
    for name in some(SCHEDULED):
        layer = first_scheduled(name)
        with deciding() as decisions:
            kernel = kernel_of([layer])
        assert decisions.offered[IMPLEMENTATION] == [BY_SCHEDULE, BY_HAND] and not kernel.is_program
        with deciding({IMPLEMENTATION: BY_HAND}):
            assert kernel_of([layer]).is_program
        assert kernel_of([layer]).text == kernel.text
        inputs = [np.random.default_rng(0).normal(0, 1, t.shape).astype(t.dtype) for t in layer.inputs]
        expect(kernel, layer, inputs, tmp_path, partial(near, want=evaluate(layer, inputs)))


def test_element_wise_layers_join_a_schedule(tmp_path):
    x = tensor("x", (3, 20), "float32")
    first = layer_of("Softmax", [x], "float32", {"axis": 1}, [(3, 20)])
    last = layer_of("Mul", [first.output, tensor("b", (20,), "float32")], "float32", {}, [(3, 20)])
    last = Layer("last", "Mul", (first.output, last.inputs[1]), (Tensor("z", (3, 20), "float32"),), last.attributes, {})
    kernel = kernel_of([first, last])
    assert not kernel.is_program
    inputs = [np.random.default_rng(0).normal(0, 1, t.shape).astype("f4") for t in (x, last.inputs[1])]
    both = Layer("both", "Mul", (x, last.inputs[1]), last.outputs, {}, {})
    near(run(kernel, both, inputs, tmp_path), evaluate(last, [*evaluate(first, inputs[:1]), inputs[1]]))


def test_layers_without_an_expression_say_why():
    layer = layer_of("Softmax", [tensor("x", (3, 20), "bfloat16")], "bfloat16", {"axis": 1}, [(3, 20)])
    with pytest.raises(LayerError, match="bfloat16"):
        expression_of([layer])
    assert kernel_of([layer]).is_program
    assert OnTarget("llvm").references == {}


def test_the_matrix_has_no_empty_cells():
    for row in some(layer_rows()):
        assert all(row[2:]) or "not supported" in row.npu, row

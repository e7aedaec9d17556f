"""Which part of a transposed convolution's whole output is wanted: layers and programs against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest

from compassc import relay
from compassc.graph.run import run_graph
from compassc.importers.onnx import import_model
from tests.importers.networks import Net
from tests.relay.relay_values import evaluate

MODES = ("NOTSET", "SAME_UPPER", "SAME_LOWER")
MODELS = 12


def by_layers(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    graph = import_model(model)
    return run_graph(graph, {graph.inputs[0].name: x})[graph.outputs[0].name]


def by_program(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    (found,) = evaluate(relay.frontend.from_onnx(model)[0], x)
    return found


ROADS = (by_layers, by_program)


def drawn(mode: str, seed: int) -> tuple[onnx.ModelProto, np.ndarray, list[int]]:
    """A model, its input, and the sizes that ONNX's text gives its output: those asked for, otherwise the input's times the strides."""
    random = np.random.default_rng(seed)
    sizes, kernel, strides = (random.integers(low, 5, 2) for low in (2, 1, 1))
    dilations = random.integers(1, 3, 2)
    extra = [int(random.integers(s)) for s in strides]
    whole = strides * (sizes - 1) + dilations * (kernel - 1) + 1
    goals = [int(n) for n in sizes * strides]
    attributes = {"strides": strides.tolist(), "dilations": dilations.tolist(), "output_padding": extra}
    if mode == "NOTSET" or seed % 2:
        goals = [int(random.integers(max(1, n - 4), n + s)) for n, s in zip(whole, strides, strict=True)]
        attributes["output_shape"] = goals
    net = Net(17, seed)
    x = random.standard_normal((1, 2, *sizes)).astype(np.float32)
    y = net(
        "ConvTranspose",
        net.input("x", *x.shape),
        net.weights(2, 3, *kernel),
        net.weights(3),
        auto_pad=mode,
        **attributes,
    )
    return net.model(y), x, goals


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("mode", MODES)
def test_wanted_sizes_choose_the_part_that_onnx_runtime_chooses(
    mode: str, road: Callable[[onnx.ModelProto, np.ndarray], np.ndarray]
) -> None:
    compared = 0
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for seed in range(MODELS):
        model, x, goals = drawn(mode, seed)
        try:
            (want,) = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
        except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
            continue  # it wants other input sizes for this output
        got = road(model, x)
        assert list(got.shape[2:]) == goals, seed
        # with no output_shape, ONNX Runtime ends where the filters do
        shared = got[:, :, : want.shape[2], : want.shape[3]]
        np.testing.assert_allclose(shared, want, rtol=1e-4, atol=1e-5, err_msg=f"seed {seed}")
        compared += 1
    assert compared > MODELS // 2

"""Windows of pools that reach past the tensor: layers and programs against ONNX Runtime, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest

from compass_core.errors import CompassError
from tests.importers.networks import Net
from tests.importers.test_transposed_windows import ROADS

MODELS = 24
STATE = onnxruntime.capi.onnxruntime_pybind11_state


def drawn(kind: str, seed: int) -> tuple[onnx.ModelProto, np.ndarray]:
    """A pool over one or two axes, and its input. With SAME there is no dilation, whose pads ONNX Runtime has other than the text."""
    random = np.random.default_rng(seed)
    rank = 1 + seed % 2
    sizes, (kernel, strides) = random.integers(3, 9, rank), random.integers(1, 4, (2, rank))
    mode = str(random.choice(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    attributes = {"kernel_shape": kernel.tolist(), "strides": strides.tolist(), "auto_pad": mode}
    if "SAME" not in mode:
        attributes["dilations"] = random.integers(1, 3, rank).tolist()
    if mode == "NOTSET":
        attributes["pads"] = random.integers(0, [*kernel, *kernel]).tolist()
    if kind == "LpPool":
        attributes["p"] = 1 + seed % 3
    if kind == "AveragePool":
        attributes["count_include_pad"] = seed // 2 % 2
    net = Net(19, seed)
    x = random.standard_normal((1, 3, *sizes)).astype(np.float32)
    return net.model(net(kind, net.input("x", *x.shape), ceil_mode=seed // 3 % 2, **attributes)), x


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "LpPool"])
def test_pools_are_those_of_onnx_runtime(kind: str, road: Callable[[onnx.ModelProto, np.ndarray], np.ndarray]) -> None:
    ends: Counter[str] = Counter()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for seed in range(MODELS):
        model, x = drawn(kind, seed)
        try:
            (want,) = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
        except (STATE.Fail, STATE.RuntimeException):
            continue  # a window that is larger than the padded tensor, or begins inside of it
        try:
            got = road(model, x)
        except CompassError:
            ends["refused"] += 1
            continue
        assert got.shape == want.shape, seed
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=f"seed {seed}")
        ends["equal"] += 1
    assert ends["equal"] > MODELS // 2, ends


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", ["AveragePool", "LpPool"])
def test_windows_that_begin_inside_are_refused(
    kind: str, road: Callable[[onnx.ModelProto, np.ndarray], np.ndarray]
) -> None:
    net = Net(19, 0)
    model = net.model(net(kind, net.input("x", 1, 1, 6), kernel_shape=[1], strides=[3], auto_pad="SAME_UPPER"))
    with pytest.raises(CompassError, match="leave out elements at the ends"):
        road(model, np.arange(6, dtype=np.float32).reshape(1, 1, 6))

"""A small network that is trained at once: fixed random filters and a linear classifier for 8x8 images of digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.digits import load_digits

FILTERS = 16


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images [1797, 1, 8, 8] between 0 and 1, and what they show."""
    images, shown = load_digits()
    return (images[:, None] / 16).astype(np.float32), shown


def features(x: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """Convolution with 3x3 filters, rectifier, maximum of 2x2."""
    wide = np.pad(x[:, 0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2))
    made = np.maximum(np.einsum("nhwij,fij->nfhw", windows, filters), 0)
    return made.reshape(len(x), len(filters), 4, 2, 4, 2).max((3, 5)).reshape(len(x), -1)


def write_model(path: Path) -> Path:
    """The ONNX model, trained on the first 1200 digits."""
    x, y = digits()
    filters = np.random.default_rng(0).normal(0, 0.5, (FILTERS, 3, 3)).astype(np.float32)
    seen = np.column_stack([features(x[:1200], filters), np.ones(1200)])
    fitted = np.linalg.solve(seen.T @ seen + np.eye(seen.shape[1]), seen.T @ (np.eye(10)[y[:1200]] * 2 - 1))
    constants = {
        "filters": filters[:, None],
        "weights": np.ascontiguousarray(fitted[:-1].T, np.float32),
        "biases": fitted[-1].astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["c"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "weights", "biases"], ["scores"], "head", transB=1),
    ]
    ends = [
        helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, 8, 8]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 10]),
    ]
    listed = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "digits", ends[:1], ends[1:], listed)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path

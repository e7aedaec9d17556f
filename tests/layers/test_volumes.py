"""Convolutions of volumes and of lines, and products of whole numbers, against their references."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError
from compassc.layers.declare import BOUNDS
from compassc.layers.kernels import kernel_of
from tests.choosing import some
from tests.layers.cases import drawn, same, tensor

FORMS: tuple[tuple[Any, ...], ...] = (  # input, outputs, kernel (z, y, x), strides, pad, dilation, groups
    ((2, 4, 5, 6, 7), 33, (3, 3, 3), (1, 1, 1), 1, 1, 1),
    ((1, 5, 6, 7, 8), 8, (2, 3, 1), (2, 1, 3), 0, 2, 2),
    ((1, 2, 3, 4, 40), 5, (1, 1, 1), (1, 2, 1), 0, 1, 1),
    ((1, 3, 2, 5, 3), 4, (3, 1, 2), (2, 2, 2), 1, 1, 1),
)
DTYPES = ("int8", "uint8", "int16", "float32", "float16")
ACTIVATIONS = ("NONE", "RELU", "LEAKYRELU", "CLIP")


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(71)


def solid(kernel: tuple[int, ...], strides: tuple[int, ...], pad: int, dilation: int) -> dict[str, int]:
    given = {
        f"{n}_{a}": v
        for n, sizes in (("kernel", kernel), ("stride", strides))
        for a, v in zip("zyx", sizes, strict=True)
    }
    return (
        given
        | {f"dilation_{a}": dilation for a in "xyz"}
        | {f"pad_{a}_{e}": pad for a in "xyz" for e in ("begin", "end")}
    )


def weighted(
    source: np.random.Generator, dtype: str, outputs: int, shape: tuple[int, ...]
) -> tuple[dict[str, Any], Any]:
    """Constants and attributes for results that fill the output's range."""
    depth = int(np.prod(shape)) // outputs
    if "float" in dtype:
        constants = {
            "weights": source.normal(0, depth**-0.5, shape).astype("float32"),
            "biases": source.normal(0, 1, outputs).astype("float32"),
        }
        return constants, {"clip_min": -1.0, "clip_max": 1.0, "negative_slope_value": 0.1}
    constants = {
        "weights": source.integers(-128, 128, shape).astype("int8"),
        "biases": source.integers(-3000, 3000, outputs).astype("int32"),
        "scale": source.integers(100, 60000, outputs).astype("uint16"),
        "shift": np.full(outputs, int(np.log2(depth**0.5 * 16000)) + 6, "int8"),
    }
    return constants, {"clip_min": -2000, "clip_max": 20000, "negative_slope_value": 26}


@pytest.mark.parametrize("kind", ["Convolution3D", "ConvTranspose3D"])
def test_volumes(kind, source, tmp_path):
    activations = cycle(ACTIVATIONS)
    for i, dtype in enumerate(DTYPES):
        for shape, outputs, kernel, strides, pad, dilation, groups in some(FORMS[i % 2 :: 2]):
            flat = (*kernel[1:], kernel[0])
            if kind == "ConvTranspose3D":
                size = [
                    (n - 1) * s + dilation * (k - 1) + 1 - 2 * pad
                    for n, s, k in zip(shape[1:4], strides, kernel, strict=True)
                ]
                weights = (outputs // groups, *flat, shape[4])
            else:
                size = [
                    (n + 2 * pad - dilation * (k - 1) - 1) // s + 1
                    for n, s, k in zip(shape[1:4], strides, kernel, strict=True)
                ]
                weights = (outputs, *flat, shape[4] // groups)
            constants, given = weighted(source, dtype, outputs, weights)
            given |= {**solid(kernel, strides, pad, dilation), "group": groups, "with_activation": next(activations)}
            x = tensor("x", shape, dtype, 1.0, {"int8": 5, "uint8": -5}.get(dtype, 0))
            layer = Layer("l", kind, [x], [tensor("y", (shape[0], *size, outputs), dtype)], given, constants)
            same(layer, [drawn(source, x)], tmp_path, BOUNDS.get(dtype, 0))


@pytest.mark.parametrize("kind", ["Convolution", "DepthwiseConv", "ConvTranspose"])
def test_lines(kind, source, tmp_path):
    for dtype in ("int8", "float32"):
        groups = 6 if kind == "DepthwiseConv" else 1
        given = {"kernel_x": 3, "stride_x": 2, "pad_left": 1, "pad_right": 0, "dilation_x": 1, "group": groups}
        size = (9 - 1) * 2 + 3 - 1 if kind == "ConvTranspose" else (9 + 1 - 3) // 2 + 1
        outputs = 6 if groups > 1 else 10
        constants, extra = weighted(source, dtype, outputs, (outputs, 3, 6 // groups))
        x, y = tensor("x", (2, 9, 6), dtype), tensor("y", (2, size, outputs), dtype)
        same(Layer("l", kind, [x], [y], given | extra, constants), [drawn(source, x)], tmp_path, BOUNDS.get(dtype, 0))


@pytest.mark.parametrize("apart", [False, True])
def test_convolutions_of_whole_numbers(apart, source, tmp_path):
    keys = {f"{n}_{a}": v for n, v in (("kernel", 3), ("stride", 1), ("dilation", 1)) for a in "xy"}
    keys |= {f"pad_{s}": 1 for s in ("left", "right", "top", "bottom")}
    for dtype, kept in (("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8")):
        weights = source.integers(np.iinfo(kept).min, np.iinfo(kept).max + 1, (9, 3, 3, 5)).astype(kept)
        constants = {"weights": weights, "biases": source.integers(-5000, 5000, 9).astype("int32")}
        zeros = {"x_zero_point": 7, "w_zero_point": 130} if apart else {"x_zero_point": 7, "weights_zp": -3}
        x, y = tensor("x", (2, 6, 5, 5), dtype, 1.0, -7), tensor("y", (2, 6, 5, 9), "int32")
        same(Layer("l", "ConvInteger", [x], [y], {**keys, **zeros}, constants), [drawn(source, x)], tmp_path)


def test_matrix_products_of_whole_numbers(source, tmp_path):
    for types, zeros, depth in (
        (("uint8", "int8"), (128, 3), 40),
        (("int8", "int8"), (0, 0), 7),
        (("int16", "int16"), (9, -9), 70),
    ):
        a, b = tensor("a", (2, 5, depth), types[0], 1.0, 4), tensor("b", (2, depth, 34), types[1])
        given = {"a_zero_point": zeros[0], "b_zero_point": zeros[1]}
        case = Layer("l", "MatMulInteger", [a, b], [tensor("y", (2, 5, 34), "int32")], given)
        same(case, [drawn(source, a), drawn(source, b)], tmp_path)
        same(case, [np.full(t.shape, t.low, t.dtype) for t in (a, b)], tmp_path)


def test_a_volume_whose_size_does_not_follow_is_refused_with_both(source):
    shape, outputs, kernel, strides, pad, dilation, groups = FORMS[0]
    constants, given = weighted(source, "int8", outputs, (outputs, 3, 3, 3, 7))
    given |= {**solid(kernel, strides, pad, dilation), "group": groups}
    for made, said in (((2, 4, 5, 7, 33), r"\[2, 4, 5, 7, 33\].*\[2, 4, 5, 6, 33\]"),):
        layer = Layer("l", "Convolution3D", [tensor("x", shape, "int8")], [tensor("y", made, "int8")], given, constants)
        with pytest.raises(LayerError, match=said):
            kernel_of([layer])

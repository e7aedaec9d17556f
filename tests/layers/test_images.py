"""Colours and windows plus weights: kernels give what the references give, and these what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import Layer, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.samples.images import TO_RGB, TO_YUV
from tests.layers.cases import drawn, layer_of, same, tensor
from tests.layers.references import window_keys


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(13)


def colours(kind: str, dtype: str, size: tuple[int, int, int], zero: int = 0) -> Layer:
    n, h, w = size
    flat, image = (
        Tensor("f", (n, h * w * 3 // 2), dtype, 1.0, zero),
        Tensor("i", (n, h, w, 3), dtype, 1.0, zero),
    )
    numbers, shift = (TO_RGB, 8) if kind == "YuvToRgb" else (TO_YUV, 10)
    if dtype.startswith(("float", "bf")):
        numbers, shift = numbers[:6] + [v / (1 << shift) for v in numbers[6:]], 0
    given = {"coefficient": numbers, "coefficient_shift": shift, "format": "I420"}
    ends = ([flat], [image]) if kind == "YuvToRgb" else ([image], [flat])
    return Layer("l", kind, *ends, given)


@pytest.mark.parametrize("kind", ["YuvToRgb", "RgbToYuv"])
@pytest.mark.parametrize(("dtype", "zero"), [("int8", 0), ("float32", 0)])
def test_colours(tmp_path, source, kind, dtype, zero):
    for size in ((2, 4, 6), (1, 6, 70)):
        layer = colours(kind, dtype, size, zero)
        values = source.integers(0, 256, layer.input.shape) - zero
        if not layer.is_quantised:
            values = source.uniform(-2, 258, layer.input.shape)
        near = {"float32": 1e-6, "float16": 2e-3, "bfloat16": 1.6e-2}.get(dtype, 0)
        same(layer, [values.astype(drawn(source, layer.input).dtype)], tmp_path, near)


def test_a_grey_image_stays_grey():
    layer = colours("YuvToRgb", "uint8", (1, 4, 4))
    (found,) = evaluate(layer, [np.asarray([[126] * 16 + [128] * 8], "uint8")])
    assert (found == found[0, 0, 0, 0]).all() and abs(int(found[0, 0, 0, 0]) - 128) <= 1


def test_chroma_between_rows_and_columns():
    """The red of an image whose V grows is that of the nearest two columns, three to one."""
    layer = colours("YuvToRgb", "float32", (1, 2, 4))
    given = {**layer.attributes, "coefficient": [0] * 6 + [0, 0, 1, 0, 0, 0, 0, 0, 0]}
    plain = Layer("l", "YuvToRgb", layer.inputs, layer.outputs, given)
    (found,) = evaluate(plain, [np.asarray([[0] * 8 + [0, 0] + [100, 200]], "float32")])
    np.testing.assert_array_equal(found[0, 0, :, 0], [100, 125, 175, 200])


@pytest.mark.parametrize("kind", ["Dilation", "Erosion"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "int16"])
def test_extremes_of_windows(tmp_path, source, kind, dtype):
    floats = dtype.startswith("float")
    for shape, stride, dilation in (((2, 5, 7, 3), 1, 1), ((1, 6, 5, 40), 2, 2)):
        given = window_keys((3, 2), stride, 1, dilation)
        size = [(n + 2 - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(shape[1:3], (3, 2), strict=True)]
        if not floats:
            given |= {"scale_value": [200, 256, 300], "shift_value": 16}
        x = tensor("x", shape, dtype, 1.0, 0 if floats else 7)
        weights = tensor("w", (shape[3], 3, 2, 1), "int8" if not floats else dtype)
        layer = layer_of(kind, [x], dtype, given, [(shape[0], *size, shape[3])], 3, weights=drawn(source, weights))
        same(layer, [drawn(source, x)], tmp_path)


def test_a_dilation_without_weights_is_a_maximum(source):
    x = tensor("x", (1, 4, 4, 2), "float32")
    zero = np.zeros((2, 2, 2, 1), "float32")
    values = drawn(source, x)
    blocks = values.reshape(1, 2, 2, 2, 2, 2)
    for kind, want in (("Dilation", blocks.max(axis=(2, 4))), ("Erosion", blocks.min(axis=(2, 4)))):
        (found,) = evaluate(
            layer_of(kind, [x], "float32", window_keys((2, 2), 2), [(1, 2, 2, 2)], weights=zero), [values]
        )
        np.testing.assert_array_equal(found, want)

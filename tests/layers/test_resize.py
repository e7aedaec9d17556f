"""Resizing kernels give what the references give: the integers to the bit, floats within rounding of the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError
from compassc.layers.declare import evaluate
from compassc.layers.families.resize.reference import MODES, NEAREST_MODES, windows_of
from compassc.layers.kernels import kernel_of
from tests.choosing import some
from tests.layers.cases import TYPES, drawn, layer_of, same, tensor

FORMS = [
    ((1, 4, 5, 3), (8, 10)),
    ((2, 7, 6, 33), (3, 4)),
    ((1, 1, 1, 16), (6, 5)),
    ((1, 6, 1, 1), (1, 7)),
    ((1, 5, 9, 70), (5, 18)),
]
ROUNDING = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(5)


def resized(dtype: str, shape: tuple[int, ...], size: tuple[int, int], **attributes: Any) -> Layer:
    out = (shape[0], *size, shape[3])
    return layer_of("Resize", [tensor("x", shape, dtype, 1.0, 3)], dtype, attributes, [out], 3)


def ratios(shape: tuple[int, ...], size: tuple[int, int], sort: int) -> dict[str, float]:
    exact = {"ratio_y": size[0] / shape[1], "ratio_x": size[1] / shape[2]}
    return {} if sort % 2 else exact


@pytest.mark.parametrize("dtype", TYPES)
def test_nearest(tmp_path, source, dtype):
    for i, mode in some(enumerate(MODES)):
        for j, nearest in some(enumerate(NEAREST_MODES)):
            if dtype != "int8" and i != j:
                continue
            shape, size = FORMS[(i + j) % len(FORMS)]
            layer = resized(
                dtype, shape, size, method="NEAREST", mode=mode, nearest_mode=nearest, **ratios(shape, size, j)
            )
            same(layer, [drawn(source, layer.input)], tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "float32", "float16", "bfloat16"])
def test_bilinear(tmp_path, source, dtype):
    for i, mode in some(enumerate(MODES)):
        for j, (shape, size) in some(enumerate(FORMS if dtype in ("uint8", "float32") else FORMS[i % 5 :][:1])):
            layer = resized(dtype, shape, size, method="BILINEAR", mode=mode, **ratios(shape, size, i + j))
            same(layer, [drawn(source, layer.input)], tmp_path, ROUNDING.get(dtype, 0) * 4)


def triangle(size: int, result: int, quantised: bool) -> dict[str, np.ndarray]:
    """Windows of a triangle filter: their weights, first and last places."""
    scale = size / result
    support = max(scale, 1)
    window = 2 * int(np.ceil(support)) + 1
    weights, low, high = np.zeros((result, window), np.float32), [], []
    for i in range(result):
        centre = (i + 0.5) * scale
        a, b = max(0, int(centre - support + 0.5)), min(size, int(centre + support + 0.5))
        w = np.maximum(0, 1 - np.abs((np.arange(a, b) - centre + 0.5) / support))
        weights[i, : b - a] = w / w.sum()
        low.append(a)
        high.append(b)
    stored = np.trunc(weights * 255).astype(np.uint8) if quantised else weights
    return {"weights": stored, "min": np.asarray(low, np.uint16), "max": np.asarray(high, np.uint16)}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float32", "float16"])
def test_antialiased(tmp_path, source, dtype):
    for shape, size in (((1, 9, 11, 3), (4, 5)), ((2, 6, 7, 40), (3, 9))):
        constants = {}
        for letter, axis in (("x", 1), ("y", 0)):
            made = triangle(shape[1 + axis], size[axis], "int" in dtype)
            constants |= {f"weight_coefficients_{letter}": made["weights"].reshape(-1)}
            constants |= {f"bound_{letter}_{end}": made[end] for end in ("min", "max")}
        layer = resized(dtype, shape, size, method="BILINEAR", antialias=True)
        layer = Layer(layer.name, layer.type, layer.inputs, layer.outputs, layer.attributes, constants)
        same(layer, [drawn(source, layer.input)], tmp_path, ROUNDING.get(dtype, 0) * 4)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_an_antialiased_image_without_weights_takes_those_of_a_triangle(tmp_path, source, dtype):
    for shape, size, outside in (((1, 9, 11, 3), (4, 5), True), ((2, 6, 7, 40), (3, 9), False)):
        layer = resized(dtype, shape, size, method="BILINEAR", antialias=True, exclude_outside=not outside)
        same(layer, [drawn(source, layer.input)], tmp_path, ROUNDING.get(dtype, 0) * 4)
        for letter, axis in (("x", 2), ("y", 1)):
            low, high, weights = windows_of(layer, letter)
            known = triangle(shape[axis], size[axis - 1], dtype == "int8")
            assert (low == known["min"]).all() and (high == known["max"]).all()
            inner = slice(1, -1) if outside else slice(None)
            np.testing.assert_allclose(
                weights[inner], known["weights"][inner], rtol=1e-6, atol=1.0 if dtype == "int8" else 1e-6
            )
            if dtype == "float32":
                np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-6)


def test_wide_images_do_not_need_to_fit_lsram(tmp_path, source):
    for method in ("NEAREST", "BILINEAR"):
        layer = resized("float32", (1, 2, 130, 64), (3, 200), method=method)
        same(layer, [drawn(source, layer.input)], tmp_path, 8e-6)


def test_an_unknown_method_is_refused_by_name():
    with pytest.raises(LayerError, match="SPLINE"):
        kernel_of([resized("int8", (1, 2, 2, 4), (4, 4), method="SPLINE")])


@pytest.mark.parametrize("method", ["LINEAR", "BICUBIC", "TRILINEAR"])
def test_neighbours_along_an_axis_after_the_other(method, tmp_path):
    source = np.random.default_rng(9)
    for i, dtype in enumerate(("int8", "uint8", "int16", "float32", "float16")):
        sizes = {"LINEAR": ((9,), (14,)), "BICUBIC": ((5, 7), (9, 4)), "TRILINEAR": ((3, 4, 5), (5, 3, 8))}[method]
        x, y = (tensor(n, (2, *s, 35), dtype) for n, s in zip("xy", sizes if i % 2 else sizes[::-1], strict=True))
        layer = Layer("r", "Resize", [x], [y], {"method": method, "mode": ("HALF_PIXEL", "ALIGN_CORNERS")[i // 2 % 2]})
        same(layer, [drawn(source, x)], tmp_path, 1e-3 if dtype == "float16" else 1e-6)


def test_cubic_weights_are_those_of_the_convolution_with_minus_three_quarters():
    """Constants and straight lines stay, whatever the size."""
    x, y = tensor("x", (1, 6, 1, 1), "float32"), tensor("y", (1, 12, 1, 1), "float32")
    layer = Layer("r", "Resize", [x], [y], {"method": "BICUBIC", "mode": "HALF_PIXEL"})
    [flat] = evaluate(layer, [np.full(x.shape, 3, "float32")])
    np.testing.assert_allclose(flat, 3, rtol=1e-6)
    [line] = evaluate(layer, [np.arange(6, dtype="float32").reshape(x.shape)])
    inside = line.reshape(-1)[4:8]
    np.testing.assert_allclose(inside[1:] + inside[:-1], inside[1] + inside[0] + np.arange(3), atol=0.1)

"""Crops, nearest regions and pyramids in integers: kernels give what the references give, and these are near the floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from compassc.layers.real_values import to_raw
from tests.layers.cases import Array, drawn, layer_of, same, tensor

INTEGERS = ("int8", "uint8", "int16", "uint16")


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(23)


def smooth(*shape: int) -> Array:
    """Maps [N, H, W, C] without jumps, from -1 to 1."""
    n, y, x, c = np.meshgrid(*(np.arange(s) for s in shape), indexing="ij")
    return np.asarray(np.sin(0.3 * y + c + n) * np.cos(0.25 * x), "f4")


def parts_of_images(source: np.random.Generator, many: int, beyond: float = 0.1) -> Array:
    """Boxes, some beyond the image; the first is the image, the second of no size, the third upside down."""
    first, last = source.uniform(-beyond, 0.5, (many, 2)), source.uniform(0.5, 1 + beyond, (many, 2))
    boxes = np.concatenate([first, last], 1)
    boxes[:2] = [[0, 0, 1, 1], [0.4, 0.3, 0.4, 0.3]]
    boxes[2] = [0.9, 0.1, 0.2, 0.8]
    return boxes.astype("f4")


def numbers(scale: float, bits: int) -> dict[str, Any]:
    shift = int(np.floor(np.log2(((1 << bits) - 1) * scale)))
    return {"scale_value": round(2.0**shift / scale), "shift_value": shift}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_crops_in_integers(tmp_path, source, dtype):
    """With multipliers of two bits, too, which the format's own quantiser makes for boxes of 16 bits."""
    forms = [("int16", 32767.0, 0, 2), ("uint16", 50000.0, 0, 15), ("int8", 100.0, 0, 8), ("uint8", 180.0, -30, 7)]
    n = INTEGERS.index(dtype)
    kind, scale, zero, bits = forms[n]
    method, size, shape = (("BILINEAR", (3, 4), (2, 7, 5, 3)), ("NEAREST", (1, 3), (2, 6, 9, 40)))[n % 2]
    x = Tensor("x", shape, dtype, 4.0, (-3, 0)[n % 2])
    boxes, index = Tensor("boxes", (6, 4), kind, scale, zero), tensor("index", (6,), "int32")
    given = {"crop_size": list(size), "method": method, "extrapolation_value": 3, **numbers(scale, bits)}
    layer = Layer(
        "l", "CropAndResize", [x, boxes, index], [Tensor("y", (6, *size, shape[3]), dtype, 4.0, x.zero)], given
    )
    values = to_raw(boxes, parts_of_images(source, 6))
    same(layer, [drawn(source, x), values, np.asarray([0, 1, 1, 0, 1, 2], "int32")], tmp_path)


@pytest.mark.parametrize("method", ["BILINEAR", "NEAREST"])
def test_crops_follow_the_floats(source, method):
    maps, places, index = smooth(2, 12, 17, 3), parts_of_images(source, 12), source.integers(0, 2, 12).astype("int32")
    given = {"crop_size": [5, 6], "method": method, "extrapolation_value": 0}
    x, boxes = Tensor("x", maps.shape, "int16", 20000.0), Tensor("b", (12, 4), "int16", 27000.0)
    out = Tensor("y", (12, 5, 6, 3), "int16", 20000.0)
    fixed = Layer("q", "CropAndResize", [x, boxes, tensor("i", (12,), "int32")], [out], given | numbers(27000, 15))
    real = layer_of("CropAndResize", [tensor(t.name, t.shape, "float32") for t in (x, boxes)] + [fixed.inputs[2]],
                    "float32", given, [out.shape])  # fmt: skip
    (got,) = evaluate(fixed, [to_raw(x, maps), to_raw(boxes, places), index])
    (want,) = evaluate(real, [maps, places, index])
    off = np.abs(got / 20000 - want)
    # at the border of the image, and between two pixels, a place may fall on the other side
    assert np.mean(off > 0.002) < 0.03
    corners = [0, 0, -1, -1], [0, -1, 0, -1]
    np.testing.assert_allclose(got[0][corners], to_raw(x, maps)[index[0]][corners], atol=1)


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_nearest_regions_in_integers(tmp_path, source, dtype):
    kind, scale, zero, shape = {
        "uint8": ("int16", 32768.0, 0, (1, 6, 9, 40)),
        "int16": ("uint8", 180.0, -30, (2, 7, 5, 3)),
    }[dtype]
    x, boxes = Tensor("x", shape, dtype, 4.0, 5), Tensor("boxes", (1, 6, 4), kind, scale, zero)
    layer = Layer("layer", "ROIPooling", [x, boxes], [Tensor("y", (6, 3, 4, shape[3]), dtype, 4.0, 5)])
    same(layer, [drawn(source, x), to_raw(boxes, parts_of_images(source, 6))[None]], tmp_path)


def test_nearest_regions_follow_the_floats(source):
    maps = smooth(1, 20, 16, 2)
    places = np.sort(source.uniform(0, 1, (200, 2, 2)), 1).reshape(200, 4).astype("f4")
    x, boxes = Tensor("x", maps.shape, "int8", 127.0), Tensor("b", (200, 4), "int16", 32767.0)
    (got,) = evaluate(Layer("q", "ROIPooling", [x, boxes], [Tensor("y", (200, 5, 4, 2), "int8", 127.0)]), [to_raw(x, maps), to_raw(boxes, places)])  # fmt: skip
    real = layer_of("ROIPooling", [tensor("x", x.shape, "float32"), tensor("b", boxes.shape, "float32")], "float32", {}, [got.shape])  # fmt: skip
    (want,) = evaluate(real, [maps, places])
    # a pixel beside the right one where the place lies near its edge
    assert np.mean(np.abs(got / 127 - want) > 0.01) < 0.1
    assert np.abs(got / 127 - want).max() < 0.4


def pyramid(
    source: np.random.Generator, dtype: str, normalised: bool, mode: str
) -> tuple[Layer, list[Array], list[Array]]:
    """(a layer, its inputs in integers, and as real numbers)."""
    sizes = (24, 12, 6, 3)
    scales = (120.0, 100.0, 110.0, 115.0) if dtype.endswith("8") else (9000.0, 8000.0, 7000.0, 8500.0)
    zeros = (0, 3, -2, 0)
    maps = [Tensor(f"m{n}", (1, n, n + 1, 36), dtype, s, z) for n, s, z in zip(sizes, scales, zeros, strict=True)]
    real = [np.abs(smooth(1, n, n + 1, 36)) for n in sizes]
    boxes = Tensor("boxes", (1, 9, 4), "int16", 27000.0 if normalised else 30.0)
    corner = source.uniform(-0.05, 0.5, (1, 9, 2))
    side = np.geomspace(0.02, 0.5, 9).reshape(1, 9, 1) * source.uniform(0.8, 1, (1, 9, 2))
    places = np.concatenate([corner, corner + side], -1)
    places[0, -1] = places[0, -1][[2, 3, 0, 1]]
    places = (places * (1 if normalised else 768)).astype("f4")
    spatial, out = (
        [1 / 32, 1 / 64, 1 / 128, 1 / 256],
        Tensor("y", (9, 2, 3, 36), dtype, 0.8 * scales[0], 0 if dtype.startswith("u") else 2),
    )
    given: dict[str, Any] = {
        "resize_height": 2,
        "resize_width": 3,
        "sample": [2, 2],
        "proposal_normalized": normalised,
        "spatial_scale_value": spatial,
        "coordinate_transformation_mode": mode,
    }
    many = 1 if normalised else 4
    results = [numbers(s * many / out.scalar_scale, 15) for s in scales]
    given |= {key: [r[key] for r in results] for key in ("scale_value", "shift_value")}
    if normalised:
        given |= {f"input_{k[:5]}": v for k, v in numbers(boxes.scalar_scale, 15).items()}
    else:
        levels = [numbers(boxes.scalar_scale / (s * 2.0**10), 15) for s in spatial]
        given |= {f"input_{k[:5]}": [v[k] for v in levels] for k in levels[0]} | {"spatial_shift": 10}
    layer = Layer("l", "PyramidROIAlign", [boxes, *maps], [out], given)
    return layer, [to_raw(t, v) for t, v in zip(layer.inputs, (places, *real), strict=True)], [places, *real]


def as_many_points_as_pixels(layer: Layer) -> Layer:
    shift = [s - 2 for s in layer.integers("shift_value")]
    return replace(layer, attributes={**layer.attributes, "sample": [0], "shift_value": shift})


@pytest.mark.parametrize(
    ("dtype", "normalised"), [("int8", True), ("uint16", True), ("int16", False), ("uint8", False)]
)
def test_pyramids_in_integers(tmp_path, source, dtype, normalised):
    mode = "half_pixel" if dtype.startswith("u") else "output_half_pixel"
    layer, raw, real = pyramid(source, dtype, normalised, mode)
    same(layer, raw, tmp_path)
    if dtype == "int16":
        same(as_many_points_as_pixels(layer), raw, tmp_path)
    # the largest and smallest numbers, which are limited
    same(layer, [raw[0], *(drawn(source, t) for t in layer.inputs[1:])], tmp_path)
    floats = [tensor(t.name, t.shape, "float32") for t in layer.inputs]
    kept = {k: v for k, v in layer.attributes.items() if k.split("_")[0] not in ("scale", "shift", "input")}
    (want,) = evaluate(layer_of("PyramidROIAlign", floats, "float32", kept, [layer.output.shape]), real)
    (got,) = evaluate(layer, raw)
    y = layer.output
    off = np.abs((got.astype("f8") + y.scalar_zero) / y.scalar_scale - want)
    assert want.max() > 0.5 and np.mean(off > (0.03 if dtype.endswith("8") else 0.005)) < 0.01


def test_means_of_points_follow_the_floats(source):
    fixed, raw, real = pyramid(source, "int16", False, "half_pixel")
    fixed = as_many_points_as_pixels(fixed)
    floats = [tensor(t.name, t.shape, "float32") for t in fixed.inputs]
    kept = {k: v for k, v in fixed.attributes.items() if k.split("_")[0] not in ("scale", "shift", "input")}
    (want,) = evaluate(layer_of("PyramidROIAlign", floats, "float32", kept, [fixed.output.shape]), real)
    (got,) = evaluate(fixed, raw)
    off = np.abs((got.astype("f8") + fixed.output.scalar_zero) / fixed.output.scalar_scale - want)
    assert want.max() > 0.5 and np.mean(off > 0.005) < 0.05


def test_contradictions_are_refused(source):
    layer, _raw, _real = pyramid(source, "int8", True, "half_pixel")
    x, boxes, index = (
        Tensor("x", (1, 4, 4, 8), "int8"),
        Tensor("boxes", (2, 4), "int16", 127.0),
        tensor("i", (2,), "int32"),
    )
    y = Tensor("y", (2, 2, 2, 8), "int8")
    crop = {"crop_size": [2, 2], "scale_value": 1, "shift_value": 15}
    alone = {k: v for k, v in layer.attributes.items() if not k.startswith("input")}
    cases = [
        (Layer("l", "CropAndResize", [x, boxes, index], [y], crop), "has the scale 127, but its multiplier 1 and shift 15"),
        (Layer("l", "CropAndResize", [x, boxes, index], [Tensor("y", y.shape, "int8", 2.0)], crop), "the layer keeps them"),
        (Layer("l", "CropAndResize", [x, boxes, index], [y], crop | {"shift_value": 7, "extrapolation_value": 400}),
         "'extrapolation_value' is 400"),
        (Layer("l", "PyramidROIAlign", layer.inputs, layer.outputs, alone), "'box_input_qvalue' 15 stands for 32768"),
        (Layer("l", "PyramidROIAlign", layer.inputs, layer.outputs, layer.attributes | {"scale_value": 5, "shift_value": 2}),
         "'scale_value' is 5 for all of them"),
        (Layer("l", "PyramidROIAlign", layer.inputs, layer.outputs, layer.attributes | {"levels": [5, 3, 9]}), "ascending"),
    ]  # fmt: skip
    for case, words in cases:
        values = [np.zeros(t.shape, t.dtype) for t in case.inputs]
        for use in (lambda case=case: kernel_of([case]), lambda case=case, values=values: evaluate(case, values)):
            with pytest.raises(LayerError, match=words):
                use()

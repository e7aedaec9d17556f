"""Layers that sample regions of maps: kernels give what the references give, and these what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, Tensor
from compassc.layers.declare import evaluate
from tests.choosing import some
from tests.layers.cases import drawn, layer_of, same, tensor

NEAR = {"float32": 5e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(11)


def regions(source: np.random.Generator, many: int, images: int, size: float) -> np.ndarray:
    """Rows (image, y0, x0, y1, x1), some beyond the map, some of no size."""
    start = source.uniform(-0.3 * size, size, (many, 2))
    end = start + source.uniform(-0.1 * size, size, (many, 2))
    end[0] = start[0]
    image = source.integers(0, images, (many, 1)).astype(float)
    image[-1] = images
    return np.concatenate([image, start, end], 1)


ALIGNED: list[dict[str, Any]] = [
    {"method": method, "coordinate_transformation_mode": mode, "sample": sample}
    for method in ("AVG", "MAX")
    for mode in ("half_pixel", "output_half_pixel")
    for sample in ([2, 2], [0], [1, 3])
]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_float_regions(tmp_path, source, dtype):
    for n, given in some(enumerate(ALIGNED[::2] if dtype == "float32" else ALIGNED[1::7])):
        x = tensor("x", ((2, 7, 5, 3), (1, 6, 9, 40))[n % 2], dtype)
        rois = tensor("rois", (6, 5), dtype)
        attributes = {"pooled_shape": [3, 2], "spatial_scale_value": [0.5, 0.25], **given}
        layer = layer_of("RoiAlign", [x, rois], dtype, attributes, [(6, 3, 2, x.shape[3])])
        values = [drawn(source, x), regions(source, 6, x.shape[0], 20).astype(drawn(source, rois).dtype)]
        same(layer, values, tmp_path, NEAR[dtype])


@pytest.mark.parametrize("method", ["AVG", "MAX"])
def test_regions_far_larger_than_their_map_have_an_end(tmp_path, source, method):
    x = tensor("x", (1, 5, 6, 2), "float32")
    given = {"pooled_shape": [1, 1], "method": method, "sample": [0], "coordinate_transformation_mode": "half_pixel"}
    layer = layer_of("RoiAlign", [x, tensor("r", (2, 5), "float32")], "float32", given, [(2, 1, 1, 2)])
    rois = np.asarray([[0, 0, 0, 3e38, 3e9], [0, 0, -500, 5, 1e5]], "float32")
    same(layer, [drawn(source, x), rois], tmp_path, NEAR["float32"])


def test_a_region_of_whole_pixels_is_their_mean():
    x = tensor("x", (1, 6, 6, 2), "float32")
    values = np.arange(72, dtype="float32").reshape(x.shape)
    given = {"pooled_shape": [2, 2], "sample": [2, 2], "coordinate_transformation_mode": "half_pixel"}
    layer = layer_of("RoiAlign", [x, tensor("r", (1, 5), "float32")], "float32", given, [(1, 2, 2, 2)])
    (found,) = evaluate(layer, [values, np.asarray([[0, 1, 2, 5, 6]], "float32")])
    cells = values[:, 1:5, 2:6].reshape(2, 2, 2, 2, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(found[0], cells, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_quantised_regions(tmp_path, source, dtype):
    # with as many points as a cell has pixels, too
    forms = [g for g in ALIGNED if g["sample"] == [2, 2]][::-3] + [ALIGNED[1 if dtype == "uint8" else 10]]
    for n, given in some(enumerate(forms)):
        shape = ((1, 7, 5, 3), (2, 6, 9, 35))[n % 2]
        x = Tensor("x", shape, dtype, 4.0, 0 if dtype == "int16" else 5)
        rois = Tensor("rois", (6, 5), "int16", 16.0)
        attributes = {
            "pooled_shape": [3, 2],
            "spatial_scale_value": [512, 256],
            "scale_value": [128, 128],
            "shift_value": [9, 11],
            "bin_scale_value": [2731, 2048],
            "bin_shift_value": [13, 12],
            "grid_scale_value": [2048, 2048],
            "grid_shift_value": [13, 13],
            **given,
        }
        layer = layer_of("RoiAlign", [x, rois], dtype, attributes, [(6, 3, 2, shape[3])], 5)
        values = np.rint(regions(source, 6, shape[0], 20) * 16).astype("int16")
        same(layer, [drawn(source, x), values], tmp_path)


@pytest.mark.parametrize("sample", [[2, 2], [0]])
def test_fixed_regions_are_near_the_real_ones(source, sample):
    """A quantised layer with the numbers a quantiser derives follows the float layer."""
    x, rois = Tensor("x", (1, 9, 9, 4), "int8", 32.0), Tensor("r", (5, 5), "int16", 64.0)
    given = {"pooled_shape": [2, 2], "sample": sample, "coordinate_transformation_mode": "half_pixel"}
    fixed = {
        "spatial_scale_value": [512, 512],
        "scale_value": [16384, 16384],
        "shift_value": [16 if sample[0] else 14, 20],
        "bin_scale_value": [16384, 16384],
        "bin_shift_value": [15, 15],
        "grid_scale_value": [16384, 16384],
        "grid_shift_value": [16, 16],
    }
    values = source.integers(-128, 128, x.shape).astype("int8")
    places = np.concatenate([np.zeros((5, 1)), np.sort(source.integers(0, 17, (5, 2, 2)), 1).reshape(5, 4)], 1)
    quantised = Layer("q", "RoiAlign", [x, rois], [Tensor("y", (5, 2, 2, 4), "int8", 32.0)], given | fixed)
    real = Layer(
        "f",
        "RoiAlign",
        [tensor("x", x.shape, "float32"), tensor("r", (5, 5), "float32")],
        [tensor("y", (5, 2, 2, 4), "float32")],
        given | {"spatial_scale_value": [0.5, 0.5]},
    )
    (got,) = evaluate(quantised, [values, (places * 64).astype("int16")])
    (want,) = evaluate(real, [values.astype("float32"), places.astype("float32")])
    assert np.abs(got - want).max() <= 1.5


@pytest.mark.parametrize("dtype", ["float32", "uint16"])
def test_maxima_of_regions(tmp_path, source, dtype):
    floats = dtype.startswith("float")
    for shape in ((2, 7, 5, 3), (1, 6, 9, 40)):
        x = Tensor("x", shape, dtype, 1.0, 0 if floats else 7)
        rois = Tensor("rois", (6, 5), dtype if floats else "int16", 1.0 if floats else 16.0)
        spatial = [0.5, 0.25] if floats else [2048, 1024]
        attributes = {"pooled_shape": [3, 2], "spatial": spatial}
        layer = layer_of("MaxRoiPool", [x, rois], dtype, attributes, [(6, 3, 2, shape[3])], 7)
        places = regions(source, 6, shape[0], 20)
        values = places.astype(dtype) if floats else np.rint(places * 16).astype("int16")
        same(layer, [drawn(source, x), values], tmp_path)


@pytest.mark.parametrize("dtype", ["float32"])
def test_crops(tmp_path, source, dtype):
    for shape, size, method in (
        ((2, 7, 5, 3), (3, 4), "BILINEAR"),
        ((2, 6, 9, 40), (1, 3), "NEAREST"),
        ((2, 6, 9, 33), (2, 1), "BILINEAR"),
    ):
        x, boxes, index = tensor("x", shape, dtype), tensor("boxes", (5, 4), dtype), tensor("index", (5,), "int32")
        given = {"crop_size": list(size), "method": method, "extrapolation_value": 0.5}
        layer = layer_of("CropAndResize", [x, boxes, index], dtype, given, [(5, *size, shape[3])])
        places = source.uniform(-0.1, 1.1, (5, 4)).astype(drawn(source, boxes).dtype)
        places[0] = [0, 0, 1, 1]
        same(layer, [drawn(source, x), places, np.asarray([0, 1, 1, 0, 2], "int32")], tmp_path, NEAR[dtype])
        pooled = layer_of("ROIPooling", [x, boxes], dtype, {}, [(5, *size, shape[3])])
        same(
            pooled,
            [drawn(source, x), np.sort(places.astype("f4").reshape(5, 2, 2), 1).reshape(5, 4).astype(places.dtype)],
            tmp_path,
        )


@pytest.mark.parametrize("normalised", [True, False])
def test_pyramids(tmp_path, source, normalised):
    for dtype, mode in (("float32", "half_pixel"), ("float16", "output_half_pixel")):
        maps = [tensor(f"m{n}", (1, n, n + 1, 36), dtype) for n in (24, 12, 6, 3)]
        boxes = tensor("boxes", (1, 9, 4), dtype)
        given = {
            "resize_height": 2,
            "resize_width": 3,
            "sample": [2, 2],
            "proposal_normalized": normalised,
            "spatial_scale_value": [1 / 32, 1 / 64, 1 / 128, 1 / 256],
            "coordinate_transformation_mode": mode,
        }
        layer = layer_of("PyramidROIAlign", [boxes, *maps], dtype, given, [(9, 2, 3, 36)])
        corner = source.uniform(0, 0.5, (1, 9, 2))
        side = np.geomspace(0.02, 0.5, 9).reshape(1, 9, 1) * source.uniform(0.8, 1, (1, 9, 2))
        places = np.concatenate([corner, corner + side], -1) * (1 if normalised else 768)
        values = [places.astype(dtype), *(drawn(source, m) for m in maps)]
        same(layer, values, tmp_path, NEAR[dtype])

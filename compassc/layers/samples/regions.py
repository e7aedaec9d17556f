"""Small layers of regions for pages and tests."""

from __future__ import annotations

from typing import Any

from compassc.graph import Layer, Tensor
from compassc.layers.samples.draw import Draw, sample

ALIGN = {
    "bin_scale_value": [2731, 2048],
    "bin_shift_value": [13, 12],
    "grid_scale_value": [2048, 2048],
    "grid_shift_value": [13, 13],
}


@sample("RoiAlign", "MaxRoiPool")
def _rois(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    name = draw.tensor((1,), x.dtype).name
    if x.is_integer:
        rois = Tensor(name, (3, 5), "int16", 16.0, limits=(0, 15 if x.shape[0] == 1 else 100))
    else:
        rois = Tensor(name, (3, 5), x.dtype)
    given: dict[str, Any] = {"pooled_shape": [3, 2], "spatial": [5000, 6000] if x.is_integer else [0.5, 0.25]}
    if kind == "RoiAlign":
        given = {
            "pooled_shape": [3, 2],
            "sample": [2, 2],
            "method": draw.choice(("AVG", "MAX")),
            "coordinate_transformation_mode": draw.choice(("half_pixel", "output_half_pixel")),
            "spatial_scale_value": [512, 700] if x.is_integer else [0.5, 0.75],
        }
        given |= {**ALIGN, "scale_value": [128, 128], "shift_value": [9, 9]} if x.is_integer else {}
    return Layer(draw.name, kind, (x, rois), (draw.like(x, (3, 3, 2, x.shape[3])),), given)


@sample("CropAndResize", "ROIPooling")
def _crops(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or x.is_integer:
        return None
    boxes = Tensor(draw.tensor((1,), x.dtype).name, (2, 4), x.dtype)
    index = Tensor(draw.tensor((1,), "int32").name, (2,), "int32", limits=(0, x.shape[0] - 1))
    given = {"crop_size": [3, 5], "method": draw.choice(("BILINEAR", "NEAREST")), "extrapolation_value": 0.5}
    inputs = (x, boxes, index) if kind == "CropAndResize" else (x, boxes)
    return Layer(draw.name, kind, inputs, (draw.like(x, (2, 3, 5, x.shape[3])),), given)


@sample("PyramidROIAlign")
def _pyramid(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if x.is_integer or len(x.shape) != 4 or x.shape[0] != 1:
        return None
    channels = x.shape[3]
    smaller = [Tensor(draw.tensor((1,), x.dtype).name, (1, s, s, channels), x.dtype) for s in (6, 4, 2)]
    boxes = Tensor(draw.tensor((1,), x.dtype).name, (1, 3, 4), x.dtype)
    given = {
        "resize_height": 2,
        "resize_width": 3,
        "sample": [2],
        "proposal_normalized": draw.choice((True, False)),
        "spatial_scale_value": [0.25, 0.125, 0.0625, 0.03125],
    }
    return Layer(draw.name, kind, (boxes, x, *smaller), (draw.like(x, (3, 2, 3, channels)),), given)

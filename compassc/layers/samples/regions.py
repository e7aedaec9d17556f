"""Small layers of regions for pages and tests."""

from __future__ import annotations

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
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
    given: dict[str, Value] = {"pooled_shape": [3, 2], "spatial": [5000, 6000] if x.is_integer else [0.5, 0.25]}
    if kind == "RoiAlign":
        given = {
            "pooled_shape": [3, 2],
            "sample": draw.choice(([2, 2], [0])),
            "method": draw.choice(("AVG", "MAX")),
            "coordinate_transformation_mode": draw.choice(("half_pixel", "output_half_pixel")),
            "spatial_scale_value": [512, 700] if x.is_integer else [0.5, 0.75],
        }
        given |= {**ALIGN, "scale_value": [128, 128], "shift_value": [9, 9]} if x.is_integer else {}
    return Layer(draw.name, kind, (x, rois), (draw.like(x, (3, 3, 2, x.shape[3])),), given)


@sample("CropAndResize", "ROIPooling")
def _crops(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    boxes = Tensor(draw.tensor((1,), x.dtype).name, (2, 4), x.dtype)
    index = Tensor(draw.tensor((1,), "int32").name, (2,), "int32", limits=(0, x.shape[0] - 1))
    given = {"crop_size": [3, 5], "method": draw.choice(("BILINEAR", "NEAREST")), "extrapolation_value": 0.5}
    if x.is_integer:
        boxes = _parts(draw, (2, 4))
        given |= {"extrapolation_value": 7, "scale_value": 1 << (15 - BOX_BITS), "shift_value": 15}
    inputs = (x, boxes, index) if kind == "CropAndResize" else (x, boxes)
    return Layer(draw.name, kind, inputs, (draw.like(x, (2, 3, 5, x.shape[3])),), given)


BOX_BITS = 12


def _parts(draw: Draw, shape: tuple[int, ...]) -> Tensor:
    """Boxes in parts of the image, some of them beyond it."""
    name, zero = draw.tensor((1,), "int16").name, draw.choice((0, 100))
    return Tensor(name, shape, "int16", float(1 << BOX_BITS), zero, limits=(-300, (1 << BOX_BITS) + 100))


@sample("PyramidROIAlign")
def _pyramid(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4 or x.shape[0] != 1:
        return None
    channels, normalised = x.shape[3], draw.choice((True, False))
    smaller = [(1, s, s, channels) for s in (6, 4, 2)]
    given: dict[str, Value] = {
        "resize_height": 2,
        "resize_width": 3,
        "sample": [2],
        "proposal_normalized": normalised,
        "spatial_scale_value": [0.25, 0.125, 0.0625, 0.03125],
    }
    out = draw.like(x, (3, 2, 3, channels))
    if not x.is_integer:
        maps = [Tensor(draw.tensor((1,), x.dtype).name, s, x.dtype) for s in smaller]
        boxes = Tensor(draw.tensor((1,), x.dtype).name, (1, 3, 4), x.dtype)
        return Layer(draw.name, kind, (boxes, x, *maps), (out,), given)
    maps = [draw.tensor(s, x.dtype) for s in smaller]
    given |= {"scale_value": [draw.integer(16384, 32767) for _ in range(4)], "shift_value": [15, 15, 16, 15]}
    if normalised:
        return Layer(draw.name, kind, (_parts(draw, (1, 3, 4)), x, *maps), (out,), given)
    boxes = Tensor(draw.tensor((1,), "int16").name, (1, 3, 4), "int16", 8.0, limits=(-100, 8000))
    given |= {"input_scale": [32768, 32768, 32768, 32768], "input_shift": [12, 13, 14, 15], "spatial_shift": 6}
    given["shift_value"] = [17, 17, 18, 17]
    return Layer(draw.name, kind, (boxes, x, *maps), (out,), given)

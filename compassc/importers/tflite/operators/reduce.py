"""Sums, means and extremes along axes, and resizing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.interpolation import Resizing
from compassc.importers.onnx.operators.elementwise import cast
from compassc.importers.onnx.operators.indexing import cumulated, place_of_extreme
from compassc.importers.onnx.operators.reduce import reduction
from compassc.importers.onnx.operators.sizes import resize as onnx_resize
from compassc.importers.tflite.convert import Conversion
from compassc.importers.tflite.declare import Constant, moves, operator, refuse
from compassc.importers.tflite.operators.movement import FIRST, LAST, whole
from compassc.importers.values import Refused, Value

METHODS = {"MEAN": "MEAN", "SUM": "SUM", "REDUCE_PROD": "PROD", "REDUCE_MAX": "MAX", "REDUCE_MIN": "MIN"}
TRUTHS = {"REDUCE_ANY": "MAX", "REDUCE_ALL": "MIN"}


def _along(b: Building, x: Value, axes: Sequence[int], method: str, keep: bool) -> Value:
    chosen = sorted({x.axis(a) for a in axes})
    made = reduction(b, x, method, chosen)
    return made if keep else b.squeeze(made, chosen)


def _declare(name: str, method: str) -> None:
    @operator(name)
    def handler(b: Building, x: Value, axes: Constant, *, keep_dims: bool = False) -> Value:
        return _along(b, x, whole(axes), method, keep_dims)


for _name, _method in METHODS.items():
    _declare(_name, _method)
for _name, _method in TRUTHS.items():
    _declare(_name, _method)
moves("REDUCE_MAX", "REDUCE_MIN")


@operator("ARG_MAX", "ARG_MIN")
def arg_extreme(b: Conversion, x: Value, axis: Constant, *, output_type: int = 0) -> Value:
    at = x.axis(whole(axis)[0])
    assert b.node is not None
    found = place_of_extreme(b, x, b.node.operator[4:], at)
    return cast(b, b.squeeze(found, [at]), b.output_types[0])


@operator("CUMSUM")
def cumsum(b: Building, x: Value, axis: Constant, *, exclusive: bool = False, reverse: bool = False) -> Value:
    return cumulated(b, x, "SUM", whole(axis)[0], exclusive, reverse)


# -- sizes of images


@operator("RESIZE_BILINEAR")
def resize_bilinear(
    b: Building, x: Value, size: Constant, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Value:
    return _resized(b, x, whole(size), "linear", _places(align_corners, half_pixel_centers, "half_pixel"), "floor")


@operator("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(
    b: Building, x: Value, size: Constant, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Value:
    places = _places(align_corners, half_pixel_centers, "tf_half_pixel_for_nn")
    return _resized(b, x, whole(size), "nearest", places, "round_prefer_ceil" if align_corners else "floor")


moves("RESIZE_NEAREST_NEIGHBOR")


def _places(corners: bool, half: bool, half_name: str) -> str:
    if corners and half:
        raise Refused("it has both align_corners and half_pixel_centers")
    return "align_corners" if corners else half_name if half else "asymmetric"


def _resized(b: Building, x: Value, size: Sequence[int], mode: str, places: str, nearest: str) -> Value:
    if x.rank != 4 or len(size) != 2 or min(size) < 1:
        raise Refused(f"an input {list(x.shape)} is not resized to {list(size)}")
    sizes = np.asarray([x.shape[0], x.shape[3], *size])
    asked = Resizing(mode, coordinate_transformation_mode=places, nearest_mode=nearest)
    made = onnx_resize(b, b.transpose(x, FIRST), sizes=sizes, asked=asked)
    return b.transpose(made, LAST)


refuse("its body is run by the host", "CALL")
refuse("it is random", "RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL")
refuse("tables of words are kept on the host", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE")
refuse(
    "boxes are chosen on the host: import up to its inputs (`--output-tensor`), and run it behind the network",
    "TFLite_Detection_PostProcess",
)

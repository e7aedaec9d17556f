"""Images in another size, and images sampled at computed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator, refuse
from compassc.importers.onnx.operators.indexing import gather
from compassc.importers.onnx.operators.interpolation import Axis, nearest_of, resized_axes, weights_of
from compassc.importers.onnx.operators.linear import fully_connected
from compassc.importers.values import Refused, Value, channels_last

LAYER_MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
)


@operator("Resize")
def resize(
    b: Building,
    x: Value,
    roi: Constant | None = None,
    scales: Constant | None = None,
    sizes: Constant | None = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Value:
    """Images by the layer, whatever else along one axis after the other."""
    mode = "linear" if mode == "bilinear" else mode
    resized = resized_axes(x, roi, scales, sizes, axes, coordinate_transformation_mode, keep_aspect_ratio_policy)
    cubic = {"coefficient": cubic_coeff_a, "exclude_outside": bool(exclude_outside), "antialias": bool(antialias)}
    if mode != "nearest" and not x.is_float:
        raise Refused("whole numbers are resized by the nearest element only")
    if _is_layer(x, resized, mode, antialias, coordinate_transformation_mode):
        return _layer(b, x, resized, mode, nearest_mode)
    return _by_axes(b, x, resized, mode, nearest_mode, cubic, extrapolation_value)


def _is_layer(x: Value, axes: dict[int, Axis], mode: str, antialias: int, transform: str) -> bool:
    image = x.rank == 4 and not set(axes) - {2, 3} and not antialias and transform in LAYER_MODES
    if not image or mode == "cubic":
        return False
    # between the elements the layer and ONNX differ where the last position reaches past a size that is cut off
    return mode == "nearest" or all(abs(a.size * a.factor - a.result) < 1e-4 for a in axes.values())


def _layer(b: Building, x: Value, axes: dict[int, Axis], mode: str, nearest_mode: str) -> Value:
    tensor = b.image(x)
    full = [axes.get(a, Axis(x.shape[a], x.shape[a], 1.0)) for a in (2, 3)]
    shape = (x.shape[0], full[0].result, full[1].result, x.shape[1])
    transform = next(iter(axes.values())).transform if axes else "half_pixel"
    made = b.layer(
        "Resize",
        [tensor],
        shape,
        tensor.dtype,
        method="NEAREST" if mode == "nearest" else "BILINEAR",
        ratio_x=full[1].factor,
        ratio_y=full[0].factor,
        mode=transform.upper(),
        nearest_mode=nearest_mode.upper() if mode == "nearest" else None,
        antialias=False,
        exclude_outside=False,
    )
    return b.value(made, x.dtype, channels_last(4))


def _by_axes(
    b: Building, x: Value, axes: dict[int, Axis], mode: str, nearest_mode: str, cubic: dict[str, Any], outside: float
) -> Value:
    """Along each axis by itself: a choice of elements, or a product with a matrix."""
    for axis, spec in axes.items():
        if mode == "nearest" and not spec.crops:
            b.room(spec.result)
            x = gather(b, x, Value.of(nearest_of(spec, nearest_mode).astype(np.int32)), axis=axis)
            continue
        b.room(spec.result + spec.size, spec.size)
        b.room(spec.result, 4 * int(np.ceil(max(1.0, 1 / spec.factor))))  # the elements that each result is made of
        matrix, beyond = weights_of(spec, mode, nearest_mode, cubic, outside)
        perm = [a for a in range(x.rank) if a != axis] + [axis]
        moved = fully_connected(b, b.transpose(x, perm), matrix.astype(x.dtype), beyond.astype(x.dtype))
        x = b.transpose(moved, list(np.argsort(perm)))
    return x


refuse(
    "how many results it gives follows from the values: import up to its inputs (`--output-tensor`), and run it behind the "
    "network",
    "NonMaxSuppression",
)

"""Images in another size, and images sampled at computed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator, refuse
from compassc.importers.onnx.operators.indexing import gather
from compassc.importers.onnx.operators.interpolation import Axis, matrix_of, nearest_of, places_of
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


@operator("Upsample", since=7)
def upsample_attributes(b: Building, x: Value, *, scales: Sequence[float], mode: str = "nearest") -> Value:
    return upsample(b, x, np.asarray(scales, np.float32), mode=mode)


@operator("Upsample", since=9)
def upsample(b: Building, x: Value, scales: Constant, *, mode: str = "nearest") -> Value:
    return resize_10(b, x, scales, mode="linear" if mode == "bilinear" else mode)


@operator("Resize", since=10)
def resize_10(b: Building, x: Value, scales: Constant, *, mode: str = "nearest") -> Value:
    return resize(
        b, x, None, scales, None, mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )


@operator("Resize", since=11)
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
    listed = [x.axis(a) for a in (range(x.rank) if axes is None else axes)]
    given = scales is not None and scales.size > 0
    if given:
        factors = [float(s) for s in np.asarray(scales)]
        wanted = [int(np.floor(x.shape[a] * f)) for a, f in zip(listed, factors, strict=True)]
    elif sizes is not None and sizes.size:
        wanted = [int(s) for s in sizes]
        factors = [w / x.shape[a] for a, w in zip(listed, wanted, strict=True)]
        if keep_aspect_ratio_policy != "stretch":
            factor = (min if keep_aspect_ratio_policy == "not_larger" else max)(factors)
            factors = [factor] * len(factors)
            wanted = [int(np.floor(factor * x.shape[a] + 0.5)) for a in listed]
    else:
        raise Refused("it has neither scales nor sizes")
    crops: list[tuple[float, float]] = [(0.0, 1.0)] * len(listed)
    if coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None:
        half = len(roi) // 2
        crops = [(float(roi[i]), float(roi[i + half])) for i in range(half)]
    resized = {
        a: Axis(x.shape[a], w, f, coordinate_transformation_mode, crop)
        for a, w, f, crop in zip(listed, wanted, factors, crops, strict=True)
        if w != x.shape[a] or f != 1 or crop != (0.0, 1.0)
    }
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
        matrix = matrix_of(spec, mode, nearest_mode, **cubic)
        away = _outside(spec)
        matrix[away] = 0
        perm = [a for a in range(x.rank) if a != axis] + [axis]
        moved = fully_connected(b, b.transpose(x, perm), matrix.astype(x.dtype), (away * outside).astype(x.dtype))
        x = b.transpose(moved, list(np.argsort(perm)))
    return x


def _outside(spec: Axis) -> Any:
    """Which positions are outside the image: for crops, where they get the extrapolation value."""
    if not spec.crops:
        return np.zeros(spec.result, bool)
    at = places_of(spec)
    return (at < 0) | (at > spec.size - 1)


refuse(
    "how many results it gives follows from the values: import up to its inputs (`--output-tensor`), and run it behind the "
    "network",
    "NonMaxSuppression",
)

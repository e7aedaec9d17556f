"""Resizing along one axis as ONNX defines it: the places of the results, and the weights of the elements there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from compass_core.arrays import Array
from compassc.importers.values import ModelTensor, Refused


class Axis(NamedTuple):
    """One axis that is resized. `crop`: the part of the image that is (tf_crop_and_resize)."""

    size: int
    result: int
    factor: float
    transform: str = "half_pixel"
    crop: tuple[float, float] = (0.0, 1.0)

    @property
    def crops(self) -> bool:
        return self.transform == "tf_crop_and_resize"


def _symmetric(a: Axis, i: Array) -> Array:
    adjust = a.result / (a.factor * a.size)
    return a.size / 2 * (1 - adjust) + (i + 0.5) / a.factor - 0.5


def _cropped(a: Axis, i: Array) -> Array:
    start, end = a.crop
    if a.result > 1:
        return start * (a.size - 1) + i * (end - start) * (a.size - 1) / (a.result - 1)
    return np.full_like(i, 0.5 * (start + end) * (a.size - 1))


TRANSFORMS: dict[str, Callable[[Axis, Array], Array]] = {
    "half_pixel": lambda a, i: (i + 0.5) / a.factor - 0.5,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda a, i: (i + 0.5) / a.factor - 0.5 if a.factor * a.size > 1 else i * 0,
    "align_corners": lambda a, i: i * (a.size - 1) / (a.size * a.factor - 1) if a.size * a.factor > 1 else i * 0,
    "asymmetric": lambda a, i: i / a.factor,
    "tf_half_pixel_for_nn": lambda a, i: (i + 0.5) / a.factor,
    "tf_crop_and_resize": _cropped,
}


def places_of(axis: Axis) -> Array:
    """The coordinate of each result in the input."""
    if axis.transform not in TRANSFORMS:
        raise Refused(f"its coordinate_transformation_mode is {axis.transform}, which is not known")
    return np.asarray(TRANSFORMS[axis.transform](axis, np.arange(axis.result, dtype=np.float64)))


ROUNDED: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def nearest_of(axis: Axis, mode: str) -> Array:
    """The element of each result."""
    if mode not in ROUNDED:
        raise Refused(f"its nearest_mode is {mode}, which is not known")
    return np.clip(ROUNDED[mode](places_of(axis)), 0, axis.size - 1).astype(np.int64)


def _linear(x: Array) -> Array:
    return np.maximum(0, 1 - np.abs(x))


def _cubic(x: Array, a: float) -> Array:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def matrix_of(
    axis: Axis, mode: str, nearest_mode: str, coefficient: float, exclude_outside: bool, antialias: bool
) -> Array:
    """Weights [results, elements]. Elements outside count as the nearest one, or not at all."""
    if mode == "nearest":
        return np.eye(axis.size)[nearest_of(axis, nearest_mode)]
    at = places_of(axis)
    stretch = max(1.0, 1 / axis.factor) if antialias else 1.0
    reach = int(np.ceil((2 if mode == "cubic" else 1) * stretch))
    first = np.floor(at).astype(np.int64) - reach + 1
    cells = first[:, None] + np.arange(2 * reach)
    distance = (cells - at[:, None]) / stretch
    weights: Any = _cubic(distance, coefficient) if mode == "cubic" else _linear(distance)
    inside = (cells >= 0) & (cells < axis.size)
    if exclude_outside:
        weights = np.where(inside, weights, 0)
    weights = weights / weights.sum(1, keepdims=True)
    matrix = np.zeros((axis.result, axis.size))
    rows = np.broadcast_to(np.arange(axis.result)[:, None], cells.shape)
    np.add.at(matrix, (rows, np.clip(cells, 0, axis.size - 1)), weights)
    return matrix


def weights_of(
    axis: Axis, mode: str, nearest_mode: str, cubic: Mapping[str, Any], outside: float
) -> tuple[Array, Array]:
    """Weights [results, elements], and what is added to each result: for crops `outside`, where it lies outside the image."""
    matrix = matrix_of(axis, mode, nearest_mode, **cubic)
    if not axis.crops:
        return matrix, np.zeros(axis.result)
    at = places_of(axis)
    away = (at < 0) | (at > axis.size - 1)
    matrix[away] = 0
    return matrix, away * outside


def resized_axes(
    x: ModelTensor,
    roi: Array | None,
    scales: Array | None,
    sizes: Array | None,
    axes: Sequence[int] | None,
    transform: str,
    policy: str,
) -> dict[int, Axis]:
    """The axes that a Resize changes. Refused where their extents are open, or nothing says the new ones."""
    listed = [x.axis(a) for a in (range(x.rank) if axes is None else axes)]
    given = scales is not None and scales.size > 0
    if any(not isinstance(x.shape[a], int) for a in listed) and not _leaves_open(x, listed, scales):
        raise Refused("the size of its image is only known at run time")
    own = [x.shape[a] if isinstance(x.shape[a], int) else 1 for a in listed]
    if given:
        factors = [float(s) for s in np.asarray(scales)]
        wanted = [int(np.floor(size * f)) for size, f in zip(own, factors, strict=True)]
    elif sizes is not None and sizes.size:
        wanted = [int(s) for s in sizes]
        factors = [w / size for size, w in zip(own, wanted, strict=True)]
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            factors = [factor] * len(factors)
            wanted = [int(np.floor(factor * size + 0.5)) for size in own]
    else:
        raise Refused("it has neither scales nor sizes")
    crops: list[tuple[float, float]] = [(0.0, 1.0)] * len(listed)
    if transform == "tf_crop_and_resize" and roi is not None:
        half = len(roi) // 2
        crops = [(float(roi[i]), float(roi[i + half])) for i in range(half)]
    return {
        a: Axis(size, w, f, transform, crop)
        for a, size, w, f, crop in zip(listed, own, wanted, factors, crops, strict=True)
        if w != size or f != 1 or crop != (0.0, 1.0)
    }


def _leaves_open(x: ModelTensor, axes: Sequence[int], scales: Array | None) -> bool:
    """Whether axes of open extents stay as they are, such as that of batches."""
    return (
        scales is not None
        and scales.size > 0
        and all(isinstance(x.shape[a], int) or s == 1 for a, s in zip(axes, scales, strict=True))
    )

"""Resizing along one axis as ONNX defines it: the places of the results, and the weights of the elements there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.importers.onnx.maker import Making, Tensor
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
    found: Array = np.maximum(0, 1 - np.abs(x))
    return found


def _cubic(x: Array, a: float) -> Array:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


class Resizing(NamedTuple):
    """What a node says of a Resize."""

    mode: str = "nearest"
    coordinate_transformation_mode: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: int = 0
    extrapolation_value: float = 0.0
    antialias: int = 0
    axes: Sequence[int] | None = None
    keep_aspect_ratio_policy: str = "stretch"

    @property
    def kind(self) -> str:
        """nearest, linear or cubic."""
        found = {"bilinear": "linear"}.get(self.mode, self.mode)
        if found not in ("nearest", "linear", "cubic"):
            raise Refused(f"its mode is {self.mode}, which is not known")
        return found

    def changed(self, x: ModelTensor, roi: Array | None, scales: Array | None, sizes: Array | None) -> dict[int, Axis]:
        """The axes that change. Refused where their extents are open, nothing says the new ones, or whole numbers would be weighted."""
        if self.kind != "nearest" and x.dtype.kind in "iub":
            raise Refused("whole numbers are resized by the nearest element only")
        listed = [x.axis(a) for a in (range(x.rank) if self.axes is None else self.axes)]
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
            if self.keep_aspect_ratio_policy != "stretch":
                factor = (min if self.keep_aspect_ratio_policy == "not_larger" else max)(factors)
                factors = [factor] * len(factors)
                wanted = [int(np.floor(factor * size + 0.5)) for size in own]
        else:
            raise Refused("it has neither scales nor sizes")
        crops: list[tuple[float, float]] = [(0.0, 1.0)] * len(listed)
        if self.coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None:
            half = len(roi) // 2
            crops = [(float(roi[i]), float(roi[i + half])) for i in range(half)]
        return {
            a: Axis(size, w, f, self.coordinate_transformation_mode, crop)
            for a, size, w, f, crop in zip(listed, own, wanted, factors, crops, strict=True)
            if w != size or f != 1 or crop != (0.0, 1.0)
        }

    def weights(self, axis: Axis) -> tuple[Array, Array]:
        """Weights [results, elements], and what is added to each result: for crops the extrapolated value where it lies outside."""
        matrix = self._matrix(axis)
        if not axis.crops:
            return matrix, np.zeros(axis.result)
        at = places_of(axis)
        away = (at < 0) | (at > axis.size - 1)
        matrix[away] = 0
        return matrix, away * self.extrapolation_value

    def _matrix(self, axis: Axis) -> Array:
        """Weights [results, elements]. Elements outside count as the nearest one, or not at all."""
        if self.kind == "nearest":
            return np.eye(axis.size)[nearest_of(axis, self.nearest_mode)]
        at = places_of(axis)
        stretch = max(1.0, 1 / axis.factor) if self.antialias else 1.0
        reach = int(np.ceil((2 if self.kind == "cubic" else 1) * stretch))
        first = np.floor(at).astype(np.int64) - reach + 1
        cells = first[:, None] + np.arange(2 * reach)
        distance = (cells - at[:, None]) / stretch
        weights = _cubic(distance, self.cubic_coeff_a) if self.kind == "cubic" else _linear(distance)
        inside = (cells >= 0) & (cells < axis.size)
        if self.exclude_outside:
            weights = np.where(inside, weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
        matrix = np.zeros((axis.result, axis.size))
        rows = np.broadcast_to(np.arange(axis.result)[:, None], cells.shape)
        np.add.at(matrix, (rows, np.clip(cells, 0, axis.size - 1)), weights)
        return matrix


def _leaves_open(x: ModelTensor, axes: Sequence[int], scales: Array | None) -> bool:
    """Whether axes of open extents stay as they are, such as that of batches."""
    return (
        scales is not None
        and scales.size > 0
        and all(isinstance(x.shape[a], int) or s == 1 for a, s in zip(axes, scales, strict=True))
    )


def is_whole(axes: Mapping[int, Axis]) -> bool:
    """Whether the new extents are the old ones times their factors, without what is cut off."""
    return all(abs(a.size * a.factor - a.result) < 1e-4 for a in axes.values())


def by_axes(b: Making[Tensor], x: Tensor, axes: Mapping[int, Axis], asked: Resizing) -> Tensor:
    """Along each axis by itself: a choice of elements, or a product with a matrix."""
    for axis, spec in axes.items():
        if asked.kind == "nearest" and not spec.crops:
            b.room(spec.result)
            places = nearest_of(spec, asked.nearest_mode).astype(np.int32)
            x = b.made("take", x, b.known(places), axis=axis)
            continue
        b.room(spec.result + spec.size, spec.size)
        b.room(spec.result, 4 * int(np.ceil(max(1.0, 1 / spec.factor))))  # the elements that each result is made of
        matrix, beyond = asked.weights(spec)
        perm = [a for a in range(x.rank) if a != axis] + [axis]
        made = b.made("dense", b.transpose(x, perm), b.known(matrix.astype(x.dtype)))
        if beyond.any():
            made = b.made("add", made, b.known(beyond.astype(x.dtype)))
        x = b.transpose(made, [perm.index(a) for a in range(x.rank)])
    return x

"""Images and volumes sampled at computed coordinates, and the grids of these."""

from __future__ import annotations

from functools import reduce

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import arithmetic, unary
from compassc.importers.onnx.operators.linear import multiply
from compassc.importers.values import Refused, Value, channels_last, stored_type

METHODS = {"linear": "BILINEAR", "bilinear": "BILINEAR", "nearest": "NEAREST"}
CUBIC = -0.75
"""The coefficient of cubic interpolation."""


@operator("GridSample", since=16)
def grid_sample(
    b: Building, x: Value, grid: Value, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0
) -> Value:
    """Reflection at the border is done to the coordinates. Cubic interpolation sums nearest elements of images."""
    if x.rank not in (4, 5) or grid.rank != x.rank or grid.shape[-1] != x.rank - 2:
        raise Refused(f"{list(x.shape)} and {list(grid.shape)} are no images or volumes and their coordinates")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise Refused(f"its padding_mode is {padding_mode}, which is not known")
    if mode in ("cubic", "bicubic"):
        if x.rank != 4:
            raise Refused("cubic interpolation is supported for images only")
        return _cubic(b, x, grid, padding_mode, bool(align_corners))
    if mode not in METHODS:
        raise Refused(f"its mode is {mode}, which is not known")
    if padding_mode == "reflection":
        sizes, corners = x.shape[:1:-1], bool(align_corners)
        places = [_reflected(b, _place(b, grid, i, s, corners), s, corners) for i, s in enumerate(sizes)]
        grid, padding_mode = _grid(b, places, sizes, corners), "border"
    return _layer(b, x, grid, METHODS[mode], padding_mode, bool(align_corners))


def _layer(b: Building, x: Value, grid: Value, method: str, padding: str, corners: bool) -> Value:
    shape = (x.shape[0], *grid.shape[1:-1], x.shape[1])
    tensors = [b.image(x), b.laid(grid)]
    made = b.layer(
        "GridSample",
        tensors,
        shape,
        stored_type(x.dtype),
        method=method,
        padding_mode=padding.upper(),
        align_corners=corners,
    )
    return b.value(made, x.dtype, channels_last(x.rank))


def _number(b: Building, x: Value, name: str, number: float) -> Value:
    return arithmetic(b, x, Value.of(np.full(1, number, x.dtype)), name)


def _place(b: Building, grid: Value, index: int, size: int, corners: bool) -> Value:
    """A coordinate in elements, [N, ..., 1]: -1 to 1 goes from border to border, or between the outer elements."""
    own = b.sliced(grid, [index], [index + 1], [1], [grid.rank - 1])
    span = size - 1 if corners else size
    return _number(b, _number(b, own, "Mul", span / 2), "Add", (size - 1) / 2)


def _grid(b: Building, places: list[Value], sizes: tuple[int, ...], corners: bool) -> Value:
    """Coordinates in elements as a grid."""
    made = []
    for place, size in zip(places, sizes, strict=True):
        span = max(size - 1 if corners else size, 1)
        made.append(_number(b, _number(b, place, "Sub", (size - 1) / 2), "Mul", 2 / span))
    return b.concat(*made, axis=places[0].rank - 1)


def _reflected(b: Building, place: Value, size: int, corners: bool) -> Value:
    """A coordinate reflected at the borders until it lies between them."""
    low, span = (0.0, float(size - 1)) if corners else (-0.5, float(size))
    if span == 0:
        return _number(b, place, "Mul", 0.0)
    from_low = _number(b, place, "Sub", low)
    periods = unary(b, _number(b, from_low, "Mul", 1 / (2 * span)), "Floor")
    rest = arithmetic(b, from_low, _number(b, periods, "Mul", 2 * span), "Sub")
    distance = unary(b, _number(b, rest, "Sub", span), "Abs")
    inside = _number(b, _number(b, distance, "Mul", -1.0), "Add", span + low)
    return unary(b, inside, "Activation", method="CLIP", clip_min=0.0, clip_max=float(size - 1))


def _cubic(b: Building, x: Value, grid: Value, padding: str, corners: bool) -> Value:
    sizes = x.shape[:1:-1]
    places = [_place(b, grid, i, size, corners) for i, size in enumerate(sizes)]
    whole = [unary(b, p, "Floor") for p in places]
    weights = [_weights(b, arithmetic(b, p, w, "Sub")) for p, w in zip(places, whole, strict=True)]
    steps = [
        [_step(b, w, d, size, padding, corners) for d in (-1, 0, 1, 2)] for w, size in zip(whole, sizes, strict=True)
    ]
    outside = "border" if padding == "reflection" else padding
    rows = []
    for row, of_row in zip(steps[1], weights[1], strict=True):
        terms = []
        for column, of_column in zip(steps[0], weights[0], strict=True):
            pixels = _layer(b, x, _grid(b, [column, row], sizes, corners), "NEAREST", outside, corners)
            terms.append(arithmetic(b, b.transpose(pixels, (0, 2, 3, 1)), of_column, "Mul"))
        rows.append(arithmetic(b, _sum(b, terms), of_row, "Mul"))
    return b.transpose(_sum(b, rows), (0, 3, 1, 2))


def _step(b: Building, whole: Value, distance: int, size: int, padding: str, corners: bool) -> Value:
    """A neighbour's coordinate."""
    place = _number(b, whole, "Add", float(distance))
    return _reflected(b, place, size, corners) if padding == "reflection" else place


def _sum(b: Building, terms: list[Value]) -> Value:
    return reduce(lambda one, other: arithmetic(b, one, other, "Add"), terms)


def _weights(b: Building, part: Value) -> list[Value]:
    """The weights of the neighbours at -1, 0, 1 and 2, for the part that lies behind the element at 0."""
    far = [_polynomial(b, part, d, (CUBIC, -5 * CUBIC, 8 * CUBIC, -4 * CUBIC)) for d in (-1, 2)]
    near = [_polynomial(b, part, d, (CUBIC + 2, -(CUBIC + 3), 0.0, 1.0)) for d in (0, 1)]
    return [far[0], near[0], near[1], far[1]]


def _polynomial(b: Building, part: Value, place: int, factors: tuple[float, ...]) -> Value:
    """A cubic polynomial of the distance from the element at `place`, highest power first."""
    distance = _number(b, part, "Sub", float(place))
    if place > 0:
        distance = _number(b, distance, "Mul", -1.0)
    made = _number(b, _number(b, distance, "Mul", factors[0]), "Add", factors[1])
    for factor in factors[2:]:
        made = _number(b, arithmetic(b, made, distance, "Mul"), "Add", factor)
    return made


@operator("AffineGrid", since=20)
def affine_grid(b: Building, theta: Value, size: Constant, *, align_corners: int = 0) -> Value:
    """A product of the grid of the whole image, which is known, with the map."""
    dims = [int(d) for d in size][2:]
    b.room(*dims, len(dims) + 1)
    lines = [np.linspace(-1, 1, d) if align_corners else (2 * np.arange(d) + 1) / d - 1 for d in dims]
    grids = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*reversed(grids), np.ones_like(grids[0])], -1).reshape(-1, len(dims) + 1)
    moved = multiply(b, Value.of(points[None].astype(theta.dtype)), b.transpose(theta, (0, 2, 1)))
    return b.reshape(moved, (theta.shape[0], *dims, len(dims)))

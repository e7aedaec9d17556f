"""Samples of layers that address elements by values, and of moves that are seldom seen."""

from __future__ import annotations

from compassc.graph import Layer, Tensor
from compassc.graph.values import Value
from compassc.layers.samples.draw import Draw, layer_of, sample


@sample("GridSample")
def _grid(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, _, _, c = x.shape
    grid = draw.plain((n, 3, 2, 2), "int16" if x.is_integer else x.dtype)
    given: dict[str, Value] = {
        "method": draw.choice(("BILINEAR", "NEAREST")),
        "padding_mode": draw.choice(("ZEROS", "BORDER")),
    }
    if x.is_integer:
        given |= {
            "coordinate_x_shift": 10,
            "coordinate_y_shift": 11,
            "scale_value": [25000, 31000],
            "shift_value": [17, 18],
        }
    return layer_of(draw, kind, [x, grid], draw.like(x, (n, 3, 2, c)), None, **given)


@sample("BatchToDepth", "BatchToSpace", "BatchToSpaceND", "SpaceToBatch", "DataStride")
def _blocks(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    if kind == "DataStride":
        if h < 2 or w < 2:
            return None
        shape = (n, (h - 1) * 2, (w - 1) * 2, c)
        return layer_of(draw, kind, [x], draw.like(x, shape), None, kernel_x=2, kernel_y=2, stride_x=1, stride_y=1)
    if kind == "SpaceToBatch":
        if h % 2 or w % 2:
            return None
        shape = (4 * n, h // 2, w // 2, c)
        return layer_of(draw, kind, [x], draw.like(x, shape), None, block_size_x=2, block_size_y=2)
    if n % 4:
        x = draw.plain((4, h, w, c), x.dtype)
    if kind == "BatchToDepth":
        return layer_of(draw, kind, [x], draw.like(x, (1, h, w, 4 * c)), None, block_size=4)
    given: dict[str, Value] = {"block_size_x": 2, "block_size_y": 2}
    given = given if kind == "BatchToSpace" else {"block_size": [1, 2, 2], "crops": [[0, 0], [0, 0], [0, 0]]}
    return layer_of(draw, kind, [x], draw.like(x, (x.shape[0] // 4, 2 * h, 2 * w, c)), None, **given)


@sample("Filter", "Repeat")
def _rows(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if not x.shape:
        return None
    axis = draw.integer(0, len(x.shape) - 1)
    if kind == "Filter":
        selector = draw.plain((x.shape[axis],), "uint8")
        outputs = [draw.like(x), draw.plain((1,), "uint16")]
        return layer_of(draw, kind, [x, selector], outputs, None, axis=axis, num=1)
    counts = draw.indices((x.shape[axis],), 3)
    shape = tuple(2 * n if i == axis else n for i, n in enumerate(x.shape))
    return layer_of(draw, kind, [x, counts], draw.like(x, shape), None, axis=axis)


@sample("Unsqueeze")
def _longer(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if len(x.shape) > 5:
        return None
    axis = draw.integer(0, len(x.shape))
    return layer_of(draw, kind, [x], draw.like(x, (*x.shape[:axis], 1, *x.shape[axis:])), None, axis=[axis])


@sample("Meshgrid", "Shape")
def _shapes(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    if kind == "Shape":
        return layer_of(draw, kind, [x], draw.plain((len(x.shape),), "int32"), None)
    if len(x.shape) != 1 or x.is_integer:
        return None
    other = draw.other(x, (3,))
    return layer_of(draw, kind, [x, other], [draw.like(x, (3, x.shape[0])) for _ in range(2)], None, indexing="xy")

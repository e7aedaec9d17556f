"""Operators of pictures: parts of them in another size, morphology, grids of places, correlation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.exprs import Expr as Element
from compassc.operators.calls import References
from compassc.operators.declare import sample
from compassc.relay import layouts
from compassc.relay.attributes import Attrs
from compassc.relay.ops.convolution import both_ends, exact
from compassc.relay.ops.convolution import several as each
from compassc.relay.ops.declare import ANCHOR, INJECTIVE, VOID, NoExpression, declare, record
from compassc.relay.ops.indexing import whole
from compassc.relay.ops.relations import differ, of, require, shaped
from compassc.relay.ops.resizing import cubic, in_plain
from compassc.relay.ops.shapes import extents
from compassc.relay.types import Dim, TensorType, Type
from compassc.te.tensor import Tensor


def plain_picture(layout: str, x: TensorType) -> list[Dim]:
    """The shape as NCHW."""
    require(
        layouts.convertible(layout, "NCHW"), lambda: f"pictures have layouts that are convertible to NCHW, not {layout}"
    )
    require(len(x.shape) == len(layouts.layout(layout)), lambda: f"{x} has no layout {layout}")
    return layouts.converted(x.shape, layout, "NCHW")


# --------------------------------------------------------------------------------------------------------- crop_and_resize


def _cropped(a: Attrs, x: TensorType, boxes: TensorType, indices: TensorType) -> Type:
    _, c, _, _ = plain_picture(a.layout, x)
    require(len(boxes.shape) == 2 and not differ(boxes.shape[1], 4), lambda: f"boxes are n by 4, not {boxes}")
    require(len(indices.shape) == 1 and not differ(indices.shape[0], boxes.shape[0]), lambda: f"boxes {boxes} need one index each, not {indices}")  # fmt: skip
    whole(indices, "the indices of boxes")
    require(
        a.method in ("bilinear", "nearest_neighbor"),
        lambda: f"method is bilinear or nearest_neighbor, not '{a.method}'",
    )
    require(a.crop_size is not None and len(a.crop_size) == 2, lambda: f"crop_size has two numbers, not {a.crop_size}")
    made = layouts.converted([boxes.shape[0], c, *a.crop_size], "NCHW", a.layout)
    return shaped(x, made, a.out_dtype)


def _crop(a: Attrs, x: Array, boxes: Array, indices: Array) -> Array:
    """Parts of NCHW in one size."""
    made = np.full((len(boxes), x.shape[1], *a.crop_size), float(a.extrapolation_value))
    for n, (box, index) in enumerate(zip(boxes.astype("float64"), indices)):
        ends = []
        for low, high, old, new in zip(box[:2], box[2:], x.shape[2:], a.crop_size):
            step = (high - low) * (old - 1) / (new - 1) if new > 1 else 0.0
            ends.append((low if new > 1 else 0.5 * (low + high)) * (old - 1) + step * np.arange(new))
        inside = [(v >= 0) & (v <= old - 1) for v, old in zip(ends, x.shape[2:])]
        for y, z in itertools.product(np.flatnonzero(inside[0]), np.flatnonzero(inside[1])):
            at = ends[0][y], ends[1][z]
            if a.method == "nearest_neighbor":
                i, j = (int(np.floor(v + 0.5)) for v in at)
                made[n, :, y, z] = x[index, :, i, j]
            else:
                made[n, :, y, z] = sum(
                    x[index, :, i, j] * (1 - abs(at[0] - i)) * (1 - abs(at[1] - j))
                    for i in {int(np.floor(at[0])), int(np.ceil(at[0]))}
                    for j in {int(np.floor(at[1])), int(np.ceil(at[1]))}
                )
    return made


declare(
    "image.crop_and_resize", 'data, boxes, box_indices, crop_size, layout, method="bilinear", extrapolation_value=0, out_dtype=None',
    _cropped, INJECTIVE,
    sample((2, 3, 5, 6), np.array([[0.1, 0.2, 0.8, 0.9], [0.0, -0.5, 1.0, 0.5]], "float32"), np.array([1, 0], "int32"), crop_size=[3, 4]),
    record=record("CropAndResizeAttrs", crop_size=None, layout="NCHW", method="bilinear", extrapolation_value=0.0, out_dtype=VOID),
    reference=lambda a, t, x, b, i: in_plain(References(), a.layout, x, 2, lambda y: _crop(a, y, b, i)), level=5,
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- dilation2d


def _morphed(a: Attrs, x: TensorType, w: TensorType) -> Type:
    n, c, *space = plain_picture(a.data_layout, x)
    require(layouts.convertible(a.kernel_layout, "IHW") and len(w.shape) == 3, lambda: f"the kernel {w} has no layout {a.kernel_layout}, which must be IHW or HWI")  # fmt: skip
    channels, *window = layouts.converted(w.shape, a.kernel_layout, "IHW")
    require(not differ(c, channels), lambda: f"{c} channels of {x} do not match the kernel {w}")
    pads = both_ends(a.padding, 2)
    for d in range(2):
        s, l, p = a.strides[d], a.dilations[d], pads[d] + pads[d + 2]
        space[d] = of(lambda m, k: (m + p - (k - 1) * l - 1) // s + 1, space[d], window[d])  # noqa: B023
    return shaped(x, layouts.converted([n, c, *space], "NCHW", a.data_layout), a.out_dtype)


def _morph(a: Attrs, x: Array, w: Array) -> Array:
    w = layouts.transform(References(), exact(w), w.shape, a.kernel_layout, "IHW")
    top, left, bottom, right = both_ends(a.padding, 2)
    least = np.finfo(x.dtype).min if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    wide = np.pad(exact(x), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=least)
    (sy, sx), (ly, lx), (kh, kw) = a.strides, a.dilations, w.shape[1:]
    oh, ow = ((m - (k - 1) * l - 1) // s + 1 for m, k, l, s in zip(wide.shape[2:], (kh, kw), (ly, lx), (sy, sx)))
    parts = [
        wide[:, :, i * ly : i * ly + (oh - 1) * sy + 1 : sy, j * lx : j * lx + (ow - 1) * sx + 1 : sx] + w[:, i, j, None, None]
        for i in range(kh) for j in range(kw)
    ]  # fmt: skip
    made: Array = np.max(parts, 0)
    return made


declare(
    "image.dilation2d",
    'data, weight, strides=(1, 1), padding=(0, 0), dilations=(1, 1), data_layout="NCHW", kernel_layout="IHW", out_dtype=""', _morphed,
    ANCHOR, sample((1, 2, 5, 6), (2, 3, 2), strides=[1, 2], padding=[1, 0], dilations=[1, 2]),
    record=record("Dilation2DAttrs", strides=(1, 1), padding=(0, 0), dilations=(1, 1), data_layout="NCHW", kernel_layout="IHW", out_dtype=VOID),
    prepare=lambda v: v.update(strides=each(v["strides"], 2), dilations=each(v["dilations"], 2), padding=both_ends(v["padding"], 2)),
    reference=lambda a, t, x, w: in_plain(References(), a.data_layout, x, 2, lambda y: _morph(a, y, w)), level=2,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------- grids


def _grid(a: Attrs, x: TensorType) -> Type:
    fits = len(x.shape) == 3 and not differ(x.shape[1], 2) and not differ(x.shape[2], 3)
    require(fits, lambda: f"the data must be n by 2 by 3, it is {x}")
    require(len(a.target_shape) == 2, lambda: f"target_shape has two numbers, not {a.target_shape}")
    return shaped(x, [x.shape[0], 2, *a.target_shape])


def _affine(a: Attrs, t: TensorType, theta: Array) -> Array:
    h, w = a.target_shape
    ends = [np.linspace(-1, 1, n) for n in (h, w)]
    y, x = np.meshgrid(*ends, indexing="ij")
    places = np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
    return (theta.astype("float64") @ places).reshape(len(theta), 2, h, w)


declare("image.affine_grid", "data, target_shape=None", _grid, INJECTIVE, sample((2, 2, 3), target_shape=[3, 4]),
        record=record("AffineGridAttrs", target_shape=...), reference=_affine, level=5)  # fmt: skip


def _sampled(a: Attrs, x: TensorType, grid: TensorType) -> Type:
    rank = len(x.shape) - 2
    require(rank in (2, 3) and len(grid.shape) == rank + 2, lambda: f"the data {x} does not go with the grid {grid}")
    require(
        a.layout == "NC" + {2: "HW", 3: "DHW"}[rank], lambda: f"the layout {a.layout} does not go with the data {x}"
    )
    require(not differ(grid.shape[1], rank), lambda: f"the grid {grid} needs {rank} numbers for each place of {x}")
    require(not differ(grid.shape[0], x.shape[0]), lambda: f"the data {x} and the grid {grid} have different batches")
    require(
        a.method in ("nearest", "bilinear", "bicubic"),
        lambda: f"method is nearest, bilinear or bicubic, not '{a.method}'",
    )
    require(a.padding_mode in ("zeros", "border", "reflection"), lambda: f"padding_mode is zeros, border or reflection, not '{a.padding_mode}'")  # fmt: skip
    return shaped(x, [*x.shape[:2], *grid.shape[2:]])


def _reflected(v: Array, low: float, high: float) -> Array:
    span = high - low
    if span == 0:
        return v * 0
    away = np.abs(v - low) % (2 * span)
    return low + np.where(away > span, 2 * span - away, away)


def _place(v: Array, extent: int, a: Attrs) -> Array:
    """Places by the way that places outside are treated."""
    if a.padding_mode == "reflection":
        v = _reflected(v, *((0, extent - 1) if a.align_corners else (-0.5, extent - 0.5)))
    return v if a.padding_mode == "zeros" else np.clip(v, 0, extent - 1)


def _element(picture: Array, places: Sequence[Array]) -> Array:
    """The elements (C, ...) at whole places; 0 outside."""
    inside = np.ones(places[0].shape, bool)
    for p, extent in zip(places, picture.shape[1:]):
        inside &= (p >= 0) & (p < extent)
    clipped = [np.clip(p, 0, extent - 1).astype(int) for p, extent in zip(places, picture.shape[1:])]
    at: tuple[slice | Array, ...] = (slice(None), *clipped)
    return np.where(inside, picture[at], 0)


def _sample_grid(a: Attrs, t: TensorType, x: Array, grid: Array) -> Array:
    made: list[Array] = []
    space = x.shape[2:]
    for picture, coordinates in zip(x.astype("float64"), grid.astype("float64")):
        whole = [
            ((g + 1) * (n - 1) / 2 if a.align_corners else ((g + 1) * n - 1) / 2)
            for g, n in zip(coordinates[::-1], space)
        ]
        if a.method == "bicubic":
            made.append(_cubic_sample(a, picture, whole))
            continue
        at = [_place(v, n, a) for v, n in zip(whole, space)]
        if a.method == "nearest":
            made.append(_element(picture, [np.rint(v) for v in at]))
            continue
        total = np.zeros(())
        for corner in itertools.product((0, 1), repeat=len(space)):
            weight = np.prod([(v - np.floor(v)) if up else 1 - (v - np.floor(v)) for up, v in zip(corner, at)], axis=0)
            total = total + weight * _element(picture, [np.floor(v) + up for up, v in zip(corner, at)])
        made.append(total)
    return np.stack(made)


def _cubic_sample(a: Attrs, picture: Array, at: Sequence[Array]) -> Array:
    weights = [cubic(v - np.floor(v), -0.75) for v in at]
    total = np.zeros(())
    for corner in itertools.product(range(4), repeat=len(at)):
        places = [_place(np.floor(v) + n - 1, extent, a) for v, n, extent in zip(at, corner, picture.shape[1:])]
        weight = np.prod([w[n] for w, n in zip(weights, corner)], axis=0)
        total = total + weight * _element(picture, [np.rint(p) for p in places])
    return total


def _sample_value(a: Attrs, t: TensorType, x: Tensor, grid: Tensor) -> Tensor:
    if a.method == "bicubic" or a.padding_mode == "reflection":
        raise NoExpression(f"grid_sample by {a.method} and {a.padding_mode}")
    space = extents(x)[2:]
    rank, one, half = len(space), te.const(1.0, "float32"), te.const(0.5, "float32")

    def at(b: Element, i: Sequence[Element], d: int) -> Element:
        """The place on an axis: the last number of the grid is that of the first axis."""
        g, extent = te.cast(grid[(b, rank - 1 - d, *i)], "float32"), space[d]
        whole = (
            (g + one) * te.const(extent - 1, "float32")
            if a.align_corners
            else (g + one) * te.const(extent, "float32") - one
        )
        place = whole * half
        return (
            place
            if a.padding_mode == "zeros"
            else te.max(te.min(place, te.const(extent - 1, "float32")), te.const(0.0, "float32"))
        )

    def element(b: Element, k: Element, *i: Element) -> Element:
        places = [at(b, i, d) for d in range(rank)]

        def own(corner: Sequence[Element]) -> Element:
            whole = [te.cast(v, "int32") for v in corner]
            inside = te.all(*(t for v, m in zip(whole, space) for t in (v >= 0, v < m)))
            index = [te.max(te.min(v, m - 1), 0) for v, m in zip(whole, space)]
            return te.if_then_else(inside, te.cast(x[(b, k, *index)], "float32"), te.const(0.0, "float32"))

        if a.method == "nearest":
            return te.cast(own([te.nearbyint(v) for v in places]), t.dtype)
        total: Element | None = None
        for corner in itertools.product((0, 1), repeat=rank):
            weight = one
            for up, v in zip(corner, places):
                weight = weight * ((v - te.floor(v)) if up else one - (v - te.floor(v)))
            part = weight * own([te.floor(v) + te.const(float(up), "float32") for up, v in zip(corner, places)])
            total = part if total is None else total + part
        return te.cast(total, t.dtype)

    made: Tensor = te.compute(list(t.concrete_shape), element, name="T_grid_sample", tag="injective")
    return made


declare(
    "image.grid_sample", 'data, grid, method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True', _sampled, INJECTIVE,
    sample((1, 2, 4, 5), (1, 2, 3, 3), low=-1.2, high=1.2), sample((1, 2, 4, 5), (1, 2, 3, 3), low=-1.2, high=1.2, padding_mode="border", align_corners=False),
    sample((1, 1, 3, 4, 5), (1, 3, 2, 2, 2), low=-1.2, high=1.2, layout="NCDHW"),
    record=record("GridSampleAttrs", method="bilinear", layout="NCHW", padding_mode="zeros", align_corners=True), reference=_sample_grid, compute=_sample_value,
    level=5,
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- correlation


def _correlated(a: Attrs, x: TensorType, y: TensorType) -> Type:
    require(a.layout == "NCHW" and len(x.shape) == 4, lambda: f"the data {x} must have the layout NCHW, not {a.layout}")
    require(
        len(y.shape) == 4 and not any(map(differ, x.shape, y.shape)),
        lambda: f"the data {x} and {y} have different shapes",
    )
    across = 2 * (a.max_displacement // a.stride2) + 1
    border = a.max_displacement + (a.kernel_size - 1) // 2
    pads = both_ends(a.padding, 2)
    space = [of(lambda n: -(-(n + pads[d] + pads[d + 2] - 2 * border) // a.stride1), x.shape[2 + d]) for d in range(2)]  # noqa: B023
    return shaped(x, [x.shape[0], across**2, *space])


def _correlate(a: Attrs, t: TensorType, x: Array, y: Array) -> Array:
    top, left, bottom, right = both_ends(a.padding, 2)
    x, y = (np.pad(exact(v), ((0, 0), (0, 0), (top, bottom), (left, right))) for v in (x, y))
    reach, radius = a.max_displacement // a.stride2, (a.kernel_size - 1) // 2
    border = a.max_displacement + radius
    oh, ow = (-(-(n - 2 * border) // a.stride1) for n in x.shape[2:])
    made = np.zeros((x.shape[0], (2 * reach + 1) ** 2, oh, ow))
    moves = list(itertools.product(range(-reach, reach + 1), repeat=2))
    for (n, (dy, dx)), i, j in itertools.product(enumerate(moves), range(oh), range(ow)):
        p, q = i * a.stride1 + a.max_displacement, j * a.stride1 + a.max_displacement
        u, v, k = p + dy * a.stride2, q + dx * a.stride2, a.kernel_size
        one, two = x[:, :, p : p + k, q : q + k], y[:, :, u : u + k, v : v + k]
        made[:, n, i, j] = (one * two if a.is_multiply else np.abs(one - two)).sum((1, 2, 3)) / (k * k * x.shape[1])
    return made


declare(
    "nn.correlation", 'data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply, layout', _correlated, ANCHOR,
    sample((1, 3, 6, 6), (1, 3, 6, 6), kernel_size=1, max_displacement=2, stride2=1, padding=[2, 2]),
    record=record("CorrelationAttrs", kernel_size=1, max_displacement=1, stride1=1, stride2=1, padding=(0, 0), is_multiply=True, layout="NCHW"),
    prepare=lambda v: v.update(padding=both_ends(v["padding"], 2)), reference=_correlate, level=2,
)  # fmt: skip

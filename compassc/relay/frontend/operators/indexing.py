"""Operators whose places, or how many results they have, are data."""

from __future__ import annotations

import numpy as np

from compassc.importers.values import Refused
from compassc.relay.frontend.terms import INDEX, Expressions, Size, Term, operator


def counted_from_front(b: Expressions, places: Term, size: Size) -> Term:
    """Places, of which those below 0 are counted from the end."""
    if places.array is not None and (places.array >= 0).all():
        return places
    end = b.of(np.asarray(size, places.dtype)) if isinstance(size, int) else b.cast(size, places.dtype)
    return b.call("where", b.call("less", places, 0), b.call("add", places, end), places)


@operator("Gather")
def gather(b: Expressions, x: Term, places: Term, *, axis: int = 0) -> Term:
    at = x.axis(axis)
    return b.call("take", x, counted_from_front(b, places, b.size(x, at)), axis=at)


@operator("GatherElements", since=11)
def gather_elements(b: Expressions, x: Term, places: Term, *, axis: int = 0) -> Term:
    at = x.axis(axis)
    for a, (own, wanted) in enumerate(zip(x.shape, places.shape, strict=True)):
        if a != at and isinstance(wanted, int) and own != wanted:
            x = b.slice(x, a, 0, wanted)
    return b.call("gather", x, axis=at, indices=counted_from_front(b, places, b.size(x, at)))


def _turned(b: Expressions, x: Term, places: Term, first: int = 0) -> Term:
    """Places of several axes with these in front, counted from the front."""
    depth = places.shape[-1]
    if not isinstance(depth, int):
        raise Refused("how many axes its places have is only known at run time")
    sizes = [b.size(x, first + i) for i in range(depth)]
    if places.array is None or (places.array < 0).any():
        end = b.cast(b.vector(sizes), places.dtype)
        places = b.call("where", b.call("less", places, 0), b.call("add", places, end), places)
    return b.transpose(places, [places.rank - 1, *range(places.rank - 1)])


@operator("GatherND", since=11)
def gather_nd(b: Expressions, x: Term, places: Term, *, batch_dims: int = 0) -> Term:
    return b.call("gather_nd", x, _turned(b, x, places, batch_dims), batch_dims=batch_dims, index_rank=places.shape[-1])


REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@operator("ScatterElements")
def scatter_elements(
    b: Expressions, x: Term, places: Term, values: Term, *, axis: int = 0, reduction: str = "none"
) -> Term:
    at = x.axis(axis)
    turned = counted_from_front(b, places, b.size(x, at))
    return b.call("scatter_elements", x, turned, values, axis=at, reduction=REDUCTIONS[reduction])


@operator("ScatterND", since=11)
def scatter_nd(b: Expressions, x: Term, places: Term, values: Term, *, reduction: str = "none") -> Term:
    return b.call("scatter_nd", x, _turned(b, x, places), values, mode=REDUCTIONS[reduction])


@operator("OneHot", since=9)
def one_hot(b: Expressions, places: Term, depth: Term, values: Term, *, axis: int = -1) -> Term:
    (count,) = b.listed(depth)
    off, on = (b.scalar(values, i) for i in range(2))
    whole = b.cast(places, INDEX)
    turned = counted_from_front(b, whole, count)
    size = count if isinstance(count, int) else b.cast(count, "int32")
    rank = places.rank + 1
    return b.call("one_hot", turned, on, off, depth=size, axis=axis % rank, dtype=values.kind)


@operator("TopK")
def top(b: Expressions, x: Term, count: Term, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> list[Term]:
    (k,) = b.listed(count)
    if isinstance(k, int) and k < 1:
        raise Refused(f"it asks for {k or 'no'} elements")
    return b.calls("topk", x, k=k, axis=x.axis(axis), is_ascend=not largest, dtype=INDEX)


@operator("NonZero", since=9)
def non_zero(b: Expressions, x: Term) -> Term:
    if not x.rank:
        x = b.call("reshape", x, newshape=[1])
        return b.slice(b.transpose(b.cast(b.call("argwhere", x), INDEX), [1, 0]), 0, 0, 0)
    return b.transpose(b.cast(b.call("argwhere", x), INDEX), [1, 0])


@operator("Compress", since=9)
def compress(b: Expressions, x: Term, condition: Term, *, axis: int | None = None) -> Term:
    given, at = (x, x.axis(axis)) if axis is not None else (b.call("reshape", x, newshape=[-1]), 0)
    return b.call("take", given, b.squeeze(b.call("argwhere", condition), [1]), axis=at)


@operator("Unique", since=11)
def unique(b: Expressions, x: Term, *, axis: int | None = None, sorted: int = 1) -> list[Term]:
    if axis is not None and x.rank != 1:
        raise Refused("distinct parts of an axis have no expression")
    flat = b.call("reshape", x, newshape=[-1])
    values, first, inverse, count, often = b.calls("unique", flat, is_sorted=bool(sorted), return_counts=True)

    def own(v: Term) -> Term:
        begin, step = (b.known(np.asarray([n], INDEX)) for n in (0, 1))
        return b.call("strided_slice", v, begin=begin, end=b.cast(count, INDEX), strides=step)

    return [own(values), b.cast(own(first), INDEX), b.cast(inverse, INDEX), b.cast(own(often), INDEX)]


@operator("NonMaxSuppression", since=10)
def suppress(
    b: Expressions, boxes: Term, scores: Term, most: Term | None = None, overlap: Term | None = None,
    least: Term | None = None, *, center_point_box: int = 0,
) -> Term:  # fmt: skip
    """Boxes that do not lie on better ones, as rows of batch, class and box."""
    if center_point_box:
        middle, size = b.calls("split", boxes, indices_or_sections=2, axis=2)
        half = b.call("multiply", size, 0.5)
        boxes = b.call("concatenate", [b.call("subtract", middle, half), b.call("add", middle, half)], axis=2)
    limits = [b.call("reshape", v, newshape=[]) if v is not None else None for v in (most, overlap, least)]
    many = b.cast(limits[0], "int32") if limits[0] is not None else b.of(np.asarray(0, "int32"))
    common = limits[1] if limits[1] is not None else b.of(np.asarray(0, "float32"))
    low = limits[2] if limits[2] is not None else b.of(np.asarray(-np.inf, "float32"))
    rows, count = b.calls(
        "vision.all_class_non_max_suppression", boxes, scores, max_output_boxes_per_class=many, iou_threshold=common,
        score_threshold=low,
    )  # fmt: skip
    begin, end = b.vector([0, 0]), b.call("concatenate", [count, np.asarray([3], INDEX)], axis=0)
    return b.call("strided_slice", rows, begin=begin, end=end, strides=b.vector([1, 1]))


@operator("RoiAlign")
def align(
    b: Expressions, x: Term, regions: Term, batch: Term, *, mode: str = "avg", output_height: int = 1, output_width: int = 1,
    sampling_ratio: int = 0, spatial_scale: float = 1.0, coordinate_transformation_mode: str = "half_pixel",
) -> Term:  # fmt: skip
    if mode != "avg":
        raise Refused("the largest of a region's samples has no expression")
    if coordinate_transformation_mode == "half_pixel":
        raise Refused("regions whose pixels are counted by their middles have no expression")
    rows = b.call("concatenate", [b.call("expand_dims", b.cast(batch, x.dtype), axis=1), regions], axis=1)
    return b.call(
        "vision.roi_align", x, rows, pooled_size=(output_height, output_width), spatial_scale=spatial_scale,
        sample_ratio=sampling_ratio or -1, mode=mode,
    )  # fmt: skip


@operator("TensorScatter")
def scatter_along(
    b: Expressions, x: Term, values: Term, starts: Term | None = None, *, axis: int = -2, mode: str = "linear"
) -> Term:
    """Rows of a cache replaced, from a place of each batch on."""
    at, sizes = x.axis(axis), values.shape
    if not all(isinstance(s, int) for s in (*sizes, x.shape[at])):
        raise Refused("its extents are only known at run time")
    steps = np.arange(sizes[at], dtype=INDEX).reshape(-1, *[1] * (x.rank - at - 1))
    places = b.known(steps)
    if starts is not None:
        places = b.call("add", places, b.call("reshape", starts, newshape=[-1, *[1] * (x.rank - 1)]))
    if mode == "circular":
        places = b.call("floor_mod", places, np.asarray(x.shape[at], INDEX))
    wide = b.broadcast(b.ranked(places, x.rank), list(sizes))
    return b.call("scatter_elements", x, wide, values, axis=at, reduction="update")

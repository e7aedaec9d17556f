"""Operators of object detection: anchors, boxes, suppression, regions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.operators.declare import sample
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, TupleWrapper, const
from compassc.relay.ops.convolution import bilinear
from compassc.relay.ops.convolution import several as each
from compassc.relay.ops.declare import ANCHOR, INJECTIVE, OPAQUE, Evaluate, declare, record
from compassc.relay.ops.image import plain_picture
from compassc.relay.ops.relations import differ, of, product, require, shaped
from compassc.relay.types import TensorType, TupleType, Type

# ----------------------------------------------------------------------------------------------------------------- anchors


def _anchors(a: Attrs, x: TensorType) -> Type:
    require(len(x.shape) == 4, lambda: f"the data must be NCHW, it is {x}")
    each_cell = len(a.sizes) + len(a.ratios) - 1
    return shaped(x, [1, product([*x.shape[2:], each_cell]), 4])


def _prior(a: Attrs, t: TensorType, x: Array) -> Array:
    h, w = x.shape[2:]
    steps = [s if s > 0 else 1.0 / n for s, n in zip(a.steps, (h, w))]
    kinds = [(s, 1.0) for s in a.sizes] + [(a.sizes[0], r) for r in a.ratios[1:]]
    made = np.zeros((h, w, len(kinds), 4))
    for n, (size, ratio) in enumerate(kinds):
        half = size * h / w * math.sqrt(ratio) / 2, size / math.sqrt(ratio) / 2
        cx = (np.arange(w) + a.offsets[1]) * steps[1]
        cy = (np.arange(h)[:, None] + a.offsets[0]) * steps[0]
        for m, values in enumerate((cx - half[0], cy - half[1], cx + half[0], cy + half[1])):
            made[:, :, n, m] = values
    made = made.reshape(1, -1, 4)
    return np.clip(made, 0, 1) if a.clip else made


declare(
    "vision.multibox_prior", "data, sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False", _anchors, OPAQUE,
    sample((1, 3, 2, 3), sizes=[0.5, 0.25], ratios=[1, 2], clip=True), level=5, reference=_prior,
    record=record("MultiBoxPriorAttrs", sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False),
)  # fmt: skip


def _located(a: object, scores: TensorType, offsets: TensorType, anchors: TensorType) -> Type:
    require(len(scores.shape) == 3, lambda: f"cls_prob must be batches by classes by anchors, it is {scores}")
    require(len(anchors.shape) == 3 and not differ(anchors.shape[1], scores.shape[2]), lambda: f"anchors {anchors} do not match cls_prob {scores}")  # fmt: skip
    fits = len(offsets.shape) == 2 and not differ(offsets.shape[1], of(lambda n: 4 * n, scores.shape[2]))
    require(fits, lambda: f"loc_pred {offsets} does not match cls_prob {scores}")
    return TupleType([shaped(scores, [scores.shape[0], scores.shape[2], 6]), TensorType((scores.shape[0],), "int32")])


def _locate(a: Attrs, t: TupleType, scores: Array, offsets: Array, anchors: Array) -> Sequence[Array]:
    batch, _, count = scores.shape
    made, valid = np.full((batch, count, 6), -1.0), np.zeros(batch, "int32")
    first = 0 if a.keep_background else 1
    for b in range(batch):
        for n in range(count):
            best = first + int(scores[b, first:, n].argmax())
            if scores[b, best, n] < a.threshold or best < first:
                continue
            left, top, right, bottom = anchors[0, n].astype("float64")
            w, h = right - left, bottom - top
            dx, dy, dw, dh = offsets[b, 4 * n : 4 * n + 4].astype("float64") * a.variances
            cx, cy = dx * w + (left + right) / 2, dy * h + (top + bottom) / 2
            hw, hh = math.exp(dw) * w / 2, math.exp(dh) * h / 2
            box = np.array([cx - hw, cy - hh, cx + hw, cy + hh])
            row = [best - first, scores[b, best, n], *(np.clip(box, 0, 1) if a.clip else box)]
            made[b, valid[b]] = row
            valid[b] += 1
    return made, valid


declare(
    "vision.multibox_transform_loc",
    "cls_prob, loc_pred, anchor, clip=True, threshold=0.01, variances=(0.1, 0.1, 0.2, 0.2), keep_background=False", _located, OPAQUE,
    sample((1, 3, 4), (1, 16), (1, 4, 4), low=0.0, high=1.0), results=2, level=5, reference=_locate,
    record=record("MultiBoxTransformLocAttrs", clip=True, threshold=0.01, variances=(0.1, 0.1, 0.2, 0.2), keep_background=False),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- suppression


def _counts(a: object, x: TensorType, threshold: TensorType) -> Type:
    require(len(x.shape) == 3, lambda: f"the data must be batches by boxes by numbers, it is {x}")
    batch = x.shape[0]
    return TupleType([TensorType((batch,), "int32"), x, TensorType(x.shape[:2], "int32")])


def _valid(a: Attrs, t: TupleType, x: Array, threshold: Array) -> Sequence[Array]:
    counts, made, places = np.zeros(len(x), "int32"), np.full_like(x, -1), np.full(x.shape[:2], -1, "int32")
    for b, rows in enumerate(x):
        kept = [
            n
            for n, row in enumerate(rows)
            if row[a.score_index] > threshold and (a.id_index < 0 or row[a.id_index] >= 0)
        ]
        counts[b] = len(kept)
        made[b, : len(kept)], places[b, : len(kept)] = rows[kept], kept
    return counts, made, places


declare(
    "vision.get_valid_counts", "data, threshold, score_threshold, id_index, score_index", _counts, OPAQUE,
    sample((2, 5, 6), np.array(0.1, "float32"), score_threshold=None), build=False, level=5, reference=_valid,
    record=record("GetValidCountsAttrs", score_threshold=..., id_index=0, score_index=1),
)  # fmt: skip


@builder("vision.get_valid_counts")
def get_valid_counts(data: Expr, score_threshold: object, id_index: int = 0, score_index: int = 1) -> TupleWrapper:
    """Boxes whose score is above a threshold: how many, they, and where they were."""
    threshold = score_threshold if isinstance(score_threshold, Expr) else const(score_threshold, "float32")
    made = call(
        "vision.get_valid_counts", data, threshold, score_threshold=None, id_index=id_index, score_index=score_index
    )
    return TupleWrapper(made, 3)


def overlap(one: Array, two: Array) -> float:
    """The area that two boxes have in common, over the area of both."""
    (l, t, r, b), (u, v, w, x) = (
        (min(p[0], p[2]), min(p[1], p[3]), max(p[0], p[2]), max(p[1], p[3])) for p in (one, two)
    )
    common = max(0.0, min(r, w) - max(l, u)) * max(0.0, min(b, x) - max(t, v))
    both = (r - l) * (b - t) + (w - u) * (x - v) - common
    return float(common / both) if both > 0 else 0.0


def _suppressed(a: Attrs, x: TensorType, count: TensorType, places: TensorType, *numbers: TensorType) -> Type:
    require(len(x.shape) == 3, lambda: f"the data must be batches by boxes by numbers, it is {x}")
    fits = len(count.shape) == 1 and not differ(count.shape[0], x.shape[0])
    require(fits, lambda: f"valid_count {count} does not match the data {x}")
    if a.return_indices:
        return TupleType([TensorType(x.shape[:2], "int32"), TensorType((x.shape[0], 1), "int32")])
    return x


def _suppress(
    a: Attrs, t: Type, x: Array, count: Array, places: Array, limit: Array, threshold: Array
) -> Array | Sequence[Array]:
    made, indices, kept_counts = np.full_like(x, -1), np.full(x.shape[:2], -1, "int32"), np.zeros((len(x), 1), "int32")
    most, enough = int(limit), float(threshold)
    for b, rows in enumerate(x):
        valid = int(count[b])
        if enough <= 0:
            made[b, :valid], indices[b, :valid] = rows[:valid], np.arange(valid)
            kept_counts[b] = valid
            continue
        order = np.argsort(-rows[:valid, a.score_index], kind="stable")
        order = order[: a.top_k] if a.top_k > 0 else order
        kept: list[int] = []
        for place, n in enumerate(order):
            if most > -1 and len(kept) >= most:
                break
            if a.id_index >= 0 and rows[n, a.id_index] < 0:
                continue
            if any(_meets(a, rows[n], rows[order[k]], enough) for k in kept):
                continue
            kept.append(place)
        for place in kept:
            made[b, place], indices[b, place] = rows[order[place]], order[place]
        kept_counts[b] = len(kept)
    if a.return_indices:
        return _original(indices, places), kept_counts
    return _to_front(made) if a.invalid_to_bottom else made


def _meets(a: Attrs, one: Array, two: Array, threshold: float) -> bool:
    alike = a.force_suppress or a.id_index < 0 or one[a.id_index] == two[a.id_index]
    boxes = (row[a.coord_start : a.coord_start + 4].astype("float64") for row in (one, two))
    return bool(alike) and overlap(*boxes) >= threshold


def _original(indices: Array, places: Array) -> Array:
    """The rows that are kept, one behind the other, where they were before."""
    made = np.full_like(indices, -1)
    for b, row in enumerate(indices):
        kept = row[row >= 0]
        made[b, : len(kept)] = places[b, kept]
    return made


def _to_front(x: Array) -> Array:
    made = np.full_like(x, -1)
    for b, rows in enumerate(x):
        kept = rows[~np.all(rows == -1, -1)]
        made[b, : len(kept)] = kept
    return made


_BOXES = np.array(
    [[[0, 0.9, 0, 0, 1, 1], [0, 0.8, 0, 0, 1, 0.9], [1, 0.7, 0, 0, 1, 1], [0, 0.3, 2, 2, 3, 3], [-1, 0, 0, 0, 0, 0]]],
    "float32",
)
_PLACES = np.array([[0, 1, 2, 3, -1]], "int32")
_NUMBERS = np.array([4], "int32"), _PLACES, np.array(-1, "int32"), np.array(0.5, "float32")
_FIELDS: dict[str, object] = {"force_suppress": False, "top_k": -1, "coord_start": 2, "score_index": 1, "id_index": 0, "return_indices": True, "invalid_to_bottom": False}  # fmt: skip
declare(
    "vision.non_max_suppression", "data, valid_count, indices, max_output_size, iou_threshold, " + ", ".join(_FIELDS), _suppressed, OPAQUE,
    sample(_BOXES, *_NUMBERS), sample(_BOXES, *_NUMBERS, return_indices=False, invalid_to_bottom=True), build=False, level=5, reference=_suppress,
    record=record("NonMaximumSuppressionAttrs", **_FIELDS),
)  # fmt: skip


@builder("vision.non_max_suppression")
def non_max_suppression(
    data: Expr, valid_count: Expr, indices: Expr, max_output_size: object = -1, iou_threshold: object = 0.5, force_suppress: bool = False,
    top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Expr | TupleWrapper:  # fmt: skip
    """Boxes without those that lie on a better one of their class."""
    most = max_output_size if isinstance(max_output_size, Expr) else const(max_output_size, "int32")
    enough = iou_threshold if isinstance(iou_threshold, Expr) else const(iou_threshold, "float32")
    options: dict[str, object] = {
        "force_suppress": force_suppress, "top_k": top_k, "coord_start": coord_start, "score_index": score_index, "id_index": id_index,
        "return_indices": return_indices, "invalid_to_bottom": invalid_to_bottom,
    }  # fmt: skip
    made = call("vision.non_max_suppression", data, valid_count, indices, most, enough, **options)
    return TupleWrapper(made, 2) if return_indices else made


def _kept(boxes: Array, scores: Array, most: int, threshold: float, least: float) -> list[int]:
    """The boxes of one class that are kept, the best first."""
    kept: list[int] = []
    for n in np.argsort(-scores, kind="stable"):
        if most >= 0 and len(kept) >= most or not scores[n] > least:
            break
        if all(overlap(boxes[n], boxes[k]) <= threshold for k in kept):
            kept.append(int(n))
    return kept


def _all_classes(a: Attrs, boxes: TensorType, scores: TensorType, *numbers: TensorType) -> Type:
    require(
        len(boxes.shape) == 3 and not differ(boxes.shape[2], 4),
        lambda: f"boxes must be batches by boxes by 4, not {boxes}",
    )
    fits = (
        len(scores.shape) == 3
        and not differ(scores.shape[2], boxes.shape[1])
        and not differ(scores.shape[0], boxes.shape[0])
    )
    require(fits, lambda: f"scores {scores} do not match boxes {boxes}")
    require(
        a.output_format in ("onnx", "tensorflow"),
        lambda: f"output_format is onnx or tensorflow, not '{a.output_format}'",
    )
    batch, classes, count = scores.shape
    if a.output_format == "onnx":
        return TupleType([TensorType((product(scores.shape), 3), "int64"), TensorType((1,), "int64")])
    rows = product([classes, count])
    kinds = ((batch, rows, 2), "int64"), ((batch, rows), "float32"), ((batch,), "int64")
    return TupleType([TensorType(shape, dtype) for shape, dtype in kinds])


def _every_class(
    a: Attrs, t: TupleType, boxes: Array, scores: Array, most: Array, threshold: Array, least: Array
) -> Sequence[Array]:
    batch, classes, count = scores.shape
    found = [
        (b, c, n)
        for b in range(batch) for c in range(classes)
        for n in _kept(boxes[b].astype("float64"), scores[b, c], int(most), float(threshold), float(least))
    ]  # fmt: skip
    if a.output_format == "onnx":
        made = np.zeros((batch * classes * count, 3), "int64")
        made[: len(found)] = np.array(found, "int64").reshape(-1, 3)
        return made, np.array([len(found)], "int64")
    rows, values, counts = (
        np.zeros((batch, classes * count, 2), "int64"),
        np.zeros((batch, classes * count)),
        np.zeros(batch, "int64"),
    )
    for b in range(batch):
        own = sorted(((c, n) for d, c, n in found if d == b), key=lambda p: -scores[b, p[0], p[1]])
        counts[b] = len(own)
        for k, (c, n) in enumerate(own):
            rows[b, k], values[b, k] = (c, n), scores[b, c, n]
    return rows, values, counts


_ALL = (1, 4, 4), (1, 2, 4), np.array(2, "int32"), np.array(0.5, "float32"), np.array(0.1, "float32")
declare(
    "vision.all_class_non_max_suppression", "boxes, scores, most, iou_threshold, score_threshold, output_format", _all_classes, OPAQUE,
    sample(*_ALL, low=0.0, high=1.0), sample(*_ALL, low=0.0, high=1.0, output_format="tensorflow"), build=False, level=5, reference=_every_class,
    record=record("AllClassNonMaximumSuppressionAttrs", output_format="onnx"),
)  # fmt: skip


@builder("vision.all_class_non_max_suppression")
def all_class_non_max_suppression(
    boxes: Expr, scores: Expr, max_output_boxes_per_class: object = -1, iou_threshold: object = -1.0, score_threshold: object = -1.0,
    output_format: str = "onnx",
) -> TupleWrapper:  # fmt: skip
    """For each class the boxes that do not lie on better ones."""
    numbers = [
        v if isinstance(v, Expr) else const(v, dtype)
        for v, dtype in (
            (max_output_boxes_per_class, "int32"),
            (iou_threshold, "float32"),
            (score_threshold, "float32"),
        )
    ]
    made = call("vision.all_class_non_max_suppression", boxes, scores, *numbers, output_format=output_format)
    return TupleWrapper(made, 2 if output_format == "onnx" else 3)


# ----------------------------------------------------------------------------------------------------------------- regions


def _regions(a: Attrs, x: TensorType, rois: TensorType) -> Type:
    _, c, _, _ = plain_picture(a.layout, x)
    require(len(rois.shape) == 2 and not differ(rois.shape[1], 5), lambda: f"rois are n by 5, not {rois}")
    h, w = each(a.pooled_size, 2)
    shape = [rois.shape[0], c, h, w] if a.layout == "NCHW" else [rois.shape[0], h, w, c]
    return shaped(x, shape)


def _align(a: Attrs, x: Array, rois: Array) -> Array:
    ph, pw = each(a.pooled_size, 2)
    made = np.zeros((len(rois), x.shape[1], ph, pw))
    for r, (batch, *corners) in enumerate(rois.astype("float64")):
        left, top, right, bottom = (v * a.spatial_scale for v in corners)
        bins = max(bottom - top, 1.0) / ph, max(right - left, 1.0) / pw
        counts = [a.sample_ratio if a.sample_ratio > 0 else math.ceil(b) for b in bins]
        for i, j in np.ndindex(ph, pw):
            ys = [top + (i + (n + 0.5) / counts[0]) * bins[0] for n in range(counts[0])]
            xs = [left + (j + (n + 0.5) / counts[1]) * bins[1] for n in range(counts[1])]
            values = [_sample_at(x[int(batch)].astype("float64"), y, z) for y in ys for z in xs]
            made[r, :, i, j] = np.max(values, 0) if a.mode == "max" else np.mean(values, 0)
    return made


def _sample_at(picture: Array, y: float, z: float) -> Array:
    h, w = picture.shape[1:]
    if y < -1 or y > h or z < -1 or z > w:
        return np.zeros(picture.shape[0])
    return bilinear(picture, min(max(y, 0.0), h - 1), min(max(z, 0.0), w - 1))


def _pool(a: Attrs, x: Array, rois: Array) -> Array:
    ph, pw = each(a.pooled_size, 2)
    made = np.zeros((len(rois), *x.shape[1:2], ph, pw))
    for r, (batch, *corners) in enumerate(rois.astype("float64")):
        left, top, right, bottom = (math.floor(v * a.spatial_scale + 0.5) for v in corners)
        bins = max(bottom - top + 1, 1) / ph, max(right - left + 1, 1) / pw
        for i, j in np.ndindex(ph, pw):
            spans = []
            for n, size, first, extent in zip((i, j), bins, (top, left), x.shape[2:]):
                ends = math.floor(n * size) + first, math.ceil((n + 1) * size) + first
                spans.append(slice(*(min(max(e, 0), extent) for e in ends)))
            part = x[int(batch), :, spans[0], spans[1]]
            made[r, :, i, j] = part.max((1, 2)) if part.size else 0
    return made


def _of_regions(function: Callable[[Attrs, Array, Array], Array]) -> Evaluate:
    return lambda a, t, x, rois: _in_regions(a, function(a, x if a.layout == "NCHW" else x.transpose(0, 3, 1, 2), rois))


def _in_regions(a: Attrs, made: Array) -> Array:
    return made if a.layout == "NCHW" else made.transpose(0, 2, 3, 1)


_ROIS = np.array([[0, 1, 1, 6, 7], [0, 0, 2, 3, 3]], "float32")
declare(
    "vision.roi_align", 'data, rois, pooled_size, spatial_scale, sample_ratio=-1, layout="NCHW", mode="avg"', _regions, ANCHOR,
    sample((1, 2, 8, 8), _ROIS, pooled_size=[2, 3], spatial_scale=0.5), level=5, reference=_of_regions(_align),
    record=record("ROIAlignAttrs", pooled_size=..., spatial_scale=..., sample_ratio=-1, layout="NCHW", mode="avg"),
)  # fmt: skip
declare(
    "vision.roi_pool", 'data, rois, pooled_size, spatial_scale, layout="NCHW"', _regions, ANCHOR,
    sample((1, 2, 8, 8), _ROIS, pooled_size=[2, 3], spatial_scale=0.5), level=5, reference=_of_regions(_pool),
    record=record("ROIPoolAttrs", pooled_size=..., spatial_scale=..., layout="NCHW"),
)  # fmt: skip


def _reorganised(a: Attrs, x: TensorType) -> Type:
    require(len(x.shape) == 4, lambda: f"the data must be NCHW, it is {x}")
    n, c, h, w = x.shape
    s = a.stride
    require(not any(isinstance(m, int) and m % s for m in (h, w)), lambda: f"{h} by {w} places of {x} are not made of blocks of {s}")  # fmt: skip
    return shaped(x, [n, of(lambda m: m * s * s, c), of(lambda m: m // s, h), of(lambda m: m // s, w)])


def _reorganise(a: Attrs, t: TensorType, x: Array) -> Array:
    """The order of Darknet: the channels of the data are split, then its places read as one row."""
    (n, c, h, w), s = x.shape, a.stride
    own = c // (s * s)
    made = np.zeros((n, own, h * s, w * s), x.dtype)
    for k in range(c):
        part, offset = k % own, k // own
        made[:, part, offset // s :: s, offset % s :: s] = x[:, k]
    return made.reshape(n, c * s * s, h // s, w // s)


declare("vision.yolo_reorg", "data, stride", _reorganised, INJECTIVE, sample((1, 4, 4, 6), stride=2), record=record("YoloReorgAttrs", stride=1),
        reference=_reorganise, level=5)  # fmt: skip


# -------------------------------------------------------------------------------------------------- without a reference yet


def _proposed(a: Attrs, scores: TensorType, boxes: TensorType, info: TensorType) -> Type:
    require(len(scores.shape) == 4 and len(boxes.shape) == 4, lambda: f"cls_prob and bbox_pred must be NCHW, not {scores} and {boxes}")  # fmt: skip
    return shaped(scores, [of(lambda n: n * a.rpn_post_nms_top_n, scores.shape[0]), 5])


declare(
    "vision.proposal",
    "cls_prob, bbox_pred, im_info, scales, ratios, feature_stride, threshold, rpn_pre_nms_top_n, rpn_post_nms_top_n, rpn_min_size, iou_loss",
    _proposed, OPAQUE, level=5,
    record=record("ProposalAttrs", scales=(4.0, 8.0, 16.0, 32.0), ratios=(0.5, 1.0, 2.0), feature_stride=16, threshold=0.7,
                  rpn_pre_nms_top_n=6000, rpn_post_nms_top_n=300, rpn_min_size=16, iou_loss=False),
)  # fmt: skip


def _detected(a: Attrs, boxes: TensorType, scores: TensorType) -> Type:
    batch, most = boxes.shape[0], a.max_detections
    shapes = ((batch, most, 4), "float32"), ((batch, most), "float32"), ((batch, most), "float32"), ((batch,), "int32")
    return TupleType([TensorType(shape, dtype) for shape, dtype in shapes])


def _detect(a: Attrs, t: TupleType, boxes: Array, scores: Array) -> Sequence[Array]:
    """Scores are batches by classes by boxes. The best of each class, of these the best of all."""
    batch, most = boxes.shape[0], a.max_detections
    places, classes, values = np.zeros((batch, most, 4)), np.zeros((batch, most)), np.zeros((batch, most))
    counts = np.zeros(batch, "int32")
    for b in range(batch):
        found = [
            (scores[b, c, n], c, n)
            for c in range(a.num_classes)
            for n in _kept(boxes[b].astype("float64"), scores[b, c], a.max_detections_per_class, a.iou_threshold, a.score_threshold)
        ]  # fmt: skip
        for k, (value, c, n) in enumerate(sorted(found, key=lambda f: -f[0])[:most]):
            places[b, k], classes[b, k], values[b, k] = boxes[b, n], c, value
            counts[b] += 1
    return places, classes, values, counts


declare(
    "vision.regular_non_max_suppression",
    "boxes, scores, max_detections_per_class, max_detections, num_classes, iou_threshold, score_threshold", _detected, OPAQUE, sample((1, 5, 4), (1, 2, 5), low=0.0, high=1.0, max_detections_per_class=2, max_detections=3, num_classes=2, iou_threshold=0.5, score_threshold=0.1), level=5, reference=_detect,
    record=record("RegularNonMaximumSuppressionAttrs", max_detections_per_class=..., max_detections=..., num_classes=..., iou_threshold=...,
                  score_threshold=...), results=4,
)  # fmt: skip

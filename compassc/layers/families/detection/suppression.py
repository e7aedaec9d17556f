"""Suppression of boxes that overlap better ones."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError

METHODS = ("HARD", "GAUSSIAN")


class Suppression(NamedTuple):
    """The numbers of an NMS: `areas` and `part` are shifts of quantised areas and of their product with `overlap`."""

    gaussian: bool
    overlap: float
    threshold: float
    most: int
    room: int
    sigma: float
    areas: int
    part: int
    scale: int
    shift: int
    factors: Array | None = None
    """Of a quantised GAUSSIAN suppression [2, 256]: by 255 steps of the overlap what scores are multiplied with, and how far
    the products are shifted."""


STEPS = 255
"""Steps of the overlap in the tables of a quantised GAUSSIAN suppression."""


def gaussian_factors(layer: Layer) -> Array:
    scores, found = layer.inputs[3], []
    for key, most in (("gaussian_scale_lut", 65535), ("gaussian_shift_lut", 31)):
        table = layer.constant(key).reshape(-1)
        if table.size != STEPS + 1 or table.dtype.kind not in "iu" or not 0 <= table.min() <= table.max() <= most:
            raise LayerError(
                f"'{key}' has {table.size} numbers of {table.dtype}, expected {STEPS + 1} from 0 to {most}"
            )
        found.append(table.astype(np.int64))
    high = max(abs(scores.low + scores.scalar_zero), abs(scores.high + scores.scalar_zero)) * int(found[0].max())
    if high >= 2**31:
        raise LayerError(f"'gaussian_scale_lut' holds up to {found[0].max()}: products with scores do not fit 32 bits")
    return np.stack(found)


def suppression_of(layer: Layer) -> Suppression:
    """LayerError for shapes that do not go together and forms that are not defined."""
    if len(layer.inputs) != 4 or len(layer.outputs) != 4:
        raise LayerError("it has the inputs boxes, boxes per class, classes and scores, and four outputs")
    boxes, per_class, classes, scores = (t.shape for t in layer.inputs)
    n, b, width = (*boxes, 0, 0, 0)[:3]
    if len(boxes) != 3 or width != 4 or scores != (n, b) or len(per_class) != 2 or per_class[0] != n:
        raise LayerError(f"boxes {list(boxes)}, boxes per class {list(per_class)} and scores {list(scores)} do not fit")
    if layer.inputs[2].count != n:
        raise LayerError(f"{list(classes)} numbers of classes for {n} images")
    room = layer.outputs[2].shape[-1] if layer.outputs[2].shape else 0
    want = [(n, room, 4), per_class, (n, room), (n, room)]
    if [t.shape for t in layer.outputs] != want:
        raise LayerError(
            f"the outputs are {[list(t.shape) for t in layer.outputs]}, expected {[list(w) for w in want]}"
        )
    if layer.integer("center_point_box", 0):
        raise LayerError("boxes of centres and sizes ('center_point_box') are not supported; give it corners")
    gaussian, quantised = layer.word("method", "HARD", METHODS) == "GAUSSIAN", layer.is_quantised
    low = layer.inputs[3].integer.low - 1 if quantised else -np.inf
    sigma = layer.number("soft_nms_sigma", 0.0)
    if gaussian and not quantised and not sigma > 0:
        raise LayerError(f"'soft_nms_sigma' is {sigma}, expected a positive number")
    areas, part = layer.integer("areas_shift", 13), layer.integer("iou_thresh_shift", 8)
    if not 0 <= areas < 32 or not 0 <= part < 32:
        raise LayerError(f"'areas_shift' is {areas} and 'iou_thresh_shift' {part}, expected 0 to 31")
    scale, shift = (int(v.reshape(-1)[0]) for v in layer.scale_shift(of=1))
    if quantised and not (0 <= scale < 1 << 16 and 0 <= shift < 32):
        raise LayerError(f"the scale {scale} with the shift {shift} is beyond 16 bits and 31")
    return Suppression(
        gaussian,
        _number(layer, "iou_threshold", 0.6),
        _number(layer, "score_threshold", low),
        layer.integer("max_output_size", room),
        room,
        sigma,
        areas,
        part,
        scale,
        shift,
        gaussian_factors(layer) if gaussian and quantised else None,
    )


def _number(layer: Layer, key: str, default: float) -> float:
    value = layer.attributes.get(key)
    if isinstance(value, str) and value.lower() in ("-inf", "inf"):
        return float(value)
    return layer.number(key, default)


def nms(layer: Layer, boxes: Array, per_class: Array, classes: Array, scores: Array) -> list[Array]:
    """Of boxes with equal scores the first comes first."""
    s, quantised = suppression_of(layer), layer.is_quantised
    kind: type[np.generic] = np.int64 if quantised else np.float32
    wide = boxes.astype(kind) + kind(layer.inputs[0].scalar_zero if quantised else 0)
    given, zero = scores.astype(kind), layer.inputs[3].scalar_zero if quantised else 0
    if quantised:
        # as they are lowered toward what stands for 0
        given, s = given + zero, s._replace(threshold=s.threshold + zero)
    n = len(boxes)
    found = np.zeros((n, s.room, 4), kind)
    counts, values, places = (
        np.zeros(per_class.shape, np.int64),
        np.zeros((n, s.room), kind),
        np.zeros((n, s.room), np.int64),
    )
    for i in range(n):
        first = at = 0
        for c in range(min(int(classes.reshape(-1)[i]), per_class.shape[1])):
            size = min(max(int(per_class[i, c]), 0), boxes.shape[1] - first)
            part = slice(first, first + size)
            kept, kept_scores = _kept(s, wide[i, part], given[i, part], min(s.most, s.room - at), quantised)
            end = at + len(kept)
            places[i, at:end], values[i, at:end], counts[i, c] = kept, kept_scores, len(kept)
            if quantised:
                values[i, at:end] -= zero
            found[i, at:end] = wide[i, part][kept]
            first, at = first + size, end
    if quantised:
        found = (found * s.scale) >> s.shift
    return [found, counts, values, places]


def _kept(s: Suppression, boxes: Array, scores: Array, most: int, quantised: bool) -> tuple[list[int], list[float]]:
    """The boxes of one class that are kept, and their scores, best first."""
    low, high = np.fmin(boxes[:, :2], boxes[:, 2:]), np.fmax(boxes[:, :2], boxes[:, 2:])  # a number beside NaN
    area = _area(s, high - low, quantised)
    left, alive = scores.copy(), np.ones(len(boxes), bool)
    kept: list[int] = []
    values: list[float] = []
    while len(kept) < most and alive.any():
        candidates = np.flatnonzero(alive & ~np.isnan(left.astype(np.float64)))
        if not candidates.size:
            break
        i = int(candidates[np.argmax(left[candidates])])
        if not left[i] > s.threshold:
            break
        kept.append(i)
        values.append(left[i])
        alive[i] = False
        inter = _area(s, np.fmax(np.fmin(high, high[i]) - np.fmax(low, low[i]), boxes.dtype.type(0)), quantised)
        union = area[i] + area - inter
        if s.factors is not None:
            step = inter * STEPS // np.maximum(union, 1)
            left = (left * s.factors[0, step]) >> s.factors[1, step]
        elif s.gaussian:
            ratio = np.where(union > 0, inter / np.where(union > 0, union, 1), 0).astype(np.float32)
            left = left * np.exp(np.float32(-0.5 / s.sigma) * (ratio * ratio))
        elif quantised:
            alive &= inter <= (union * int(s.overlap)) >> s.part
        else:
            alive &= inter <= union * np.float32(s.overlap)
    return kept, values


def _area(s: Suppression, sides: Array, quantised: bool) -> Array:
    area = sides[:, 0] * sides[:, 1]
    return area >> s.areas if quantised else area

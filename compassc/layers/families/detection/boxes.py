"""Boxes from anchors and offsets, and which of them are kept by their scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import look_up
from compassc.operators.arrays import limited, smaller

F = np.float32


class Limits(NamedTuple):
    """The largest y and x of a box, and whether boxes are cut there."""

    height: float
    width: float
    clip: bool = True


def four(layer: Layer, key: str, default: Sequence[float]) -> list[float]:
    found = layer.numbers(key, list(default))
    if len(found) != 4 or 0 in found:
        raise LayerError(f"'{key}' is {found}, expected four numbers other than 0")
    return found


def decoded(t: Array, centre: Array, size: Array, limits: Limits) -> Array:
    """Boxes (y0, x0, y1, x1) in float32 of offsets [.., 4] (y, x, h, w), and centres and sizes [.., 2] of anchors."""
    most = np.asarray([limits.height, limits.width], F)
    sides = limited(np.exp(t[..., 2:]) * size, 0, most)
    middle = t[..., :2] * size + centre
    ends = [middle - sides * F(0.5), middle + sides * F(0.5)]
    if limits.clip:
        ends = [limited(e, 0, most) for e in ends]
    return np.concatenate(ends, -1)


class Found:
    """Boxes with scores of images, up to `room` of each, and how many there are by class, in up to `slots`; the rest is 0."""

    def __init__(self, images: int, room: int, slots: int, boxes: Array, scores: Array) -> None:
        """`boxes`, `scores`: arrays of the types of the results."""
        self.boxes, self.scores = np.zeros((images, room, 4), boxes.dtype), np.zeros((images, room), scores.dtype)
        self.counts, self.labels, self.many = (np.zeros((images, n), np.int64) for n in (slots, slots, 1))
        self.taken = np.zeros(images, np.int64)
        """How many boxes an image has."""

    def put(self, image: int, boxes: Array, scores: Array, classes: Array) -> None:
        """The boxes of an image, of classes in ascending order."""
        n = self.taken[image] = len(classes)
        self.boxes[image, :n], self.scores[image, :n] = boxes, scores
        labels, counts = np.unique(classes, return_counts=True)
        many = self.many[image] = len(labels)
        self.counts[image, :many], self.labels[image, :many] = counts, labels


def chosen(scores: Array, threshold: float | np.float32, room: int, lowest: bool = False) -> tuple[Array, Array]:
    """(boxes, classes) of scores [boxes, classes] above a threshold, by class, then by box: the first `room`.

    `lowest`: where there are more, instead those with the lowest scores, in their order.
    """
    box, label = np.nonzero(scores > threshold)
    if lowest and len(box) > room:
        order = np.argsort(scores[box, label], kind="stable")[:room]
        box, label = box[order], label[order]
    order = np.argsort(label, kind="stable")[:room]
    return box[order], label[order]


def selected(
    s: Decode,
    boxes: Array,
    scores: Array,
    threshold: float | np.float32,
    order: Sequence[int] = (0, 1, 2, 3),
    lowest: bool = False,
) -> Found:
    """The boxes [images, boxes, 4], or of each class [images, boxes, classes, 4], that are `chosen` by their scores [images,
    boxes, classes], with corners in an order."""
    found = Found(s.images, s.room, s.slots, boxes, scores)
    for i in range(s.images):
        box, label = chosen(scores[i], threshold, s.room, lowest)
        corners = boxes[i, box] if boxes.ndim == 3 else boxes[i, box, label]
        found.put(i, corners[:, list(order)], scores[i, box, label], label)
    return found


def check_outputs(layer: Layer, want: Sequence[tuple[int, ...]]) -> None:
    got = [tuple(t.shape) for t in layer.outputs]
    if len(got) != len(want) or any(int(np.prod(a)) != int(np.prod(b)) for a, b in zip(got, want, strict=True)):
        raise LayerError(f"the outputs are {[list(s) for s in got]}, expected {[list(s) for s in want]}")


def shaped(layer: Layer, results: Sequence[Array]) -> list[Array]:
    return [np.asarray(r).reshape(t.shape) for r, t in zip(results, layer.outputs, strict=True)]


# -- DecodeBox


class Decode(NamedTuple):
    """The sizes of a DecodeBox: images, boxes, columns of the scores, those left out, classes, results, slots."""

    images: int
    boxes: int
    columns: int
    skipped: int
    room: int
    slots: int


def decode_sizes(layer: Layer) -> Decode:
    if len(layer.inputs) not in (2, 3) or len(layer.outputs) != 5:
        raise LayerError("it has the inputs scores, offsets and perhaps anchors, and five outputs")
    scores, deltas = layer.inputs[0].shape, layer.inputs[1].shape
    if len(scores) != 3 or deltas != (*scores[:2], 4):
        raise LayerError(f"scores {list(scores)} and offsets {list(deltas)} do not fit")
    n, b, columns = scores
    classes = layer.integer("class_num", columns)
    if not 1 <= classes <= columns:
        raise LayerError(f"'class_num' is {classes}, but the scores have {columns} columns")
    room, slots = layer.outputs[3].count // max(n, 1), layer.outputs[1].count // max(n, 1)
    check_outputs(layer, [(n, room, 4), (n, slots), (n, 1), (n, room), (n, slots)])
    if slots < classes:
        raise LayerError(f"there are {classes} classes, but room for the numbers of {slots}")
    return Decode(n, b, columns, columns - classes, room, slots)


def anchors_of(layer: Layer, boxes: int, given: Array | None = None) -> Array:
    """[boxes, 4]: y and x of the centre, height and width."""
    if given is not None:
        found = given.reshape(-1, 4)
    else:
        parts = {key: layer.constant(key).reshape(-1) for key in ("ycenter", "xcenter", "ha", "wa")}
        for key, part in parts.items():
            if part.size != boxes:
                raise LayerError(f"'{key}' has {part.size} values, but there are {boxes} boxes")
        found = np.stack(list(parts.values()), -1)
    if len(found) != boxes:
        raise LayerError(f"there are {len(found)} anchors for {boxes} boxes")
    return found


def limits_of(layer: Layer) -> Limits:
    clip = layer.flag("clip", True)
    if layer.flag("proposal_normalized", True) and not layer.is_quantised:
        return Limits(1.0, 1.0, clip)
    return Limits(layer.number("image_height", 300), layer.number("image_width", 300), clip)


def decode_box(layer: Layer, scores: Array, deltas: Array, *anchors: Array) -> list[Array]:
    s, limits = decode_sizes(layer), limits_of(layer)
    fixed = anchors_of(layer, s.boxes, anchors[0] if anchors else None).astype(F)
    t = deltas.astype(F) / np.asarray(four(layer, "variance", (10, 10, 5, 5)), F)
    boxes = decoded(t, fixed[:, :2], fixed[:, 2:], limits)
    threshold = F(layer.number("score_threshold", 0.5))
    return _decoded_results(layer, selected(s, boxes, scores.astype(F)[..., s.skipped :], threshold, lowest=True))


def quantised_decode_box(layer: Layer, scores: Array, deltas: Array, *anchors: Array) -> list[Array]:
    """Boxes by tables; scores are compared and given with the zero point added."""
    s, limits = decode_sizes(layer), limits_of(layer)
    if anchors:
        raise LayerError("quantised boxes with a tensor of anchors are not supported; give it constants")
    fixed, shift = anchors_of(layer, s.boxes).astype(np.int64), layer.integer("box_shift")
    kind = layer.inputs[1].integer
    ty, tx, th, tw = (
        look_up(deltas[..., i], layer.constant(f"{key}_lut").reshape(-1), kind.bits, kind.signed)
        for i, key in enumerate(("ty", "tx", "th", "tw"))
    )
    most = np.asarray([limits.height, limits.width]).astype(np.int64)
    sides = np.clip((np.stack([th, tw], -1) * fixed[:, 2:]) >> shift, 0, most)
    middle = ((np.stack([ty, tx], -1) * fixed[:, 2:]) >> shift) + fixed[:, :2]
    ends = [middle - (sides >> 1), middle + (sides >> 1)]
    if limits.clip:
        ends = [np.clip(e, 0, most) for e in ends]
    real = scores.astype(np.int64)[..., s.skipped :] + layer.input.scalar_zero
    threshold = layer.integer("score_threshold_uint8")
    return _decoded_results(layer, selected(s, np.concatenate(ends, -1), real, threshold, lowest=True))


def _decoded_results(layer: Layer, found: Found) -> list[Array]:
    return shaped(layer, [found.boxes, found.counts, found.many, found.scores, found.labels])


# -- DetectionOutput

ANCHOR_MODES = ("CAFFE_DETECTION", "TF_FASTERRCNN", "")


def detection_sizes(layer: Layer) -> tuple[Decode, int, int]:
    """(sizes, rows of the offsets, those left out)."""
    if len(layer.inputs) != 3 or len(layer.outputs) != 5:
        raise LayerError("it has the inputs scores, offsets and proposals, and five outputs")
    scores, deltas, proposals = (t.shape for t in layer.inputs)
    if (
        len(scores) != 3
        or len(deltas) != 4
        or deltas[:2] != scores[:2]
        or deltas[3] != 4
        or proposals != (*scores[:2], 4)
    ):
        raise LayerError(f"scores {list(scores)}, offsets {list(deltas)} and proposals {list(proposals)} do not fit")
    n, b, columns = scores
    skipped = 1 if columns > 1 else 0
    left = 0 if deltas[2] == columns - skipped else 1
    if deltas[2] - left != columns - skipped:
        raise LayerError(f"{columns} columns of scores do not fit {deltas[2]} rows of offsets")
    room, slots = layer.outputs[0].count // max(n, 1), layer.outputs[2].count // max(n, 1)
    check_outputs(layer, [(n, room), (n, room, 4), (n, slots), (n, slots), (n, 1)])
    if slots < columns - skipped:
        raise LayerError(f"there are {columns - skipped} classes, but room for the numbers of {slots}")
    return Decode(n, b, columns, skipped, room, slots), deltas[2], left


def detection_output(layer: Layer, scores: Array, deltas: Array, proposals: Array) -> list[Array]:
    s, _, left = detection_sizes(layer)
    limits = Limits(layer.number("image_height", 600), layer.number("image_width", 600))
    order = [1, 0, 3, 2] if layer.word("anchor_mode", "") == "CAFFE_DETECTION" else [0, 1, 2, 3]
    t = deltas.astype(F)[:, :, left:] / np.asarray(four(layer, "variance", (10, 10, 5, 5)), F)
    t = t[..., order]
    if np.isfinite(clip := F(xform_clip(layer))):
        t[..., 2:] = smaller(t[..., 2:], clip)
    given = proposals.astype(F)[..., order]
    size = given[..., 2:] - given[..., :2]
    centre = (given[..., :2] + given[..., 2:]) * F(0.5)
    boxes = decoded(t, centre[:, :, None], size[:, :, None], limits)
    real, threshold = scores.astype(F)[..., s.skipped :], F(layer.number("score_threshold", 0.7))
    return listed_results(layer, selected(s, boxes, real, threshold, order))


def listed_results(layer: Layer, found: Found) -> list[Array]:
    """The outputs of types that give scores first."""
    return shaped(layer, [found.scores, found.boxes, found.counts, found.labels, found.many])


def xform_clip(layer: Layer) -> float:
    value = layer.attributes.get("bbox_xform_clip")
    if isinstance(value, str) and value.lower() in ("inf", "none"):
        return float("inf")
    return layer.number("bbox_xform_clip", float("inf"))


# -- one box per row


def bounding_box(layer: Layer, rois: Array, deltas: Array) -> Array:
    if rois.shape[-1:] != (4,) or rois.shape != deltas.shape:
        raise LayerError(f"regions {list(rois.shape)} and offsets {list(deltas.shape)} do not fit")
    t = deltas.astype(F) / np.asarray(four(layer, "std_div", (10, 10, 5, 5)), F)
    given = rois.astype(F)
    size, centre = given[..., 2:] - given[..., :2], (given[..., :2] + given[..., 2:]) * F(0.5)
    return decoded(t, centre, size, Limits(1.0, 1.0))


def multibox_sizes(layer: Layer) -> tuple[int, int, int, int]:
    """(images, classes, anchors, rows of the result)."""
    if len(layer.inputs) != 3 or len(layer.outputs) != 2:
        raise LayerError("it has the inputs probabilities, offsets and anchors, and two outputs")
    scores, offsets, anchors = (t.shape for t in layer.inputs)
    n, c, a = scores if len(scores) == 3 else (0, 0, 0)
    if not n or offsets != (n, 4 * a) or anchors[-2:] != (a, 4) or layer.inputs[2].count != 4 * a or c < 2:
        raise LayerError(
            f"probabilities {list(scores)}, offsets {list(offsets)} and anchors {list(anchors)} do not fit"
        )
    room = layer.outputs[0].shape[-2] if len(layer.outputs[0].shape) == 3 else 0
    check_outputs(layer, [(n, room, 6), (n,)])
    return n, c, a, room


def multibox(layer: Layer, scores: Array, offsets: Array, anchors: Array) -> list[Array]:
    n, _, a, room = multibox_sizes(layer)
    variance = four(layer, "variance", (10, 10, 5, 5))
    t = offsets.astype(F).reshape(n, a, 4) / np.asarray(variance, F)
    given = anchors.reshape(a, 4).astype(F)
    size, centre = given[:, 2:] - given[:, :2], (given[:, :2] + given[:, 2:]) * F(0.5)
    boxes = decoded(t, centre, size, Limits(1.0, 1.0, layer.flag("clip", True)))
    real = np.where(np.isnan(scores), -np.inf, scores).astype(F)[:, 1:]
    best, label = real.max(axis=1), real.argmax(axis=1)
    found, many = np.full((n, room, 6), -1, F), np.zeros(n, np.int64)
    for i in range(n):
        kept = np.flatnonzero(best[i] > F(layer.number("score_threshold", 0.5)))[:room]
        rows = np.concatenate([label[i, kept, None].astype(F), best[i, kept, None], boxes[i, kept]], 1)
        found[i, : len(kept)], many[i] = rows, len(kept)
    return shaped(layer, [found, many])


def proposal_sizes(layer: Layer) -> Decode:
    if len(layer.inputs) != 2 or len(layer.outputs) != 4:
        raise LayerError("it has the inputs scores and offsets, and four outputs")
    scores, deltas = layer.inputs[0].shape, layer.inputs[1].shape
    if len(scores) != 3 or scores[2] != 2 or deltas != (*scores[:2], 4):
        raise LayerError(f"scores {list(scores)} and offsets {list(deltas)} do not fit")
    n, room = scores[0], layer.outputs[0].count // max(scores[0], 1)
    check_outputs(layer, [(n, room), (n, room, 4), (n, 1), (n, 1)])
    return Decode(n, scores[1], 2, 1, room, 1)


def proposal(layer: Layer, scores: Array, deltas: Array) -> list[Array]:
    s = proposal_sizes(layer)
    fixed = proposal_anchors(layer, s.boxes).astype(F)
    t = deltas.astype(F) / np.asarray((10, 10, 5, 5), F)
    boxes = decoded(t, fixed[:, :2], fixed[:, 2:], Limits(layer.number("height", 600), layer.number("width", 600)))
    real, threshold = scores.astype(F)[..., 1:], F(layer.number("score_threshold", 0.45))
    return proposal_results(layer, selected(s, boxes, real, threshold))


def proposal_results(layer: Layer, found: Found) -> list[Array]:
    return shaped(layer, [found.scores, found.boxes, found.taken, np.ones(len(found.taken), np.int64)])


def proposal_anchors(layer: Layer, boxes: int) -> Array:
    """The constants of anchors, or one constant `anchors` of rows (y, x, h, w)."""
    given = layer.constants.get("anchors")
    return anchors_of(layer, boxes, given)

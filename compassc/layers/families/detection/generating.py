"""Regions from anchors: decoded, the best of them, without those that overlap better ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array
from compassc.layers.families.detection.boxes import F, shaped


class Generation(NamedTuple):
    """The numbers of a GenerateProposals: images, anchors of one, results, how many are looked at and how many taken at
    most, the largest overlap, the size that sides must exceed, numbers of an image's information (0: none)."""

    images: int
    boxes: int
    room: int
    looked_at: int
    taken: int
    overlap: float
    size: float
    told: int


def generation_of(layer: Layer) -> Generation:
    if len(layer.inputs) not in (2, 3) or len(layer.outputs) != 4:
        raise LayerError("it has the inputs scores, offsets and perhaps the images' sizes, and four outputs")
    scores, deltas = layer.inputs[0].shape, layer.inputs[1].shape
    if len(scores) != 4 or deltas != (*scores[:3], 4 * scores[3]) or 0 in scores:
        raise LayerError(f"scores {list(scores)} and offsets {list(deltas)} do not fit")
    images, boxes = scores[0], layer.input.count // scores[0]
    told = layer.inputs[2].count // images if len(layer.inputs) == 3 else 0
    if len(layer.inputs) == 3 and (told < 2 or told * images != layer.inputs[2].count):
        raise LayerError(
            f"'{layer.inputs[2].name}' is {list(layer.inputs[2].shape)}, expected height and width per image"
        )
    room = layer.outputs[0].count // images
    want = (images * room, images * room * 4, None, images)
    if any(n not in (None, t.count) for n, t in zip(want, layer.outputs, strict=True)):
        shapes = [list(t.shape) for t in layer.outputs]
        raise LayerError(
            f"the outputs are {shapes}, expected {room} scores, {room} boxes, indices and a number per image"
        )
    return Generation(
        images,
        boxes,
        room,
        layer.integer("pre_nms_topn", 6000),
        min(layer.integer("post_nms_topn", 300), room),
        layer.number("iou_threshold", 0.7),
        layer.number("min_size", 16),
        told,
    )


def centred_anchors(layer: Layer, boxes: int) -> Array:
    """[boxes, 4] in float32: width, height, x and y of the centre."""
    found = layer.constant("weights").astype(F)
    if found.size != 4 * boxes or found.shape[-1] != 4:
        raise LayerError(
            f"'weights' is {list(found.shape)}, expected [{boxes}, 4]: an anchor (width, height, x, y) for each score; what base "
            "anchors are, the format leaves open"
        )
    return found.reshape(boxes, 4)


def image_sizes(layer: Layer, g: Generation, info: Array | None) -> Array:
    """[images, 2] in float32: height and width."""
    if info is not None:
        return info.reshape(g.images, -1)[:, :2].astype(F)
    return np.asarray([[layer.number("image_height", 600), layer.number("image_width", 600)]] * g.images, F)


def sort_keys(scores: Array) -> Array:
    """Integers in the order of float32 numbers."""
    plain = np.where(scores == 0, F(0), scores.astype(F))
    bits = np.ascontiguousarray(plain).view(np.int32)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def generate_proposals(layer: Layer, scores: Array, deltas: Array, *info: Array) -> list[Array]:
    """Of equal scores the first come first."""
    g = generation_of(layer)
    anchors, sizes = centred_anchors(layer, g.boxes), image_sizes(layer, g, info[0] if info else None)
    real, t = scores.astype(F).reshape(g.images, -1), deltas.astype(F).reshape(g.images, -1, 4)
    found, values = np.zeros((g.images, g.room, 4), F), np.zeros((g.images, g.room), F)
    many = np.zeros(g.images, np.int64)
    for n in range(g.images):
        most = (sizes[n, ::-1] - F(1)).astype(F)
        half = np.exp(t[n, :, 2:]) * anchors[:, :2] * F(0.5)
        middle = t[n, :, :2] * anchors[:, :2] + anchors[:, 2:]
        boxes = np.concatenate([np.clip(middle - half, F(0), most), np.clip(middle + half, F(0), most)], -1)
        order = np.argsort(-sort_keys(real[n]).astype(np.int64), kind="stable")[: max(g.looked_at, 0)]
        sides = boxes[order, 2:] - boxes[order, :2] + F(1)
        order = order[(sides > F(g.size)).all(1) & ~np.isnan(real[n, order])]
        kept = _kept(boxes[order], g)
        many[n] = len(kept)
        found[n, : len(kept)], values[n, : len(kept)] = boxes[order][kept], real[n, order][kept]
    return shaped(layer, [values, found, np.zeros(layer.outputs[2].shape), many])


def _kept(boxes: Array, g: Generation) -> list[int]:
    """Which of the boxes, best first, do not overlap those kept before them."""
    area = (boxes[:, 2] - boxes[:, 0] + F(1)) * (boxes[:, 3] - boxes[:, 1] + F(1))
    kept: list[int] = []
    alive = np.ones(len(boxes), bool)
    for i in range(len(boxes)):
        if len(kept) >= g.taken:
            break
        if not alive[i]:
            continue
        kept.append(i)
        both = np.minimum(boxes[:, 2:], boxes[i, 2:]) - np.maximum(boxes[:, :2], boxes[i, :2]) + F(1)
        inter = np.prod(np.maximum(both, F(0)), axis=1, dtype=F)
        alive &= inter <= (area[i] + area - inter) * F(g.overlap)
    return kept

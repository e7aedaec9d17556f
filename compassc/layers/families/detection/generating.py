"""Regions from anchors: decoded, the best of them, without those that overlap better ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import approximate_factor
from compassc.layers.families.detection.boxes import F, shaped
from compassc.layers.families.detection.fixed import LIMIT, entries, exact_table, narrow_types, without_zero


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
        layer.number("iou_threshold") if layer.is_quantised else layer.number("iou_threshold", 0.7),
        layer.number("min_size") if layer.is_quantised else layer.number("min_size", 16),
        told,
    )


def centred_anchors(layer: Layer, boxes: int) -> Array:
    """[boxes, 4] in float32, or quantised in int64: width, height, x and y of the centre."""
    found = layer.constant("weights").astype(np.int64 if layer.is_quantised else F)
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
        kept = _kept(boxes[order], g, _overlaps)
        many[n] = len(kept)
        found[n, : len(kept)], values[n, : len(kept)] = boxes[order][kept], real[n, order][kept]
    return shaped(layer, [values, found, np.zeros(layer.outputs[2].shape), many])


Overlaps = Callable[[Array, int, float], Array]
"""`overlaps(boxes, i, most)`: which boxes overlap box `i` too much."""


def _kept(boxes: Array, g: Generation, overlaps: Overlaps) -> list[int]:
    """Which of the boxes, best first, do not overlap those kept before them."""
    kept: list[int] = []
    alive = np.ones(len(boxes), bool)
    for i in range(len(boxes)):
        if len(kept) >= g.taken:
            break
        if alive[i]:
            kept.append(i)
            alive &= ~overlaps(boxes, i, g.overlap)
    return kept


def _overlaps(boxes: Array, i: int, most: float) -> Array:
    area = (boxes[:, 2] - boxes[:, 0] + F(1)) * (boxes[:, 3] - boxes[:, 1] + F(1))
    both = np.minimum(boxes[:, 2:], boxes[i, 2:]) - np.maximum(boxes[:, :2], boxes[i, :2]) + F(1)
    inter = np.prod(np.maximum(both, F(0)), axis=1, dtype=F)
    found: Array = ~(inter <= (area[i] + area - inter) * F(most))
    return found


# -- in integers

AREA_BITS = 15
"""Bits that areas lose."""
OVERLAP_BITS = 11
"""Fraction bits of the largest overlap."""
FARTHEST = 65535
"""The largest place in an image, in steps."""
TABLES = ("xy_lut", "wh_lut")
"""What offsets of centres, and of sizes, are decoded to, with `delta_shift` fraction bits."""


class FixedGeneration(NamedTuple):
    """The numbers of a quantised GenerateProposals: `scale` steps of boxes are a pixel; fraction bits of the tables, bits
    that stored boxes lose; multiplier, shift and zero point of the input that tells the images' sizes; the largest x and
    y without it."""

    common: Generation
    scale: int
    shift: int
    last: int
    told: tuple[int, int, int]
    most: tuple[int, int]


def fixed_generation(layer: Layer) -> FixedGeneration:
    """LayerError where the arithmetic would leave 32 bits, too."""
    g, boxes = generation_of(layer), layer.outputs[1]
    narrow_types(*layer.inputs, *layer.outputs[:2])
    without_zero(boxes)
    scale, shift, last = layer.integer("anchor_scale"), layer.integer("delta_shift"), layer.integer("roi_last_shift", 0)
    if not (1 <= scale < 1 << 15 and 0 <= shift < 31 and 0 <= last < 16):
        raise LayerError(
            f"'anchor_scale' is {scale}, 'delta_shift' {shift} and 'roi_last_shift' {last}, expected up to 32767, 30 and 15"
        )
    if boxes.scalar_scale * 2.0**last != scale:
        raise LayerError(
            f"'{boxes.name}' has the scale {boxes.scalar_scale:g}, but 'anchor_scale' is {scale} and 'roi_last_shift' {last}"
        )
    given, found = layer.inputs[0], layer.outputs[0]
    if (given.dtype, given.scalar_scale, given.scalar_zero) != (found.dtype, found.scalar_scale, found.scalar_zero):
        raise LayerError(
            f"'{found.name}' is {found}, but '{given.name}' {given}; scores keep type, scale and zero point"
        )
    if not 0 <= g.overlap <= 1 << (OVERLAP_BITS + 1) or g.overlap != int(g.overlap) or g.size != int(g.size):
        raise LayerError(
            f"'iou_threshold' is {g.overlap:g} and 'min_size' {g.size:g}, expected whole numbers, the first with "
            f"{OVERLAP_BITS} fraction bits"
        )
    anchors = centred_anchors(layer, g.boxes)
    if np.abs(anchors).max() > LIMIT or anchors[:, :2].min() < 0:
        raise LayerError(f"'weights' holds {anchors.min()} to {anchors.max()}, expected 16 bits, and sizes not below 0")
    for key, low in zip(TABLES, (-65535, 0), strict=True):
        table = exact_table(layer, key, low, 65535)
        extra = layer.inputs[1].integer.bits - (table.size.bit_length() - 1)
        largest = int(np.abs(table).max()) * int(anchors[:, :2].max()) + (1 << 16)
        if largest >= 2**31 or (int(table.max()) - int(table.min())) << max(extra, 0) >= 2**31:
            raise LayerError(
                f"the products of '{key}' with anchors are up to {largest}, which with its steps leave 32 bits"
            )
    return FixedGeneration(g, scale, shift, last, _told(layer, g, scale), _most(layer, scale))


def _told(layer: Layer, g: Generation, scale: int) -> tuple[int, int, int]:
    if not g.told:
        return 0, 0, 0
    info = layer.inputs[2]
    found, shift = (int(v) for v in approximate_factor(scale / info.scalar_scale, 15))
    ends = max(abs(info.low + info.scalar_zero), abs(info.high + info.scalar_zero))
    if not 0 <= shift < 32 or ends * found >> shift >= 2**30:
        raise LayerError(f"'{info.name}' has the scale {info.scalar_scale:g}, which 'anchor_scale' {scale} is far from")
    return found, shift, info.scalar_zero


def _most(layer: Layer, scale: int) -> tuple[int, int]:
    """The largest x and y of a box, where no input tells these."""
    if len(layer.inputs) == 3:
        return 0, 0
    x, y = (int((layer.number(key, 600) - 1) * scale) for key in ("image_width", "image_height"))
    if max(x, y) > FARTHEST:
        raise LayerError(
            f"'image_width' and 'image_height' times 'anchor_scale' {scale} are up to {max(x, y)}: beyond 16 bits"
        )
    return x, y


def quantised_generate_proposals(layer: Layer, scores: Array, deltas: Array, *info: Array) -> list[Array]:
    """Of equal scores the first come first; sizes are halved and rounded down, areas have no ends."""
    f = fixed_generation(layer)
    g, anchors = f.common, centred_anchors(layer, f.common.boxes)
    real = scores.astype(np.int64).reshape(g.images, -1)
    xy, wh = (entries(layer, key, deltas.reshape(g.images, -1, 4)[..., i : i + 2], layer.inputs[1], -65535, 65535)
              for key, i in zip(TABLES, (0, 2), strict=True))  # fmt: skip
    found, values = np.zeros((g.images, g.room, 4), np.int64), np.zeros((g.images, g.room), np.int64)
    many = np.zeros(g.images, np.int64)
    most = np.broadcast_to(np.asarray(f.most), (g.images, 2))
    if info:
        sizes = info[0].reshape(g.images, -1)[:, 1::-1].astype(np.int64) + f.told[2]
        most = ((sizes * f.told[0]) >> f.told[1]) - f.scale
    most = np.clip(most, 0, FARTHEST)
    for n in range(g.images):
        half = (wh[n] * anchors[:, :2]) >> (f.shift + 1)
        middle = ((xy[n] * anchors[:, :2]) >> f.shift) + anchors[:, 2:]
        boxes = np.concatenate([np.clip(middle - half, 0, most[n]), np.clip(middle + half, 0, most[n])], -1)
        order = np.argsort(-real[n], kind="stable")[: max(g.looked_at, 0)]
        order = order[(boxes[order, 2:] - boxes[order, :2] > g.size).all(1)]
        kept = _kept(boxes[order], g, _fixed_overlaps)
        many[n] = len(kept)
        found[n, : len(kept)], values[n, : len(kept)] = boxes[order][kept] >> f.last, real[n, order][kept]
    return shaped(layer, [values, found, np.zeros(layer.outputs[2].shape, np.int64), many])


def _fixed_overlaps(boxes: Array, i: int, most: float) -> Array:
    area = ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])) >> AREA_BITS
    both = np.minimum(boxes[:, 2:], boxes[i, 2:]) - np.maximum(boxes[:, :2], boxes[i, :2])
    inter = np.prod(np.maximum(both, 0), axis=1) >> AREA_BITS
    return np.asarray(inter > ((area[i] + area - inter) * int(most)) >> OVERLAP_BITS)

"""Boxes in whole numbers: the quantised forms of box decoders and of YOLO heads.

Positions, sizes and scores are integers that stand for real numbers by the scales of their tensors; tables hold what
offsets decode to. Where the format leaves a step open the choice is said here and on the pages of the layers.
"""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import look_up, requantise
from compassc.layers.families.detection.boxes import (
    ANCHOR_MODES,
    Decode,
    detection_sizes,
    listed_results,
    multibox_sizes,
    proposal_anchors,
    proposal_results,
    proposal_sizes,
    selected,
    shaped,
)
from compassc.layers.families.detection.yolo import Head, Lists, best_of, fused_lists, fused_sizes, head_of

LETTERS = "yxhw"
LIMIT = 32767
"""The number that 1 is in boxes that are parts of the image."""


def narrow_types(*tensors: Tensor) -> None:
    for t in tensors:
        if not t.is_integer or t.integer.bits > 16:
            raise LayerError(f"'{t.name}' is {t.dtype}, but quantised boxes, offsets and scores have at most 16 bits")


def without_zero(*tensors: Tensor) -> None:
    for t in tensors:
        if t.scalar_zero:
            raise LayerError(f"'{t.name}' has the zero point {t.scalar_zero}, but boxes of detectors have 0")


def exact_table(layer: Layer, key: str, low: int, high: int, size: int = 0) -> Array:
    """The whole numbers of a table, within limits; `size`: how many entries it must have (0: any power of two)."""
    table = layer.constant(key).reshape(-1)
    many = table.size
    if table.dtype.kind not in "iu" or not many or many & (many - 1) or (size and many != size):
        wanted = size or "a power of two of"
        raise LayerError(f"the table '{key}' has {many} entries of {table.dtype}, expected {wanted} whole numbers")
    if int(table.min()) < low or int(table.max()) > high:
        raise LayerError(f"the table '{key}' holds {table.min()} to {table.max()}, expected {low} to {high}")
    return table.astype(np.int64)


def entries(layer: Layer, key: str, values: Array, of: Tensor, low: int, high: int) -> Array:
    """The entries of a table at quantised values."""
    return look_up(values, exact_table(layer, key, low, high), of.integer.bits, of.integer.signed)


def fixed_anchors(layer: Layer, boxes: int) -> Array:
    found = proposal_anchors(layer, boxes)
    if found.dtype.kind not in "iu" or np.abs(found.astype(np.int64)).max(initial=0) > LIMIT:
        raise LayerError(f"quantised anchors are {found.dtype}, expected whole numbers of 16 bits")
    return found.astype(np.int64)


def least_score(layer: Layer) -> int:
    """The quantised threshold of the scores."""
    key = "score_threshold_uint8" if layer.has("score_threshold_uint8") else "score_threshold_value"
    return layer.integer(key)


def whole_measure(layer: Layer, key: str) -> int:
    """A side of the image in the units of the boxes."""
    found = layer.integer(key)
    if not 0 <= found <= LIMIT:
        raise LayerError(f"'{key}' is {found}, expected 0 to {LIMIT}, in the units of the boxes")
    return found


def numbers_of(layer: Layer, key: str, many: int, low: int, high: int) -> list[int]:
    found = layer.integers(key)
    if len(found) != many or min(found) < low or max(found) > high:
        raise LayerError(f"'{key}' is {layer.attributes[key]}, expected {many} numbers from {low} to {high}")
    return found


# -- Proposal


class FixedProposal(NamedTuple):
    """The numbers of a quantised Proposal: sizes, fraction bits of the tables, the image's sides, the threshold."""

    sizes: Decode
    shift: int
    height: int
    width: int
    threshold: int


def proposal_numbers(layer: Layer) -> FixedProposal:
    s = proposal_sizes(layer)
    narrow_types(*layer.inputs, *layer.outputs[:2])
    without_zero(layer.outputs[1])
    key = "box_shift_value" if layer.has("box_shift_value") else "box_shift"
    shift = layer.integer(key)
    if not 0 <= shift < 31:
        raise LayerError(f"'{key}' is {shift}, expected 0 to 30")
    sides = whole_measure(layer, "height"), whole_measure(layer, "width")
    return FixedProposal(s, shift, *sides, least_score(layer))


def halved(twice: Array) -> Array:
    """Half of whole numbers, to the nearest, ties to even."""
    found: Array = (twice + ((twice >> 1) & 1)) >> 1
    return found


def quantised_proposal(layer: Layer, scores: Array, deltas: Array) -> list[Array]:
    """Corners lie half a size, which may have a half, beside the centre, and are rounded to even; then they are cut."""
    p = proposal_numbers(layer)
    s, fixed = p.sizes, fixed_anchors(layer, p.sizes.boxes)
    ty, tx, th, tw = (
        entries(layer, f"t{a}_lut", deltas[..., i], layer.inputs[1], -LIMIT - 1, LIMIT) for i, a in enumerate(LETTERS)
    )
    most = np.asarray([p.height, p.width])
    sides = np.clip((np.stack([th, tw], -1) * fixed[:, 2:]) >> p.shift, 0, most)
    middle = ((np.stack([ty, tx], -1) * fixed[:, 2:]) >> p.shift) + fixed[:, :2]
    ends = [np.clip(halved(2 * middle + sign * sides), 0, most) for sign in (-1, 1)]
    real = scores.astype(np.int64)[..., 1:]
    return proposal_results(layer, selected(s, np.concatenate(ends, -1), real, p.threshold))


# -- DetectionOutput


class FixedDetection(NamedTuple):
    """The numbers of a quantised DetectionOutput: of sizes, offsets and centres a multiplier, its shift and how far the
    first product is shifted; the image's sides, the threshold, whether rows hold x before y."""

    scale: list[int]
    shift: list[int]
    part: list[int]
    height: int
    width: int
    threshold: int
    swapped: bool


def detection_numbers(layer: Layer) -> FixedDetection:
    narrow_types(*layer.inputs, *layer.outputs[:2])
    without_zero(layer.outputs[1])
    scale = numbers_of(layer, "box_scale_value", 3, 0, 65535)
    shift = numbers_of(layer, "box_shift_value", 3, 0, 46)
    part = numbers_of(layer, "delta_shift", 2, 0, 30)
    for i in (0, 1):
        if not 0 <= shift[i] - part[i] < 31:
            raise LayerError(
                f"'box_shift_value' is {layer.attributes['box_shift_value']}, but 'delta_shift' {part}: their difference is "
                "expected to be 0 to 30"
            )
    swapped = layer.word("anchor_mode", "", ANCHOR_MODES) == "CAFFE_DETECTION"
    sides = whole_measure(layer, "height"), whole_measure(layer, "width")
    return FixedDetection(scale, shift, part, *sides, least_score(layer), swapped)


def shifted_near(product: Array, shift: int) -> Array:
    """Over 2^shift, halves up."""
    return (product + ((1 << shift) >> 1)) >> shift


def quantised_detection_output(layer: Layer, scores: Array, deltas: Array, proposals: Array) -> list[Array]:
    """Sizes are limited to the image's, as in floats, and corners cut at it."""
    s, _, left = detection_sizes(layer)
    d = detection_numbers(layer)
    order = [1, 0, 3, 2] if d.swapped else [0, 1, 2, 3]
    given = (proposals.astype(np.int64) + layer.inputs[2].scalar_zero)[..., order]
    size = (given[..., 2:] - given[..., :2])[:, :, None]
    centre = ((given[..., :2] + given[..., 2:]) >> 1)[:, :, None]
    t = deltas[:, :, left:][..., order]
    ty, tx, th, tw = (
        entries(layer, f"t{a}_lut", t[..., i], layer.inputs[1], -LIMIT - 1, LIMIT) for i, a in enumerate(LETTERS)
    )
    parts = []
    for i, pair in enumerate(((th, tw), (ty, tx))):
        first = np.clip((np.stack(pair, -1) * d.scale[i]) >> d.part[i], -LIMIT - 1, LIMIT)
        parts.append(shifted_near(first * size, d.shift[i] - d.part[i]))
    most = np.asarray([d.height, d.width])
    half = np.clip(parts[0], 0, most) >> 1
    middle = parts[1] + requantise(centre, d.scale[2], d.shift[2], 0, -LIMIT - 1, LIMIT)
    boxes = np.concatenate([np.clip(middle - half, 0, most), np.clip(middle + half, 0, most)], -1)
    real = scores.astype(np.int64)[..., s.skipped :]
    return listed_results(layer, selected(s, boxes, real, d.threshold, order))


# -- BoundingBox, MultiboxTransformLoc


class FixedBoxes(NamedTuple):
    """The numbers of boxes from regions: multipliers and shifts of y, x, h, w and of corners, and `delta_shift`."""

    scale: list[int]
    shift: list[int]
    part: int


EXPONENT_BITS = 16
"""Bits that the product of an exponential and its multiplier loses at once."""


def boxes_numbers(layer: Layer, regions: Tensor, deltas: Tensor) -> FixedBoxes:
    """LayerError where the arithmetic would leave 32 bits, too."""
    narrow_types(regions, deltas, layer.output)
    without_zero(layer.output)
    b = FixedBoxes(
        numbers_of(layer, "box_scale_value", 5, 0, 65535),
        numbers_of(layer, "box_shift_value", 5, 0, 46),
        layer.integer("delta_shift"),
    )
    if not 0 <= b.part < 32:
        raise LayerError(f"'delta_shift' is {b.part}, expected 0 to 31")
    rest = [b.shift[0] - b.part, b.shift[1] - b.part, b.shift[2] - EXPONENT_BITS, b.shift[3] - EXPONENT_BITS]
    if min(rest) < 0 or max(rest) > 30:
        raise LayerError(
            f"'box_shift_value' is {b.shift}, but 'delta_shift' {b.part}: what is left of the shifts is {rest}, expected 0 to 30"
        )
    if b.shift[4] > 30:
        raise LayerError(f"'box_shift_value' is {b.shift}, but a shift of corners above 30 leaves nothing of them")
    side = regions.high - regions.low
    offset = max(abs(deltas.low + deltas.scalar_zero), abs(deltas.high + deltas.scalar_zero))
    product = max(side * m >> b.part for m in b.scale[:2]) + 1
    more = 1 << (b.shift[4] - 1) if b.shift[4] > 1 else 0
    corner = (span(regions)[1] + (1 << regions.integer.bits)) * b.scale[4] + more
    for what, most in (("offsets times sizes", product * offset + (1 << 17)), ("corners", corner)):
        if most >= 2**31:
            raise LayerError(f"'box_scale_value' is {b.scale}: {what} are up to {most}, which do not fit 32 bits")
    return b


def span(t: Tensor) -> tuple[int, int]:
    """What the numbers of a tensor are, its zero point added; both ends are extended to 0."""
    return min(t.low + t.scalar_zero, 0), max(t.high + t.scalar_zero, 0)


def fixed_boxes(layer: Layer, b: FixedBoxes, regions: Array, t: Array, of: tuple[Tensor, Tensor], clip: bool) -> Array:
    """Corners (y0, x0, y1, x1) as parts of 32767, of regions (y0, x0, y1, x1) and offsets (y, x, h, w).

    Centres are limited to what the type of the regions holds.
    """
    source, deltas = of
    given = regions.astype(np.int64) + source.scalar_zero
    size, centre = given[..., 2:] - given[..., :2], (given[..., :2] + given[..., 2:]) >> 1
    raw, real = t, t.astype(np.int64) + deltas.scalar_zero
    low, high = span(source)
    ends: list[list[Array]] = [[], []]
    for i, a in enumerate("hw"):
        h = size[..., i]
        moved = real[..., i] * ((h * b.scale[i]) >> b.part)
        middle = np.clip(shifted_near(moved, b.shift[i] - b.part) + centre[..., i], low, high)
        power = entries(layer, f"t{a}_lut", raw[..., 2 + i], deltas, 0, LIMIT) * b.scale[2 + i] >> EXPONENT_BITS
        half = np.clip((h * power) >> (b.shift[2 + i] - EXPONENT_BITS), 0, (1 << source.integer.bits) - 1)
        for e, sign in zip(ends, (-1, 1), strict=True):
            e.append(_corner(middle + sign * half, b, clip))
    return np.stack([*ends[0], *ends[1]], -1)


def _corner(value: Array, b: FixedBoxes, clip: bool) -> Array:
    more = 1 << (b.shift[4] - 1) if b.shift[4] > 1 else 0
    found = (value * b.scale[4] + more) >> b.shift[4]
    return np.clip(found, 0, LIMIT) if clip else found


def quantised_bounding_box(layer: Layer, rois: Array, deltas: Array) -> Array:
    if rois.shape[-1:] != (4,) or rois.shape != deltas.shape:
        raise LayerError(f"regions {list(rois.shape)} and offsets {list(deltas.shape)} do not fit")
    return fixed_boxes(layer, boxes_numbers(layer, *layer.inputs), rois, deltas, layer.inputs, True)  # type: ignore[arg-type]


def multibox_score(layer: Layer) -> tuple[int, int, int]:
    """(multiplier and shift of the scores, threshold before these)."""
    narrow_types(layer.input)
    scale, shift = layer.integer("scale_value"), layer.integer("shift_value")
    if not (0 <= scale <= LIMIT and 0 <= shift < 32):
        raise LayerError(f"'scale_value' is {scale} and 'shift_value' {shift}, expected up to {LIMIT} and 31")
    return scale, shift, least_score(layer)


def quantised_multibox(layer: Layer, scores: Array, offsets: Array, anchors: Array) -> list[Array]:
    """The threshold is compared with the scores as they come."""
    n, _, a, room = multibox_sizes(layer)
    scale, shift, threshold = multibox_score(layer)
    b = boxes_numbers(layer, layer.inputs[2], layer.inputs[1])
    order = [1, 0, 3, 2]
    given = np.broadcast_to(anchors.reshape(1, a, 4)[..., order], (n, a, 4))
    t = offsets.reshape(n, a, 4)[..., order]
    clip = layer.flag("clip", True)
    boxes = fixed_boxes(layer, b, given, t, (layer.inputs[2], layer.inputs[1]), clip)[..., order]
    real = scores.astype(np.int64)[:, 1:]
    best, label = real.max(axis=1), real.argmax(axis=1)
    found, many = np.full((n, room, 6), -1, np.int64), np.zeros(n, np.int64)
    for i in range(n):
        kept = np.flatnonzero(best[i] > threshold)[:room]
        value = ((best[i, kept] + layer.input.scalar_zero) * scale) >> shift
        found[i, : len(kept)] = np.concatenate([label[i, kept, None], value[:, None], boxes[i, kept]], 1)
        many[i] = len(kept)
    return shaped(layer, [found, many])


# -- Region, RegionFuse

TRUST_BITS = 15
"""Fraction bits of the trust in a box."""
POWERS = 1 << 20
"""The largest exponential in the table of the scores."""


class FixedHead(NamedTuple):
    """The numbers of a quantised Region, by axis x and y: fraction bits of cells, 2^15 over the cells, bits lost with it and
    with anchors; multiplier and shift of sizes, bits of the trust, threshold. `bits` have input and scores, and the
    threshold has as many fraction bits."""

    sizes: Head
    bits: int
    cell: tuple[int, int]
    grid: tuple[int, int]
    part: tuple[int, int]
    anchor: tuple[int, int]
    scale: int
    shift: int
    trust: int
    threshold: int


def _pair(layer: Layer, names: tuple[str, str], high: int, default: int | None = None) -> tuple[int, int]:
    found = tuple(layer.integer(n) if default is None else layer.integer(n, default) for n in names)
    for key, value in zip(names, found, strict=True):
        if not 0 <= value <= high:
            raise LayerError(f"'{key}' is {value}, expected 0 to {high}")
    return found[0], found[1]


def head_numbers(layer: Layer) -> FixedHead:
    h = head_of(layer)
    without_zero(*layer.outputs[:2])
    narrow_types(layer.input, *layer.outputs[:2])
    bits = layer.input.integer.bits
    if layer.output.integer.bits != bits:
        raise LayerError(
            f"'{layer.output.name}' is {layer.output.dtype}, but '{layer.input.name}' {layer.input.dtype}: scores have as many "
            "bits as the input"
        )
    found = FixedHead(
        h,
        bits,
        _pair(layer, ("col_shift", "row_shift"), 15),
        _pair(layer, ("grid_w_scale", "grid_h_scale"), 1 << 15),
        _pair(layer, ("grid_w_shift", "grid_h_shift"), 30, 15),
        _pair(layer, ("anchors_exp_w_shift", "anchors_exp_h_shift"), 30),
        _pair(layer, ("wh_exp_scale",) * 2, 65535)[0],
        _pair(layer, ("wh_exp_shift",) * 2, 31)[0],
        layer.integer("conf_sigmoid_shift", TRUST_BITS),
        _pair(layer, ("obj_thresh",) * 2, (1 << bits) - 1)[0],
    )
    if found.trust != TRUST_BITS:
        raise LayerError(
            f"'conf_sigmoid_shift' is {found.trust}, expected {TRUST_BITS}, the fraction bits of its table"
        )
    cells = max(
        ((many << c) + LIMIT + 1) * g for many, c, g in zip((h.columns, h.rows), found.cell, found.grid, strict=True)
    )
    if cells >= 2**31 or h.classes * POWERS >= 2**31:
        raise LayerError(
            f"'grid_w_scale' and 'grid_h_scale' {list(found.grid)} with 'col_shift' and 'row_shift' {list(found.cell)}, or "
            f"{h.classes} classes, do not fit 32 bits"
        )
    return found


HEAD_TABLES = {
    "score_softmax_lut": (0, POWERS),
    "conf_sigmoid_lut": (0, 1 << TRUST_BITS),
    "xy_sigmoid_lut": (-LIMIT - 1, LIMIT),
    "wh_exp_lut": (0, 65535),
}
"""The tables of a quantised Region, and their limits."""


def head_tables(layer: Layer) -> dict[str, Array]:
    """Of inputs of 8 bits they have an entry for each; of 16 bits, 256 at least, so that what lies between fits 32 bits."""
    wide = layer.input.integer.bits > 8
    found = {key: exact_table(layer, key, *limits, 0 if wide else 256) for key, limits in HEAD_TABLES.items()}
    for key, table in found.items():
        if not 256 <= table.size <= 1 << layer.input.integer.bits:
            raise LayerError(
                f"the table '{key}' has {table.size} entries, expected 256 to {1 << layer.input.integer.bits}"
            )
    return found


def head_anchors(layer: Layer, boxes: int) -> Array:
    """[boxes, 2]: quantised widths and heights."""
    found = layer.constant("qanchors_lut").reshape(-1)
    if found.size != 2 * boxes or found.dtype.kind not in "iu" or not 0 <= found.min() <= found.max() <= 65535:
        raise LayerError(f"'qanchors_lut' has {found.size} numbers of {found.dtype}, expected {2 * boxes} of 16 bits")
    return found.reshape(-1, 2).astype(np.int64)


def quantised_region(layer: Layer, x: Array) -> list[Array]:
    """Boxes with a score of 0 are left out; corners are cut at the image. Of equal scores the first come first."""
    f, tables = head_numbers(layer), head_tables(layer)
    h, anchors = f.sizes, head_anchors(layer, f.sizes.boxes)
    wide = x.astype(np.int64).reshape(h.images, h.rows, h.columns, h.boxes, 5 + h.classes)

    def entry(key: str, index: Array) -> Array:
        return look_up(index, tables[key], f.bits, False)

    at = wide[..., :5] + (1 << (f.bits - 1) if layer.input.integer.signed else 0)
    raw, most = wide[..., 5:], (1 << f.bits) - 1
    powers = entry("score_softmax_lut", raw - raw.max(-1, keepdims=True) + most)
    total = powers.sum(-1, keepdims=True)
    trusted = (powers * entry("conf_sigmoid_lut", at[..., 4:])) >> f.trust
    kept = trusted > (total * f.threshold) >> f.bits
    scores = np.where(kept, trusted * most // np.maximum(total, 1), 0)
    ends: list[list[Array]] = [[], []]
    for axis, (i, many) in enumerate(((0, h.columns), (1, h.rows))):
        cells = np.arange(many)[:, None] if axis == 0 else np.arange(many)[:, None, None]
        moved = (cells << f.cell[i]) + entry("xy_sigmoid_lut", at[..., axis])
        middle = (moved * f.grid[i]) >> f.part[i]
        side = (entry("wh_exp_lut", at[..., 2 + axis]) * f.scale) >> f.shift
        size = ((anchors[:, axis] * f.grid[i] >> f.part[i]) * side) >> f.anchor[i]
        for e, sign in zip(ends, (-1, 1), strict=True):
            e.insert(0, np.clip(middle + sign * (size >> 1), 0, 1 << f.cell[i]))
    boxes = np.stack([*ends[0], *ends[1]], -1).reshape(h.images, -1, 4)
    return best_of(layer, h, scores.reshape(h.images, -1, h.classes), boxes, 0)


FUSE_BITS = 12
"""Fraction bits of the factors that bring boxes of two heads to one scale."""


class FixedFuse(NamedTuple):
    """The numbers of a quantised RegionFuse: bits of scores, factors of both lists' boxes, their shift."""

    sizes: Lists
    bits: int
    factors: tuple[int, int]
    shift: int


def fuse_numbers(layer: Layer) -> FixedFuse:
    s = fused_sizes(layer)
    narrow_types(*layer.inputs[:4], *layer.outputs[:2])
    without_zero(*layer.inputs[:4], *layer.outputs[:2])
    scales = [float(t.scalar_scale) for t in (*layer.inputs[2:4], layer.outputs[1])]
    least = min(scales[:2])
    growth = np.log2(scales[2] / least)
    if growth != int(growth) or not 0 <= FUSE_BITS - growth < 31:
        raise LayerError(
            f"'{layer.outputs[1].name}' has the scale {scales[2]:g}, expected {least:g} times a power of two, as its boxes have"
        )
    factors = int(4096 * least / scales[0]), int(4096 * least / scales[1])
    kinds = [layer.inputs[0].dtype, layer.inputs[1].dtype, layer.outputs[0].dtype]
    if len(set(kinds)) != 1:
        raise LayerError(f"the scores are {', '.join(kinds)}; they keep the type")
    return FixedFuse(s, layer.outputs[0].integer.bits, factors, FUSE_BITS - int(growth))


def quantised_region_fuse(layer: Layer, *given: Array) -> list[Array]:
    """As in floats, of every image; scores lose a part of 2^bits, boxes are brought to the scale of the result."""
    f = fuse_numbers(layer)
    wide = [g.astype(np.int64) for g in given]
    for i in (0, 1):
        wide[i] = (wide[i] * ((1 << f.bits) - 1)) >> f.bits
        wide[2 + i] = (wide[2 + i] * f.factors[i]) >> f.shift
    return fused_lists(layer, f.sizes, wide)

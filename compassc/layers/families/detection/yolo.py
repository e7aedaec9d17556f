"""Boxes of YOLO heads, regions after suppression, and lists of boxes that are filtered or gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.layers.families.detection.boxes import F, Found, check_outputs, listed_results, shaped
from compassc.operators.arrays import limited


class Head(NamedTuple):
    """The sizes of a Region: images, rows and columns of the grid, boxes of a cell, classes, results, slots."""

    images: int
    rows: int
    columns: int
    boxes: int
    classes: int
    room: int
    slots: int


def head_of(layer: Layer) -> Head:
    if len(layer.inputs) != 1 or len(layer.outputs) != 5:
        raise LayerError("it has one input and five outputs")
    boxes, classes = layer.integer("box_per_grid", 5), layer.integer("class_num", 20)
    rows, columns = layer.integer("grid_height", 13), layer.integer("grid_width", 13)
    if min(boxes, classes, rows, columns) < 1:
        raise LayerError("'box_per_grid', 'class_num', 'grid_height' and 'grid_width' must be positive")
    n = layer.input.shape[0] if layer.input.shape else 0
    if n < 1 or layer.input.count != n * rows * columns * boxes * (5 + classes):
        raise LayerError(
            f"{list(layer.input.shape)} is no grid of {rows} x {columns} cells of {boxes} boxes, {classes} classes"
        )
    room, slots = layer.outputs[0].count // n, layer.outputs[2].count // n
    check_outputs(layer, [(n, room), (n, room, 4), (n, slots), (n, slots), (n, 1)])
    if slots < classes:
        raise LayerError(f"there are {classes} classes, but room for the numbers of {slots}")
    return Head(n, rows, columns, boxes, classes, room, slots)


def anchors_of_cells(layer: Layer, boxes: int) -> Array:
    """[boxes, 2]: widths and heights, in cells."""
    found = np.asarray(layer.numbers("anchors") if layer.has("anchors") else layer.constant("anchors"), F).reshape(-1)
    if found.size != 2 * boxes:
        raise LayerError(f"'anchors' has {found.size} numbers, expected {2 * boxes}")
    return found.reshape(-1, 2)


def shifts(layer: Layer, h: Head) -> tuple[float, float]:
    """The offsets added to the row and column of a cell's box: half a cell back on even grids that are compensated."""
    given = layer.flag("grid_compensate", True)
    down, across = (-0.5 if given and n % 2 == 0 else 0.0 for n in (h.rows, h.columns))
    return down, across


def _sigmoid(x: Array) -> Array:
    return F(1) / (F(1) + np.exp(-x))


def region(layer: Layer, x: Array) -> list[Array]:
    h = head_of(layer)
    anchors, (down, across) = anchors_of_cells(layer, h.boxes), shifts(layer, h)
    threshold = F(layer.number("obj_thresh", 0.3))
    wide = x.astype(F).reshape(h.images, h.rows, h.columns, h.boxes, 5 + h.classes)
    powers = np.exp(wide[..., 5:] - wide[..., 5:].max(-1, keepdims=True))
    scores = _sigmoid(wide[..., 4:5]) * (powers / powers.sum(-1, keepdims=True))
    row, column = np.arange(h.rows, dtype=F)[:, None, None], np.arange(h.columns, dtype=F)[:, None]
    middle_x = (column + _sigmoid(wide[..., 0]) + F(across)) / F(h.columns)
    middle_y = (row + _sigmoid(wide[..., 1]) + F(down)) / F(h.rows)
    width = anchors[:, 0] * np.exp(wide[..., 2]) / F(h.columns)
    height = anchors[:, 1] * np.exp(wide[..., 3]) / F(h.rows)
    half = F(0.5)
    ends = (middle_y - height * half, middle_x - width * half, middle_y + height * half, middle_x + width * half)
    boxes = limited(np.stack(ends, -1), 0, 1).reshape(h.images, -1, 4)
    return best_of(layer, h, scores.reshape(h.images, -1, h.classes), boxes, threshold)


def best_of(layer: Layer, h: Head, scores: Array, boxes: Array, threshold: float | np.float32) -> list[Array]:
    """The lists of boxes with a score above a threshold; where there is no room for all, of those with the best scores, of
    equal ones the first."""
    found = Found(h.images, h.room, h.slots, boxes, scores)
    for i, of_image in enumerate(scores):
        box, label = np.nonzero(of_image > threshold)
        best = np.sort(np.argsort(-of_image[box, label], kind="stable")[: h.room])
        order = best[np.argsort(label[best], kind="stable")]
        found.put(i, boxes[i, box[order]], of_image[box[order], label[order]], label[order])
    return listed_results(layer, found)


class Lists(NamedTuple):
    """The sizes of layers on lists of boxes by class: images, boxes of the input(s), slots, room for results."""

    images: int
    boxes: tuple[int, ...]
    slots: tuple[int, ...]
    room: int
    out_slots: int


FUSED = 5
"""Lists of a Region: scores, boxes, boxes per class, labels, classes."""


def fused_sizes(layer: Layer) -> Lists:
    if len(layer.inputs) != 10 or len(layer.outputs) != 5:
        raise LayerError("it has ten inputs, two of each kind, and five outputs")
    n = layer.input.shape[0] if layer.input.shape else 0
    if n < 1:
        raise LayerError("its first input has no images")
    sizes = [t.count // n for t in layer.inputs]
    for i in (0, 1):
        if sizes[2 + i] != 4 * sizes[i] or sizes[4 + i] != sizes[6 + i] or sizes[8 + i] != 1:
            raise LayerError(f"its inputs have {sizes} elements of an image, which do not fit")
    room, slots = layer.outputs[0].count // n, layer.outputs[2].count // n
    check_outputs(layer, [(n, room), (n, room, 4), (n, slots), (n, slots), (n, 1)])
    return Lists(n, (sizes[0], sizes[1]), (sizes[4], sizes[5]), room, slots)


def region_fuse(layer: Layer, *given: Array) -> list[Array]:
    """Per class, in ascending order of labels, the boxes of the first list and then those of the second."""
    return fused_lists(layer, fused_sizes(layer), given)


def fused_lists(layer: Layer, s: Lists, given: Sequence[Array]) -> list[Array]:
    scores, boxes, counts, labels, many = (
        [given[2 * kind + i].reshape(s.images, -1) for i in (0, 1)] for kind in range(FUSED)
    )
    found, values = np.zeros((s.images, s.room, 4), boxes[0].dtype), np.zeros((s.images, s.room), scores[0].dtype)
    out_counts, out_labels, out_many = (np.zeros((s.images, n), np.int64) for n in (s.out_slots, s.out_slots, 1))
    for n in range(s.images):
        at, listed, last = 0, 0, -1
        while True:
            numbers = [clipped(int(many[i][n, 0]), s.slots[i]) for i in (0, 1)]
            left = [int(v) for i in (0, 1) for v in labels[i][n, : numbers[i]] if int(v) > last]
            if not left or listed >= s.out_slots:
                break
            last, taken = min(left), 0
            for i in (0, 1):
                first = 0
                for k in range(numbers[i]):
                    size = clipped(int(counts[i][n, k]), s.boxes[i] - first)
                    if int(labels[i][n, k]) == last:
                        fits = min(size, s.room - at)
                        values[n, at : at + fits] = scores[i][n, first : first + fits]
                        found[n, at : at + fits] = boxes[i][n, 4 * first : 4 * (first + fits)].reshape(-1, 4)
                        at, taken = at + fits, taken + fits
                    first += size
            out_counts[n, listed], out_labels[n, listed] = taken, last
            listed += 1
        out_many[n] = listed
    return shaped(layer, [values, found, out_counts, out_labels, out_many])


def clipped(value: int, most: int) -> int:
    return min(max(value, 0), most)


# -- lists


def filter_sizes(layer: Layer) -> Lists:
    if len(layer.inputs) != 5 or len(layer.outputs) != 5:
        raise LayerError("it has the inputs and outputs boxes, scores, boxes per class, labels and classes")
    n = layer.input.shape[0] if layer.input.shape else 0
    if n < 1:
        raise LayerError("its first input has no images")
    for ends in (layer.inputs, layer.outputs):
        sizes = [t.count // n for t in ends]
        if sizes[0] != 4 * sizes[1] or sizes[2] != sizes[3] or sizes[4] != 1:
            raise LayerError(f"its tensors have {sizes} elements of an image, which do not fit")
    boxes, slots = layer.inputs[1].count // n, layer.inputs[2].count // n
    return Lists(n, (boxes,), (slots,), layer.outputs[1].count // n, layer.outputs[2].count // n)


def least(layer: Layer) -> tuple[float, float, float]:
    """(score, height, width) that boxes must exceed, or have at least."""
    value = layer.attributes.get("score_threshold", "-inf")
    score = float(value) if isinstance(value, str) else layer.number("score_threshold")
    sizes = layer.numbers("min_size", [0, 0])
    sizes = sizes * 2 if len(sizes) == 1 else sizes
    if len(sizes) != 2:
        raise LayerError(f"'min_size' has {len(sizes)} values, expected two")
    return score, sizes[0], sizes[1]


def filter_boxes(layer: Layer, boxes: Array, scores: Array, counts: Array, labels: Array, many: Array) -> list[Array]:
    s, (score, high, wide) = filter_sizes(layer), least(layer)
    kind: Any = np.int64 if layer.is_quantised else F
    limit: Any = float if layer.is_quantised else F
    most = min(layer.integer("maxnum", 5000), s.room)
    rows = boxes.reshape(s.images, -1, 4)
    real, values = rows.astype(kind), scores.reshape(s.images, -1)
    counts, labels = counts.reshape(s.images, -1), labels.reshape(s.images, -1)
    found, kept_scores = np.zeros((s.images, s.room, 4), boxes.dtype), np.zeros((s.images, s.room), scores.dtype)
    out_counts, out_labels, out_many = (np.zeros((s.images, n), np.int64) for n in (s.out_slots, s.out_slots, 1))
    for n in range(s.images):
        first = at = listed = 0
        for k in range(clipped(int(many.reshape(-1)[n]), s.slots[0])):
            size = clipped(int(counts[n, k]), s.boxes[0] - first)
            part = slice(first, first + size)
            sides = real[n, part, 2:] - real[n, part, :2]
            good = (
                ((values[n, part].astype(kind) > limit(score)) | np.isneginf(score))  # without a limit also NaN
                & (sides[:, 0] >= limit(high))
                & (sides[:, 1] >= limit(wide))
            )
            kept = (first + np.flatnonzero(good))[: max(most - at, 0)]
            found[n, at : at + len(kept)], kept_scores[n, at : at + len(kept)] = rows[n, kept], values[n, kept]
            at, first = at + len(kept), first + size
            if len(kept) and listed < s.out_slots:
                out_counts[n, listed], out_labels[n, listed] = len(kept), labels[n, k]
                listed += 1
        out_many[n] = listed
    return shaped(layer, [found, kept_scores, out_counts, out_labels, out_many])


def valid_sizes(layer: Layer) -> tuple[int, int, int]:
    if len(layer.inputs) != 1 or len(layer.outputs) != 3 or len(layer.input.shape) != 3:
        raise LayerError("it has one input of three dimensions and three outputs")
    n, a, width = layer.input.shape
    check_outputs(layer, [(n,), (n, a, width), (n, a)])
    at, kind = layer.integer("score_index", 1), layer.integer("id_index", -1)
    if not 0 <= at < width or not -1 <= kind < width:
        raise LayerError(f"'score_index' is {at} and 'id_index' {kind}, but rows have {width} numbers")
    return n, a, width


def get_valid_count(layer: Layer, x: Array) -> list[Array]:
    """Rows whose score is above the threshold and whose id is not negative, one behind the other."""
    n, a, width = valid_sizes(layer)
    at, kind = layer.integer("score_index", 1), layer.integer("id_index", -1)
    threshold = layer.number("score_threshold", 0)
    wide: Array = x.astype(np.int64) if layer.is_quantised else x.astype(F)
    good: Array = wide[..., at] > (threshold if layer.is_quantised else F(threshold))
    if kind >= 0:
        good &= wide[..., kind] >= 0
    data, places, many = np.full((n, a, width), -1, wide.dtype), np.full((n, a), -1, np.int64), good.sum(1)
    for i in range(n):
        kept = np.flatnonzero(good[i])
        data[i, : len(kept)], places[i, : len(kept)] = wide[i, kept], kept
    return shaped(layer, [many, data, places])


def kept_sizes(layer: Layer) -> tuple[int, int, int, int, int]:
    """(images, boxes, places, classes, results) of a PostNMS1."""
    if len(layer.inputs) != 3 or len(layer.outputs) != 2:
        raise LayerError("it has the inputs boxes, kept places and kept boxes per class, and two outputs")
    n = layer.input.shape[0] if layer.input.shape else 0
    if n < 1:
        raise LayerError("its first input has no images")
    boxes, places, classes = (t.count // n for t in layer.inputs)
    room = layer.output.count // n // 4
    check_outputs(layer, [(n, room, 4)] * 2)
    if boxes % 4 or room != layer.integer("proposal_cnt", room):
        raise LayerError(f"'proposal_cnt' and tensors of {boxes} and {4 * room} numbers of an image do not fit")
    return n, boxes // 4, places, classes, room


def image_extent(layer: Layer) -> np.float32:
    return F(max(layer.number("image_height", 600), layer.number("image_width", 600)))


def post_nms(layer: Layer, boxes: Array, keep: Array, kept: Array) -> list[Array]:
    """The boxes at the kept places; a class begins as many places behind the one before as that kept."""
    n, many, places, classes, room = kept_sizes(layer)
    rows, keep, kept = boxes.reshape(n, many, 4).astype(F), keep.reshape(n, places), kept.reshape(n, classes)
    found = np.zeros((n, room, 4), F)
    for i in range(n):
        at = first = 0
        for c in range(classes):
            size = clipped(int(kept[i, c]), places - at)
            for e in range(at, min(at + size, room)):
                found[i, e] = rows[i, clipped(first + int(keep[i, e]), many - 1)]
            at, first = at + size, first + size
    return shaped(layer, [found, found / image_extent(layer)])

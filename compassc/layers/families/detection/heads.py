"""Kernels of YOLO heads and of lists of boxes: the boxes of an image one after the other, images shared by the TECs."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import wide_kind
from compassc.layers.families.detection import fixed_heads
from compassc.layers.families.detection.fixed import fuse_numbers
from compassc.layers.families.detection.texts import list_end, whole_number
from compassc.layers.families.detection.yolo import (
    anchors_of_cells,
    filter_sizes,
    fused_sizes,
    head_of,
    image_extent,
    kept_sizes,
    least,
    shifts,
    valid_sizes,
)
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel
from compassc.layers.vectors import bits_of

REGION = """
lanes = S.vload(counting, lanes=32)
for n in range(S.get_local_id(), images, S.get_local_size()):
    image = x + n * cells * width
    number = S.i32(0)
    for b in range(cells):
        cell = image + b * width
        $totals
        if trust * (1.0 / total) > threshold:
            for j in range(0, classes, 32):
                mask = S.tail_mask(S.min(classes - j, 32), 32)
                power = S.exp(load(cell + (5 + j), mask, "$dtype", 32) - top)
                hit = S.vsel(trust * (power / total), power * 0.0 + lowest, mask) > threshold
                number += across_sum(S.vsel(lanes * 0 + 1, lanes * 0, hit))[0]
    limit = lowest + 0.0
    limit_at = S.i32(0x7FFFFFFF)
    if number > room:
        limit = S.fp32("inf")
        limit_at = S.i32(-1)
        for r in range(room):
            next_score = lowest + 0.0
            next_at = S.i32(0)
            for b in range(cells):
                cell = image + b * width
                $totals
                for c in range(classes):
                    value = trust * (S.exp(S.cast(cell[5 + c], "float32") - top) / total)
                    at = b * classes + c
                    if value > next_score and (value < limit or (value == limit and at > limit_at)):
                        next_score = value + 0.0
                        next_at = at + 0
            limit = next_score + 0.0
            limit_at = next_at + 0
    filled = S.i32(0)
    listed = S.i32(0)
    for c in range(classes):
        count = S.i32(0)
        for b in range(cells):
            cell = image + b * width
            $totals
            value = trust * (S.exp(S.cast(cell[5 + c], "float32") - top) / total)
            if value > threshold and (value > limit or (value == limit and b * classes + c <= limit_at)):
                column = b / boxes % columns
                row = b / (boxes * columns)
                a_x = S.cast(column, "float32") + 1.0 / (1.0 + S.exp(0.0 - S.cast(cell[0], "float32"))) + shift_x
                a_y = S.cast(row, "float32") + 1.0 / (1.0 + S.exp(0.0 - S.cast(cell[1], "float32"))) + shift_y
                mid_x = a_x / real_columns
                mid_y = a_y / real_rows
                side_x = anchors[b % boxes * 2] * S.exp(S.cast(cell[2], "float32")) / real_columns
                side_y = anchors[b % boxes * 2 + 1] * S.exp(S.cast(cell[3], "float32")) / real_rows
                to = (n * room + filled) * 4
                out_boxes[to] = narrow(clamp(mid_y - side_y * 0.5, 0.0, 1.0), "$box_type")
                out_boxes[to + 1] = narrow(clamp(mid_x - side_x * 0.5, 0.0, 1.0), "$box_type")
                out_boxes[to + 2] = narrow(clamp(mid_y + side_y * 0.5, 0.0, 1.0), "$box_type")
                out_boxes[to + 3] = narrow(clamp(mid_x + side_x * 0.5, 0.0, 1.0), "$box_type")
                out_scores[n * room + filled] = narrow(value, "$score_type")
                filled += 1
                count += 1
        if count > 0:
            counts[n * slots + listed] = narrow(count, "$count_type")
            labels[n * slots + listed] = narrow(c + 0, "$label_type")
            listed += 1
    $end
"""
TOTALS = """
trust = 1.0 / (1.0 + S.exp(0.0 - S.cast(cell[4], "float32")))
peak = S.vbcast(lowest, lanes=32)
for j in range(0, classes, 32):
    mask = S.tail_mask(S.min(classes - j, 32), 32)
    peak = S.max(peak, S.vsel(load(cell + (5 + j), mask, "$dtype", 32), peak, mask))
top = across_max(peak)[0]
sums = S.vbcast(S.fp32(0), lanes=32)
for j in range(0, classes, 32):
    mask = S.tail_mask(S.min(classes - j, 32), 32)
    sums = sums + S.vsel(S.exp(load(cell + (5 + j), mask, "$dtype", 32) - top), sums * 0.0, mask)
total = across_sum(sums)[0]
"""


def _floats(layer: Layer, *tensors: Tensor) -> None:
    for t in tensors:
        if wide_kind(t) != "float32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected floats")


@kernel("Region")
def region(layer: Layer) -> Kernel:
    if layer.is_quantised:
        return fixed_heads.region(layer)
    h = head_of(layer)
    down, across = shifts(layer, h)
    out_scores, out_boxes, counts, labels, many = layer.outputs
    _floats(layer, layer.input, out_scores, out_boxes)
    dtype = layer.input.dtype
    totals = [line.replace("$dtype", dtype) for line in TOTALS.strip().splitlines()]
    words: Substitutions = {
        "totals": totals,
        "dtype": dtype,
        "box_type": out_boxes.dtype,
        "score_type": out_scores.dtype,
        "count_type": counts.dtype,
        "label_type": labels.dtype,
        "end": list_end(layer.outputs),
    }
    return script(
        REGION,
        None,
        words,
        x=layer.input,
        out_scores=out_scores,
        out_boxes=out_boxes,
        counts=counts,
        labels=labels,
        many=many,
        counting=np.arange(32, dtype=np.int32),
        anchors=anchors_of_cells(layer, h.boxes).reshape(-1),
        images=h.images,
        cells=h.rows * h.columns * h.boxes,
        width=5 + h.classes,
        classes=h.classes,
        boxes=h.boxes,
        columns=h.columns,
        room=h.room,
        slots=h.slots,
        real_columns=float(h.columns),
        real_rows=float(h.rows),
        shift_x=float(across),
        shift_y=float(down),
        threshold=float(np.float32(layer.number("obj_thresh", 0.3))),
        lowest=-3.4028234663852886e38,
    )


FUSE = """
for n in range(S.get_local_id(), images, S.get_local_size()):
    filled = S.i32(0)
    listed = S.i32(0)
    last = S.i32(-1)
    classes_a = clamp(S.i32(many_a[n]), 0, slots_a)
    classes_b = clamp(S.i32(many_b[n]), 0, slots_b)
    going = S.i32(1)
    while going != 0:
        label = S.i32(0x7FFFFFFF)
        for k in range(classes_a):
            if S.i32(labels_a[n * slots_a + k]) > last:
                label = S.min(label, S.i32(labels_a[n * slots_a + k]))
        for k in range(classes_b):
            if S.i32(labels_b[n * slots_b + k]) > last:
                label = S.min(label, S.i32(labels_b[n * slots_b + k]))
        going = S.i32(0)
        if label != 0x7FFFFFFF and listed < slots:
            going = S.i32(1)
            last = label + 0
            before = filled + 0
            $from_a
            $from_b
            counts[n * slots + listed] = narrow(filled - before, "$count_type")
            labels[n * slots + listed] = narrow(label, "$label_type")
            listed += 1
    $end
"""
FUSE_ONE = """
first_$ = S.i32(0)
for k in range(classes_$):
    size = clamp(S.i32(counts_$[n * slots_$ + k]), 0, number_$ - first_$)
    if S.i32(labels_$[n * slots_$ + k]) == label:
        for e in range(first_$, first_$ + size):
            if filled < room:
                score_$ = scores_$[n * number_$ + e]
                out_scores[n * room + filled] = SCORE
                for i in range(4):
                    side_$ = boxes_$[(n * number_$ + e) * 4 + i]
                    out_boxes[(n * room + filled) * 4 + i] = SIDE
                filled += 1
    first_$ += size
"""


def _fixed_parts(layer: Layer, given: dict[str, Tensor | int]) -> tuple[str, str]:
    """What quantised scores and boxes become."""
    f, (scores, boxes) = fuse_numbers(layer), layer.outputs[:2]
    given |= {"factor_a": f.factors[0], "factor_b": f.factors[1]}
    # x * (2^bits - 1) >> bits, within 32 bits
    score = f"S.i32(score_$) - ((S.i32(score_$) + {(1 << f.bits) - 1}) >> {f.bits})"
    side = f"(S.i32(side_$) * factor_$) >> {f.shift}"
    return (
        f'narrow({score}, "{scores.dtype}")',
        f'narrow(clamp({side}, {boxes.low}, {boxes.high}), "{boxes.dtype}")',
    )


@kernel("RegionFuse")
def region_fuse(layer: Layer) -> Kernel:
    s = fused_sizes(layer)
    out_scores, out_boxes, counts, labels, many = layer.outputs
    given: dict[str, Tensor | int] = {}
    if layer.is_quantised:
        score, side = _fixed_parts(layer, given)
    else:
        _floats(layer, *layer.inputs[:4], out_scores, out_boxes)
        score, side = "score_$", "side_$"
    for i, letter in enumerate("ab"):
        for kind, name in enumerate(("scores", "boxes", "counts", "labels", "many")):
            t = layer.inputs[2 * kind + i]
            if kind < 2 and t.dtype != layer.outputs[kind].dtype and not layer.is_quantised:
                raise LayerError(f"'{t.name}' is {t.dtype}, the output {layer.outputs[kind].dtype}; it keeps the type")
            if kind > 1 and wide_kind(t) != "int32":
                raise LayerError(f"'{t.name}' is {t.dtype}, expected whole numbers")
            given[f"{name}_{letter}"] = t
        given |= {f"slots_{letter}": s.slots[i], f"number_{letter}": s.boxes[i]}
    words: Substitutions = {"count_type": counts.dtype, "label_type": labels.dtype, "end": list_end(layer.outputs)}
    for letter in "ab":
        text = FUSE_ONE.replace("SCORE", score).replace("SIDE", side)
        words[f"from_{letter}"] = text.replace("$", letter).strip().splitlines()
    return script(
        FUSE,
        None,
        words,
        out_scores=out_scores,
        out_boxes=out_boxes,
        counts=counts,
        labels=labels,
        many=many,
        images=s.images,
        room=s.room,
        slots=s.out_slots,
        **given,
    )


FILTER = """
for n in range(S.get_local_id(), images, S.get_local_size()):
    filled = S.i32(0)
    listed = S.i32(0)
    first = S.i32(0)
    for k in range(clamp(S.i32(classes[n]), 0, in_slots)):
        size = clamp(S.i32(per_class[n * in_slots + k]), 0, number - first)
        before = filled + 0
        for e in range(first, first + size):
            at = n * number + e
            value = $score
            high = $high
            wide_ = $wide
            if $above high >= least_high and wide_ >= least_wide and filled < most:
                out_scores[n * room + filled] = scores[at]
                for i in range(4):
                    out_boxes[(n * room + filled) * 4 + i] = boxes[at * 4 + i]
                filled += 1
        if filled > before and listed < slots:
            counts[n * slots + listed] = narrow(filled - before, "$count_type")
            labels[n * slots + listed] = narrow(S.i32(in_labels[n * in_slots + k]), "$label_type")
            listed += 1
        first += size
    $end
"""


@kernel("FilterBoxes")
def filter_boxes(layer: Layer) -> Kernel:
    s, (score, high, wide) = filter_sizes(layer), least(layer)
    boxes, scores, per_class, in_labels, classes = layer.inputs
    out_boxes, out_scores, counts, labels, many = layer.outputs
    if boxes.dtype != out_boxes.dtype or scores.dtype != out_scores.dtype:
        raise LayerError("boxes and scores keep their types")
    quantised = layer.is_quantised
    if not quantised:
        _floats(layer, boxes, scores)
    for t in (per_class, in_labels, classes):
        if wide_kind(t) != "int32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected whole numbers")
    one = "S.i32({})" if quantised else 'S.cast({}, "float32")'
    far = boxes.is_integer and boxes.high - boxes.low >= 2**31
    less = "S.vsub(S.vbcast({}, lanes=8), S.vbcast({}, lanes=8), saturate=True)[0]" if far else "{} - {}"
    y0, x0, y1, x1 = (one.format(f"boxes[at * 4 + {i}]") for i in range(4))
    words: Substitutions = {"high": less.format(y1, y0), "wide": less.format(x1, x0)}
    bounded = bool(np.isfinite(score))
    words |= {
        "score": one.format("scores[at]"),
        "above": "value > threshold and" if bounded else "",
        "count_type": counts.dtype,
        "label_type": labels.dtype,
        "end": list_end((out_scores, out_boxes, counts, labels, many)),
    }
    given: dict[str, float | int] = (
        {"threshold": int(np.floor(score)) if quantised else float(np.float32(score))} if bounded else {}
    )
    given |= {
        "least_high": int(np.ceil(high)) if quantised else float(high),
        "least_wide": int(np.ceil(wide)) if quantised else float(wide),
    }
    return script(
        FILTER,
        None,
        words,
        boxes=boxes,
        scores=scores,
        per_class=per_class,
        in_labels=in_labels,
        classes=classes,
        out_boxes=out_boxes,
        out_scores=out_scores,
        counts=counts,
        labels=labels,
        many=many,
        images=s.images,
        number=s.boxes[0],
        in_slots=s.slots[0],
        room=s.room,
        slots=s.out_slots,
        most=max(min(layer.integer("maxnum", 5000), s.room), 0),
        **given,
    )


VALID = """
for n in range(S.get_local_id(), images, S.get_local_size()):
    filled = S.i32(0)
    for r in range(rows):
        row = x + (n * rows + r) * width
        if $score > threshold$known:
            for e in range(width):
                y[(n * rows + filled) * width + e] = row[e]
            places[n * rows + filled] = narrow(r + 0, "$place_type")
            filled += 1
    many[n] = $count
    for z in range(filled, rows):
        places[n * rows + z] = narrow(S.i32(-1), "$place_type")
        for e in range(width):
            y[(n * rows + z) * width + e] = $nothing
"""


@kernel("GetValidCount")
def get_valid_count(layer: Layer) -> Kernel:
    n, rows, width = valid_sizes(layer)
    x, (many, y, places) = layer.input, layer.outputs
    if x.dtype != y.dtype or wide_kind(places) != "int32":
        raise LayerError(f"{x.dtype} to {y.dtype} with places of {places.dtype} has no kernel")
    if y.is_integer and y.low > -1 or places.low > -1:
        raise LayerError("unsigned types have no -1, which fills the rows that are not taken")
    bits_of(x.dtype)
    kind = layer.integer("id_index", -1)
    one = "S.i32(row[{}])" if layer.is_quantised else 'S.cast(row[{}], "float32")'
    nil = "0" if layer.is_quantised else "0.0"
    words: Substitutions = {
        "score": one.format("score_at"),
        "known": f" and {one.format('id_at')} >= {nil}" if kind >= 0 else "",
        "place_type": places.dtype,
        "count": whole_number(many, "filled"),
        "nothing": f'narrow(S.cast(-1, "{wide_kind(y)}"), "{y.dtype}")',
    }
    threshold = layer.number("score_threshold", 0)
    given: dict[str, float | int] = {"id_at": kind} if kind >= 0 else {}
    given["threshold"] = int(np.floor(threshold)) if layer.is_quantised else float(np.float32(threshold))
    return script(
        VALID,
        None,
        words,
        x=x,
        y=y,
        many=many,
        places=places,
        images=n,
        rows=rows,
        width=width,
        score_at=layer.integer("score_index", 1),
        **given,
    )


POST = """
for n in range(S.get_local_id(), images, S.get_local_size()):
    filled = S.i32(0)
    for c in range(classes):
        first = filled + 0
        size = clamp(S.i32(kept[n * classes + c]), 0, places - filled)
        for e in range(first, first + size):
            if e < room:
                at = n * number + clamp(first + S.i32(keep[n * places + e]), 0, number - 1)
                for i in range(4):
                    value = S.cast(boxes[at * 4 + i], "float32")
                    y[(n * room + e) * 4 + i] = narrow(value, "$y")
                    part[(n * room + e) * 4 + i] = narrow(value / extent, "$part")
        filled += size
    for z in range(S.min(filled, room) * 4, room * 4):
        y[n * room * 4 + z] = narrow(S.fp32(0), "$y")
        part[n * room * 4 + z] = narrow(S.fp32(0), "$part")
"""


@kernel("PostNMS1")
def post_nms(layer: Layer) -> Kernel:
    n, many, places, classes, room = kept_sizes(layer)
    boxes, keep, kept = layer.inputs
    y, part = layer.outputs
    _floats(layer, boxes, y, part)
    for t in (keep, kept):
        if wide_kind(t) != "int32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected whole numbers")
    return script(
        POST,
        None,
        {"y": y.dtype, "part": part.dtype},
        boxes=boxes,
        keep=keep,
        kept=kept,
        y=y,
        part=part,
        images=n,
        number=many,
        places=places,
        classes=classes,
        room=room,
        extent=float(image_extent(layer)),
    )

"""The kernel of a quantised YOLO head: every TEC goes through the cells of its images two or three times."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.emit import wide_kind
from compassc.layers.families.detection.fixed import (
    SCORE_BITS,
    TRUST_BITS,
    FixedHead,
    head_anchors,
    head_numbers,
    head_tables,
)
from compassc.layers.families.detection.selecting import Lines, list_end
from compassc.layers.scripts import Substitutions, filled, script
from compassc.layers.source import Kernel

MOST = 2048
"""Classes whose numbers of boxes fit LSRAM."""
LARGEST = 1 << 30
"""Sizes of boxes from which on both corners lie at the ends of the image."""

REGION = """
powers = S.alloc(256, "int32", scope="lsram")
many_of = S.alloc(256, "int32", scope="lsram")
next_of = S.alloc($most, "int32", scope="lsram")
S.dma_copy(powers, power_table, 256)
lanes = S.vload(counting, lanes=32)
for n in range(S.get_local_id(), images, S.get_local_size()):
    image = x + n * cells * width
    for v in range(256):
        many_of[v] = S.i32(0)
    for c in range(classes):
        next_of[c] = S.i32(0)
    number = S.i32(0)
    $count_scores
    level = S.i32(0)
    equal = number + 0
    if number > room:
        above = S.i32(0)
        for v in range(256):
            if level == 0 and above + many_of[255 - v] >= room:
                level = 255 - v
                equal = room - above
            above += many_of[255 - v]
    left = equal + 0
    if number > 0:
        $count_classes
    filled = S.i32(0)
    listed = S.i32(0)
    for c in range(classes):
        count = next_of[c] + 0
        next_of[c] = filled + 0
        filled += count
        if count > 0:
            counts[n * slots + listed] = narrow(count, "$count_type")
            labels[n * slots + listed] = narrow(c + 0, "$label_type")
            listed += 1
    left = equal + 0
    if filled > 0:
        $store
    $end
"""

CELLS = """
for b in range(cells):
    cell = image + b * width
    trust = S.i32(trusts[S.i32(cell[4]) + first])
    if trust > 0:
        peak = S.vbcast(S.i32(-0x7FFFFFFF), lanes=32)
        for j in range(0, classes, 32):
            mask = S.tail_mask(S.min(classes - j, 32), 32)
            peak = S.max(peak, S.vsel(load(cell + (5 + j), mask, "$dtype", 32), peak, mask))
        top = across_max(peak)[0] - 255
        sums = S.vbcast(S.i32(0), lanes=32)
        for j in range(0, classes, 32):
            mask = S.tail_mask(S.min(classes - j, 32), 32)
            power = entry_of(powers, load(cell + (5 + j), mask, "$dtype", 32) - top, mask)
            sums = sums + S.vsel(power, lanes * 0, mask)
        total = across_sum(sums)[0]
        limit = (total >> $bits) * threshold + (((total & $part) * threshold) >> $bits)
        for j in range(0, classes, 32):
            mask = S.tail_mask(S.min(classes - j, 32), 32)
            power = entry_of(powers, load(cell + (5 + j), mask, "$dtype", 32) - top, mask)
            seen = (power >> $trust) * trust + (((power & $below) * trust) >> $trust)
            if S.vany(S.vsel(seen, lanes * 0, mask) > limit):
                for e in range(S.min(classes - j, 32)):
                    c = j + e
                    one = powers[S.i32(cell[5 + c]) - top] + 0
                    trusted = (one >> $trust) * trust + (((one & $below) * trust) >> $trust)
                    score = S.i32(0)
                    if trusted > limit:
                        score = trusted * 255 / total
                    if score > 0:
                        $action
"""
"""What is done with each class of a cell whose score is above the threshold; `trust` and `total` are positive there."""

COUNT_SCORES: Lines = ["many_of[score] = many_of[score] + 1", "number += 1"]
TAKEN: Lines = ["if score > level or (score == level and left > 0):", "    if score == level:", "        left -= 1"]
"""Whether there is room for a box: of those with the lowest score taken the first are."""
COUNT_CLASSES: Lines = [*TAKEN, "    next_of[c] = next_of[c] + 1"]


def _cells(action: Lines, words: Substitutions) -> Lines:
    given: Substitutions = {**words, "action": action}
    return [line for raw in CELLS.strip("\n").splitlines() for line in filled(raw, given)]


def _store(f: FixedHead, box: str, score: str, score_high: int) -> Lines:
    """Lines that store box `b` of class `c` at the next place of the class."""
    lines = [*TAKEN, "    at = n * room + next_of[c]", "    next_of[c] = next_of[c] + 1"]
    places = (("x", 0, "b / boxes % columns"), ("y", 1, "b / (boxes * columns)"))
    for a, i, cell in places:
        lines += [
            f"    moved_{a} = (({cell}) << {f.cell[i]}) + S.i32(places[S.i32(cell[{i}]) + first])",
            f"    middle_{a} = (moved_{a} * grid_{a}) >> {f.part[i]}",
            f"    side_{a} = S.min(sides[S.i32(cell[{2 + i}]) + first], most_sides[b % boxes * 2 + {i}])",
            f"    half_{a} = scaled_floor(side_{a}, anchors[b % boxes * 2 + {i}], {f.anchor[i]}) >> 1",
        ]
    for e, (a, i, sign) in enumerate((("y", 1, "-"), ("x", 0, "-"), ("y", 1, "+"), ("x", 0, "+"))):
        corner = f"clamp(middle_{a} {sign} half_{a}, 0, {1 << f.cell[i]})"
        lines.append(f'    out_boxes[at * 4 + {e}] = narrow({corner}, "{box}")')
    return [*lines, f'    out_scores[at] = narrow(S.min(score, {score_high}), "{score}")']


def region(layer: Layer) -> Kernel:
    f, tables = head_numbers(layer), head_tables(layer)
    h = f.sizes
    out_scores, out_boxes, counts, labels, many = layer.outputs
    for t in (counts, labels, many):
        if wide_kind(t) != "int32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected whole numbers")
    if out_boxes.high < max(1 << c for c in f.cell):
        raise LayerError(f"'{out_boxes.name}' is {out_boxes.dtype}, expected a type that holds {1 << max(f.cell)}")
    if h.classes > MOST:
        raise LayerError(f"{h.classes} classes do not fit LSRAM; it takes {MOST}")
    anchors = np.asarray([(head_anchors(layer, h.boxes)[:, i] * f.grid[i]) >> f.part[i] for i in (0, 1)]).T
    if anchors.max(initial=0) > 65535:
        raise LayerError(f"anchors times 'grid_w_scale' and 'grid_h_scale' are up to {anchors.max()}, expected 16 bits")
    sides = (tables["wh_exp_lut"] * f.scale) >> f.shift
    most_sides = (LARGEST << np.asarray(f.anchor)) // np.maximum(anchors, 1)
    cells: Substitutions = {
        "dtype": layer.input.dtype,
        "bits": str(SCORE_BITS),
        "part": str((1 << SCORE_BITS) - 1),
        "trust": str(TRUST_BITS),
        "below": str((1 << TRUST_BITS) - 1),
    }
    words: Substitutions = {
        "most": str(-(-h.classes // 32) * 32),
        "count_scores": _cells(COUNT_SCORES, cells),
        "count_classes": _cells(COUNT_CLASSES, cells),
        "store": _cells(_store(f, out_boxes.dtype, out_scores.dtype, out_scores.high), cells),
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
        power_table=tables["score_softmax_lut"].astype(np.int32),
        trusts=tables["conf_sigmoid_lut"].astype(np.uint16),
        places=tables["xy_sigmoid_lut"].astype(np.int16),
        sides=np.minimum(sides, 2**31 - 1).astype(np.int32),
        anchors=anchors.astype(np.int32).reshape(-1),
        most_sides=np.minimum(most_sides, 2**31 - 1).astype(np.int32).reshape(-1),
        images=h.images,
        cells=h.rows * h.columns * h.boxes,
        width=5 + h.classes,
        classes=h.classes,
        boxes=h.boxes,
        columns=h.columns,
        room=h.room,
        slots=h.slots,
        grid_x=f.grid[0],
        grid_y=f.grid[1],
        first=128 if layer.input.integer.signed else 0,
        threshold=f.threshold,
    )

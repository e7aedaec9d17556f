"""The kernel of a quantised YOLO head: every TEC goes through the cells of its images two or three times."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.emit import wide_kind
from compassc.layers.families.detection.fixed import (
    TRUST_BITS,
    FixedHead,
    head_anchors,
    head_numbers,
    head_tables,
)
from compassc.layers.families.detection.texts import Lines, entry_lines, list_end
from compassc.layers.scripts import Substitutions, filled, script
from compassc.layers.source import Kernel

MOST = 2048
"""Classes whose numbers of boxes fit LSRAM."""
ENTRIES = 1024
"""Entries of the table of exponentials that fit LSRAM."""
LARGEST = 1 << 30
"""Sizes of boxes from which on both corners lie at the ends of the image."""

REGION = """
powers = S.alloc($entries, "int32", scope="lsram")
many_of = S.alloc(256, "int32", scope="lsram")
next_of = S.alloc($most, "int32", scope="lsram")
S.dma_copy(powers, power_table, $entries)
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
        $find_level
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
    $trusted_cell
    if trust > 0:
        peak = S.vbcast(S.i32(-0x7FFFFFFF), lanes=32)
        for j in range(0, classes, 32):
            mask = S.tail_mask(S.min(classes - j, 32), 32)
            peak = S.max(peak, S.vsel(load(cell + (5 + j), mask, "$dtype", 32), peak, mask))
        top = across_max(peak)[0] - $largest
        sums = S.vbcast(S.i32(0), lanes=32)
        for j in range(0, classes, 32):
            mask = S.tail_mask(S.min(classes - j, 32), 32)
            $powers
            sums = sums + S.vsel(power, lanes * 0, mask)
        total = across_sum(sums)[0]
        limit = scaled_floor(total, threshold, $bits)
        for j in range(0, classes, 32):
            mask = S.tail_mask(S.min(classes - j, 32), 32)
            $powers
            seen = (power >> $trust) * trust + (((power & $below) * trust) >> $trust)
            if S.vany(S.vsel(seen, lanes * 0, mask) > limit):
                for e in range(S.min(classes - j, 32)):
                    c = j + e
                    $one
                    trusted = (one >> $trust) * trust + (((one & $below) * trust) >> $trust)
                    score = S.i32(0)
                    if trusted > limit:
                        $score
                    if score > 0:
                        $action
"""
"""What is done with each class of a cell whose score is above the threshold; `trust` and `total` are positive there."""

COUNT = {
    8: ["many_of[score] = many_of[score] + 1", "number += 1"],
    16: ["many_of[score >> 8] = many_of[score >> 8] + 1", "number += 1"],
}
"""Lines that count a score: of 16 bits by the upper 8 first."""
FIND = """
above = S.i32(0)
found = S.i32(-1)
for v in range(256):
    if found < 0 and above + many_of[255 - v] >= room:
        found = 255 - v
        equal = room - above
    above += many_of[255 - v]
"""
"""The score from which on there is no room for all, and for how many with this score there is."""
FIND_LOW = """
upper = found + 0
before = room - equal
for v in range(256):
    many_of[v] = S.i32(0)
$count_lower
above = before + 0
found = S.i32(-1)
for v in range(256):
    if found < 0 and above + many_of[255 - v] >= room:
        found = 255 - v
        equal = room - above
    above += many_of[255 - v]
level = upper * 256 + found
"""
COUNT_LOWER: Lines = ["if score >> 8 == upper:", "    many_of[score & 255] = many_of[score & 255] + 1"]
SCORE = {
    8: ["score = trusted * 255 / total"],
    16: [
        'rest = S.cast(trusted, "uint32")',
        'whole = S.cast(total, "uint32")',
        "for k in range(16):",
        "    rest = rest << S.u32(1)",
        "    score = score * 2",
        "    if rest >= whole:",
        "        rest = rest - whole",
        "        score += 1",
        'if rest < S.cast(trusted, "uint32"):',
        "    score = score - 1",
    ],
}
"""Lines of trusted * (2^bits - 1) / total: with 16 bits times 2^16 bit by bit, and less one part."""
TAKEN: Lines = ["if score > level or (score == level and left > 0):", "    if score == level:", "        left -= 1"]
"""Whether there is room for a box: of those with the lowest score taken the first are."""
COUNT_CLASSES: Lines = [*TAKEN, "    next_of[c] = next_of[c] + 1"]


def _cells(action: Lines, words: Substitutions) -> Lines:
    given: Substitutions = {**words, "action": action}
    return [line for raw in CELLS.strip("\n").splitlines() for line in filled(raw, given)]


def _store(f: FixedHead, extra: dict[str, int], box: str, score: str, score_high: int) -> Lines:
    """Lines that store box `b` of class `c` at the next place of the class."""
    lines = ["at = n * room + next_of[c]", "next_of[c] = next_of[c] + 1"]
    places = (("x", 0, "b / boxes % columns"), ("y", 1, "b / (boxes * columns)"))
    for a, i, cell in places:
        lines += [
            *entry_lines(f"moved_{a}", "places", f"S.i32(cell[{i}]) + first", extra["xy_sigmoid_lut"]),
            f"moved_{a} = (({cell}) << {f.cell[i]}) + moved_{a}",
            f"middle_{a} = (moved_{a} * grid_{a}) >> {f.part[i]}",
            *entry_lines(f"side_{a}", "sides", f"S.i32(cell[{2 + i}]) + first", extra["wh_exp_lut"]),
            f"side_{a} = S.min(scaled_floor(side_{a}, side_scale, {f.shift}), most_sides[b % boxes * 2 + {i}])",
            f"half_{a} = scaled_floor(side_{a}, anchors[b % boxes * 2 + {i}], {f.anchor[i]}) >> 1",
        ]
    for e, (a, i, sign) in enumerate((("y", 1, "-"), ("x", 0, "-"), ("y", 1, "+"), ("x", 0, "+"))):
        corner = f"clamp(middle_{a} {sign} half_{a}, 0, {1 << f.cell[i]})"
        lines.append(f'out_boxes[at * 4 + {e}] = narrow({corner}, "{box}")')
    lines.append(f'out_scores[at] = narrow(S.min(score, {score_high}), "{score}")')
    return [*TAKEN, *("    " + line for line in lines)]


def _power_lines(dtype: str, entries: int, extra: int) -> tuple[Lines, Lines]:
    """(`power`: of 32 classes, `one`: of class `c`): entries of the table of exponentials in LSRAM."""
    if extra <= 0:
        raw = f'load(cell + (5 + j), mask, "{dtype}", 32) - top'
        return [f"power = entry_of(powers, {raw}, mask)"], ["one = powers[S.i32(cell[5 + c]) - top] + 0"]
    vector = [
        f'power = load(cell + (5 + j), mask, "{dtype}", 32) - top',
        f"look_up(power, powers, {extra}, {entries - 1}, mask)",
    ]
    return vector, entry_lines("one", "powers", "S.i32(cell[5 + c]) - top", extra, entries - 1)


def _check(layer: Layer, f: FixedHead) -> None:
    _, out_boxes, counts, labels, many = layer.outputs
    for t in (counts, labels, many):
        if wide_kind(t) != "int32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected whole numbers")
    if out_boxes.high < max(1 << c for c in f.cell):
        raise LayerError(f"'{out_boxes.name}' is {out_boxes.dtype}, expected a type that holds {1 << max(f.cell)}")
    if f.sizes.classes > MOST:
        raise LayerError(f"{f.sizes.classes} classes do not fit LSRAM; it takes {MOST}")


def _words(layer: Layer, f: FixedHead, tables: dict[str, Array]) -> Substitutions:
    out_scores, out_boxes, counts, labels, _ = layer.outputs
    extra = {key: f.bits - (table.size.bit_length() - 1) for key, table in tables.items()}
    entries = tables["score_softmax_lut"].size
    if entries > ENTRIES:
        raise LayerError(f"the table 'score_softmax_lut' has {entries} entries, of which {ENTRIES} fit LSRAM")
    powers, one = _power_lines(layer.input.dtype, entries, extra["score_softmax_lut"])
    cells: Substitutions = {
        "dtype": layer.input.dtype,
        "bits": str(f.bits),
        "largest": str((1 << f.bits) - 1),
        "trust": str(TRUST_BITS),
        "below": str((1 << TRUST_BITS) - 1),
        "trusted_cell": entry_lines("trust", "trusts", "S.i32(cell[4]) + first", extra["conf_sigmoid_lut"]),
        "powers": powers,
        "one": one,
        "score": SCORE[f.bits],
    }
    find = FIND.strip("\n").splitlines()
    if f.bits > 8:
        for raw in FIND_LOW.strip("\n").splitlines():
            find += filled(raw, {"count_lower": _cells(COUNT_LOWER, cells)})
    else:
        find.append("level = found + 0")
    return {
        "most": str(-(-f.sizes.classes // 32) * 32),
        "entries": str(entries),
        "count_scores": _cells(COUNT[f.bits], cells),
        "find_level": find,
        "count_classes": _cells(COUNT_CLASSES, cells),
        "store": _cells(_store(f, extra, out_boxes.dtype, out_scores.dtype, out_scores.high), cells),
        "count_type": counts.dtype,
        "label_type": labels.dtype,
        "end": list_end(layer.outputs),
    }


def _sides(f: FixedHead, table: Array) -> Array:
    """The table of sizes; entries with which a size would leave 32 bits lie at both ends of the image anyway."""
    most = ((2**31 - 1) << f.shift) // max(f.scale, 1)
    if f.bits > 8 and table.max() > most:
        raise LayerError(f"'wh_exp_scale' {f.scale} and 'wh_exp_shift' {f.shift} lead to sizes beyond 32 bits")
    return np.minimum(table, most)


def _closed(table: Array, dtype: type[np.generic]) -> Array:
    """A table with a copy of its last entry."""
    return np.append(table, table[-1]).astype(dtype)


def region(layer: Layer) -> Kernel:
    f, tables = head_numbers(layer), head_tables(layer)
    h = f.sizes
    _check(layer, f)
    out_scores, out_boxes, counts, labels, many = layer.outputs
    anchors = np.asarray([(head_anchors(layer, h.boxes)[:, i] * f.grid[i]) >> f.part[i] for i in (0, 1)]).T
    if anchors.max(initial=0) > 65535:
        raise LayerError(f"anchors times 'grid_w_scale' and 'grid_h_scale' are up to {anchors.max()}, expected 16 bits")
    most_sides = (LARGEST << np.asarray(f.anchor)) // np.maximum(anchors, 1)
    return script(
        REGION,
        None,
        _words(layer, f, tables),
        x=layer.input,
        out_scores=out_scores,
        out_boxes=out_boxes,
        counts=counts,
        labels=labels,
        many=many,
        counting=np.arange(32, dtype=np.int32),
        power_table=tables["score_softmax_lut"].astype(np.int32),
        trusts=_closed(tables["conf_sigmoid_lut"], np.uint16),
        places=_closed(tables["xy_sigmoid_lut"], np.int16),
        sides=_closed(_sides(f, tables["wh_exp_lut"]), np.uint16),
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
        side_scale=f.scale,
        first=1 << (f.bits - 1) if layer.input.integer.signed else 0,
        threshold=f.threshold,
    )

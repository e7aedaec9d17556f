"""Kernels that go through scores, 32 boxes at a time, and decode the boxes that are kept, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import wide_kind
from compassc.layers.families.detection.boxes import Decode, detection_sizes
from compassc.layers.scripts import Substitutions, filled, script
from compassc.layers.source import Kernel

Lines = list[str]
Numbers = dict[str, "float | int | Array | Tensor"]

SELECT = """
lanes = S.vload(counting, lanes=32)
for n in range(S.get_local_id(), images, S.get_local_size()):
    own = scores + (n * number * columns + skipped)
    filled = S.i32(0)
    listed = S.i32(0)
    $before
    for c in range(classes):
        count = S.i32(0)
        $each
        $listing
    $end
"""

SCAN = """
for j in range(0, number, 32):
    mask = S.tail_mask(S.min(number - j, 32), 32)
    seen = $column
    if filled < room and S.vany(seen > threshold):
        for e in range(S.min(number - j, 32)):
            b = j + e
            value = $value
            if value > threshold and filled < room:
                $emit
                count += 1
                filled += 1
"""

COUNT_HITS = """
hits = S.vbcast(S.i32(0), lanes=32)
for c in range(classes):
    for j in range(0, number, 32):
        mask = S.tail_mask(S.min(number - j, 32), 32)
        seen = $column
        hits = hits + S.vsel(lanes * 0 + 1, lanes * 0, seen > threshold)
crowded = across_sum(hits)[0] > room
limit = $lowest
limit_at = S.i32(-1)
if crowded:
    for r in range(room):
        last = limit + $nil
        last_at = limit_at + 0
        next_low = S.i32(0)
        next_high = classes + 0
        $next
        limit = found + $nil
        limit_at = found_at + 0
"""

NEXT = """
best = S.vbcast($highest, lanes=32)
place = S.vbcast(S.i32(0x7FFFFFFF), lanes=32)
for q in range(next_low, next_high):
    for j in range(0, number, 32):
        mask = S.tail_mask(S.min(number - j, 32), 32)
        seen = $of_q
        at = (lanes + j) * columns + q
        behind = (seen > last) | ((seen == last) & (at > last_at))
        open_ = S.vsel(seen, S.vbcast($highest, lanes=32), behind & (seen > threshold))
        better = (open_ < best) | ((open_ == best) & (at < place))
        place = S.vsel(at, place, better)
        best = S.vsel(open_, best, better)
low = across_min(best)
found_at = across_min(S.vsel(place, S.vbcast(S.i32(0x7FFFFFFF), lanes=32), best == low))[0]
found = low[0]
"""

IN_ORDER = """
last = $lowest
last_at = S.i32(-1)
going = S.i32(1)
while going != 0:
    next_low = c + 0
    next_high = c + 1
    $next
    going = S.i32(0)
    if found < $highest and (found < limit or (found == limit and found_at <= limit_at)):
        going = S.i32(1)
        last = found + $nil
        last_at = found_at + 0
        b = found_at / columns
        value = found + $nil
        $emit
        count += 1
        filled += 1
"""


def _lines(text: str, words: Substitutions) -> Lines:
    """The lines of a part of a text, with its words."""
    return [line for raw in text.strip("\n").splitlines() for line in filled(raw, words)]


def _scores(scores: Tensor, quantised: bool, zero: int) -> Substitutions:
    if quantised and scores.integer.bits > 16:
        raise LayerError(f"'{scores.name}' is {scores.dtype}, but quantised scores have at most 16 bits")
    more = f" + {zero}" if zero else ""
    low, high = ("S.i32(-0x7FFFFFFF)", "S.i32(0x7FFFFFFF)") if quantised else ('S.fp32("-inf")', 'S.fp32("inf")')
    raw = f'wide(S.vload(own + (j * columns + {{}}), mask, lanes=32, stride=$columns), "{scores.dtype}"){more}'
    column = f"S.vsel({raw}, S.vbcast({low}, lanes=32), mask)".replace("$columns", "columns")
    element = "own[b * columns + c]"
    value = f"S.i32({element}){more}" if quantised else f'S.cast({element}, "float32")'
    return {
        "column": column.format("c"),
        "of_q": column.format("q"),
        "value": value,
        "lowest": low,
        "highest": high,
        "nil": "0" if quantised else "0.0",
    }


def selecting(
    layer: Layer,
    s: Decode,
    emit: Lines,
    listing: Lines,
    end: Lines,
    arguments: Numbers,
    threshold: float,
    lowest: bool = False,
    zero: int = 0,
) -> Kernel:
    """The kernel of boxes selected by class and score: `emit` stores box `b` of class `c` with its `value`."""
    scores, quantised = layer.input, layer.is_quantised
    words = _scores(scores, quantised, zero) | {"emit": emit}
    words["next"] = _lines(NEXT, words)
    scan = _lines(SCAN, words)
    before: Lines = []
    if lowest:
        before = _lines(COUNT_HITS, words)
        scan = [
            "if crowded:",
            *("    " + line for line in _lines(IN_ORDER, words)),
            "else:",
            *("    " + line for line in scan),
        ]
    words |= {"before": before, "each": scan, "listing": listing, "end": end}
    given: Numbers = {"threshold": int(threshold) if quantised else float(np.float32(threshold))}
    return script(
        SELECT,
        None,
        words,
        scores=scores,
        counting=np.arange(32, dtype=np.int32),
        images=s.images,
        number=s.boxes,
        columns=s.columns,
        skipped=s.skipped,
        classes=s.columns - s.skipped,
        room=s.room,
        **arguments,
        **given,
    )


def zeros(tensor: Tensor, at: str) -> str:
    return f'{at} = narrow(S.cast(0, "{wide_kind(tensor)}"), "{tensor.dtype}")'


def stores(boxes: Tensor, scores: Tensor, order: Sequence[int] = (0, 1, 2, 3)) -> Lines:
    lines = ["to = n * room + filled"]
    for e, i in enumerate(order):
        name = ("y0", "x0", "y1", "x1")[i]
        if boxes.is_integer:
            name = f"clamp({name}, {boxes.low}, {boxes.high})"
        lines.append(f'out_boxes[to * 4 + {e}] = narrow({name}, "{boxes.dtype}")')
    value = f"clamp(value, {scores.low}, {scores.high})" if scores.is_integer else "value"
    return [*lines, f'out_scores[to] = narrow({value}, "{scores.dtype}")']


def per_class(counts: Tensor, labels: Tensor) -> Lines:
    return [
        "if count > 0:",
        f'    counts[n * slots + listed] = narrow(count, "{counts.dtype}")',
        f'    labels[n * slots + listed] = narrow(c + 0, "{labels.dtype}")',
        "    listed += 1",
    ]


def rest(boxes: Tensor, scores: Tensor) -> Lines:
    """Lines that fill what no box took."""
    return [
        "for z in range(filled, room):",
        "    for e in range(4):",
        "        " + zeros(boxes, "out_boxes[(n * room + z) * 4 + e]"),
        "    " + zeros(scores, "out_scores[n * room + z]"),
    ]


def classes_end(counts: Tensor, labels: Tensor, many: Tensor) -> Lines:
    return [
        f'many[n] = narrow(listed, "{many.dtype}")',
        "for z in range(listed, slots):",
        "    " + zeros(counts, "counts[n * slots + z]"),
        "    " + zeros(labels, "labels[n * slots + z]"),
    ]


def list_end(outputs: Sequence[Tensor]) -> Lines:
    """Lines that store how many classes are listed, and fill what nothing took."""
    scores, boxes, counts, labels, many = outputs
    return [
        f'many[n] = narrow(listed, "{many.dtype}")',
        "for z in range(listed, slots):",
        "    " + zeros(counts, "counts[n * slots + z]"),
        "    " + zeros(labels, "labels[n * slots + z]"),
        "for z in range(filled, room):",
        "    " + zeros(scores, "out_scores[n * room + z]"),
        "    for e in range(4):",
        "        " + zeros(boxes, "out_boxes[(n * room + z) * 4 + e]"),
    ]


def same_kinds(layer: Layer, boxes: Tensor, scores: Tensor, whole: Sequence[Tensor]) -> None:
    for t in whole:
        if wide_kind(t) not in ("int32", "float32"):
            raise LayerError(f"'{t.name}' is {t.dtype}")
    kind = "int32" if layer.is_quantised else "float32"
    for t in (*layer.inputs, boxes, scores):
        if wide_kind(t) != kind:
            raise LayerError(f"'{t.name}' is {t.dtype}, which has no kernel here")


def whole_number(tensor: Tensor, name: str) -> str:
    """A count as it is stored."""
    return (
        f'S.cast(S.cast({name}, "float32"), "{tensor.dtype}")'
        if not tensor.is_integer
        else f'narrow({name}, "{tensor.dtype}")'
    )


def table_lines(layer: Layer, key: str, name: str, raw: str, of: Tensor, given: Numbers) -> Lines:
    """`name`: the entry of a table at a quantised value, between entries rounded down."""
    table = layer.constant(key).reshape(-1)
    size, bits = table.size, of.integer.bits
    whole = table.dtype.kind in "iu" and size == 1 << (size.bit_length() - 1)
    if not whole or not -32768 <= int(table.min()) <= int(table.max()) <= 32767:
        raise LayerError(f"the table '{key}' has {size} entries of {table.dtype}, expected a power of two of 16 bits")
    given |= {key: np.append(table, table[-1]).astype(np.int16)}
    if bits > 16:
        raise LayerError(f"'{of.name}' is {of.dtype}, but indices of the table '{key}' have at most 16 bits")
    place = f"S.i32({raw})" + (f" + {1 << (bits - 1)}" if of.integer.signed else "")
    return entry_lines(name, key, place, bits - (size.bit_length() - 1))


def entry_lines(name: str, table: str, at: str, extra: int, last: int | None = None) -> Lines:
    """`name`: the entry of a table at an index from 0, with `extra` bits between entries, rounded down there.

    `last`: the last entry's place in a table that does not end with a copy of it.
    """
    if extra <= 0:
        return [f"{name} = S.i32({table}[{at}])"]
    following = f"(at_{name} >> {extra}) + 1"
    return [
        f"at_{name} = {at}",
        f"low_{name} = S.i32({table}[at_{name} >> {extra}])",
        f"step_{name} = S.i32({table}[{following if last is None else f'S.min({following}, {last})'}]) - low_{name}",
        f"{name} = low_{name} + ((step_{name} * (at_{name} & {(1 << extra) - 1})) >> {extra})",
    ]


class Frame(NamedTuple):
    """What a type's kernels have in common, in floats and in integers, around the decoding of a box."""

    names: Numbers
    listing: Lines
    end: Lines
    boxes: Tensor
    scores: Tensor


def detection_frame(layer: Layer) -> tuple[Decode, Frame]:
    """Sizes and frame of a DetectionOutput."""
    sizes, rows, left = detection_sizes(layer)
    scores, boxes, counts, labels, many = layer.outputs
    same_kinds(layer, boxes, scores, (counts, many, labels))
    names: Numbers = {
        "deltas": layer.inputs[1],
        "proposals": layer.inputs[2],
        "out_boxes": boxes,
        "counts": counts,
        "many": many,
        "out_scores": scores,
        "labels": labels,
        "slots": sizes.slots,
        "rows": rows,
        "left": left,
    }
    end = rest(boxes, scores) + classes_end(counts, labels, many)
    return sizes, Frame(names, per_class(counts, labels), end, boxes, scores)


def proposal_frame(layer: Layer, anchors: Array) -> Frame:
    """Frame of a Proposal, whose anchors are in the type that its kernel computes in."""
    scores, boxes, many, one = layer.outputs
    same_kinds(layer, boxes, scores, (many, one))
    names: Numbers = {
        "deltas": layer.inputs[1],
        "out_boxes": boxes,
        "many": many,
        "out_scores": scores,
        "one": one,
        "anchors": anchors.reshape(-1),
    }
    end = [
        *rest(boxes, scores),
        f"many[n] = {whole_number(many, 'filled')}",
        f"one[n] = {whole_number(one, 'S.i32(1)')}",
    ]
    return Frame(names, [], end, boxes, scores)

"""Kernels that go through scores, 32 boxes at a time, and decode the boxes that are kept, one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Array
from compassc.layers.emit import wide_kind
from compassc.layers.families.detection.boxes import (
    Decode,
    Limits,
    anchors_of,
    decode_sizes,
    detection_sizes,
    four,
    limits_of,
    multibox_sizes,
    proposal_anchors,
    proposal_sizes,
    xform_clip,
)
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, filled, script
from compassc.layers.source import Kernel

Lines = list[str]
Numbers = dict[str, "float | int | Array | Tensor"]
LETTERS = "yxhw"

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


def _stores(boxes: Tensor, scores: Tensor, order: Sequence[int] = (0, 1, 2, 3)) -> Lines:
    lines = ["to = n * room + filled"]
    for e, i in enumerate(order):
        name = ("y0", "x0", "y1", "x1")[i]
        if boxes.is_integer:
            name = f"clamp({name}, {boxes.low}, {boxes.high})"
        lines.append(f'out_boxes[to * 4 + {e}] = narrow({name}, "{boxes.dtype}")')
    value = f"clamp(value, {scores.low}, {scores.high})" if scores.is_integer else "value"
    return [*lines, f'out_scores[to] = narrow({value}, "{scores.dtype}")']


def _per_class(counts: Tensor, labels: Tensor) -> Lines:
    return [
        "if count > 0:",
        f'    counts[n * slots + listed] = narrow(count, "{counts.dtype}")',
        f'    labels[n * slots + listed] = narrow(c + 0, "{labels.dtype}")',
        "    listed += 1",
    ]


def _rest(boxes: Tensor, scores: Tensor) -> Lines:
    """Lines that fill what no box took."""
    return [
        "for z in range(filled, room):",
        "    for e in range(4):",
        "        " + zeros(boxes, "out_boxes[(n * room + z) * 4 + e]"),
        "    " + zeros(scores, "out_scores[n * room + z]"),
    ]


def _classes_end(counts: Tensor, labels: Tensor, many: Tensor) -> Lines:
    return [
        f'many[n] = narrow(listed, "{many.dtype}")',
        "for z in range(listed, slots):",
        "    " + zeros(counts, "counts[n * slots + z]"),
        "    " + zeros(labels, "labels[n * slots + z]"),
    ]


def _same_kinds(layer: Layer, boxes: Tensor, scores: Tensor, whole: Sequence[Tensor]) -> None:
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


def decode_lines(limits: Limits, given: Numbers) -> Lines:
    """y0, x0, y1, x1 from the offsets t_y.., centres a_y.. and sizes a_h.., in floats."""
    given |= {"high_y": float(limits.height), "high_x": float(limits.width)}
    lines: Lines = []
    for a, side in zip("yx", "hw", strict=True):
        lines += [
            f"side_{a} = clamp(S.exp(t_{side}) * a_{side}, 0.0, high_{a})",
            f"middle_{a} = t_{a} * a_{side} + a_{a}",
        ]
        for i, sign in enumerate("-+"):
            value = f"middle_{a} {sign} side_{a} * 0.5"
            lines.append(f"{a}{i} = " + (f"clamp({value}, 0.0, high_{a})" if limits.clip else value))
    return lines


def offset_lines(at: str, divisors: Sequence[float], given: Numbers, order: Sequence[int] = (0, 1, 2, 3)) -> Lines:
    """t_y, t_x, t_h, t_w of the row at `at`; `order` says which column is which."""
    given |= {f"divisor_{a}": float(divisors[i]) for a, i in zip(LETTERS, order, strict=True)}
    return [
        f't_{a} = S.cast(deltas[({at}) * 4 + {i}], "float32") / divisor_{a}'
        for a, i in zip(LETTERS, order, strict=True)
    ]


def corner_lines(pointer: str, at: str, order: Sequence[int] = (0, 1, 2, 3)) -> Lines:
    """Centre and size of the box (y0, x0, y1, x1) in a row of a tensor."""
    lines: Lines = []
    for i, (a, side) in enumerate(zip("yx", "hw", strict=True)):
        lines += [
            f'first_{a} = S.cast({pointer}[({at}) * 4 + {order[i]}], "float32")',
            f'last_{a} = S.cast({pointer}[({at}) * 4 + {order[i + 2]}], "float32")',
            f"a_{side} = last_{a} - first_{a}",
            f"a_{a} = (first_{a} + last_{a}) * 0.5",
        ]
    return lines


def _anchor_lines(dtype: str = "float32") -> Lines:
    return [f'a_{a} = S.cast(anchors[b * 4 + {i}], "{dtype}")' for i, a in enumerate(LETTERS)]


@kernel("DecodeBox")
def decode_box(layer: Layer) -> Kernel:
    s, limits = decode_sizes(layer), limits_of(layer)
    boxes, counts, many, out_scores, labels = layer.outputs
    _same_kinds(layer, boxes, out_scores, (counts, many, labels))
    given: Numbers = {
        "deltas": layer.inputs[1],
        "out_boxes": boxes,
        "counts": counts,
        "many": many,
        "out_scores": out_scores,
        "labels": labels,
        "slots": s.slots,
    }
    listing, end = _per_class(counts, labels), _rest(boxes, out_scores) + _classes_end(counts, labels, many)
    if layer.is_quantised:
        emit = [*_table_lines(layer, s, limits, given), *_stores(boxes, out_scores)]
        threshold = layer.integer("score_threshold_uint8")
        return selecting(layer, s, emit, listing, end, given, threshold, True, layer.input.scalar_zero)
    if len(layer.inputs) == 3:
        if layer.inputs[2].count != s.boxes * 4:
            raise LayerError(f"anchors {list(layer.inputs[2].shape)} for {s.boxes} boxes")
        given["anchors"] = layer.inputs[2]
    else:
        given["anchors"] = anchors_of(layer, s.boxes).astype(np.float32).reshape(-1)
    emit = [
        *_anchor_lines(),
        *offset_lines("n * number + b", four(layer, "variance", (10, 10, 5, 5)), given),
        *decode_lines(limits, given),
        *_stores(boxes, out_scores),
    ]
    return selecting(layer, s, emit, listing, end, given, layer.number("score_threshold", 0.5), True)


def _table_lines(layer: Layer, s: Decode, limits: Limits, given: Numbers) -> Lines:
    """y0, x0, y1, x1 of a quantised DecodeBox."""
    if len(layer.inputs) == 3:
        raise LayerError("quantised boxes with a tensor of anchors are not supported; give it constants")
    anchors, deltas = anchors_of(layer, s.boxes), layer.inputs[1]
    shift = layer.integer("box_shift")
    if anchors.dtype.kind not in "iu" or np.abs(anchors.astype(np.int64)).max(initial=0) > 32767 or not 0 <= shift < 31:
        raise LayerError("quantised anchors must be whole numbers of 16 bits, and 'box_shift' from 0 to 30")
    lines: Lines = [f"a_{a} = S.i32(anchors[b * 4 + {i}])" for i, a in enumerate(LETTERS)]
    given |= {
        "anchors": anchors.astype(np.int16).reshape(-1),
        "box_shift": shift,
        "high_y": int(limits.height),
        "high_x": int(limits.width),
    }
    for i, a in enumerate(LETTERS):
        lines += table_lines(layer, f"t{a}_lut", f"t_{a}", f"deltas[(n * number + b) * 4 + {i}]", deltas, given)
    for a, side in zip("yx", "hw", strict=True):
        lines += [
            f"side_{a} = clamp((t_{side} * a_{side}) >> box_shift, 0, high_{a})",
            f"middle_{a} = ((t_{a} * a_{side}) >> box_shift) + a_{a}",
        ]
        for n, sign in enumerate("-+"):
            value = f"middle_{a} {sign} (side_{a} >> 1)"
            lines.append(f"{a}{n} = " + (f"clamp({value}, 0, high_{a})" if limits.clip else value))
    return lines


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
    extra = bits - (size.bit_length() - 1)
    if extra <= 0:
        return [f"{name} = S.i32({key}[{place}])"]
    return [
        f"at_{name} = {place}",
        f"low_{name} = S.i32({key}[at_{name} >> {extra}])",
        f"step_{name} = S.i32({key}[(at_{name} >> {extra}) + 1]) - low_{name}",
        f"{name} = low_{name} + ((step_{name} * (at_{name} & {(1 << extra) - 1})) >> {extra})",
    ]


@kernel("DetectionOutput")
def detection_output(layer: Layer) -> Kernel:
    s, rows, left = detection_sizes(layer)
    out_scores, boxes, counts, labels, many = layer.outputs
    _same_kinds(layer, boxes, out_scores, (counts, many, labels))
    caffe = layer.word("anchor_mode", "") == "CAFFE_DETECTION"
    order = (1, 0, 3, 2) if caffe else (0, 1, 2, 3)
    limits = Limits(layer.number("image_height", 600), layer.number("image_width", 600))
    given: Numbers = {
        "deltas": layer.inputs[1],
        "proposals": layer.inputs[2],
        "out_boxes": boxes,
        "counts": counts,
        "many": many,
        "out_scores": out_scores,
        "labels": labels,
        "slots": s.slots,
        "rows": rows,
        "left": left,
    }
    cut: Lines = []
    largest = xform_clip(layer)
    if np.isfinite(largest):
        given["largest"] = float(largest)
        cut = ["t_h = S.min(t_h, largest)", "t_w = S.min(t_w, largest)"]
    at = "(n * number + b) * rows + left + c"
    emit = [
        *corner_lines("proposals", "n * number + b", order),
        *offset_lines(at, four(layer, "variance", (10, 10, 5, 5)), given, order),
        *cut,
        *decode_lines(limits, given),
        *_stores(boxes, out_scores, order),
    ]
    listing, end = _per_class(counts, labels), _rest(boxes, out_scores) + _classes_end(counts, labels, many)
    return selecting(layer, s, emit, listing, end, given, layer.number("score_threshold", 0.7))


@kernel("Proposal")
def proposal(layer: Layer) -> Kernel:
    s = proposal_sizes(layer)
    out_scores, boxes, many, one = layer.outputs
    _same_kinds(layer, boxes, out_scores, (many, one))
    given: Numbers = {
        "deltas": layer.inputs[1],
        "out_boxes": boxes,
        "many": many,
        "out_scores": out_scores,
        "one": one,
        "anchors": proposal_anchors(layer, s.boxes).astype(np.float32).reshape(-1),
    }
    limits = Limits(layer.number("height", 600), layer.number("width", 600))
    emit = [
        *_anchor_lines(),
        *offset_lines("n * number + b", (10, 10, 5, 5), given),
        *decode_lines(limits, given),
        *_stores(boxes, out_scores),
    ]
    end = [
        *_rest(boxes, out_scores),
        f"many[n] = {whole_number(many, 'filled')}",
        f"one[n] = {whole_number(one, 'S.i32(1)')}",
    ]
    return selecting(layer, s, emit, [], end, given, layer.number("score_threshold", 0.45))


BOUNDING = """
for b in range(S.get_local_id(), number, S.get_local_size()):
    $decode
    $store
"""


@kernel("BoundingBox")
def bounding_box(layer: Layer) -> Kernel:
    rois, deltas, y = layer.inputs[0], layer.inputs[1], layer.output
    if rois.shape[-1:] != (4,) or rois.shape != deltas.shape or y.shape != rois.shape:
        raise LayerError(
            f"regions {list(rois.shape)}, offsets {list(deltas.shape)} and boxes {list(y.shape)} do not fit"
        )
    _same_kinds(layer, y, y, ())
    given: Numbers = {}
    decode = [
        *corner_lines("rois", "b"),
        *offset_lines("b", four(layer, "std_div", (10, 10, 5, 5)), given),
        *decode_lines(Limits(1.0, 1.0), given),
    ]
    store = [f'y[b * 4 + {i}] = narrow({v}, "{y.dtype}")' for i, v in enumerate(("y0", "x0", "y1", "x1"))]
    return script(
        BOUNDING,
        None,
        {"decode": decode, "store": store},
        rois=rois,
        deltas=deltas,
        y=y,
        number=rois.count // 4,
        **given,
    )


MULTIBOX = """
for n in range(S.get_local_id(), images, S.get_local_size()):
    filled = S.i32(0)
    own = scores + n * classes * number
    for j in range(0, number, 32):
        mask = S.tail_mask(S.min(number - j, 32), 32)
        best = load(own + (number + j), mask, "$dtype", 32)
        for c in range(2, classes):
            best = S.max(best, load(own + (c * number + j), mask, "$dtype", 32))
        if S.vany(best > threshold):
            for e in range(S.min(number - j, 32)):
                b = j + e
                value = S.cast(own[number + b], "float32")
                label = S.i32(0)
                for c in range(2, classes):
                    other = S.cast(own[c * number + b], "float32")
                    if other > value:
                        value = other + 0.0
                        label = c - 1
                if value > threshold and filled < room:
                    $decode
                    to = (n * room + filled) * 6
                    y[to] = narrow(S.cast(label, "float32"), "$to")
                    y[to + 1] = narrow(value, "$to")
                    $store
                    filled += 1
    for z in range(filled * 6, room * 6):
        y[n * room * 6 + z] = narrow(S.fp32(-1.0), "$to")
    many[n] = $count
"""


@kernel("MultiboxTransformLoc")
def multibox(layer: Layer) -> Kernel:
    n, c, a, room = multibox_sizes(layer)
    y, many = layer.outputs
    _same_kinds(layer, y, y, (many,))
    given: Numbers = {"deltas": layer.inputs[1], "anchors": layer.inputs[2]}
    # rows hold x before y
    order = (1, 0, 3, 2)
    decode = [
        *corner_lines("anchors", "b", order),
        *offset_lines("n * number + b", four(layer, "variance", (10, 10, 5, 5)), given, order),
        *decode_lines(Limits(1.0, 1.0, layer.flag("clip", True)), given),
    ]
    store = [f'y[to + {i + 2}] = narrow({v}, "{y.dtype}")' for i, v in enumerate(("x0", "y0", "x1", "y1"))]
    words: Substitutions = {
        "dtype": layer.input.dtype,
        "to": y.dtype,
        "decode": decode,
        "store": store,
        "count": whole_number(many, "filled"),
    }
    return script(
        MULTIBOX,
        None,
        words,
        scores=layer.input,
        y=y,
        many=many,
        images=n,
        number=a,
        classes=c,
        room=room,
        threshold=float(np.float32(layer.number("score_threshold", 0.5))),
        **given,
    )

"""Kernels of the quantised box decoders; boxes that are kept are decoded one by one, in int32."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, Tensor
from compassc.layers.families.detection.boxes import multibox_sizes
from compassc.layers.families.detection.fixed import (
    EXPONENT_BITS,
    LETTERS,
    LIMIT,
    FixedBoxes,
    boxes_numbers,
    detection_numbers,
    exact_table,
    fixed_anchors,
    multibox_score,
    proposal_numbers,
    span,
)
from compassc.layers.families.detection.selecting import (
    Lines,
    Numbers,
    detection_frame,
    proposal_frame,
    same_kinds,
    selecting,
    stores,
    table_lines,
    whole_number,
)
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel


def proposal(layer: Layer) -> Kernel:
    p = proposal_numbers(layer)
    f = proposal_frame(layer, fixed_anchors(layer, p.sizes.boxes).astype(np.int16))
    given = f.names | {"box_shift": p.shift, "high_y": p.height, "high_x": p.width}
    emit: Lines = [f"a_{a} = S.i32(anchors[b * 4 + {i}])" for i, a in enumerate(LETTERS)]
    for i, a in enumerate(LETTERS):
        raw = f"deltas[(n * number + b) * 4 + {i}]"
        emit += table_lines(layer, f"t{a}_lut", f"t_{a}", raw, layer.inputs[1], given)
    for a, side in zip("yx", "hw", strict=True):
        emit += [
            f"side_{a} = clamp((t_{side} * a_{side}) >> box_shift, 0, high_{a})",
            f"middle_{a} = ((t_{a} * a_{side}) >> box_shift) + a_{a}",
        ]
        for n, sign in enumerate("-+"):
            emit += [
                f"twice = middle_{a} * 2 {sign} side_{a}",
                f"{a}{n} = clamp((twice + ((twice >> 1) & 1)) >> 1, 0, high_{a})",
            ]
    return selecting(layer, p.sizes, [*emit, *stores(f.boxes, f.scores)], f.listing, f.end, given, p.threshold)


def near(product: str, shift: int) -> str:
    """A product over 2^shift, halves up, where the sum with the half may not fit 32 bits."""
    if not shift:
        return product
    return f"(({product}) >> {shift}) + (((({product}) & {(1 << shift) - 1}) + {1 << (shift - 1)}) >> {shift})"


def corner_lines(pointer: str, at: str, zero: int, order: tuple[int, ...] = (0, 1, 2, 3)) -> Lines:
    """Centre, rounded down, and size of the box (y0, x0, y1, x1) in a row of whole numbers."""
    more = f" + {zero}" if zero else ""
    lines: Lines = []
    for i, (a, side) in enumerate(zip("yx", "hw", strict=True)):
        lines += [
            f"first_{a} = S.i32({pointer}[({at}) * 4 + {order[i]}]){more}",
            f"last_{a} = S.i32({pointer}[({at}) * 4 + {order[i + 2]}]){more}",
            f"a_{side} = last_{a} - first_{a}",
            f"a_{a} = (first_{a} + last_{a}) >> 1",
        ]
    return lines


def detection_output(layer: Layer) -> Kernel:
    sizes, f = detection_frame(layer)
    d = detection_numbers(layer)
    order = (1, 0, 3, 2) if d.swapped else (0, 1, 2, 3)
    given = f.names | {
        "high_y": d.height,
        "high_x": d.width,
        "scale_side": d.scale[0],
        "scale_place": d.scale[1],
        "scale_centre": d.scale[2],
    }
    emit = corner_lines("proposals", "n * number + b", layer.inputs[2].scalar_zero, order)
    at = "(n * number + b) * rows + left + c"
    for a, i in zip(LETTERS, order, strict=True):
        emit += table_lines(layer, f"t{a}_lut", f"t_{a}", f"deltas[({at}) * 4 + {i}]", layer.inputs[1], given)
    # beyond it a centre is limited to 16 bits; a multiplier of 0 leaves nothing
    bound = (((1 << 15) + 1 << d.shift[2]) // max(d.scale[2], 1)) + 1
    for a, side in zip("yx", "hw", strict=True):
        emit += [
            f"wide_{a} = clamp((t_{side} * scale_side) >> {d.part[0]}, -32768, 32767) * a_{side}",
            f"half_{a} = clamp({near(f'wide_{a}', d.shift[0] - d.part[0])}, 0, high_{a}) >> 1",
            f"moved_{a} = clamp((t_{a} * scale_place) >> {d.part[1]}, -32768, 32767) * a_{side}",
            f"whole_{a} = clamp(a_{a}, {-min(bound, 1 << 20)}, {min(bound, 1 << 20)})",
            f"low_{a} = whole_{a} & 0xFFFF",
            f"whole_{a} = whole_{a} >> 16",
            f"multiply_wide(whole_{a}, low_{a}, scale_centre)",
            f"{'shift_near' if d.shift[2] <= 16 else 'shift_far'}(whole_{a}, low_{a}, {d.shift[2]})",
            f"middle_{a} = {near(f'moved_{a}', d.shift[1] - d.part[1])} + clamp(whole_{a}, -32768, 32767)",
            f"{a}0 = clamp(middle_{a} - half_{a}, 0, high_{a})",
            f"{a}1 = clamp(middle_{a} + half_{a}, 0, high_{a})",
        ]
    emit += stores(f.boxes, f.scores, order)
    return selecting(layer, sizes, emit, f.listing, f.end, given, d.threshold)


def box_lines(
    layer: Layer,
    b: FixedBoxes,
    of: tuple[Tensor, Tensor],
    at: str,
    given: Numbers,
    clip: bool,
    order: tuple[int, ...],
) -> Lines:
    """y0, x0, y1, x1 from the centre and size of a region, and the offsets at `at`."""
    source, deltas = of
    low, high = span(source)
    zero = f" + {deltas.scalar_zero}" if deltas.scalar_zero else ""
    given["scale_corner"] = b.scale[4]
    more = 1 << (b.shift[4] - 1) if b.shift[4] > 1 else 0
    lines: Lines = []
    for i, (a, side) in enumerate(zip("yx", "hw", strict=True)):
        given |= {f"scale_{a}": b.scale[i], f"scale_{side}": b.scale[2 + i]}
        exact_table(layer, f"t{side}_lut", 0, LIMIT)
        lines += [
            f"offset_{a} = S.i32(deltas[({at}) * 4 + {order[i]}]){zero}",
            f"moved_{a} = offset_{a} * scaled_floor(a_{side}, scale_{a}, {b.part})",
            f"middle_{a} = clamp({near(f'moved_{a}', b.shift[i] - b.part)} + a_{a}, {low}, {high})",
            *table_lines(layer, f"t{side}_lut", f"power_{a}", f"deltas[({at}) * 4 + {order[2 + i]}]", deltas, given),
            f"power_{a} = (power_{a} * scale_{side}) >> {EXPONENT_BITS}",
            f"half_{a} = scaled_floor(a_{side}, power_{a}, {b.shift[2 + i] - EXPONENT_BITS})",
            f"half_{a} = clamp(half_{a}, 0, {(1 << source.integer.bits) - 1})",
        ]
        for n, sign in enumerate("-+"):
            corner = f"((middle_{a} {sign} half_{a}) * scale_corner + {more}) >> {b.shift[4]}"
            lines.append(f"{a}{n} = " + (f"clamp({corner}, 0, {LIMIT})" if clip else corner))
    return lines


def box_stores(y: Tensor, at: str, order: tuple[str, ...], first: int = 0) -> Lines:
    return [f'y[{at} + {first + i}] = narrow(clamp({v}, {y.low}, {y.high}), "{y.dtype}")' for i, v in enumerate(order)]


BOUNDING = """
for b in range(S.get_local_id(), number, S.get_local_size()):
    $decode
    $store
"""


def bounding_box(layer: Layer) -> Kernel:
    rois, deltas, y = *layer.inputs, layer.output
    given: Numbers = {}
    plain = (0, 1, 2, 3)
    decode = [
        *corner_lines("rois", "b", rois.scalar_zero),
        *box_lines(layer, boxes_numbers(layer, rois, deltas), (rois, deltas), "b", given, True, plain),
    ]
    words: Substitutions = {"decode": decode, "store": box_stores(y, "b * 4", ("y0", "x0", "y1", "x1"))}
    return script(BOUNDING, None, words, rois=rois, deltas=deltas, y=y, number=rois.count // 4, **given)


MULTIBOX = """
for n in range(S.get_local_id(), images, S.get_local_size()):
    filled = S.i32(0)
    own = scores + n * classes * number
    for j in range(0, number, 32):
        mask = S.tail_mask(S.min(number - j, 32), 32)
        best = S.vbcast(S.i32(-0x7FFFFFFF), lanes=32)
        for c in range(1, classes):
            best = S.max(best, S.vsel(load(own + (c * number + j), mask, "$dtype", 32), best, mask))
        if S.vany(best > threshold):
            for e in range(S.min(number - j, 32)):
                b = j + e
                value = S.i32(own[number + b])
                label = S.i32(0)
                for c in range(2, classes):
                    other = S.i32(own[c * number + b])
                    if other > value:
                        value = other + 0
                        label = c - 1
                if value > threshold and filled < room:
                    $decode
                    score = clamp(scaled_floor(value + zero_score, scale_score, shift_score), $low, $high)
                    to = (n * room + filled) * 6
                    y[to] = narrow(S.min(label, $high), "$to")
                    y[to + 1] = narrow(score, "$to")
                    $store
                    filled += 1
    for z in range(filled * 6, room * 6):
        y[n * room * 6 + z] = narrow(S.i32(-1), "$to")
    many[n] = $count
"""


def multibox(layer: Layer) -> Kernel:
    n, c, a, room = multibox_sizes(layer)
    scale, shift, threshold = multibox_score(layer)
    scores, deltas, anchors = layer.inputs
    y, many = layer.outputs
    same_kinds(layer, y, y, (many,))
    order = (1, 0, 3, 2)
    given: Numbers = {}
    b = boxes_numbers(layer, anchors, deltas)
    clip = layer.flag("clip", True)
    decode = [
        *corner_lines("anchors", "b", anchors.scalar_zero, order),
        *box_lines(layer, b, (anchors, deltas), "n * number + b", given, clip, order),
    ]
    words: Substitutions = {
        "dtype": scores.dtype,
        "to": y.dtype,
        "low": str(y.low),
        "high": str(y.high),
        "decode": decode,
        "store": box_stores(y, "to", ("x0", "y0", "x1", "y1"), 2),
        "count": whole_number(many, "filled"),
    }
    return script(
        MULTIBOX,
        None,
        words,
        scores=scores,
        deltas=deltas,
        anchors=anchors,
        y=y,
        many=many,
        images=n,
        number=a,
        classes=c,
        room=room,
        threshold=threshold,
        zero_score=scores.scalar_zero,
        scale_score=scale,
        shift_score=shift,
        **given,
    )

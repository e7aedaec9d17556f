"""Kernels of box decoders, which keep boxes by their scores or take all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.families.detection import fixed_decoders
from compassc.layers.families.detection.boxes import (
    Decode,
    Limits,
    anchors_of,
    decode_sizes,
    four,
    limits_of,
    multibox_sizes,
    proposal_anchors,
    proposal_sizes,
    xform_clip,
)
from compassc.layers.families.detection.fixed import LETTERS
from compassc.layers.families.detection.selecting import (
    Lines,
    Numbers,
    classes_end,
    detection_frame,
    per_class,
    proposal_frame,
    rest,
    same_kinds,
    selecting,
    stores,
    table_lines,
    whole_number,
)
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel


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
    same_kinds(layer, boxes, out_scores, (counts, many, labels))
    given: Numbers = {
        "deltas": layer.inputs[1],
        "out_boxes": boxes,
        "counts": counts,
        "many": many,
        "out_scores": out_scores,
        "labels": labels,
        "slots": s.slots,
    }
    listing, end = per_class(counts, labels), rest(boxes, out_scores) + classes_end(counts, labels, many)
    if layer.is_quantised:
        emit = [*_table_lines(layer, s, limits, given), *stores(boxes, out_scores)]
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
        *stores(boxes, out_scores),
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


@kernel("DetectionOutput")
def detection_output(layer: Layer) -> Kernel:
    if layer.is_quantised:
        return fixed_decoders.detection_output(layer)
    sizes, f = detection_frame(layer)
    caffe = layer.word("anchor_mode", "") == "CAFFE_DETECTION"
    order = (1, 0, 3, 2) if caffe else (0, 1, 2, 3)
    limits = Limits(layer.number("image_height", 600), layer.number("image_width", 600))
    cut: Lines = []
    largest = xform_clip(layer)
    if np.isfinite(largest):
        f.names["largest"] = float(largest)
        cut = ["t_h = S.min(t_h, largest)", "t_w = S.min(t_w, largest)"]
    at = "(n * number + b) * rows + left + c"
    emit = [
        *corner_lines("proposals", "n * number + b", order),
        *offset_lines(at, four(layer, "variance", (10, 10, 5, 5)), f.names, order),
        *cut,
        *decode_lines(limits, f.names),
        *stores(f.boxes, f.scores, order),
    ]
    return selecting(layer, sizes, emit, f.listing, f.end, f.names, layer.number("score_threshold", 0.7))


@kernel("Proposal")
def proposal(layer: Layer) -> Kernel:
    if layer.is_quantised:
        return fixed_decoders.proposal(layer)
    s = proposal_sizes(layer)
    f = proposal_frame(layer, proposal_anchors(layer, s.boxes).astype(np.float32))
    limits = Limits(layer.number("height", 600), layer.number("width", 600))
    emit = [
        *_anchor_lines(),
        *offset_lines("n * number + b", (10, 10, 5, 5), f.names),
        *decode_lines(limits, f.names),
        *stores(f.boxes, f.scores),
    ]
    return selecting(layer, s, emit, f.listing, f.end, f.names, layer.number("score_threshold", 0.45))


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
    same_kinds(layer, y, y, ())
    if layer.is_quantised:
        return fixed_decoders.bounding_box(layer)
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
    if layer.is_quantised:
        return fixed_decoders.multibox(layer)
    n, c, a, room = multibox_sizes(layer)
    y, many = layer.outputs
    same_kinds(layer, y, y, (many,))
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

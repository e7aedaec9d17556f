"""Suppression of boxes: every TEC has a part of the candidates of a class, 32 at a time; they agree on the best one.

Which candidates are left is kept in LSRAM, a byte each (their scores, where overlaps lower these).
"""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.emit import wide_kind
from compassc.layers.families.detection import decoders, heads  # noqa: F401 (their kernels are registered)
from compassc.layers.families.detection.suppression import STEPS, Suppression, suppression_of
from compassc.layers.kernels import kernel
from compassc.layers.machine import Share
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel

ROOM = Share(6)
"""Bytes of LSRAM for the remaining candidates of a TEC."""

NMS = """
$tables
left = S.alloc($many, "$left", scope="lsram")
best_values = S.alloc(64, "$kind", scope="shared")
best_places = S.alloc(64, "int32", scope="shared")
tec = S.get_local_id()
lanes = S.vload(counting, lanes=32)
side = S.i32(0)
for n in range(images):
    filled = S.i32(0)
    first = S.i32(0)
    image = boxes + n * number * 4
    for c in range(classes):
        size = S.i32(0)
        if c < S.i32(class_count[n]):
            size = clamp(S.i32(per_class[n * classes + c]), 0, number - first)
        part = shared_part(size, 32)
        begin = S.min(tec * part, size)
        end = S.min(begin + part, size)
        own = image + (first + begin) * 4
        for j in range(0, end - begin, 32):
            mask = S.tail_mask(S.min(end - begin - j, 32), 32)
            S.vstore($fresh, left + j, mask)
        kept = S.i32(0)
        chosen = S.i32(-1)
        i_y0 = $zero
        i_x0 = $zero
        i_y1 = $zero
        i_x1 = $zero
        i_area = $zero
        going = S.i32(1)
        while going != 0:
            best = S.vbcast($lowest, lanes=32)
            place = S.vbcast(S.i32(0x7FFFFFFF), lanes=32)
            for j in range(0, end - begin, 32):
                mask = S.tail_mask(S.min(end - begin - j, 32), 32)
                $remaining
                if chosen >= 0:
                    a = $load_0
                    b = $load_1
                    y0 = S.min(a, $load_2)
                    y1 = S.max(a, $load_2)
                    x0 = S.min(b, $load_3)
                    x1 = S.max(b, $load_3)
                    high = S.max(S.min(y1, i_y1) - S.max(y0, i_y0), $zero)
                    wide_ = S.max(S.min(x1, i_x1) - S.max(x0, i_x0), $zero)
                    inter = $inter
                    union = i_area + $area - inter
                    $suppress
                $candidates
                better = value > best
                place = S.vsel(lanes + (begin + j), place, better)
                best = S.vsel(value, best, better)
            own_best = across_max(best)
            nearest = across_min(S.vsel(place, S.vbcast(S.i32(0x7FFFFFFF), lanes=32), best == own_best))
            best_values[side + tec] = own_best[0]
            best_places[side + tec] = nearest[0]
            S.barrier()
            top = best_values[side] + $zero
            chosen = best_places[side] + 0
            for t in range(1, S.get_local_size()):
                if best_values[side + t] > top:
                    top = best_values[side + t] + $zero
                    chosen = best_places[side + t] + 0
            side = 32 - side
            going = S.i32(0)
            if chosen < size and $above and kept < most and filled < room:
                going = S.i32(1)
                box = image + (first + chosen) * 4
                a0 = $box_0
                b0 = $box_1
                a1 = $box_2
                b1 = $box_3
                i_y0 = S.min(a0, a1)
                i_y1 = S.max(a0, a1)
                i_x0 = S.min(b0, b1)
                i_x1 = S.max(b0, b1)
                i_area = $own_area
                if tec == 0:
                    $store
                kept += 1
                filled += 1
        if tec == 0:
            counts[n * classes + c] = narrow(kept, "$count_type")
        first += size
        S.barrier()
    if tec == 0:
        for j in range(filled, room):
            for e in range(4):
                out_boxes[(n * room + j) * 4 + e] = $nothing_box
            out_scores[n * room + j] = $nothing_score
            keep[n * room + j] = narrow(S.i32(0), "$keep_type")
"""


def _numbers(s: Suppression, bits: int, zero: int) -> dict[str, float | int]:
    """The parameters of the kernel. `bits` of quantised boxes, 0 of floats; `zero`: their zero point."""
    given: dict[str, float | int] = {}
    if bits:
        largest, overlap = ((1 << 2 * bits) - 1 >> s.areas) * 2, STEPS if s.gaussian else int(s.overlap)
        if largest * abs(overlap) >= 2**31:
            raise LayerError(f"'iou_threshold' {overlap} with 'areas_shift' {s.areas} is beyond 32 bits")
        given = {"scale": s.scale, "shift": s.shift}
        given |= {} if s.gaussian else {"overlap": overlap}
        given |= {"zero": zero} if zero else {}
    elif s.gaussian:
        given = {"steep": float(np.float32(-0.5 / s.sigma))}
    else:
        given = {"overlap": float(np.float32(s.overlap))}
    if np.isfinite(s.threshold):
        given["threshold"] = int(np.floor(s.threshold)) if bits else float(np.float32(s.threshold))
    return given


@kernel("NMS")
def nms(layer: Layer) -> Kernel:
    s, quantised = suppression_of(layer), layer.is_quantised
    boxes, per_class, class_count, scores = layer.inputs
    out_boxes, counts, out_scores, keep = layer.outputs
    for t in (per_class, class_count, counts, keep):
        if wide_kind(t) != "int32":
            raise LayerError(f"'{t.name}' holds numbers of boxes, but is {t.dtype}")
    if wide_kind(out_scores) != wide_kind(scores) or wide_kind(boxes) != wide_kind(out_boxes):
        raise LayerError("boxes and scores keep whether they are floats")
    held = wide_kind(scores) if s.gaussian else "int8"
    many = ROOM.size // numpy_dtype(held).itemsize
    if boxes.shape[1] > many:
        raise LayerError(f"{boxes.shape[1]} boxes do not fit LSRAM; it takes {many}")
    kind, zero = wide_kind(scores), boxes.scalar_zero if quantised else 0
    words = _words(s, quantised, boxes.dtype, scores.dtype, zero) | {
        "many": str(many),
        "left": held,
        "kind": kind,
        "count_type": counts.dtype,
        "keep_type": keep.dtype,
        "fresh": "S.vbcast(S.i8(1), lanes=32)",
        "store": _stored(layer, s),
        "nothing_box": f'narrow(S.cast(0, "{wide_kind(out_boxes)}"), "{out_boxes.dtype}")',
        "nothing_score": f'narrow(S.cast(0, "{kind}"), "{out_scores.dtype}")',
    }
    if s.gaussian:
        words["fresh"] = f'load(scores + (n * number + first + begin + j), mask, "{scores.dtype}", 32)'
    given: dict[str, float | int | Array] = {**_numbers(s, boxes.integer.bits if quantised else 0, zero)}
    words["tables"] = []
    if s.factors is not None:
        words |= _tables(scores.scalar_zero, str(words["lowest"]))
        given |= {"steps": s.factors.astype(np.int32).reshape(-1)}
    words["above"] = (
        "top > threshold" if "threshold" in given else "top > $lowest".replace("$lowest", str(words["lowest"]))
    )
    return script(
        NMS,
        None,
        words,
        boxes=boxes,
        per_class=per_class,
        class_count=class_count,
        scores=scores,
        out_boxes=out_boxes,
        counts=counts,
        out_scores=out_scores,
        keep=keep,
        counting=np.arange(32, dtype=np.int32),
        images=boxes.shape[0],
        number=boxes.shape[1],
        classes=per_class.shape[1],
        most=max(s.most, 0),
        room=s.room,
        **given,
    )


def _tables(zero: int, lowest: str) -> Substitutions:
    """Lines of quantised scores that overlaps lower: what is gone stays `lowest`."""
    more, less = (f" + {zero}", f" - {zero}") if zero else ("", "")
    return {
        "tables": [
            f'factors = S.alloc({2 * (STEPS + 1)}, "int32", scope="lsram")',
            f"S.dma_copy(factors, steps, {2 * (STEPS + 1)})",
        ],
        "suppress": [
            f"step = inter * {STEPS} / S.max(union, 1)",
            f"lowered = (value{more}) * entry_of(factors, step, mask) >> entry_of(factors, step + {STEPS + 1}, mask)",
            f"gone = (value == {lowest}) | (lanes + (begin + j) == chosen)",
            f"value = S.vsel(S.vbcast({lowest}, lanes=32), lowered{less}, gone)",
            "S.vstore(value, left + j, mask)",
        ],
    }


def _words(s: Suppression, quantised: bool, dtype: str, score_type: str, zero: int) -> Substitutions:
    words: Substitutions = {}
    more = " + zero" if zero else ""
    for e in range(4):
        words[f"load_{e}"] = f'(wide(S.vload(own + (j * 4 + {e}), mask, lanes=32, stride=4), "{dtype}"){more})'
        words[f"box_{e}"] = f"S.i32(box[{e}]){more}" if quantised else f'S.cast(box[{e}], "float32")'
    kind = "S.i32" if quantised else "S.fp32"
    words |= {"zero": f"{kind}(0)", "lowest": "S.i32(-0x7FFFFFFF)" if quantised else 'S.fp32("-inf")'}

    def area(a: str, b: str) -> str:
        if not quantised:
            return f"({a}) * ({b})"
        return f'S.cast((S.cast({a}, "uint32") * S.cast({b}, "uint32")) >> {s.areas}, "int32")'

    words |= {"inter": area("high", "wide_"), "area": area("y1 - y0", "x1 - x0")}
    words["own_area"] = area("i_y1 - i_y0", "i_x1 - i_x0")
    words["remaining"] = ['on = load(left + j, mask, "int8", 32)']
    limit = f"(union * overlap) >> {s.part}" if quantised else "union * overlap"
    words["suppress"] = [
        f"on = S.vsel(on, on * 0, inter <= {limit})",
        "on = S.vsel(on * 0, on, lanes + (begin + j) == chosen)",
        'S.vstore(narrow(on, "int8"), left + j, mask)',
    ]
    value = f'load(scores + (n * number + first + begin + j), mask, "{score_type}", 32)'
    low = f"S.vbcast({words['lowest']}, lanes=32)"
    words["candidates"] = [f"value = S.vsel({value}, {low}, on > 0)"]
    if s.gaussian:
        words["remaining"] = ["value = S.vload(left + j, mask, lanes=32)"]
        words["suppress"] = [
            "ratio = S.vsel(inter / S.vsel(union, union * 0.0 + 1.0, union > 0.0), union * 0.0, union > 0.0)",
            "value = value * S.exp((ratio * ratio) * steep)",
            f"value = S.vsel({low}, value, lanes + (begin + j) == chosen)",
            "S.vstore(value, left + j, mask)",
        ]
        words["candidates"] = [f"value = S.vsel(value, {low}, mask)"]
    return words


def _stored(layer: Layer, s: Suppression) -> list[str]:
    """Lines that store what the chosen box leaves."""
    out_boxes, _, out_scores, keep = layer.outputs
    lines = ["at = n * room + filled", f'keep[at] = narrow(chosen, "{keep.dtype}")']
    for e, name in enumerate(("a0", "b0", "a1", "b1")):
        if layer.is_quantised:
            name = f"clamp(scaled_floor({name}, scale, shift), {out_boxes.low}, {out_boxes.high})"
        lines.append(f'out_boxes[at * 4 + {e}] = narrow({name}, "{out_boxes.dtype}")')
    value = "top"
    if layer.is_quantised:
        value = f"clamp(top, {out_scores.low}, {out_scores.high})"
    return [*lines, f'out_scores[at] = narrow({value}, "{out_scores.dtype}")']

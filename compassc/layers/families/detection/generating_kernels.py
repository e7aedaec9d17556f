"""The kernel of GenerateProposals: every TEC has a part of the anchors, 32 at a time; they agree on the best one.

Boxes are decoded again whenever they are looked at: nothing of them is kept but whether they are candidates, a byte each.
"""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.families.detection.generating import centred_anchors, generation_of
from compassc.layers.families.detection.selecting import Lines, Numbers, same_kinds, whole_number, zeros
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel

ROOM = 24576
"""Anchors of an image: bytes of LSRAM for the candidates of a TEC."""
AXES = "xy"

GENERATE = """
left = S.alloc($many, "int8", scope="lsram")
best_values = S.alloc(64, "float32", scope="shared")
best_places = S.alloc(64, "int32", scope="shared")
tec = S.get_local_id()
lanes = S.vload(counting, lanes=32)
part = shared_part(number, 32)
begin = S.min(tec * part, number)
end = S.min(begin + part, number)
side = S.i32(0)
for n in range(images):
    own = scores + n * number
    moved = deltas + n * number * 4
    $extent
    limit = S.i32(-0x7FFFFFFF)
    limit_at = S.i32(0x7FFFFFFF)
    $ranked
    for j in range(0, end - begin, 32):
        mask = S.tail_mask(S.min(end - begin - j, 32), 32)
        at = begin + j
        $decode
        $key
        good = (key > limit) | ((key == limit) & (lanes + at <= limit_at))
        good = good & (value == value) & (x1 - x0 + 1.0 > least) & (y1 - y0 + 1.0 > least)
        on = S.vsel(lanes * 0 + 1, lanes * 0, good)
        S.vstore(narrow(on, "int8"), left + j, mask)
    filled = S.i32(0)
    chosen = S.i32(-1)
    i_x0 = S.fp32(0)
    i_y0 = S.fp32(0)
    i_x1 = S.fp32(0)
    i_y1 = S.fp32(0)
    i_area = S.fp32(0)
    going = S.i32(1)
    while going != 0:
        best = S.vbcast(S.fp32("-inf"), lanes=32)
        place = S.vbcast(S.i32(0x7FFFFFFF), lanes=32)
        for j in range(0, end - begin, 32):
            mask = S.tail_mask(S.min(end - begin - j, 32), 32)
            at = begin + j
            on = load(left + j, mask, "int8", 32)
            if S.vany(on > 0):
                if chosen >= 0:
                    $decode
                    wide_ = S.max(S.min(x1, i_x1) - S.max(x0, i_x0) + 1.0, 0.0)
                    high = S.max(S.min(y1, i_y1) - S.max(y0, i_y0) + 1.0, 0.0)
                    inter = wide_ * high
                    union = i_area + (x1 - x0 + 1.0) * (y1 - y0 + 1.0) - inter
                    on = S.vsel(on, on * 0, inter <= union * overlap)
                    on = S.vsel(on * 0, on, lanes + at == chosen)
                    S.vstore(narrow(on, "int8"), left + j, mask)
                value = S.vsel(load(own + at, mask, "$dtype", 32), S.vbcast(S.fp32("-inf"), lanes=32), on > 0)
                better = (value > best) | ((on > 0) & (place == 0x7FFFFFFF))
                place = S.vsel(lanes + at, place, better)
                best = S.vsel(value, best, better)
        own_best = across_max(best)
        nearest = across_min(S.vsel(place, S.vbcast(S.i32(0x7FFFFFFF), lanes=32), best == own_best))
        best_values[side + tec] = own_best[0]
        best_places[side + tec] = nearest[0]
        S.barrier()
        top = best_values[side] + 0.0
        chosen = best_places[side] + 0
        for t in range(1, S.get_local_size()):
            if best_values[side + t] > top or (best_values[side + t] == top and best_places[side + t] < chosen):
                top = best_values[side + t] + 0.0
                chosen = best_places[side + t] + 0
        side = 32 - side
        going = S.i32(0)
        if chosen < number and filled < most:
            going = S.i32(1)
            $decode_one
            i_area = (i_x1 - i_x0 + 1.0) * (i_y1 - i_y0 + 1.0)
            if tec == 0:
                to = n * room + filled
                $store
            filled += 1
    if tec == 0:
        many[n] = $count
        for z in range(filled, room):
            for e in range(4):
                $no_box
            $no_score
    S.barrier()
if tec == 0:
    for z in range(indices):
        $no_index
"""

RANKED = """
ranks = S.i32(0)
for b in range(32):
    tried = ranks | (S.i32(1) << (31 - b))
    hits = lanes * 0
    for at in range(0, number, 32):
        mask = S.tail_mask(S.min(number - at, 32), 32)
        $key
        hits = hits + S.vsel(S.vsel(lanes * 0 + 1, lanes * 0, key >= (tried ^ S.i32(-0x80000000))), lanes * 0, mask)
    if across_sum(hits)[0] >= looked_at:
        ranks = tried + 0
limit = ranks ^ S.i32(-0x80000000)
hits = lanes * 0
for at in range(0, number, 32):
    mask = S.tail_mask(S.min(number - at, 32), 32)
    $key
    hits = hits + S.vsel(S.vsel(lanes * 0 + 1, lanes * 0, key > limit), lanes * 0, mask)
equal = looked_at - across_sum(hits)[0]
limit_at = S.i32(0)
for b in range(16):
    tried = limit_at + (S.i32(1) << (15 - b))
    hits = lanes * 0
    for at in range(0, number, 32):
        mask = S.tail_mask(S.min(number - at, 32), 32)
        $key
        found = S.vsel(lanes * 0 + 1, lanes * 0, (key == limit) & (lanes + at < tried))
        hits = hits + S.vsel(found, lanes * 0, mask)
    if across_sum(hits)[0] < equal:
        limit_at = tried + 0
"""
"""The key of the last anchor that is looked at, and its place: those with a larger key come before it, and of those with the
same key the first ones."""

KEY = """
value = load(own + at, mask, "$dtype", 32)
key = S.reinterpret(S.vsel(value * 0.0, value, value == 0.0), "int32x32")
key = S.vsel(key & 0x7FFFFFFF, key, value == 0.0)
key = key ^ ((key >> 31) & 0x7FFFFFFF)
"""


def _decode(vector: bool, dtype: str, out: str = "") -> Lines:
    """x0, y0, x1, y1, with `out` before their names, of the anchors from `at` on, or of the one at `chosen`."""

    def number(pointer: str, e: int, dtype: str) -> str:
        if vector:
            return f'wide(S.vload({pointer} + (at * 4 + {e}), mask, lanes=32, stride=4), "{dtype}")'
        return f'S.cast({pointer}[chosen * 4 + {e}], "float32")'

    lines: Lines = []
    for i, a in enumerate(AXES):
        lines += [
            f"extent_{a} = {number('anchors', i, 'float32')}",
            f"half_{a} = S.exp({number('moved', 2 + i, dtype)}) * extent_{a} * 0.5",
            f"middle_{a} = {number('moved', i, dtype)} * extent_{a} + {number('anchors', 2 + i, 'float32')}",
            f"{out}{a}0 = clamp(middle_{a} - half_{a}, 0.0, high_{a})",
            f"{out}{a}1 = clamp(middle_{a} + half_{a}, 0.0, high_{a})",
        ]
    return lines


def _ranked(key: Lines) -> Lines:
    lines: Lines = []
    for line in RANKED.strip("\n").splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines += [indent + inner for inner in key] if line.strip() == "$key" else [line]
    return lines


@kernel("GenerateProposals")
def generate_proposals(layer: Layer) -> Kernel:
    g = generation_of(layer)
    scores, boxes, index, many = layer.outputs
    same_kinds(layer, boxes, scores, (index, many))
    if g.boxes > ROOM:
        raise LayerError(f"{g.boxes} anchors do not fit LSRAM; it takes {ROOM}")
    dtype = layer.inputs[1].dtype
    key = [line.replace("$dtype", layer.input.dtype) for line in KEY.strip().splitlines()]
    given: Numbers = {}
    extent = [f"high_{a} = most_{a} + 0.0" for a in AXES]
    if g.told:
        given["info"] = layer.inputs[2]
        extent = [f'high_{a} = S.cast(info[n * {g.told} + {1 - i}], "float32") - 1.0' for i, a in enumerate(AXES)]
    else:
        sides = layer.number("image_width", 600), layer.number("image_height", 600)
        given |= {f"most_{a}": float(np.float32(v) - np.float32(1)) for a, v in zip(AXES, sides, strict=True)}
    if g.looked_at < g.boxes:
        given["looked_at"] = g.looked_at
    stored = [
        f'out_boxes[to * 4 + {e}] = narrow(i_{v}, "{boxes.dtype}")' for e, v in enumerate(("x0", "y0", "x1", "y1"))
    ]
    words: Substitutions = {
        "many": str(min(ROOM, -(-g.boxes // 32) * 32)),
        "dtype": layer.input.dtype,
        "extent": extent,
        "ranked": _ranked(key) if g.looked_at < g.boxes else [],
        "key": key,
        "decode": _decode(True, dtype),
        "decode_one": _decode(False, dtype, "i_"),
        "store": [*stored, f'out_scores[to] = narrow(top, "{scores.dtype}")'],
        "count": whole_number(many, "filled"),
        "no_box": zeros(boxes, "out_boxes[(n * room + z) * 4 + e]"),
        "no_score": zeros(scores, "out_scores[n * room + z]"),
        "no_index": zeros(index, "index[z]"),
    }
    return script(
        GENERATE,
        None,
        words,
        scores=layer.input,
        deltas=layer.inputs[1],
        out_scores=scores,
        out_boxes=boxes,
        index=index,
        many=many,
        counting=np.arange(32, dtype=np.int32),
        anchors=centred_anchors(layer, g.boxes).reshape(-1),
        images=g.images,
        number=g.boxes,
        room=g.room,
        most=g.taken,
        indices=index.count,
        overlap=float(np.float32(g.overlap)),
        least=float(np.float32(g.size)),
        **given,
    )

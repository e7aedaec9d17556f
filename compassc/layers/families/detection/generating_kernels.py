"""The kernel of GenerateProposals: every TEC has a part of the anchors, 32 at a time; they agree on the best one.

Boxes are decoded again whenever they are looked at: nothing of them is kept but whether they are candidates, a byte each.
"""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.families.detection.generating import (
    AREA_BITS,
    FARTHEST,
    OVERLAP_BITS,
    TABLES,
    FixedGeneration,
    Generation,
    centred_anchors,
    fixed_generation,
    generation_of,
)
from compassc.layers.families.detection.lists import same_kinds
from compassc.layers.families.detection.texts import Lines, Numbers, entry_lines, whole_number, zeros
from compassc.layers.kernels import kernel
from compassc.layers.machine import Share
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel

ROOM = Share(6)
"""Anchors of an image: bytes of LSRAM for the candidates of a TEC, and for quantised tables."""
ENTRIES = 1024
"""Entries of a quantised table that fit LSRAM."""
AXES = "xy"

GENERATE = """
$tables
left = S.alloc($many, "int8", scope="lsram")
best_values = S.alloc(64, "$kind", scope="shared")
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
        good = good & $proper
        on = S.vsel(lanes * 0 + 1, lanes * 0, good)
        S.vstore(narrow(on, "int8"), left + j, mask)
    filled = S.i32(0)
    chosen = S.i32(-1)
    i_x0 = $nil
    i_y0 = $nil
    i_x1 = $nil
    i_y1 = $nil
    i_area = $nil
    going = S.i32(1)
    while going != 0:
        best = S.vbcast($lowest, lanes=32)
        place = S.vbcast(S.i32(0x7FFFFFFF), lanes=32)
        for j in range(0, end - begin, 32):
            mask = S.tail_mask(S.min(end - begin - j, 32), 32)
            at = begin + j
            on = load(left + j, mask, "int8", 32)
            if S.vany(on > 0):
                if chosen >= 0:
                    $decode
                    wide_ = S.max(S.min(x1, i_x1) - S.max(x0, i_x0)$end, $nil)
                    high = S.max(S.min(y1, i_y1) - S.max(y0, i_y0)$end, $nil)
                    inter = $inter
                    union = i_area + $area - inter
                    on = S.vsel(on, on * 0, inter <= $limit)
                    on = S.vsel(on * 0, on, lanes + at == chosen)
                    S.vstore(narrow(on, "int8"), left + j, mask)
                value = S.vsel(load(own + at, mask, "$dtype", 32), S.vbcast($lowest, lanes=32), on > 0)
                better = (value > best) | ((on > 0) & (place == 0x7FFFFFFF))
                place = S.vsel(lanes + at, place, better)
                best = S.vsel(value, best, better)
        own_best = across_max(best)
        nearest = across_min(S.vsel(place, S.vbcast(S.i32(0x7FFFFFFF), lanes=32), best == own_best))
        best_values[side + tec] = own_best[0]
        best_places[side + tec] = nearest[0]
        S.barrier()
        top = best_values[side] + $nil
        chosen = best_places[side] + 0
        for t in range(1, S.get_local_size()):
            if best_values[side + t] > top or (best_values[side + t] == top and best_places[side + t] < chosen):
                top = best_values[side + t] + $nil
                chosen = best_places[side + t] + 0
        side = 32 - side
        going = S.i32(0)
        if chosen < number and filled < most:
            going = S.i32(1)
            $decode_one
            i_area = $own_area
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


def _float_words(layer: Layer, g: Generation) -> tuple[Substitutions, Numbers]:
    def area(wide: str, high: str) -> str:
        return f"({wide} + 1.0) * ({high} + 1.0)"

    dtype = layer.inputs[1].dtype
    given: Numbers = {}
    extent = [f"high_{a} = most_{a} + 0.0" for a in AXES]
    if g.told:
        extent = [f'high_{a} = S.cast(info[n * {g.told} + {1 - i}], "float32") - 1.0' for i, a in enumerate(AXES)]
    else:
        sides = layer.number("image_width", 600), layer.number("image_height", 600)
        given |= {f"most_{a}": float(np.float32(v) - np.float32(1)) for a, v in zip(AXES, sides, strict=True)}
    given |= {"overlap": float(np.float32(g.overlap)), "least": float(np.float32(g.size))}
    words: Substitutions = {
        "tables": [],
        "kind": "float32",
        "nil": "S.fp32(0)",
        "lowest": 'S.fp32("-inf")',
        "end": " + 1.0",
        "proper": "(value == value) & (x1 - x0 + 1.0 > least) & (y1 - y0 + 1.0 > least)",
        "inter": "wide_ * high",
        "area": area("x1 - x0", "y1 - y0"),
        "own_area": area("i_x1 - i_x0", "i_y1 - i_y0"),
        "limit": "union * overlap",
        "extent": extent,
        "key": [line.replace("$dtype", layer.input.dtype) for line in KEY.strip().splitlines()],
        "decode": _decode(True, dtype),
        "decode_one": _decode(False, dtype, "i_"),
    }
    return words, given


def _fixed_words(layer: Layer, f: FixedGeneration) -> tuple[Substitutions, Numbers]:
    def area(wide: str, high: str) -> str:
        return f'S.cast((S.cast({wide}, "uint32") * S.cast({high}, "uint32")) >> {AREA_BITS}, "int32")'

    given: Numbers = {"overlap": int(f.common.overlap), "least": int(f.common.size)}
    tables: Lines = []
    for key in TABLES:
        table = layer.constant(key).reshape(-1)
        if table.size > ENTRIES:
            raise LayerError(f"the table '{key}' has {table.size} entries, of which {ENTRIES} fit LSRAM")
        given[f"{key}_given"] = table.astype(np.int32)
        tables += [
            f'{key} = S.alloc({table.size}, "int32", scope="lsram")',
            f"S.dma_copy({key}, {key}_given, {table.size})",
        ]
    extent = [f"high_{a} = most_{a} + 0" for a in AXES]
    if f.common.told:
        raw = [f"S.i32(info[n * {f.common.told} + {1 - i}]) + {f.told[2]}" for i in (0, 1)]
        given |= {"scale_info": f.told[0], "step": f.scale}
        extent = [
            f"high_{a} = clamp(scaled_floor({r}, scale_info, {f.told[1]}) - step, 0, {FARTHEST})"
            for a, r in zip(AXES, raw, strict=True)
        ]
    else:
        given |= {f"most_{a}": max(v, 0) for a, v in zip(AXES, f.most, strict=True)}
    words: Substitutions = {
        "tables": tables,
        "kind": "int32",
        "nil": "S.i32(0)",
        "lowest": "S.i32(-0x7FFFFFFF)",
        "end": "",
        "proper": "(x1 - x0 > least) & (y1 - y0 > least)",
        "inter": area("wide_", "high"),
        "area": area("x1 - x0", "y1 - y0"),
        "own_area": area("i_x1 - i_x0", "i_y1 - i_y0"),
        "limit": f"(union * overlap) >> {OVERLAP_BITS}",
        "extent": extent,
        "key": [f'value = load(own + at, mask, "{layer.input.dtype}", 32)', "key = value + 0"],
        "decode": _decode_fixed(layer, f, True),
        "decode_one": _decode_fixed(layer, f, False),
    }
    return words, given


def _entry_lines(layer: Layer, key: str, name: str, offset: str, vector: bool) -> Lines:
    """`name`: the entry of a table in LSRAM at a quantised offset, between entries rounded down."""
    of, size = layer.inputs[1], layer.constant(key).size
    extra = max(of.integer.bits - (size.bit_length() - 1), 0)
    first = f" + {1 << (of.integer.bits - 1)}" if of.integer.signed else ""
    if vector:
        return [f"{name} = {offset}{first}", f"look_up({name}, {key}, {extra}, {size - 1}, mask)"]
    return entry_lines(name, key, f"{offset}{first}", extra, size - 1)


def _decode_fixed(layer: Layer, f: FixedGeneration, vector: bool) -> Lines:
    """As `_decode`, in integers."""

    def number(pointer: str, e: int, of: Tensor | None = None) -> str:
        if vector:
            return (
                f'wide(S.vload({pointer} + (at * 4 + {e}), mask, lanes=32, stride=4), "{of.dtype if of else "int16"}")'
            )
        return f"S.i32({pointer}[chosen * 4 + {e}])"

    lines: Lines = []
    out = "" if vector else "i_"
    for i, a in enumerate(AXES):
        lines += [
            f"extent_{a} = {number('anchors', i)}",
            *_entry_lines(layer, "wh_lut", f"half_{a}", number("moved", 2 + i, layer.inputs[1]), vector),
            *_entry_lines(layer, "xy_lut", f"middle_{a}", number("moved", i, layer.inputs[1]), vector),
            f"half_{a} = (half_{a} * extent_{a}) >> {f.shift + 1}",
            f"middle_{a} = ((middle_{a} * extent_{a}) >> {f.shift}) + {number('anchors', 2 + i)}",
            f"{out}{a}0 = clamp(middle_{a} - half_{a}, 0, high_{a})",
            f"{out}{a}1 = clamp(middle_{a} + half_{a}, 0, high_{a})",
        ]
    return lines


def _stored(boxes: Tensor, scores: Tensor, last: int) -> Lines:
    """Lines that store the best box left."""
    lines = []
    for e, name in enumerate(("i_x0", "i_y0", "i_x1", "i_y1")):
        value = f"clamp({name} >> {last}, {boxes.low}, {boxes.high})" if boxes.is_integer else name
        lines.append(f'out_boxes[to * 4 + {e}] = narrow({value}, "{boxes.dtype}")')
    return [*lines, f'out_scores[to] = narrow(top, "{scores.dtype}")']


@kernel("GenerateProposals")
def generate_proposals(layer: Layer) -> Kernel:
    g = generation_of(layer)
    scores, boxes, index, many = layer.outputs
    same_kinds(layer, boxes, scores, (index, many))
    f = fixed_generation(layer) if layer.is_quantised else None
    room = ROOM.size - 8 * ENTRIES if f else ROOM.size
    if g.boxes > room:
        raise LayerError(f"{g.boxes} anchors do not fit LSRAM; it takes {room}")
    words, given = _fixed_words(layer, f) if f else _float_words(layer, g)
    if g.told:
        given["info"] = layer.inputs[2]
    if g.looked_at < g.boxes:
        given["looked_at"] = g.looked_at
    key = list(words["key"])
    words |= {
        "many": str(min(room, -(-g.boxes // 32) * 32)),
        "dtype": layer.input.dtype,
        "ranked": _ranked(key) if g.looked_at < g.boxes else [],
        "store": _stored(boxes, scores, f.last if f else 0),
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
        anchors=centred_anchors(layer, g.boxes).astype(np.int16 if f else np.float32).reshape(-1),
        images=g.images,
        number=g.boxes,
        room=g.room,
        most=g.taken,
        indices=index.count,
        **given,
    )

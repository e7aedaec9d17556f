"""Kernels of rows: lanes are elements of a row; labels are decoded one by one."""

from __future__ import annotations

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import requantise_rounded, wide_kind
from compassc.layers.families.rows.reference import (
    COMBINERS,
    collapse_sizes,
    ctc_sizes,
    filling,
    frame_step,
    hits_sizes,
    lookup_sizes,
    query_sizes,
    segment_sizes,
    slot_sizes,
)
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel, KernelSource, named
from compassc.layers.vectors import bits_of


def _whole(*tensors: Tensor) -> None:
    for t in tensors:
        if wide_kind(t) != "int32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected whole numbers")


def _summed(k: KernelSource, layer: Layer, terms: int) -> Substitutions:
    """Substitutions for a sum of up to `terms` elements in `acc`: how an element is added, and the stored value."""
    x, y = layer.input, layer.output
    kind = wide_kind(x)
    if (kind == "int32") != layer.is_quantised or wide_kind(y) != kind:
        raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")
    words: Substitutions = {"dtype": x.dtype, "to": y.dtype, "more": "", "body": [], "result": "acc"}
    words["nothing"] = "S.i32(0)" if layer.is_quantised else "S.fp32(0)"
    if layer.is_quantised:
        low, high = (v + x.scalar_zero for v in (x.low, x.high))
        scale, shift = layer.scale_shift(of=1)
        result = requantise_rounded(
            k, named("acc", "int32", min(low, 0) * terms, max(high, 0) * terms), scale, shift, y
        )
        words |= {"body": k.body, "result": result.name, "more": f" + {x.scalar_zero}" if x.scalar_zero else ""}
    return words


OVERLAP = """
lanes = S.vload(counting, lanes=32)
blocks = S.ceildiv(size, 32)
for p in range(S.get_local_id(), lead * blocks, S.get_local_size()):
    at = p % blocks * 32
    own = x + p / blocks * (frames * length)
    acc = S.vbcast($nothing, lanes=32)
    for f in range(S.max((at - length + step) / step, 0), S.min((at + 31) / step + 1, frames)):
        inner = lanes + (at - f * step)
        mask = (inner >= 0) & (inner < length)
        taken = wide(S.vload(own + (f * length + at - f * step), mask, lanes=32), "$dtype")$more
        acc = acc + S.vsel(taken, acc - acc, mask)
    mask = S.tail_mask(S.min(size - at, 32), 32)
    $body
    S.vstore(narrow($result, "$to"), y + (p / blocks * size + at), mask)
"""


@kernel("OverlapAdd")
def overlap_add(layer: Layer) -> Kernel:
    lead, frames, length, step = frame_step(layer)
    k = KernelSource()
    words = _summed(k, layer, -(-length // step))
    # infinities less themselves are no zeros
    words["nothing"] = str(words["nothing"])
    return script(
        OVERLAP.replace("acc - acc", f"S.vbcast({words['nothing']}, lanes=32)"),
        k,
        words,
        x=layer.input,
        y=layer.output,
        counting=np.arange(32, dtype=np.int32),
        lead=lead,
        frames=frames,
        length=length,
        step=step,
        size=(frames - 1) * step + length,
    )


SEGMENTS = """
for s in range(S.get_local_id(), segments, S.get_local_size()):
    for j in range(0, width, 32):
        mask = S.tail_mask(S.min(width - j, 32), 32)
        acc = S.vbcast($nothing, lanes=32)
        for r in range(rows):
            if S.i32(ids[S.min(r, many - 1)]) == s:
                acc = acc + (load(x + (r * width + j), mask, "$dtype", 32)$more)
        $body
        S.vstore(narrow($result, "$to"), y + (s * width + j), mask)
"""


@kernel("SegmentReduce")
def segment_reduce(layer: Layer) -> Kernel:
    rows, width, many, segments = segment_sizes(layer)
    _whole(layer.inputs[1])
    k = KernelSource()
    return script(
        SEGMENTS,
        k,
        _summed(k, layer, rows),
        x=layer.input,
        ids=layer.inputs[1],
        y=layer.output,
        rows=rows,
        width=width,
        many=many,
        segments=segments,
    )


LOOKUP = """
for r in range(S.get_local_id(), many, S.get_local_size()):
    for j in range(0, width, 32):
        mask = S.tail_mask(S.min(width - j, 32), 32)
        acc = S.vbcast(S.fp32(0), lanes=32)
        weight = S.fp32(0)
        for e in range(number):
            at = S.i32(ids[e])
            if S.i32(rows[e]) == r and at >= 0 and at < size:
                factor = S.cast(weights[e], "float32")
                acc = acc + load(x + (at * width + j), mask, "$dtype", 32) * factor
                weight = weight + $weight
        $divide
        S.vstore(narrow(acc, "$to"), y + (r * width + j), mask)
"""


@kernel("EmbeddingLookupSparse")
def embedding_lookup(layer: Layer) -> Kernel:
    size, width, number, many = lookup_sizes(layer)
    combiner = layer.word("combiner", "MEAN", COMBINERS)
    table, rows, ids, weights = layer.inputs
    _whole(rows, ids)
    if any(wide_kind(t) != "float32" for t in (table, weights, layer.output)):
        raise LayerError(f"a table of {table.dtype} with weights of {weights.dtype} has no kernel")
    divide = []
    if combiner != "SUM":
        divide = [
            f"acc = acc / {'S.sqrt(weight)' if combiner == 'SQRTN' else 'weight'}",
            "acc = S.vsel(acc, S.vbcast(S.fp32(0), lanes=32), S.isfinite(acc))",
        ]
    words: Substitutions = {
        "dtype": table.dtype,
        "to": layer.output.dtype,
        "divide": divide,
        "weight": "factor * factor" if combiner == "SQRTN" else "factor",
    }
    return script(
        LOOKUP,
        None,
        words,
        x=table,
        rows=rows,
        ids=ids,
        weights=weights,
        y=layer.output,
        size=size,
        width=width,
        number=number,
        many=many,
    )


SLOTS = """
for p in range(S.get_local_id(), images * rows, S.get_local_size()):
    r = p % rows
    own = x + p / rows * (lists * length * width)
    for j in range(0, width, 32):
        mask = S.tail_mask(S.min(width - j, 32), 32)
        acc = S.vbcast($nothing, lanes=32)
        $sums
        $body
        S.vstore(narrow($result, "$to"), y + (p * width + j), mask)
"""


@kernel("SlotUpdate")
def slot_update(layer: Layer) -> Kernel:
    n, lists, length, width, rows = slot_sizes(layer)
    _whole(*layer.inputs[1:])
    k, sums = KernelSource(), []
    words = _summed(k, layer, sum(t.count for t in layer.inputs[1:]))
    for s, t in enumerate(layer.inputs[1:]):
        sums += [
            f"for e in range(many{s}):",
            f"    if S.i32(list{s}[e]) == r:",
            f'        acc = acc + (load(own + (({s} * length + e) * width + j), mask, "$dtype", 32)$more)'.replace(
                "$dtype", str(words["dtype"])
            ).replace("$more", str(words["more"])),
        ]
    words["sums"] = sums
    given: dict[str, Tensor | int] = {f"list{s}": t for s, t in enumerate(layer.inputs[1:])}
    given |= {f"many{s}": t.count for s, t in enumerate(layer.inputs[1:])}
    return script(
        SLOTS,
        k,
        words,
        x=layer.input,
        y=layer.output,
        images=n,
        lists=lists,
        length=length,
        width=width,
        rows=rows,
        **given,
    )


QUERIES = """
nothing = S.vbcast(S.cast($fill, "$bits"), lanes=32)
source = x.as_ptr("$bits")
target = y.as_ptr("$bits")
for n in range(images):
    $lists
"""


@kernel("QueryRebatch")
def query_rebatch(layer: Layer) -> Kernel:
    n, rows, width, lists, room = query_sizes(layer)
    _whole(*layer.inputs[1:])
    lines: list[str] = []
    for s in range(lists):
        lines += [
            f"for e in range(S.get_local_id(), room, S.get_local_size()):",  # noqa: F541
            "    at = S.i32(-1)",
            f"    if e < many{s}:",
            f"        at = S.i32(list{s}[e])",
            f"    to = target + ((n * {lists} + {s}) * room + e) * width",
            "    if at >= 0 and at < rows:",
            "        S.dma_copy(to, source + (n * rows + at) * width, width)",
            "    else:",
            "        for j in range(0, width, 32):",
            "            S.vstore(nothing, to + j, S.tail_mask(S.min(width - j, 32), 32))",
        ]
    given: dict[str, Tensor | int] = {f"list{s}": t for s, t in enumerate(layer.inputs[1:])}
    given |= {f"many{s}": t.count for s, t in enumerate(layer.inputs[1:])}
    bits = bits_of(layer.input.dtype)
    fill = filling(layer)
    if fill < 0 and bits.startswith("u"):
        fill += 1 << int(bits[4:])
    words: Substitutions = {"bits": bits, "fill": "fill", "lists": lines}
    return script(
        QUERIES,
        None,
        words,
        x=layer.input,
        y=layer.output,
        images=n,
        rows=rows,
        width=width,
        room=room,
        fill=fill,
        **given,
    )


COLLAPSE = """
for n in range(S.get_local_id(), images, S.get_local_size()):
    filled = S.i32(0)
    length = clamp(S.i32(lengths[n]), 0, steps)
    for t in range(length):
        fresh = S.i32(1)
        if t > 0:
            if x[n * steps + t] == x[n * steps + t - 1]:
                fresh = S.i32(0)
        if fresh != 0:
            y[n * steps + filled] = x[n * steps + t]
            filled += 1
    many[n] = narrow(filled, "$many")
    for t in range(filled, steps):
        y[n * steps + t] = narrow(S.i32(fill), "$dtype")
"""


@kernel("CollapseRepeated")
def collapse_repeated(layer: Layer) -> Kernel:
    n, steps = collapse_sizes(layer)
    x, y, many = layer.input, layer.outputs[0], layer.outputs[1]
    _whole(x, layer.inputs[1], many)
    if x.dtype != y.dtype:
        raise LayerError(f"labels are {x.dtype}, the output {y.dtype}; it keeps the type")
    return script(
        COLLAPSE,
        None,
        {"dtype": y.dtype, "many": many.dtype},
        x=x,
        lengths=layer.inputs[1],
        y=y,
        many=many,
        images=n,
        steps=steps,
        fill=filling(layer),
    )


CTC = """
lanes = S.vload(counting, lanes=32)
far = S.vbcast(S.i32(0x7FFFFFFF), lanes=32)
for n in range(S.get_local_id(), images, S.get_local_size()):
    filled = S.i32(0)
    last = S.i32(-1)
    length = S.min(S.i32(lengths[n]), steps)
    if length <= 0:
        length = steps + 0
    for t in range(length):
        own = x + (n * steps + t) * classes
        best = S.vbcast($lowest, lanes=32)
        place = far + 0
        for j in range(0, classes, 32):
            mask = S.tail_mask(S.min(classes - j, 32), 32)
            value = S.vsel(load(own + j, mask, "$dtype", 32), S.vbcast($lowest, lanes=32), mask)
            better = (value > best) | ((place == far) & mask)
            place = S.vsel(lanes + j, place, better)
            best = S.max(best, value)
        own_best = across_max(best)
        label = across_min(S.vsel(place, far, best == own_best))[0]
        if label != classes - 1 and filled < room$fresh:
            y[n * room + filled] = narrow(label, "$to")
            filled += 1
        last = label + 0
    for z in range(filled, room):
        y[n * room + z] = narrow(S.i32(fill), "$to")
"""


@kernel("CTCGreedyDecoder")
def ctc_greedy(layer: Layer) -> Kernel:
    n, steps, classes, room = ctc_sizes(layer)
    x, y = layer.input, layer.output
    _whole(layer.inputs[1])
    if wide_kind(y) != "int32":
        raise LayerError(f"labels are {y.dtype}, which has no kernel")
    lowest = 'S.fp32("-inf")' if wide_kind(x) == "float32" else "S.i32(-0x7FFFFFFF)"
    words: Substitutions = {
        "dtype": x.dtype,
        "to": y.dtype,
        "lowest": lowest,
        "fresh": " and label != last" if layer.flag("merge_repeated", True) else "",
    }
    return script(
        CTC,
        None,
        words,
        x=x,
        lengths=layer.inputs[1],
        y=y,
        counting=np.arange(32, dtype=np.int32),
        images=n,
        steps=steps,
        classes=classes,
        room=room,
        fill=y.integer.high,
    )


HITS = """
if S.get_local_id() == 0:
    filled = S.i32(0)
    for r in range(rows):
        for c in range(columns):
            for p in range(samples):
                if filled < room and S.i32(classes[r * columns + c]) == S.i32(sampled[p]):
                    y[filled] = narrow(r + 0, "$y")
                    places[filled] = narrow(p + 0, "$places")
                    filled += 1
    many[0] = narrow(filled, "$many")
    for z in range(filled, room):
        y[z] = narrow(S.i32(0), "$y")
        places[z] = narrow(S.i32(0), "$places")
"""


@kernel("AccidentalHits")
def accidental_hits(layer: Layer) -> Kernel:
    rows, columns, samples, room = hits_sizes(layer)
    y, places, many = layer.outputs
    _whole(*layer.inputs, *layer.outputs)
    return script(
        HITS,
        None,
        {"y": y.dtype, "places": places.dtype, "many": many.dtype},
        classes=layer.inputs[0],
        sampled=layer.inputs[1],
        y=y,
        places=places,
        many=many,
        rows=rows,
        columns=columns,
        samples=samples,
        room=room,
    )

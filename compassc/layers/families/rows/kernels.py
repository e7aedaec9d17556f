"""Kernels of rows: lanes are elements of a row; labels are decoded one by one."""

from __future__ import annotations

import numpy as np

from compassc.build import Address, Expression, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
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
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import across_max, across_min
from compassc.layers.layer_kernel import LayerKernel, kernel_of_macro, tail
from compassc.layers.requantise import requantise_rounded
from compassc.layers.vectors import LANES, bits_of, clamp, everywhere, load, narrow, wide_kind


def _whole(*tensors: Tensor) -> None:
    for t in tensors:
        if wide_kind(t) != "int32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected whole numbers")


class _Total:
    """A sum of up to `terms` elements of the input, which is stored in the output's scale."""

    def __init__(self, k: LayerKernel, layer: Layer, terms: int) -> None:
        x, y = layer.input, layer.output
        self.k, self.layer, self.terms, self.kind = k, layer, terms, wide_kind(x)
        if (self.kind == "int32") != layer.is_quantised or wide_kind(y) != self.kind:
            raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")

    def start(self) -> Value:
        """The sum of nothing."""
        return self.k.changing("acc", self.nothing())

    def nothing(self) -> Expression:
        return everywhere(0, self.kind)

    def taken(self, place: Address, mask: Expression) -> Expression:
        """What elements at a place add."""
        x = self.layer.input
        lanes: Expression = load(place, mask, x.dtype, LANES)
        return lanes + x.scalar_zero if self.layer.is_quantised and x.scalar_zero else lanes

    def store(self, acc: Value, place: Address, mask: Value) -> None:
        k, x, y = self.k, self.layer.input, self.layer.output
        if self.layer.is_quantised:
            low, high = (v + x.scalar_zero for v in (x.low, x.high))
            span = min(low, 0) * self.terms, max(high, 0) * self.terms
            acc = requantise_rounded(k, acc.within(*span), *self.layer.scale_shift(of=1), y)
        S.vstore(k.stored(acc, y.dtype), place, mask)


@kernel("OverlapAdd")
def overlap_add(layer: Layer) -> Kernel:
    sizes = frame_step(layer)
    k = LayerKernel()
    total = _Total(k, layer, -(-sizes[2] // sizes[3]))
    with k.active():
        x, y = k.tensor(layer.input), k.tensor(layer.output)
        lead, frames, length, step = (k.number(n) for n in sizes)
        size = k.number((sizes[1] - 1) * sizes[3] + sizes[2])
        lanes = k.held("lanes", S.vload(k.pointer(np.arange(LANES, dtype=np.int32)), lanes=LANES))
        blocks = k.held("blocks", S.ceildiv(size, LANES))
        with k.shared(lead * blocks, "p") as p:
            at = k.held("at", p % blocks * LANES)
            own = k.hold(x + p / blocks * (frames * length), "own")
            acc = total.start()
            first, past = S.max((at - length + step) / step, 0), S.min((at + (LANES - 1)) / step + 1, frames)
            with k.for_range(first, past, name="f") as f:
                inner = k.held("inner", lanes + (at - f * step))
                mask = k.held("mask", (inner >= 0) & (inner < length))
                taken = total.taken(own + (f * length + at - f * step), mask)
                # infinities less themselves are no zeros
                k.assign(acc, acc + S.vsel(taken, total.nothing(), mask))
            total.store(acc, y + (p / blocks * size + at), k.held("mask", tail(size - at)))
    return k.kernel()


@kernel("SegmentReduce")
def segment_reduce(layer: Layer) -> Kernel:
    sizes = segment_sizes(layer)
    _whole(layer.inputs[1])
    k = LayerKernel()
    total = _Total(k, layer, sizes[0])
    with k.active():
        x, ids, y = (k.tensor(t) for t in (*layer.inputs[:2], layer.output))
        rows, width, many, segments = (k.number(n) for n in sizes)
        with k.shared(segments, "s") as s, k.for_range(0, width, LANES, "j") as j:
            mask, acc = k.held("mask", tail(width - j)), total.start()
            with k.for_range(0, rows, name="r") as r, k.when(S.i32(ids[S.min(r, many - 1)]) == s):
                k.assign(acc, acc + total.taken(x + (r * width + j), mask))
            total.store(acc, y + (s * width + j), mask)
    return k.kernel()


@S.macro
def looked_up(
    x: Address, rows: Address, ids: Address, weights: Address, y: Address, size: Expression, width: Expression,
    number: Expression, many: Expression, dtype: str, to: str, combiner: str,
) -> None:  # fmt: skip
    """Rows of a table that belong to a row of the output, each times its weight: their sum, or a mean of them."""
    for r in range(S.get_local_id(), many, S.get_local_size()):
        for j in range(0, width, 32):
            mask = S.tail_mask(S.min(width - j, 32), 32)
            acc = S.vbcast(S.fp32(0), lanes=32)
            weight = S.fp32(0)
            for e in range(number):
                at = S.i32(ids[e])
                if S.i32(rows[e]) == r and at >= 0 and at < size:
                    factor = S.cast(weights[e], "float32")
                    acc = acc + load(x + (at * width + j), mask, dtype, 32) * factor
                    weight = weight + (factor * factor if combiner == "SQRTN" else factor)
            if combiner != "SUM":
                acc = acc / (S.sqrt(weight) if combiner == "SQRTN" else weight)
                acc = S.vsel(acc, S.vbcast(S.fp32(0), lanes=32), S.isfinite(acc))
            S.vstore(narrow(acc, to), y + (r * width + j), mask)


@kernel("EmbeddingLookupSparse")
def embedding_lookup(layer: Layer) -> Kernel:
    size, width, number, many = lookup_sizes(layer)
    combiner = layer.word("combiner", "MEAN", COMBINERS)
    table, rows, ids, weights = layer.inputs
    _whole(rows, ids)
    if any(wide_kind(t) != "float32" for t in (table, weights, layer.output)):
        raise LayerError(f"a table of {table.dtype} with weights of {weights.dtype} has no kernel")
    return kernel_of_macro(
        looked_up,
        x=table,
        rows=rows,
        ids=ids,
        weights=weights,
        y=layer.output,
        size=size,
        width=width,
        number=number,
        many=many,
        dtype=table.dtype,
        to=layer.output.dtype,
        combiner=combiner,
    )


@kernel("SlotUpdate")
def slot_update(layer: Layer) -> Kernel:
    sizes = slot_sizes(layer)
    lists = layer.inputs[1:]
    _whole(*lists)
    k = LayerKernel()
    total = _Total(k, layer, sum(t.count for t in lists))
    with k.active():
        x, *slots = (k.tensor(t) for t in layer.inputs)
        y = k.tensor(layer.output)
        images, _, length, width, rows = (k.number(n) for n in sizes)
        with k.shared(images * rows, "p") as p:
            r = k.held("r", p % rows)
            own = k.hold(x + p / rows * (k.number(sizes[1]) * length * width), "own")
            with k.for_range(0, width, LANES, "j") as j:
                mask, acc = k.held("mask", tail(width - j)), total.start()
                for s, t in enumerate(lists):
                    with k.for_range(0, k.number(t.count), name="e") as e, k.when(S.i32(slots[s][e]) == r):
                        k.assign(acc, acc + total.taken(own + ((s * length + e) * width + j), mask))
                total.store(acc, y + (p * width + j), mask)
    return k.kernel()


@kernel("QueryRebatch")
def query_rebatch(layer: Layer) -> Kernel:
    n, rows_, width_, lists, room_ = query_sizes(layer)
    _whole(*layer.inputs[1:])
    bits, fill = bits_of(layer.input.dtype), filling(layer)
    if fill < 0 and bits.startswith("u"):
        fill += 1 << int(bits[4:])
    k = LayerKernel()
    with k.active():
        source, target, slots = k.raw(layer.input), k.raw(layer.output), [k.tensor(t) for t in layer.inputs[1:]]
        rows, width, room = k.number(rows_), k.number(width_), k.number(room_)
        nothing = k.held("nothing", everywhere(k.number(fill), bits))
        with k.for_range(0, k.number(n), name="n") as image:
            for s, t in enumerate(layer.inputs[1:]):
                with k.shared(room, "e") as e:
                    at = k.changing("at", S.i32(-1))
                    with k.when(e < k.number(t.count)):
                        k.assign(at, S.i32(slots[s][e]))
                    to = k.hold(target + ((image * lists + s) * room + e) * width, "to")
                    with k.when(both(at >= 0, at < rows)):
                        S.dma_copy(to, source + (image * rows + at) * width, width)
                    with k.otherwise(), k.for_range(0, width, LANES, "j") as j:
                        S.vstore(nothing, to + j, tail(width - j))
    return k.kernel()


@S.macro
def collapsed(
    x: Address, lengths: Address, y: Address, many: Address, images: Expression, steps: Expression, fill: Expression,
    dtype: str, many_type: str,
) -> None:  # fmt: skip
    """Labels without those that are the same as the one before."""
    for n in range(S.get_local_id(), images, S.get_local_size()):
        filled = S.i32(0)
        length = clamp(S.i32(lengths[n]), 0, steps)
        for t in range(length):
            fresh = S.i32(1)
            if t > 0:  # noqa: SIM102 (what stands before the first label is not read)
                if x[n * steps + t] == x[n * steps + t - 1]:
                    fresh = S.i32(0)
            if fresh != 0:
                y[n * steps + filled] = x[n * steps + t]
                filled += 1
        many[n] = narrow(filled, many_type)
        for t in range(filled, steps):
            y[n * steps + t] = narrow(S.i32(fill), dtype)


@kernel("CollapseRepeated")
def collapse_repeated(layer: Layer) -> Kernel:
    n, steps = collapse_sizes(layer)
    x, y, many = layer.input, layer.outputs[0], layer.outputs[1]
    _whole(x, layer.inputs[1], many)
    if x.dtype != y.dtype:
        raise LayerError(f"labels are {x.dtype}, the output {y.dtype}; it keeps the type")
    return kernel_of_macro(
        collapsed,
        x=x,
        lengths=layer.inputs[1],
        y=y,
        many=many,
        images=n,
        steps=steps,
        fill=filling(layer),
        dtype=y.dtype,
        many_type=many.dtype,
    )


@S.macro
def decoded(
    x: Address, lengths: Address, y: Address, counting: Address, images: Expression, steps: Expression,
    classes: Expression, room: Expression, fill: Expression, dtype: str, to: str, real: bool, merges: bool,
) -> None:  # fmt: skip
    """The most likely label of every step, without the last class, which is none."""
    lanes = S.vload(counting, lanes=32)
    far = S.vbcast(S.i32(0x7FFFFFFF), lanes=32)
    lowest = S.fp32("-inf") if real else S.i32(-0x7FFFFFFF)
    for n in range(S.get_local_id(), images, S.get_local_size()):
        filled = S.i32(0)
        last = S.i32(-1)
        length = S.min(S.i32(lengths[n]), steps)
        if length <= 0:
            length = steps + 0
        for t in range(length):
            own = x + (n * steps + t) * classes
            best = S.vbcast(lowest, lanes=32)
            place = far + 0
            for j in range(0, classes, 32):
                mask = S.tail_mask(S.min(classes - j, 32), 32)
                value = S.vsel(load(own + j, mask, dtype, 32), S.vbcast(lowest, lanes=32), mask)
                better = (value > best) | ((place == far) & mask)
                place = S.vsel(lanes + j, place, better)
                best = S.max(best, value)
            own_best = across_max(best)
            label = across_min(S.vsel(place, far, best == own_best))[0]
            if label != classes - 1 and filled < room and (not merges or label != last):
                y[n * room + filled] = narrow(label, to)
                filled += 1
            last = label + 0
        for z in range(filled, room):
            y[n * room + z] = narrow(S.i32(fill), to)


@kernel("CTCGreedyDecoder")
def ctc_greedy(layer: Layer) -> Kernel:
    n, steps, classes, room = ctc_sizes(layer)
    x, y = layer.input, layer.output
    _whole(layer.inputs[1])
    if wide_kind(y) != "int32":
        raise LayerError(f"labels are {y.dtype}, which has no kernel")
    return kernel_of_macro(
        decoded,
        x=x,
        lengths=layer.inputs[1],
        y=y,
        counting=np.arange(LANES, dtype=np.int32),
        images=n,
        steps=steps,
        classes=classes,
        room=room,
        fill=y.integer.high,
        dtype=x.dtype,
        to=y.dtype,
        real=wide_kind(x) == "float32",
        merges=layer.flag("merge_repeated", True),
    )


@S.macro
def hits(
    classes: Address, sampled: Address, y: Address, places: Address, many: Address, rows: Expression,
    columns: Expression, samples: Expression, room: Expression, y_type: str, places_type: str, many_type: str,
) -> None:  # fmt: skip
    """The samples that are among the classes of a row: pairs of their indices."""
    if S.get_local_id() == 0:
        filled = S.i32(0)
        for r in range(rows):
            for c in range(columns):
                for p in range(samples):
                    if filled < room and S.i32(classes[r * columns + c]) == S.i32(sampled[p]):
                        y[filled] = narrow(r + 0, y_type)
                        places[filled] = narrow(p + 0, places_type)
                        filled += 1
        many[0] = narrow(filled, many_type)
        for z in range(filled, room):
            y[z] = narrow(S.i32(0), y_type)
            places[z] = narrow(S.i32(0), places_type)


@kernel("AccidentalHits")
def accidental_hits(layer: Layer) -> Kernel:
    rows, columns, samples, room = hits_sizes(layer)
    y, places, many = layer.outputs
    _whole(*layer.inputs, *layer.outputs)
    return kernel_of_macro(
        hits,
        classes=layer.inputs[0],
        sampled=layer.inputs[1],
        y=y,
        places=places,
        many=many,
        rows=rows,
        columns=columns,
        samples=samples,
        room=room,
        y_type=y.dtype,
        places_type=places.dtype,
        many_type=many.dtype,
    )

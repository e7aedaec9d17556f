"""The kernel of GenerateProposals: every TEC has a part of the anchors, 32 at a time; they agree on the best one.

Boxes are decoded again whenever they are looked at: nothing of them is kept but whether they are candidates, a byte each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compassc.build import Address, Expression, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.detection.contest import Contest, Winner, product_of
from compassc.layers.families.detection.corners import Corners
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
from compassc.layers.families.detection.lists import FAR, BoxList, Entries, Output, ones, same_kinds
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import across_sum
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.machine import Share
from compassc.layers.vectors import LANES, clamp, everywhere, load, look_up, narrow, scaled_floor, shared_part, wide

ROOM = Share(6)
"""Anchors of an image: bytes of LSRAM for the candidates of a TEC, and for quantised tables."""
ENTRIES = 1024
"""Entries of a quantised table that fit LSRAM."""

Numbers = Callable[[Address, int, str], Expression]
"""Gives a number of rows of four: of a tensor, its column, its data type."""


class _Boxes:
    """The boxes of an image by their anchors and offsets, in floats."""

    kind, more, nothing = "float32", 1.0, 0.0

    def __init__(self, k: LayerKernel, layer: Layer, g: Generation) -> None:
        self.k, self.g, self.deltas_type = k, g, layer.inputs[1].dtype
        self.deltas, self.number = k.tensor(layer.inputs[1]), k.number(g.boxes)
        self.anchors = k.pointer(centred_anchors(layer, g.boxes).astype(self.anchor_type).reshape(-1))
        self.info = k.tensor(layer.inputs[2]) if g.told else None
        self.product = product_of(self.kind == "int32", AREA_BITS)
        self.halves: list[tuple[Value, Value]] = []  # of the boxes that were decoded last
        self._take(layer)

    anchor_type: type[np.generic] = np.float32

    def _take(self, layer: Layer) -> None:
        k, g = self.k, self.g
        if not g.told:
            sides = layer.number("image_width", 600), layer.number("image_height", 600)
            self.high = [k.number(float(np.float32(v) - np.float32(1))) for v in sides]
        self.largest, self.least = k.number(float(np.float32(g.overlap))), k.number(float(np.float32(g.size)))

    def begin(self, image: Value) -> None:
        """The image whose boxes are asked for."""
        self.moved = self.k.hold(self.deltas + image * self.number * 4, "moved")
        if self.info is not None:
            told = [self.info[image * self.g.told + i] for i in (1, 0)]
            self.high = [self.k.held("high", self._extent(side)) for side in told]

    def _extent(self, side: Expression) -> Expression:
        return S.cast(side, "float32") - 1.0

    def lanes(self, at: Value, mask: Value) -> Corners:
        """y0, x0, y1, x1 of 32 boxes."""

        def numbers(pointer: Address, e: int, dtype: str) -> Expression:
            lanes: Expression = wide(S.vload(pointer + (at * 4 + e), mask, lanes=LANES, stride=4), dtype)
            return lanes

        return self._corners(numbers, mask)

    def one(self, place: Value) -> Corners:
        """The same of one box."""
        return self._corners(lambda pointer, e, _: S.cast(pointer[place * 4 + e], self.kind), None)

    def _corners(self, numbers: Numbers, mask: Value | None) -> Corners:
        """With the `mask` of lanes, or of a box alone."""
        ends, self.halves = [], [self._halves(numbers, i, mask) for i in (0, 1)]
        for (half, middle), high in zip(self.halves, self.high):
            ends += [self.k.held("corner", clamp(c, self.nothing, high)) for c in (middle - half, middle + half)]
        x0, x1, y0, y1 = ends
        return y0, x0, y1, x1

    def _halves(self, numbers: Numbers, i: int, mask: Value | None) -> tuple[Value, Value]:
        """Half the size, and the middle, along an axis."""
        k = self.k
        extent = k.held("extent", numbers(self.anchors, i, "float32"))
        half = k.held("half", S.exp(numbers(self.moved, 2 + i, self.deltas_type)) * extent * 0.5)
        place = numbers(self.moved, i, self.deltas_type) * extent
        return half, k.held("middle", place + numbers(self.anchors, 2 + i, "float32"))

    def limit(self, union: Expression) -> Expression:
        """The largest area in common that boxes may have."""
        return union * self.largest

    def key(self, scores: Address, at: Expression, mask: Value, dtype: str) -> Value:
        """Whole numbers that are ordered as scores are; 0 has one."""
        k = self.k
        self.value = k.held("value", load(scores + at, mask, dtype, LANES))
        nothing = k.held("nothing", self.value == 0.0)
        word = S.reinterpret(S.vsel(self.value * 0.0, self.value, nothing), "int32x32")
        word = k.held("word", S.vsel(word & FAR, word, nothing))
        return k.held("key", word ^ ((word >> 31) & FAR))

    def proper(self, winner: Winner, corners: Corners) -> Expression:
        """Which boxes are large enough, and have a score, and corners: infinite offsets may have none, which are clamped to
        0."""
        y0, x0, y1, x1 = corners
        found: Expression = (winner.side(x0, x1) > self.least) & (winner.side(y0, y1) > self.least)
        if self.kind == "int32":
            return found
        for half, middle in self.halves:
            found = (middle - half == middle - half) & (middle + half == middle + half) & found
        found = (self.value == self.value) & found
        return found


class _FixedBoxes(_Boxes):
    """The same in whole numbers."""

    kind, more, nothing, anchor_type = "int32", 0.0, 0, np.int16

    def __init__(self, k: LayerKernel, layer: Layer, f: FixedGeneration) -> None:
        self.f = f
        super().__init__(k, layer, f.common)

    def _take(self, layer: Layer) -> None:
        k, f, of = self.k, self.f, layer.inputs[1]
        self.first = 1 << (of.integer.bits - 1) if of.integer.signed else 0
        self.tables = {}
        for key in TABLES:
            table = layer.constant(key).reshape(-1)
            if table.size > ENTRIES:
                raise LayerError(f"the table '{key}' has {table.size} entries, of which {ENTRIES} fit LSRAM")
            extra = max(of.integer.bits - (table.size.bit_length() - 1), 0)
            self.tables[key] = Entries(k, k.table(table.astype(np.int32)), extra, self.first, table.size - 1)
        if f.common.told:
            self.scale, self.step = k.number(f.told[0]), k.number(f.scale)
        else:
            self.high = [k.number(max(v, 0)) for v in f.most]
        self.largest, self.least = k.number(int(f.common.overlap)), k.number(int(f.common.size))

    def _extent(self, side: Expression) -> Expression:
        _, shift, zero = self.f.told
        return clamp(scaled_floor(S.i32(side) + zero, self.scale, shift) - self.step, 0, FARTHEST)

    def _entry(self, key: str, offset: Expression, mask: Value | None) -> Expression:
        table = self.tables[key]
        if mask is None:
            return table.at(offset)
        value = self.k.changing("entry", offset + self.first)
        self.k.paste(look_up, value, table.table, table.extra, table.last or 0, mask)
        return value

    def _halves(self, numbers: Numbers, i: int, mask: Value | None) -> tuple[Value, Value]:
        k, shift, dtype = self.k, self.f.shift, self.deltas_type
        extent = k.held("extent", numbers(self.anchors, i, "int16"))
        half = self._entry("wh_lut", numbers(self.moved, 2 + i, dtype), mask)
        half = k.held("half", (half * extent) >> (shift + 1))
        middle = (self._entry("xy_lut", numbers(self.moved, i, dtype), mask) * extent) >> shift
        return half, k.held("middle", middle + numbers(self.anchors, 2 + i, "int16"))

    def limit(self, union: Expression) -> Expression:
        return (union * self.largest) >> OVERLAP_BITS

    def key(self, scores: Address, at: Expression, mask: Value, dtype: str) -> Value:
        return self.k.held("key", load(scores + at, mask, dtype, LANES))


class _Proposals:
    """The suppression of the boxes of an image in its parts."""

    def __init__(self, k: LayerKernel, layer: Layer, g: Generation, boxes: _Boxes, many: int) -> None:
        """`many`: the candidates of a TEC that LSRAM has room for."""
        self.k, self.boxes, self.dtype = k, boxes, layer.input.dtype
        self.scores, self.number, self.most = k.tensor(layer.input), boxes.number, k.number(g.taken)
        self.looked_at = k.number(g.looked_at) if g.looked_at < g.boxes else None
        self.left, self.contest = k.alloc(many, "int8", "left"), Contest(k, boxes.kind)
        part = k.held("part", shared_part(self.number, LANES))
        self.start = k.held("begin", S.min(self.contest.tec * part, self.number))
        self.count = k.held("own_count", S.min(self.start + part, self.number) - self.start)

    def begin(self, image: Value) -> None:
        """The candidates of an image."""
        k = self.k
        self.own = k.hold(self.scores + image * self.number, "own")
        self.boxes.begin(image)
        self.winner = Winner(k, self.boxes.kind, self.boxes.product, self.boxes.more)
        limit, limit_at = self._last() if self.looked_at is not None else (None, None)
        with k.for_range(0, self.count, LANES, "j") as j:
            mask, at = k.held("mask", tail(self.count - j)), k.held("at", self.start + j)
            corners = self.boxes.lanes(at, mask)
            key = self.boxes.key(self.own, at, mask, self.dtype)
            good = self.boxes.proper(self.winner, corners)
            if limit is not None:
                good = ((key > limit) | ((key == limit) & (self.contest.lanes + at <= limit_at))) & good
            S.vstore(narrow(ones(good), "int8"), self.left + j, mask)

    def _hits(self, which: Callable[[Value, Expression], Expression]) -> Expression:
        """How many anchors there are of those that are asked for by their key and place."""
        k = self.k
        hits = k.changing("hits", everywhere(0))
        with k.for_range(0, self.number, LANES, "at") as at:
            mask = k.held("mask", tail(self.number - at))
            key = self.boxes.key(self.own, at, mask, self.dtype)
            k.assign(hits, hits + S.vsel(ones(which(key, self.contest.lanes + at)), 0, mask))
        found: Expression = across_sum(hits)[0]
        return found

    def _last(self) -> tuple[Value, Value]:
        """The key of the last anchor that is looked at, and its place: those with a larger key come before it, and of those
        with the same key the first ones. Both are found bit by bit."""
        k, wanted = self.k, self.looked_at
        assert wanted is not None
        ranks, limit_at = k.changing("ranks", S.i32(0)), k.changing("limit_at", S.i32(0))
        with k.for_range(0, 32, name="bit") as bit:
            tried = k.held("tried", ranks | (S.i32(1) << (31 - bit)))
            with k.when(self._hits(lambda key, _: key >= (tried ^ S.i32(-0x80000000))) >= wanted):
                k.assign(ranks, tried + 0)
        limit = k.held("limit", ranks ^ S.i32(-0x80000000))
        equal = k.held("equal", wanted - self._hits(lambda key, _: key > limit))
        with k.for_range(0, 16, name="bit") as bit:
            tried_at = k.held("tried", limit_at + (S.i32(1) << (15 - bit)))
            with k.when(self._hits(lambda key, at: (key == limit) & (at < tried_at)) < equal):
                k.assign(limit_at, tried_at + 0)
        return limit, limit_at

    def choose(self) -> Value:
        """The best score left; the winner's place becomes that of its box. What the last winner overlaps with is suppressed."""
        k, contest, boxes = self.k, self.contest, self.boxes
        contest.begin()
        with k.for_range(0, self.count, LANES, "j") as j:
            mask, at = k.held("mask", tail(self.count - j)), k.held("at", self.start + j)
            left, place = k.changing("on", load(self.left + j, mask, "int8", LANES)), k.held("lane", contest.lanes + at)
            with k.when(S.vany(left > 0)):
                with k.when(self.winner.place >= 0):
                    inter, union = self.winner.overlap(boxes.lanes(at, mask))
                    kept = k.held("kept", S.vsel(left, 0, inter <= boxes.limit(union)))
                    k.assign(left, S.vsel(0, kept, place == self.winner.place))
                    S.vstore(narrow(left, "int8"), self.left + j, mask)
                lanes = load(self.own + at, mask, self.dtype, LANES)
                value = k.held("value", S.vsel(lanes, S.vbcast(contest.lowest, lanes=LANES), left > 0))
                contest.offer(place, value, (value > contest.best) | ((left > 0) & (contest.place == FAR)))
        return contest.settle(self.winner.place, ties=True)

    def each(self, has_room: Callable[[], Expression], take: Callable[[Sequence[Expression], Value], None]) -> None:
        """Takes boxes, by their corners and score, as long as there are some and room for them."""
        k = self.k
        going = k.changing("going", S.i32(1))
        with k.while_loop(going != 0):
            top = self.choose()
            k.assign(going, S.i32(0))
            with k.when(both(self.winner.place < self.number, has_room())):
                k.assign(going, S.i32(1))
                self.winner.become(self.boxes.one(self.winner.place))
                take(self.winner.corners, top)


@kernel("GenerateProposals")
def generate_proposals(layer: Layer) -> Kernel:
    g = generation_of(layer)
    scores, boxes, index, many = layer.outputs
    same_kinds(layer, boxes, scores, (index, many))
    f = fixed_generation(layer) if layer.is_quantised else None
    room = ROOM.size - 8 * ENTRIES if f else ROOM.size
    if g.boxes > room:
        raise LayerError(f"{g.boxes} anchors do not fit LSRAM; it takes {room}")
    k = LayerKernel()
    with k.active():
        lists, counts, indices = BoxList(k, boxes, scores, g.room), Output(k, many), Output(k, index)
        decoder = _FixedBoxes(k, layer, f) if f else _Boxes(k, layer, g)
        proposals = _Proposals(k, layer, g, decoder, min(room, -(-g.boxes // LANES) * LANES))
        first_tec, last = proposals.contest.tec == 0, f.last if f else 0
        with k.for_range(0, k.number(g.images), name="n") as n:
            lists.begin(n)
            proposals.begin(n)

            def take(corners: Sequence[Expression], score: Value) -> None:
                y0, x0, y1, x1 = ((corner >> last) if last else corner for corner in corners)
                with k.when(first_tec):
                    lists.store(k.held("to", lists.place), (x0, y0, x1, y1), score)
                lists.took_one()

            proposals.each(lambda: lists.filled < proposals.most, take)
            with k.when(first_tec):
                counts.put_count(n, lists.filled)
                lists.end()
            S.barrier()
        with k.when(first_tec), k.for_range(0, k.number(index.count), name="z") as z:
            indices.fill(z)
    return k.kernel()

"""The kernel of a quantised YOLO head: every TEC goes through the cells of its images two or three times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from compass_core.arrays import Array
from compassc.build import Address, Expression, Value, both, either
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.detection.fixed import (
    TRUST_BITS,
    FixedHead,
    head_anchors,
    head_numbers,
    head_tables,
)
from compassc.layers.families.detection.lists import (
    FAR,
    BoxList,
    ClassList,
    Entries,
    whole_numbers,
)
from compassc.layers.kernel import Kernel
from compassc.layers.lane_arithmetic import across_max, across_sum
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.vectors import LANES, clamp, entry_of, everywhere, load, look_up, scaled_floor

MOST = 2048
"""Classes whose numbers of boxes fit LSRAM."""
ENTRIES = 1024
"""Entries of the table of exponentials that fit LSRAM."""
LARGEST = 1 << 30
"""Sizes of boxes from which on both corners lie at the ends of the image."""


class _Head:
    """Boxes of the cells of a grid: those above a threshold, and where there is no room for all the best of them.

    How many boxes have a score, by its upper and then by its lower 8 bits, and how many a class has, is counted in LSRAM.
    """

    def __init__(self, k: LayerKernel, layer: Layer, f: FixedHead, tables: dict[str, Array]) -> None:
        self.k, self.f, self.source = k, f, layer.input
        h = f.sizes
        self.x, self.images = k.tensor(layer.input), k.number(h.images)
        self.cells, self.width = k.number(h.rows * h.columns * h.boxes), k.number(5 + h.classes)
        self.classes, self.boxes, self.columns = (k.number(n) for n in (h.classes, h.boxes, h.columns))
        self.threshold, self.scale = k.number(f.threshold), k.number(f.scale)
        self.grid = [k.number(n) for n in f.grid]
        self._take_tables(layer, tables)
        anchors, most_sides = _anchors(layer, f)
        self.anchors, self.most_sides = k.pointer(anchors), k.pointer(most_sides)
        self.many_of = k.scratch(256, "int32", "many_of")
        self.next_of = k.scratch(-(-h.classes // LANES) * LANES, "int32", "next_of")

    def _take_tables(self, layer: Layer, tables: dict[str, Array]) -> None:
        k, f = self.k, self.f
        extra = {key: f.bits - (table.size.bit_length() - 1) for key, table in tables.items()}
        powers = tables["score_softmax_lut"]
        if powers.size > ENTRIES:
            raise LayerError(f"the table 'score_softmax_lut' has {powers.size} entries, of which {ENTRIES} fit LSRAM")
        self.powers, self.last = k.table(powers.astype(np.int32)), powers.size - 1
        self.extra = extra["score_softmax_lut"]
        self.power = Entries(k, self.powers, self.extra, last=self.last)
        first = 1 << (f.bits - 1) if layer.input.integer.signed else 0

        def entries(key: str, table: Array, kind: type[np.generic]) -> Entries:
            closed = np.append(table, table[-1]).astype(kind)
            return Entries(k, k.pointer(closed), extra[key], first)

        self.trusts = entries("conf_sigmoid_lut", tables["conf_sigmoid_lut"], np.uint16)
        self.places = entries("xy_sigmoid_lut", tables["xy_sigmoid_lut"], np.int16)
        self.sides = entries("wh_exp_lut", _sides(f, tables["wh_exp_lut"]), np.uint16)

    # -- scores

    @contextmanager
    def _lanes(self, cell: Address) -> Iterator[tuple[Value, Value, Value]]:
        """The first class, the mask and the elements of 32 classes of a cell at a time."""
        with self.k.for_range(0, self.classes, LANES, "j") as j:
            mask = self.k.held("mask", tail(self.classes - j))
            yield j, mask, self.k.held("lanes", load(cell + (j + 5), mask, self.source.dtype, LANES))

    def _powers(self, lanes: Value, top: Value, mask: Value) -> Expression:
        """The exponentials of 32 classes."""
        if self.extra <= 0:
            return self.k.held("power", entry_of(self.powers, lanes - top, mask))
        power = self.k.changing("power", lanes - top)
        self.k.paste(look_up, power, self.powers, self.extra, self.last, mask)
        return power

    def _trusted(self, power: Expression) -> Expression:
        """An exponential times the trust, in parts, so that it fits 32 bits."""
        low = ((power & ((1 << TRUST_BITS) - 1)) * self.trust) >> TRUST_BITS
        return (power >> TRUST_BITS) * self.trust + low

    @contextmanager
    def each_score(self) -> Iterator[tuple[Value, Address, Value, Value]]:
        """Box, its cell's address, class and score of all in the image whose score is above the threshold."""
        k, bits = self.k, self.f.bits
        with k.for_range(0, self.cells, name="b") as b:
            cell = k.hold(self.image + b * self.width, "cell")
            self.trust = k.held("trust", self.trusts.at(S.i32(cell[4])))
            with k.when(self.trust > 0):
                peak = k.changing("peak", everywhere(-FAR))
                with self._lanes(cell) as (_, mask, lanes):
                    k.assign(peak, S.max(peak, S.vsel(lanes, peak, mask)))
                top = k.held("top", across_max(peak)[0] - ((1 << bits) - 1))
                sums = k.changing("sums", everywhere(0))
                with self._lanes(cell) as (_, mask, lanes):
                    k.assign(sums, sums + S.vsel(self._powers(lanes, top, mask), 0, mask))
                total = k.held("total", across_sum(sums)[0])
                limit = k.held("limit", scaled_floor(total, self.threshold, bits))
                with self._lanes(cell) as (j, mask, lanes):
                    seen = k.held("seen", self._trusted(self._powers(lanes, top, mask)))
                    with (
                        k.when(S.vany(S.vsel(seen, 0, mask) > limit)),
                        k.for_range(0, S.min(self.classes - j, LANES), name="e") as e,
                    ):
                        c = k.held("c", j + e)
                        one = k.held("one", self.power.at(S.i32(cell[c + 5]) - top))
                        trusted, score = k.held("trusted", self._trusted(one)), k.changing("score", S.i32(0))
                        with k.when(trusted > limit):
                            self._divide(score, trusted, total)
                        with k.when(score > 0):
                            yield b, cell, c, score

    def _divide(self, score: Value, trusted: Value, total: Value) -> None:
        """`score` becomes trusted * (2^bits - 1) / total: with 16 bits times 2^16 bit by bit, and less one part."""
        k = self.k
        if self.f.bits == 8:
            k.assign(score, trusted * 255 / total)
            return
        rest, whole = k.changing("rest", S.cast(trusted, "uint32")), k.held("whole", S.cast(total, "uint32"))
        with k.for_range(0, 16, name="bit"):
            k.assign(rest, rest << S.u32(1))
            k.assign(score, score * 2)
            with k.when(rest >= whole):
                k.assign(rest, rest - whole)
                k.assign(score, score + 1)
        with k.when(rest < S.cast(trusted, "uint32")):
            k.assign(score, score - 1)

    # -- which of them are taken

    def _count(self, number: Value) -> None:
        """How many scores there are, and how many of each, or of each upper half."""
        k = self.k
        with self.each_score() as (_, _, _, score):
            self._one_more(self.many_of, score if self.f.bits == 8 else score >> 8)
            k.assign(number, number + 1)

    def _one_more(self, counts: Address, at: Expression) -> None:
        counts[at] = counts[at] + 1

    def _clear(self) -> None:
        with self.k.for_range(0, 256, name="v") as v:
            self.many_of[v] = S.i32(0)

    def _find(self, above: Value, room: Value, equal: Value) -> Value:
        """The entry in which there is no room for all, from the highest on, where so many are above; `equal` becomes how
        many of it there is room for."""
        k = self.k
        found = k.changing("found", S.i32(-1))
        with k.for_range(0, 256, name="v") as v:
            many = k.held("many", self.many_of[255 - v])
            with k.when(both(found < 0, above + many >= room)):
                k.assign(found, 255 - v)
                k.assign(equal, room - above)
            k.assign(above, above + many)
        return found

    def _limit(self, room: Value) -> tuple[Value, Value, Value]:
        """How many scores there are, the lowest one that is taken, and how many with it are."""
        k = self.k
        self._clear()
        number = k.changing("number", S.i32(0))
        self._count(number)
        level, equal = k.changing("level", S.i32(0)), k.changing("equal", number + 0)
        with k.when(number > room):
            found = self._find(k.changing("above", S.i32(0)), room, equal)
            if self.f.bits == 8:
                k.assign(level, found)
            else:
                before = k.changing("before", room - equal)
                self._clear()
                with self.each_score() as (_, _, _, score), k.when(score >> 8 == found):
                    self._one_more(self.many_of, score & 255)
                k.assign(level, found * 256 + self._find(before, room, equal))
        return number, level, equal

    @contextmanager
    def each_taken(self, level: Value, equal: Value) -> Iterator[tuple[Value, Address, Value, Value]]:
        """As `each_score`, of boxes that there is room for: of those with the lowest score the first ones."""
        k = self.k
        left = k.changing("left", equal + 0)
        with (
            self.each_score() as (b, cell, c, score),
            k.when(either(score > level, both(score == level, left > 0))),
        ):
            with k.when(score == level):
                k.assign(left, left - 1)
            yield b, cell, c, score

    # -- boxes

    def corners(self, b: Value, cell: Address) -> tuple[Expression, ...]:
        """y0, x0, y1, x1 of the box of a cell."""
        k, f, low, high = self.k, self.f, [], []
        places = b / self.boxes % self.columns, b / (self.boxes * self.columns)
        for i, place in enumerate(places):
            at = b % self.boxes * 2 + i
            moved = (place << f.cell[i]) + self.places.at(S.i32(cell[i]))
            middle = k.held("middle", (moved * self.grid[i]) >> f.part[i])
            side = scaled_floor(self.sides.at(S.i32(cell[2 + i])), self.scale, f.shift)
            side = k.held("side", S.min(side, self.most_sides[at]))
            half = k.held("half", scaled_floor(side, self.anchors[at], f.anchor[i]) >> 1)
            low.append(clamp(middle - half, 0, 1 << f.cell[i]))
            high.append(clamp(middle + half, 0, 1 << f.cell[i]))
        return low[1], low[0], high[1], high[0]

    def make(self, boxes: BoxList, classes: ClassList) -> None:
        """The statements of the kernel."""
        k = self.k
        with k.shared(self.images, "n") as n:
            self.image = k.hold(self.x + n * self.cells * self.width, "image")
            with k.for_range(0, self.classes, name="c") as c:
                self.next_of[c] = S.i32(0)
            number, level, equal = self._limit(boxes.room)
            with k.when(number > 0), self.each_taken(level, equal) as (_, _, c, _):
                self._one_more(self.next_of, c)
            boxes.begin(n)
            classes.begin(n)
            with k.for_range(0, self.classes, name="c") as c:
                count = k.held("count", self.next_of[c])
                self.next_of[c] = boxes.filled + 0
                k.assign(boxes.filled, boxes.filled + count)
                with k.when(count > 0):
                    classes.put(c, count)
            with k.when(boxes.filled > 0), self.each_taken(level, equal) as (b, cell, c, score):
                at = k.held("at", n * boxes.room + self.next_of[c])
                self._one_more(self.next_of, c)
                boxes.store(at, self.corners(b, cell), S.min(score, boxes.scores.tensor.high))
            classes.end()
            boxes.end()


def _anchors(layer: Layer, f: FixedHead) -> tuple[Array, Array]:
    """Anchors times the scale of the grid; and for each the size from which on a box is limited anyway."""
    anchors = np.asarray([(head_anchors(layer, f.sizes.boxes)[:, i] * f.grid[i]) >> f.part[i] for i in (0, 1)]).T
    if anchors.max(initial=0) > 65535:
        raise LayerError(f"anchors times 'grid_w_scale' and 'grid_h_scale' are up to {anchors.max()}, expected 16 bits")
    most = (LARGEST << np.asarray(f.anchor)) // np.maximum(anchors, 1)
    return anchors.astype(np.int32).reshape(-1), np.minimum(most, 2**31 - 1).astype(np.int32).reshape(-1)


def _sides(f: FixedHead, table: Array) -> Array:
    """The table of sizes; entries with which a size would leave 32 bits lie at both ends of the image anyway."""
    most = ((2**31 - 1) << f.shift) // max(f.scale, 1)
    if f.bits > 8 and table.max() > most:
        raise LayerError(f"'wh_exp_scale' {f.scale} and 'wh_exp_shift' {f.shift} lead to sizes beyond 32 bits")
    return np.minimum(table, most)


def _check(layer: Layer, f: FixedHead) -> None:
    _, boxes, *numbers = layer.outputs
    whole_numbers(*numbers)
    if boxes.high < max(1 << c for c in f.cell):
        raise LayerError(f"'{boxes.name}' is {boxes.dtype}, expected a type that holds {1 << max(f.cell)}")
    if f.sizes.classes > MOST:
        raise LayerError(f"{f.sizes.classes} classes do not fit LSRAM; it takes {MOST}")


def region(layer: Layer) -> Kernel:
    f, tables = head_numbers(layer), head_tables(layer)
    _check(layer, f)
    scores, boxes, counts, labels, many = layer.outputs
    k = LayerKernel()
    with k.active():
        lists = BoxList(k, boxes, scores, f.sizes.room), ClassList(k, counts, labels, many, f.sizes.slots)
        _Head(k, layer, f, tables).make(*lists)
    return k.kernel()

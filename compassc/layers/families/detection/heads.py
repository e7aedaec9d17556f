"""The kernel of a YOLO head in floats: every TEC goes through the cells of its images class by class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from compassc.build import Address, Expression, Pointer, Value, both, either
from compassc.dsl import script as S
from compassc.graph import Layer
from compassc.layers.families.detection import fixed_heads
from compassc.layers.families.detection.lists import FAR, BoxList, ClassList, ends, floats, ones
from compassc.layers.families.detection.yolo import Head, anchors_of_cells, head_of, shifts
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import across_max, across_sum
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.vectors import LANES, clamp, everywhere, load

LOWEST = -3.4028234663852886e38


def _sigmoid(value: Expression) -> Expression:
    one = S.cast(1.0, "float32")
    return one / (one + S.exp(0.0 - value))


class _Head:
    """Boxes of the cells of a grid: those above a threshold, and where there is no room for all the best of them."""

    def __init__(self, k: LayerKernel, layer: Layer, h: Head) -> None:
        self.k, self.dtype, self.sizes = k, layer.input.dtype, h
        self.x, self.anchors = k.tensor(layer.input), k.pointer(anchors_of_cells(layer, h.boxes).reshape(-1))
        cells = h.rows * h.columns * h.boxes
        self.images, self.cells, self.width, self.classes = (
            k.number(n) for n in (h.images, cells, 5 + h.classes, h.classes)
        )
        self.boxes, self.columns = k.number(h.boxes), k.number(h.columns)
        self.extent = k.number(float(h.columns)), k.number(float(h.rows))
        down, across = shifts(layer, h)
        self.shift = k.number(float(across)), k.number(float(down))
        self.threshold = k.number(float(np.float32(layer.number("obj_thresh", 0.3))))
        self.lowest = k.number(LOWEST)

    def element(self, cell: Address, at: Expression | int) -> Expression:
        return S.cast(cell[at], "float32")

    @contextmanager
    def each_cell(self) -> Iterator[tuple[Value, Pointer]]:
        """The number and the address of every cell of the image; `trust`, `top` and `total` are what its scores are of."""
        with self.k.for_range(0, self.cells, name="b") as b:
            cell = self.k.hold(self.image + b * self.width, "cell")
            self._totals(cell)
            yield b, cell

    @contextmanager
    def _powers(self, cell: Address) -> Iterator[tuple[Value, Expression]]:
        """The mask and the elements of all classes of a cell, 32 at a time."""
        with self.k.for_range(0, self.classes, LANES, "j") as j:
            mask = self.k.held("mask", tail(self.classes - j))
            yield mask, load(cell + (j + 5), mask, self.dtype, LANES)

    def _totals(self, cell: Address) -> None:
        k = self.k
        self.trust = k.held("trust", _sigmoid(self.element(cell, 4)))
        peak = k.changing("peak", everywhere(self.lowest, "float32"))
        with self._powers(cell) as (mask, lanes):
            k.assign(peak, S.max(peak, S.vsel(lanes, peak, mask)))
        self.top = k.held("top", across_max(peak)[0])
        nothing = everywhere(0, "float32")
        sums = k.changing("sums", nothing)
        with self._powers(cell) as (mask, lanes):
            k.assign(sums, sums + S.vsel(S.exp(lanes - self.top), nothing, mask))
        self.total = k.held("total", across_sum(sums)[0])

    def score(self, cell: Address, c: Expression) -> Value:
        """The score of a class."""
        return self.k.held("score", self.trust * (S.exp(self.element(cell, c + 5) - self.top) / self.total))

    def _number(self) -> Value:
        """How many scores of the image are above the threshold."""
        k = self.k
        number = k.changing("number", S.i32(0))
        with (
            self.each_cell() as (_, cell),
            k.when(self.trust * (S.cast(1.0, "float32") / self.total) > self.threshold),
            self._powers(cell) as (mask, lanes),
        ):
            power = k.held("power", S.exp(lanes - self.top))
            score = self.trust * (power / self.total)
            hit = k.held("hit", (score > self.threshold) & mask)
            k.assign(number, number + across_sum(ones(hit))[0])
        return number

    def limit(self, room: Value) -> tuple[Value, Value]:
        """The last score, and its place, that there is room for."""
        k = self.k
        number = self._number()
        limit, limit_at = k.changing("limit", self.lowest + 0.0), k.changing("limit_at", S.i32(FAR))
        with k.when(number > room):
            k.assign(limit, ends("float32")[1])
            k.assign(limit_at, S.i32(-1))
            with k.for_range(0, room, name="r"):
                found, found_at = k.changing("next", self.lowest + 0.0), k.changing("next_at", S.i32(0))
                with self.each_cell() as (b, cell), k.for_range(0, self.classes, name="c") as c:
                    score, at = self.score(cell, c), k.held("at", b * self.classes + c)
                    behind = either(score < limit, both(score == limit, at > limit_at))
                    with k.when(both(score > found, behind)):
                        k.assign(found, score)
                        k.assign(found_at, at)
                k.assign(limit, found)
                k.assign(limit_at, found_at)
        return limit, limit_at

    def corners(self, b: Value, cell: Address) -> tuple[Expression, ...]:
        """y0, x0, y1, x1 of the box of a cell."""
        k, low, high = self.k, [], []
        places = b / self.boxes % self.columns, b / (self.boxes * self.columns)
        for i, (place, extent, shift) in enumerate(zip(places, self.extent, self.shift, strict=True)):
            at = S.cast(place, "float32") + _sigmoid(self.element(cell, i)) + shift
            middle = k.held("middle", at / extent)
            power = S.exp(self.element(cell, 2 + i))
            side = k.held("side", self.anchors[b % self.boxes * 2 + i] * power / extent)
            low.append(clamp(middle - side * 0.5, 0.0, 1.0))
            high.append(clamp(middle + side * 0.5, 0.0, 1.0))
        return low[1], low[0], high[1], high[0]

    def make(self, boxes: BoxList, classes: ClassList) -> None:
        """The statements of the kernel."""
        k = self.k
        with k.shared(self.images, "n") as n:
            self.image = k.hold(self.x + n * self.cells * self.width, "image")
            limit, limit_at = self.limit(boxes.room)
            boxes.begin(n)
            classes.begin(n)
            with k.for_range(0, self.classes, name="c") as c:
                count = k.changing("count", S.i32(0))
                with self.each_cell() as (b, cell):
                    score = self.score(cell, c)
                    within = either(score > limit, both(score == limit, b * self.classes + c <= limit_at))
                    with k.when(both(score > self.threshold, within)):
                        boxes.put(self.corners(b, cell), score)
                        k.assign(count, count + 1)
                with k.when(count > 0):
                    classes.put(c, count)
            boxes.end()
            classes.end()


@kernel("Region")
def region(layer: Layer) -> Kernel:
    if layer.is_quantised:
        return fixed_heads.region(layer)
    h = head_of(layer)
    scores, boxes, counts, labels, many = layer.outputs
    floats(layer.input, scores, boxes)
    k = LayerKernel()
    with k.active():
        lists = BoxList(k, boxes, scores, h.room), ClassList(k, counts, labels, many, h.slots)
        _Head(k, layer, h).make(*lists)
    return k.kernel()

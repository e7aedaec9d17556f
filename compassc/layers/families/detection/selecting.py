"""Kernels that go through scores, 32 boxes at a time, and decode the boxes that are kept, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value, both, either
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.detection.boxes import Decode
from compassc.layers.families.detection.corners import PLAIN, Corners
from compassc.layers.families.detection.lists import FAR, BoxList, ClassList, counting, ends, more, ones, scalar
from compassc.layers.lane_arithmetic import across_min, across_sum
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.vectors import LANES, everywhere, wide, wide_kind


class Chosen(NamedTuple):
    """A box that is kept: its image, its number and its class."""

    image: Expression
    box: Expression
    label: Expression


class Selection:
    """Boxes selected by class and score: `decode` gives the corners of one, which are stored in an order."""

    def __init__(
        self,
        k: LayerKernel,
        layer: Layer,
        sizes: Decode,
        boxes: BoxList,
        classes: ClassList | None,
        decode: Callable[[Chosen], Corners],
        threshold: float,
        order: Sequence[int] = PLAIN,
        zero: int = 0,
    ) -> None:
        """`zero`: of quantised scores, which is part of the results."""
        scores, self.quantised = layer.input, layer.is_quantised
        if self.quantised and scores.integer.bits > 16:
            raise LayerError(f"'{scores.name}' is {scores.dtype}, but quantised scores have at most 16 bits")
        self.k, self.boxes, self.classes, self.decode = k, boxes, classes, decode
        self.order, self.zero, self.source = order, zero, scores
        self.scores, self.skipped = k.tensor(scores), k.number(sizes.skipped)
        self.images, self.number, self.columns = (k.number(n) for n in (sizes.images, sizes.boxes, sizes.columns))
        self.labels = k.number(sizes.columns - sizes.skipped)
        self.threshold = k.number(int(threshold) if self.quantised else float(np.float32(threshold)))
        self.lowest, self.highest = ends(wide_kind(scores))

    def make(self, lowest: bool = False, end: Callable[[Value], None] | None = None) -> None:
        """The statements of the kernel. `lowest`: where there is no room for all, those with the lowest scores are kept.
        `end`: what else is stored for an image."""
        k = self.k
        self.lanes = counting(k)
        with k.shared(self.images, "n") as self.image:
            self.own = k.hold(self.scores + (self.image * self.number * self.columns + self.skipped), "own")
            self.boxes.begin(self.image)
            if self.classes:
                self.classes.begin(self.image)
            if lowest:
                self._limit()
            with k.for_range(0, self.labels, name="c") as self.label:
                self.count = k.changing("count", S.i32(0))
                if lowest:
                    with k.when(self.crowded):
                        self._in_order()
                    with k.otherwise():
                        self._scan()
                else:
                    self._scan()
                if self.classes:
                    with k.when(self.count > 0):
                        self.classes.put(self.label, self.count)
            self.boxes.end()
            if self.classes:
                self.classes.end()
            if end:
                end(self.image)

    def _seen(self, j: Value, label: Expression) -> Value:
        """The scores of 32 boxes; what is behind the last box has the lowest."""
        mask = self.k.held("mask", tail(self.number - j))
        raw = S.vload(self.own + (j * self.columns + label), mask, lanes=LANES, stride=self.columns)
        found = more(wide(raw, self.source.dtype), self.zero)
        return self.k.held("seen", S.vsel(found, S.vbcast(self.lowest, lanes=LANES), mask))

    def _keep(self, box: Expression, score: Expression) -> None:
        self.k.assign(self.count, self.count + 1)
        corners = self.decode(Chosen(self.image, box, self.label))
        self.boxes.put([corners[i] for i in self.order], score)

    def _scan(self) -> None:
        """The boxes of a class above the threshold, in their order."""
        k, room = self.k, self.boxes.has_room
        with k.for_range(0, self.number, LANES, "j") as j:
            seen = self._seen(j, self.label)
            with (
                k.when(both(room, S.vany(seen > self.threshold))),
                k.for_range(0, S.min(self.number - j, LANES), name="e") as e,
            ):
                box = k.held("box", j + e)
                score = k.held("score", scalar(self.own, box * self.columns + self.label, self.source, self.zero))
                with k.when(both(score > self.threshold, room)):
                    self._keep(box, score)

    def _limit(self) -> None:
        """`crowded`: whether there is no room for all boxes above the threshold. `limit`: then the last score and place
        that there is room for."""
        k = self.k
        hits = k.changing("hits", everywhere(0))
        with k.for_range(0, self.labels, name="c") as label, k.for_range(0, self.number, LANES, "j") as j:
            k.assign(hits, hits + ones(self._seen(j, label) > self.threshold))
        self.crowded = k.held("crowded", across_sum(hits)[0] > self.boxes.room)
        self.limit = k.changing("limit", self.lowest), k.changing("limit_at", S.i32(-1))
        with k.when(self.crowded), k.for_range(0, self.boxes.room, name="r"):
            found = self._next(k.for_range(0, self.labels, name="q"), self.limit)
            for variable, value in zip(self.limit, found, strict=True):
                k.assign(variable, value)

    def _next(self, labels: AbstractContextManager[Expression], last: tuple[Value, Value]) -> tuple[Value, Value]:
        """The lowest score, and its place, behind the last one, of those above the threshold; FAR where there is none."""
        k, (last_score, last_at) = self.k, last
        best, place = k.changing("best", S.vbcast(self.highest, lanes=LANES)), k.changing("place", everywhere(FAR))
        with labels as label, k.for_range(0, self.number, LANES, "j") as j:
            seen = self._seen(j, label)
            at = k.held("at", (self.lanes + j) * self.columns + label)
            behind = k.held("behind", (seen > last_score) | ((seen == last_score) & (at > last_at)))
            lower = k.held("lower", (seen < best) | ((seen == best) & (at < place)))
            better = k.held("better", behind & (seen > self.threshold) & lower)
            k.assign(place, S.vsel(at, place, better))
            k.assign(best, S.vsel(seen, best, better))
        low = k.held("low", across_min(best))
        found_at = k.held("found_at", across_min(S.vsel(place, everywhere(FAR), best == low))[0])
        return k.held("found", low[0]), found_at

    def _in_order(self) -> None:
        """The boxes of a class up to the limit, from the lowest score on."""
        k = self.k
        last = k.changing("last", self.lowest), k.changing("last_at", S.i32(-1))
        going = k.changing("going", S.i32(1))
        with k.while_loop(going != 0):
            found, found_at = self._next(nullcontext(self.label), last)
            k.assign(going, S.i32(0))
            limit, limit_at = self.limit
            within = either(found < limit, both(found == limit, found_at <= limit_at))
            with k.when(both(found_at < FAR, within)):
                k.assign(going, S.i32(1))
                k.assign(last[0], found)
                k.assign(last[1], found_at)
                self._keep(k.held("box", found_at / self.columns), found)

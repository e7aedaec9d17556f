"""Suppression of boxes: every TEC has a part of the candidates of a class, 32 at a time; they agree on the best one.

Which candidates are left is kept in LSRAM, a byte each (their scores, where overlaps lower these).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.build import Expression, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.families.detection import decoders, gathering, heads  # noqa: F401 (their kernels are registered)
from compassc.layers.families.detection.contest import Contest, Winner, product_of
from compassc.layers.families.detection.lists import BoxList, Output, ends, more, scalar, whole_numbers
from compassc.layers.families.detection.suppression import STEPS, Suppression, suppression_of
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.machine import Share
from compassc.layers.vectors import LANES, clamp, entry_of, load, narrow, scaled_floor, shared_part, wide, wide_kind

ROOM = Share(6)
"""Bytes of LSRAM for the remaining candidates of a TEC."""


class _Nms:
    """The suppression of the boxes of a class in its parts."""

    def __init__(self, k: LayerKernel, layer: Layer, s: Suppression) -> None:
        boxes, _, _, scores = layer.inputs
        self.k, self.s, self.quantised = k, s, layer.is_quantised
        self.tensors, self.kind = (boxes, scores), wide_kind(scores)
        self.zero = boxes.scalar_zero if self.quantised else 0
        self.boxes, self.scores = k.tensor(boxes), k.tensor(scores)
        self.number, self.most = k.number(boxes.shape[1]), k.number(max(s.most, 0))
        self.threshold, self.overlap = self._limits(), self._largest_overlap()
        if self.quantised:
            self.scale, self.shift = k.number(s.scale), k.number(s.shift)
        self.contest = Contest(k, self.kind)
        self.held = self.kind if s.gaussian else "int8"
        self.left = k.alloc(ROOM.size // numpy_dtype(self.held).itemsize, self.held, "left")
        self.factors = k.table(s.factors.astype(np.int32).reshape(-1)) if s.factors is not None else None

    def _limits(self) -> Expression:
        """The score that chosen boxes are above."""
        least = self.s.threshold
        if not np.isfinite(least):
            return ends(self.kind)[0]
        return self.k.number(int(np.floor(least)) if self.quantised else float(np.float32(least)))

    def _largest_overlap(self) -> Value | None:
        """The largest overlap of boxes, or what its square is multiplied with."""
        s, boxes = self.s, self.tensors[0]
        if self.quantised:
            largest = ((1 << 2 * boxes.integer.bits) - 1 >> s.areas) * 2
            overlap = STEPS if s.gaussian else int(s.overlap)
            if largest * abs(overlap) >= 2**31:
                raise LayerError(f"'iou_threshold' {overlap} with 'areas_shift' {s.areas} is beyond 32 bits")
            return None if s.gaussian else self.k.number(overlap)
        return self.k.number(float(np.float32(-0.5 / s.sigma if s.gaussian else s.overlap)))

    def begin(self, image: Value, first: Value, size: Value) -> None:
        """The candidates of a class, `size` of the boxes of the image from the `first` on."""
        k = self.k
        self.size, part = size, k.held("part", shared_part(size, LANES))
        self.start = k.held("begin", S.min(self.contest.tec * part, size))
        self.count = k.held("own_count", S.min(self.start + part, size) - self.start)
        self.at = k.held("first_at", image * self.number + first)
        self.own = k.hold(self.boxes + (self.at + self.start) * 4, "own")
        with k.for_range(0, self.count, LANES, "j") as j:
            mask = k.held("mask", tail(self.count - j))
            fresh = self._scores(j, mask) if self.s.gaussian else S.vbcast(S.i8(1), lanes=LANES)
            S.vstore(fresh, self.left + j, mask)
        self.winner = Winner(k, self.kind, product_of(self.quantised, self.s.areas))

    def _scores(self, j: Value, mask: Value) -> Expression:
        lanes: Expression = load(self.scores + (self.at + self.start + j), mask, self.tensors[1].dtype, LANES)
        return lanes

    def choose(self) -> Value:
        """The best score left; the winner's place becomes that of its box. What the last winner overlaps with is suppressed."""
        k, contest = self.k, self.contest
        contest.begin()
        with k.for_range(0, self.count, LANES, "j") as j:
            mask = k.held("mask", tail(self.count - j))
            left = k.changing("on", load(self.left + j, mask, self.held, LANES))
            at = k.held("at", contest.lanes + (self.start + j))
            with k.when(self.winner.place >= 0):
                k.assign(left, self._suppressed(left, at, j, mask))
                S.vstore(narrow(left, self.held), self.left + j, mask)
            where, value = (mask, left) if self.s.gaussian else (left > 0, self._scores(j, mask))
            value = k.held("value", S.vsel(value, S.vbcast(contest.lowest, lanes=LANES), where))
            contest.offer(at, value, value > contest.best)
        return contest.settle(self.winner.place, ties=False)

    def _corners(self, j: Value, mask: Value) -> Sequence[Expression]:
        """y0, x0, y1, x1 of 32 boxes, whose corners may be any two that are opposite."""
        k = self.k
        a0, b0, a1, b1 = (
            k.held(
                "end",
                more(
                    wide(S.vload(self.own + (j * 4 + e), mask, lanes=LANES, stride=4), self.tensors[0].dtype), self.zero
                ),
            )
            for e in range(4)
        )
        return S.min(a0, a1), S.min(b0, b1), S.max(a0, a1), S.max(b0, b1)

    def _suppressed(self, left: Value, at: Value, j: Value, mask: Value) -> Expression:
        """What is left of candidates, without the winner itself."""
        k, s = self.k, self.s
        corners = [k.held("corner", corner) for corner in self._corners(j, mask)]
        inter, union = self.winner.overlap(corners)
        chosen, lowest = at == self.winner.place, S.vbcast(self.contest.lowest, lanes=LANES)
        if self.factors is not None:
            zero, step = self.tensors[1].scalar_zero, k.held("step", inter * STEPS / S.max(union, 1))
            product = more(left, zero) * entry_of(self.factors, step, mask)
            lowered = product >> entry_of(self.factors, step + (STEPS + 1), mask)
            return S.vsel(lowest, more(lowered, -zero), (left == self.contest.lowest) | chosen)
        if s.gaussian:
            proper = union > 0.0
            ratio = k.held("ratio", S.vsel(inter / S.vsel(union, union * 0.0 + 1.0, proper), union * 0.0, proper))
            return S.vsel(lowest, left * S.exp((ratio * ratio) * self.overlap), chosen)
        limit = (union * self.overlap) >> s.part if self.quantised else union * self.overlap
        kept = k.held("kept", S.vsel(left, 0, inter <= limit))
        return S.vsel(0, kept, chosen)

    def take(self) -> list[Value]:
        """The stored corners of the winner, whose box becomes that which others overlap with."""
        k = self.k
        at = k.held("chosen_at", (self.at + self.winner.place) * 4)
        corners = [k.held("end", scalar(self.boxes, at + e, self.tensors[0], self.zero)) for e in range(4)]
        a0, b0, a1, b1 = corners
        self.winner.become((S.min(a0, a1), S.min(b0, b1), S.max(a0, a1), S.max(b0, b1)))
        return corners

    def stored(self, end: Value) -> Expression:
        """A corner in the scale of the output."""
        found: Expression = scaled_floor(end, self.scale, self.shift) if self.quantised else end
        return found


def _check(layer: Layer, s: Suppression) -> None:
    boxes, per_class, class_count, scores = layer.inputs
    out_boxes, counts, out_scores, keep = layer.outputs
    whole_numbers(per_class, class_count, counts, keep, of="boxes")
    if wide_kind(out_scores) != wide_kind(scores) or wide_kind(boxes) != wide_kind(out_boxes):
        raise LayerError("boxes and scores keep whether they are floats")
    many = ROOM.size // numpy_dtype(wide_kind(scores) if s.gaussian else "int8").itemsize
    if boxes.shape[1] > many:
        raise LayerError(f"{boxes.shape[1]} boxes do not fit LSRAM; it takes {many}")


@kernel("NMS")
def nms(layer: Layer) -> Kernel:
    s, k = suppression_of(layer), LayerKernel()
    _check(layer, s)
    boxes, per_class, class_count, _ = layer.inputs
    out_boxes, counts, out_scores, keep = layer.outputs
    with k.active():
        sizes, given = k.tensor(per_class), k.tensor(class_count)
        lists, numbers, kept_at = BoxList(k, out_boxes, out_scores, s.room), Output(k, counts), Output(k, keep)
        classes, suppression = k.number(per_class.shape[1]), _Nms(k, layer, s)
        first_tec = suppression.contest.tec == 0
        with k.for_range(0, k.number(boxes.shape[0]), name="n") as n:
            lists.begin(n)
            first = k.changing("first", S.i32(0))
            with k.for_range(0, classes, name="c") as c:
                size = k.changing("size", S.i32(0))
                with k.when(c < S.i32(given[n])):
                    k.assign(size, clamp(S.i32(sizes[n * classes + c]), 0, suppression.number - first))
                suppression.begin(n, first, size)
                kept = _chosen(k, suppression, lists, kept_at)
                with k.when(first_tec):
                    numbers.put(n * classes + c, kept)
                k.assign(first, first + size)
                S.barrier()
            with k.when(first_tec):
                with k.for_range(lists.filled, lists.room, name="z") as z:
                    kept_at.fill(n * lists.room + z)
                lists.end()
    return k.kernel()


def _chosen(k: LayerKernel, suppression: _Nms, lists: BoxList, kept_at: Output) -> Value:
    """Chooses boxes of a class, as long as there are some and room for them; gives how many."""
    kept, going = k.changing("kept", S.i32(0)), k.changing("going", S.i32(1))
    with k.while_loop(going != 0):
        top, place = suppression.choose(), suppression.winner.place
        k.assign(going, S.i32(0))
        proper = both(place < suppression.size, top > suppression.threshold)
        with k.when(both(proper, kept < suppression.most, lists.has_room)):
            k.assign(going, S.i32(1))
            corners = suppression.take()
            with k.when(suppression.contest.tec == 0):
                kept_at.put(lists.place, place)
                lists.store(lists.place, [suppression.stored(end) for end in corners], top)
            k.assign(kept, kept + 1)
            lists.took_one()
    return kept

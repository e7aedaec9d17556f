"""Kernels of lists of boxes that are gathered or filtered: the boxes of an image one after the other, images shared by the
TECs."""

from __future__ import annotations

import numpy as np

from compassc.build import Expression, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.detection.fixed import FixedFuse, fuse_numbers
from compassc.layers.families.detection.lists import FAR, BoxList, ClassList, Output, floats, scalar, whole_numbers
from compassc.layers.families.detection.yolo import (
    Lists,
    filter_sizes,
    fused_sizes,
    image_extent,
    kept_sizes,
    least,
    valid_sizes,
)
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import bits_of, clamp, wide_kind


class _Source:
    """One of the two lists of a RegionFuse."""

    def __init__(self, k: LayerKernel, layer: Layer, s: Lists, i: int, numbers: FixedFuse | None) -> None:
        self.k, self.numbers, inputs = k, numbers, layer.inputs[i::2]
        self.scores, self.boxes, self.counts, self.labels, self.many = (k.tensor(t) for t in inputs)
        self.slots, self.number = k.number(s.slots[i]), k.number(s.boxes[i])
        self.factor = k.number(numbers.factors[i]) if numbers else None

    def begin(self, image: Value) -> None:
        self.image = image
        self.classes = self.k.held("classes", clamp(S.i32(self.many[image]), 0, self.slots))

    def label(self, place: Value) -> Expression:
        return S.i32(self.labels[self.image * self.slots + place])

    def least(self, label: Value, last: Value) -> None:
        """`label` becomes the smallest label above the last one."""
        k = self.k
        with k.for_range(0, self.classes, name="s") as s, k.when(self.label(s) > last):
            k.assign(label, S.min(label, self.label(s)))

    def take(self, label: Value, lists: BoxList) -> None:
        """The boxes of a class, as long as there is room."""
        k = self.k
        first = k.changing("first", S.i32(0))
        with k.for_range(0, self.classes, name="s") as s:
            count = S.i32(self.counts[self.image * self.slots + s])
            size = k.held("size", clamp(count, 0, self.number - first))
            with (
                k.when(self.label(s) == label),
                k.for_range(first, first + size, name="e") as e,
                k.when(lists.has_room),
            ):
                self._box(self.image * self.number + e, lists)
            k.assign(first, first + size)

    def _box(self, at: Expression, lists: BoxList) -> None:
        k, numbers, to = self.k, self.numbers, lists.place
        if numbers is None:
            lists.copy(self.boxes, self.scores, at)
            return
        score = k.held("score", S.i32(self.scores[at]))
        # x * (2^bits - 1) >> bits, within 32 bits
        lists.scores.put(to, score - ((score + ((1 << numbers.bits) - 1)) >> numbers.bits))
        with k.for_range(0, 4, name="i") as i:
            side = S.i32(self.boxes[at * 4 + i])
            lists.boxes.put_limited(to * 4 + i, (side * self.factor) >> numbers.shift)
        lists.took_one()


@kernel("RegionFuse")
def region_fuse(layer: Layer) -> Kernel:
    s = fused_sizes(layer)
    scores, boxes, counts, labels, many = layer.outputs
    numbers = fuse_numbers(layer) if layer.is_quantised else None
    if not layer.is_quantised:
        floats(*layer.inputs[:4], scores, boxes)
        for t, out in zip(layer.inputs[:4], (scores, scores, boxes, boxes), strict=True):
            if t.dtype != out.dtype:
                raise LayerError(f"'{t.name}' is {t.dtype}, the output {out.dtype}; it keeps the type")
    whole_numbers(*layer.inputs[4:])
    k = LayerKernel()
    with k.active():
        sources = [_Source(k, layer, s, i, numbers) for i in range(2)]
        lists, classes = BoxList(k, boxes, scores, s.room), ClassList(k, counts, labels, many, s.out_slots)
        with k.shared(k.number(s.images), "n") as n:
            lists.begin(n)
            classes.begin(n)
            for source in sources:
                source.begin(n)
            last, going = k.changing("last", S.i32(-1)), k.changing("going", S.i32(1))
            with k.while_loop(going != 0):
                label = k.changing("label", S.i32(FAR))
                for source in sources:
                    source.least(label, last)
                k.assign(going, S.i32(0))
                with k.when(both(label != FAR, classes.has_room)):
                    k.assign(going, S.i32(1))
                    k.assign(last, label)
                    before = k.held("before", lists.filled + 0)
                    for source in sources:
                        source.take(label, lists)
                    classes.put(label, lists.filled - before)
            classes.end()
            lists.end()
    return k.kernel()


class _Filter:
    """Which boxes a FilterBoxes keeps: by their scores, where these have a limit, and by their sizes."""

    def __init__(self, k: LayerKernel, layer: Layer) -> None:
        self.k, (boxes, scores) = k, layer.inputs[:2]
        self.boxes, self.scores, self.tensors = k.tensor(boxes), k.tensor(scores), (boxes, scores)
        score, high, wide = least(layer)
        whole = layer.is_quantised
        self.sides = [k.number(int(np.ceil(v)) if whole else float(v)) for v in (high, wide)]
        self.threshold: Value | None = None
        if np.isfinite(score):
            self.threshold = k.number(int(np.floor(score)) if whole else float(np.float32(score)))
        self.far = boxes.is_integer and boxes.high - boxes.low >= 2**31

    def keeps(self, at: Value) -> Expression:
        boxes, scores = self.tensors
        high, wide = (
            self.k.held("side", self._less(*(scalar(self.boxes, at * 4 + e, boxes) for e in (i + 2, i))))
            for i in (0, 1)
        )
        sides = both(high >= self.sides[0], wide >= self.sides[1])
        if self.threshold is None:
            return sides
        return both(scalar(self.scores, at, scores) > self.threshold, sides)

    def _less(self, a: Expression, b: Expression) -> Expression:
        if not self.far:
            return a - b
        difference: Expression = S.vsub(S.vbcast(a, lanes=8), S.vbcast(b, lanes=8), saturate=True)[0]
        return difference


@kernel("FilterBoxes")
def filter_boxes(layer: Layer) -> Kernel:
    s = filter_sizes(layer)
    least(layer)
    boxes, scores, *numbers = layer.inputs
    out_boxes, out_scores, counts, labels, many = layer.outputs
    if boxes.dtype != out_boxes.dtype or scores.dtype != out_scores.dtype:
        raise LayerError("boxes and scores keep their types")
    if not layer.is_quantised:
        floats(boxes, scores)
    whole_numbers(*numbers)
    k = LayerKernel()
    with k.active():
        chosen, (per_class, given_labels, given) = _Filter(k, layer), (k.tensor(t) for t in numbers)
        lists, classes = BoxList(k, out_boxes, out_scores, s.room), ClassList(k, counts, labels, many, s.out_slots)
        number, slots = k.number(s.boxes[0]), k.number(s.slots[0])
        most = k.number(max(min(layer.integer("maxnum", 5000), s.room), 0))
        with k.shared(k.number(s.images), "n") as n:
            lists.begin(n)
            classes.begin(n)
            first = k.changing("first", S.i32(0))
            with k.for_range(0, clamp(S.i32(given[n]), 0, slots), name="s") as c:
                size = k.held("size", clamp(S.i32(per_class[n * slots + c]), 0, number - first))
                before = k.held("before", lists.filled + 0)
                with k.for_range(first, first + size, name="e") as e:
                    at = k.held("at", n * number + e)
                    with k.when(both(chosen.keeps(at), lists.filled < most)):
                        lists.copy(chosen.boxes, chosen.scores, at)
                with k.when(both(lists.filled > before, classes.has_room)):
                    classes.put(S.i32(given_labels[n * slots + c]), lists.filled - before)
                k.assign(first, first + size)
            classes.end()
            lists.end()
    return k.kernel()


@kernel("GetValidCount")
def get_valid_count(layer: Layer) -> Kernel:
    n, rows_, width_ = valid_sizes(layer)
    x, (many, y, places) = layer.input, layer.outputs
    if x.dtype != y.dtype or wide_kind(places) != "int32":
        raise LayerError(f"{x.dtype} to {y.dtype} with places of {places.dtype} has no kernel")
    if y.is_integer and y.low > -1 or places.low > -1:
        raise LayerError("unsigned types have no -1, which fills the rows that are not taken")
    bits_of(x.dtype)
    kind, least_score = layer.integer("id_index", -1), layer.number("score_threshold", 0)
    k = LayerKernel()
    with k.active():
        source, counts, out, numbers = k.tensor(x), Output(k, many), Output(k, y), Output(k, places)
        rows, width, score_at = k.number(rows_), k.number(width_), k.number(layer.integer("score_index", 1))
        id_at = k.number(kind) if kind >= 0 else None
        threshold = k.number(int(np.floor(least_score)) if layer.is_quantised else float(np.float32(least_score)))
        with k.shared(k.number(n), "n") as image:
            filled = k.changing("filled", S.i32(0))
            with k.for_range(0, rows, name="r") as r:
                row = k.hold(source + (image * rows + r) * width, "row")
                valid = scalar(row, score_at, x) > threshold
                if id_at is not None:
                    valid = both(valid, scalar(row, id_at, x) >= (0 if layer.is_quantised else 0.0))
                with k.when(valid):
                    with k.for_range(0, width, name="e") as e:
                        out.pointer[(image * rows + filled) * width + e] = row[e]
                    numbers.put(image * rows + filled, r + 0)
                    k.assign(filled, filled + 1)
            counts.put_count(image, filled)
            with k.for_range(filled, rows, name="z") as z:
                numbers.fill(image * rows + z, -1)
                with k.for_range(0, width, name="e") as e:
                    out.fill((image * rows + z) * width + e, -1)
    return k.kernel()


@kernel("PostNMS1")
def post_nms(layer: Layer) -> Kernel:
    n, *sizes = kept_sizes(layer)
    boxes, keep, kept = layer.inputs
    y, part = layer.outputs
    floats(boxes, y, part)
    whole_numbers(keep, kept)
    k = LayerKernel()
    with k.active():
        source, chosen, counts, whole, parts = (
            k.tensor(boxes),
            k.tensor(keep),
            k.tensor(kept),
            Output(k, y),
            Output(k, part),
        )
        number, places, classes, room = (k.number(size) for size in sizes)
        extent = k.number(float(image_extent(layer)))
        with k.shared(k.number(n), "n") as image:
            filled = k.changing("filled", S.i32(0))
            with k.for_range(0, classes, name="c") as c:
                first = k.held("first", filled + 0)
                size = k.held("size", clamp(S.i32(counts[image * classes + c]), 0, places - filled))
                with k.for_range(first, first + size, name="e") as e, k.when(e < room):
                    box = clamp(first + S.i32(chosen[image * places + e]), 0, number - 1)
                    at = k.held("at", image * number + box)
                    with k.for_range(0, 4, name="i") as i:
                        value = k.held("value", S.cast(source[at * 4 + i], "float32"))
                        whole.put((image * room + e) * 4 + i, value)
                        parts.put((image * room + e) * 4 + i, value / extent)
                k.assign(filled, filled + size)
            with k.for_range(S.min(filled, room) * 4, room * 4, name="z") as z:
                whole.fill(image * room * 4 + z)
                parts.fill(image * room * 4 + z)
    return k.kernel()

"""Kernels of box decoders, which keep boxes by their scores or take all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.build import Address, Expression, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.detection.boxes import (
    Decode,
    Limits,
    anchors_of,
    decode_sizes,
    detection_sizes,
    four,
    limits_of,
    multibox_sizes,
    proposal_anchors,
    proposal_sizes,
    xform_clip,
)
from compassc.layers.families.detection.corners import (
    PLAIN,
    SWAPPED,
    Corners,
    Decoder,
    DetectionDecoder,
    FloatDecoder,
    RegionDecoder,
    ShiftedDecoder,
    anchor_of,
    region_of,
)
from compassc.layers.families.detection.fixed import (
    boxes_numbers,
    detection_numbers,
    fixed_anchors,
    multibox_score,
    proposal_numbers,
)
from compassc.layers.families.detection.lists import BoxList, ClassList, Output, ends, more, same_kinds, scalar
from compassc.layers.families.detection.selecting import Chosen, Selection
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.vectors import LANES, load, scaled_floor


def _by_anchor(k: LayerKernel, sizes: Decode, anchors: Array, decode: Decoder) -> Callable[[Chosen], Corners]:
    """Corners of boxes that have an anchor, which is constant, and a row of offsets each."""
    rows, number, whole = k.pointer(anchors.reshape(-1)), k.number(sizes.boxes), anchors.dtype.kind == "i"
    return lambda at: decode(anchor_of(k, rows, at.box, whole), at.image * number + at.box)


@kernel("DecodeBox")
def decode_box(layer: Layer) -> Kernel:
    s, limits = decode_sizes(layer), limits_of(layer)
    boxes, counts, many, scores, labels = layer.outputs
    same_kinds(layer, boxes, scores, (counts, many, labels))
    k = LayerKernel()
    with k.active():
        lists = BoxList(k, boxes, scores, s.room), ClassList(k, counts, labels, many, s.slots)
        threshold: float
        if layer.is_quantised:
            anchors, threshold, zero = (
                _whole_anchors(layer, s),
                layer.integer("score_threshold_uint8"),
                layer.input.scalar_zero,
            )
            corners = _by_anchor(
                k, s, anchors, ShiftedDecoder(k, layer, limits, layer.integer("box_shift"), even=False)
            )
        else:
            threshold, zero = layer.number("score_threshold", 0.5), 0
            decode = FloatDecoder(k, layer.inputs[1], four(layer, "variance", (10, 10, 5, 5)), limits)
            corners = _by_given_anchor(k, layer, s, decode)
        Selection(k, layer, s, *lists, corners, threshold, zero=zero).make(lowest=True)
    return k.kernel()


def _by_given_anchor(k: LayerKernel, layer: Layer, s: Decode, decode: Decoder) -> Callable[[Chosen], Corners]:
    """As `_by_anchor`, with a tensor of anchors where the layer has one."""
    if len(layer.inputs) != 3:
        return _by_anchor(k, s, anchors_of(layer, s.boxes).astype(np.float32), decode)
    if layer.inputs[2].count != s.boxes * 4:
        raise LayerError(f"anchors {list(layer.inputs[2].shape)} for {s.boxes} boxes")
    anchors, number = k.tensor(layer.inputs[2]), k.number(s.boxes)
    return lambda at: decode(anchor_of(k, anchors, at.box, False), at.image * number + at.box)


def _whole_anchors(layer: Layer, s: Decode) -> Array:
    """The anchors of a quantised DecodeBox."""
    if len(layer.inputs) == 3:
        raise LayerError("quantised boxes with a tensor of anchors are not supported; give it constants")
    anchors, shift = anchors_of(layer, s.boxes), layer.integer("box_shift")
    if anchors.dtype.kind not in "iu" or np.abs(anchors.astype(np.int64)).max(initial=0) > 32767 or not 0 <= shift < 31:
        raise LayerError("quantised anchors must be whole numbers of 16 bits, and 'box_shift' from 0 to 30")
    return anchors.astype(np.int16)


@kernel("DetectionOutput")
def detection_output(layer: Layer) -> Kernel:
    s, rows_, left_ = detection_sizes(layer)
    scores, boxes, counts, labels, many = layer.outputs
    same_kinds(layer, boxes, scores, (counts, many, labels))
    k, source = LayerKernel(), layer.inputs[2]
    decode: Decoder
    with k.active():
        lists = BoxList(k, boxes, scores, s.room), ClassList(k, counts, labels, many, s.slots)
        if layer.is_quantised:
            numbers = detection_numbers(layer)
            order, threshold = SWAPPED if numbers.swapped else PLAIN, float(numbers.threshold)
            decode = DetectionDecoder(k, layer, numbers, order)
        else:
            order = SWAPPED if layer.word("anchor_mode", "") == "CAFFE_DETECTION" else PLAIN
            limits = Limits(layer.number("image_height", 600), layer.number("image_width", 600))
            threshold, divisors = layer.number("score_threshold", 0.7), four(layer, "variance", (10, 10, 5, 5))
            decode = FloatDecoder(k, layer.inputs[1], divisors, limits, order, xform_clip(layer))
        proposals, number, rows, left = k.tensor(source), k.number(s.boxes), k.number(rows_), k.number(left_)

        def corners(at: Chosen) -> Corners:
            row = k.held("row", at.image * number + at.box)
            return decode(region_of(k, proposals, row, source, order), row * rows + left + at.label)

        Selection(k, layer, s, *lists, corners, threshold, order).make()
    return k.kernel()


@kernel("Proposal")
def proposal(layer: Layer) -> Kernel:
    scores, boxes, many, one = layer.outputs
    k, s = LayerKernel(), proposal_sizes(layer)
    threshold: float
    decode: Decoder
    with k.active():
        if layer.is_quantised:
            p = proposal_numbers(layer)
            same_kinds(layer, boxes, scores, (many, one))
            anchors, threshold = fixed_anchors(layer, s.boxes).astype(np.int16), p.threshold
            decode = ShiftedDecoder(k, layer, Limits(p.height, p.width), p.shift, even=True)
        else:
            same_kinds(layer, boxes, scores, (many, one))
            limits = Limits(layer.number("height", 600), layer.number("width", 600))
            anchors, threshold = (
                proposal_anchors(layer, s.boxes).astype(np.float32),
                layer.number("score_threshold", 0.45),
            )
            decode = FloatDecoder(k, layer.inputs[1], (10, 10, 5, 5), limits)
        lists, numbers = BoxList(k, boxes, scores, s.room), [Output(k, t) for t in (many, one)]
        selection = Selection(k, layer, s, lists, None, _by_anchor(k, s, anchors, decode), threshold)

        def end(image: Value) -> None:
            numbers[0].put_count(image, lists.filled)
            numbers[1].put_count(image, S.i32(1))

        selection.make(end=end)
    return k.kernel()


@kernel("BoundingBox")
def bounding_box(layer: Layer) -> Kernel:
    rois, deltas, y = layer.inputs[0], layer.inputs[1], layer.output
    if rois.shape[-1:] != (4,) or rois.shape != deltas.shape or y.shape != rois.shape:
        raise LayerError(
            f"regions {list(rois.shape)}, offsets {list(deltas.shape)} and boxes {list(y.shape)} do not fit"
        )
    same_kinds(layer, y, y, ())
    k = LayerKernel()
    decode: Decoder
    with k.active():
        if layer.is_quantised:
            decode = RegionDecoder(k, layer, boxes_numbers(layer, rois, deltas), rois, clip=True)
        else:
            decode = FloatDecoder(k, deltas, four(layer, "std_div", (10, 10, 5, 5)), Limits(1.0, 1.0))
        regions, out = k.tensor(rois), Output(k, y)
        with k.shared(k.number(rois.count // 4), "b") as b:
            for i, corner in enumerate(decode(region_of(k, regions, b, rois), b)):
                out.put_limited(b * 4 + i, corner)
    return k.kernel()


class _Multibox:
    """Boxes of the class with the highest score, without the first; rows of the output have class, score and corners."""

    def __init__(self, k: LayerKernel, layer: Layer) -> None:
        self.k, self.layer, self.quantised = k, layer, layer.is_quantised
        images, classes, number, room = multibox_sizes(layer)
        same_kinds(layer, layer.outputs[0], layer.outputs[0], layer.outputs[1:])
        self.images, self.classes, self.number, self.room = (k.number(n) for n in (images, classes, number, room))
        self.scores, self.regions = k.tensor(layer.input), k.tensor(layer.inputs[2])
        self.rows, self.many = (Output(k, t) for t in layer.outputs)
        clip = layer.flag("clip", True)
        self.decode: Decoder
        if self.quantised:
            scale, shift, least = multibox_score(layer)
            self.threshold, self.scale, self.shift = k.number(least), k.number(scale), k.number(shift)
            numbers = boxes_numbers(layer, layer.inputs[2], layer.inputs[1])
            self.decode = RegionDecoder(k, layer, numbers, layer.inputs[2], clip, SWAPPED)
        else:
            self.threshold = k.number(float(np.float32(layer.number("score_threshold", 0.5))))
            divisors = four(layer, "variance", (10, 10, 5, 5))
            self.decode = FloatDecoder(k, layer.inputs[1], divisors, Limits(1.0, 1.0, clip), SWAPPED)

    def make(self) -> None:
        k, dtype = self.k, self.layer.input.dtype
        with k.shared(self.images, "n") as n:
            self.filled = k.changing("filled", S.i32(0))
            own = k.hold(self.scores + n * self.classes * self.number, "own")
            with k.for_range(0, self.number, LANES, "j") as j:
                mask = k.held("mask", tail(self.number - j))
                best = k.changing("best", load(own + (self.number + j), mask, dtype, LANES))
                with k.for_range(2, self.classes, name="c") as c:
                    k.assign(best, S.max(best, load(own + (c * self.number + j), mask, dtype, LANES)))
                with (
                    k.when(S.vany((best > self.threshold) & mask)),
                    k.for_range(0, S.min(self.number - j, LANES), name="e") as e,
                ):
                    box = k.held("box", j + e)
                    score, label = self._best(own + box)
                    with k.when(both(score > self.threshold, self.filled < self.room)):
                        self._put(n, box, score, label)
            with k.for_range(self.filled * 6, self.room * 6, name="z") as z:
                self.rows.fill(n * self.room * 6 + z, -1)
            self.many.put_count(n, self.filled)

    def _best(self, column: Address) -> tuple[Value, Value]:
        """The highest score of a box, and its class; NaN is none."""
        k, (lowest, _) = self.k, ends("int32" if self.quantised else "float32")

        def real(c: Expression | int) -> Expression:
            return scalar(column, c * self.number, self.layer.input)

        score, label = k.changing("score", lowest), k.changing("label", S.i32(0))
        with k.for_range(1, self.classes, name="c") as c:
            other = k.held("other", real(c))
            with k.when(other > score):
                k.assign(score, other)
                k.assign(label, c - 1)
        return score, label

    def _put(self, n: Value, box: Value, score: Value, label: Value) -> None:
        k, out, anchors = self.k, self.rows, self.layer.inputs[2]
        y0, x0, y1, x1 = self.decode(region_of(k, self.regions, box, anchors, SWAPPED), n * self.number + box)
        to = k.held("to", (n * self.room + self.filled) * 6)
        if self.quantised:
            out.put(to, S.min(label, out.tensor.high))
            value = scaled_floor(more(score, self.layer.input.scalar_zero), self.scale, self.shift)
            out.put_limited(to + 1, value)
        else:
            out.put(to, S.cast(label, "float32"))
            out.put(to + 1, score)
        for i, corner in enumerate((x0, y0, x1, y1)):
            out.put_limited(to + 2 + i, corner)
        k.assign(self.filled, self.filled + 1)


@kernel("MultiboxTransformLoc")
def multibox(layer: Layer) -> Kernel:
    k = LayerKernel()
    with k.active():
        _Multibox(k, layer).make()
    return k.kernel()

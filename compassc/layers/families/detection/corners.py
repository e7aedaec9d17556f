"""Statements that decode boxes, one by one: corners from a centre and a size, and from offsets.

Each decoder is called with the centre (y, x) and the size (h, w) of an anchor or a region, and the number of a row of
offsets. What they compute is defined by the references in `boxes` and `fixed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from compassc.build import Address, Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import Layer, Tensor
from compassc.layers.families.detection.boxes import Limits
from compassc.layers.families.detection.fixed import (
    EXPONENT_BITS,
    LETTERS,
    LIMIT,
    FixedBoxes,
    FixedDetection,
    exact_table,
    span,
)
from compassc.layers.families.detection.lists import entries_of, more, scalar
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import clamp, multiply_wide, scaled_floor, shift_far, shift_near

Corners = Sequence[Expression]
"""y0, x0, y1, x1 of a box."""
Sides = Mapping[str, Expression]
"""A centre (y, x) and a size (h, w)."""
Decoder = Callable[[Sides, Expression], Corners]
PLAIN, SWAPPED = (0, 1, 2, 3), (1, 0, 3, 2)
"""Orders of columns: y before x, and x before y."""
AXES = (("y", "h"), ("x", "w"))


def anchor_of(k: LayerKernel, anchors: Pointer, box: Expression, whole: bool) -> Sides:
    """Centre and size of an anchor, whose row has them."""
    elements = {a: anchors[box * 4 + i] for i, a in enumerate(LETTERS)}
    return {a: k.held(f"a_{a}", S.i32(e) if whole else S.cast(e, "float32")) for a, e in elements.items()}


def region_of(k: LayerKernel, regions: Address, row: Expression, of: Tensor, order: Sequence[int] = PLAIN) -> Sides:
    """Centre, of whole numbers rounded down, and size of the box (y0, x0, y1, x1) in a row of a tensor."""
    found: dict[str, Expression] = {}
    zero = of.scalar_zero if of.is_integer else 0
    for i, (a, side) in enumerate(AXES):
        first, last = (k.held("corner", scalar(regions, row * 4 + order[e], of, zero)) for e in (i, i + 2))
        found[side] = k.held(f"a_{side}", last - first)
        found[a] = k.held(f"a_{a}", (first + last) >> 1 if of.is_integer else (first + last) * 0.5)
    return found


class FloatDecoder:
    """In floats: offsets are divided first; the logarithms of sizes are at most `largest`."""

    def __init__(
        self,
        k: LayerKernel,
        deltas: Tensor,
        divisors: Sequence[float],
        limits: Limits,
        order: Sequence[int] = PLAIN,
        largest: float = np.inf,
    ) -> None:
        self.k, self.deltas, self.order, self.clip = k, k.tensor(deltas), order, limits.clip
        self.divisors = [k.number(float(divisors[i])) for i in order]
        self.high = [k.number(float(limits.height)), k.number(float(limits.width))]
        self.largest = k.number(float(largest)) if np.isfinite(largest) else None

    def __call__(self, anchor: Sides, row: Expression) -> Corners:
        k, t = self.k, self._offsets(row)
        ends = []
        for (a, side), high in zip(AXES, self.high, strict=True):
            extent = k.held("side", clamp(S.exp(t[side]) * anchor[side], 0.0, high))
            middle = k.held("middle", t[a] * anchor[side] + anchor[a])
            for corner in (middle - extent * 0.5, middle + extent * 0.5):
                ends.append(k.held(a, clamp(corner, 0.0, high) if self.clip else corner))
        y0, y1, x0, x1 = ends
        return y0, x0, y1, x1

    def _offsets(self, row: Expression) -> Sides:
        found: dict[str, Expression] = {}
        for a, column, divisor in zip(LETTERS, self.order, self.divisors, strict=True):
            t = self.k.held(f"t_{a}", S.cast(self.deltas[row * 4 + column], "float32") / divisor)
            found[a] = t if self.largest is None or a in "yx" else S.min(t, self.largest)
        return found


class _Tables:
    """What offsets stand for, by a table for each column."""

    def __init__(self, k: LayerKernel, layer: Layer, order: Sequence[int] = PLAIN) -> None:
        deltas = layer.inputs[1]
        self.k, self.deltas, self.order = k, k.tensor(deltas), order
        self.tables = {a: entries_of(k, layer, f"t{a}_lut", deltas) for a in LETTERS}

    def at(self, row: Expression) -> Sides:
        found = {}
        for (a, table), column in zip(self.tables.items(), self.order, strict=True):
            found[a] = self.k.held(f"t_{a}", table.at(S.i32(self.deltas[row * 4 + column])))
        return found


class ShiftedDecoder:
    """In whole numbers: products with table entries lose `shift` bits.

    `even`: half a size is rounded to even as part of a corner; else it is rounded down.
    """

    def __init__(self, k: LayerKernel, layer: Layer, limits: Limits, shift: int, even: bool) -> None:
        self.k, self.offsets, self.clip, self.even = k, _Tables(k, layer), limits.clip, even
        self.shift, self.high = k.number(shift), [k.number(int(limits.height)), k.number(int(limits.width))]

    def __call__(self, anchor: Sides, row: Expression) -> Corners:
        k, t = self.k, self.offsets.at(row)
        ends: list[Expression] = []
        for (a, side), high in zip(AXES, self.high, strict=True):
            extent = k.held("side", clamp((t[side] * anchor[side]) >> self.shift, 0, high))
            middle = k.held("middle", ((t[a] * anchor[side]) >> self.shift) + anchor[a])
            ends += [k.held(a, clamp(c, 0, high) if self.clip else c) for c in self._ends(middle, extent)]
        y0, y1, x0, x1 = ends
        return y0, x0, y1, x1

    def _ends(self, middle: Value, extent: Value) -> tuple[Expression, Expression]:
        if not self.even:
            return middle - (extent >> 1), middle + (extent >> 1)
        first, last = (self.k.held("twice", twice) for twice in (middle * 2 - extent, middle * 2 + extent))
        return (first + ((first >> 1) & 1)) >> 1, (last + ((last >> 1) & 1)) >> 1


def near(product: Expression, shift: int) -> Expression:
    """A product over 2^shift, halves up, where the sum with the half may not fit 32 bits."""
    if not shift:
        return product
    return (product >> shift) + (((product & ((1 << shift) - 1)) + (1 << (shift - 1))) >> shift)


class DetectionDecoder:
    """Of a quantised DetectionOutput; see `fixed.quantised_detection_output`."""

    def __init__(self, k: LayerKernel, layer: Layer, numbers: FixedDetection, order: Sequence[int]) -> None:
        self.k, self.numbers, self.offsets = k, numbers, _Tables(k, layer, order)
        self.sides, self.places, self.centres = (k.number(scale) for scale in numbers.scale)
        self.high = [k.number(numbers.height), k.number(numbers.width)]

    def __call__(self, anchor: Sides, row: Expression) -> Corners:
        k, t, d = self.k, self.offsets.at(row), self.numbers
        ends = []
        for (a, side), high in zip(AXES, self.high, strict=True):
            product = k.held("product", clamp((t[side] * self.sides) >> d.part[0], -LIMIT - 1, LIMIT) * anchor[side])
            half = k.held("half", clamp(near(product, d.shift[0] - d.part[0]), 0, high) >> 1)
            moved = k.held("moved", clamp((t[a] * self.places) >> d.part[1], -LIMIT - 1, LIMIT) * anchor[side])
            middle = k.held("middle", near(moved, d.shift[1] - d.part[1]) + self._centre(anchor[a]))
            ends += [k.held(a, clamp(corner, 0, high)) for corner in (middle - half, middle + half)]
        y0, y1, x0, x1 = ends
        return y0, x0, y1, x1

    def _centre(self, place: Expression) -> Expression:
        """A centre in the units of the image, limited to 16 bits."""
        k, scale, shift = self.k, self.numbers.scale[2], self.numbers.shift[2]
        # beyond it a centre is limited to 16 bits; a multiplier of 0 leaves nothing
        bound = min((((1 << 15) + 1 << shift) // max(scale, 1)) + 1, 1 << 20)
        limited = k.held("limited", clamp(place, -bound, bound))
        high, low = k.changing("high", limited >> 16), k.changing("low", limited & 0xFFFF)
        k.paste(multiply_wide, high, low, self.centres)
        k.paste(shift_near if shift <= 16 else shift_far, high, low, shift)
        return clamp(high, -LIMIT - 1, LIMIT)


class RegionDecoder:
    """Of quantised boxes from regions; see `fixed.fixed_boxes`."""

    def __init__(
        self, k: LayerKernel, layer: Layer, b: FixedBoxes, regions: Tensor, clip: bool, order: Sequence[int] = PLAIN
    ) -> None:
        deltas = layer.inputs[1]
        self.k, self.numbers, self.clip, self.order, self.regions = k, b, clip, order, regions
        self.source, self.tensor = deltas, k.tensor(deltas)
        self.scale = [k.number(scale) for scale in b.scale]
        for key in ("th_lut", "tw_lut"):
            exact_table(layer, key, 0, LIMIT)
        self.powers = [entries_of(k, layer, key, deltas) for key in ("th_lut", "tw_lut")]

    def __call__(self, anchor: Sides, row: Expression) -> Corners:
        k, b, order = self.k, self.numbers, self.order
        largest = (1 << self.regions.integer.bits) - 1
        ends = []
        for i, (a, side) in enumerate(AXES):
            offset = k.held("offset", scalar(self.tensor, row * 4 + order[i], self.source, self.source.scalar_zero))
            moved = k.held("moved", offset * scaled_floor(anchor[side], self.scale[i], b.part))
            middle = k.held("middle", clamp(near(moved, b.shift[i] - b.part) + anchor[a], *span(self.regions)))
            power = self.powers[i].at(S.i32(self.tensor[row * 4 + order[2 + i]]))
            power = k.held("power", (power * self.scale[2 + i]) >> EXPONENT_BITS)
            half = scaled_floor(anchor[side], power, b.shift[2 + i] - EXPONENT_BITS)
            half = k.held("half", clamp(half, 0, largest))
            ends += [k.held(a, self._scaled(corner)) for corner in (middle - half, middle + half)]
        y0, y1, x0, x1 = ends
        return y0, x0, y1, x1

    def _scaled(self, corner: Expression) -> Expression:
        shift = self.numbers.shift[4]
        found = more(corner * self.scale[4], 1 << (shift - 1) if shift > 1 else 0) >> shift
        return clamp(found, 0, LIMIT) if self.clip else found

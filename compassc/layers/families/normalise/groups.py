"""The kernel of group normalisation where channels are the last axis: a TEC takes the pixels of a group together.

Transfers bring the group's channels of many pixels to LSRAM, one pixel behind the other, where they are whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Pointer, Value, invariant
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.ir.dtypes import INT32
from compassc.layers.byte_functions import BYTES
from compassc.layers.families.normalise.byte_steps import MOST, deviation, normalised
from compassc.layers.families.normalise.reference import affine, factors
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import follow
from compassc.layers.lane_arithmetic import across_sum, square_of
from compassc.layers.layer_kernel import Lanes, LayerKernel, tail
from compassc.layers.machine import Share
from compassc.layers.requantise import requantise
from compassc.layers.streams import bytes_of
from compassc.layers.vectors import LANES, WIDE, everywhere, halves_of, pointee, product_of_halves

TILE = Share(5)
"""LSRAM for pixels of the input and of the output."""
LONGEST = 1024
"""Elements after which the channels of a group begin at a vector again."""


def in_groups(layer: Layer, tail: Sequence[Layer]) -> Kernel | None:
    """The kernel; None where channels are no last axis, of other types, and of layers whose sums need more bits."""
    x, group = layer.input, layer.integer("group")
    axis, channels = layer.axis("axis", -1), x.shape[-1]
    if layer.type != "GroupNorm" or axis != len(x.shape) - 1 or group < 1 or channels % group:
        return None
    each, count = channels // group, x.count // x.shape[0] // group
    whole = lcm(each, LANES)
    numbers = [values for key in ("weights", "biases") if (values := affine(layer, key)) is not None]
    if any(values.size not in (1, channels) for values in numbers):
        return None
    out = (tail[-1] if tail else layer).output
    small = x.dtype in BYTES and layer.output.dtype in BYTES and out.dtype in BYTES and count <= MOST
    if whole > LONGEST or len(layer.outputs) > 1 or not (small or WIDE[x.dtype] == WIDE[out.dtype] == "float32"):
        return None
    return _Groups(layer, tail, each, count, whole).kernel()


class Side(NamedTuple):
    """A tensor, its address, and the tile of its pixels in LSRAM."""

    tensor: Tensor
    pointer: Pointer
    tile: Pointer


class _Groups:
    """The kernel in the making: `each` channels in a group of `count` elements, which repeat after `whole`."""

    def __init__(self, layer: Layer, tail: Sequence[Layer], each: int, count: int, whole: int) -> None:
        self.layer, self.tail, self.k = layer, tail, LayerKernel()
        k, x, y = self.k, layer.input, (tail[-1] if tail else layer).output
        self.out, self.count, self.each = y, count, each
        self.groups, self.channels = x.shape[-1] // each, x.shape[-1]
        pixels = count // each
        made = {t.name for member in (layer, *tail) for t in member.outputs}
        others = {t.name: t for member in tail for t in member.inputs if t.name not in made}
        if any(t.shape != y.shape for t in others.values()):
            raise LayerError("the layers behind it have operands of other shapes, which cannot join the kernel")
        room = TILE.size // sum(bytes_of(t.dtype) for t in (x, y, *others.values())) - whole
        self.repeats = whole // each
        self.rows = pixels if pixels * each <= room else max(self.repeats, room // whole * self.repeats)
        self.once, self.span = self.rows >= pixels, self.rows * each + whole
        with k.active():
            self.x, self.y, *rest = (self._side(t) for t in (x, y, *others.values()))
        self.others = {s.tensor.name: s for s in rest}
        self.pixels, self.n = k.number(pixels), k.number(count)
        self.width, self.all, self.whole = k.number(each), k.number(self.channels), k.number(whole)
        k.lanes_are_channels = True

    def _side(self, t: Tensor) -> Side:
        return Side(t, self.k.tensor(t), self.k.alloc(self.span, pointee(t.dtype), "tile"))

    def kernel(self) -> Kernel:
        k = self.k
        with k.active(), k.shared(k.number(self.groups * self.layer.input.shape[0]), "item") as item:
            groups = k.number(self.groups)
            self.pattern = k.held("pattern", (item % groups) * self.whole)
            self.first = k.held("first", (item / groups) * self.pixels * self.all + (item % groups) * self.width)
            if self.once:
                self._copy(self.x, S.i32(0), self.pixels)
                self._clear(self.n)
            (self._of_bytes if self.layer.input.dtype in BYTES else self._of_floats)()
        return k.kernel()

    def _copy(self, side: Side, row: Expression, rows: Expression, back: bool = False) -> None:
        """The transfer of pixels from a row on to a tile, or back from it."""
        far = side.pointer + self.first + row * self.all
        if back:
            S.dma_copy(far, side.tile, self.width, self.width, rows, self.all)
        else:
            S.dma_copy(side.tile, far, self.width, self.all, rows, self.width)

    def _clear(self, now: Expression) -> None:
        """Zeros behind the elements of a tile."""
        S.vstore(everywhere(0, pointee(self.layer.input.dtype)), self.x.tile + now)

    def _tiles(self, body: Callable[[Value], None], written: bool = False) -> None:
        """Statements for the elements of every tile, whose number `body` is given."""
        k = self.k
        if self.once:
            self._tile(body, S.i32(0), self.pixels, self.n, written)
            return
        rows = k.number(self.rows)
        with k.for_range(0, self.pixels, rows, "row") as row:
            some = k.held("some", S.min(self.pixels - row, rows))
            now = k.held("now", some * self.width)
            self._copy(self.x, row, some)
            self._clear(now)
            self._tile(body, row, some, now, written)

    def _tile(
        self, body: Callable[[Value], None], row: Expression, some: Expression, now: Value, written: bool
    ) -> None:
        for side in self.others.values() if written else ():
            self._copy(side, row, some)
        body(now)
        if written:
            self._copy(self.y, row, some, True)

    def _vectors(self, body: Callable[[Value, Value], None]) -> None:
        """Statements for every vector: `body` is given its place, and the number of elements of the tile."""

        def vectors(now: Value) -> None:
            with self.k.for_range(0, now, LANES, "place") as place:
                body(place, now)

        self._tiles(vectors)

    def _results(self, make: Callable[[Value], Value]) -> None:
        """The vectors of all tiles, those with the same channels one after the other; `make` gives the layer's value at a
        place."""
        k = self.k

        def vectors(now: Value) -> None:
            i, place = k.variable("i", INT32), k.variable("place", INT32)
            k.lanes_of = lambda numbers: S.vload(self._pattern_of(numbers) + (self.pattern + i), lanes=LANES)
            with k.apart() as lines:
                operand = lambda t: k.loaded(self.others[t.name].tile + place, t)
                last, out = follow(k, self.layer, make(place), self.tail, operand)
                S.vstore(k.stored(last, out.dtype), self.y.tile + place)
            k.lanes_of = None
            shared, inner = invariant(lines, (place, k.lanes_mask))
            with k.for_range(0, self.whole, LANES, i):
                k.splice(shared)
                with k.for_range(i, now, self.whole, place):
                    if k.masked:
                        k.define(k.lanes_mask, tail(now - place))
                    k.splice(inner)

        self._tiles(vectors, written=True)

    def _pattern_of(self, numbers: Array) -> Pointer:
        """Numbers of all channels, those of a group as often as they take to begin at a vector again."""
        tiled = np.tile(numbers.reshape(self.groups, 1, -1), (1, self.repeats, 1))
        return self.k.pointer(tiled.reshape(-1))

    def _of_bytes(self) -> None:
        k, dtype = self.k, self.layer.input.dtype
        zeros = S.vbcast(S.cast(0, f"{'u' if dtype == 'uint8' else ''}int32"), lanes=LANES // 4)
        sums, both = k.changing("sums", zeros), k.changing("both", zeros)

        def held(place: Value) -> Value:
            return k.held("held", S.vload(self.x.tile + place, lanes=LANES))

        def add(place: Value, now: Value) -> None:
            own = held(place)
            k.assign(sums, S.vqdpa(sums, own, everywhere(1, dtype)))
            k.assign(both, S.vqdpa(both, own, own))

        self._vectors(add)
        total, squares = (k.held(hint, S.i32(S.vrpadd(v)[0])) for hint, v in (("total", sums), ("squares", both)))
        d = deviation(k, self.layer, self.count, total, squares)
        self._results(lambda place: self._with_channels(normalised(k, self.layer, held(place), d, "norm_")))

    def _with_channels(self, n: Value) -> Value:
        """Factors and addends of the channels on normalised integers, requantised to the output."""
        k, layer, out = self.k, self.layer, self.layer.output
        weights, biases = (self._numbers(key).astype(np.int64) for key in ("weights", "biases"))
        scale, shift = (np.broadcast_to(v.reshape(-1), self.channels) for v in factors(layer))
        ends = n.magnitude * np.abs(weights * scale) + np.abs(biases * scale)
        if np.abs(weights * scale).max() < 1 << 15 and ends.max() < 1 << 31 and scale.min() >= 0:
            weights, biases, scale = weights * scale, biases * scale, np.ones_like(scale)
        elif (n.magnitude * np.abs(weights) + np.abs(biases)).max() >= 1 << 31:
            raise LayerError("its sums do not fit 32 bits, which no kernel here computes with")
        low, high = (int(f(np.stack([n.low * weights, n.high * weights]) + biases)) for f in (np.min, np.max))
        held = k.let(halves_of(k.stored(n, "int8" if n.low < 0 else "uint8")))
        if np.abs(weights).max() < 1 << 15:
            total = k.let(product_of_halves(held, k.stored_channels(weights.astype(np.int16))))
        else:
            total = k.let(n * k.channels(weights.astype(np.int32)))
        if biases.any():
            total = k.let(total + k.channels(biases.astype(np.int32)))
        scale, shift = (v[:1] if (v == v[0]).all() else v for v in (scale, shift))
        return requantise(k, total.within(low, high), scale, shift, out.scalar_zero, out.low, out.high)

    def _numbers(self, key: str) -> Array:
        """Factors or addends of all channels."""
        values = affine(self.layer, key)
        return np.broadcast_to(np.float32(key == "weights") if values is None else values.reshape(-1), self.channels)

    def _of_floats(self) -> None:
        k, layer = self.k, self.layer
        n, small = k.number(float(self.count)), k.number(float(np.float32(layer.number("epsilon", 1e-5))))
        zeros = S.vbcast(S.fp32(0.0), lanes=LANES)
        total, squares = k.changing("total", zeros), k.changing("squares", zeros)

        def real(place: Value) -> Value:
            lanes = Lanes(k, "real", layer.input.dtype)
            lanes.define(k, S.vload(self.x.tile + place, lanes=LANES))
            return lanes.value

        def add_square(place: Value, now: Value) -> None:
            square = square_of(real(place) - mean)
            k.assign(squares, squares + (S.vsel(square, zeros, tail(now - place)) if self.count % LANES else square))

        def result(place: Value) -> Value:
            y = k.let((real(place) - mean) * factor)
            if "weights" in layer.constants:
                y = k.let(y * k.channels(self._numbers("weights").astype(np.float32)))
            if "biases" in layer.constants:
                y = k.let(y + k.channels(self._numbers("biases").astype(np.float32)))
            return y

        self._vectors(lambda place, now: k.assign(total, total + real(place)))
        mean = k.held("mean", across_sum(total) / n)
        self._vectors(add_square)
        root: Expression = S.sqrt(across_sum(squares) / n + small)
        factor = k.held("factor", 1.0 / root)  # type: ignore[arg-type]
        self._results(result)

"""The kernel of group normalisation where channels are the last axis: a TEC takes the pixels of a group together.

Transfers bring the group's channels of many pixels to LSRAM, one pixel behind the other, where they are whole vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import numpy as np

from compassc.build import Value
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array
from compassc.layers.byte_functions import BYTES
from compassc.layers.emit import requantise
from compassc.layers.families.normalise.of_bytes import MOST, deviation, normalised
from compassc.layers.families.normalise.reference import affine, factors
from compassc.layers.kernels import follow
from compassc.layers.machine import Share
from compassc.layers.source import LANES, Kernel, KernelSource, finish, invariant, named, widened
from compassc.layers.streams import bytes_of
from compassc.layers.vectors import WIDE, pointee

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


class _Groups:
    """The kernel in the making: `each` channels in a group of `count` elements, which repeat after `whole`."""

    def __init__(self, layer: Layer, tail: Sequence[Layer], each: int, count: int, whole: int) -> None:
        self.layer, self.tail, self.k = layer, tail, KernelSource()
        k, x, y = self.k, layer.input, (tail[-1] if tail else layer).output
        self.out, self.count, self.each = y, count, each
        self.groups, self.channels = x.shape[-1] // each, x.shape[-1]
        pixels = count // each
        made = {t.name for member in (layer, *tail) for t in member.outputs}
        others = {t.name: t for member in tail for t in member.inputs if t.name not in made}
        if any(t.shape != y.shape for t in others.values()):
            raise LayerError("the layers behind it have operands of other shapes, which cannot join the kernel")
        self.others = {name: (k.tensor(t), f"tile_{i}", t) for i, (name, t) in enumerate(others.items())}
        room = TILE.size // sum(bytes_of(t.dtype) for t in (x, y, *others.values())) - whole
        step = whole // each
        self.rows = pixels if pixels * each <= room else max(step, room // whole * step)
        self.once, self.span = self.rows >= pixels, self.rows * each + whole
        self.source, self.target = k.tensor(x), k.tensor(y)
        self.pixels, self.n = k.scalar(pixels), k.scalar(count)
        self.width, self.all, self.whole = k.scalar(each), k.scalar(self.channels), k.scalar(whole)
        k.channel, k.arrange = "pattern + i", self._repeated
        self.repeats = step

    def _repeated(self, numbers: Array) -> Array:
        return np.tile(numbers.reshape(self.groups, 1, -1), (1, self.repeats, 1)).reshape(-1)

    def kernel(self) -> Kernel:
        k, x = self.k, self.layer.input
        groups, images = k.scalar(self.groups), k.scalar(self.groups * x.shape[0])
        lines = [
            f'x_tile = S.alloc({self.span}, "{pointee(x.dtype)}", scope="lsram")',
            f'y_tile = S.alloc({self.span}, "{pointee(self.out.dtype)}", scope="lsram")',
            *(
                f'{tile} = S.alloc({self.span}, "{pointee(t.dtype)}", scope="lsram")'
                for _, tile, t in self.others.values()
            ),
        ]
        inner = [
            f"pattern = (item % {groups}) * {self.whole}",
            f"first = (item / {groups}) * {self.pixels} * {self.all} + (item % {groups}) * {self.width}",
        ]
        if self.once:
            inner += [f"now = {self.n} + 0", self._copied(self.source, "x_tile", "0", self.pixels), *self._cleared()]
        inner += self._of_bytes() if x.dtype in BYTES else self._of_floats()
        loop = f"for item in range(S.get_local_id(), {images}, S.get_local_size()):"
        return finish(k, [*k.head, *lines, loop, *("    " + line for line in inner)])

    def _copied(self, far: str, tile: str, row: str, rows: str, back: bool = False) -> str:
        """The transfer of pixels from a row on to a tile, or back from it."""
        far = f"{far} + first + {row} * {self.all}"
        if back:
            return f"S.dma_copy({far}, {tile}, {self.width}, {self.width}, {rows}, {self.all})"
        return f"S.dma_copy({tile}, {far}, {self.width}, {self.all}, {rows}, {self.width})"

    def _ends(self, row: str, rows: str) -> tuple[list[str], list[str]]:
        """The transfers around what writes a tile of results."""
        given = [self._copied(pointer, tile, row, rows) for pointer, tile, _ in self.others.values()]
        return given, [self._copied(self.target, "y_tile", row, rows, True)]

    def _cleared(self) -> list[str]:
        """Zeros behind the elements of a tile."""
        kind = pointee(self.layer.input.dtype)
        return [f'S.vstore(S.vbcast(S.cast(0, "{kind}"), lanes={LANES}), x_tile + now)']

    def _tiles(self, body: list[str], written: bool = False) -> list[str]:
        """Lines for the `now` elements of every tile."""
        row, some = ("0", self.pixels) if self.once else ("row", "some")
        given, made = self._ends(row, some) if written else ([], [])
        if self.once:
            return [*given, *body, *made]
        rows = self.k.scalar(self.rows)
        lines = [f"some = S.min({self.pixels} - row, {rows})", f"now = some * {self.width}"]
        lines += [self._copied(self.source, "x_tile", row, some), *self._cleared(), *given, *body, *made]
        return [f"for row in range(0, {self.pixels}, {rows}):", *("    " + line for line in lines)]

    def _vectors(self, body: list[str]) -> list[str]:
        return self._tiles([f"for place in range(0, now, {LANES}):", *("    " + line for line in body)])

    def _results(self, value: Value) -> list[str]:
        """Lines for the vectors of all tiles, those with the same channels one after the other; `value` is the layer's."""
        k = self.k
        last, out = follow(k, self.layer, value, self.tail, "place", lambda t: self.others[t.name][1])
        body = [*k.body, f'S.vstore(narrow({last.name}, "{out.dtype}"), y_tile + place)']
        if any("mask" in line for line in body):
            body = [f"mask = {self._mask()}", *body]
        shared, inner = invariant(body, ("place", "mask"))
        lines = [f"for i in range(0, {self.whole}, {LANES}):", *("    " + line for line in shared)]
        lines += [f"    for place in range(i, now, {self.whole}):", *("        " + line for line in inner)]
        return self._tiles(lines, written=True)

    def _mask(self) -> str:
        return f"S.tail_mask(S.min(now - place, {LANES}), {LANES})"

    def _done(self) -> list[str]:
        """The lines of the body so far, which is empty then."""
        lines, self.k.body = self.k.body, []
        return lines

    def _of_bytes(self) -> list[str]:
        k, dtype = self.k, self.layer.input.dtype
        wide = f"{'u' if dtype == 'uint8' else ''}int32"
        lines = [f'{s} = S.vbcast(S.cast(0, "{wide}"), lanes={LANES // 4})' for s in ("sums", "both")]
        lines += self._vectors(
            [
                f"held = S.vload(x_tile + place, lanes={LANES})",
                f'sums = S.vqdpa(sums, held, S.vbcast(S.cast(1, "{dtype}"), lanes={LANES}))',
                "both = S.vqdpa(both, held, held)",
            ]
        )
        lines += ["total = S.i32(S.vrpadd(sums)[0])", "squares = S.i32(S.vrpadd(both)[0])"]
        deviation(k, self.layer, self.count)
        lines += self._done()
        k.do(f"held = S.vload(x_tile + place, lanes={LANES})")
        return [*lines, *self._results(self._with_channels(normalised(k, self.layer, "held", "norm_")))]

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
        held = k.let(f'halves_of(narrow({n.name}, "{"int8" if n.low < 0 else "uint8"}"))').name
        if np.abs(weights).max() < 1 << 15:
            total = k.let(f"product_of_halves({held}, {k.channels(weights.astype(np.int16))})").name
        else:
            total = k.let(f"{n.name} * {k.channels(weights.astype(np.int32))}").name
        if biases.any():
            total = k.let(f"{total} + {k.channels(biases.astype(np.int32))}").name
        scale, shift = (v[:1] if (v == v[0]).all() else v for v in (scale, shift))
        return requantise(k, named(total, "int32", low, high), scale, shift, out.scalar_zero, out.low, out.high)

    def _numbers(self, key: str) -> Array:
        """Factors or addends of all channels."""
        values = affine(self.layer, key)
        return np.broadcast_to(np.float32(key == "weights") if values is None else values.reshape(-1), self.channels)

    def _of_floats(self) -> list[str]:
        k, layer, dtype = self.k, self.layer, self.layer.input.dtype
        load = widened("real", f"S.vload(x_tile + place, lanes={LANES})", dtype)
        square = "square_of(real - mean)"
        partial = self.count % LANES
        if partial:
            square = f"S.vsel({square}, S.vbcast(S.fp32(0.0), lanes={LANES}), {self._mask()})"
        n, small = k.scalar(float(self.count)), k.scalar(float(np.float32(layer.number("epsilon", 1e-5))))
        lines = [f"mean = S.vbcast(S.fp32(0.0), lanes={LANES})", f"squares = S.vbcast(S.fp32(0.0), lanes={LANES})"]
        lines += self._vectors([*load, "mean = mean + real"])
        lines += [f"mean = across_sum(mean) / {n}"]
        lines += self._vectors([*load, f"squares = squares + {square}"])
        lines += [f"factor = 1.0 / S.sqrt(across_sum(squares) / {n} + {small})"]
        for line in load:
            k.do(line)
        y = k.let("(real - mean) * factor", "float32")
        for key, sign in (("weights", "*"), ("biases", "+")):
            if key in layer.constants:
                y = k.let(f"{y.name} {sign} {k.channels(self._numbers(key).astype(np.float32))}", "float32")
        return [*lines, *self._results(y)]

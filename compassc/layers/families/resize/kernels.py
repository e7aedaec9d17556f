"""Kernels of images in another size. Where each output element comes from is known when the graph is built."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.build import Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.byte_functions import BYTES
from compassc.layers.element_copies import strides_of
from compassc.layers.families.resize.reference import METHODS, RANKS, between, coordinates, nearest, windows_of
from compassc.layers.families.resize.separable import separable
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.machine import Share
from compassc.layers.remapping import remap_kernel
from compassc.layers.sliding import Windows, bounded_axis
from compassc.layers.vectors import (
    LANES,
    clamp,
    everywhere,
    narrow,
    narrowed,
    pointee,
    requantised,
    sum_of_corners,
    wide,
    wide_kind,
)

STAGED = Share(2)
"""LSRAM for a row: two of the input and one of the output. Always all of it, so that sizes share a kernel."""


@kernel("Resize", "Interp")
def resize(layer: Layer) -> Kernel:
    x, y = layer.input, layer.output
    method = layer.word("method", "BILINEAR", METHODS)
    if method in RANKS:
        return separable(layer)
    if len(x.shape) != 4 or len(y.shape) != 4 or (x.shape[0], x.shape[3]) != (y.shape[0], y.shape[3]):
        raise LayerError(f"{list(x.shape)} to {list(y.shape)} is no change of the size of NHWC images")
    rows = coordinates(layer, "y", x.shape[1], y.shape[1])
    columns = coordinates(layer, "x", x.shape[2], y.shape[2])
    if method in ("NEAREST", "AREA"):
        strides = strides_of(x.shape)
        taken = (
            np.arange(x.shape[0]),
            nearest(layer, rows, x.shape[1], y.shape[1]),
            nearest(layer, columns, x.shape[2], y.shape[2]),
            np.arange(x.shape[3]),
        )
        return remap_kernel(x, y, [i * s for i, s in zip(taken, strides, strict=True)])
    if layer.is_quantised and x.integer.bits > 16:
        raise LayerError(f"{method} of {x.dtype} has no kernel")
    if x.dtype != y.dtype:
        raise LayerError(f"its input is {x.dtype}, its output {y.dtype}; {method} keeps the type")
    return _antialiased(layer) if layer.flag("antialias", False) else _bilinear(layer, rows, columns)


def _bilinear(layer: Layer, rows: Array, columns: Array) -> Kernel:
    """Lanes are channels; a pass weighs the four neighbours of one output pixel."""
    k, x, y = LayerKernel(), layer.input, layer.output
    c, width, length = x.shape[3], x.shape[2] * x.shape[3], y.shape[2] * x.shape[3]
    r0, r1, fy = between(rows, x.shape[1])
    c0, c1, fx = between(columns, x.shape[2])
    room, staged = STAGED.size // numpy_dtype(x.dtype).itemsize, list[Pointer]()
    with k.active():
        source, target = k.tensor(x), k.tensor(y)
        weights = (_Tabled if layer.is_quantised else _Products)(k, layer, fy, fx)
        outer, inner = (
            [k.pointer((at * n).astype(np.int32)) for at in ats] for ats, n in (((r0, r1), width), ((c0, c1), c))
        )
        high, wide, channels, row, line = (k.number(n) for n in (y.shape[1], y.shape[2], c, width, length))
        if max(width, length) <= room:
            staged = [k.scratch(room, pointee(x.dtype), name) for name in ("top", "bottom", "out")]
        with k.shared(k.number(y.shape[0] * y.shape[1]), "r") as r:
            oy, image = k.held("oy", r % high), source + r / high * k.number(x.shape[1] * width)
            lines, to = [k.hold(image + at[oy], "line") for at in outer], k.hold(target + r * line, "to")
            for near, far in zip(staged, lines, strict=False):
                S.dma_copy(near, far, row)
            *lines, out = staged or [*lines, to]
            weights.of_row(oy)
            with k.for_range(0, wide, name="ox") as ox:
                places, factors = [k.held("at", at[ox]) for at in inner], weights.of_pixel(ox)
                with k.for_range(0, channels, LANES, "j") as j:
                    mask = k.held("mask", tail(channels - j))
                    corners = [S.vload(p + at + j, mask, lanes=LANES) for p in lines for at in places]
                    S.vstore(_weighed(k, layer, corners, factors), out + ox * channels + j, mask)
            if staged:
                S.dma_copy(to, out, line)
    return k.kernel()


def _in_bytes(layer: Layer) -> bool:
    return layer.is_quantised and layer.input.dtype in BYTES


def _weighed(k: LayerKernel, layer: Layer, corners: Sequence[Expression], weights: Sequence[Value]) -> Expression:
    """The output's lanes from those of the four neighbours, as both are stored."""
    x, y = layer.input, layer.output
    if _in_bytes(layer):
        stored: Expression = narrowed(sum_of_corners(*corners, *weights), k.number(_bits(layer)), y.dtype)
        for limit, end, how in ((y.low, x.integer.low, S.max), (y.high, x.integer.high, S.min)):
            if limit != end:
                stored = how(stored, S.cast(k.number(limit), y.dtype))
        return stored
    a, b, c, d = (wide(corner, x.dtype) * weight for corner, weight in zip(corners, weights, strict=True))
    total = a + b + c + d
    if layer.is_quantised:
        total = clamp(requantised(total, 1, k.number(_bits(layer))), k.number(y.low), k.number(y.high))
    found: Expression = narrow(total, y.dtype)
    return found


def _bits(layer: Layer) -> int:
    return layer.integer("interp_shift_value", 13)


class _Products:
    """The weights of the four neighbours of a pixel, from how far it is from them."""

    def __init__(self, k: LayerKernel, layer: Layer, fy: Array, fx: Array) -> None:
        self.k, self.one = k, k.number(1.0)
        self.down, self.across = (k.pointer(f.astype(np.float32)) for f in (fy, fx))

    def of_row(self, oy: Value) -> None:
        self.below = self.k.held("fy", self.down[oy])

    def of_pixel(self, ox: Value) -> list[Value]:
        right, below = self.k.held("fx", self.across[ox]), self.below
        ends = [(self.one - v, v) for v in (below, right)]
        return [self.k.let(v * u) for v in ends[0] for u in ends[1]]


class _Tabled:
    """Those of integers, which each pair of distances has in a table: 16 bits each, two in a word for bytes."""

    def __init__(self, k: LayerKernel, layer: Layer, fy: Array, fx: Array) -> None:
        (vy, iy), (vx, ix) = (np.unique(f, return_inverse=True) for f in (fy, fx))
        vy, vx, bits = vy[:, None], vx[None, :], _bits(layer)
        exact = np.stack([(1 - vy) * (1 - vx), (1 - vy) * vx, vy * (1 - vx), vy * vx], -1)
        fixed = np.floor(exact * 2.0**bits + 0.5)
        if np.abs(fixed).max() > 32767 or bits < 0:
            raise LayerError(f"'interp_shift_value' is {bits}, its weights do not fit 16 bits")
        words = np.ascontiguousarray(fixed.astype(np.int16).reshape(-1))
        self.k, self.many = k, 2 if _in_bytes(layer) else 4
        self.table = k.pointer(words.view(np.int32) if self.many == 2 else words)
        self.down = k.pointer((iy.reshape(-1) * (self.many * vx.size)).astype(np.int32))
        self.across = k.pointer((ix.reshape(-1) * self.many).astype(np.int32))

    def of_row(self, oy: Value) -> None:
        self.first = self.k.held("fy", self.down[oy])

    def of_pixel(self, ox: Value) -> list[Value]:
        at = self.k.held("fx", self.first + self.across[ox])
        return [self.k.held("w", self.table[at + i]) for i in range(self.many)]


def _antialiased(layer: Layer) -> Kernel:
    """The rows of a window first, as the horizontal pass gives them, then their weighted sum."""
    k, x, y, kind = LayerKernel(), layer.input, layer.output, wide_kind(layer.input)
    filters = [windows_of(layer, letter) for letter in "yx"]
    with k.active():
        w = Windows(k, x, [bounded_axis(k, n, f.low, f.high) for n, f in zip(x.shape[1:3], filters, strict=True)])
        # the first weight of a position, less its first element
        begins = [k.pointer((np.arange(len(f.low)) * f.weights.shape[1] - f.low).astype(np.int32)) for f in filters]
        weights = [k.pointer(np.ascontiguousarray(f.weights.astype(kind)).reshape(-1)) for f in filters]

        def passed(value: Value) -> Value:
            if kind == "float32":
                return value
            return k.let(clamp(requantised(value, 1, 8), k.number(x.low), k.number(x.high)), x.low, x.high)

        with w.positions():
            down, across = w.loops()
            first_y, first_x = (k.held("first", begin[o]) for begin, o in zip(begins, w.indices, strict=True))
            total = k.changing("total", everywhere(0, kind))
            with down as iy:
                part = k.changing("part", everywhere(0, kind))
                with across as ix:
                    k.assign(part, part + w.widened(w.channels_of([iy, ix])) * weights[1][first_x + ix])
                k.assign(total, total + passed(part) * weights[0][first_y + iy])
            result = passed(total)
            if y.is_integer:
                result = k.let(clamp(result, k.number(y.low), k.number(y.high)), y.low, y.high)
            w.finish(layer, (), result)
    return k.kernel()

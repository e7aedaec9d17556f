"""Kernels of images: lanes are pixels of a row for colours, and channels for windows plus weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compassc.build import Address, Expression, Pointer, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.families.images.reference import (
    Colours,
    added,
    checked_window,
    colours_of,
    image_size,
    multipliers,
    weights_of,
)
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.requantise import requantise
from compassc.layers.vectors import LANES, clamp, load, narrow, requantised, wide, wide_kind

HALF_ROW = 3072
"""Pixels of a row of a plane of half the size, at most; two such rows lie in LSRAM."""


def _coefficients(c: Colours, real: bool) -> dict[str, float | int]:
    given = {f"m{i}{j}": c.matrix[i, j] for i in range(3) for j in range(3)}
    given |= {f"before{i}": c.before[i] for i in range(3)}
    given |= {f"behind{i}": c.behind[i] * (1 if real else 1 << c.shift) for i in range(3)}
    return {n: float(v) if real else int(v) for n, v in given.items()}


class _Pixels:
    """Pixels of the input as numbers, and colours as the output stores them."""

    def __init__(self, k: LayerKernel, layer: Layer) -> None:
        self.k, self.x, self.y, self.real = k, layer.input, layer.output, not layer.is_quantised
        self.zero = 0 if self.real or not self.y.scalar_zero else k.number(self.y.scalar_zero)

    def load(self, place: Address, mask: Value, stride: int = 1) -> Expression:
        dtype, zero = self.x.dtype, 0 if self.real else self.x.scalar_zero
        lanes = S.vload(place, mask, lanes=LANES, stride=stride) if stride > 1 else S.vload(place, mask, lanes=LANES)
        raw: Expression = wide(lanes, dtype)
        if self.real:
            return raw if dtype == "float32" or dtype.endswith("float16") else S.cast(raw, "float32")
        return raw + zero if zero else raw

    def stored(self, value: Expression) -> Expression:
        """A whole number as it is stored: from 0 to 255, less the zero point, in the range of the type."""
        y = self.y
        moved: Expression = clamp(value, 0, 255)
        if y.scalar_zero:
            moved = moved - self.zero
        fits = y.integer.low <= -y.scalar_zero and 255 - y.scalar_zero <= y.integer.high
        limited: Expression = moved if fits else clamp(moved, y.integer.low, y.integer.high)
        return limited


def _check_colours(layer: Layer, x: Tensor, y: Tensor, c: Colours) -> None:
    wide_kind(x)
    if wide_kind(y) == "int32" and not layer.is_quantised:
        raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")
    if layer.is_quantised:
        largest = max(abs(x.low + x.scalar_zero), abs(x.high + x.scalar_zero)) + int(np.abs(c.before).max())
        most = largest * int(np.abs(c.matrix).sum(1).max()) + (int(np.abs(c.behind).max()) + 1 << c.shift)
        if most + sum(abs(int(v)) for v in added(c)) >= 2**31:
            raise LayerError(f"sums of up to {most} do not fit 32 bits, which no kernel here computes with")


@kernel("YuvToRgb")
def yuv_to_rgb(layer: Layer) -> Kernel:
    x, y, c = layer.input, layer.output, colours_of(layer)
    n, h, w = image_size(x.count, y.shape)
    _check_colours(layer, x, y, c)
    if w // 2 > HALF_ROW:
        raise LayerError(f"rows of {w} pixels do not fit LSRAM; it takes {2 * HALF_ROW}")
    k = LayerKernel()
    with k.active():
        _Upsampled(k, layer, c).rows(n * h, h, w)
    return k.kernel()


class _Upsampled:
    """Rows of colours from a plane of brightness, and two of half the size whose pixels lie between."""

    def __init__(self, k: LayerKernel, layer: Layer, c: Colours) -> None:
        self.k, self.pixels = k, _Pixels(k, layer)
        self.real = self.pixels.real
        self.x, self.target = k.tensor(layer.input), k.tensor(layer.output)
        self.numbers = {name: k.number(v) for name, v in _coefficients(c, self.real).items()}
        self.half_step = k.number(float(c.half) if self.real else c.half)
        self.scale = k.number(float(2.0**-c.shift) if self.real else c.shift)
        kind = "float32" if self.real else "int32"
        self.u_row, self.v_row = (k.alloc(HALF_ROW + LANES + 2, kind, hint) for hint in ("u_row", "v_row"))

    def rows(self, count: int, height_: int, width_: int) -> None:
        k = self.k
        height, width, size = (k.number(n) for n in (height_, width_, height_ * width_ * 3 // 2))
        with k.shared(k.number(count), "r") as r:
            at = k.held("at", r % height)
            luma = k.hold(self.x + (r / height * size + at * width), "luma")
            half = k.held("half", width / 2)
            near = k.hold(self.x + (r / height * size + height * width + at / 2 * half), "near")
            between = k.held("between", S.min(at % 2, height / 2 - 1 - at / 2))
            far = k.hold(near + half * between, "far")
            under = height / 2 * half
            with k.for_range(0, half, LANES, "j") as j:
                self._means(near, far, between, under, j, k.held("mask", tail(half - j)))
            for row in (self.u_row, self.v_row):
                row[0] = row[1]
                row[half + 1] = row[half]
            with k.for_range(0, half, LANES, "j") as j:
                mask = k.held("mask", tail(half - j))
                own = {row: k.held("own", self._at(row, j, mask) * (3.0 if self.real else 3)) for row in self._planes}
                for odd in (0, 1):
                    c1, c2 = (
                        k.held("c", self._quarter(row, own[row], odd, j, half, mask) - self.numbers[f"before{i}"])
                        for i, row in enumerate(self._planes, 1)
                    )
                    light = self.pixels.load(luma + (j * 2 + odd), mask, 2)
                    c0 = k.held("c", light - self.numbers["before0"])
                    self._store(r * width + j * 2 + odd, (c0, c1, c2), mask)

    @property
    def _planes(self) -> tuple[Pointer, Pointer]:
        return self.u_row, self.v_row

    def _at(self, row: Pointer, j: Value, mask: Value) -> Expression:
        return S.vload(row + (j + 1), mask, lanes=LANES)

    def _means(self, near: Pointer, far: Pointer, between: Value, under: Expression, j: Value, mask: Value) -> None:
        """The rows of both planes, between that of the pixels and the next one where there is one."""
        k = self.k
        offsets: tuple[Expression, ...] = (j, under + j)
        means = [k.changing("mean", self.pixels.load(near + offset, mask)) for offset in offsets]
        with k.when(between > 0):
            for mean, offset in zip(means, offsets, strict=True):
                total = mean + self.pixels.load(far + offset, mask)
                k.assign(mean, S.rint(total * 0.5) if self.real else requantised(total, 1, 1))
        for mean, row in zip(means, self._planes, strict=True):
            S.vstore(mean, row + (j + 1), mask)

    def _quarter(self, row: Pointer, own: Value, odd: int, j: Value, half: Value, mask: Value) -> Expression:
        """A quarter of the way to the neighbour."""
        total = S.vload(row + (j + 2 * odd), mask, lanes=LANES) + own
        if not self.real:
            rounded: Expression = requantised(total, 1, 2)
            return rounded
        # the outer columns are not between two others
        lanes = S.vload(self.k.pointer(np.arange(LANES, dtype=np.int32)), lanes=LANES)
        outer = lanes + j == (half - 1 if odd else 0)
        return S.vsel(self._at(row, j, mask), S.rint(total * 0.25), outer)

    def _store(self, pixel: Expression, colour: tuple[Value, Value, Value], mask: Value) -> None:
        """Stores the three colours of every other pixel."""
        m = self.numbers
        for i in range(3):
            c0, c1, c2 = colour
            total = c0 * m[f"m{i}0"] + c1 * m[f"m{i}1"] + c2 * m[f"m{i}2"] + self.half_step
            if self.real:
                value = clamp(S.rint(total * self.scale + m[f"behind{i}"]), 0.0, 255.0)
            else:
                value = self.pixels.stored(requantised(total + m[f"behind{i}"], 1, self.scale))
            S.vstore(narrow(value, self.pixels.y.dtype), self.target + (pixel * 3 + i), mask, stride=6)


@kernel("RgbToYuv")
def rgb_to_yuv(layer: Layer) -> Kernel:
    x, y, c = layer.input, layer.output, colours_of(layer)
    n, h, w = image_size(y.count, x.shape)
    _check_colours(layer, x, y, c)
    k = LayerKernel()
    with k.active():
        pixels, source, target = _Pixels(k, layer), k.tensor(x), k.tensor(y)
        kind = float if pixels.real else int
        m = {(i, p): k.number(kind(c.matrix[i, p])) for i in range(3) for p in range(3)}
        more = [k.number(kind(v)) for v in added(c)]
        scale = k.number(float(2.0**-c.shift) if pixels.real else c.shift)
        height, width, size = (k.number(v) for v in (h, w, h * w * 3 // 2))

        def plane(i: int, place: Expression, colour: list[Value], mask: Value) -> None:
            total = colour[0] * m[i, 0] + colour[1] * m[i, 1] + colour[2] * m[i, 2] + more[i]
            if pixels.real:
                value = clamp(S.floor(total) * scale, 0.0, 255.0)
            else:
                value = pixels.stored(requantised(total, 1, scale))
            S.vstore(narrow(value, y.dtype), target + place, mask)

        def colours(pixel: Expression, stride: int, mask: Value) -> list[Value]:
            first = k.hold(source + pixel * 3, "first")
            return [k.held("c", pixels.load(first + p, mask, stride)) for p in range(3)]

        with k.shared(k.number(n * h), "r") as r:
            image, at = k.held("n", r / height), k.held("at", r % height)
            with k.for_range(0, width, LANES, "j") as j:
                mask = k.held("mask", tail(width - j))
                plane(0, image * size + at * width + j, colours(r * width + j, 3, mask), mask)
            with k.when(at % 2 == 0):
                half = k.held("half", width / 2)
                with k.for_range(0, half, LANES, "j") as j:
                    mask = k.held("mask", tail(half - j))
                    colour, under = colours(r * width + j * 2, 6, mask), height * width + at / 2 * half
                    plane(1, image * size + under + j, colour, mask)
                    plane(2, image * size + (under + height / 2 * half) + j, colour, mask)
    return k.kernel()


@kernel("Dilation", "Erosion")
def extreme(layer: Layer) -> Kernel:
    x, y, window, k = layer.input, layer.output, checked_window(layer), LayerKernel()
    erosion, kind, weights = layer.type == "Erosion", wide_kind(x), weights_of(layer)
    if (kind == "int32") != layer.is_quantised or wide_kind(y) != kind:
        raise LayerError(f"{x.dtype} to {y.dtype} has no kernel")
    finished: Callable[[Value], Value] = lambda acc: acc
    of_x, span = 1, (0, 0)
    table = weights.astype(np.float32)
    if layer.is_quantised:
        (scale, of_x, of_w), shift = multipliers(layer)
        table = (weights.astype(np.int64) * of_w).astype(np.int32)
        ends = [(v + x.scalar_zero) * of_x for v in (x.low, x.high)]
        most = int(np.abs(weights.astype(np.int64) * of_w).max())
        span = min(ends) - most, max(ends) + most
        finished = lambda acc: requantise(k, acc, scale, shift, y.scalar_zero, y.low, y.high)
    padded = -(-x.shape[3] // LANES) * LANES
    table = np.pad(table, ((0, 0), (0, 0), (0, padded - x.shape[3])))
    with k.active():
        source, target, under = k.tensor(x), k.tensor(y), k.pointer(table.reshape(-1))
        factor, offset = k.number(of_x), k.number(x.scalar_zero * of_x)
        worst = (2**31 - 1 if erosion else -(2**31) + 1) if layer.is_quantised else "inf" if erosion else "-inf"

        def taken(place: Address, mask: Value, weight: Address) -> Expression:
            v: Expression = load(place, mask, x.dtype, LANES)
            if layer.is_quantised:
                v = v * factor + offset if x.scalar_zero else v * factor
            lanes = S.vload(weight, lanes=LANES)
            return k.held("v", v) - lanes if erosion else k.held("v", v) + lanes

        down, across, height, width, channels = (k.number(n) for n in (*y.shape[1:3], *x.shape[1:4]))
        with k.shared(k.number(y.shape[0] * y.shape[1] * y.shape[2]), "p") as p:
            ox, oy = k.held("ox", p % across), k.held("oy", p / across % down)
            image = k.hold(source + p / (down * across) * k.number(x.shape[1] * x.shape[2] * x.shape[3]), "image")
            steps = [[k.number(v) for v in (window.stride[i], window.dilation[i], window.pads[i][0])] for i in (0, 1)]
            cells = [k.number(window.kernel[i]) for i in (0, 1)]
            with k.for_range(0, channels, LANES, "j") as j:
                mask = k.held("mask", tail(channels - j))
                acc = k.changing("acc", S.vbcast(S.i32(worst) if layer.is_quantised else S.fp32(worst), lanes=LANES))
                with k.for_range(0, cells[0], name="ky") as ky:
                    iy = k.held("iy", oy * steps[0][0] + ky * steps[0][1] - steps[0][2])
                    with k.when(both(iy >= 0, iy < height)), k.for_range(0, cells[1], name="kx") as kx:
                        ix = k.held("ix", ox * steps[1][0] + kx * steps[1][1] - steps[1][2])
                        with k.when(both(ix >= 0, ix < width)):
                            weight = under + ((ky * cells[1] + kx) * k.number(padded) + j)
                            v = taken(image + ((iy * width + ix) * channels + j), mask, weight)
                            k.assign(acc, S.min(acc, v) if erosion else S.max(acc, v))
                result = finished(acc.within(*span) if layer.is_quantised else acc)
                S.vstore(k.stored(result, y.dtype), target + (p * channels + j), mask)
    return k.kernel()

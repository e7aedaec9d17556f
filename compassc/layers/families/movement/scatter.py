"""Kernels that put updates at places of a tensor known only when the graph runs.

Without a reduction or a scale, data are copied and updates moved as they are. Otherwise a TEC works on tiles of the
output in LSRAM: the data in their wide form, all updates that fall into the tile in their order, and the last step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Value, both
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.element_copies import copied_whole, filled
from compassc.layers.emit import as_stored
from compassc.layers.families.movement.indexed import IndexedAxis, addressed, fill_value, indices_of, keeps_type
from compassc.layers.families.movement.reference import REDUCTIONS
from compassc.layers.families.pooling.reference import FLATTENED
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import halve
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.requantise import INT32_MAX, limited, requantise
from compassc.layers.vectors import LANES, clamp, load, multiply_wide, wide_kind

TILE = 2048
"""Elements of the output that are in LSRAM at once."""
Join = Callable[[Value, Expression], Expression]


class Updates:
    """The destinations of updates: `count` rows of `width` neighbours."""

    def __init__(self, k: LayerKernel, layer: Layer) -> None:
        self.k, self.shape = k, layer.inputs[0].shape
        self.index = indices_of(layer, layer.inputs[1])
        self.places = k.tensor(self.index)
        self.axis: IndexedAxis | None = None
        if layer.type == "ScatterND":
            many = self.index.shape[-1]
            self.width, self.count = math.prod(self.shape[many:]), math.prod(self.index.shape[:-1])
            self.repeated = self.count
        else:
            self.axis = IndexedAxis(layer.inputs[0], self.index, layer.axis("axis", 0))
            self.width, self.count, self.repeated = 1, self.index.count, self.axis.number
        if layer.inputs[2].count != self.count * self.width:
            shapes = [list(t.shape) for t in layer.inputs]
            raise LayerError(f"data, indices and updates of {shapes} do not go together")

    def place(self, r: Value) -> Value:
        """The element at which row `r` goes."""
        k, a = self.k, self.axis
        if a is None:
            place = k.held("place", S.i32(0))
            addressed(k, place, r, self.index, self.places, self.shape)
            return place
        n, cols, block = k.number(a.size), k.number(a.behind.size), k.number(a.behind.size * a.number)
        v = k.held("v", S.i32(self.places[r]))
        with k.when(v < 0):
            k.assign(v, v + n)
        row = k.pointer(a.before)[r / block] + k.pointer(a.behind)[r % cols]
        return k.held("place", row + clamp(v, 0, n - 1) * k.number(a.step))


@kernel("ScatterElements", "ScatterND")
def scatter(layer: Layer) -> Kernel:
    if len(layer.inputs) != 3 or layer.inputs[0].shape != layer.output.shape:
        raise LayerError(
            f"its inputs are {[list(t.shape) for t in layer.inputs]}, its output {list(layer.output.shape)}"
        )
    reduction, out = layer.word("reduction", "NONE", ("NONE", *REDUCTIONS)), layer.output
    k = LayerKernel()
    with k.active():
        if reduction == "NONE" and _is_plain(layer):
            _moved(k, layer)
        else:
            _tiled(k, layer, reduction, wide_kind(out))
    return k.kernel()


def _is_plain(layer: Layer) -> bool:
    """Whether elements come out as they go in."""
    x, _, updates = layer.inputs
    out = layer.output
    if not layer.is_quantised:
        return x.dtype == updates.dtype == out.dtype
    scale, shift = layer.scale_shift()
    zeros = {t.scalar_zero for t in (x, updates, out)}
    whole = (out.low, out.high) == (out.integer.low, out.integer.high)
    same = len({x.dtype, updates.dtype, out.dtype}) == 1 and len(zeros) == 1
    return bool(same and whole and (scale == 1).all() and not shift.any() and (out.integer.signed or min(zeros) >= 0))


def _moved(k: LayerKernel, layer: Layer) -> None:
    """Every TEC reads all updates and applies those to its own part, so that their order is kept."""
    x, _, updates = layer.inputs
    keeps_type(layer, x, updates)
    to, source, given = (k.raw(t) for t in (layer.output, x, updates))
    u = Updates(k, layer)
    width = k.number(u.width)
    copied_whole(k, x.count, source, to)
    S.barrier()
    with k.for_range(0, k.number(u.count), name="r") as r:
        place = u.place(r)
        with k.when(place / width % S.get_local_size() == S.get_local_id()), k.for_range(0, width, name="e") as e:
            to[place + e] = given[r * width + e]


def _tiled(k: LayerKernel, layer: Layer, reduction: str, kind: str) -> None:
    x, _, updates = layer.inputs
    out, u = layer.output, Updates(k, layer)
    if wide_kind(x) != kind or wide_kind(updates) != kind:
        raise LayerError(f"'{x.name}' is {x.dtype}, '{updates.name}' {updates.dtype}, the output {out.dtype}")
    how = _steps(k, layer, reduction, kind, u.repeated)
    data, given, target = (k.tensor(t) for t in (x, updates, out))

    def loaded(t: Tensor, place: Address, mask: Value) -> Value:
        lanes = load(place, mask, t.dtype, LANES)
        return k.let(lanes, low=t.low, high=t.high) if t.is_integer else k.let(lanes)

    width, total = k.number(u.width), k.number(out.count)
    tile = k.alloc(TILE, kind, "tile")
    with k.shared(total, "base", TILE) as base:
        now = k.held("now", S.min(total - base, TILE))
        with k.for_range(0, now, LANES, "i") as i:
            S.vstore(how.first(loaded(x, data + base + i, k.held("mask", tail(now - i)))), tile + i)
        with k.for_range(0, k.number(u.count), name="r") as r:
            place = u.place(r)
            past = S.min(place + width, base + now)
            with k.for_range(k.held("begin", S.max(place, base)), past, LANES, "e") as e:
                part = k.held("part", tail(past - e))
                new = loaded(updates, given + (r * width + e - place), part)
                old = k.held("old", S.vload(tile + (e - base), part, lanes=LANES))
                S.vstore(how.join(old, how.second(new, old)), tile + (e - base), part)
        with k.for_range(0, now, LANES, "i") as i:
            mask = k.held("mask", tail(now - i))
            done = how.last(k.held("done", S.vload(tile + i, lanes=LANES)))
            S.vstore(k.stored(done, out.dtype), target + base + i, mask)


JOINS: dict[str, Join] = {
    "NONE": lambda a, b: b,
    "ADD": lambda a, b: a + b,
    "MUL": lambda a, b: a * b,
    "MAX": lambda a, b: S.max(a, b),
    "MIN": lambda a, b: S.min(a, b),
}


def _of_numbers(join: Join) -> Join:
    """NaN is the result where one operand is NaN."""
    return lambda a, b: S.vsel(join(a, b), a + b, (a == a) & (b == b))  # noqa: PLR0124 (lanes)


def _not_negative(join: Join) -> Join:
    return lambda a, b: S.max(join(a, b), 0)


class Scattering(NamedTuple):
    """The steps on data, on an update (beside what is there), how both are combined, and the last step."""

    first: Callable[[Value], Value]
    second: Callable[[Value, Value], Value]
    join: Join
    last: Callable[[Value], Value]


def _steps(k: LayerKernel, layer: Layer, reduction: str, kind: str, repeated: int) -> Scattering:
    out = layer.output
    join = JOINS[reduction]
    if kind == "float32":
        join = _of_numbers(join) if reduction in ("MAX", "MIN") else join
        return Scattering(lambda v: v, lambda w, _: w, join, lambda done: as_stored(k, done, out))
    if reduction == "MUL":
        return _products(k, layer, repeated)
    x, _, updates = layer.inputs
    zeros, factors, own, shift = (0, 0), (1, 1), 1, 0
    limits = -(2**31), INT32_MAX
    if layer.is_quantised:
        scale, shifts = layer.scale_shift()
        if shifts.size != 1 or scale.size not in (1, 3):
            raise LayerError(f"'scale_value' has {scale.size} values and 'shift_value' {shifts.size}, expected 3 and 1")
        own, *rest = (int(m) for m in scale.reshape(-1))
        factors, shift, zeros = (
            (rest[0], rest[1]) if rest else (1, 1),
            int(shifts.reshape(-1)[0]),
            (x.scalar_zero, updates.scalar_zero),
        )
        bits = x.integer.bits + updates.integer.bits if layer.type == "ScatterElements" else 32
        limits = (-(1 << bits - 1), (1 << bits - 1) - 1) if out.integer.signed else (0, min((1 << bits) - 1, INT32_MAX))
    ends = [sorted(((t.low + z) * f, (t.high + z) * f)) for t, z, f in zip((x, updates), zeros, factors, strict=True)]
    largest = max(abs(e) for pair in ends for e in pair)
    many = repeated if reduction == "ADD" else 0
    if largest > INT32_MAX or largest * (1 + many) > INT32_MAX:
        raise LayerError(
            f"data and {repeated} updates of up to {largest} do not fit 32 bits, which no kernel here computes with"
        )
    if layer.type == "ScatterND" and layer.is_quantised and not out.integer.signed and reduction != "NONE":
        join = _not_negative(join)

    def brought(which: int, value: Value) -> Value:
        moved = k.shifted(value, zeros[which])
        if factors[which] != 1:
            moved = k.let(moved * k.number(factors[which]), low=ends[which][0], high=ends[which][1])
        # rows of ScatterND are limited after they were joined
        free = layer.type == "ScatterND" and (which == 0 or reduction != "NONE")
        if free or (limits[0] <= moved.low and moved.high <= limits[1]):
            return moved
        return limited(k, moved, *limits)

    def closing(done: Value) -> Value:
        bound = largest * (1 + many)
        value = done.within(-bound, bound)
        if not layer.is_quantised:
            return as_stored(k, value, out)
        if layer.type == "ScatterND" and out.integer.bits > 8:
            return _rounded_down(k, value, own, shift, out)
        return requantise(k, value, own, shift, out.scalar_zero, out.low, out.high)

    return Scattering(lambda v: brought(0, v), lambda w, _: brought(1, w), join, closing)


def _products(k: LayerKernel, layer: Layer, repeated: int) -> Scattering:
    """The steps of products of integers, which are brought to 16 bits after each update."""
    x, _, updates = layer.inputs
    out, signed = layer.output, layer.output.integer.signed
    if layer.type != "ScatterElements" or not layer.is_quantised:
        raise LayerError("'reduction' is MUL of integers: only the quantised form of ScatterElements has a kernel")
    scale, shift = (np.resize(v, 2) for v in layer.scale_shift(of=2))
    low, high = (-32768, 32767) if signed else (0, 65535)
    u = updates.low + updates.scalar_zero, updates.high + updates.scalar_zero
    factor, down, widest = int(scale[1]), int(shift[1]), max(map(abs, u))
    if u[0] < 0 and not signed:
        raise LayerError(
            f"'{updates.name}' has negative numbers, by which '{out.name}', which is unsigned, is not multiplied"
        )
    largest = high + 1
    for _ in range(repeated):
        if largest * widest > INT32_MAX or (high + 1) * factor > INT32_MAX or not 0 <= down <= 31:
            raise LayerError(
                f"products of up to {largest} and {widest} times {factor} over 2^{down} do not fit 32 bits"
            )
        largest = max(high + 1, largest * widest * factor // 2**down + factor * 2 ** max(0, 16 - down) + 2)

    def multiplied(value: Value, old: Value) -> Value:
        product = k.let(old * k.shifted(value, updates.scalar_zero))
        count = k.let(product & 0)
        halve(product, count, 15 if signed else 16)
        move = k.let(k.number(down) - count)
        scaled = k.let(product * k.number(factor))
        near = S.vsel(scaled >> S.max(move, 0), scaled << S.max(0 - move, 0), move >= 0)
        return k.let(near, low=-largest, high=largest)

    def begun(value: Value) -> Value:
        return requantise(k, k.shifted(value, x.scalar_zero), int(scale[0]), int(shift[0]), 0, low, high)

    return Scattering(begun, multiplied, JOINS["NONE"], lambda done: limited(k, done, out.low, out.high))


def _rounded_down(k: LayerKernel, value: Value, scale: int, shift: int, out: Tensor) -> Value:
    """((value * scale) >> shift) - zero, within the output's limits."""
    scale, shift = scale << max(-shift, 0), max(shift, 0)
    if scale >> 16 or value.magnitude * scale >= 1 << 46:
        raise LayerError(f"values of up to {value.magnitude} times {scale} are beyond what kernels compute")
    if value.magnitude * scale <= INT32_MAX:
        found = (value * k.number(scale)) >> k.number(min(shift, 31))
    else:
        high, low = k.let(value >> 16), k.let(value & 65535)
        multiply_wide(high, low, k.number(scale))
        if shift >= 16:
            found = high >> k.number(min(shift - 16, 31))
        else:
            # results beyond every limit need not be distinguished
            bound = 1 << (14 + shift)
            found = (clamp(high, -bound, bound - 1) << k.number(16 - shift)) | (low >> k.number(shift))
    return limited(k, k.let(k.let(found) - k.number(out.scalar_zero)), out.low, out.high)


def unpooling(layer: Layer) -> Kernel:
    """Every TEC reads all values in order and stores those of its own part, so that their order is kept."""
    values, index, y = *layer.inputs[:2], layer.output
    if len(layer.inputs) != 2 or values.shape != index.shape or len(values.shape) != 4 or len(y.shape) != 4:
        raise LayerError(f"its inputs are {[list(t.shape) for t in layer.inputs]}, expected values and indices, NHWC")
    if values.dtype != y.dtype or index.dtype not in ("int32", "int16", "uint16", "int8", "uint8"):
        raise LayerError(f"'{values.name}' is {values.dtype}, the output {y.dtype}, the indices {index.dtype}")
    if (values.shape[0], values.shape[3]) != (y.shape[0], y.shape[3]):
        raise LayerError(
            f"values of {list(values.shape)} have other images or channels than the output {list(y.shape)}"
        )
    form = layer.word("flatten_dim", "HW" if layer.type == "MaxUnpool" else "HWC", FLATTENED)
    k, (n, h, w, c) = LayerKernel(), values.shape
    planes, zero = form in ("HW", "NCHW"), -y.scalar_zero if layer.is_quantised else 0
    with k.active():
        whole, image = k.number(y.count), k.number(y.count // n if n else 0)
        size, channels, area = k.number(h * w), k.number(c), k.number(y.shape[1] * y.shape[2])
        target, source, indices = k.raw(y), k.raw(values), k.tensor(index)
        filled(k, y, target, fill_value(zero, y))
        S.barrier()
        with k.for_range(0, k.number(values.count), name="r") as r:
            b = k.held("b", r / (size * channels))
            channel = k.held("channel", r / size % channels if planes else r % channels)
            at = k.held("at", (b * size + r % size) * channels + channel if planes else r)
            offset = {"HW": b * image + channel * area, "HWC": b * image}.get(form)
            g = k.held("g", S.i32(indices[at]) + (0 if offset is None else offset))
            with k.when(g < 0):
                k.assign(g, g + whole)
            # in planes the index counts by channels first, the output does not
            moved = (g / (area * channels) * area + g % area) * channels + g / area % channels
            own = both(both(g >= 0, g < whole), g % S.get_local_size() == S.get_local_id())
            with k.when(own):
                target[moved if planes else g] = source[at]
    return k.kernel()

"""Kernels of softmax and its relatives: the maximum, the sum of exponentials, then every element's share of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import exp2_table, log2_table
from compassc.layers.axes import AxisLoop, ending
from compassc.layers.axis_sums import goes_in_rows, largest_of_elements
from compassc.layers.byte_functions import BYTES
from compassc.layers.families.reduce.search import find_extreme
from compassc.layers.families.softmax.reference import ceil_log2, exponent_factor, float_factor
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel, scheduled
from compassc.layers.lane_arithmetic import (
    across_sum,
    across_sum_exactly,
    across_sum_limited,
    add_exactly,
    add_limited,
    exp2_coarse,
    exp2_fixed,
    float24,
    log2_coarse,
    log2_fixed,
    logarithm_of,
    look_up_float,
    look_up_wide,
)
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import limited, requantise
from compassc.layers.vectors import LANES, WIDE, clamp, entry_of, everywhere, halves, places_of_bytes, word_of

Tail = Sequence[Layer]

SUMS = 0x80010000
"""What sums of powers are at most, which is above the largest that counts, 2^31 - 1."""


class Largest(NamedTuple):
    """The largest element of a position in all lanes, and of bytes as a scalar."""

    lanes: Value
    scalar: Value | None


class Softmax:
    """A kernel in the making: the walk over the positions of a layer, with room for a value of every element."""

    def __init__(self, layer: Layer, tail: Tail, scratch: str) -> None:
        self.layer, self.tail, self.k = layer, tail, LayerKernel()
        with self.k.active():
            operands = {"x": layer.input, "y": ending(layer, tail)}
            axis = layer.axis("axis", -1)
            self.w = AxisLoop(self.k, [axis], operands, ("x", "y"), ("y",), {"kept": scratch})

    @contextmanager
    def positions(self) -> Iterator[Largest]:
        """Statements for every position."""
        with self.k.active(), self.w.positions():
            yield self._largest()

    def _largest(self) -> Largest:
        k, w, x = self.k, self.w, self.layer.input
        if _in_bytes(self.layer, w):
            lowest = everywhere(x.low, x.dtype)
            most = k.changing("most", lowest)
            with w.each():
                held = w.raw("x")
                k.assign(most, S.max(most, S.vsel(held, lowest, k.mask) if w.partial else held))
            scalar = k.held("largest", S.i32(S.vrpmax(most)[0]))
            return Largest(k.held("best", S.vbcast(scalar, lanes=LANES)), scalar)
        return Largest(largest_of_elements(w, x), None)

    def settle(self, value: Value) -> None:
        self.w.settle(self.layer, self.tail, value)

    def difference(self, best: Largest) -> Value:
        """An integer less the largest one."""
        x = self.layer.input
        return self.k.let(self.w.load("x") - best.lanes, low=x.low - x.high, high=0)

    def kept(self, make: Callable[[], Value]) -> Value:
        """The value of an element that was stored before; what is made again, where there is no room for all."""
        return self.w.load("kept") if self.w.scratch else make()

    def keep(self, value: Value) -> None:
        if self.w.scratch:
            self.w.store("kept", value)


def _in_bytes(layer: Layer, w: AxisLoop) -> bool:
    """Whether lanes that are joined are bytes that lie behind each other; then `largest` is the largest as a scalar."""
    return layer.input.dtype in BYTES and w.across and w.lane.steps[0] == 1


SHORT = 12
"""Elements of rows below which the kernel by hand, which takes several at once, has fewer cycles (by 12 to 120 %)."""


def _long_rows(layer: Layer) -> bool:
    """Where the schedule has 9 to 67 % fewer."""
    axis, shape = layer.axis("axis", -1), layer.input.shape
    return shape[axis] >= SHORT and goes_in_rows(shape, [axis])


scheduled("Softmax", when=_long_rows)


@kernel("Softmax", "LogSoftmax", tail=True)
def softmax(layer: Layer, tail: Tail = ()) -> Kernel:
    log = layer.type == "LogSoftmax"
    if layer.is_quantised:
        return _quantised_log(layer, tail) if log else _quantised(layer, tail)
    if not log and layer.flag("is_perf_mode", False) and "lut" in layer.constants:
        return _approximated(layer, tail)
    s = Softmax(layer, tail, "float32")
    k, w = s.k, s.w
    with s.positions() as best:
        total = w.start("total", 0.0, "float32")
        with w.each():
            e = k.let(S.exp(w.load("x") - best.lanes))
            k.assign(total, total + w.active(e, 0.0, "float32"))
            if not log:
                s.keep(e)
        w.join(total, across_sum)
        if log:
            k.assign(total, S.log(total))
        with w.each():
            if log:
                s.settle(k.let(w.load("x") - best.lanes - total))
            elif w.scratch:
                s.settle(k.let(w.load("kept") / total))
            else:
                s.settle(k.let(S.exp(w.load("x") - best.lanes) / total))
    return k.kernel()


def _approximated(layer: Layer, tail: Tail) -> Kernel:
    """Exponentials by a table of powers of two, in float24 and half floats."""
    table = layer.constant("lut").reshape(-1).astype(np.float32)
    if table.size != 513:
        raise LayerError(f"'lut' has {table.size} entries, expected the 513 of powers of two")
    s = Softmax(layer, tail, "float32")
    k, w, entries = s.k, s.w, s.k.table(table)
    with s.positions() as best:
        total = w.start("total", 0.0, "float32")

        def powers() -> Value:
            t = k.let((w.load("x") - best.lanes) * 1.442695)
            exp2_coarse(t, entries, k.mask)
            return t

        with w.each():
            t = powers()
            s.keep(t)
            k.assign(total, total + w.active(t, 0.0, "float32"))
        w.join(total, across_sum)
        reciprocal = k.held("reciprocal", float24(1.0 / total))
        with w.each():
            half = k.held("half", S.cast(S.cast(s.kept(powers), "float16"), "float32"))
            s.settle(k.let(half * reciprocal))
    return k.kernel()


def _quantised(layer: Layer, tail: Tail) -> Kernel:
    if layer.word("quantize_method", "LUT", ("LUT", "FAST_EXP")) == "FAST_EXP":
        return _fast_exp(layer, tail)
    if "float_lut" in layer.constants and layer.flag("is_perf_mode", True):
        return _by_floats(layer, tail)
    return _by_table(layer, tail)


def _fast_exp(layer: Layer, tail: Tail) -> Kernel:
    """Powers of two in fixed point; coarse ones are a shift."""
    q, fine, out = layer.integer("pow2_out_q"), layer.integer("adjust_q", 1), layer.output
    bits, coarse = out.integer.bits, fine < 2
    if fine not in (0, 1) and not 8 <= fine <= 15:
        raise LayerError(f"'adjust_q' is {fine}, expected 0, 1 or 8 to 15")
    s = Softmax(layer, tail, "int32")
    k, w = s.k, s.w
    if not 0 <= q <= 30 and not (w.count == 1 and q == 31):
        raise LayerError(f"'pow2_out_q' is {q}, which leaves no room for sums of {w.count}")
    powers, logs = (None, None) if coarse else (k.table(t().astype(np.uint16)) for t in (exp2_table, log2_table))
    f, down_q, whole = k.number(fine), k.number(15 - q), k.number(q)
    with s.positions() as best:
        total = w.start("total", 0, "uint32")
        with w.each():
            e = _exponent(s, best, 0 if coarse else fine)
            s.keep(e)
            if powers is None:
                power = _power_of_two(k, e + whole)
            else:
                power = k.let(e + 0)
                exp2_fixed(power, powers, f, down_q, k.mask)
            _add(w, total, power)
        if w.across:
            across_sum_limited(total, S.u32(SUMS))
        log = k.changing("log", S.cast(S.max(S.min(total, S.u32(0x7FFFFFFF)), S.u32(1)), "int32"))
        if logs is None:
            log2_coarse(log, whole, f)
        else:
            log2_fixed(log, logs, whole, f, k.mask)
        with w.each():
            e = s.kept(lambda: _exponent(s, best, 0 if coarse else fine))
            if powers is None:
                share = _power_of_two(k, ((((e + k.number(bits)) << f) - log) >> f) + 0, bits)
            else:
                share = k.let(e - log)
                exp2_fixed(share, powers, f, k.number(15 - bits), k.mask)
            s.settle(limited(k, share, out.low, out.high))
    return k.kernel()


def _add(w: AxisLoop, total: Value, value: Value) -> None:
    """Adds what is not negative to a sum that is limited."""
    add_limited(total, w.active(w.k.held("part", S.cast(value, "uint32")), 0, "uint32"), S.u32(SUMS))


def _power_of_two(k: LayerKernel, exponent: Expression, most: int = 31) -> Value:
    """2^exponent where that is at least 1, else 0; exponents above `most` count as it."""
    power = k.held("power", S.min(exponent, most))
    return k.let(S.vsel(S.vbcast(S.i32(1), lanes=LANES) << S.max(power, 0), 0, power >= 0))


def _exponent(s: Softmax, best: Largest, fraction: int) -> Value:
    """The difference from the maximum as an exponent of two, rounded down."""
    scale, shift = exponent_factor(s.layer)
    difference = s.difference(best)
    down = shift - fraction
    if difference.magnitude * scale << max(0, -down) >= 2**31:
        raise LayerError(f"'input_scale_value' {scale} with the shift {shift} leads to exponents beyond 32 bits")
    product = difference * s.k.number(scale << max(0, -down))
    return s.k.let(product >> s.k.number(min(max(down, 0), 31)))


def _by_table(layer: Layer, tail: Tail) -> Kernel:
    out, table = layer.output, layer.constant("lut").reshape(-1)
    scale, shift = (int(v) for v in layer.scale_shift(of=1))
    largest, bits = int(table.max()), layer.input.integer.bits
    if largest > 1 << 30 or int(table.min()) < 0:
        raise LayerError(f"'lut' has entries from {table.min()} to {largest}, expected 0 to 2^30")
    s = Softmax(layer, tail, "int32")
    k, w, entries = s.k, s.w, s.k.table(table)
    base = 30 if largest == 1 else 31
    rounded = w.count < 8 and (layer.input.count // w.count) % 128 == 0 and bits <= 8
    extra = base - ceil_log2(largest if rounded else scale)
    with s.positions() as best:
        total = w.start("total", 0, "uint32")
        with w.each():
            t = _entry(s, best, entries, table)
            s.keep(t)
            _add(w, total, t)
        if w.across:
            across_sum_limited(total, S.u32(SUMS))
        k.assign(total, S.max(total, S.u32(1)))
        if not rounded:
            reciprocal = k.held("reciprocal", S.vdiv(S.vbcast(_unsigned(k, scale << extra), lanes=LANES), total))
        with w.each():
            t = s.kept(lambda: _entry(s, best, entries, table))
            if rounded:
                words = (S.cast(t, "uint32") << S.u32(k.number(extra))) + (total >> S.u32(1))
                share = k.let(S.cast(S.vdiv(words, total), "int32"), low=0, high=(1 << extra) + 1)
                y = requantise(k, share, scale, shift + extra, out.scalar_zero, out.low, out.high)
            else:
                y = _share(k, layer, k.held("share", S.cast(t, "uint32") * reciprocal), scale << extra, shift + extra)
            s.settle(y)
    return k.kernel()


def _unsigned(k: LayerKernel, number: int) -> Expression:
    """A scalar below 2^32 as uint32."""
    return S.cast(k.number(number - (1 << 32) if number >> 31 else number), "uint32")


def _entry(s: Softmax, best: Largest, entries: Pointer, table: Array) -> Value:
    """The exponential of an element."""
    k, bits = s.k, s.layer.input.integer.bits
    index = k.shifted(s.difference(best), (1 << bits) - 1)
    extra = bits - (table.size.bit_length() - 1)
    if table.size != 1 << (table.size.bit_length() - 1):
        raise LayerError(f"'lut' has {table.size} entries, which is no power of two")
    if extra <= 0:
        return k.let(entry_of(entries, index, k.mask))
    look_up_wide(index, entries, k.number(extra), k.number(table.size - 1), k.mask)
    return index


def _share(k: LayerKernel, layer: Layer, share: Value, most: int, shift: int) -> Value:
    """A product of at most 2^31 over 2^shift, in the output's range."""
    out = layer.output
    if most == 1 << 31:
        # one bit too many: it is halved, and what falls off only counts for rounding
        if shift < 3:
            raise LayerError(f"'shift_value' leads to a shift by {shift}, expected at least 3")
        share = k.held("share", (share >> S.u32(1)) | (share & S.u32(1)))
        most, shift = 1 << 30, shift - 1
    value = k.let(S.cast(share, "int32"), low=0, high=most)
    return requantise(k, value, 1, shift, out.scalar_zero, out.low, out.high)


def _by_floats(layer: Layer, tail: Tail) -> Kernel:
    s = Softmax(layer, tail, "float32")
    k, w = s.k, s.w
    entries = k.table(layer.constant("float_lut").reshape(-1).astype(np.float32))
    factor = k.number(float(float_factor(layer)))
    scale = k.number(float(np.float32(layer.output.scalar_scale)))
    with s.positions() as best:
        total, rest = w.start("total", 0.0, "float32"), w.start("rounded", 0.0, "float32")

        def powers() -> Value:
            apart = k.held("apart", S.cast(best.lanes - w.load("x"), "float32"))
            t = k.let(float24(apart * factor))
            exp2_coarse(t, entries, k.mask)
            return t

        with w.each():
            t = powers()
            s.keep(t)
            add_exactly(total, rest, w.active(t, 0.0, "float32"))
        _join_exactly(w, total, rest)
        reciprocal = k.held("reciprocal", float24(1.0 / float24(total)))
        with w.each():
            half = k.held("half", S.cast(S.cast(s.kept(powers), "float16"), "float32"))
            _settle_float(s, k.held("share", S.rint(half * scale * reciprocal)))
    return k.kernel()


def _join_exactly(w: AxisLoop, total: Value, rest: Value) -> None:
    if w.across:
        across_sum_exactly(total, rest)
    else:
        w.k.assign(total, total + rest)


def _settle_float(s: Softmax, value: Value) -> None:
    """A whole number in float32 less the zero point, limited to the output's range."""
    k, out = s.k, s.layer.output
    whole = k.held("whole", S.cast(clamp(value, -1073741824.0, 1073741824.0), "int32") - k.number(out.scalar_zero))
    s.settle(limited(k, whole, out.low, out.high))


def _quantised_log(layer: Layer, tail: Tail) -> Kernel:
    bits = layer.input.integer.bits
    table = layer.constant("lut_exp").reshape(-1)
    if table.dtype.kind != "f":
        raise LayerError("'lut_exp' holds integers, which only targets before X2 use")
    own, log = layer.numbers("quantize_scale")
    s, out = Softmax(layer, tail, "float32"), layer.output
    k, w = s.k, s.w
    entries, items = k.table(table.astype(np.float32)), table.size.bit_length() - 1
    with s.positions() as best:
        total, rest = w.start("total", 0.0, "float32"), w.start("rounded", 0.0, "float32")
        small = best.scalar if bits <= items else None
        with w.each():
            if small is not None:
                at = k.let(places_of_bytes(w.raw("x"), small))
                t = k.let(S.vload_gather(entries, at, k.mask))
            else:
                t = _float_entry(k, k.shifted(s.difference(best), (1 << bits) - 1), entries, bits, items)
            add_exactly(total, rest, w.active(t, 0.0, "float32"))
        _join_exactly(w, total, rest)
        k.assign(total, (logarithm_of(total) if w.across else S.log(total)) * k.number(log))
        own_scale, bound = k.number(own), _largest_log(layer, w, table, own, log)
        with w.each():
            if small is not None and bound < 1 << 15 and out.integer.bits == 8:
                half = k.let(halves(w.raw("x"), 0 - small))
                word = k.let(word_of(S.cast(S.cast(half, "int32"), "float32") * own_scale - total))
                whole = k.let(word - 0x4B400000, low=-bound, high=bound)
                k.rounded_from[whole.name] = word
                s.settle(requantise(k, whole, 1, 0, out.scalar_zero, out.low, out.high))
            else:
                apart = S.cast(s.difference(best), "float32")
                _settle_float(s, k.held("result", S.rint(apart * own_scale - total)))
    return k.kernel()


def _float_entry(k: LayerKernel, index: Value, entries: Pointer, bits: int, items: int) -> Value:
    """The float32 entry at an index of `bits` bits of a table of 2^items."""
    if bits <= items:
        return k.let(S.vload_gather(entries, S.cast(index, "int16"), k.mask))
    extra = bits - items
    numbers = (k.number(extra), k.number((1 << items) - 1), k.number(0.5**extra))
    return k.let(look_up_float(index, entries, *numbers, k.mask))


def _largest_log(layer: Layer, w: AxisLoop, table: Array, own: float, log: float) -> int:
    """More than the magnitude of any result before it is rounded; a sum has the table's last entry, that of the maximum."""
    if not np.isfinite(table).all() or table.min() < 0 or table[-1] <= 0:
        return 1 << 31
    logs = np.log([float(table[-1]), w.count * float(table.max())])
    span = (layer.input.high - layer.input.low) * abs(own) + float(np.abs(logs).max()) * abs(log)
    return int(min(span, 1 << 30)) + 2


@kernel("Hardmax")
def hardmax(layer: Layer) -> Kernel:
    k, kind = LayerKernel(), WIDE[layer.output.dtype]
    with k.active():
        w = AxisLoop(k, [layer.axis("axis")], {"x": layer.input, "y": layer.output}, ("x", "y"), ("y",))
        with w.positions():
            found = find_extreme(w, layer.input.dtype, False, False)
            with w.each() as index:
                hit = k.held("hit", S.vsel(w.filled(1, "int32"), 0, found.origin + index == found.place))
                w.store("y", hit if kind == "int32" else k.let(S.cast(hit, kind)))
    return k.kernel()

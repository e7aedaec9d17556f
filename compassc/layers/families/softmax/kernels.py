"""Kernels of softmax and its relatives: the maximum, the sum of exponentials, then every element's share of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.build import Pointer, Value
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import Array, exp2_table, log2_table
from compassc.layers.axes import AxisLoop, ending
from compassc.layers.byte_functions import BYTES
from compassc.layers.emit import requantise
from compassc.layers.families.reduce.search import find_extreme
from compassc.layers.families.softmax.reference import ceil_log2, exponent_factor, float_factor
from compassc.layers.kernels import kernel
from compassc.layers.source import LANES, Kernel, KernelSource
from compassc.layers.vectors import WIDE

INFINITE = '"-inf"'


Tail = Sequence[Layer]


def _walk(k: KernelSource, layer: Layer, tail: Tail, scratch: str) -> AxisLoop:
    operands = {"x": layer.input, "y": ending(layer, tail)}
    return AxisLoop(k, [layer.axis("axis", -1)], operands, ("x", "y"), ("y",), {"kept": scratch})


def _largest(k: KernelSource, layer: Layer, w: AxisLoop) -> None:
    """`best`: the largest element."""
    kind, x = WIDE[layer.input.dtype], layer.input
    if _in_bytes(layer, w):
        lowest = f'S.vbcast(S.cast({x.low}, "{x.dtype}"), lanes={LANES})'
        k.do(f"most = {lowest}")
        with w.each():
            held = w.raw("x")
            k.do(f"most = S.max(most, {f'S.vsel({held}, {lowest}, mask)' if w.partial else held})")
        k.do("largest = S.i32(S.vrpmax(most)[0])")
        k.do(f"best = S.vbcast(largest, lanes={LANES})")
        return
    lowest = INFINITE if kind == "float32" else str(x.low)
    w.start("best", lowest, kind)
    with w.each():
        v = w.load("x")
        k.do(f"best = S.max(best, {w.active(v.name, lowest, kind)})")
    w.join("best", "across_max")


def _in_bytes(layer: Layer, w: AxisLoop) -> bool:
    """Whether lanes that are joined are bytes that lie behind each other; then `largest` is the largest as a scalar."""
    return layer.input.dtype in BYTES and w.across and w.lane.steps[0] == 1


@kernel("Softmax", "LogSoftmax", tail=True)
def softmax(layer: Layer, tail: Tail = ()) -> Kernel:
    log = layer.type == "LogSoftmax"
    if layer.is_quantised:
        return _quantised_log(layer, tail) if log else _quantised(layer, tail)
    if not log and layer.flag("is_perf_mode", False) and "lut" in layer.constants:
        return _approximated(layer, tail)
    k = KernelSource()
    w = _walk(k, layer, tail, "float32")
    _largest(k, layer, w)
    w.start("total", "0.0", "float32")
    with w.each():
        v = w.load("x")
        e = k.let(f"S.exp({v.name} - best)", "float32")
        k.do(f"total = total + {w.active(e.name, '0.0', 'float32')}")
        if w.scratch and not log:
            w.store("kept", e.name)
    w.join("total", "across_sum")
    if log:
        k.do("total = S.log(total)")
    with w.each():
        if log:
            y = k.let(f"{w.load('x').name} - best - total", "float32")
        elif w.scratch:
            y = k.let(f"{w.load('kept').name} / total", "float32")
        else:
            y = k.let(f"S.exp({w.load('x').name} - best) / total", "float32")
        w.settle(layer, tail, y)
    return w.kernel()


def _approximated(layer: Layer, tail: Tail) -> Kernel:
    """Exponentials by a table of powers of two, in float24 and half floats."""
    k, table = KernelSource(), layer.constant("lut").reshape(-1).astype(np.float32)
    if table.size != 513:
        raise LayerError(f"'lut' has {table.size} entries, expected the 513 of powers of two")
    w = _walk(k, layer, tail, "float32")
    entries = k.table(table)
    _largest(k, layer, w)
    w.start("total", "0.0", "float32")

    def powers() -> str:
        t = k.let(f"({w.load('x').name} - best) * 1.442695", "float32")
        k.do(f"exp2_coarse({t.name}, {entries}, mask)")
        return t.name

    with w.each():
        t = powers()
        if w.scratch:
            w.store("kept", t)
        k.do(f"total = total + {w.active(t, '0.0', 'float32')}")
    w.join("total", "across_sum")
    k.do("reciprocal = float24(1.0 / total)")
    with w.each():
        t = w.load("kept").name if w.scratch else powers()
        k.do(f'half = S.cast(S.cast({t}, "float16"), "float32")')
        w.settle(layer, tail, k.let("half * reciprocal", "float32"))
    return w.kernel()


def _quantised(layer: Layer, tail: Tail) -> Kernel:
    if layer.word("quantize_method", "LUT", ("LUT", "FAST_EXP")) == "FAST_EXP":
        return _fast_exp(layer, tail)
    if "float_lut" in layer.constants and layer.flag("is_perf_mode", True):
        return _by_floats(layer, tail)
    return _by_table(layer, tail)


def _difference(k: KernelSource, layer: Layer, w: AxisLoop) -> Value:
    x = layer.input
    return k.let(f"{w.load('x').name} - best", "int32", x.low - x.high, 0)


def _summed(k: KernelSource, w: AxisLoop, name: str) -> None:
    k.do(f'part = S.cast({name}, "uint32")')
    k.do(f"add_limited(total, {w.active('part', '0', 'uint32')})")


def _fast_exp(layer: Layer, tail: Tail) -> Kernel:
    """Powers of two in fixed point; coarse ones are a shift."""
    q, fine, out = layer.integer("pow2_out_q"), layer.integer("adjust_q", 1), layer.output
    bits = out.integer.bits
    if fine not in (0, 1) and not 8 <= fine <= 15:
        raise LayerError(f"'adjust_q' is {fine}, expected 0, 1 or 8 to 15")
    k = KernelSource()
    w = _walk(k, layer, tail, "int32")
    if not 0 <= q <= 30 and not (w.count == 1 and q == 31):
        raise LayerError(f"'pow2_out_q' is {q}, which leaves no room for sums of {w.count}")
    coarse = fine < 2
    powers, logs = (
        ("", "") if coarse else (k.table(exp2_table().astype(np.uint16)), k.table(log2_table().astype("uint16")))
    )
    f, down_q = k.scalar(fine), k.scalar(15 - q)
    _largest(k, layer, w)
    w.start("total", "0", "uint32")
    with w.each():
        e = _exponent(k, layer, w, 0 if coarse else fine)
        if w.scratch:
            w.store("kept", e.name)
        if coarse:
            _power_of_two(k, e.name, k.scalar(q))
        else:
            k.do(f"t = {e.name} + 0")
            k.do(f"exp2_fixed(t, {powers}, {f}, {down_q}, mask)")
        _summed(k, w, "t")
    if w.across:
        k.do("across_sum_limited(total)")
    k.do('log = S.cast(S.max(S.min(total, S.u32(0x7FFFFFFF)), S.u32(1)), "int32")')
    k.do(f"log2_coarse(log, {k.scalar(q)}, {f})" if coarse else f"log2_fixed(log, {logs}, {k.scalar(q)}, {f}, mask)")
    with w.each():
        e = w.load("kept") if w.scratch else _exponent(k, layer, w, 0 if coarse else fine)
        if coarse:
            k.do(f"v = (({e.name} + {k.scalar(bits)}) << {f}) - log")
            _power_of_two(k, f"(v >> {f})", "0", bits)
        else:
            k.do(f"t = {e.name} - log")
            k.do(f"exp2_fixed(t, {powers}, {f}, {k.scalar(15 - bits)}, mask)")
        w.settle(layer, tail, _limited(k, layer, "t"))
    return w.kernel()


def _power_of_two(k: KernelSource, exponent: str, moved: str, most: int = 31) -> None:
    """`t`: 2^(exponent + moved) where that is at least 1, else 0; exponents above `most` count as it."""
    k.do(f"power = S.min({exponent} + {moved}, {most})")
    k.do(f"t = S.vsel(S.vbcast(S.i32(1), lanes={LANES}) << S.max(power, 0), 0, power >= 0)")


def _exponent(k: KernelSource, layer: Layer, w: AxisLoop, fraction: int) -> Value:
    """The difference from the maximum as an exponent of two, rounded down."""
    scale, shift = exponent_factor(layer)
    difference = _difference(k, layer, w)
    down = shift - fraction
    if difference.magnitude * scale << max(0, -down) >= 2**31:
        raise LayerError(f"'input_scale_value' {scale} with the shift {shift} leads to exponents beyond 32 bits")
    product = f"{difference.name} * {k.scalar(scale << max(0, -down))}"
    return k.let(f"({product}) >> {k.scalar(min(max(down, 0), 31))}", "int32")


def _by_table(layer: Layer, tail: Tail) -> Kernel:
    out, table = layer.output, layer.constant("lut").reshape(-1)
    scale, shift = (int(v) for v in layer.scale_shift(of=1))
    largest, bits = int(table.max()), layer.input.integer.bits
    if largest > 1 << 30 or int(table.min()) < 0:
        raise LayerError(f"'lut' has entries from {table.min()} to {largest}, expected 0 to 2^30")
    k = KernelSource()
    w = _walk(k, layer, tail, "int32")
    entries = k.table(table)
    _largest(k, layer, w)
    w.start("total", "0", "uint32")
    with w.each():
        t = _entry(k, layer, w, entries, table)
        if w.scratch:
            w.store("kept", t)
        _summed(k, w, t)
    if w.across:
        k.do("across_sum_limited(total)")
    k.do("total = S.max(total, S.u32(1))")
    base = 30 if largest == 1 else 31
    rounded = w.count < 8 and (layer.input.count // w.count) % 128 == 0 and bits <= 8
    extra = base - ceil_log2(largest if rounded else scale)
    if not rounded:
        k.do(f"reciprocal = S.vdiv({w.filled(_unsigned(k, scale << extra), 'uint32')}, total)")
    with w.each():
        t = w.load("kept").name if w.scratch else _entry(k, layer, w, entries, table)
        if rounded:
            k.do(f'share = S.vdiv((S.cast({t}, "uint32") << S.u32({k.scalar(extra)})) + (total >> S.u32(1)), total)')
            share = k.let('S.cast(share, "int32")', "int32", 0, (1 << extra) + 1)
            y = requantise(k, share, scale, shift + extra, out.scalar_zero, out.low, out.high)
        else:
            k.do(f'share = S.cast({t}, "uint32") * reciprocal')
            y = _share(k, layer, scale << extra, shift + extra)
        w.settle(layer, tail, y)
    return w.kernel()


def _unsigned(k: KernelSource, number: int) -> str:
    """A scalar below 2^32 as uint32."""
    return f'S.cast({k.scalar(number - (1 << 32) if number >> 31 else number)}, "uint32")'


def _entry(k: KernelSource, layer: Layer, w: AxisLoop, entries: Pointer, table: Array) -> str:
    """The exponential of an element."""
    bits = layer.input.integer.bits
    index = k.shifted(_difference(k, layer, w), (1 << bits) - 1)
    extra = bits - (table.size.bit_length() - 1)
    if table.size != 1 << (table.size.bit_length() - 1):
        raise LayerError(f"'lut' has {table.size} entries, which is no power of two")
    if extra <= 0:
        return k.let(f"entry_of({entries}, {index.name}, mask)").name
    k.do(f"look_up_wide({index.name}, {entries}, {k.scalar(extra)}, {k.scalar(table.size - 1)}, mask)")
    return index.name


def _share(k: KernelSource, layer: Layer, most: int, shift: int) -> Value:
    """The product `share`, at most 2^31, over 2^shift, in the output's range."""
    out = layer.output
    if most == 1 << 31:
        # one bit too many: it is halved, and what falls off only counts for rounding
        if shift < 3:
            raise LayerError(f"'shift_value' leads to a shift by {shift}, expected at least 3")
        k.do("share = (share >> S.u32(1)) | (share & S.u32(1))")
        most, shift = 1 << 30, shift - 1
    value = k.let('S.cast(share, "int32")', "int32", 0, most)
    return requantise(k, value, 1, shift, out.scalar_zero, out.low, out.high)


def _by_floats(layer: Layer, tail: Tail) -> Kernel:
    out = layer.output
    k = KernelSource()
    w = _walk(k, layer, tail, "float32")
    entries = k.table(layer.constant("float_lut").reshape(-1).astype(np.float32))
    factor = k.scalar(float(float_factor(layer)))
    scale = k.scalar(float(np.float32(out.scalar_scale)))
    _largest(k, layer, w)
    w.start("total", "0.0", "float32")
    w.start("rounded", "0.0", "float32")

    def powers() -> str:
        k.do(f'apart = S.cast(best - {w.load("x").name}, "float32")')
        t = k.let(f"float24(apart * {factor})", "float32")
        k.do(f"exp2_coarse({t.name}, {entries}, mask)")
        return t.name

    with w.each():
        t = powers()
        if w.scratch:
            w.store("kept", t)
        k.do(f"add_exactly(total, rounded, {w.active(t, '0.0', 'float32')})")
    _joined_exactly(k, w)
    k.do("reciprocal = float24(1.0 / float24(total))")
    with w.each():
        t = w.load("kept").name if w.scratch else powers()
        k.do(f'half = S.cast(S.cast({t}, "float16"), "float32")')
        k.do(f"share = S.rint(half * {scale} * reciprocal)")
        _stored_float(k, layer, tail, w, "share")
    return w.kernel()


def _joined_exactly(k: KernelSource, w: AxisLoop) -> None:
    k.do("across_sum_exactly(total, rounded)" if w.across else "total = total + rounded")


def _limited(k: KernelSource, layer: Layer, name: str) -> Value:
    """An integer limited to the output's range."""
    out = layer.output
    return k.let(f"clamp({name}, {k.scalar(out.low)}, {k.scalar(out.high)})", "int32", out.low, out.high)


def _stored_float(k: KernelSource, layer: Layer, tail: Tail, w: AxisLoop, name: str) -> None:
    """A whole number in float32 less the zero point, limited to the output's range."""
    zero = k.scalar(layer.output.scalar_zero)
    k.do(f'whole = S.cast(clamp({name}, -1073741824.0, 1073741824.0), "int32") - {zero}')
    w.settle(layer, tail, _limited(k, layer, "whole"))


def _quantised_log(layer: Layer, tail: Tail) -> Kernel:
    bits = layer.input.integer.bits
    table = layer.constant("lut_exp").reshape(-1)
    if table.dtype.kind != "f":
        raise LayerError("'lut_exp' holds integers, which only targets before X2 use")
    own, log = layer.numbers("quantize_scale")
    k = KernelSource()
    w = _walk(k, layer, tail, "float32")
    entries, items = k.table(table.astype(np.float32)), table.size.bit_length() - 1
    _largest(k, layer, w)
    w.start("total", "0.0", "float32")
    w.start("rounded", "0.0", "float32")
    small = _in_bytes(layer, w) and bits <= items
    with w.each():
        if small:
            at = k.let(f"places_of_bytes({w.raw('x')}, largest)").name
            t = k.let(f"S.vload_gather({entries}, {at}, mask)", "float32")
        else:
            t = _float_entry(k, k.shifted(_difference(k, layer, w), (1 << bits) - 1), entries, bits, items)
        k.do(f"add_exactly(total, rounded, {w.active(t.name, '0.0', 'float32')})")
    _joined_exactly(k, w)
    k.do(f"total = {'logarithm_of' if w.across else 'S.log'}(total) * {k.scalar(log)}")
    own_scale, bound = k.scalar(own), _largest_log(layer, w, table, own, log)
    with w.each():
        if small and bound < 1 << 15 and layer.output.integer.bits == 8:
            apart = k.let(f"halves({w.raw('x')}, 0 - largest)").name
            word = k.let(f'word_of(S.cast(S.cast({apart}, "int32"), "float32") * {own_scale} - total)')
            whole = k.let(f"{word} - 0x4B400000", "int32", -bound, bound)
            k.rounded_from[whole.name] = word
            out = layer.output
            w.settle(layer, tail, requantise(k, whole, 1, 0, out.scalar_zero, out.low, out.high))
        else:
            k.do(f'result = S.rint(S.cast({_difference(k, layer, w).name}, "float32") * {own_scale} - total)')
            _stored_float(k, layer, tail, w, "result")
    return w.kernel()


def _float_entry(k: KernelSource, index: Value, entries: Pointer, bits: int, items: int) -> Value:
    """The float32 entry at an index of `bits` bits of a table of 2^items."""
    if bits <= items:
        return k.let(f'S.vload_gather({entries}, S.cast({index.name}, "int16"), mask)', "float32")
    extra = bits - items
    numbers = ", ".join([k.scalar(extra), k.scalar((1 << items) - 1), k.scalar(0.5**extra)])
    return k.let(f"look_up_float({index.name}, {entries}, {numbers}, mask)", "float32")


def _largest_log(layer: Layer, w: AxisLoop, table: Array, own: float, log: float) -> int:
    """More than the magnitude of any result before it is rounded; a sum has the table's last entry, that of the maximum."""
    if not np.isfinite(table).all() or table.min() < 0 or table[-1] <= 0:
        return 1 << 31
    logs = np.log([float(table[-1]), w.count * float(table.max())])
    span = (layer.input.high - layer.input.low) * abs(own) + float(np.abs(logs).max()) * abs(log)
    return int(min(span, 1 << 30)) + 2


@kernel("Hardmax")
def hardmax(layer: Layer) -> Kernel:
    k = KernelSource()
    w = AxisLoop(k, [layer.axis("axis")], {"x": layer.input, "y": layer.output}, ("x", "y"), ("y",))
    find_extreme(k, w, layer.input.dtype, False, False)
    with w.each() as index:
        k.do(f"hit = S.vsel({w.filled('1', 'int32')}, 0, origin + {index} == place)")
        kind = WIDE[layer.output.dtype]
        w.store("y", "hit" if kind == "int32" else f'S.cast(hit, "{kind}")')
    return w.kernel()

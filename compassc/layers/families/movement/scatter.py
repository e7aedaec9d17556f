"""Kernels that put updates at places of a tensor known only when the graph runs.

Without a reduction or a scale, data are copied and updates moved as they are. Otherwise a TEC works on tiles of the
output in LSRAM: the data in their wide form, all updates that fall into the tile in their order, and the last step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import INT32_MAX, as_stored, requantise, wide_kind
from compassc.layers.families.movement.indexed import IndexedAxis, addressed, indices_of, keeps_type
from compassc.layers.families.movement.reference import REDUCTIONS
from compassc.layers.kernels import kernel
from compassc.layers.moving import Copy, bits_of, copy_lines
from compassc.layers.source import LANES, Kernel, KernelSource, finish, named

TILE = 2048
"""Elements of the output that are in LSRAM at once."""
Steps = Callable[[Value], Value]


class Updates:
    """The destinations of updates: `count` rows of `width` neighbours, and the statements that find the `place` of row `r`."""

    def __init__(self, k: KernelSource, layer: Layer) -> None:
        x, index = layer.inputs[0], indices_of(layer, layer.inputs[1])
        self.layer, places = layer, k.tensor(index)
        if layer.type == "ScatterND":
            self.width, self.count = math.prod(x.shape[index.shape[-1] :]), math.prod(index.shape[:-1])
            self.lines = ["place = S.i32(0)", *addressed(k, index, places, x.shape)]
            self.repeated = self.count
        else:
            a, n = IndexedAxis(k, x, index, layer.axis("axis", 0)), k.scalar(x.shape[layer.axis("axis", 0)])
            self.width, self.count, self.repeated = 1, index.count, a.number
            cols, block = k.scalar(a.behind.size), k.scalar(a.behind.size * a.number)
            self.lines = [
                f"v = S.i32({places}[r])",
                "if v < 0:",
                f"    v += {n}",
                f"place = {k.constant(a.before)}[r / {block}] + {k.constant(a.behind)}[r % {cols}]",
                f"place += clamp(v, 0, {n} - 1) * {k.scalar(a.step)}",
            ]
        if layer.inputs[2].count != self.count * self.width:
            shapes = [list(t.shape) for t in layer.inputs]
            raise LayerError(f"data, indices and updates of {shapes} do not go together")


@kernel("ScatterElements", "ScatterND")
def scatter(layer: Layer) -> Kernel:
    if len(layer.inputs) != 3 or layer.inputs[0].shape != layer.output.shape:
        raise LayerError(
            f"its inputs are {[list(t.shape) for t in layer.inputs]}, its output {list(layer.output.shape)}"
        )
    reduction, out = layer.word("reduction", "NONE", ("NONE", *REDUCTIONS)), layer.output
    k = KernelSource()
    if reduction == "NONE" and _is_plain(layer):
        return _moved(k, layer)
    return _tiled(k, layer, reduction, wide_kind(out))


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


def _moved(k: KernelSource, layer: Layer) -> Kernel:
    """Every TEC reads all updates and applies those to its own part, so that their order is kept."""
    x, _, updates = layer.inputs
    keeps_type(layer, x, updates)
    raw = f'.as_ptr("{bits_of(x.dtype)}")'
    to, source, given = (k.tensor(t) + raw for t in (layer.output, x, updates))
    u = Updates(k, layer)
    width = k.scalar(u.width)
    return finish(
        k,
        [
            *copy_lines(k, Copy((x.count,), 0, (1,), 0, (1,)), source, to, "0"),
            "S.barrier()",
            f"for r in range({k.scalar(u.count)}):",
            *(f"    {line}" for line in u.lines),
            f"    if place / {width} % S.get_local_size() == S.get_local_id():",
            f"        for e in range({width}):",
            f"            {to}[place + e] = {given}[r * {width} + e]",
        ],
    )


def _tiled(k: KernelSource, layer: Layer, reduction: str, kind: str) -> Kernel:
    x, _, updates = layer.inputs
    out, u = layer.output, Updates(k, layer)
    if wide_kind(x) != kind or wide_kind(updates) != kind:
        raise LayerError(f"'{x.name}' is {x.dtype}, '{updates.name}' {updates.dtype}, the output {out.dtype}")
    first, second, join, last = _steps(k, layer, reduction, kind, u.repeated)

    def lines_of(step: Steps, value: Value) -> tuple[list[str], str]:
        k.body = []
        result = step(value)
        return k.body, result.name

    def value_of(name: str, t: Tensor) -> Value:
        return named(name, kind, t.low, t.high) if t.is_integer else named(name, kind)

    data, data_name = lines_of(first, value_of("v", x))
    new, new_name = lines_of(second, value_of("w", updates))
    done, done_name = lines_of(last, named("acc", kind))
    width, total = k.scalar(u.width), k.scalar(out.count)
    return finish(
        k,
        [
            f'tile = S.alloc({TILE}, "{kind}", scope="lsram")',
            f"for base in range(S.get_local_id() * {TILE}, {total}, S.get_local_size() * {TILE}):",
            f"    now = S.min({total} - base, {TILE})",
            f"    for i in range(0, now, {LANES}):",
            f"        mask = S.tail_mask(S.min(now - i, {LANES}), {LANES})",
            f'        v = load({k.tensor(x)} + base + i, mask, "{x.dtype}", {LANES})',
            *(f"        {line}" for line in data),
            f"        S.vstore({data_name}, tile + i)",
            f"    for r in range({k.scalar(u.count)}):",
            *(f"        {line}" for line in u.lines),
            "        begin = S.max(place, base)",
            f"        for e in range(begin, S.min(place + {width}, base + now), {LANES}):",
            f"            part = S.tail_mask(S.min(S.min(place + {width}, base + now) - e, {LANES}), {LANES})",
            f'            w = load({k.tensor(updates)} + (r * {width} + e - place), part, "{updates.dtype}", {LANES})',
            f"            old = S.vload(tile + (e - base), part, lanes={LANES})",
            *(f"            {line}" for line in new),
            f"            S.vstore({join.format(a='old', b=new_name)}, tile + (e - base), part)",
            f"    for i in range(0, now, {LANES}):",
            f"        mask = S.tail_mask(S.min(now - i, {LANES}), {LANES})",
            f"        acc = S.vload(tile + i, lanes={LANES})",
            *(f"        {line}" for line in done),
            f'        S.vstore(narrow({done_name}, "{out.dtype}"), {k.tensor(out)} + base + i, mask)',
        ],
    )


JOINS = {
    "NONE": "{b}",
    "ADD": "{a} + {b}",
    "MUL": "{a} * {b}",
    "MAX": "S.max({a}, {b})",
    "MIN": "S.min({a}, {b})",
}
NUMBERS_ONLY = "S.vsel({join}, {{a}} + {{b}}, ({{a}} == {{a}}) & ({{b}} == {{b}}))"
"""NaN is the result where one operand is NaN."""


def _steps(k: KernelSource, layer: Layer, reduction: str, kind: str, repeated: int) -> tuple[Steps, Steps, str, Steps]:
    """(step on data, step on an update, how both are combined, last step)."""
    out = layer.output
    join = JOINS[reduction]
    if kind == "float32":
        join = NUMBERS_ONLY.format(join=join) if reduction in ("MAX", "MIN") else join
        return _same, _same, join, lambda acc: as_stored(k, acc, out)
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
        join = f"S.max({join}, 0)"

    def brought(which: int, value: Value) -> Value:
        moved = k.shifted(value, zeros[which])
        if factors[which] != 1:
            moved = k.let(f"{moved.name} * {k.scalar(factors[which])}", "int32", *ends[which])
        # rows of ScatterND are limited after they were joined
        free = layer.type == "ScatterND" and (which == 0 or reduction != "NONE")
        if free or (limits[0] <= moved.low and moved.high <= limits[1]):
            return moved
        return k.let(f"clamp({moved.name}, {k.scalar(limits[0])}, {k.scalar(limits[1])})", "int32", *limits)

    def closing(acc: Value) -> Value:
        bound = largest * (1 + many)
        value = named(acc.name, "int32", -bound, bound)
        if not layer.is_quantised:
            return as_stored(k, value, out)
        if layer.type == "ScatterND" and out.integer.bits > 8:
            return _rounded_down(k, value, own, shift, out)
        return requantise(k, value, own, shift, out.scalar_zero, out.low, out.high)

    return lambda v: brought(0, v), lambda w: brought(1, w), join, closing


def _products(k: KernelSource, layer: Layer, repeated: int) -> tuple[Steps, Steps, str, Steps]:
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

    def multiplied(value: Value) -> Value:
        product = k.let(f"old * {k.shifted(value, updates.scalar_zero).name}", "int32").name
        count = k.let(f"{product} & 0", "int32").name
        k.do(f"halve({product}, {count}, {15 if signed else 16})")
        move = k.let(f"{k.scalar(down)} - {count}", "int32").name
        scaled = k.let(f"{product} * {k.scalar(factor)}", "int32").name
        near = f"S.vsel({scaled} >> S.max({move}, 0), {scaled} << S.max(0 - {move}, 0), {move} >= 0)"
        return k.let(near, "int32", -largest, largest)

    def limited(acc: Value) -> Value:
        return k.let(f"clamp({acc.name}, {k.scalar(out.low)}, {k.scalar(out.high)})", "int32", out.low, out.high)

    def begun(value: Value) -> Value:
        return requantise(k, k.shifted(value, x.scalar_zero), int(scale[0]), int(shift[0]), 0, low, high)

    return begun, multiplied, "{b}", limited


def _same(value: Value) -> Value:
    return value


def _rounded_down(k: KernelSource, value: Value, scale: int, shift: int, out: Tensor) -> Value:
    """((value * scale) >> shift) - zero, within the output's limits."""
    scale, shift = scale << max(-shift, 0), max(shift, 0)
    if scale >> 16 or value.magnitude * scale >= 1 << 46:
        raise LayerError(f"values of up to {value.magnitude} times {scale} are beyond what kernels compute")
    if value.magnitude * scale <= INT32_MAX:
        found = f"({value.name} * {k.scalar(scale)}) >> {k.scalar(min(shift, 31))}"
    else:
        high, low = k.let(f"{value.name} >> 16").name, k.let(f"{value.name} & 65535").name
        k.do(f"multiply_wide({high}, {low}, {k.scalar(scale)})")
        if shift >= 16:
            found = f"{high} >> {k.scalar(min(shift - 16, 31))}"
        else:
            # results beyond every limit need not be distinguished
            bound = 1 << (14 + shift)
            found = f"(clamp({high}, {-bound}, {bound - 1}) << {k.scalar(16 - shift)}) | ({low} >> {k.scalar(shift)})"
    moved = k.let(f"{k.let(found).name} - {k.scalar(out.scalar_zero)}")
    return k.let(f"clamp({moved.name}, {k.scalar(out.low)}, {k.scalar(out.high)})", "int32", out.low, out.high)

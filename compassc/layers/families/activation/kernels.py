"""Kernels of functions of one operand."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.channel_bytes import bent, results_of
from compassc.layers.declare import type_of
from compassc.layers.emit import look_up, rectify, rectify_float, single
from compassc.layers.families.activation.reference import (
    FUNCTIONS,
    PERIODIC,
    PLAIN,
    RECTIFIERS,
    TIMES_INPUT,
    float_table,
    is_approximated,
    method_of,
    table_base,
)
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import elementwise, method_kernel
from compassc.layers.lane_arithmetic import exp2_coarse, look_up_interval, look_up_mirrored
from compassc.layers.layer_kernel import Lanes, LayerKernel
from compassc.layers.operator_lanes import InLanes
from compassc.layers.rectify import slopes_of
from compassc.layers.requantise import requantise, requantise_rounded
from compassc.layers.vectors import LANES, clamp, everywhere, wide_kind


def _tabled(k: LayerKernel, layer: Layer, x: Value, base: int) -> Value:
    index = k.shifted(x, -base)
    return look_up(k, index, layer.constant("lut"), layer.input.integer.bits)


def _approximated(k: LayerKernel, layer: Layer, method: str, x: Value) -> Value:
    """A function of floats by its table over an interval."""
    table, mode, scale, offset, value_offset = float_table(layer, method)
    entries = k.table(table)
    if mode == "EXP":
        t = k.let(S.vsel(x * 1.442695, k.number(0.0), x == x))  # noqa: PLR0124 (not NaN)
        k.paste(exp2_coarse, t, entries, k.mask)
        return t
    if method in ("SINE", "COSINE"):
        turned = k.let(x + (math.pi / 2 if method == "COSINE" else 0.0))
        periods = k.let(turned / (2 * math.pi))
        whole = S.vsel(S.floor(periods), S.ceil(periods), periods > 0.0)
        x = k.let(turned - 2 * math.pi * whole)
    numbers = [k.number(float(n)) for n in (scale, offset, value_offset, table.size - 2)]
    found = k.let(x + 0.0)
    how = look_up_mirrored if mode == "MIRROR" else look_up_interval
    k.paste(how, found, entries, *numbers, k.mask)
    return k.let(x * found) if method in TIMES_INPUT else found


def _scales(layer: Layer) -> tuple[Array, Array]:
    """Multipliers and shifts, one or one per channel of the last axis."""
    return layer.scale_shift(of=layer.output.shape[-1] if layer.output.shape else 1)


@elementwise(*FUNCTIONS)
def activation(k: LayerKernel, layer: Layer, x: Value) -> Value:
    method = method_of(layer)
    k.channel_shape = (1,) * (len(layer.output.shape) - 1) + layer.output.shape[-1:]
    if layer.is_quantised:
        if method == "PRELU" and (known := _bent(k, layer, x)) is not None:
            return known
        if method in ("NONE", *RECTIFIERS):
            return rectify(k, layer, method, k.shifted(x, layer.input.scalar_zero), *_scales(layer))
        return _tabled(k, layer, x, table_base(layer.input))
    if method in ("NONE", *RECTIFIERS):
        return rectify_float(k, layer, method, x)
    if is_approximated(layer):
        return _approximated(k, layer, method, x)
    return _formula(k, layer, x)


def _formula(k: LayerKernel, layer: Layer, x: Value) -> Value:
    """The function of real numbers that a layer is by its operators."""
    body = type_of(layer.type).body
    assert body is not None
    found: Value = body(InLanes(k), layer, x)
    return found


def _bent(k: LayerKernel, layer: Layer, x: Value) -> Value | None:
    """A PRELU of bytes by tables; None for others."""
    slopes = slopes_of(layer)
    results = results_of(k, layer, x, len(layer.input.shape) - 1) if slopes.ndim < 2 else None
    if results is None:
        return None
    shift = layer.integer("negative_slope_shift", layer.output.integer.bits)
    return bent(k, layer, x, results, np.broadcast_to(slopes, results.shape[:1]).astype(np.int64), shift)


@elementwise(*PLAIN)
def plain(k: LayerKernel, layer: Layer, x: Value) -> Value:
    if layer.is_quantised:
        return _tabled(k, layer, x, layer.input.low)
    return _formula(k, layer, x)


@elementwise(*PERIODIC)
def trigonometric(k: LayerKernel, layer: Layer, x: Value) -> Value:
    if is_approximated(layer):
        return _approximated(k, layer, layer.type.upper(), x)
    if not layer.is_quantised:
        return _formula(k, layer, x)
    if layer.input.integer.bits <= 8:
        return _tabled(k, layer, x, layer.input.low)
    table = layer.constant("lut").reshape(-1)
    scale, shift = (single(v, "scale") for v in layer.scale_shift(of=1))
    at = requantise(k, k.shifted(x, layer.input.scalar_zero), scale, shift, 0, -(2**31), 2**31 - 1)
    within = k.let(at & len(table) - 1, low=0, high=len(table) - 1)
    return look_up(k, within, table, len(table).bit_length() - 1)


def _negatable(k: LayerKernel, layer: Layer, x: Value) -> Value:
    """The value. The smallest int32 becomes the next one where the result, the largest int32, stays the same by it."""
    scale, shift = layer.scale_shift(needed=False)
    if x.low != -(2**31) or (scale != 1).any() or shift.any() or layer.output.high != 2**31 - 1:
        return x
    return k.let(S.max(x, -(2**31) + 1), low=-(2**31) + 1, high=x.high)


@elementwise("Abs")
def absolute(k: LayerKernel, layer: Layer, x: Value) -> Value:
    if not layer.is_quantised:
        return k.let(S.abs(x))
    out, moved = layer.output, _negatable(k, layer, k.shifted(x, layer.input.scalar_zero))
    size = k.let(S.abs(moved), low=0, high=moved.magnitude)
    scale, shift = (single(v, "scale") for v in layer.scale_shift(of=1))
    return requantise(k, size, scale, shift, out.scalar_zero, out.low, out.high)


@elementwise("Negative")
def negative(k: LayerKernel, layer: Layer, x: Value) -> Value:
    if not layer.is_quantised:
        nothing: Any = -0.0 if x.kind == "float32" else 0  # -0.0 of 0.0
        return k.let(nothing - x, low=-x.high, high=-x.low)
    moved = _negatable(k, layer, k.shifted(x, layer.input.scalar_zero))
    out = layer.output
    result = k.let(0 - moved, low=-moved.high, high=-moved.low)
    return requantise(k, result, 1, 0, out.scalar_zero, out.low, out.high)


@elementwise("Sign")
def sign(k: LayerKernel, layer: Layer, x: Value) -> Value:
    moved = k.shifted(x, layer.input.scalar_zero if layer.is_quantised else 0)
    if x.kind == "float32":
        above, below = (everywhere(n, "float32") for n in (1.0, -1.0))
        return k.let(S.vsel(above, S.vsel(below, x + 0.0, x < 0.0), x > 0.0))  # 0.0 of -0.0
    return k.let(clamp(moved, -1, 1), low=-1, high=1)


@method_kernel("Activation", "CRELU")
def crelu(layer: Layer) -> Kernel:
    """The positive parts, and behind them along an axis the negative ones. One long row is cut among the TECs, of
    several each takes every fourth."""
    x, y, axis = layer.input, layer.output, layer.axis("axis", 0)
    if x.shape[axis] * 2 != y.shape[axis]:
        raise LayerError(f"{list(x.shape)} does not lead to {list(y.shape)} along axis {axis}")
    wide_kind(x)
    k, count, size = LayerKernel(), math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
    with k.active():
        source, target, lanes = k.tensor(x), k.tensor(y), Lanes(k, "x", x.dtype)
        with k.apart() as steps:
            value = lanes.value.within(x.low, x.high) if x.is_integer else lanes.value
            if layer.is_quantised:
                value = k.shifted(value, x.scalar_zero)
            parts = [k.let(S.max(part, 0), low=0, high=value.magnitude) for part in (value, 0 - value)]
            if layer.is_quantised:
                parts = [requantise_rounded(k, part, *layer.scale_shift(of=1), y) for part in parts]
            stored = [k.let(k.stored(part, y.dtype)) for part in parts]
        width, tec, tecs = k.number(size), S.get_local_id(), S.get_local_size()
        share = (tec * LANES, width, tecs * LANES) if count == 1 else (0, width, LANES)
        with ExitStack() as row:
            at: Expression = S.i32(0)
            if count > 1:
                at = row.enter_context(k.for_range(tec, k.number(count), tecs, "r")) * width
            near, far = k.hold(source + at, "near"), k.hold(target + at * 2, "far")
            with k.for_range(*share, "i") as i:
                k.define(k.lanes_mask, S.tail_mask(S.min(width - i, LANES), LANES))
                lanes.load(k, near + i, k.lanes_mask)
                k.splice(steps)
                S.vstore(stored[0], far + i, k.lanes_mask)
                S.vstore(stored[1], far + width + i, k.lanes_mask)
        return k.kernel()

"""Reductions, searches and running sums along axes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import look_up, requantise
from compassc.operators.calls import Calls, Operand, References

METHODS = ("SUM", "MEAN", "MIN", "MAX", "PROD", "L1", "L2", "VARIANCE", "UNBIASED_VARIANCE", "ANY", "ALL")


AS_STORED = ("ANY", "ALL", "MIN", "MAX")
"""Methods that take numbers of any type."""


def reduce_body(call: Calls, layer: Layer, x: Operand) -> Any:
    method, axes = layer.word("method", choices=METHODS), layer.axes()

    def over(name: str, values: Operand) -> Any:
        return call(name, values, axis=axes, keepdims=True)

    if method in (*AS_STORED, "SUM", "MEAN", "PROD"):
        return over(method.lower(), x)
    if method == "L1":
        return over("sum", call("abs", x))
    if method == "L2":
        return call("sqrt", over("sum", call("square", x)))
    distance = call("subtract", x, over("mean", x))
    count = prod(layer.input.shape[a] for a in axes) - (1 if method == "UNBIASED_VARIANCE" else 0)
    # one element has no unbiased variance: NaN
    return call("divide", over("sum", call("square", distance)), call.constant(np.array([count], np.float32)))


def reduce_float(layer: Layer, x: Array) -> Array:
    stored = layer.word("method", choices=METHODS) in AS_STORED
    found: Array = reduce_body(References(), layer, x if stored else x.astype(np.float32))
    return found


def check_division(layer: Layer, method: str) -> None:
    """LayerError for a mean of integers without the multiplier that divides by their number."""
    divided = method in ("MEAN", "VARIANCE", "UNBIASED_VARIANCE")
    if divided and not layer.has("scale_value") and "scale" not in layer.constants:
        raise LayerError(f"the attribute 'scale_value' is missing, which divides the {method} of integers")


def quantised_reduce(layer: Layer, x: Array) -> Array:
    method, axes = layer.word("method", choices=METHODS), tuple(layer.axes())
    out, zero = layer.output, layer.input.scalar_zero
    raw = x.astype(np.int64)
    if method in ("MIN", "MAX"):
        found: Array = raw.min(axes, keepdims=True) if method == "MIN" else raw.max(axes, keepdims=True)
        return found
    v = raw + zero
    if method in ("ANY", "ALL"):
        found = (v != 0).any(axes, keepdims=True) if method == "ANY" else (v != 0).all(axes, keepdims=True)
        return found
    check_division(layer, method)
    scale, shift = layer.scale_shift(of=1)
    if method == "PROD":
        return _product(layer, v, axes)
    if method in ("SUM", "MEAN"):
        return requantise(v.sum(axes, keepdims=True), scale, shift, out.scalar_zero, out.low, out.high)
    if method in ("VARIANCE", "UNBIASED_VARIANCE"):
        mean = np.rint(raw.mean(axes, keepdims=True))
        # no order of the float32 additions is defined: the exact sum, rounded once
        total = ((raw - mean) ** 2).sum(axes, keepdims=True).astype(np.float32)
        return requantise(total, scale, shift, out.scalar_zero, out.low, out.high)
    total = np.minimum((np.abs(v) if method == "L1" else v * v).sum(axes, keepdims=True), 2**32 - 1)
    drop = _excess_bits(total)
    low = np.minimum(total >> drop, 65535)
    if method == "L1":
        return requantise(low, scale, shift - drop, out.scalar_zero, out.low, out.high)
    at = requantise(low, scale, shift - drop, 0, 0, 65535)
    return look_up(at, layer.constant("sqrt_lut").reshape(-1), 16, False)


def _excess_bits(total: Array) -> int:
    """Bits above 16 of the largest value, by which all are shifted."""
    largest = int(total.max(initial=0))
    return max(0, (largest - 1).bit_length() - 16) if largest > 0 else 0


def _product(layer: Layer, v: Array, axes: tuple[int, ...]) -> Array:
    """Products that are halved into 16 bits after each factor; the halvings count for the shift."""
    out, source = layer.output, layer.input
    rest = [a for a in range(v.ndim) if a not in axes]
    factors = v.transpose([*rest, *axes]).reshape(*(v.shape[a] for a in rest), -1)
    low, high = (-32768, 32767) if source.low + source.scalar_zero < 0 else (0, 65535)
    p, halvings = np.ones(factors.shape[:-1], np.int64), np.zeros(factors.shape[:-1], np.int64)
    for k in range(factors.shape[-1]):
        p, halvings = halve(p * factors[..., k], halvings, low, high)
    scale, shift = layer.scale_shift(of=1)
    y = requantise(p, scale, shift - halvings, out.scalar_zero, out.low, out.high)
    return y.reshape(out.shape)


def halve(values: Array, counts: Array, low: int, high: int) -> tuple[Array, Array]:
    """Values shifted right until they lie in low..high, and the counts plus how often each was."""
    outside = (values < low) | (values > high)
    while outside.any():
        values = np.where(outside, values >> 1, values)
        counts = counts + outside
        outside = (values < low) | (values > high)
    return values, counts


def arg_min_max(layer: Layer, x: Array) -> Array:
    """The index of the first (or last) extreme element."""
    axis, method = layer.axis(), layer.word("method", choices=("MAX", "MIN"))
    find = np.argmax if method == "MAX" else np.argmin
    if layer.flag("select_last_index", False):
        at = x.shape[axis] - 1 - find(np.flip(x, axis), axis)
    else:
        at = find(x, axis)
    return np.expand_dims(at, axis)


def selects_last(layer: Layer) -> bool:
    """Whether of equal elements the last comes first."""
    if layer.type != "TopK":
        return False
    select = layer.word("select_index", "LAST", ("LAST", "FIRST", "RANDOM"))
    if select == "RANDOM":
        raise LayerError("'select_index' is RANDOM: which of equal elements come first is not defined")
    return select == "LAST"


def top_k(layer: Layer, x: Array, *k: Array) -> list[Array]:
    """The largest (or smallest) elements in order, and their indices."""
    axis, largest = layer.axis("axis", -1), layer.flag("largest", True)
    many = min(int(k[0].reshape(-1)[0]) if k else layer.integer("k", 1), x.shape[axis])
    wide = np.moveaxis(x, axis, -1)
    key = _rank(wide, largest)
    n = wide.shape[-1]
    # of equal elements: the last index first, or the first one
    order = np.argsort(key, -1, kind="stable")
    if selects_last(layer):
        order = n - 1 - np.argsort(np.flip(key, -1), -1, kind="stable")
    at = order[..., :many]
    values = np.take_along_axis(wide, at, -1)
    return [np.moveaxis(values, -1, axis), np.moveaxis(at, -1, axis)][: len(layer.outputs)]


def _rank(x: Array, descending: bool) -> Array:
    """A key by which an ascending sort gives the order wanted; NaN counts as the largest."""
    wide = x.astype(np.int64) if x.dtype.kind in "iub" else np.where(np.isnan(x), np.inf, x).astype(np.float64)
    return -wide if descending else wide


def sort(layer: Layer, x: Array) -> list[Array]:
    axis = layer.axis("axis", -1)
    wide = np.moveaxis(x, axis, -1)
    order = np.argsort(_rank(wide, layer.flag("descending", True)), -1, kind="stable")
    both = np.take_along_axis(wide, order, -1), order
    return [np.moveaxis(v, -1, axis) for v in both][: len(layer.outputs)]


def cumulate(layer: Layer, x: Array) -> Array:
    axis, method = layer.axis(), layer.word("method", choices=("SUM", "PROD"))
    wide = x.astype(np.float32)
    if layer.flag("reverse", False):
        wide = np.flip(wide, axis)
    run = np.cumsum(wide, axis, dtype=np.float32) if method == "SUM" else np.cumprod(wide, axis, dtype=np.float32)
    if layer.flag("exclusive", False):
        run = _delayed(run + np.float32(0), axis, 0) if method == "SUM" else _delayed(run, axis, 1)  # 0.0 + x of sums
    return np.flip(run, axis) if layer.flag("reverse", False) else run


def _delayed(run: Array, axis: int, first: int) -> Array:
    """The values one place later, beginning with `first`."""
    moved = np.roll(run, 1, axis)
    moved[tuple(0 if i == axis else slice(None) for i in range(run.ndim))] = first
    return moved


def quantised_cumulate(layer: Layer, x: Array) -> Array:
    axis, method, out = layer.axis(), layer.word("method", choices=("SUM", "PROD")), layer.output
    v = np.moveaxis(x.astype(np.int64) + layer.input.scalar_zero, axis, -1)
    reverse, exclusive = layer.flag("reverse", False), layer.flag("exclusive", False)
    v = np.flip(v, -1) if reverse else v
    scale, shift = layer.scale_shift(of=1 if method == "SUM" else v.shape[-1])
    if method == "SUM":
        run = np.cumsum(v, -1)
        y = requantise(
            _delayed(run, run.ndim - 1, 0) if exclusive else run, scale, shift, out.scalar_zero, out.low, out.high
        )
    else:
        y = _running_products(layer, v, np.resize(scale, v.shape[-1]), np.resize(shift, v.shape[-1]), exclusive)
    return np.moveaxis(np.flip(y, -1) if reverse else y, -1, axis)


def _running_products(layer: Layer, v: Array, scale: Array, shift: Array, exclusive: bool) -> Array:
    out = layer.output
    low, high = (-32768, 32767) if layer.input.integer.signed else (0, 65535)
    p, halvings = np.ones(v.shape[:-1], np.int64), np.zeros(v.shape[:-1], np.int64)
    y = np.empty(v.shape, np.int64)
    for k in range(v.shape[-1]):
        if exclusive:
            if k:
                p, halvings = halve(p * v[..., k - 1], halvings, low, high)
        else:
            p, halvings = halve(p * v[..., k], halvings, low, high)
        y[..., k] = requantise(p, scale[k], shift[k] - halvings, out.scalar_zero, out.low, out.high)
    return y

"""Kernels of element-wise layers of two operands, and of conversions."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers import vectors
from compassc.layers.arithmetic import TRUNCATED_DTYPES
from compassc.layers.byte_functions import BYTES, ENTRIES, all_bytes, entries, looked_up_apart
from compassc.layers.emit import as_stored, look_up, rectify, rectify_float
from compassc.layers.families.eltwise.reference import ALONE, keeps_bits
from compassc.layers.families.movement.kernels import same_bits
from compassc.layers.kernels import elementwise, form_kernel
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import Pair, requantise, requantise_rounded, requantise_to
from compassc.layers.vectors import (
    clamp,
    everywhere,
    halves,
    halves_of,
    product_of_halves,
    signed_bytes,
    sum_of_bytes,
    wide,
)

METHODS: dict[str, Callable[[Value, Value], Expression]] = {
    "ADD": operator.add,
    "SUB": operator.sub,
    "MUL": operator.mul,
    "MAX": lambda a, b: S.max(a, b),
    "MIN": lambda a, b: S.min(a, b),
}


PAIRS = {"ADD": vectors.sum_pair, "SUB": vectors.difference_pair, "MUL": vectors.product_pair}
"""Operations with results beyond 32 bits, as pairs of a high word and 16 low bits."""


class Ends(NamedTuple):
    """The smallest and the largest that a number can be."""

    low: int
    high: int

    @property
    def magnitude(self) -> int:
        return max(abs(self.low), abs(self.high))


def _span(method: str, a: Value | Ends, b: Value | Ends) -> tuple[int, int]:
    """The smallest and the largest result."""
    if method == "ADD":
        return a.low + b.low, a.high + b.high
    if method == "SUB":
        return a.low - b.high, a.high - b.low
    if method == "MUL":
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return min(ends), max(ends)
    return min(a.low, b.low), max(a.high, b.high)


def _fits(span: tuple[int, int]) -> bool:
    return -(2**31) <= span[0] and span[1] < 2**31


def _apply(k: LayerKernel, method: str, a: Value, b: Value) -> Value:
    if a.kind == "float32":
        return k.let(METHODS[method](a, b))
    span = _span(method, a, b)
    if not _fits(span):
        raise LayerError(f"the {method} of its operands does not fit 32 bits, which no kernel here computes with")
    return k.let(METHODS[method](a, b), low=span[0], high=span[1])


def _limited(k: LayerKernel, method: str, a: Value, b: Value) -> Value:
    """The result at most what 32 bits hold."""
    span = _span(method, a, b)
    if _fits(span):
        return _apply(k, method, a, b)
    low, high = max(span[0], -(2**31)), min(span[1], 2**31 - 1)
    if method != "MUL":
        return k.let((S.vadd if method == "ADD" else S.vsub)(a, b, saturate=True), low=low, high=high)
    product = k.let(a, low=low, high=high)
    k.paste(vectors.saturate_product, product, b)
    return product


def _pair(k: LayerKernel, method: str, a: Value, b: Value) -> Pair:
    """The result in two variables."""
    if not all(_fits((v.low, v.high)) for v in (a, b)):
        raise LayerError("its operands plus their zero points do not fit 32 bits")
    span = _span(method, a, b)
    if max(map(abs, span)) >= 2**47:
        raise LayerError(f"the {method} of its operands does not fit 48 bits")
    pair = Pair(k.let(a & 0), k.let(a & 0), *span)
    k.paste(PAIRS[method], pair.high, pair.low, a, b)
    return pair


@elementwise("Eltwise", *ALONE)
def eltwise(k: LayerKernel, layer: Layer, a: Value, b: Value) -> Value:
    method = ALONE.get(layer.type) or layer.word("method", choices=tuple(METHODS))
    activation = layer.word("with_activation", "NONE")
    if not layer.is_quantised:
        return rectify_float(k, layer, activation, _apply(k, method, a, b))
    if method in ("MAX", "MIN") and (known := looked_up_apart(k, layer, method, (a, b))) is not None:
        return known
    scale, shift = layer.scale_shift()
    factors = [int(s) for s in scale[1:]] if method != "MUL" and scale.size == 3 else [1, 1]
    if method != "MUL" and scale.size == 3:
        scale = scale[:1]
    if method == "MUL" and activation == "NONE" and scale.size == 1:
        made, rest = _product(k, layer, (a, b), int(scale.reshape(-1)[0]))
        scale = np.full_like(scale, rest)
    else:
        made = _of_bytes(k, layer, method, (a, b), factors)
    if made is not None:
        return rectify(k, layer, activation, made, scale, shift)
    left, right = (
        _times(k, k.shifted(v, t.scalar_zero), f) for v, t, f in zip((a, b), layer.inputs, factors, strict=True)
    )
    if _fits(_span(method, left, right)):
        return rectify(k, layer, activation, _apply(k, method, left, right), scale, shift)
    plain = scale.size == 1 and (scale == 1).all() and not shift.any()
    if plain and layer.output.dtype == "int32" and activation != "CLIP" and not layer.output.scalar_zero:
        return rectify(k, layer, activation, _limited(k, method, left, right), scale, shift)
    return rectify(k, layer, layer.word("with_activation", "NONE"), _pair(k, method, left, right), scale, shift)


def _stored(k: LayerKernel, layer: Layer, given: tuple[Value, Value]) -> tuple[Value, Value] | None:
    """The operands as they are stored; None where they are not held as bytes."""
    bytes_ = all(
        t.dtype in BYTES and (v.name, t.dtype) in k.stored_forms for v, t in zip(given, layer.inputs, strict=True)
    )
    if not bytes_ or any(
        _moved(v, t.scalar_zero).magnitude >= 1 << 15 for v, t in zip(given, layer.inputs, strict=True)
    ):
        return None
    a, b = (k.stored(v, t.dtype) for v, t in zip(given, layer.inputs, strict=True))
    return a, b


def _of_bytes(
    k: LayerKernel, layer: Layer, method: str, given: tuple[Value, Value], factors: list[int]
) -> Value | None:
    """The operation on bytes times factors, by products of 16 bits; None where the operands are not held as bytes."""
    stored, zeros = _stored(k, layer, given), [t.scalar_zero for t in layer.inputs]
    if method == "MUL":
        return _product(k, layer, given)[0]
    if method not in PAIRS or stored is None or max(map(abs, (*factors, *zeros))) >= 1 << 15:
        return None
    ends = [Ends(*sorted(((v.low + z) * f, (v.high + z) * f))) for v, z, f in zip(given, zeros, factors, strict=True)]
    span = _span(method, *ends)
    if not _fits(span):
        return None
    f, g = factors[0], factors[1] if method == "ADD" else -factors[1]
    pair, start = int(np.int32(np.uint32((f & 0xFFFF) | (g & 0xFFFF) << 16))), zeros[0] * f + zeros[1] * g
    return k.let(sum_of_bytes(stored[0], stored[1], k.number(pair), k.number(start)), low=span[0], high=span[1])


def _product(k: LayerKernel, layer: Layer, given: tuple[Value, Value], scale: int = 1) -> tuple[Value | None, int]:
    """(the product of bytes plus their zero points times a scale, what of the scale is left to be multiplied with); None
    where the operands are not held as bytes."""
    stored = _stored(k, layer, given)
    if stored is None:
        return None, scale
    ends = [_moved(v, t.scalar_zero) for v, t in zip(given, layer.inputs, strict=True)]
    parts = [_half(k, name, t.scalar_zero) for name, t in zip(stored, layer.inputs, strict=True)]
    # the smaller operand first: what is made of it alone may be made once for several elements of the other
    for i in sorted((0, 1), key=lambda i: layer.inputs[i].count):
        if 1 < scale and ends[i].magnitude * scale < 1 << 15:
            parts[i] = k.let(parts[i] * S.cast(k.number(scale), "int16"))
            ends[i], scale = Ends(ends[i].low * scale, ends[i].high * scale), 1
    low, high = _span("MUL", *ends)
    return k.let(product_of_halves(*parts), low=low, high=high), scale


def _half(k: LayerKernel, stored: Value, zero: int) -> Value:
    """The variable of bytes plus a zero point in 16 bits."""
    return k.let(halves(stored, k.number(zero)) if zero else halves_of(stored))


def _moved(value: Value, zero: int) -> Ends:
    return Ends(value.low + zero, value.high + zero)


def _times(k: LayerKernel, value: Value, factor: int) -> Value:
    if factor == 1:
        return value
    low, high = value.low * factor, value.high * factor
    if max(abs(low), abs(high)) >= 2**31:
        raise LayerError(f"an operand times its scale {factor} does not fit 32 bits")
    return k.let(value * k.number(factor), low=low, high=high)


@elementwise("SquaredDifference")
def squared_difference(k: LayerKernel, layer: Layer, a: Value, b: Value) -> Value:
    if not layer.is_quantised:
        d = as_stored(k, k.let(a - b), layer.input)
        return k.let(d * d)
    scale, shift = (np.resize(v, 3) for v in layer.scale_shift(of=3))
    operands = [
        requantise(k, k.shifted(v, t.scalar_zero), int(m), int(s), 0, -(2**31), 2**31 - 1)
        for v, t, m, s in zip((a, b), layer.inputs, scale[1:], shift[1:], strict=True)
    ]
    d = _apply(k, "SUB", *operands)
    square = _limited(k, "MUL", d, d).within(low=0)
    out = layer.output
    return requantise(k, square, int(scale[0]), int(shift[0]), out.scalar_zero, out.low, out.high)


def _whole_truth(k: LayerKernel, x: Value, wraps: bool) -> Value:
    """1 where the whole part is not 0, or, unless it `wraps`, above 0."""
    one, nothing = everywhere(1), everywhere(0)
    if x.kind != "float32":
        return k.let(S.vsel(one, nothing, x != 0 if wraps else x > 0), low=0, high=1)
    if wraps:
        return k.let(S.vsel(nothing, one, S.abs(x) < 1.0), low=0, high=1)
    return k.let(S.vsel(one, nothing, x >= 1.0), low=0, high=1)


form_kernel("Cast", keeps_bits)(same_bits)


@elementwise("Cast")
def cast(k: LayerKernel, layer: Layer, x: Value) -> Value:
    out = layer.output
    if layer.is_quantised and (layer.has("scale_value") or "scale" in layer.constants):
        return requantise_to(k, k.shifted(x, layer.input.scalar_zero), *layer.scale_shift(), out)
    if not out.is_integer:
        return x if x.kind == "float32" else k.let(S.cast(x, "float32"))
    low, high = out.integer.low, out.integer.high
    wraps = layer.word("clip_mode", "SATURATION", ("SATURATION", "TRUNCATION")) == "TRUNCATION"
    if out.dtype == "bool":
        return _whole_truth(k, x, wraps)
    if wraps:
        whole = S.cast(x, "int32") if x.kind == "float32" else x
        return k.let(wide(S.cast(whole, out.dtype), out.dtype), low=low, high=high)
    if x.kind == "float32":
        # the conversion saturates, and makes 0 of NaN, which the limits of reals would make the lowest number
        whole = k.let(S.cast(x, "int32"))
        return whole if out.dtype == "int32" else k.let(clamp(whole, k.number(low), k.number(high)), low=low, high=high)
    moved = (
        0
        if layer.flag("ignore_scale_zp", False) or not layer.is_quantised
        else layer.input.scalar_zero - out.scalar_zero
    )
    return requantise(k, x, 1, 0, -moved, low, high)


@elementwise("Quantize")
def quantise(k: LayerKernel, layer: Layer, x: Value) -> Value:
    out = layer.output
    if out.integer.bits > 16:
        raise LayerError(f"quantising to {out.dtype} has no kernel")
    scaled = S.rint(x * k.number(out.scalar_scale) - k.number(float(out.scalar_zero)))
    whole = k.let(S.cast(scaled, "int32"))  # 0 of NaN, which the limits of reals would have made the lowest number
    return k.let(clamp(whole, k.number(out.low), k.number(out.high)), low=out.low, high=out.high)


@elementwise("DeQuantize")
def dequantise(k: LayerKernel, layer: Layer, x: Value) -> Value:
    source = layer.input
    step = k.number(float(np.float32(1) / np.float32(source.scalar_scale)))
    moved = k.shifted(x, source.scalar_zero)
    return k.let(S.cast(moved, "float32") * step)


@elementwise("Div")
def divide(k: LayerKernel, layer: Layer, a: Value, b: Value) -> Value:
    if not layer.is_quantised:
        return k.let(a / b)
    if (known := _quotient_of_bytes(k, layer, (a, b))) is not None:
        return known
    left, right = (k.shifted(v, t.scalar_zero) for v, t in zip((a, b), layer.inputs, strict=True))
    bits = layer.inputs[1].integer.bits
    if right.magnitude >= 1 << bits:
        raise LayerError(f"the divisor plus its zero point does not fit {bits} bits")
    size = k.let(S.abs(right), low=0, high=right.magnitude)
    reciprocal = look_up(k, size, layer.constant("lut"), bits)
    signed = k.let(S.vsel(0 - left, left, right < 0), low=-left.magnitude, high=left.magnitude)
    factor, out, (scale, shift) = reciprocal.within(0, 65535), layer.output, layer.scale_shift(of=1)
    if _fits(_span("MUL", signed, factor)):
        return requantise_rounded(k, _apply(k, "MUL", signed, factor), scale, shift, out)
    if out.dtype in TRUNCATED_DTYPES:
        raise LayerError(f"quotients of {layer.input.dtype} as {out.dtype} have no kernel")
    pair = _pair(k, "MUL", signed, factor)
    return requantise(k, pair, scale, shift, out.scalar_zero, out.low, out.high)


def _quotient_of_bytes(k: LayerKernel, layer: Layer, given: tuple[Value, Value]) -> Value | None:
    """The numerator with the divisor's sign, times the reciprocal that a table gives for the divisor's byte; None where
    the operands are not held as bytes."""
    stored, (x, y) = _stored(k, layer, given), layer.inputs
    divisors, table = all_bytes(y).astype(np.int64) + y.scalar_zero, layer.constant("lut").reshape(-1)
    if stored is None or table.size != ENTRIES or np.abs(divisors).max() >= ENTRIES:
        return None
    reciprocals = np.clip(table.astype(np.int64)[np.abs(divisors)], 0, 65535).astype(np.uint16)
    size = _moved(given[0], x.scalar_zero).magnitude
    signs = entries(k, given[1], y.dtype, np.where(divisors < 0, -1, 1).astype(np.int8))
    if x.scalar_zero:
        left = k.let(_half(k, stored[0], x.scalar_zero) * halves_of(signs))
    else:
        left = k.let(signed_bytes(stored[0], signs))
    scale, shift = layer.scale_shift(of=1)
    more = int(scale.reshape(-1)[0])
    if 1 < more and size * more < 1 << 15 and size * more * 65535 < 1 << 31:
        left, size, scale = k.let(left * S.cast(k.number(more), "int16")), size * more, np.ones_like(scale)
    right = entries(k, given[1], y.dtype, reciprocals)
    end = size * 65535
    product = k.let(product_of_halves(left, right), low=-end, high=end)
    return requantise_rounded(k, product, scale, shift, layer.output)

"""Kernels of element-wise layers of two operands, and of conversions."""

from __future__ import annotations

from compassc.graph import Layer, LayerError
from compassc.layers.emit import look_up, rectify, rectify_float, requantise, requantise_rounded, requantise_to
from compassc.layers.families.eltwise.reference import ALONE
from compassc.layers.kernels import elementwise
from compassc.layers.source import KernelSource, Value

SYMBOLS = {
    "ADD": "{a} + {b}",
    "SUB": "{a} - {b}",
    "MUL": "{a} * {b}",
    "MAX": "S.max({a}, {b})",
    "MIN": "S.min({a}, {b})",
}


def _apply(k: KernelSource, method: str, a: Value, b: Value) -> Value:
    expression = SYMBOLS[method].format(a=a.name, b=b.name)
    if a.kind == "float32":
        return k.let(expression, "float32")
    if method == "ADD":
        low, high = a.low + b.low, a.high + b.high
    elif method == "SUB":
        low, high = a.low - b.high, a.high - b.low
    elif method == "MUL":
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = min(ends), max(ends)
    else:
        low, high = min(a.low, b.low), max(a.high, b.high)
    if low < -(2**31) or high >= 2**31:
        raise LayerError(f"the {method} of its operands does not fit 32 bits, which no kernel here computes with")
    return k.let(expression, "int32", low, high)


@elementwise("Eltwise", *ALONE)
def eltwise(k: KernelSource, layer: Layer, a: Value, b: Value) -> Value:
    method = ALONE.get(layer.type) or layer.word("method", choices=tuple(SYMBOLS))
    activation = layer.word("with_activation", "NONE")
    if not layer.is_quantised:
        return rectify_float(k, layer, activation, _apply(k, method, a, b))
    left, right = (k.shifted(v, t.scalar_zero) for v, t in zip((a, b), layer.inputs, strict=True))
    scale, shift = layer.scale_shift()
    if method != "MUL" and scale.size == 3:
        left, right = (_times(k, v, int(s)) for v, s in zip((left, right), scale[1:], strict=True))
        scale = scale[:1]
    return rectify(k, layer, activation, _apply(k, method, left, right), scale, shift)


def _times(k: KernelSource, value: Value, factor: int) -> Value:
    if factor == 1:
        return value
    low, high = value.low * factor, value.high * factor
    if max(abs(low), abs(high)) >= 2**31:
        raise LayerError(f"an operand times its scale {factor} does not fit 32 bits")
    return k.let(f"{value.name} * {k.scalar(factor)}", "int32", low, high)


@elementwise("SquaredDifference")
def squared_difference(k: KernelSource, layer: Layer, a: Value, b: Value) -> Value:
    if not layer.is_quantised:
        d = k.let(f"{a.name} - {b.name}", "float32")
        return k.let(f"{d.name} * {d.name}", "float32")
    scale, shift = layer.scale_shift(of=3)
    operands = [
        requantise(k, k.shifted(v, t.scalar_zero), int(m), int(s), 0, -(2**31), 2**31 - 1)
        for v, t, m, s in zip((a, b), layer.inputs, scale[1:], shift[1:], strict=True)
    ]
    d = _apply(k, "SUB", *operands)
    if d.magnitude**2 >= 2**31:
        raise LayerError("the squares of its differences do not fit 32 bits, which no kernel here computes with")
    square = k.let(f"{d.name} * {d.name}", "int32", 0, d.magnitude**2)
    out = layer.output
    return requantise(k, square, int(scale[0]), int(shift[0]), out.scalar_zero, out.low, out.high)


@elementwise("Cast")
def cast(k: KernelSource, layer: Layer, x: Value) -> Value:
    out = layer.output
    if layer.is_quantised and (layer.has("scale_value") or "scale" in layer.constants):
        return requantise_to(k, k.shifted(x, layer.input.scalar_zero), *layer.scale_shift(), out)
    if not out.is_integer:
        return x if x.kind == "float32" else k.let(f'S.cast({x.name}, "float32")', "float32")
    low, high = out.integer.low, out.integer.high
    if layer.word("clip_mode", "SATURATION", ("SATURATION", "TRUNCATION")) == "TRUNCATION":
        whole = f'S.cast({x.name}, "int32")' if x.kind == "float32" else x.name
        return k.let(f'wide(S.cast({whole}, "{out.dtype}"), "{out.dtype}")', "int32", low, high)
    if x.kind == "float32":
        # 2^31 - 1 is no float32, so that the largest int32 is reached by saturation of the conversion
        limited = f"clamp({x.name}, {float(low)!r}, {float(min(high, 2147483520))!r})"
        return k.let(f'S.cast({limited}, "int32")', "int32", low, high)
    moved = (
        0
        if layer.flag("ignore_scale_zp", False) or not layer.is_quantised
        else layer.input.scalar_zero - out.scalar_zero
    )
    return requantise(k, x, 1, 0, -moved, low, high)


@elementwise("Quantize")
def quantise(k: KernelSource, layer: Layer, x: Value) -> Value:
    out = layer.output
    if out.integer.bits > 16:
        raise LayerError(f"quantising to {out.dtype} has no kernel")
    scaled = f"S.rint({x.name} * {k.scalar(out.scalar_scale)} - {k.scalar(float(out.scalar_zero))})"
    limited = k.let(f"clamp({scaled}, {k.scalar(float(out.low))}, {k.scalar(float(out.high))})", "float32")
    return k.let(f'S.cast({limited.name}, "int32")', "int32", out.low, out.high)


@elementwise("DeQuantize")
def dequantise(k: KernelSource, layer: Layer, x: Value) -> Value:
    import numpy as np

    source = layer.input
    step = k.scalar(float(np.float32(1) / np.float32(source.scalar_scale)))
    moved = k.shifted(x, source.scalar_zero)
    return k.let(f'S.cast({moved.name}, "float32") * {step}', "float32")


@elementwise("Div")
def divide(k: KernelSource, layer: Layer, a: Value, b: Value) -> Value:
    if not layer.is_quantised:
        return k.let(f"{a.name} / {b.name}", "float32")
    left, right = (k.shifted(v, t.scalar_zero) for v, t in zip((a, b), layer.inputs, strict=True))
    bits = layer.inputs[1].integer.bits
    if right.magnitude >= 1 << bits:
        raise LayerError(f"the divisor plus its zero point does not fit {bits} bits")
    size = k.let(f"S.abs({right.name})", "int32", 0, right.magnitude)
    reciprocal = look_up(k, size, layer.constant("lut"), bits)
    signed = k.let(f"S.vsel(0 - {left.name}, {left.name}, {right.name} < 0)", "int32", -left.magnitude, left.magnitude)
    product = _apply(k, "MUL", signed, Value(reciprocal.name, "int32", 0, 65535))
    return requantise_rounded(k, product, *layer.scale_shift(of=1), layer.output)

"""Steps that kernels of several families have in common, as text: requantisation, look-ups, rectifiers, storing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compassc.layers.arithmetic import INTEGER_TYPES, TRUNCATED_DTYPES, Array
from compassc.layers.layer import Layer, LayerError, TensorType
from compassc.layers.source import KernelSource, Value
from compassc.layers.vectors import WIDE

INT32_MAX = 2**31 - 1


class WideFactor(NamedTuple):
    """What `vectors.requantise_wide` takes."""

    scale: int
    bound: int
    drop: int
    shift: int


def wide_factor(scale: int, shift: int) -> WideFactor:
    """A multiplier of up to 16 bits and a shift, prepared for products of up to 48 bits and results of 17.

    A result of 2^17 is beyond every limit of a 16-bit output, so larger inputs need not be told apart.
    """
    if scale == 0 or shift > 47:
        return WideFactor(0, 0, 0, 0)
    while shift < 0 and scale < 1 << 15:
        scale, shift = scale << 1, shift + 1
    if shift < 0:
        raise LayerError(f"the shift {shift} with the multiplier {scale} is beyond what kernels compute")
    drop = min(16, max(0, shift - 12))
    bound = INT32_MAX if shift > 28 else min(INT32_MAX, -(-(1 << (17 + shift)) // scale))
    return WideFactor(scale, bound, drop, shift - drop)


def single(values: Array, key: str) -> int:
    if values.size != 1:
        raise LayerError(f"'{key}' has {values.size} values, expected 1")
    return int(values.reshape(-1)[0])


def requantise(k: KernelSource, value: Value, scale: int, shift: int, zero: int, low: int, high: int) -> Value:
    """round(value * scale / 2^shift) - zero, within low..high."""
    if value.low < -(2**31) or value.high > INT32_MAX:
        raise LayerError("its sums do not fit 32 bits, which no kernel here computes with")
    if scale == 1 and shift == 0:
        moved = k.shifted(value, -zero)
    else:
        moved = k.shifted(scaled(k, value, scale, shift), -zero)
    if moved.low >= low and moved.high <= high:
        return moved
    limited = f"clamp({moved.name}, {k.scalar(low)}, {k.scalar(high)})"
    return k.let(limited, "int32", low, high)


def scaled(k: KernelSource, value: Value, scale: int, shift: int, limited: bool = True) -> Value:
    """round(value * scale / 2^shift). `limited`: results of more than 17 bits need not be told apart."""
    if shift < 0 and value.magnitude * scale << -shift <= INT32_MAX:
        scale, shift = scale << -shift, 0
    ends = sorted(round(v * scale / 2**shift) for v in (value.low, value.high))
    low, high = ends[0] - 1, ends[1] + 1
    if shift >= 0 and value.magnitude * scale <= INT32_MAX:
        if shift > 31:
            scale, shift = 0, 0
        expression = f"requantised({value.name}, {k.scalar(scale)}, {k.scalar(shift)})"
        return k.let(expression, "int32", low, high)
    if not limited and max(abs(low), abs(high)) >= 1 << 17:
        if not 0 < shift <= 16 or max(abs(low), abs(high)) > INT32_MAX or scale >> 16:
            raise LayerError(f"a product with the factor {scale} / 2^{shift} is beyond what kernels compute")
        result = k.let(value.name, "int32", low, high)
        k.do(f"scale_exactly({result.name}, {k.scalar(scale)}, {k.scalar(shift)})")
        return result
    factor = wide_factor(scale, shift)
    result = k.let(value.name, "int32", -(2**30), 2**30)
    k.do(f"requantise_wide({result.name}, {', '.join(k.scalar(f) for f in factor)})")
    return result


def requantise_to(k: KernelSource, value: Value, scale: Array, shift: Array, out: TensorType) -> Value:
    """Requantised as the output wants it."""
    if out.dtype in TRUNCATED_DTYPES and not (int(scale.reshape(-1)[0]) == 1 and int(shift.reshape(-1)[0]) == 0):
        raise LayerError(f"requantisation to {out.dtype} is not implemented")
    factor = single(scale, "scale"), single(shift, "shift")
    return requantise(k, value, *factor, out.scalar_zero, out.low, out.high)


def rectify(k: KernelSource, layer: Layer, method: str, value: Value, scale: Array, shift: Array) -> Value:
    """The quantised rectifier at the end of a layer; see `compassc.layers.rectify`."""
    out = layer.output
    if method == "CLIP":
        extra = 8 if INTEGER_TYPES[out.dtype].bits <= 8 else 0
        low, high = layer.int("clip_min"), layer.int("clip_max")
        inner = requantise(k, value, single(scale, "scale"), single(shift, "shift") - extra, 0, low, high)
        return requantise(k, inner, 1, extra, out.scalar_zero, out.low, out.high)
    if method in ("RELU", "RELU6"):
        # the reference takes the maximum in float32: above 24 bits it drops bits
        if value.high > 1 << 24:
            positive = f'S.cast(S.cast(S.max({value.name}, 0), "float32"), "int32")'
        else:
            positive = f"S.max({value.name}, 0)"
        value = k.let(positive, "int32", max(value.low, 0), max(value.high, 0))
    elif method == "LEAKYRELU":
        value = _leak(k, layer, value)
    elif method != "NONE":
        raise LayerError(f"the fused activation {method} has no kernel")
    return requantise_to(k, value, scale, shift, out)


def _leak(k: KernelSource, layer: Layer, value: Value) -> Value:
    bits = INTEGER_TYPES[layer.output.dtype].bits
    slope, shift = layer.int("negative_slope_value"), layer.int("negative_slope_shift", bits)
    negative = k.let(f"S.min({value.name}, 0)", "int32", min(value.low, 0), 0)
    steep = scaled(k, negative, slope, shift, limited=False)
    ends = sorted((round(value.low * slope / 2**shift), 0))
    expression = f"{steep.name} + S.max({value.name}, 0)"
    return k.let(expression, "int32", min(ends[0], value.low, 0) - 1, max(ends[1], value.high, 0) + 1)


def rectify_float(k: KernelSource, layer: Layer, method: str, value: Value) -> Value:
    """The rectifier on real numbers."""
    v = value.name
    if method == "NONE":
        return value
    if method == "RELU":
        return k.let(f"S.max({v}, 0.0)", "float32")
    if method == "RELU6":
        return k.let(f"clamp({v}, 0.0, 6.0)", "float32")
    if method == "CLIP":
        low, high = (k.scalar(layer.number(key)) for key in ("clip_min", "clip_max"))
        return k.let(f"clamp({v}, {low}, {high})", "float32")
    if method == "LEAKYRELU":
        slope = k.scalar(layer.number("negative_slope_value"))
        return k.let(f"S.vsel({v}, {v} * {slope}, {v} >= 0.0)", "float32")
    raise LayerError(f"the fused activation {method} has no kernel")


def look_up(k: KernelSource, value: Value, table: Array, bits: int) -> Value:
    """The entries at indices of `bits` bits from 0; the table's type says which integers come out."""
    flat = np.ascontiguousarray(table.reshape(-1))
    size = flat.size
    if size != 1 << (size.bit_length() - 1):
        raise LayerError(f"the table has {size} entries, which is no power of two")
    kind = np.iinfo(flat.dtype)
    name = k.table(flat)
    extra = bits - (size.bit_length() - 1)
    low, high = max(int(kind.min), -(2**31)), min(int(kind.max), INT32_MAX)
    if extra <= 0:
        return k.let(f"entry_of({name}, {value.name}, mask)", "int32", low, high)
    result = k.let(value.name, "int32", low, high)
    k.do(f"look_up({result.name}, {name}, {k.scalar(extra)}, {k.scalar(size - 1)}, mask)")
    return result


def as_stored(k: KernelSource, value: Value, out: TensorType) -> Value:
    """The value as it is after being stored: floats of 16 bits are rounded to them."""
    if out.dtype in ("float16", "bfloat16"):
        return k.let(f'S.cast(S.cast({value.name}, "{out.dtype}"), "float32")', "float32")
    return value


def wide_kind(tensor: TensorType) -> str:
    if tensor.dtype not in WIDE:
        raise LayerError(f"kernels do not compute with {tensor.dtype}")
    return WIDE[tensor.dtype]

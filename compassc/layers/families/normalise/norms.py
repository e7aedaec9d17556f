"""Kernels of norms along axes and of moments: a sum of sizes, squares or elements, then numbers per position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import inverse_root_table
from compassc.layers.axes import AxisLoop
from compassc.layers.axis_sums import divide, integer_mean, itself, squares
from compassc.layers.emit import look_up
from compassc.layers.families.normalise.reference import counts_of, smallest_norm, three_scales
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import elementwise, kernel
from compassc.layers.lane_arithmetic import inverse_root, requantise_by, shift_pair, square_of
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import Pair, limited, requantise
from compassc.layers.vectors import add_product, clamp

INT32_MAX = 2**31 - 1


def _single(layer: Layer) -> tuple[int, int]:
    scale, shift = layer.scale_shift(of=1)
    if not 0 <= int(scale) < 1 << 16:
        raise LayerError(f"'scale_value' is {int(scale)}, expected at most 16 bits")
    return int(scale), int(shift)


@kernel("Normalization")
def normalization(layer: Layer) -> Kernel:
    method, x, y = layer.word("method", choices=("L1", "L2")), layer.input, layer.output
    if x.shape != y.shape:
        raise LayerError(f"its input is {list(x.shape)}, its output {list(y.shape)}")
    k = LayerKernel()
    with k.active():
        w = AxisLoop(k, layer.axes(), {"x": x, "y": y}, ("x", "y"), ("y",))
        if not layer.is_quantised:
            with w.positions():
                _float(k, layer, w, method)
            return k.kernel()
        scale, shift = _single(layer)
        largest = max(abs(x.low + x.scalar_zero), abs(x.high + x.scalar_zero))
        if largest * scale > INT32_MAX:
            raise LayerError(f"'scale_value' is {scale}: elements of up to {largest} times it do not fit 32 bits")
        with w.positions():
            (_quantised_l1 if method == "L1" else _quantised_l2)(k, layer, w, (scale, shift), largest)
    return k.kernel()


def _float(k: LayerKernel, layer: Layer, w: AxisLoop, method: str) -> None:
    def term() -> Expression:
        x = w.load("x")
        return S.abs(x) if method == "L1" else square_of(x)

    total = w.sum_of("total", term, "float32")
    k.assign(total, S.max(total, w.filled(k.number(smallest_norm(layer)), "float32")))
    divisor = k.held("divisor", total + 0.0 if method == "L1" else S.sqrt(total))
    with w.each():
        w.store("y", k.let(w.load("x") / divisor))


def _number(k: LayerKernel, layer: Layer, w: AxisLoop) -> Value:
    """An element plus the zero point."""
    return k.shifted(w.load("x"), layer.input.scalar_zero)


def _quantised_l1(k: LayerKernel, layer: Layer, w: AxisLoop, factor: tuple[int, int], largest: int) -> None:
    """The quotient of the element times the scale and the sum, both rounded to float32, without its fraction."""
    (scale, shift), out = factor, layer.output
    whole: Value | None = None
    if w.count * largest > INT32_MAX:
        if shift < 0 or w.count >= 1 << 24:
            raise LayerError(f"'shift_value' is {shift}: sums of {w.count} elements over it have no kernel")
        high, low = w.sum_pair(lambda: S.abs(_number(k, layer, w)))
        total = k.changing("total", S.fma(S.cast(low, "float32"), S.cast(high, "float32"), 65536.0))
    else:
        whole = w.sum_of("whole", lambda: S.abs(_number(k, layer, w)), "int32")
        if shift < 0:
            k.assign(whole, whole >> k.number(min(-shift, 31)))
        total = k.changing("total", S.cast(whole, "float32"))
    k.assign(total, S.vsel(total, w.filled(1.0, "float32"), total > 0.0))
    with w.each():
        share = S.cast(S.cast(_number(k, layer, w) * k.number(scale), "float32") / total, "int32")
        # where the sum was 0 all elements are 0; where its shift made it 0, so is the result
        value = k.let(share, low=-largest * scale, high=largest * scale)
        if shift < 0 and whole is not None:
            value = k.let(S.vsel(value, 0, whole != 0), low=value.low, high=value.high)
        w.store("y", requantise(k, value, 1, max(shift, 0), out.scalar_zero, out.low, out.high))


def _quantised_l2(k: LayerKernel, layer: Layer, w: AxisLoop, factor: tuple[int, int], largest: int) -> None:
    (scale, shift), out = factor, layer.output
    drop = layer.integer("reciprocal_shift_value")
    if not 0 <= drop < 32:
        raise LayerError(f"'reciprocal_shift_value' is {drop}, expected 0 to 31")
    if w.count * largest * largest >= 1 << 47:
        raise LayerError(f"squares of {w.count} elements of up to {largest} do not fit 47 bits")
    table, zero = k.table(inverse_root_table().astype("uint16")), k.number(layer.input.scalar_zero)
    lower, upper = squares(w, lambda v: v + zero, largest)
    # as many bits as the sum has above 31, an even number
    above = k.held("above", S.max(48 - S.cast(S.clz(upper), "int32") - 31, 0))
    above = k.held("above", S.vsel(above, 0, upper != S.u32(0)))
    bits = k.held("bits", above + (above & 1))
    root = w.start("root", 0, "int32")
    shift_pair(root, lower, upper, bits)
    inverse_root(root, table, k.mask)
    excess = k.held("excess", S.max(17 - S.clz(root - 1), 0))
    times = k.held("factor", S.min(root >> excess, 32767))
    move = k.held("move", w.filled(k.number(shift + 31 - drop), "int32") - excess + (bits >> 1))
    bound = 1 << 18
    with w.each():
        part = k.let(clamp((_number(k, layer, w) * k.number(scale)) >> k.number(drop), -32768, 32767))
        product = k.let(part * times, low=-bound, high=bound)
        requantise_by(product, 1, move)
        w.store("y", requantise(k, product, 1, 0, out.scalar_zero, out.low, out.high))


@kernel("Moments")
def moments(layer: Layer) -> Kernel:
    x, axes, k = layer.input, layer.axes(), LayerKernel()
    whole = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    small = whole if layer.flag("keepdims", True) else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    if len(layer.outputs) != 2 or any(t.shape not in (small, whole) for t in layer.outputs):
        raise LayerError(f"its outputs are {[list(t.shape) for t in layer.outputs]}, expected two of {list(small)}")
    mean, variance = (replace(t, shape=whole) for t in layer.outputs)
    with k.active():
        w = AxisLoop(k, axes, {"x": x, "mean_out": mean, "variance_out": variance}, ("x",))
        with w.positions():
            _moments_of(k, layer, w)
    return k.kernel()


def _moments_of(k: LayerKernel, layer: Layer, w: AxisLoop) -> None:
    x = layer.input
    if not layer.is_quantised:
        average = w.mean("x")
        total = w.sum_of("squares", lambda: square_of(w.load("x") - average), "float32")
        w.store("mean_out", average)
        w.store("variance_out", k.let(total / k.number(float(w.count))))
        return
    scale, shift = layer.integer("input_scale_value", 1), layer.integer("input_shift_value", 0)
    low, high = sorted(((x.low * scale) >> shift, (x.high * scale) >> shift)) if 0 <= shift < 32 else (0, 1 << 31)
    largest = max(-low, high)
    if high - low > 65535 or max(abs(x.low * scale), abs(x.high * scale)) > INT32_MAX:
        raise LayerError(
            f"'input_scale_value' and 'input_shift_value' are {scale} and {shift}, whose results need over 16 bits"
        )
    factor, down = k.number(scale), k.number(shift)
    term = itself if (scale, shift) == (1, 0) else lambda v: (v * factor) >> down
    average = integer_mean(w, term, largest)
    spread, _ = divide(w, *squares(w, term, high - low, average))
    w.store("variance_out", _variance(k, layer, spread))
    kept = layer.outputs[0].integer
    w.store("mean_out", limited(k, average, kept.low, kept.high))


def _variance(k: LayerKernel, layer: Layer, spread: Value) -> Value:
    """A uint32 in the output's scale; above 8 bits in two halves that are rounded apart."""
    out = layer.outputs[1]
    scale, shift = layer.factor("var_scale_value", 1), layer.factor("var_shift_value", 0)
    if not 0 <= scale < 1 << 15:
        raise LayerError(f"'var_scale_value' is {scale}, expected at most 15 bits")
    if layer.input.integer.bits <= 8:
        whole = k.let(S.cast(S.min(spread, S.u32(0x7FFFFFFF)), "int32"), low=0, high=65535)
        return requantise(k, whole, scale, shift, out.scalar_zero, out.low, out.high)
    top = k.let(S.cast(spread >> S.u32(16), "int32"), low=0, high=65535)
    rest = k.let(S.cast(spread & S.u32(0xFFFF), "int32"), low=0, high=65535)
    if out.integer.bits > 16:
        raise LayerError(f"'{out.name}' is {out.dtype}; the variance of over 8 bits has kernels to at most 16 bits")
    # values beyond every output need not be distinguished
    first, second = (requantise(k, v, scale, n, 0, 0, 1 << 17) for v, n in ((top, shift - 16), (rest, shift)))
    both = k.let(first + second, low=0, high=1 << 18)
    return requantise(k, both, 1, 0, out.scalar_zero, out.low, out.high)


@elementwise("NormalizedMoments")
def normalised_moments(k: LayerKernel, layer: Layer, mean: Value, variance: Value, shift: Value) -> tuple[Value, Value]:
    if not layer.is_quantised:
        first = k.let(mean / k.number(float(counts_of(layer))))
        both = variance / k.number(float(counts_of(layer))) - first * first
        return k.let(first + shift), k.let(both)
    kind = layer.input.integer
    square = look_up(k, k.shifted(mean, -kind.low), layer.constant("lut"), kind.bits)
    u, v, moved = (k.shifted(x, t.scalar_zero) for x, t in zip((mean, variance, shift), layer.inputs, strict=True))
    less = k.let(0 - square, low=-square.high, high=-square.low)
    y, spread = layer.outputs
    return _two_products(k, layer, "mean", (u, moved), y), _two_products(k, layer, "var", (v, less), spread)


def _two_products(k: LayerKernel, layer: Layer, prefix: str, terms: tuple[Value, Value], out: Tensor) -> Value:
    """The sum of two integers with a factor each, requantised."""
    scale, *factors = three_scales(layer, prefix)
    if min(scale, *factors) < 0 or max(scale, *factors) >> 16:
        raise LayerError(f"'{prefix}_scale_value' is {[scale, *factors]}, expected numbers of 16 bits")
    ends = [sorted((v.low * f, v.high * f)) for v, f in zip(terms, factors, strict=True)]
    span = ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]
    shift = layer.integer(f"{prefix}_shift_value")
    if max(map(abs, span)) < 2**31:
        first, second = (v * k.number(f) for v, f in zip(terms, factors, strict=True))
        total = k.let(first + second, low=span[0], high=span[1])
        return requantise(k, total, scale, shift, out.scalar_zero, out.low, out.high)
    pair = Pair(k.let(terms[0] * 0), k.let(terms[0] * 0), *span)
    for v, f in zip(terms, factors, strict=True):
        k.paste(add_product, pair.high, pair.low, v, k.number(f))
    return requantise(k, pair, np.asarray(scale), np.asarray(shift), out.scalar_zero, out.low, out.high)

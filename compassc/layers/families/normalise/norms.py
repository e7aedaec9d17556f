"""Kernels of norms along axes and of moments: a sum of sizes, squares or elements, then numbers per position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compassc import build
from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import inverse_root_table
from compassc.layers.axes import AxisLoop
from compassc.layers.axis_sums import divide, integer_mean, squares
from compassc.layers.emit import look_up, requantise
from compassc.layers.families.normalise.reference import counts_of, smallest_norm, three_scales
from compassc.layers.kernels import elementwise, kernel
from compassc.layers.pairs import Pair, requantise_pair
from compassc.layers.source import Kernel, KernelSource, named
from compassc.layers.steps import Steps
from compassc.layers.vectors import add_product

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
    k = KernelSource()
    w = AxisLoop(k, layer.axes(), {"x": x, "y": y}, ("x", "y"), ("y",))
    if not layer.is_quantised:
        term = "S.abs({})" if method == "L1" else "square_of({})"
        w.sum_of("total", lambda: term.format(w.load("x").name), "float32")
        k.do(f"total = S.max(total, {w.filled(k.scalar(smallest_norm(layer)), 'float32')})")
        k.do("divisor = total + 0.0" if method == "L1" else "divisor = S.sqrt(total)")
        with w.each():
            w.store("y", f"{w.load('x').name} / divisor")
        return w.kernel()
    scale, shift = _single(layer)
    largest = max(abs(x.low + x.scalar_zero), abs(x.high + x.scalar_zero))
    if largest * scale > INT32_MAX:
        raise LayerError(f"'scale_value' is {scale}: elements of up to {largest} times it do not fit 32 bits")
    (_quantised_l1 if method == "L1" else _quantised_l2)(k, layer, w, (scale, shift), largest)
    return w.kernel()


def _number(k: KernelSource, layer: Layer, w: AxisLoop) -> Value:
    """An element plus the zero point."""
    return k.shifted(w.load("x"), layer.input.scalar_zero)


def _quantised_l1(k: KernelSource, layer: Layer, w: AxisLoop, factor: tuple[int, int], largest: int) -> None:
    """The quotient of the element times the scale and the sum, both rounded to float32, without its fraction."""
    (scale, shift), out = factor, layer.output
    if w.count * largest > INT32_MAX:
        if shift < 0 or w.count >= 1 << 24:
            raise LayerError(f"'shift_value' is {shift}: sums of {w.count} elements over it have no kernel")
        w.sum_pair(lambda: f"S.abs({_number(k, layer, w).name})")
        k.do('total = S.fma(S.cast(low, "float32"), S.cast(high, "float32"), 65536.0)')
    else:
        w.sum_of("whole", lambda: f"S.abs({_number(k, layer, w).name})", "int32")
        if shift < 0:
            k.do(f"whole = whole >> {k.scalar(min(-shift, 31))}")
        k.do('total = S.cast(whole, "float32")')
    k.do(f"total = S.vsel(total, {w.filled('1.0', 'float32')}, total > 0.0)")
    with w.each():
        share = f'S.cast(S.cast({_number(k, layer, w).name} * {k.scalar(scale)}, "float32") / total, "int32")'
        # where the sum was 0 all elements are 0; where its shift made it 0, so is the result
        value = k.let(share, "int32", -largest * scale, largest * scale)
        if shift < 0:
            value = k.let(f"S.vsel({value.name}, 0, whole != 0)", "int32", value.low, value.high)
        w.store("y", requantise(k, value, 1, max(shift, 0), out.scalar_zero, out.low, out.high).name)


def _quantised_l2(k: KernelSource, layer: Layer, w: AxisLoop, factor: tuple[int, int], largest: int) -> None:
    (scale, shift), out = factor, layer.output
    drop = layer.integer("reciprocal_shift_value")
    if not 0 <= drop < 32:
        raise LayerError(f"'reciprocal_shift_value' is {drop}, expected 0 to 31")
    if w.count * largest * largest >= 1 << 47:
        raise LayerError(f"squares of {w.count} elements of up to {largest} do not fit 47 bits")
    table = k.table(inverse_root_table().astype("uint16"))
    squares(w, f"{{x}} + {k.scalar(layer.input.scalar_zero)}", largest)
    # as many bits as the sum has above 31, an even number
    k.do('bits = 48 - S.cast(S.clz(upper), "int32") - 31')
    k.do("bits = S.max(bits, 0)")
    k.do("bits = S.vsel(bits, 0, upper != S.u32(0))")
    k.do("bits = bits + (bits & 1)")
    w.start("root", "0", "int32")
    k.do("shift_pair(root, lower, upper, bits)")
    k.do(f"inverse_root(root, {table}, mask)")
    k.do("excess = S.max(17 - S.clz(root - 1), 0)")
    k.do("factor = S.min(root >> excess, 32767)")
    k.do(f"move = {w.filled(k.scalar(shift + 31 - drop), 'int32')} - excess + (bits >> 1)")
    with w.each():
        part = k.let(f"clamp(({_number(k, layer, w).name} * {k.scalar(scale)}) >> {k.scalar(drop)}, -32768, 32767)")
        product = k.let(f"{part.name} * factor")
        k.do(f"requantise_by({product.name}, 1, move)")
        bound = 1 << 18
        value = named(product.name, "int32", -bound, bound)
        w.store("y", requantise(k, value, 1, 0, out.scalar_zero, out.low, out.high).name)


@kernel("Moments")
def moments(layer: Layer) -> Kernel:
    x, axes, k = layer.input, layer.axes(), KernelSource()
    whole = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    small = whole if layer.flag("keepdims", True) else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    if len(layer.outputs) != 2 or any(t.shape not in (small, whole) for t in layer.outputs):
        raise LayerError(f"its outputs are {[list(t.shape) for t in layer.outputs]}, expected two of {list(small)}")
    mean, variance = (replace(t, shape=whole) for t in layer.outputs)
    w = AxisLoop(k, axes, {"x": x, "mean_out": mean, "variance_out": variance}, ("x",))
    if not layer.is_quantised:
        w.mean("x")
        w.sum_of("squares", lambda: f"square_of({w.load('x').name} - mean)", "float32")
        w.store("mean_out", "mean")
        w.store("variance_out", f"squares / {k.scalar(float(w.count))}")
        return w.kernel()
    scale, shift = layer.integer("input_scale_value", 1), layer.integer("input_shift_value", 0)
    low, high = sorted(((x.low * scale) >> shift, (x.high * scale) >> shift)) if 0 <= shift < 32 else (0, 1 << 31)
    largest = max(-low, high)
    if high - low > 65535 or max(abs(x.low * scale), abs(x.high * scale)) > INT32_MAX:
        raise LayerError(
            f"'input_scale_value' and 'input_shift_value' are {scale} and {shift}, whose results need over 16 bits"
        )
    term = "{x}" if (scale, shift) == (1, 0) else f"(({{x}} * {k.scalar(scale)}) >> {k.scalar(shift)})"
    integer_mean(w, "x", term, largest)
    squares(w, f"{term} - mean", high - low, around_mean=True)
    divide(w, "spread", "remainder")
    w.store("variance_out", _variance(k, layer, w).name)
    kept = layer.outputs[0].integer
    w.store("mean_out", f"clamp(mean, {k.scalar(kept.low)}, {k.scalar(kept.high)})")
    return w.kernel()


def _variance(k: KernelSource, layer: Layer, w: AxisLoop) -> Value:
    """`spread` (uint32) in the output's scale; above 8 bits in two halves that are rounded apart."""
    out = layer.outputs[1]
    scale, shift = layer.factor("var_scale_value", 1), layer.factor("var_shift_value", 0)
    if not 0 <= scale < 1 << 15:
        raise LayerError(f"'var_scale_value' is {scale}, expected at most 15 bits")
    if layer.input.integer.bits <= 8:
        whole = k.let('S.cast(S.min(spread, S.u32(0x7FFFFFFF)), "int32")', "int32", 0, 65535)
        return requantise(k, whole, scale, shift, out.scalar_zero, out.low, out.high)
    top = k.let('S.cast(spread >> S.u32(16), "int32")', "int32", 0, 65535)
    rest = k.let('S.cast(spread & S.u32(0xFFFF), "int32")', "int32", 0, 65535)
    if out.integer.bits > 16:
        raise LayerError(f"'{out.name}' is {out.dtype}; the variance of over 8 bits has kernels to at most 16 bits")
    # values beyond every output need not be distinguished
    parts = [requantise(k, v, scale, n, 0, 0, 1 << 17) for v, n in ((top, shift - 16), (rest, shift))]
    both = k.let(" + ".join(p.name for p in parts), "int32", 0, 1 << 18)
    return requantise(k, both, 1, 0, out.scalar_zero, out.low, out.high)


@elementwise("NormalizedMoments")
def normalised_moments(
    k: Steps, layer: Layer, mean: build.Value, variance: build.Value, shift: build.Value
) -> tuple[build.Value, build.Value]:
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


def _two_products(
    k: Steps, layer: Layer, prefix: str, terms: tuple[build.Value, build.Value], out: Tensor
) -> build.Value:
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
    return requantise_pair(k, pair, np.asarray(scale), np.asarray(shift), out.scalar_zero, out.low, out.high)

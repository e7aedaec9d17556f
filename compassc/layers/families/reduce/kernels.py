"""Kernels of reductions: sums, extremes, norms and products along axes."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Number
from compassc.layers.axes import AxisLoop
from compassc.layers.axis_sums import integer_mean, itself, squares, sum_of_elements
from compassc.layers.emit import look_up
from compassc.layers.families.reduce.reference import METHODS, check_division
from compassc.layers.families.reduce.search import find_extreme
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import (
    across_max,
    across_min,
    across_product,
    across_sum_limited,
    add_saturated,
    add_squares,
    halve,
    halve_unsigned,
    requantise_by,
    square_of,
)
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import Pair, limited, requantise, saturated
from compassc.layers.vectors import positive_pair, wide_kind

INFINITE = {"MAX": "-inf", "MIN": "inf"}
ACROSS = {"MAX": across_max, "MIN": across_min}
VARIANCES = ("VARIANCE", "UNBIASED_VARIANCE")


@kernel("Reduce", tail=True)
def reduce(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    method, quantised = layer.word("method", choices=METHODS), layer.is_quantised
    k = LayerKernel()
    operands = {"x": layer.input, "y": (tail[-1] if tail else layer).output}
    _check_shape(layer)
    if quantised:
        check_division(layer, method)
    with k.active():
        if quantised and method in ("L1", "L2"):
            _norm(k, layer, operands, tail, method)
            return k.kernel()
        sequential = method == "PROD" and quantised
        w = AxisLoop(k, layer.axes(), operands, ("x",) if method in VARIANCES else (), sequential=sequential)
        with w.positions():
            w.finish(layer, tail, _reduced(k, layer, w, method))
    return k.kernel()


def _reduced(k: LayerKernel, layer: Layer, w: AxisLoop, method: str) -> Value:
    if method in ("MIN", "MAX"):
        return _extreme(k, layer, w, method)
    if method in ("ANY", "ALL"):
        return _logical(k, layer, w, method)
    if not layer.is_quantised:
        return _float(k, w, method)
    if method == "PROD":
        return _quantised_product(k, layer, w)
    return _quantised_sum(k, layer, w) if method in ("SUM", "MEAN") else _quantised_variance(k, layer, w)


def _check_shape(layer: Layer) -> None:
    axes = layer.axes()
    want = tuple(1 if i in axes else n for i, n in enumerate(layer.input.shape))
    if tuple(layer.output.shape) != want:
        raise LayerError(f"'{layer.output.name}' is declared as {list(layer.output.shape)}, expected {list(want)}")


def _extreme(k: LayerKernel, layer: Layer, w: AxisLoop, method: str) -> Value:
    x, extreme = layer.input, S.max if method == "MAX" else S.min
    kind = wide_kind(x)
    low, high = (x.low, x.high) if kind == "int32" else (0, 0)
    neutral = (low if method == "MAX" else high) if kind == "int32" else INFINITE[method]
    acc = w.start("acc", neutral, kind)
    with w.each():
        k.assign(acc, extreme(acc, w.active(w.load("x"), neutral, kind)))
    w.join(acc, ACROSS[method])
    return acc.within(low, high) if kind == "int32" else acc


def _logical(k: LayerKernel, layer: Layer, w: AxisLoop, method: str) -> Value:
    zero = layer.input.scalar_zero if layer.is_quantised else 0
    kind, neutral = wide_kind(layer.input), int(method == "ALL")
    joined, across = (S.min, across_min) if method == "ALL" else (S.max, across_max)
    acc = w.start("acc", neutral, "int32")
    with w.each():
        v = w.load("x")
        v = k.shifted(v, zero) if zero else v
        other = k.held("other", S.vsel(w.filled(1, "int32"), 0, v != w.filled(0, kind)))
        k.assign(acc, joined(acc, w.active(other, neutral, "int32")))
    w.join(acc, across)
    return k.let(S.cast(acc, "float32")) if wide_kind(layer.output) == "float32" else acc.within(0, 1)


def _float(k: LayerKernel, w: AxisLoop, method: str) -> Value:
    count = k.number(float(w.count - (method == "UNBIASED_VARIANCE")))
    if method == "PROD":
        acc = w.start("acc", 1.0, "float32")
        with w.each():
            k.assign(acc, acc * w.active(w.load("x"), 1.0, "float32"))
        if w.across:
            across_product(acc)
        return acc
    mean = w.mean("x") if method in VARIANCES else None
    acc = w.sum_of("acc", lambda: _term(method, w.load("x"), mean), "float32")
    if method in ("MEAN", *VARIANCES):
        return k.let(acc / count)
    return k.let(S.sqrt(acc)) if method == "L2" else acc


def _term(method: str, v: Value, mean: Value | None) -> Expression:
    """What a reduction of floats adds up of an element."""
    if method == "L1":
        return S.abs(v)
    if method == "L2":
        return v * v
    return v if mean is None else (v - mean) * (v - mean)


def _single(layer: Layer, prefix: str = "") -> tuple[int, int]:
    scale, shift = layer.scale_shift(prefix, of=1)
    return int(scale.reshape(-1)[0]), int(shift.reshape(-1)[0])


def _quantised_sum(k: LayerKernel, layer: Layer, w: AxisLoop) -> Value:
    out, x = layer.output, layer.input
    zero = x.scalar_zero
    span = w.count * min(x.low + zero, 0), w.count * max(x.high + zero, 0)
    if max(map(abs, span)) >= 2**31:
        pair = Pair(*w.sum_pair(lambda: k.shifted(w.load("x"), zero)), *span)
        if out.dtype == "int32" and not out.scalar_zero and _single(layer) == (1, 0):
            value = saturated(k, pair)
            return value if (out.low, out.high) == (value.low, value.high) else limited(k, value, out.low, out.high)
        return requantise(k, pair, *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high)
    total = sum_of_elements(w, zero).within(*span)
    return requantise(k, total, *_single(layer), out.scalar_zero, out.low, out.high)


def _quantised_variance(k: LayerKernel, layer: Layer, w: AxisLoop) -> Value:
    """The sum of squares of integers around the mean, rounded to float32 before it is scaled."""
    out, x = layer.output, layer.input
    bound = w.count * (x.high - x.low) ** 2
    mean = integer_mean(w)
    if bound > 2**31 - 256:
        lower, upper = squares(w, itself, x.high - x.low, mean)
        if w.count * ((x.high - x.low) // 2 + 2) ** 2 >= 1 << 47:
            raise LayerError(f"squares of {w.count} elements of {x.dtype} do not fit 47 bits")
        high, low = k.held("high", S.cast(upper, "int32")), k.held("low", S.cast(lower, "int32"))
        positive_pair(high, low)
        scale, shift = layer.scale_shift(of=1)
        pair = Pair(high, low, 0, min(bound, 1 << 47))
        return requantise(k, pair, scale, shift, out.scalar_zero, out.low, out.high, bits=24)
    acc = w.sum_of("acc", lambda: square_of(w.load("x") - mean), "int32")
    total = k.let(S.cast(S.cast(acc, "float32"), "int32"), low=0, high=bound + 128)
    return requantise(k, total, *_single(layer), out.scalar_zero, out.low, out.high)


def _factor(layer: Layer, scale: Number) -> int:
    if not 0 <= int(scale) < 1 << 15:
        raise LayerError(f"'scale_value' is {scale}, expected at most 15 bits")
    return int(scale)


def _norm(k: LayerKernel, layer: Layer, operands: dict[str, Tensor], tail: Sequence[Layer], method: str) -> None:
    """Sums of sizes or squares. They are shifted by as much as the largest of all needs to be 16 bits long."""
    out, x = layer.output, layer.input
    zero = x.scalar_zero
    largest = max(abs(x.low + zero), abs(x.high + zero))
    w = AxisLoop(k, layer.axes(), operands)
    if largest > 65535:
        raise LayerError(f"the zero point {zero} of '{x.name}' is larger than its type")
    scale, shift = _single(layer)
    bound = w.count * (largest if method == "L1" else largest * largest)

    def total() -> Value:
        found = w.start("total", 0, "uint32")
        with w.each():
            part = k.let(w.active(k.shifted(w.load("x"), zero), 0, "int32"))
            if method == "L1":
                add_saturated(found, S.cast(S.abs(part), "uint32"))
            else:
                add_squares(found, part)
        if w.across:
            across_sum_limited(found, S.u32(0xFFFFFFFF))
        return found

    drop = k.changing("drop", S.i32(0))
    if bound > 1 << 16:
        # every core searches all positions, so that all agree
        most = w.start("most", 0, "uint32")
        with w.positions(everywhere=True):
            k.assign(most, S.max(most, w.where_active(total(), "uint32")))
        k.assign(drop, S.max(16 - S.cast(S.clz(S.max(across_max(most)[0], S.u32(1)) - S.u32(1)), "int32"), 0))
    with w.positions():
        short = S.min(total() >> S.cast(drop, "uint32"), S.u32(65535))
        value = _by_drop(
            k, S.cast(short, "int32"), _factor(layer, scale), w.filled(k.let(k.number(shift) - drop), "int32")
        )
        if method == "L1":
            value = requantise(k, value, 1, 0, out.scalar_zero, out.low, out.high)
        else:
            value = look_up(k, limited(k, value, 0, 65535), layer.constant("sqrt_lut"), 16)
        w.finish(layer, tail, value)


def _by_drop(k: LayerKernel, value: Expression, factor: int, shift: Expression) -> Value:
    """A number of 16 bits times a factor over a power of two of each lane."""
    short = k.let(value, low=-(1 << 18), high=1 << 18)
    requantise_by(short, k.number(factor), shift)
    return short


def _quantised_product(k: LayerKernel, layer: Layer, w: AxisLoop) -> Value:
    out, zero = layer.output, layer.input.scalar_zero
    scale, shift = _single(layer)
    running = Product(k, layer, w, layer.input.low + zero < 0)
    with w.each():
        running.multiply(k.shifted(w.load("x"), zero))
    value = running.scaled(k.number(_factor(layer, scale)), k.number(shift))
    return requantise(k, value, 1, 0, out.scalar_zero, out.low, out.high)


class Product:
    """A running product that is kept within 16 bits, and how often it was halved for that."""

    def __init__(self, k: LayerKernel, layer: Layer, w: AxisLoop, signed: bool) -> None:
        x = layer.input
        largest = max(abs(x.low + x.scalar_zero), abs(x.high + x.scalar_zero))
        if largest > 65535 or (not signed and x.low + x.scalar_zero < 0):
            raise LayerError("its products do not fit 32 bits, which no kernel here computes with")
        self.k, self.signed = k, signed
        self.product = w.start("product", 1, "int32" if signed else "uint32")
        self.halvings = w.start("halvings", 0, "int32")

    def multiply(self, value: Value) -> None:
        factor: Expression = value if self.signed else S.cast(value, "uint32")
        self.k.assign(self.product, self.product * factor)
        if self.signed:
            halve(self.product, self.halvings, 15)
        else:
            halve_unsigned(self.product, self.halvings)

    def scaled(self, scale: Expression, shift: Expression) -> Value:
        """The product times a scale over 2^shift, in 17 bits and its sign."""
        found = self.k.let(S.cast(self.product, "int32"), low=-(1 << 18), high=1 << 18)
        requantise_by(found, scale, shift - self.halvings)
        return found


@kernel("ArgMinMax")
def arg_min_max(layer: Layer) -> Kernel:
    method = layer.word("method", choices=("MAX", "MIN"))
    _check_shape(layer)
    k = LayerKernel()
    with k.active():
        w = AxisLoop(k, [layer.axis()], {"x": layer.input, "y": layer.output})
        with w.positions():
            found = find_extreme(w, layer.input.dtype, method == "MIN", layer.flag("select_last_index", False))
            w.finish(layer, (), found.place.within(0, w.count - 1))
    return k.kernel()

"""Kernels of reductions: sums, extremes, norms and products along axes."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Number
from compassc.layers.axes import AxisLoop
from compassc.layers.axis_sums import integer_mean, squares, sum_of_elements
from compassc.layers.emit import look_up, requantise, wide_kind
from compassc.layers.exact import limited
from compassc.layers.families.reduce.reference import METHODS, check_division
from compassc.layers.families.reduce.search import find_extreme
from compassc.layers.kernels import kernel
from compassc.layers.pairs import held_pair, requantise_pair, saturated_pair
from compassc.layers.source import Kernel, KernelSource, named

INFINITE = {"MAX": '"-inf"', "MIN": '"inf"'}
VARIANCES = ("VARIANCE", "UNBIASED_VARIANCE")


@kernel("Reduce", tail=True)
def reduce(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    method, quantised = layer.word("method", choices=METHODS), layer.is_quantised
    k = KernelSource()
    operands = {"x": layer.input, "y": (tail[-1] if tail else layer).output}
    _check_shape(layer)
    if quantised:
        check_division(layer, method)
    if quantised and method in ("L1", "L2"):
        return _norm(k, layer, operands, tail, method)
    sequential = method == "PROD" and quantised
    w = AxisLoop(k, layer.axes(), operands, ("x",) if method in VARIANCES else (), sequential=sequential)
    if method in ("MIN", "MAX"):
        result = _extreme(k, layer, w, method)
    elif method in ("ANY", "ALL"):
        result = _logical(k, layer, w, method)
    elif quantised and method == "PROD":
        result = _quantised_product(k, layer, w)
    elif quantised:
        result = _quantised_sum(k, layer, w) if method in ("SUM", "MEAN") else _quantised_variance(k, layer, w)
    else:
        result = _float(k, w, method)
    w.finish(layer, tail, result)
    return w.kernel()


def _check_shape(layer: Layer) -> None:
    axes = layer.axes()
    want = tuple(1 if i in axes else n for i, n in enumerate(layer.input.shape))
    if tuple(layer.output.shape) != want:
        raise LayerError(f"'{layer.output.name}' is declared as {list(layer.output.shape)}, expected {list(want)}")


def _extreme(k: KernelSource, layer: Layer, w: AxisLoop, method: str) -> Value:
    x = layer.input
    kind = wide_kind(x)
    low, high = (x.low, x.high) if kind == "int32" else (0, 0)
    neutral = str(low if method == "MAX" else high) if kind == "int32" else INFINITE[method]
    how = method.lower()
    w.start("acc", neutral, kind)
    if kind == "float32":
        w.start("poison", "0.0", kind)
    with w.each():
        v = w.load("x").name
        k.do(f"acc = S.{how}(acc, {w.active(v, neutral, kind)})")
        if kind == "float32":
            # NaN anywhere is the result
            k.do(f"poison = poison + S.vsel({v}, 0.0, S.isnan({v}))")
    w.join("acc", f"across_{how}")
    if kind == "float32":
        w.join("poison", "across_sum")
        return k.let("acc + poison", kind)
    return named("acc", kind, low, high)


def _logical(k: KernelSource, layer: Layer, w: AxisLoop, method: str) -> Value:
    zero = layer.input.scalar_zero if layer.is_quantised else 0
    kind, neutral, how = wide_kind(layer.input), str(int(method == "ALL")), "min" if method == "ALL" else "max"
    w.start("acc", neutral, "int32")
    with w.each():
        v = w.load("x")
        v = k.shifted(v, zero) if zero else v
        k.do(f"other = S.vsel({w.filled('1', 'int32')}, 0, {v.name} != {w.filled('0', kind)})")
        k.do(f"acc = S.{how}(acc, {w.active('other', neutral, 'int32')})")
    w.join("acc", f"across_{how}")
    if wide_kind(layer.output) == "float32":
        return k.let('S.cast(acc, "float32")', "float32")
    return named("acc", "int32", 0, 1)


FLOAT_TERMS = {
    "SUM": "{v}",
    "MEAN": "{v}",
    "L1": "S.abs({v})",
    "L2": "{v} * {v}",
    "VARIANCE": "({v} - mean) * ({v} - mean)",
    "UNBIASED_VARIANCE": "({v} - mean) * ({v} - mean)",
}


def _float(k: KernelSource, w: AxisLoop, method: str) -> Value:
    count = k.scalar(float(w.count - (method == "UNBIASED_VARIANCE")))
    if method == "PROD":
        w.start("acc", "1.0", "float32")
        with w.each():
            k.do(f"acc = acc * {w.active(w.load('x').name, '1.0', 'float32')}")
        if w.across:
            k.do("across_product(acc)")
        return named("acc", "float32")
    if method in VARIANCES:
        w.mean("x")
    w.sum_of("acc", lambda: FLOAT_TERMS[method].format(v=w.load("x").name), "float32")
    if method in ("MEAN", *VARIANCES):
        return k.let(f"acc / {count}", "float32")
    return k.let("S.sqrt(acc)", "float32") if method == "L2" else named("acc", "float32")


def _single(layer: Layer, prefix: str = "") -> tuple[int, int]:
    scale, shift = layer.scale_shift(prefix, of=1)
    return int(scale.reshape(-1)[0]), int(shift.reshape(-1)[0])


def _quantised_sum(k: KernelSource, layer: Layer, w: AxisLoop) -> Value:
    out, x = layer.output, layer.input
    zero = x.scalar_zero
    span = w.count * min(x.low + zero, 0), w.count * max(x.high + zero, 0)
    if max(map(abs, span)) >= 2**31:
        w.sum_pair(lambda: k.shifted(w.load("x"), zero).name)
        if out.dtype == "int32" and not out.scalar_zero and _single(layer) == (1, 0):
            return limited(k, saturated_pair(k, held_pair()), out.low, out.high)
        return requantise_pair(k, held_pair(span), *layer.scale_shift(of=1), out.scalar_zero, out.low, out.high)
    sum_of_elements(w, "acc", "x", zero)
    return requantise(k, named("acc", "int32", *span), *_single(layer), out.scalar_zero, out.low, out.high)


def _quantised_variance(k: KernelSource, layer: Layer, w: AxisLoop) -> Value:
    """The sum of squares of integers around the mean, rounded to float32 before it is scaled."""
    out, x = layer.output, layer.input
    bound = w.count * (x.high - x.low) ** 2
    integer_mean(w, "x")
    if bound > 2**31 - 256:
        squares(w, "{x} - mean", x.high - x.low, around_mean=True)
        if w.count * ((x.high - x.low) // 2 + 2) ** 2 >= 1 << 47:
            raise LayerError(f"squares of {w.count} elements of {x.dtype} do not fit 47 bits")
        k.do('high = S.cast(upper, "int32")')
        k.do('low = S.cast(lower, "int32")')
        k.do("positive_pair(high, low)")
        scale, shift = layer.scale_shift(of=1)
        return requantise_pair(
            k, held_pair((0, min(bound, 1 << 47))), scale, shift, out.scalar_zero, out.low, out.high, bits=24
        )
    w.sum_of("acc", lambda: f"square_of({w.load('x').name} - mean)", "int32")
    total = k.let('S.cast(S.cast(acc, "float32"), "int32")', "int32", 0, bound + 128)
    return requantise(k, total, *_single(layer), out.scalar_zero, out.low, out.high)


def _factor(layer: Layer, scale: Number) -> int:
    if not 0 <= int(scale) < 1 << 15:
        raise LayerError(f"'scale_value' is {scale}, expected at most 15 bits")
    return int(scale)


def _norm(k: KernelSource, layer: Layer, operands: dict[str, Tensor], tail: Sequence[Layer], method: str) -> Kernel:
    """Sums of sizes or squares. They are shifted by as much as the largest of all needs to be 16 bits long."""
    out, x = layer.output, layer.input
    zero = x.scalar_zero
    largest = max(abs(x.low + zero), abs(x.high + zero))
    w = AxisLoop(k, layer.axes(), operands)
    if largest > 65535:
        raise LayerError(f"the zero point {zero} of '{x.name}' is larger than its type")
    scale, shift = _single(layer)
    bound = w.count * (largest if method == "L1" else largest * largest)

    def total() -> None:
        w.start("total", "0", "uint32")
        with w.each():
            v = k.shifted(w.load("x"), zero)
            part = k.let(w.active(v.name, "0", "int32"), "int32").name
            size = f'S.cast(S.abs({part}), "uint32")'
            k.do(f"add_saturated(total, {size})" if method == "L1" else f"add_squares(total, {part})")
        if w.across:
            k.do("across_sum_saturated(total)")

    lines: list[str] = ["drop = S.i32(0)"]
    if bound > 1 << 16:
        # every core searches all positions, so that all agree
        total()
        k.do(f"most = S.max(most, {w.where_active('total', 'uint32')})")
        lines = ["most = S.vbcast(S.u32(0), lanes=32)", *w.loop(everywhere=True)]
        lines.append("drop = S.max(16 - S.cast(S.clz(S.max(across_max(most)[0], S.u32(1)) - S.u32(1)), 'int32'), 0)")
        k.body.clear()
    total()
    k.do('short = S.cast(S.min(total >> S.cast(drop, "uint32"), S.u32(65535)), "int32")')
    k.do(f"requantise_by(short, {k.scalar(_factor(layer, scale))}, {w.filled(f'{k.scalar(shift)} - drop', 'int32')})")
    if method == "L1":
        value = requantise(k, named("short", "int32", -(1 << 18), 1 << 18), 1, 0, out.scalar_zero, out.low, out.high)
    else:
        at = k.let("clamp(short, 0, 65535)", "int32", 0, 65535)
        value = look_up(k, at, layer.constant("sqrt_lut"), 16)
    w.finish(layer, tail, value)
    return w.kernel(lines)


def _quantised_product(k: KernelSource, layer: Layer, w: AxisLoop) -> Value:
    out = layer.output
    scale, shift = _single(layer)
    signed = layer.input.low + layer.input.scalar_zero < 0
    begin_product(k, layer, w, signed)
    with w.each():
        multiply(k, w, k.shifted(w.load("x"), layer.input.scalar_zero).name, signed)
    k.do('p = S.cast(product, "int32")')
    k.do(f"requantise_by(p, {k.scalar(_factor(layer, scale))}, {k.scalar(shift)} - halvings)")
    return requantise(k, named("p", "int32", -(1 << 18), 1 << 18), 1, 0, out.scalar_zero, out.low, out.high)


def begin_product(k: KernelSource, layer: Layer, w: AxisLoop, signed: bool) -> None:
    """`product` and `halvings` of running products that are kept within 16 bits."""
    x = layer.input
    largest = max(abs(x.low + x.scalar_zero), abs(x.high + x.scalar_zero))
    if largest > 65535 or (not signed and x.low + x.scalar_zero < 0):
        raise LayerError("its products do not fit 32 bits, which no kernel here computes with")
    w.start("product", "1", "int32" if signed else "uint32")
    w.start("halvings", "0", "int32")


def multiply(k: KernelSource, w: AxisLoop, value: str, signed: bool) -> None:
    if signed:
        k.do(f"product = product * {value}")
        k.do("halve(product, halvings, 15)")
    else:
        k.do(f'product = product * S.cast({value}, "uint32")')
        k.do("halve_unsigned(product, halvings)")


@kernel("ArgMinMax")
def arg_min_max(layer: Layer) -> Kernel:
    method = layer.word("method", choices=("MAX", "MIN"))
    _check_shape(layer)
    k = KernelSource()
    w = AxisLoop(k, [layer.axis()], {"x": layer.input, "y": layer.output})
    find_extreme(k, w, layer.input.dtype, method == "MIN", layer.flag("select_last_index", False))
    w.finish(layer, (), named("place", "int32", 0, w.count - 1))
    return w.kernel()

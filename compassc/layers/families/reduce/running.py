"""Kernels of running sums and products: each lane goes along a line of its own, in the order of its elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.axes import AxisLoop
from compassc.layers.families.reduce.kernels import Product
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import add_to_pair
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import Pair, limited, requantise, saturated

Steps = tuple[Callable[[], None], Callable[[], Value]]
"""The functions that add an element, and that return the running value."""


@kernel("Cumulate")
def cumulate(layer: Layer) -> Kernel:
    method, x, y, k = layer.word("method", choices=("SUM", "PROD")), layer.input, layer.output, LayerKernel()
    if x.shape != y.shape:
        raise LayerError(f"its input is {list(x.shape)}, its output {list(y.shape)}")
    exclusive = layer.flag("exclusive", False)
    with k.active():
        w = AxisLoop(k, [layer.axis()], {"x": x, "y": y}, sequential=True)
        steps = _float if not layer.is_quantised else _sums if method == "SUM" else _products
        with w.positions():
            add, made = steps(k, layer, w, method)
            with w.each(layer.flag("reverse", False)):
                if not exclusive:
                    add()
                w.store("y", made())
                if exclusive:
                    add()
    return k.kernel()


def _float(k: LayerKernel, layer: Layer, w: AxisLoop, method: str) -> Steps:
    if layer.output.is_integer or layer.input.is_integer:
        raise LayerError(f"its input is {layer.input.dtype}, its output {layer.output.dtype}, expected floats")
    first = 1.0 if method == "PROD" else 0.0 if layer.flag("exclusive", False) else -0.0  # -0.0 + x is x
    acc = w.start("acc", first, "float32")

    def add() -> None:
        v: Expression = w.load("x")
        k.assign(acc, acc + v if method == "SUM" else acc * v)

    return add, lambda: acc


def _sums(k: LayerKernel, layer: Layer, w: AxisLoop, method: str) -> Steps:
    out, x = layer.output, layer.input
    zero = x.scalar_zero
    span = w.count * min(x.low + zero, 0), w.count * max(x.high + zero, 0)
    scale, shift = layer.scale_shift(of=1)
    wide = max(map(abs, span)) >= 2**31
    plain = out.dtype == "int32" and int(scale) == 1 and int(shift) == 0 and not out.scalar_zero
    if plain and max(map(abs, span)) >= 2**47:
        raise LayerError(f"sums of {w.count} elements of {x.dtype} do not fit 48 bits")
    if not wide:
        acc = w.start("acc", 0, "int32")
        return (
            lambda: k.assign(acc, acc + k.shifted(w.load("x"), zero)),
            lambda: requantise(k, acc.within(*span), scale, shift, out.scalar_zero, out.low, out.high),
        )
    high, low = w.start("high", 0, "int32"), w.start("low", 0, "int32")
    pair = Pair(high, low, *span)

    def made() -> Value:
        if plain:
            return limited(k, saturated(k, pair), out.low, out.high)
        return requantise(k, pair, scale, shift, out.scalar_zero, out.low, out.high)

    return lambda: add_to_pair(high, low, k.shifted(w.load("x"), zero)), made


def _products(k: LayerKernel, layer: Layer, w: AxisLoop, method: str) -> Steps:
    out, x, signed = layer.output, layer.input, layer.input.integer.signed
    scale, shift = (np.resize(v, w.count) for v in layer.scale_shift(of=w.count))
    if scale.min() < 0 or scale.max() >= 1 << 15:
        raise LayerError(f"'scale' is {int(scale.max())}, expected at most 15 bits")
    running = Product(k, layer, w, signed)
    factors, shifts = (k.pointer(v.astype(np.int32)) for v in (scale, shift))
    step = k.changing("step", S.i32(-1))

    def made() -> Value:
        k.assign(step, step + 1)
        value = running.scaled(factors[step], shifts[step])
        return requantise(k, value, 1, 0, out.scalar_zero, out.low, out.high)

    return lambda: running.multiply(k.shifted(w.load("x"), x.scalar_zero)), made

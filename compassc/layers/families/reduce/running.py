"""Kernels of running sums and products: each lane goes along a line of its own, in the order of its elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.axes import AxisLoop
from compassc.layers.emit import requantise
from compassc.layers.families.reduce.kernels import begin_product, multiply
from compassc.layers.kernels import kernel
from compassc.layers.pairs import held_pair, requantise_pair, saturated_pair
from compassc.layers.source import Kernel, KernelSource, named

Steps = tuple[Callable[[], None], Callable[[], str]]
"""The functions that add an element, and that return the running value."""
NEUTRAL = {"SUM": "0.0", "PROD": "1.0"}
SYMBOL = {"SUM": "+", "PROD": "*"}


@kernel("Cumulate")
def cumulate(layer: Layer) -> Kernel:
    method, x, y, k = layer.word("method", choices=("SUM", "PROD")), layer.input, layer.output, KernelSource()
    if x.shape != y.shape:
        raise LayerError(f"its input is {list(x.shape)}, its output {list(y.shape)}")
    exclusive = layer.flag("exclusive", False)
    w = AxisLoop(k, [layer.axis()], {"x": x, "y": y}, sequential=True)
    steps = _float if not layer.is_quantised else _sums if method == "SUM" else _products
    add, made = steps(k, layer, w, method)
    with w.each(layer.flag("reverse", False)):
        if not exclusive:
            add()
        w.store("y", made())
        if exclusive:
            add()
    return w.kernel()


def _float(k: KernelSource, layer: Layer, w: AxisLoop, method: str) -> Steps:
    if layer.output.is_integer or layer.input.is_integer:
        raise LayerError(f"its input is {layer.input.dtype}, its output {layer.output.dtype}, expected floats")
    w.start("acc", NEUTRAL[method], "float32")
    return lambda: k.do(f"acc = acc {SYMBOL[method]} {w.load('x').name}"), lambda: "acc"


def _sums(k: KernelSource, layer: Layer, w: AxisLoop, method: str) -> Steps:
    out, x = layer.output, layer.input
    zero = x.scalar_zero
    span = w.count * min(x.low + zero, 0), w.count * max(x.high + zero, 0)
    scale, shift = layer.scale_shift(of=1)
    names = ("high", "low") if max(map(abs, span)) >= 2**31 else ("acc",)
    for name in names:
        w.start(name, "0", "int32")

    def add() -> None:
        v = k.shifted(w.load("x"), zero).name
        k.do(f"add_to_pair(high, low, {v})" if len(names) > 1 else f"acc = acc + {v}")

    plain = out.dtype == "int32" and int(scale) == 1 and int(shift) == 0 and not out.scalar_zero
    if plain and max(map(abs, span)) >= 2**47:
        raise LayerError(f"sums of {w.count} elements of {x.dtype} do not fit 48 bits")

    def made() -> str:
        if len(names) > 1 and plain:
            limits = f"{k.scalar(out.low)}, {k.scalar(out.high)}"
            return k.let(f"clamp({saturated_pair(k, held_pair()).name}, {limits})").name
        if len(names) > 1:
            return requantise_pair(k, held_pair(span), scale, shift, out.scalar_zero, out.low, out.high).name
        return requantise(k, named("acc", "int32", *span), scale, shift, out.scalar_zero, out.low, out.high).name

    return add, made


def _products(k: KernelSource, layer: Layer, w: AxisLoop, method: str) -> Steps:
    out, x, signed = layer.output, layer.input, layer.input.integer.signed
    scale, shift = (np.resize(v, w.count) for v in layer.scale_shift(of=w.count))
    if scale.min() < 0 or scale.max() >= 1 << 15:
        raise LayerError(f"'scale' is {int(scale.max())}, expected at most 15 bits")
    begin_product(k, layer, w, signed)
    factors, shifts = (k.constant(v.astype(np.int32)) for v in (scale, shift))
    k.do("step = S.i32(-1)")

    def add() -> None:
        multiply(k, w, k.shifted(w.load("x"), x.scalar_zero).name, signed)

    def made() -> str:
        k.do("step = step + 1")
        k.do('p = S.cast(product, "int32")')
        k.do(f"requantise_by(p, {factors}[step], {shifts}[step] - halvings)")
        return requantise(k, named("p", "int32", -(1 << 18), 1 << 18), 1, 0, out.scalar_zero, out.low, out.high).name

    return add, made

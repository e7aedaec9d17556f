"""Depthwise convolutions of 8-bit integers, four cells of a row at once: windows of every width, step and distance."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import Layer, LayerError
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from tests.layers.cases import drawn, same, tensor


def depthwise(source: np.random.Generator, dtype: str, wide: int) -> Layer | None:
    """A layer with a window of so many columns; None where the image is too small for it."""
    n, h, w = source.integers(1, 3), *source.integers(4, 20, 2)
    c = int(source.choice([1, 5, 32, 33, 70]))
    kernel, stride, apart = (int(source.integers(1, 5)), wide), source.integers(1, 4, 2), source.integers(1, 4, 2)
    pads = source.integers(0, 3, 4)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, apart, strict=True)]
    made = [
        (size + int(pads[2 * i : 2 * i + 2].sum()) - r) // s + 1
        for i, (size, r, s) in enumerate(zip((h, w), reach, stride, strict=True))
    ]
    if min(made) < 1 or any(p >= r for p, r in zip(pads, np.repeat(reach, 2), strict=True)):
        return None
    attributes = {"num_output": c, "group": c, "kernel_y": kernel[0], "kernel_x": wide, "with_activation": "RELU"}
    attributes |= {f"stride_{a}": int(v) for a, v in zip("yx", stride, strict=True)}
    attributes |= {f"dilation_{a}": int(v) for a, v in zip("yx", apart, strict=True)}
    attributes |= {f"pad_{a}": int(v) for a, v in zip(("top", "bottom", "left", "right"), pads, strict=True)}
    x = tensor("x", (n, h, w, c), dtype, 1.0, int(source.integers(-100, 0)) if dtype == "uint8" else 3)
    constants = {
        "weights": source.integers(-128, 128, (c, *kernel, 1)).astype("int8"),
        "biases": source.integers(-9000, 9000, c).astype("int32"),
        "scale": source.integers(128, 256, c).astype("uint8"),
        "shift": source.integers(15, 19, c).astype("int8"),
    }
    y = tensor("y", (n, *made, c), "uint8", 1.0, 0)
    return Layer("layer", "DepthwiseConv", [x], [y], attributes, constants)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_windows_of_all_widths(tmp_path, dtype):
    source, done = np.random.default_rng(11), 0
    for wide in (1, 2, 3, 4, 5, 7, 9):
        for _ in range(5):
            layer = depthwise(source, dtype, wide)
            if layer is not None:
                same(layer, [drawn(source, layer.input)], tmp_path)
                done += "vzip" in kernel_of([layer]).text
    assert done > 10


def test_sums_that_dot_products_would_limit_go_another_way(tmp_path):
    """Biases near the end of 32 bits: what the move of signed inputs adds to them does not fit."""
    source = np.random.default_rng(12)
    layer = next(found for found in iter(lambda: depthwise(source, "int8", 3), 0) if found is not None)
    weights = np.full_like(layer.constants["weights"], -128)
    biases = np.full_like(layer.constants["biases"], 2**31 - 10000)
    changed = Layer(layer.name, layer.type, layer.inputs, layer.outputs, layer.attributes,
                    {**layer.constants, "weights": weights, "biases": biases})  # fmt: skip
    values = drawn(source, layer.input)
    try:
        same(changed, [values], tmp_path)
    except LayerError:
        assert evaluate(changed, [values])

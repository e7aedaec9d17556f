"""Element-wise layers that join the kernel of the layer before them: the same bits as in kernels of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.kernels import WITH_TAIL, kernel_of, load_kernels
from compassc.layers.samples import Draw, drawn
from tests.layers.harness import build, run

ENDS = ("Softmax", "LogSoftmax", "LayerNorm", "RMSNorm", "InstanceNorm", "GroupNorm", "MVN")
"""Heads whose every element is made in a second walk over the position."""
SHAPES = ((2, 3, 40), (3, 5, 6, 8), (4, 70))


def _tail(draw: Draw, out: Tensor) -> list[Layer]:
    """An activation on the head's output, and a sum with a further tensor."""
    shape = out.shape
    if not out.is_integer:
        a, other, y = (Tensor(n, shape, "float32") for n in ("a", "other", "end"))
        return [
            Layer("act", "LeakyRELU", (out,), (a,), {"negative_slope_value": 0.25}),
            Layer("sum", "Eltwise", (a, other), (y,), {"method": "ADD"}),
        ]
    a = Tensor("a", shape, out.dtype, 1.0, 0)
    other, y = Tensor("other", shape, "int8", 1.0, 3), Tensor("end", shape, "int16", 1.0, 5)
    act = Layer("act", "RELU", (out,), (a,), {"scale_value": 3, "shift_value": 2})
    factors = {"method": "ADD", "scale_value": [1, 3, 5], "shift_value": 1}
    return [act, Layer("sum", "Eltwise", (a, other), (y,), factors)]


def _chained(layers: list[Layer], values: dict[str, np.ndarray], how) -> np.ndarray:
    known = dict(values)
    for layer in layers:
        results = how(layer, [known[t.name] for t in layer.inputs])
        known |= {t.name: r for t, r in zip(layer.outputs, results, strict=True)}
    return known[layers[-1].output.name]


@pytest.mark.parametrize("name", ENDS)
def test_joined_layers_give_the_bits_of_layers_apart(name: str, tmp_path: Path):
    load_kernels()
    assert name in WITH_TAIL
    cases, kernels = [], {}
    for seed, dtype in enumerate(("float32", "int8", "uint8", "int16")):
        source = np.random.default_rng(seed)
        draw = Draw(source, f"h{seed}")
        head = drawn(draw, name, draw.tensor(SHAPES[seed % len(SHAPES)], dtype))
        if head is None or len(head.outputs) != 1:
            continue
        layers = [head, *_tail(draw, head.output)]
        whole = Layer("whole", name, (*head.inputs, layers[-1].inputs[1]), layers[-1].outputs)
        values = {t.name: draw.array(t.dtype, *t.shape) for t in whole.inputs}
        try:
            kernels[whole] = kernel_of(layers)
        except LayerError:
            continue  # such a head goes alone
        kernels |= {layer: kernel_of([layer]) for layer in layers}
        cases.append((whole, layers, values))
    build(list(kernels.values()), tmp_path)
    for whole, layers, values in cases:
        got, apart = (
            _chained(parts, values, lambda layer, x: run(kernels[layer], layer, x, tmp_path))
            for parts in ([whole], layers)
        )
        np.testing.assert_array_equal(got, apart)
        if layers[0].output.is_integer:
            np.testing.assert_array_equal(got, _chained(layers, values, evaluate))
    assert len(cases) >= 2

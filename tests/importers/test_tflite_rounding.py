"""How far quantised layers are from what TFLite computes, with scales and zero points drawn at random."""

import numpy as np
import pytest

from compassc.importers.tflite import import_bytes
from tests.choosing import some
from tests.importers import tflite_reference
from tests.importers.tflite_cases import PLAIN_CONV, POOL
from tests.importers.tflite_models import Model

SEEDS = 5
DEPTHWISE = {"depth_multiplier": 1, "options": "DepthwiseConv2DOptions"}


class Drawn:
    """A model of one operator in the making, of int8 or int16."""

    def __init__(self, seed, dtype):
        self.random, self.dtype, self.net = np.random.default_rng(seed), dtype, Model()
        self.fine = 1 if dtype == "int8" else 1 / 256

    def levels(self, scale=None):
        drawn = 10 ** self.random.uniform(-3, 0) * self.fine if scale is None else scale
        zero = int(self.random.integers(-128, 128)) if self.dtype == "int8" else 0
        return {"scale": float(np.float32(drawn)), "zero": zero}

    def input(self, name, shape, levels):
        return self.net.input(name, shape, self.dtype, **levels)

    def weights(self, shape, along, source):
        """Weights with scales per channel, and biases; and the scale of an average product."""
        many = shape[along]
        scales = (10 ** self.random.uniform(-3, -1, many)).astype(np.float32)
        w = self.random.integers(-127, 128, shape).astype(np.int8)
        filters = self.net.constant(w, scale=scales, zero=np.zeros(many), along=along)
        kind = np.int32 if self.dtype == "int8" else np.int64
        products = scales * np.float32(source["scale"])
        bias = self.net.constant(
            self.random.integers(-3000, 3000, many).astype(kind), scale=products, zero=np.zeros(many)
        )
        return filters, bias, float(products.mean()) * (1 if self.dtype == "int8" else 8)

    def convolution(self, operator, weights, along, **given):
        x = self.levels()
        source = self.input("x", (1, 6, 6, 3), x)
        filters, bias, product = self.weights(weights, along, x)
        out = self.levels(product * self.random.uniform(10, 200))
        shape = (1, 6, 6, weights[along])
        return self.net(operator, [source, filters, bias], shape, self.dtype, **out, **PLAIN_CONV, **given)

    def pair(self, operator, scale, same=False):
        x = self.levels()
        y = x if same else self.levels()
        inputs = [self.input("x", (1, 256), x), self.input("y", (1, 256), y)]
        out = x if same else self.levels(scale(x["scale"], y["scale"], self.random))
        return self.net(operator, inputs, (1, 256), self.dtype, **out)


def average(drawn):
    x = drawn.levels()
    source = drawn.input("x", (1, 9, 9, 4), x)
    return drawn.net("AVERAGE_POOL_2D", [source], (1, 9, 5, 4), "int8", "Pool2DOptions", padding="SAME", **POOL, **x)


def rescaled(drawn):
    x = drawn.levels()
    out = drawn.levels(x["scale"] * drawn.random.uniform(0.3, 3))
    return drawn.net("QUANTIZE", [drawn.input("x", (1, 256), x)], (1, 256), "int8", **out)


def table(drawn):
    x = drawn.levels()
    return drawn.net("HARD_SWISH", [drawn.input("x", (1, 256), x)], (1, 256), "int8", **drawn.levels(x["scale"]))


def total(x, y, random):
    return (x + y) * random.uniform(0.5, 1.2)


def product(x, y, random):
    return x * y * random.uniform(30, 150)


OPERATORS = {
    "convolution": (1, "int8", lambda d: d.convolution("CONV_2D", (4, 3, 3, 3), 0)),
    "depthwise": (1, "int8", lambda d: d.convolution("DEPTHWISE_CONV_2D", (1, 3, 3, 3), 3, **DEPTHWISE)),
    "convolution of 16 bits": (0, "int16", lambda d: d.convolution("CONV_2D", (4, 3, 3, 3), 0)),
    "add": (1, "int8", lambda d: d.pair("ADD", total)),
    "sub": (1, "int8", lambda d: d.pair("SUB", total)),
    "mul": (1, "int8", lambda d: d.pair("MUL", product)),
    "add of 16 bits": (1, "int16", lambda d: d.pair("ADD", total)),
    "maximum": (0, "int8", lambda d: d.pair("MAXIMUM", total, same=True)),
    "average": (1, "int8", average),
    "rescaled": (1, "int8", rescaled),
    "table": (0, "int8", table),
}
"""How many levels off at most, the type, and what makes the model."""


@pytest.mark.parametrize("name", OPERATORS)
def test_results_are_as_near_as_the_page_says(name, chained):
    most, dtype, make = OPERATORS[name]
    for seed in some(range(SEEDS)):
        drawn = Drawn(seed, dtype)
        content = drawn.net.bytes(make(drawn))
        graph, kind = import_bytes(content), np.iinfo(dtype)
        assert not {"DeQuantize", "Quantize"} & {layer.type for layer in graph.layers}
        given = [drawn.random.integers(kind.min, kind.max + 1, t.shape).astype(dtype) for t in graph.inputs]
        (got,), (want,) = chained(graph, *given), tflite_reference.run(content, given)
        assert np.abs(got.astype(np.int64) - want).max() <= most
        assert len(np.unique(want)) > 9, "nothing is compared where all is saturated"

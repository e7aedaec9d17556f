"""Element-wise layers whose sums and products do not fit 32 bits: saturated, or kept in two words, as the references do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from compassc.graph import LayerError
from compassc.layers.kernels import kernel_of
from tests.layers.cases import drawn, layer_of, same, tensor

EXTREME = np.array([-(2**31), 2**31 - 1, -1, 0, 1, 65535, 65536, -65536, 46341, -46341, 32768, -32768], "int32")
PAIRS = [np.array(v, "int32") for v in zip(*itertools.product(EXTREME, EXTREME), strict=True)]


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
def test_int32_results_saturate(tmp_path, kind):
    source = np.random.default_rng(3)
    a, b = (tensor(n, (300,), "int32") for n in "ab")
    for activation in ("NONE", "RELU"):
        layer = layer_of(kind, [a, b], "int32", {"with_activation": activation}, [(300,)])
        given = [np.resize(p, 300) for p in PAIRS]
        same(layer, given, tmp_path)
        same(layer, [drawn(source, t) >> source.integers(0, 31, 300).astype("int32") for t in (a, b)], tmp_path)


@pytest.mark.parametrize("kind", ["Negative", "Abs"])
def test_the_smallest_int32_has_no_opposite(tmp_path, kind):
    x = tensor("x", EXTREME.shape, "int32")
    same(layer_of(kind, [x], "int32", {}, [EXTREME.shape]), [EXTREME], tmp_path)


@pytest.mark.parametrize("axis", [1, 2])
def test_sums_of_int32_saturate(tmp_path, axis):
    source, shape = np.random.default_rng(4), (3, 9, 40)
    x, made = tensor("x", shape, "int32"), tuple(1 if i == axis else n for i, n in enumerate(shape))
    layer = layer_of("Reduce", [x], "int32", {"method": "SUM", "axis": [axis]}, [made])
    small = drawn(source, x) >> source.integers(0, 31, shape).astype("int32")
    same(layer, [np.where(source.random(shape) < 0.1, source.choice(EXTREME, shape), small)], tmp_path)
    mean = layer_of("Reduce", [x], "int32", {"method": "MEAN", "axis": [axis]}, [made])
    with pytest.raises(LayerError, match="'scale_value' is missing, which divides the MEAN"):
        kernel_of([mean])


@pytest.mark.parametrize(
    ("out", "scale", "shift"), [("int32", 135, 8), ("int32", 1, 0), ("uint8", 255, 31), ("int16", 129, 22)]
)
def test_the_largest_int32_is_2_31_to_relu(tmp_path, out, scale, shift):
    """The maximum is taken in float32, and the nearest float32 of the largest int32 is 2^31."""
    ends = np.array(
        [2**31 - 1 - n for n in (0, 1, 62, 63, 64, 65, 66, 127, 128, 191, 192, 193)] + [0, -1, 2**24 + 1], "int32"
    )
    layer = layer_of(
        "RELU", [tensor("a", ends.shape, "int32")], out, {"scale_value": scale, "shift_value": shift}, [ends.shape]
    )
    same(layer, [ends], tmp_path)


WIDE = [
    ("Mul", "uint16", {"scale_value": 20001, "shift_value": 31}, (0, 0)),
    ("Mul", "uint16", {"scale_value": 20001, "shift_value": 31}, (-30000, 400)),
    ("Mul", "int16", {"scale_value": 171, "shift_value": 23}, (-32767, -32767)),
    ("Add", "uint16", {"scale_value": [129, 32001, 32767], "shift_value": 23}, (0, 0)),
    ("Sub", "uint16", {"scale_value": [129, 32001, 32767], "shift_value": 23}, (0, 0)),
    ("Add", "int16", {"scale_value": [129, 32001, 32767], "shift_value": 23}, (1000, -1000)),
]


@pytest.mark.parametrize(("kind", "dtype", "numbers", "zeros"), WIDE)
def test_16_bit_operands_are_kept_in_two_words(tmp_path, kind, dtype, numbers, zeros):
    source = np.random.default_rng(4)
    inputs = [tensor(n, (5, 41), dtype, 1.0, z) for n, z in zip("ab", zeros, strict=True)]
    for out, activation in ((dtype, "NONE"), ("uint8", "RELU")):
        shift = numbers["shift_value"] + (8 if out == "uint8" else 0)
        layer = layer_of(kind, inputs, out, {**numbers, "shift_value": shift, "with_activation": activation}, [(5, 41)])
        same(layer, [drawn(source, t) for t in inputs], tmp_path)


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_squares_and_quotients_of_16_bits(tmp_path, dtype):
    source = np.random.default_rng(5)
    inputs = [tensor(n, (3, 70), dtype) for n in "ab"]
    numbers = {"scale_value": [30000, 16384, 16384], "shift_value": [30, 14, 14]}
    layer = layer_of("SquaredDifference", inputs, dtype, numbers, [(3, 70)])
    same(layer, [drawn(source, t) for t in inputs], tmp_path)
    table = np.minimum(65535, 65535 // np.maximum(np.arange(512), 1)).astype("uint16")
    layer = layer_of("Div", inputs, dtype, {"scale_value": 20000, "shift_value": 27}, [(3, 70)], lut=table)
    same(layer, [drawn(source, t) for t in inputs], tmp_path)


def test_int32_results_with_a_factor_beyond_32_bits_are_refused():
    a, b = (tensor(n, (8,), "int32") for n in "ab")
    with pytest.raises(LayerError, match="32"):
        kernel_of([layer_of("Add", [a, b], "int32", {"scale_value": 3, "shift_value": 1}, [(8,)])])

"""Functions of bytes that differ by channel, on every byte of every channel, and quotients of all pairs of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from tests.layers.harness import run

RNG = np.random.default_rng(77)
CHANNELS = 40


def all_bytes(dtype, channels):
    stored = np.arange(256).astype(np.uint8).view(numpy_dtype(dtype))
    return np.ascontiguousarray(np.broadcast_to(stored[:, None], (256, channels)))


def agrees(layer, inputs, folder):
    kernel = kernel_of([layer])
    (got,), (want,) = run(kernel, layer, inputs, folder), evaluate(layer, inputs)
    np.testing.assert_array_equal(got.reshape(-1), want.reshape(-1))
    return kernel.text


def tensors(types, zeros, shape):
    return [Tensor(n, shape, t, 2.0, z) for n, t, z in zip("xy", types, zeros, strict=True)]


@pytest.mark.parametrize("types", [("int8", "int8"), ("int8", "uint8"), ("uint8", "int8")])
@pytest.mark.parametrize("zeros", [(0, 0), (0, -7), (5, 3), (-128, 0)])
@pytest.mark.parametrize("steepest", [250, 500, 1200])
def test_slopes_of_negative_bytes(tmp_path, types, zeros, steepest):
    x, y = tensors(types, zeros, (256, CHANNELS))
    slopes = RNG.integers(0, steepest, CHANNELS).astype(np.int16)
    given = {"scale_value": 225, "shift_value": 8, "negative_slope_shift": 8}
    layer = Layer("f", "PRELU", (x,), (y,), given, {"negative_slope": slopes})
    text = agrees(layer, [all_bytes(types[0], CHANNELS)], tmp_path)
    # products beyond a byte go the long way, unless what follows limits them all
    if steepest == 250 and x.dtype == "int8" and zeros[0] == 0:
        assert "entries_of_half" in text


@pytest.mark.parametrize("slopes", [np.arange(-20, 20), np.full(CHANNELS, 128), np.zeros(CHANNELS, int)])
def test_slopes_that_fall_or_are_alike(tmp_path, slopes):
    x, y = tensors(("int8", "int8"), (0, 0), (256, CHANNELS))
    given = {"scale_value": 255, "shift_value": 8, "negative_slope_shift": 8}
    layer = Layer("f", "PRELU", (x,), (y,), given, {"negative_slope": slopes.astype(np.int16)})
    agrees(layer, [all_bytes("int8", CHANNELS)], tmp_path)


@pytest.mark.parametrize("types", [("int8", "int8"), ("int8", "uint8"), ("uint8", "uint8"), ("uint8", "int8")])
@pytest.mark.parametrize("activation", ["NONE", "RELU"])
@pytest.mark.parametrize("span", [1, 9000, 2_000_000])
def test_lines_by_channel(tmp_path, types, activation, span):
    """As the quantiser makes them: weights of 16 bits, each with its scale."""
    x, y = tensors(types, (4, -5), (256, CHANNELS))
    numbers = {
        "weights": np.where(RNG.integers(0, 8, CHANNELS), 32767, -32767).astype(np.int16),
        "biases": RNG.integers(-span, span, CHANNELS).astype(np.int32),
        "scale": RNG.integers(230, 640, CHANNELS).astype(np.uint16),
        "shift": np.full(CHANNELS, 24, np.int8),
    }
    layer = Layer("f", "BatchNorm", (x,), (y,), {"axis": 1, "with_activation": activation}, numbers)
    assert "line_of_bytes" in agrees(layer, [all_bytes(types[0], CHANNELS)], tmp_path)


@pytest.mark.parametrize("weights", [np.full(CHANNELS, 128), np.zeros(CHANNELS, int), np.arange(-20, 20)])
def test_lines_that_meet_halves(tmp_path, weights):
    """Ties to even are no line, so that the sums are taken as they are."""
    x, y = tensors(("int8", "int8"), (0, 0), (256, CHANNELS))
    numbers = {"weights": weights.astype(np.int16), "biases": np.zeros(CHANNELS, np.int32)}
    layer = Layer("f", "BatchNorm", (x,), (y,), {"axis": 1, "scale_value": 1, "shift_value": 8}, numbers)
    agrees(layer, [all_bytes("int8", CHANNELS)], tmp_path)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_lines_along_any_axis(tmp_path, axis):
    shape = (3, 5, 4, 37)
    x, y = tensors(("int8", "int8"), (0, 3), shape)
    numbers = {
        "weights": np.full(shape[axis], 32767, np.int16),
        "biases": RNG.integers(-9000, 9000, shape[axis]).astype(np.int32),
        "scale": RNG.integers(230, 640, shape[axis]).astype(np.uint16),
        "shift": np.full(shape[axis], 24, np.int8),
    }
    layer = Layer("f", "BatchNorm", (x,), (y,), {"axis": axis}, numbers)
    agrees(layer, [RNG.integers(-128, 128, shape).astype(np.int8)], tmp_path)


@pytest.mark.parametrize("rows", [1, 7, 8, 33, 410])
@pytest.mark.parametrize("channels", [16, 96, 160])
def test_rows_by_pairs(tmp_path, rows, channels):
    """The last pair of rows of a tile, and of a TEC's share, may be half of one."""
    x, y = tensors(("int8", "int8"), (0, 0), (1, rows, channels))
    b = Tensor("b", (channels,), "int8", 3.0, 1)
    inputs = [RNG.integers(-128, 128, s).astype(np.int8) for s in (x.shape, b.shape)]
    agrees(Layer("f", "Mul", (x, b), (y,), {"scale_value": 163, "shift_value": 14}), inputs, tmp_path)


@pytest.mark.parametrize("types", [("int8", "int8", "int8"), ("uint8", "int8", "uint8"), ("int8", "uint8", "int8")])
@pytest.mark.parametrize("zeros", [(0, 0, 0), (7, 3, -11)])
@pytest.mark.parametrize("factor", [(22, 12), (200, 22), (255, 31)])
def test_quotients_of_bytes(tmp_path, types, zeros, factor):
    a, b, y = (Tensor(n, (256, 256), t, 2.0, z) for n, t, z in zip("aby", types, zeros, strict=True))
    if max(abs(b.low + zeros[1]), abs(b.high + zeros[1])) > 255:
        b = Tensor("b", (256, 256), types[1], 2.0, 0)
    table = np.concatenate([[0], np.minimum(np.rint(65536 / np.arange(1, 256)), 65535)]).astype(np.uint16)
    given = {"scale_value": factor[0], "shift_value": factor[1]}
    first = np.ascontiguousarray(all_bytes(types[0], 256))
    second = np.ascontiguousarray(all_bytes(types[1], 256).T)
    text = agrees(Layer("f", "Div", (a, b), (y,), given, {"lut": table}), [first, second], tmp_path)
    assert "signed_bytes" in text or zeros[0]

"""Layers of bytes: every byte, and every pair of them."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.build import variable
from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.ir.dtypes import dtype
from compassc.layers.byte_functions import looked_up_apart, runs
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from compassc.layers.layer_kernel import LayerKernel
from tests.choosing import some
from tests.layers.harness import expect

RNG = np.random.default_rng(15)


def all_of(dtype):
    return np.arange(256).astype(np.uint8).view(numpy_dtype(dtype))


def agrees(layer, inputs, folder):
    (want,) = evaluate(layer, inputs)

    def compare(outputs):
        (got,) = outputs
        np.testing.assert_array_equal(got.reshape(-1), want.reshape(-1))

    expect(kernel_of([layer]), layer, inputs, folder, compare)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("out", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("kind", ["RELU", "Clip", "LeakyRELU", "Sigmoid", "Negative"])
def test_functions_of_a_byte(tmp_path, kind, dtype, out):
    table = {"lut": RNG.integers(*((0, 256) if out == "uint8" else (-128, 128)), 256).astype(numpy_dtype(out))}
    given = {"clip_min": -100, "clip_max": 90, "negative_slope_value": 26, "scale_value": 173, "shift_value": 7}
    x, y = Tensor("x", (256,), dtype, 3.0, 5), Tensor("y", (256,), out, 2.0, -3)
    agrees(Layer("f", kind, (x,), (y,), given, table if kind == "Sigmoid" else {}), [all_of(dtype)], tmp_path)


@pytest.mark.parametrize("method", ["ADD", "SUB", "MUL", "MAX", "MIN"])
@pytest.mark.parametrize("types", [("int8", "int8", "int8"), ("int8", "uint8", "int8"), ("uint8", "uint8", "uint8")])
@pytest.mark.parametrize("zeros", [(0, 0, 0), (7, -120, 33)])
@pytest.mark.parametrize("activation", ["NONE", "RELU"])
def test_pairs_of_bytes(tmp_path, method, types, zeros, activation):
    a, b, y = (Tensor(n, (256, 256), t, s, z) for n, t, s, z in zip("aby", types, (3.0, 5.0, 4.0), zeros, strict=True))
    factor = {"scale_value": 213, "shift_value": 14} if method == "MUL" else {"scale_value": [129, 32767, 20001]}
    layer = Layer(
        "f", "Eltwise", (a, b), (y,), {"method": method, "shift_value": 22, "with_activation": activation} | factor
    )
    pairs = np.broadcast_arrays(all_of(types[0])[:, None], all_of(types[1]))
    agrees(layer, [np.ascontiguousarray(p) for p in pairs], tmp_path)


def test_a_maximum_that_is_not_one_of_two_functions_has_no_tables():
    a, b, y = (Tensor(n, (9,), "int8", 1.0, 0) for n in "aby")
    given = {"method": "MAX", "with_activation": "LEAKYRELU", "negative_slope_value": -90, "scale_value": [1, 1, 1]}
    k = LayerKernel()
    k.stored_forms = {(name, "int8"): variable(name, dtype("int8x32")) for name in "ab"}
    values = [variable(name, dtype("int32x32"), -128, 127) for name in "ab"]
    with k.active():
        assert looked_up_apart(k, Layer("f", "Eltwise", (a, b), (y,), given), "MAX", values) is None
        plain = Layer("f", "Eltwise", (a, b), (y,), given | {"with_activation": "NONE"})
        assert looked_up_apart(k, plain, "MAX", values) is not None


def test_runs_of_functions_are_one_table():
    def layer(name, kind, x, y, **constants):
        tensors = [Tensor(t, (4,), "int8", 1.0, 0) for t in (x, y)]
        return Layer(name, kind, (tensors[0],), (tensors[1],), {"scale_value": 1, "shift_value": 0}, constants)

    first, second = layer("f", "RELU", "a", "b"), layer("g", "Negative", "b", "c")
    slopes = layer("h", "PRELU", "c", "d", negative_slope=np.ones(4, np.int8))
    assert [[x.name for x in run] for run in runs([first, second, slopes])] == [["f", "g"], ["h"]]


@pytest.mark.parametrize("dtype", ["float32", "int8", "int16"])
@pytest.mark.parametrize("channels", [1, 3, 32, 100, 1001, 2500])
def test_operands_that_repeat_along_the_channels(tmp_path, dtype, channels):
    whole = dtype != "float32"
    for rows in some((1, 7, 301) if channels < 1000 else (9,)):
        x, b, y = (
            Tensor(n, s, dtype, *((3.0, z) if whole else ()))
            for n, s, z in (("x", (1, rows, channels), 2), ("b", (channels,), -1), ("y", (1, rows, channels), 3))
        )
        inputs = [
            (RNG.integers(t.low, t.high + 1, t.shape) if whole else RNG.normal(0, 1, t.shape)).astype(dtype)
            for t in (x, b)
        ]
        given = {"scale_value": [200, 130, 250], "shift_value": 16} if whole else {}
        agrees(Layer("f", "Add", (x, b), (y,), given), inputs, tmp_path)


@pytest.mark.parametrize("channels", [1, 3, 32])
def test_normalisation_by_channel(tmp_path, channels):
    x, y = Tensor("x", (2, 50, channels), "int8", 3.0, 4), Tensor("y", (2, 50, channels), "int8", 2.0, -5)
    numbers = {"weights": RNG.integers(-128, 128, channels).astype("int8")}
    numbers |= {"biases": RNG.integers(-9000, 9000, channels).astype("int32")}
    given = {"axis": 2, "scale_value": 211, "shift_value": 15}
    values = RNG.integers(-128, 128, x.shape).astype("int8")
    agrees(Layer("f", "BatchNorm", (x,), (y,), given, numbers), [values], tmp_path)

"""Forms of layers that are rarely met: kernels give what the references give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError
from compassc.layers.declare import evaluate
from tests.layers.cases import drawn, layer_of, same, tensor


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(81)


@pytest.mark.parametrize("shape", [(40,), (3, 7), (2, 3, 2, 3)])
def test_where_alone_gives_indices(shape, source, tmp_path):
    for dtype, zero, to in (("int8", 2, "int32"), ("uint8", 0, "uint16"), ("int16", 0, "int16")):
        x, y = tensor("x", shape, dtype, 1.0, zero), tensor("y", (int(np.prod(shape)), len(shape)), to)
        case = Layer("w", "Where", [x], [y])
        same(case, [source.integers(-3 if dtype != "uint8" else 0, 2, shape).astype(dtype)], tmp_path)
        same(case, [np.full(shape, 1, dtype)], tmp_path)


def test_negative_pads_take_elements_off(source, tmp_path):
    for mode in ("CONSTANT", "EDGE", "REFLECT"):
        for dtype in ("int8", "float32"):
            x, y = tensor("x", (4, 9, 35), dtype), tensor("y", (4, 7, 36), dtype)
            given = {"mode": mode, "pads": [[1, -1], [-3, 1], [2, -1]], "constant_value": 5}
            same(Layer("p", "Pad", [x], [y], given), [drawn(source, x)], tmp_path)


SLICES: tuple[tuple[Any, ...], ...] = (  # shape, begin, end, axes, steps, result
    ((4, 9, 35), [1, -7], [4, -1], [0, 1], None, (3, 6, 35)),
    ((4, 9, 35), [-1, 30], [-100, 3], [0, 2], [-2, -1], (2, 9, 27)),
    ((4, 9, 35), [0, 0, 1], [99, 9, 35], None, None, (4, 9, 34)),
    ((5, 6), [1], [5], [-1], [3], (5, 2)),
    ((5, 6), [2, 0], [9, 9], [0, 1], [2, 1], (2, 6)),
)


@pytest.mark.parametrize("case", range(len(SLICES)))
def test_slices_by_inputs(case, source, tmp_path):
    shape, begin, end, axes, steps, made = SLICES[case]
    for dtype in ("int8", "float32"):
        numbers = [np.asarray(v, "int32") for v in (begin, end, axes, steps) if v is not None]
        inputs = [tensor("x", shape, dtype), *(tensor(f"n{i}", v.shape, "int32") for i, v in enumerate(numbers))]
        layer = Layer("s", "Slice", inputs, [tensor("y", made, dtype)])
        same(layer, [drawn(source, inputs[0]), *numbers], tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("kind", ["LEAKYRELU", "PRELU"])
def test_leaks_of_sums_beyond_32_bits(kind, dtype, source, tmp_path):
    """16-bit inputs with weights of 16 bits, in groups that do not fill whole vectors."""
    for groups, outputs in ((1, 40), (2, 70)):
        depth = 36
        x, y = tensor("x", (3, 1, 5, depth * groups), "int16"), tensor("y", (3, 1, 5, outputs), dtype)
        weights = source.integers(-32768, 32768, (outputs, 1, 1, depth)).astype("int16")
        constants = {"weights": weights, "biases": source.integers(-(2**31), 2**31, outputs).astype("int32")}
        constants |= {"negative_slope": source.integers(-300, 300, outputs).astype("int16")} if kind == "PRELU" else {}
        given = {f"{n}_{a}": 1 for n in ("kernel", "stride", "dilation") for a in "xy"}
        given |= {
            "with_activation": kind,
            "negative_slope_value": 77,
            "negative_slope_shift": 8,
            "group": groups,
            "scale_value": 20000,
            "shift_value": 39 if dtype != "int16" else 31,
        }
        same(Layer("c", "Convolution", [x], [y], given, constants), [drawn(source, x)], tmp_path)


def test_slopes_per_channel_belong_to_their_channels_in_groups(source, tmp_path):
    for dtype in ("int8", "float32"):
        x, y = tensor("x", (1, 2, 3, 4), dtype), tensor("y", (1, 2, 3, 70), dtype)
        given: dict[str, Any] = {f"{n}_{a}": 1 for n in ("kernel", "stride", "dilation") for a in "xy"}
        given |= {
            "with_activation": "PRELU",
            "negative_slope_shift": 7,
            "group": 2,
            "scale_value": 200,
            "shift_value": 13,
        }
        if dtype == "int8":
            constants = {
                "weights": source.integers(-128, 128, (70, 1, 1, 2)).astype("int8"),
                "biases": source.integers(-99, 99, 70).astype("int32"),
                "negative_slope": source.integers(-128, 128, 70).astype("int8"),
            }
        else:
            constants = {
                "weights": source.normal(0, 1, (70, 1, 1, 2)).astype("float32"),
                "negative_slope": source.normal(0, 1, 70).astype("float32"),
            }
        same(Layer("c", "Convolution", [x], [y], given, constants), [drawn(source, x)], tmp_path, 1e-6)


def test_whole_numbers_of_32_bits_lose_their_fraction(source, tmp_path):
    for scale, shift in ((200, 7), (33333, 20), (65535, 33), (255, 0), (3, -2), (40000, 47)):
        x, w = tensor("x", (20, 65), "int8"), source.integers(-128, 128, (40, 65)).astype("int8")
        constants = {"weights": w, "biases": source.integers(-(2**30), 2**30, 40).astype("int32")}
        case = Layer(
            "f",
            "FullyConnected",
            [x],
            [tensor("y", (20, 40), "int32")],
            {"num_output": 40, "scale_value": scale, "shift_value": shift},
            constants,
        )
        same(case, [drawn(source, x)], tmp_path)


def test_biases_with_float_scales(source, tmp_path):
    for dtype in ("int8", "uint8", "int16"):
        x = tensor("x", (3, 7, 45), dtype, 1.0, 3)
        constants = {n: source.normal(0, 3, 45).astype("float32") for n in ("scale1", "biases", "scale2")}
        case = layer_of("BiasAdd", [x], dtype, {"axis": 2}, [(3, 7, 45)], **constants)
        same(case, [drawn(source, x)], tmp_path)


def test_matrix_products_of_32_bits_lose_their_fraction(source, tmp_path):
    a, b, y = tensor("a", (5, 40), "int8"), tensor("b", (40, 7), "int8"), tensor("y", (5, 7), "int32")
    case = Layer("m", "MatMul", [a, b], [y], {"scale_value": 201, "shift_value": 9})
    same(case, [drawn(source, a), drawn(source, b)], tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32"])
def test_gathers_with_a_constant_in_place_of_an_input(dtype, source, tmp_path):
    index = np.asarray([[4, -1, 0], [2, 2, 1]], "int32")
    for inner in (1, 33):
        x = tensor("x", (2, 5, inner), dtype)
        y = tensor("y", (2, 2, 3, inner), dtype)
        layer = Layer("g", "Gather", [x], [y], {"axis": 1, "method": "IDX_LUT"}, {"lut": index})
        same(layer, [drawn(source, x)], tmp_path)
        words, at = drawn(source, x), tensor("i", index.shape, "int32")
        layer = Layer("g", "Gather", [at], [y], {"axis": -2}, {"lut": words})
        same(layer, [index], tmp_path)
        wanted = evaluate(layer, [index])[0]
        np.testing.assert_array_equal(wanted, words.take(index, 1))
    with pytest.raises(LayerError, match="'lut' is missing"):
        evaluate(Layer("g", "Gather", [x], [y], {"axis": 1}), [words])

"""Elements in order, and running sums, against their references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from tests.choosing import some
from tests.layers.cases import check, drawn, same, tensor
from tests.layers.harness import run

SHAPES = (((3, 40), 1), ((2, 7, 35), 1), ((50,), 0), ((2, 3, 4), 0), ((4, 1), 1), ((2, 3, 2, 2, 5), 2))
TYPES = ("int8", "float32", "uint8", "float16", "int16", "int32")


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(51)


def orders() -> Iterator[Layer]:
    for i, (shape, axis) in enumerate(SHAPES):
        for j in range(3):
            dtype, n = TYPES[(i + 2 * j) % len(TYPES)], shape[axis]
            x = tensor("x", shape, dtype)
            many = n if j == 2 else min(n, 3 + i)
            made = tuple(many if a == axis else m for a, m in enumerate(shape))
            outputs = [tensor("y", made, dtype), tensor("i", made, ("int32", "uint16", "uint32")[(i + j) % 3])]
            given: dict[str, Any] = {
                "axis": axis,
                "k": many,
                "largest": (i + j) % 2 == 0,
                "descending": i % 2 == 0,
                "select_index": ("last", "first")[i % 2],
            }
            yield Layer("o", "Sort" if j == 2 else "TopK", [x], outputs[: 1 + (i != 1)], given)


def test_orders_are_those_of_the_references(source, tmp_path):
    for i, case in some(enumerate(orders())):
        check(case, source, tmp_path, narrow=i % 2 == 0)


def test_what_is_not_a_number_counts_as_the_largest(source, tmp_path):
    for case in some(case for case in orders() if case.input.dtype == "float32"):
        x = drawn(source, case.input)
        x.reshape(-1)[::3] = np.nan
        x.reshape(-1)[1::5], x.reshape(-1)[2::5] = np.inf, -np.inf
        for got, want in some(zip(run(kernel_of([case]), case, [x], tmp_path), evaluate(case, [x]), strict=True)):
            np.testing.assert_array_equal(got, want)


EXTREMES = ((((3, 40), 1), False), (((7, 33), 0), True), (((4, 32), 1), True))


@pytest.mark.parametrize("method", ["MAX", "MIN"])
@pytest.mark.parametrize(("size", "last"), EXTREMES)
def test_what_is_not_a_number_is_the_extreme_before_infinities(size, last, method, source, tmp_path):
    shape, axis = size
    y = tensor("y", tuple(1 if i == axis else n for i, n in enumerate(shape)), "int32")
    given = {"axis": axis, "method": method, "select_last_index": last}
    case = Layer("e", "ArgMinMax", [tensor("x", shape, "float32")], [y], given)
    for values in ([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], [np.inf, -np.inf], [np.nan]):
        x = source.choice(np.array(values, np.float32), shape)
        (got,), (want,) = run(kernel_of([case]), case, [x], tmp_path), evaluate(case, [x])
        np.testing.assert_array_equal(got, want)


def test_a_number_of_elements_that_the_outputs_do_not_have_is_refused_with_both():
    case = next(iter(orders()))
    wrong = Layer("o", "TopK", case.inputs, case.outputs, {**case.attributes, "k": 9})
    with pytest.raises(LayerError, match="'k' is 9, which wants 9 elements; the outputs have 3"):
        kernel_of([wrong])


def runs() -> Iterator[Layer]:
    for i, (shape, axis) in enumerate(SHAPES):
        for j, dtype in enumerate(("int8", "float32", "uint8", "int16", "float16")):
            method = ("SUM", "PROD")[(i + j) % 2]
            zero = 3 if "int" in dtype else 0
            given: dict[str, Any] = {
                "axis": axis,
                "method": method,
                "exclusive": (i + j) % 3 == 0,
                "reverse": j % 2 == 1,
                "scale_value": 20113,
                "shift_value": 17,
            }
            constants = {}
            if method == "PROD" and zero:
                n = shape[axis]
                constants = {
                    "scale": (np.arange(n) * 300 + 9000).astype("uint16"),
                    "shift": np.arange(n).astype("int32") % 9 + 12,
                }
            y = tensor("y", shape, "uint8" if dtype == "int8" else dtype, 1.0, 5 if zero else 0)
            yield Layer("c", "Cumulate", [tensor("x", shape, dtype, 1.0, zero)], [y], given, constants)


def test_running_sums_are_those_of_the_references(source, tmp_path):
    for case in some(list(runs())[::2]):
        same(case, [drawn(source, case.input, narrow=not case.input.is_integer)], tmp_path, 1e-6)


def test_running_sums_beyond_32_bits(tmp_path):
    x, y = tensor("x", (40000, 2), "int16", 1.0, 32000), tensor("y", (40000, 2), "int16")
    case = Layer("c", "Cumulate", [x], [y], {"axis": 0, "method": "SUM", "scale_value": 27000, "shift_value": 31})
    same(case, [np.full(x.shape, 32767, "int16")], tmp_path)


@pytest.mark.parametrize("given", [{}, {"exclusive": True}, {"reverse": True}])
def test_running_sums_of_plain_integers_are_limited_to_32_bits(source, tmp_path, given):
    x, y = (Tensor(n, (3, 40, 5), "int32") for n in "xy")
    case = Layer("c", "Cumulate", (x,), (y,), {"axis": 1, "method": "SUM", **given})
    for most in (1000, 2**31 - 1):
        same(case, [source.integers(-most, most, x.shape).astype("int32")], tmp_path)

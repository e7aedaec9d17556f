"""Norms of vectors, moments and local responses against their references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer
from tests.choosing import some
from tests.layers.cases import check, same, tensor

SHAPES: tuple[tuple[tuple[int, ...], list[int]], ...] = (
    ((3, 40), [1]),
    ((2, 5, 33), [1]),
    ((2, 3, 4, 9), [1, 2]),
    ((60,), [0]),
    ((4, 1, 3), [1]),
)
TYPES = ("int8", "uint8", "int16", "float32", "float16")


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(61)


def zero_of(dtype: str) -> int:
    return 3 if "int" in dtype else 0


def norms() -> Iterator[Layer]:
    for i, (shape, axes) in enumerate(SHAPES):
        for j, dtype in enumerate(TYPES):
            method, wide = ("L1", "L2")[(i + j) % 2], dtype == "int16"
            given: dict[str, Any] = {"method": method, "axis": axes, "scale_value": 30000 if wide else 180}
            given |= {"shift_value": 0 if method == "L1" else 5, "reciprocal_shift_value": 15 if wide else 1}
            x, y = (
                tensor("x", shape, dtype, 1.0, 0 if wide else zero_of(dtype)),
                tensor("y", shape, dtype, 1.0, zero_of(dtype)),
            )
            yield Layer("n", "Normalization", [x], [y], given | {"epsilon": 1e-6})


def kept(shape: tuple[int, ...], axes: list[int], keep: bool) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)


def moments() -> Iterator[Layer]:
    for i, (shape, axes) in enumerate(SHAPES):
        for j, dtype in enumerate(TYPES):
            keep = (i + j) % 2 == 0
            made = kept(shape, axes, keep)
            if not made:
                continue
            second = {"int8": "uint8", "uint8": "uint8", "int16": "uint16"}.get(dtype, dtype)
            outputs = [tensor("m", made, dtype), tensor("v", made, second, 1.0, zero_of(dtype))]
            given: dict[str, Any] = {
                "axis": axes,
                "keepdims": keep,
                "var_scale_value": 201,
                "var_shift_value": 13 if j < 2 else 22,
            }
            given |= {"input_scale_value": 3, "input_shift_value": 2} if i % 3 == 0 and j != 2 else {}
            yield Layer("m", "Moments", [tensor("x", shape, dtype, 1.0, zero_of(dtype))], outputs, given)


def responses() -> Iterator[Layer]:
    for i, dtype in enumerate((*TYPES, "uint16")):
        for j, (method, size) in enumerate((("ACROSS_CHANNELS", 5), ("ACROSS_CHANNELS", 2), ("WITHIN_CHANNEL", 3))):
            shape = ((1, 3, 4, 35), (2, 5), (2, 3, 4, 7))[j]
            given: dict[str, Any] = {"method": method, "size": size, "alpha": 0.3, "beta": 0.75, "bias": 1.5}
            given |= {
                "scale_sum_value": 200,
                "shift_sum_value": (9, 9, 23)[i % 3],
                "scale_value": 180,
                "shift_value": 20,
            }
            table = np.sort(np.random.default_rng(j).integers(0, 65536, 256)).astype("uint16")[::-1]
            zero = 0 if dtype in ("int16", "uint16") else zero_of(dtype)
            x, y = tensor("x", shape, dtype, 1.0, zero), tensor("y", shape, dtype, 1.0, zero_of(dtype))
            yield Layer("r", "LRN", [x], [y], given, {"lut": np.ascontiguousarray(table)} if zero_of(dtype) else {})


@pytest.mark.parametrize("cases", [norms, moments, responses])
def test_kernels_give_what_the_references_give(cases, source, tmp_path):
    for i, case in some(enumerate(list(cases())[::2])):
        check(case, source, tmp_path, narrow=i % 3 == 2)


def test_a_vector_of_zeros_has_no_norm(tmp_path):
    for case in some(list(norms())[::3]):
        if case.input.dtype == "uint8":
            continue  # it does not hold what stands for 0
        zero = -case.input.scalar_zero if case.input.is_integer else 0
        same(case, [np.full(case.input.shape, zero, case.input.dtype)], tmp_path)


def sufficient() -> Iterator[Layer]:
    for i, dtype in enumerate(TYPES):
        zero = zero_of(dtype)
        inputs = [tensor(n, (3, 45), dtype, 1.0, z if zero else 0) for n, z in (("m", 3), ("v", -2), ("s", 1))]
        outputs = [tensor(n, (3, 45), "int8" if dtype == "uint8" else dtype, 1.0, zero) for n in ("mean", "variance")]
        given = {"counts": 7.0, "mean_scale_value": [200, 32767, 12000], "mean_shift_value": 23 if i < 2 else 24}
        given |= {"var_scale_value": [190, 30000, 250], "var_shift_value": 23}
        table = {"lut": (np.linspace(-4, 4, 256) ** 2 * 4000).astype("uint16")} if zero else {}
        yield Layer("n", "NormalizedMoments", inputs, outputs, given, table)


def test_moments_from_sums(source, tmp_path):
    for case in some(sufficient()):
        check(case, source, tmp_path)


def test_moments_of_many_elements(tmp_path):
    """Sums of elements and of squares are beyond 32 bits."""
    x = tensor("x", (70000, 3), "int16")
    outputs = [tensor("m", (1, 3), "int16"), tensor("v", (1, 3), "uint16")]
    given = {"axis": [0], "keepdims": True, "var_scale_value": 16384, "var_shift_value": 29}
    case = Layer("m", "Moments", [x], outputs, given)
    data = np.full(x.shape, 32767, "int16")
    data[: 35000 // 3, 1], data[:, 2] = -32768, np.arange(70000) % 65536 - 32768
    same(case, [data], tmp_path)

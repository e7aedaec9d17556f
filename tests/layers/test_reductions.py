"""Reductions, searches, sorting and running sums against their references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compassc.layers.families.reduce.reference import METHODS
from compassc.layers.layer import Layer
from tests.layers.cases import check, tensor

SHAPES: list[tuple[tuple[int, ...], list[int]]] = [
    ((3, 40), [1]),
    ((2, 5, 33), [1]),
    ((2, 24, 2, 2), [2, 3]),
    ((2, 3, 4, 5), [0, 2]),
    ((3, 7, 2, 35), [1, 3]),
    ((40, 3), [-1]),
    ((1, 9), [0, 1]),
    ((1,), [0]),
    ((2, 3, 2, 3, 2), [0, 2, 4]),
]
KEPT = {"MIN", "MAX"}


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(31)


def reduced(shape: tuple[int, ...], axes: list[int]) -> tuple[int, ...]:
    gone = {a % len(shape) for a in axes}
    return tuple(1 if i in gone else n for i, n in enumerate(shape))


def floats() -> Iterator[Layer]:
    for i, method in enumerate(METHODS):
        for j, dtype in enumerate(("float32", "float16", "bfloat16")):
            for shape, axes in SHAPES[(i + j) % 3 :: 3]:
                y = tensor("y", reduced(shape, axes), dtype)
                yield Layer("r", "Reduce", [tensor("x", shape, dtype)], [y], {"method": method, "axis": axes})


def quantised() -> Iterator[Layer]:
    roots = np.rint(np.sqrt(np.arange(256)) * 15).astype(np.uint8)
    for i, method in enumerate(METHODS):
        for j, (dtype, out, zero) in enumerate((("int8", "uint8", 3), ("uint8", "int8", -7), ("int16", "int16", 0))):
            if dtype == "int16" and "VARIANCE" in method:
                continue
            for shape, axes in SHAPES[(i + j) % 3 :: 3]:
                kept = method in KEPT
                x = tensor("x", shape, dtype, 1.0, zero)
                y = tensor("y", reduced(shape, axes), dtype if kept else out, 1.0, zero if kept else 5)
                given: dict[str, Any] = {"method": method, "axis": axes, "scale_value": 20113, "shift_value": 17}
                if method in ("L2", "VARIANCE", "UNBIASED_VARIANCE"):
                    given["shift_value"] = 22 if dtype != "int16" else 30
                constants = {"sqrt_lut": roots} if method == "L2" else {}
                yield Layer("r", "Reduce", [x], [y], given, constants)


@pytest.mark.parametrize("cases", [floats, quantised])
def test_reductions_give_what_the_references_give(cases, source, tmp_path):
    for i, case in enumerate(cases()):
        check(case, source, tmp_path, rounds=2, narrow=i % 3 == 2)

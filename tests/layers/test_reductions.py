"""Reductions, searches, sorting and running sums against their references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer
from compassc.layers.families.reduce.reference import METHODS
from tests.choosing import some
from tests.layers.cases import check, same, tensor

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
            if j and (i + j) % 2:
                continue
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
    for i, case in some(enumerate(cases())):
        check(case, source, tmp_path, rounds=2, narrow=i % 3 == 2)


def searches() -> Iterator[Layer]:
    types = ("int8", "float32", "uint8", "float16", "int16", "int32")
    for i, (shape, axes) in enumerate(s for s in SHAPES if len(s[1]) == 1):
        for j in range(4):
            x = tensor("x", shape, types[(i + 2 * j + j // 2) % len(types)])
            given = {"method": ("MAX", "MIN")[j % 2], "axis": axes[0], "select_last_index": j > 1}
            yield Layer("a", "ArgMinMax", [x], [tensor("y", reduced(shape, axes), "int32")], given)
        x = tensor("x", shape, types[i])
        yield Layer("h", "Hardmax", [x], [tensor("y", shape, x.dtype)], {"axis": axes[0]})


def test_searches_give_what_the_references_give(source, tmp_path):
    for case in some(searches()):
        check(case, source, tmp_path)
        check(case, source, tmp_path, narrow=True)


@pytest.mark.parametrize("shape", [(3, 40), (2, 3, 35)])
@pytest.mark.parametrize("last", [False, True])
def test_what_is_not_a_number_is_found_and_infinities_have_a_place(shape, last, tmp_path):
    x, y = tensor("x", shape, "float32"), tensor("y", reduced(shape, [1]), "int32")
    for method, fill in (("MAX", -np.inf), ("MIN", np.inf), ("MAX", np.nan)):
        case = Layer("a", "ArgMinMax", [x], [y], {"method": method, "axis": 1, "select_last_index": last})
        given = np.full(shape, -np.inf if np.isnan(fill) else fill, "float32")
        given.reshape(shape[0], shape[1], -1)[1, 2] = fill
        same(case, [given], tmp_path)


@pytest.mark.parametrize("method", ["SUM", "MEAN", "L1", "L2", "VARIANCE"])
def test_sums_beyond_32_bits(method, tmp_path):
    """Long axes of 16-bit integers, with extreme values."""
    roots = {"sqrt_lut": np.arange(1024).astype("uint16")} if method == "L2" else {}
    for shape, axis in (((2, 70000), 1), ((3000, 35), 0)):
        if method == "VARIANCE" and axis:
            shape = (2, 30000)
        for dtype, zero in (("int16", 0), ("int16", 30000), ("uint16", 0)):
            x = tensor("x", shape, dtype, 1.0, 0 if method == "L1" else zero)
            y = tensor("y", reduced(shape, [axis]), "uint16" if method in ("L1", "L2", "VARIANCE") else dtype)
            given = {
                "method": method,
                "axis": [axis],
                "scale_value": 20113,
                "shift_value": 42 if method == "VARIANCE" else 31,
            }
            case = Layer("r", "Reduce", [x], [y], given, roots)
            data = np.random.default_rng(3).integers(x.low, x.high + 1, shape).astype(dtype)
            data[0 if axis else slice(None), ...] = x.high
            data[..., -1] = x.low
            same(case, [data], tmp_path)

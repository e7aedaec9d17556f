"""Softmax, LogSoftmax and Hardmax in all methods against their references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import exp2_table_float
from compassc.layers.kernels import kernel_of
from tests.choosing import some
from tests.layers.cases import check, tensor

SHAPES = [
    ((3, 10), 1),
    ((2, 45), -1),
    ((1, 7), 1),
    ((2, 5, 37), 1),
    ((128, 3), 1),
    ((4, 6, 3), 1),
    ((1,), 0),
    ((5, 1), 1),
]
Shapes = Mapping[str, list[tuple[tuple[int, ...], int]]]
UNSIGNED = {"int8": "uint8", "uint8": "uint8", "int16": "uint16"}
BYTES = {"int8": SHAPES[::2], "uint8": SHAPES[1::2]}
"""Shapes of which kernels are run: those of the others differ by the type of bytes alone, as a test states."""


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(21)


def table(bits: int, scale: float, size: int = 1024) -> np.ndarray:
    """Exponentials of differences from the maximum, the largest 2^20 - 1."""
    at = np.linspace(0, (1 << bits) - 1, min(size, 1 << bits))
    return np.rint(np.exp((at - at[-1]) / scale) * (2**20 - 1)).astype(np.uint32)


def layer(
    kind: str,
    shape: tuple[int, ...],
    axis: int,
    dtype: str,
    out: str,
    scale: float,
    given: dict[str, Any],
    constants: dict[str, np.ndarray] | None = None,
    out_scale: float = 255.0,
) -> Layer:
    x, y = tensor("x", shape, dtype, scale, 3), tensor("y", shape, out, out_scale, 0 if out[0] == "u" else 20)
    return Layer("s", kind, [x], [y], {"axis": axis, **given}, constants or {})


def floats() -> Iterator[Layer]:
    for i, dtype in enumerate(("float32", "float16", "bfloat16")):
        for kind in ("Softmax", "LogSoftmax"):
            for shape, axis in SHAPES[i % 2 :: 2]:
                yield Layer("s", kind, [tensor("x", shape, dtype)], [tensor("y", shape, dtype)], {"axis": axis})


def tables(bytes_of: Shapes = BYTES) -> Iterator[Layer]:
    for dtype, out in UNSIGNED.items():
        bits = 16 if dtype == "int16" else 8
        for shape, axis in bytes_of.get(dtype, SHAPES[2::2]):
            for scale in (200, 256):
                scaling = {"scale_value": scale << (bits - 8), "shift_value": -(bits - 8)}
                yield layer("Softmax", shape, axis, dtype, out, 20.0, scaling, {"lut": table(bits, 20.0 * (bits - 7))})


def powers() -> Iterator[Layer]:
    for i, (fine, (dtype, out)) in enumerate((f, d) for f in (0, 1, 8, 11, 15) for d in UNSIGNED.items()):
        for shape, axis in SHAPES[i % 3 :: 3]:
            q = 31 - (shape[axis].bit_length() - 1)
            given = {"quantize_method": "FAST_EXP", "pow2_out_q": q, "adjust_q": fine, "input_scale_value": 5014}
            yield layer("Softmax", shape, axis, dtype, out, 20.0, given | {"input_shift_value": 15 + (i % 3)})


def float_tables(bytes_of: Shapes = BYTES) -> Iterator[Layer]:
    for dtype, out in UNSIGNED.items():
        for shape, axis in bytes_of.get(dtype, SHAPES):
            lut = {"float_lut": exp2_table_float(), "lut": table(8, 20.0)}
            given = {"is_perf_mode": True, "quantize_method": "LUT"}
            yield layer("Softmax", shape, axis, dtype, out, 20.0, given, lut, 255.0 if out == "uint8" else 65535.0)


def logarithms(bytes_of: Shapes = BYTES) -> Iterator[Layer]:
    for dtype in UNSIGNED:
        bits = 16 if dtype == "int16" else 8
        at = np.linspace(0, (1 << bits) - 1, min(1024, 1 << bits))
        for shape, axis in bytes_of.get(dtype, SHAPES):
            lut = np.exp((at - at[-1]) / (20.0 * (bits - 7))).astype(np.float32)
            given = {"quantize_scale": [0.3 if bits == 8 else 0.05, 7.96875]}
            yield layer("LogSoftmax", shape, axis, dtype, "int8", 20.0, given, {"lut_exp": lut})


@pytest.mark.parametrize("cases", [floats, tables, powers, float_tables, logarithms])
def test_kernels_give_what_the_references_give(cases, source, tmp_path):
    for i, case in some(enumerate(cases())):
        check(case, source, tmp_path, rounds=2, narrow=i % 3 == 2)


def signed(text: str) -> str:
    """A kernel's text with signed types, and the least value of signed bytes, in place of unsigned."""
    return re.sub(r"S\.cast\(0, ", "S.cast(-128, ", re.sub(r'"uint(8|16)"', r'"int\1"', text))


@pytest.mark.parametrize("cases", [tables, float_tables, logarithms])
def test_kernels_of_bytes_differ_by_their_type_alone(cases):
    """So that each shape is run in one of the two types."""
    of_signed, of_unsigned = (
        [kernel_of([c]).text for c in cases({t: SHAPES if t == dtype else [] for t in BYTES}) if c.input.dtype == dtype]
        for dtype in BYTES
    )
    for one, other in some(zip(of_signed, of_unsigned, strict=True)):
        assert one != other and signed(one) == signed(other)


def test_sums_beyond_32_bits_are_limited_as_defined(source, tmp_path):
    long = layer(
        "Softmax",
        (2, 9000),
        1,
        "int8",
        "uint8",
        20.0,
        {"scale_value": 255, "shift_value": 0},
        {"lut": np.full(256, 2**20 - 1, np.uint32)},
    )
    check(long, source, tmp_path)


def test_an_unknown_fineness_is_refused():
    given = {"quantize_method": "FAST_EXP", "pow2_out_q": 29, "adjust_q": 4, "input_scale_value": 1}
    with pytest.raises(LayerError, match="adjust_q"):
        kernel_of([layer("Softmax", (2, 9), 1, "int8", "uint8", 1.0, given)])

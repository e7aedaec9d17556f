"""Normalisations against their references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compass_core import files
from compassc.dsl import BuildManager
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.choices import deciding
from compassc.layers.declare import evaluate
from compassc.layers.kernel_cache import program_of
from compassc.layers.kernels import kernel_of
from tests.choosing import some
from tests.layers.cases import check, tensor
from tests.layers.harness import arguments, run
from tests.replay.outcome import of_call

SHAPES: list[tuple[tuple[int, ...], list[int]]] = [
    ((3, 40), [-1]),
    ((2, 3, 35), [1, 2]),
    ((2, 3, 4, 33), [3]),
    ((4, 6), [1]),
    ((2, 7, 5, 3), [1, 2]),
]
FLOATS = ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("kind", ["RMSNorm", "Softmax"])
def test_what_has_fewer_cycles_comes_first(kind, tmp_path):
    """By hand where lanes are what lies behind the axis, by schedule along rows."""
    for shape, axis in (((2, 12, 33), 1), ((9, 24), 1), ((32, 12, 4), 1), ((32, 12, 5), 1), ((4, 64, 2), 1)):
        x, y = (tensor(n, shape, "float32") for n in "xy")
        given = {"axis": axis} if kind == "Softmax" else {"axis": [axis]}
        weights = {} if kind == "Softmax" else {"weights": np.ones(shape[axis], "float32")}
        case, cycles, of_text = Layer("n", kind, (x,), (y,), given, weights), {}, {}
        for way in ("", "hand", "schedule"):
            with deciding({"implementation": way} if way else {}):
                kernel = kernel_of([case])
            if kernel.text not in of_text:
                function = program_of(kernel, files.write(tmp_path / "n.py", kernel.text))
                args, outputs = arguments(kernel, case, [np.ones(shape, "float32")])
                of_text[kernel.text] = of_call(BuildManager("X2_1204").build(function).program, args, outputs).cycles
            cycles[way] = of_text[kernel.text]
        assert cycles[""] == min(cycles["hand"], cycles["schedule"]) < max(cycles["hand"], cycles["schedule"])


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(41)


def around(shape: tuple[int, ...], axes: list[int]) -> tuple[int, ...]:
    gone = {a % len(shape) for a in axes}
    return tuple(1 if i in gone else n for i, n in enumerate(shape))


def affine(kind: str, shape: tuple[int, ...], axes: list[int]) -> tuple[int, ...]:
    """The shape of factors and addends."""
    return shape[-1:] if kind in ("InstanceNorm", "GroupNorm") else tuple(shape[a] for a in axes)


def kinds() -> Iterator[tuple[str, tuple[int, ...], list[int], dict[str, Any]]]:
    for shape, axes in SHAPES:
        trailing = axes[-1] % len(shape) == len(shape) - 1
        if trailing:
            yield "LayerNorm", shape, axes, {"axis": axes}
            yield "RMSNorm", shape, axes, {"axis": axes}
        yield "MVN", shape, axes, {"axis": axes}
        if len(shape) > 2:
            yield "InstanceNorm", shape, list(range(1, len(shape) - 1)), {}
    yield "GroupNorm", (2, 5, 12), [], {"axis": 2, "group": 3}
    yield "GroupNorm", (2, 3, 2, 80), [], {"axis": -1, "group": 2}
    yield "GroupNorm", (1, 4, 36), [], {"axis": 1, "group": 2}
    yield "GroupNorm", (1, 9, 11, 24), [], {"axis": 3, "group": 8}
    yield "LayerNorm", (3, 5, 64), [2], {"axis": [2]}


def floats() -> Iterator[Layer]:
    source = np.random.default_rng(1)
    for i, (kind, shape, axes, given) in enumerate(kinds()):
        dtype = FLOATS[i % 3]
        size = affine(kind, shape, axes) if given.get("axis") != 1 or kind != "GroupNorm" else (shape[1],)
        constants = {key: source.normal(1, 0.5, size).astype("float32") for key in ("weights", "biases")}
        outputs = [tensor("y", shape, dtype)]
        if kind == "LayerNorm" and i % 2:
            outputs += [tensor(name, around(shape, axes), dtype) for name in ("mean", "inverse")]
        given = given | {"epsilon": 1e-4}
        yield Layer("n", kind, [tensor("x", shape, dtype)], outputs, given, {} if kind == "MVN" else constants)


def quantised() -> Iterator[Layer]:
    source = np.random.default_rng(1)
    for dtype, out in (("int8", "int8"), ("uint8", "uint8"), ("int16", "int16"), ("int8", "int16")):
        for i, (kind, shape, axes, given) in enumerate(kinds()):
            if dtype == "uint8" and i % 2 or (dtype != out and i % 2 == 0) or (kind == "MVN" and dtype != out):
                continue
            size = affine(kind, shape, axes) if given.get("axis") != 1 or kind != "GroupNorm" else (shape[1],)
            bits = 16 if dtype == "int16" else 8
            constants = {
                "weights": source.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), size).astype(f"int{bits}"),
                "biases": source.integers(-(2 ** (2 * bits - 4)), 2 ** (2 * bits - 4), size).astype("int32"),
            }
            wide = 16 if out == "int16" else 8
            scales: dict[str, Any] = {
                "norm_scale_value": 181 if bits == 8 else 20000,
                "norm_shift_value": 9 if wide == 8 else 2 if bits == 8 else 15,
                "var_shift_value": i % 3 + 4,
                "scale_value": 19901,
                "shift_value": 14 + bits,
                "weights_zp": i % 2,
            }
            if kind == "MVN":
                scales = {"scale_value": 171, "shift_value": 9, "var_shift_value": 5}
                constants = {}
            outputs = [tensor("y", shape, out, 1.0, 4)]
            if kind == "LayerNorm" and i % 2:
                outputs += [tensor("m", around(shape, axes), dtype, 1.0, 2), tensor("f", around(shape, axes), "uint16")]
            x: Tensor = tensor("x", shape, dtype, 1.0, 5 if bits == 8 else 0)
            yield Layer("n", kind, [x], outputs, given | scales, constants)


@pytest.mark.parametrize("cases", [floats, quantised])
def test_norms_give_what_the_references_give(cases, source, tmp_path):
    for i, case in some(enumerate(cases())):
        check(case, source, tmp_path, rounds=2, narrow=i % 4 == 3)


def test_sums_of_squares_of_a_whole_image_need_more_than_32_bits(source, tmp_path):
    scales = {"norm_scale_value": 181, "norm_shift_value": 9, "var_shift_value": 16, "scale_value": 1, "shift_value": 0}
    shape = (1, 300, 230, 2)
    case = Layer("n", "InstanceNorm", [tensor("x", shape, "int8")], [tensor("y", shape, "int8")], scales)
    check(case, source, tmp_path)


AFFINE = [("LayerNorm", [1], {}), ("RMSNorm", [1, 2], {}), ("InstanceNorm", [1], {}), ("GroupNorm", [], {"group": 3})]


def forms() -> Iterator[Layer]:
    """Without factors, addends or both, on axes that are not the last, and with a multiplier per channel."""
    source, shape = np.random.default_rng(3), (2, 6, 12)
    for i, (kind, axes, given) in enumerate(AFFINE):
        axis = {"axis": 1} if kind == "GroupNorm" else {} if kind == "InstanceNorm" else {"axis": axes}
        size = (12,) if kind == "InstanceNorm" else tuple(shape[a] for a in axes or [1])
        for j, dtype in enumerate(("float32", "int8", "uint16")):
            keys = [("weights",), ("biases",), (), ("weights", "biases")][(i + j) % 4]
            if dtype == "float32":
                constants = {key: source.normal(1, 0.5, size).astype("float32") for key in keys}
                scales: dict[str, Any] = {"epsilon": 1e-4}
            else:
                bits = 8 if dtype == "int8" else 16
                constants = {key: source.integers(-99, 99, size).astype("int8") for key in keys}
                shift = 14 if "weights" in keys else 10
                constants["scale"] = source.integers(9000, 32767, size[-1]).astype("uint16")
                constants["shift"] = source.integers(shift, shift + 3, size[-1]).astype("int8")
                scales = {"norm_scale_value": 181 if bits == 8 else 20000, "norm_shift_value": 3 if bits == 8 else 7,
                          "var_shift_value": 3, "weights_zp": 3}  # fmt: skip
            out = {"uint16": "int16"}.get(dtype, dtype)
            yield Layer(
                "n",
                kind,
                [tensor("x", shape, dtype)],
                [tensor("y", shape, out, 1.0, 3 if out == "int8" else 0)],
                axis | given | scales,
                constants,
            )


def test_every_form_of_factors_and_addends(source, tmp_path):
    for case in some(forms()):
        check(case, source, tmp_path)


def test_factors_that_fit_no_axis_are_refused():
    layer = Layer("n", "LayerNorm", [tensor("x", (2, 6, 12), "float32")], [tensor("y", (2, 6, 12), "float32")],
                  {"axis": [1]}, {"weights": np.ones(5, "float32")})  # fmt: skip
    with pytest.raises(LayerError, match=r"'weights' of shape \[5\]"):
        evaluate(layer, [np.zeros((2, 6, 12), "float32")])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "float16"])
def test_groups_of_more_pixels_than_a_tile_holds(source, tmp_path, dtype):
    shape = (2, 61, 43, 18) if dtype == "float32" else (1, 150, 13, 18)
    constants: dict[str, Any] = {key: source.normal(1, 0.5, 18).astype("float32") for key in ("weights", "biases")}
    given: dict[str, Any] = {"axis": 3, "group": 3, "epsilon": 1e-4}
    if dtype[-1] == "8":
        constants = {"weights": source.integers(-128, 128, 18).astype("int8")}
        constants |= {"biases": source.integers(-900, 900, 18).astype("int32")}
        # as the quantiser gives them: a scale for each channel
        constants |= {"scale": source.integers(128, 256, 18).astype("uint8"), "shift": np.full(18, 13, "int8")}
        given |= {"norm_shift_value": 1, "var_shift_value": 10}
    case = Layer(
        "n", "GroupNorm", [tensor("x", shape, dtype, 1.0, 3)], [tensor("y", shape, dtype, 1.0, 4)], given, constants
    )
    check(case, source, tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["LayerNorm", "GroupNorm"])
def test_rows_of_equal_and_of_extreme_bytes(tmp_path, dtype, kind):
    shape = (5, 1, 1024)
    low, high = (-128, 127) if dtype == "int8" else (0, 255)
    rows = [np.full(1024, v) for v in (low, high, 0)] + [np.tile([low, high], 512), np.r_[low, np.full(1023, high)]]
    scales = {"norm_shift_value": 2, "var_shift_value": 6, "scale_value": 139, "shift_value": 13}
    scales |= {"axis": 2, "group": 2} if kind == "GroupNorm" else {"axis": [2]}
    constants = {"weights": np.arange(1024).astype("int8"), "biases": np.arange(1024).astype("int32")}
    case = Layer("n", kind, [tensor("x", shape, dtype)], [tensor("y", shape, dtype)], scales, constants)
    values = np.stack(rows).reshape(shape).astype(dtype)
    (got,), (want,) = run(kernel_of([case]), case, [values], tmp_path), evaluate(case, [values])
    np.testing.assert_array_equal(got.reshape(want.shape), want)

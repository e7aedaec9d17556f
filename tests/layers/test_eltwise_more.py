"""Comparisons, choices, functions of bits, remainders and powers: kernels give what the references give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate
from compassc.layers.families.eltwise.reference import LOGICAL
from compassc.layers.kernels import kernel_of
from tests.choosing import some
from tests.layers.cases import drawn, layer_of, same, tensor
from tests.layers.harness import run

SHAPES = [((3, 45), (3, 45)), ((2, 1, 33), (1, 5, 33)), ((4, 7), (1,)), ((5, 6), (5, 1))]
INTEGERS = ("int8", "uint16", "int32")


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(7)


def pair(i: int, dtype: str, zeros: tuple[int, int] = (0, 0)) -> tuple[list[Any], tuple[int, ...]]:
    a, b = SHAPES[i % len(SHAPES)]
    return [tensor("a", a, dtype, 1.0, zeros[0]), tensor("b", b, dtype, 1.0, zeros[1])], np.broadcast_shapes(a, b)


def small(source: np.random.Generator, layer: Layer, low: int = -3, high: int = 4) -> list[np.ndarray]:
    """Operands that are often equal, or 0."""
    limits = [(max(low, t.low) if t.is_integer else low, high) for t in layer.inputs]
    return [source.integers(*lim, t.shape).astype(t.dtype) for t, lim in zip(layer.inputs, limits, strict=True)]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float16"])
def test_logical(tmp_path, source, dtype):
    for i, method in some(enumerate(LOGICAL)):
        scaled = dtype in ("int8", "uint8")
        inputs, out = pair(i, dtype, (3, -2) if scaled else (0, 0))
        factors = {"scale_value": [7000, 32767] if i % 2 else [2, 3]} if scaled else {}
        if method == "NOT":
            inputs, out = inputs[:1], inputs[0].shape
        layer = layer_of("Logical", inputs, "uint8", {"method": method, **factors}, [out])
        same(layer, small(source, layer), tmp_path)
        same(layer, [drawn(source, t) for t in inputs], tmp_path)


def test_logical_of_special_floats(tmp_path):
    values = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan], "float32")
    a, b = (g.reshape(-1).copy() for g in np.meshgrid(values, values))
    for method in LOGICAL[1:]:
        inputs = [tensor("a", a.shape, "float32"), tensor("b", a.shape, "float32")]
        same(layer_of("Logical", inputs, "uint8", {"method": method}, [a.shape]), [a, b], tmp_path)
    x = [tensor("x", a.shape, "float32")]
    for kind, attributes in (
        ("IsNaN", {}),
        ("IsInf", {}),
        ("IsInf", {"detect_positive": False}),
        ("IsInf", {"detect_negative": False}),
    ):
        same(layer_of(kind, x, "uint8", attributes, [a.shape]), [a], tmp_path)
    same(layer_of("IsNaN", [tensor("x", (5,), "int8")], "uint8", {}, [(5,)]), [np.arange(5, dtype="int8")], tmp_path)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32", "float16"])
def test_where(tmp_path, source, dtype):
    for i, (a, b) in enumerate(SHAPES):
        out = np.broadcast_shapes(a, b)
        zeros, scales = (0, 0), {}
        if dtype in ("int8", "uint8", "int16") and i:
            zeros, scales = (3, -5), {"scale_value": [171, 90], "shift_value": [7, 8]}
        inputs = [tensor("c", a, "uint8"), tensor("a", b, dtype, 1.0, zeros[0]), tensor("b", out, dtype, 1.0, zeros[1])]
        layer = layer_of("Where", inputs, dtype, scales, [out], 2 if scales else 0)
        same(layer, [source.integers(0, 2, a).astype("uint8"), *(drawn(source, t) for t in inputs[1:])], tmp_path)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(tmp_path, source, dtype):
    for i, method in enumerate(("AND", "OR", "XOR", "NOT")):
        inputs, out = pair(i, dtype)
        if method == "NOT":
            inputs, out = inputs[:1], inputs[0].shape
        layer = layer_of("Bitwise", inputs, dtype, {"method": method}, [out])
        same(layer, [drawn(source, t) for t in inputs], tmp_path)
    for direction in ("LEFT", "RIGHT"):
        inputs, out = pair(0, dtype)
        layer = layer_of("BitShift", inputs, dtype, {"direction": direction}, [out])
        counts = source.integers(0, 40, out).astype(dtype)
        same(layer, [drawn(source, inputs[0]), counts], tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16"])
def test_remainders(tmp_path, source, dtype):
    for i, truncated in enumerate((False, True, False, True)):
        inputs, out = pair(i, dtype, (0, 0) if i < 2 else (4, -3))
        scales = {} if i < 2 else {"scale_value": [100, 77], "shift_value": [6, 7]}
        layer = layer_of("Mod", inputs, dtype, {"fmod": truncated, **scales}, [out], 0 if i < 2 else 1)
        same(layer, small(source, layer, -9, 10), tmp_path)
        same(layer, [drawn(source, t) for t in inputs], tmp_path)
    inputs, out = pair(1, "float32")
    layer = layer_of("Mod", inputs, "float32", {}, [out])
    same(layer, [drawn(source, t) for t in inputs], tmp_path, 2e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_quantised_powers(tmp_path, source, dtype):
    entries = 1024 if dtype == "int16" else 256
    log, exp = (source.integers(-32768, 32768, n).astype("int16") for n in (entries, 1024))
    inputs, out = pair(0, dtype, (3, -2))
    tables = {"lut_log": log, "lut_exp": exp}
    layer = layer_of("Pow", inputs[:1], dtype, {"exponent": 2.0}, [inputs[0].shape], 0, lut_log=log)
    same(layer, [drawn(source, inputs[0])], tmp_path)
    if dtype == "int16":
        inputs[1] = tensor("b", inputs[1].shape, "int8", 1.0, -2)
    layer = layer_of("Pow", inputs, dtype, {"scale_value": 171, "shift_value": 9}, [out], 0, **tables)
    for arrays in (small(source, layer, -4, 8), [drawn(source, t) for t in inputs]):
        same(layer, arrays, tmp_path)


def test_powers_of_floats(tmp_path, source):
    inputs, out = pair(0, "float32")
    layer = layer_of("Pow", inputs, "float32", {}, [out])
    same(layer, [np.abs(drawn(source, inputs[0])), drawn(source, inputs[1])], tmp_path, 5e-6)
    for exponent in (2.0, 0.5, -1.0, 3.0):
        layer = layer_of("Pow", inputs[:1], "float32", {"exponent": exponent}, [inputs[0].shape])
        x = drawn(source, inputs[0])
        same(layer, [x if exponent in (2.0, 3.0) else np.abs(x) + 0.1], tmp_path, 5e-6)


def test_fake_quantisation(tmp_path, source):
    for low, high, narrow in ((-3.0, 4.1, False), (1.0, 6.0, True), (-7.0, -2.0, False)):
        attributes = {"min": low, "max": high, "num_bits": 8, "narrow_range": narrow}
        x = tensor("x", (5, 77), "float32")
        same(
            layer_of("FakeQuantWithMinMaxVars", [x], "float32", attributes, [x.shape]),
            [drawn(source, x)],
            tmp_path,
            1e-6,
        )
    x = tensor("x", (5, 77), "int8")
    same(layer_of("FakeQuantWithMinMaxVars", [x], "int8", {}, [x.shape]), [drawn(source, x)], tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float32", "float16"])
def test_slopes_per_channel(tmp_path, source, dtype):
    """PRELU and CRELU, to signed and unsigned outputs."""
    floats = dtype.startswith("float")
    for i, (shape, slopes) in enumerate((((2, 3, 4, 37), (37,)), ((1, 5, 64), (1, 64)), ((3, 7), (1,)))):
        constant = source.normal(0, 0.3, slopes).astype("float32")
        if not floats:
            constant = source.integers(-9000, 9000, slopes).astype("int16")
        out = dtype if floats else ("int8", "uint8")[i % 2]
        scales = {"scale_value": 171, "shift_value": 8 if dtype != "int16" else 15, "negative_slope_shift": 12}
        x = tensor("x", shape, dtype, 1.0, 0 if floats or dtype == "int16" else 3)
        kinds: tuple[tuple[str, dict[str, Any]], ...] = (("PRELU", {}), ("Activation", {"method": "PRELU"}))
        for kind, method in kinds:
            layer = layer_of(kind, [x], out, {**scales, **method}, [shape], 0, negative_slope=constant)
            same(layer, [drawn(source, x)], tmp_path, 1e-6 if dtype == "float32" else 2e-3)
        twice = (*shape[:-1], shape[-1] * 2)
        layer = layer_of("Activation", [x], out, {**scales, "method": "CRELU", "axis": -1}, [twice])
        same(layer, [drawn(source, x)], tmp_path)


def test_both_parts_need_twice_the_elements_of_one_axis():
    x = tensor("x", (2, 5, 4), "float32")
    for shape in ((2, 5, 4), (2, 10, 4), (2, 6, 8), (4, 10, 2)):
        layer = layer_of("Activation", [x], "float32", {"method": "CRELU", "axis": 2}, [shape])
        for use in (kernel_of, lambda layers: evaluate(layers[0], [np.zeros(x.shape, "float32")])):
            with pytest.raises(LayerError, match=r"give \[2, 5, 8\]"):
                use([layer])


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float16"])
@pytest.mark.parametrize("slopes", [(3, 5, 37), (5, 1)])
def test_slopes_of_any_axes(tmp_path, source, dtype, slopes):
    """PRELU with a slope per element, or per index of any axes, to signed and unsigned outputs."""
    shape, floats = (2, 3, 5, 37), dtype.startswith("float")
    constant = source.normal(0, 0.3, slopes).astype("float32")
    if not floats:
        constant = source.integers(-9000, 9000, slopes).astype("int16")
    scales = {"scale_value": 171, "shift_value": 8 if dtype != "int16" else 15, "negative_slope_shift": 12}
    x = tensor("x", shape, dtype, 1.0, 3 if dtype == "int8" else 0)
    for out in (dtype,) if floats else ("int8", "uint8"):
        layer = layer_of("PRELU", [x], out, scales, [shape], 0, negative_slope=constant)
        same(layer, [drawn(source, x)], tmp_path, 1e-6 if dtype == "float32" else 2e-3)


def test_a_row_of_bytes_is_no_table_of_slopes(tmp_path, source):
    """As many rows as there are bytes, which tables by channel are asked with."""
    x = tensor("x", (256, 3), "int8")
    scales = {"scale_value": 1, "shift_value": 0, "negative_slope_shift": 7}
    slopes = source.integers(0, 127, (256, 3)).astype("int16")
    same(layer_of("PRELU", [x], "int8", scales, [x.shape], 0, negative_slope=slopes), [drawn(source, x)], tmp_path)


def test_slopes_that_repeat_along_axes_are_those_of_channels(tmp_path, source):
    """Also at the end of another layer, whose kernel knows channels alone."""
    x, channels = tensor("x", (2, 5, 4), "float32"), source.normal(0, 0.3, 4).astype("float32")
    tiled = np.broadcast_to(channels, x.shape).copy()
    layers = [layer_of("PRELU", [x], "float32", {}, [x.shape], negative_slope=s) for s in (channels, tiled)]
    texts = [kernel_of([layer]).text for layer in layers]
    assert texts[0] == texts[1]
    same(layers[1], [drawn(source, x)], tmp_path, 1e-6)


@pytest.mark.parametrize("slopes", [(5,), (2, 4), (3, 2, 5, 4), (2, 1, 5)])
def test_slopes_that_do_not_broadcast_are_refused(slopes):
    x = tensor("x", (2, 5, 4), "float32")
    layer = layer_of("PRELU", [x], "float32", {}, [x.shape], negative_slope=np.ones(slopes, "f4"))
    for use in (kernel_of, lambda layers: evaluate(layers[0], [np.zeros(x.shape, "float32")])):
        with pytest.raises(LayerError, match="negative_slope"):
            use([layer])


@pytest.mark.parametrize("mode", ["FLOOR", "TRUNC"])
def test_quotients_come_with_remainders(mode, source, tmp_path):
    for i, dtype in enumerate(("int8", "uint8", "int16", "uint16", "int32")):
        inputs, out = pair(i, dtype)
        layer = layer_of("DivMod", inputs, dtype, {"mode": mode}, [out, out])
        same(layer, [drawn(source, t) for t in inputs], tmp_path)
        same(layer, small(source, layer), tmp_path)
    a, b = (tensor(n, (3,), "int32") for n in "ab")
    layer = layer_of("DivMod", [a, b], "int32", {"mode": mode}, [(3,), (3,)])
    same(layer, [np.full(3, -(2**31), "int32"), np.array([-1, 0, 1], "int32")], tmp_path)


@pytest.mark.parametrize("kind", ["Sine", "Abs"])
def test_results_of_32_bits_are_whole_or_refused(tmp_path, source, kind):
    """They count to the last bit: as positions in a period, or as they are."""
    x = replace(tensor("x", (300,), "int32"), limits=(-(2**31) + 1, 2**31 - 1))
    values = [source.integers(-(2**31) + 1, 2**31, 300).astype("int32")]
    table = {"lut": source.integers(0, 256, 512).astype("uint8")} if kind == "Sine" else {}
    dtype = "uint8" if kind == "Sine" else "int32"
    for scale, shift in ((200, 8), (3, 2), (40001, 16), (251, 24), (1, 3)):
        given = {"scale_value": scale, "shift_value": shift}
        same(layer_of(kind, [x], dtype, given, [(300,)], 0, **table), values, tmp_path)
    layer = layer_of(kind, [x], dtype, {"scale_value": 5, "shift_value": 1}, [(300,)], 0, **table)
    with pytest.raises(LayerError, match="beyond what kernels compute"):
        kernel_of([layer])


@pytest.mark.parametrize("kind", ["Sign", "SHRINK", "THRESHOLDEDRELU"])
def test_steps_take_infinite_numbers(tmp_path, kind):
    x = tensor("x", (6,), "float32")
    given = np.array([np.inf, -np.inf, 3e38, -3e38, 0, 0.3], "float32")
    same(layer_of(kind, [x], "float32", {"alpha": 0.5, "bias": 0.1, "lambd": 0.5}, [(6,)]), [given], tmp_path)


@pytest.mark.parametrize("mode", ["SATURATION", "TRUNCATION"])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float16", "float32"])
def test_numbers_become_truths(tmp_path, source, mode, dtype):
    """A bool is 0 or 1 in memory, too."""
    x = tensor("x", (90,), dtype)
    values = drawn(source, x)
    if not x.is_integer:
        values[:6] = [np.nan, np.inf, -np.inf, 0.9, -0.9, -3]
    same(layer_of("Cast", [x], "bool", {"clip_mode": mode}, [x.shape]), [values], tmp_path)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_square_of_a_difference_is_rounded_twice(tmp_path, dtype):
    a, b, y = (Tensor(n, (300,), dtype) for n in "aby")
    inputs = [np.random.default_rng(i).normal(0, 1, 300).astype(numpy_dtype(dtype)) for i in (1, 2)]
    layer = Layer("f", "SquaredDifference", (a, b), (y,))
    (got,), (want,) = run(kernel_of([layer]), layer, inputs, tmp_path), evaluate(layer, inputs)
    np.testing.assert_array_equal(got, want)

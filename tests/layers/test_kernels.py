"""Kernels give what the references give, bit for bit for integers; many kinds of one family in one test."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from compassc.layers.samples import Draw
from compassc.layers.samples import drawn as drawn_layer
from tests.choosing import some
from tests.layers.harness import expect, run

FLOATS = ("float32", "float16")
INTEGERS = ("int8", "uint8", "int16")
RELATIVE = {2: 2e-3, 4: 5e-6}


def tensor(name: str, shape: tuple[int, ...], dtype: str, scale: float = 1.0, zero: int = 0) -> Tensor:
    return Tensor(name, shape, dtype, scale, zero)


def drawn(source: np.random.Generator, t: Tensor) -> np.ndarray:
    if t.is_integer:
        values = source.integers(t.low, t.high + 1, t.shape)
        flat = values.reshape(-1)
        flat[:2] = (t.low, t.high)[: flat.size]
        return values.astype(t.dtype)
    return source.normal(0, 2, t.shape).astype(t.dtype)


def check(layer: Layer, source: np.random.Generator, folder: Any) -> None:
    inputs = [drawn(source, t) for t in layer.inputs]
    want = evaluate(layer, inputs)
    label = f"{layer.type} {[t.dtype for t in (*layer.inputs, *layer.outputs)]} {dict(layer.attributes)}"

    def compare(outputs: list[np.ndarray]) -> None:
        for got, wanted in zip(outputs, want, strict=True):
            if got.dtype.kind in "iub":
                np.testing.assert_array_equal(got, wanted, label)
            else:
                limit, a, b = RELATIVE[got.dtype.itemsize], got.astype("f8"), wanted.astype("f8")
                np.testing.assert_allclose(a, b, rtol=limit, atol=limit / 4, err_msg=label)

    expect(kernel_of([layer]), layer, inputs, folder, compare)


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(11)


def eltwise_layers(source: np.random.Generator) -> Iterator[Layer]:
    shapes = [
        ((3, 45), (3, 45)),
        ((3, 45), (45,)),
        ((2, 1, 33), (1, 5, 33)),
        ((4, 7), (4, 1)),
        ((2, 6), (2, 2)),
        ((5,), (1,)),
    ]
    activations = ("NONE", "RELU", "CLIP", "LEAKYRELU", "RELU6")
    for i, (dtype, method) in enumerate((d, m) for d in INTEGERS for m in ("ADD", "SUB", "MUL", "MAX", "MIN")):
        a, b = shapes[i % len(shapes)]
        out = np.broadcast_shapes(a, b) if i % len(shapes) != 4 else a
        scales = source.integers(100, 32767, 3) if dtype != "int16" else source.integers(1, 4, 3)
        shift = 22 if dtype != "int16" else 2
        given: dict[str, Any] = {
            "scale_value": [int(source.integers(100, 255)), *map(int, scales[1:])],
            "shift_value": shift,
        }
        if method == "MUL":
            given = {"scale_value": 171, "shift_value": 15 if dtype != "int16" else 23}
        given |= {"method": method, "with_activation": activations[i % 5], "clip_min": -3000, "clip_max": 20000}
        given["negative_slope_value"] = 26
        inputs = [tensor("a", a, dtype, 1, 3), tensor("b", b, dtype, 1, -5)]
        yield Layer("e", "Eltwise", inputs, [tensor("y", out, ("int8", "uint8")[i % 2], 1, 7)], given)
    for dtype in FLOATS:
        for method, (a, b) in zip(("ADD", "SUB", "MUL", "MAX", "MIN"), shapes, strict=False):
            out = np.broadcast_shapes(a, b) if b != (2, 2) else a
            given = {"method": method, "with_activation": "RELU" if method == "ADD" else "NONE"}
            yield Layer(
                "e", "Eltwise", [tensor("a", a, dtype), tensor("b", b, dtype)], [tensor("y", out, dtype)], given
            )


def test_eltwise(tmp_path, source):
    for layer in some(eltwise_layers(source)):
        check(layer, source, tmp_path)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_activations(tmp_path, source, dtype):
    from compassc.layers.families.activation.reference import METHODS

    extra = {"negative_slope_value": 0.1, "clip_min": -1.0, "clip_max": 2.0}
    for method in ("RELU", "RELU6", "LEAKYRELU", "CLIP", *METHODS):
        if method in ("LOG", "TAN", "SINH", "COSH"):
            continue  # their errors are not bounded near poles and zeros of these inputs
        layer = Layer(
            "a", "Activation", [tensor("x", (5, 77), dtype)], [tensor("y", (5, 77), dtype)], {"method": method, **extra}
        )
        check(layer, source, tmp_path)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_tables(tmp_path, source, dtype):
    for entries, to in ((256, "int8"), (256, "uint8"), (1024 if dtype == "int16" else 256, "uint16")):
        limits = np.iinfo(to)
        table = source.integers(limits.min, limits.max + 1, entries).astype(to)
        layer = Layer(
            "a",
            "Activation",
            [tensor("x", (5, 77), dtype)],
            [tensor("y", (5, 77), to)],
            {"method": "SIGMOID"},
            {"lut": table},
        )
        check(layer, source, tmp_path)


def test_other_functions_of_one_operand(tmp_path, source):
    scale = {"scale_value": 171, "shift_value": 7}
    for kind in ("Abs", "Negative", "Sign"):
        for dtype in (*INTEGERS, *FLOATS):
            zero = 3 if dtype in INTEGERS else 0
            x, y = tensor("x", (3, 45), dtype, 1, zero), tensor("y", (3, 45), dtype, 1, -zero)
            check(Layer("a", kind, [x], [y], scale if kind == "Abs" and zero else {}), source, tmp_path)
    for dtype in INTEGERS:
        y = tensor("y", (3, 45), "float32")
        check(Layer("d", "DeQuantize", [tensor("x", (3, 45), dtype, 23.5, 4)], [y]), source, tmp_path)
        x = tensor("x", (3, 45), "float32")
        check(Layer("q", "Quantize", [x], [tensor("y", (3, 45), dtype, 23.5, 4)]), source, tmp_path)


def window(kernel: tuple[int, int], stride: int, pad: int, dilation: int = 1) -> dict[str, int]:
    keys = {"kernel_y": kernel[0], "kernel_x": kernel[1]}
    keys |= {f"{n}_{a}": v for n, v in (("stride", stride), ("dilation", dilation)) for a in "xy"}
    return keys | {f"pad_{s}": pad for s in ("left", "right", "top", "bottom")}


@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS))
def test_pooling(tmp_path, source, dtype):
    for method, include in (("MAX", True), ("AVG", True), ("AVG", False), ("L1", True), ("L2", True)):
        if method == "L2" and dtype == "int16":
            continue  # its sums of squares do not fit 32 bits, and are refused
        to = "uint8" if method == "L2" and dtype in INTEGERS else dtype
        zero = 3 if dtype in INTEGERS else 0
        constants = {"sqrt_lut": np.sort(source.integers(0, 256, 256)).astype("uint8")} if method == "L2" else {}
        given = {
            "method": method,
            "count_include_pad": include,
            "scale_value": 180,
            "shift_value": 9 if method == "L1" else 2,
        }
        x, y = tensor("x", (2, 9, 8, 45), dtype, 10.0, zero), tensor("y", (2, 5, 4, 45), to, 9.0, zero)
        layer = Layer("p", "Pooling", [x], [y], {**given, **window((3, 3), 2, 1)}, constants)
        check(layer, source, tmp_path)


@pytest.mark.parametrize("dtype", ("int8", "uint8", "float32", "float16"))
def test_concat_and_pad(tmp_path, source, dtype):
    whole = dtype in INTEGERS
    for axis, shapes in (
        (1, ((2, 5, 33), (2, 2, 33), (2, 1, 33))),
        (-1, ((2, 5, 33), (2, 5, 7))),
        (0, ((1, 4), (3, 4))),
    ):
        joined = np.concatenate([np.empty(s) for s in shapes], axis).shape
        scales = {"scale_value": [200, 150, 1][: len(shapes)], "shift_value": [7, 8, 0][: len(shapes)]} if whole else {}
        inputs = [tensor(f"x{i}", s, dtype, 1, (3, -3, 0)[i] if whole else 0) for i, s in enumerate(shapes)]
        layer = Layer(
            "c", "Concat", inputs, [tensor("y", joined, dtype, 1, 2 if whole else 0)], {"axis": axis, **scales}
        )
        check(layer, source, tmp_path)
    pads = [[1, 0], [1, 2], [3, 4]]
    x, y = tensor("x", (2, 5, 33), dtype), tensor("y", (3, 8, 40), dtype)
    check(Layer("p", "Pad", [x], [y], {"mode": "CONSTANT", "pads": pads, "constant_value": 3}), source, tmp_path)


def test_results_beyond_the_output_are_saturated(tmp_path, source):
    """-1 as an unsigned number is 0."""
    for kind in ("Sign", "Negative"):
        check(Layer("s", kind, [tensor("x", (3, 45), "int8", 1, 3)], [tensor("y", (3, 45), "uint8")]), source, tmp_path)


COMPARED = "Where Select Logical Bitwise IsNaN IsInf Pow".split()


@pytest.mark.parametrize("dtype", ("int8", "uint8", "int16", "float32", "float16"))
def test_choices_and_comparisons(tmp_path, source, dtype):
    """Values repeat, so that operands are often equal."""
    for n, kind in some(enumerate(COMPARED * 2)):
        layer = drawn_layer(Draw(np.random.default_rng(n)), kind, Tensor("x", (3, 45), dtype))
        if layer is None:
            assert kind in ("Bitwise", "Pow")
            continue
        inputs = [
            source.choice(
                [*range(5), np.inf, -np.inf, np.nan] if kind.startswith("Is") and not t.is_integer else range(5),
                t.shape,
            ).astype(t.dtype)
            for t in layer.inputs
        ]

        def compare(outputs, wanted):
            for got, want in zip(outputs, wanted, strict=True):
                np.testing.assert_allclose(
                    got.astype("f8"), want.astype("f8"), rtol=RELATIVE[4] if want.dtype == "f4" else 0
                )

        wanted = evaluate(layer, inputs)
        expect(kernel_of([layer]), layer, inputs, tmp_path, partial(compare, wanted=wanted))


@pytest.mark.parametrize(("dtype", "step"), [("int32", 1), ("int16", 1 << 17)])
def test_tables_whose_indices_do_not_fit_32_bits_are_refused(dtype, step):
    """The offset of a 32-bit index, and what lies between entries far apart."""
    table = np.array([-step, step], np.int32)
    x, y = Tensor("x", (5,), dtype), Tensor("y", (5,), "int16")
    with pytest.raises(LayerError, match="32 bits"):
        kernel_of([Layer("table", "Tanh", [x], [y], {}, {"lut": table})])


@pytest.mark.parametrize("kind", ["Concat", "Where"])
def test_words_of_32_bits_are_rescaled_to_the_nearest(kind, tmp_path):
    """Outputs of 32 bits lose their fraction behind rectifiers alone."""
    source = np.random.default_rng(3)
    a, b = (Tensor(n, (6, 40), "int32", limits=(-1000, 1000)) for n in "ab")
    given = {"scale_value": [153, 252], "shift_value": [7, 8]}
    inputs, out, more = (
        ([a, b], (12, 40), {"axis": 0}) if kind == "Concat" else ([Tensor("c", (6, 40), "uint8"), a, b], (6, 40), {})
    )
    layer = Layer("r", kind, inputs, [Tensor("y", out, "int32")], {**given, **more})
    ends = {"uint8": (0, 2), "int32": (-1000, 1001)}
    values = [source.integers(*ends[t.dtype], t.shape).astype(t.dtype) for t in inputs]
    np.testing.assert_array_equal(run(kernel_of([layer]), layer, values, tmp_path)[0], evaluate(layer, values)[0])

"""Kernels of the linear family give what the references give: integers to the bit, floats within what float32 sums allow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.families.linear.formats import in_bytes, integer_format, signed_sums
from compassc.layers.kernels import kernel_of
from tests.choosing import some
from tests.layers.harness import expect, run

BYTES, SHORTS, FLOATS = ("int8", "uint8"), ("int16", "uint16"), ("float32", "float16", "bfloat16")
RELATIVE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
ACTIVATIONS = ("NONE", "RELU", "CLIP", "RELU6")
Array = np.ndarray[Any, Any]


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(7)


def tensor(name: str, shape: tuple[int, ...], dtype: str, zero: int = 0) -> Tensor:
    return Tensor(name, shape, dtype, 1.0, zero)


def drawn(source: np.random.Generator, t: Tensor) -> Array:
    from compassc.graph.dtypes import numpy_dtype

    if not t.is_integer:
        return source.normal(0, 1, t.shape).astype(numpy_dtype(t.dtype))
    values = source.integers(t.low, t.high + 1, t.shape)
    values.reshape(-1)[: values.size // 3] = t.low
    values.reshape(-1)[values.size // 2 : values.size * 2 // 3] = t.high
    return values.astype(t.dtype)


def check(layer: Layer, source: np.random.Generator, folder: Any) -> None:
    inputs = [drawn(source, t) for t in layer.inputs]
    (want,) = evaluate(layer, inputs)
    label = (
        f"{layer.type} {[t.dtype for t in (*layer.inputs, layer.output)]} {layer.input.shape} {dict(layer.attributes)}"
    )

    def compare(outputs: list[Array]) -> None:
        (got,) = outputs
        if layer.output.is_integer:
            np.testing.assert_array_equal(got, want, label)
            return
        limit = RELATIVE[layer.output.dtype]
        np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=limit, atol=limit, err_msg=label)

    expect(kernel_of([layer]), layer, inputs, folder, compare)


def window(kernel: tuple[int, int], stride: int = 1, pad: int = 0, dilation: int = 1) -> dict[str, int]:
    keys = {"kernel_y": kernel[0], "kernel_x": kernel[1]}
    keys |= {f"{n}_{a}": v for n, v in (("stride", stride), ("dilation", dilation)) for a in "xy"}
    return keys | {f"pad_{s}": pad for s in ("left", "right", "top", "bottom")}


def weighted(
    source: np.random.Generator,
    kind: str,
    x: Tensor,
    y: Tensor,
    shape: tuple[int, ...],
    given: dict[str, Any],
    weights: str = "int8",
    each: bool = True,
) -> Layer:
    """A layer with random weights of `shape`, whose results fill the range of the output."""
    outputs, depth = shape[0], int(np.prod(shape[1:]))
    if not x.is_integer:
        constants = {
            "weights": source.normal(0, depth**-0.5, shape).astype("float32"),
            "biases": source.normal(0, 1, outputs).astype("float32"),
        }
        return Layer("l", kind, [x], [y], {"clip_min": -1.0, "clip_max": 1.0, **given}, constants)
    bits = [np.iinfo(t).bits - 8 for t in (x.dtype, weights, y.dtype)]
    shift = int(np.log2(depth**0.5 * 70 * 70 * 200 / 60)) + bits[0] + bits[1] - bits[2]
    limits = np.iinfo(weights)
    constants = {
        "weights": source.integers(limits.min, limits.max + 1, shape).astype(weights),
        "biases": source.integers(-3000, 3000, outputs).astype("int32") << bits[0],
    }
    given = {"clip_min": -2000, "clip_max": 20000, "negative_slope_value": 26, **given}
    if each:
        constants["scale"] = source.integers(100, 60000, outputs).astype("uint16")
        constants["shift"] = np.full(outputs, shift + 6, "int8")
    else:
        given |= {"scale_value": 200, "shift_value": shift}
    return Layer("l", kind, [x], [y], given, constants)


GEOMETRIES: tuple[tuple[Any, ...], ...] = (  # input, outputs, window, groups
    ((1, 8, 9, 8), 16, ((3, 3), 1, 1), 1),
    ((2, 7, 7, 3), 33, ((7, 7), 2, 3), 1),
    ((1, 6, 6, 64), 40, ((1, 1),), 1),
    ((1, 5, 70, 6), 8, ((3, 3), 1, 1), 1),
    ((1, 9, 9, 12), 24, ((3, 2), 1, 2, 2), 4),
    ((1, 4, 4, 260), 34, ((3, 3), 1, 1), 1),
    ((1, 1, 90, 1), 5, ((1, 70), 1, 0), 1),
    ((1, 5, 4, 6), 12, ((3, 3), 2, 1), 6),
)
DEPTHWISE: tuple[tuple[Any, ...], ...] = (
    ((2, 8, 9, 40), 40, ((3, 3), 1, 1), 40),
    ((1, 30, 19, 33), 33, ((3, 3), 2, 1), 33),
    ((1, 9, 9, 7), 7, ((5, 5), 1, 2), 7),
    ((1, 8, 9, 64), 64, ((3, 3), 1, 2, 2), 64),
)


def convolution(
    source: np.random.Generator,
    geometry: tuple[Any, ...],
    types: tuple[str, str],
    weights: str = "int8",
    activation: str = "NONE",
    zero: int = 0,
    each: bool = True,
    **given: Any,
) -> Layer:
    shape, outputs, form, groups = geometry
    keys = window(*form)
    kernel, stride, pad, dilation = form[0], keys["stride_x"], keys["pad_top"], keys["dilation_x"]
    size = [(s + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for s, k in zip(shape[1:3], kernel, strict=True)]
    x, y = tensor("x", shape, types[0], zero), tensor("y", (shape[0], *size, outputs), types[1], 3 if zero else 0)
    kind = "DepthwiseConv" if groups == shape[3] > 1 else "Convolution"
    keys |= {"group": groups, "with_activation": activation, **given}
    return weighted(source, kind, x, y, (outputs, *kernel, shape[3] // groups), keys, weights, each)


@pytest.mark.parametrize("dtype", (*BYTES, *SHORTS))
def test_convolutions_of_integers(tmp_path, source, dtype):
    outputs, zero = cycle((dtype, "int8", "uint16", "uint8")), 5 if dtype.startswith("i") else -5
    activations, each = cycle(ACTIVATIONS), cycle((True, True, False))
    first = (*BYTES, *SHORTS).index(dtype) % 2
    for geometry in (*GEOMETRIES[first::2], *DEPTHWISE[first::2]):
        layer = convolution(source, geometry, (dtype, next(outputs)), "int8", next(activations), zero, next(each))
        check(layer, source, tmp_path)
    for geometry in (GEOMETRIES[5], DEPTHWISE[0]):
        check(convolution(source, geometry, (dtype, dtype), "int16", next(activations)), source, tmp_path)


@pytest.mark.parametrize("dtype", FLOATS)
def test_convolutions_of_floats(tmp_path, source, dtype):
    activations = cycle(("NONE", "RELU", "RELU6", "CLIP"))
    part = slice(None) if dtype == "float32" else slice(None, None, 3)
    for geometry in some((*GEOMETRIES[part], *DEPTHWISE[part])):
        check(convolution(source, geometry, (dtype, dtype), activation=next(activations)), source, tmp_path)


@pytest.mark.parametrize("dtype", ("int8", "uint16"))
def test_weights_with_zero_points(tmp_path, source, dtype):
    for geometry in (GEOMETRIES[0], DEPTHWISE[0]):
        layer = convolution(source, geometry, (dtype, "int8"))
        zero = source.integers(-90, 90, geometry[1]).astype("int32")
        layer = Layer(
            "l", layer.type, layer.inputs, layer.outputs, layer.attributes, {**layer.constants, "weights_zp": zero}
        )
        check(layer, source, tmp_path)


def test_sums_shifted_ahead(tmp_path, source):
    """`remain_shift`: more than 16 bits, fewer, and none at all, where sums are limited to 32 bits; scalar shifts count
    twice with an activation."""
    cases = list(product(SHORTS, (4, 14, 20), ((True, "NONE"), (True, "RELU"), (False, "NONE"), (False, "RELU"))))
    for i, (dtype, remain, (each, activation)) in enumerate(cases[::3]):
        geometry = (GEOMETRIES[0], DEPTHWISE[2])[i % 2]
        weights = ("int16", "int8")[i // 2 % 2]
        layer = convolution(source, geometry, (dtype, dtype), weights, activation, 0, each, remain_shift=remain)
        check(layer, source, tmp_path)
    with pytest.raises(LayerError, match="remain_shift"):
        kernel_of([convolution(source, GEOMETRIES[0], ("int16", "int16"), "int16", "RELU6", 0, False, remain_shift=4)])


def test_a_transposed_sum_is_shifted_with_its_zero_point(tmp_path, source):
    """The shift ahead rounds sums of inputs with their zero point, which ordinary convolutions have in their biases."""
    window = {f"{n}_{a}": v for n, v in (("kernel", 3), ("stride", 1), ("dilation", 1)) for a in "xy"}
    for groups, own, stride, zero in ((1, 5, 2, -7), (2, 3, 1, 900), (6, 1, 1, 4001), (6, 1, 2, 5)):
        given = {**window, "stride_x": stride, "group": groups, "num_output": groups * own, "remain_shift": 9}
        given |= {"scale_value": 201, "shift_value": 14}
        x = Tensor("x", (2, 3, 4, 6), "int16", 1.0, zero)
        y = Tensor("y", (2, 5, 3 * stride + 3, groups * own), "int16", 1.0, 3)
        constants = {"weights": source.integers(-128, 128, (own, 3, 3, 6)).astype("int8")}
        constants |= {"biases": source.integers(-999999, 999999, groups * own).astype("int32")}
        check(Layer("l", "ConvTranspose", [x], [y], given, constants), source, tmp_path)


STORED = {"one": (1,), "channel": (6,), "block": (6, 5)}


@pytest.mark.parametrize("each", STORED)
@pytest.mark.parametrize("kind", ["FullyConnected", "Convolution"])
def test_weights_of_bytes_in_layers_of_floats(each, kind, tmp_path, source):
    """They stand for real numbers: (q + zero point) / scale, one for all, for a channel, or for a block of a row."""
    if kind == "Convolution" and each == "block":
        return
    x = tensor("x", (3, 40) if kind == "FullyConnected" else (1, 5, 4, 7), "float32")
    y = tensor("y", (3, 6) if kind == "FullyConnected" else (1, 5, 4, 6), "float32")
    shape = (6, 40) if kind == "FullyConnected" else (6, 1, 1, 7)
    scale, zero = source.uniform(20, 60, STORED[each]).astype("float32"), source.integers(-3, 4, STORED[each])
    weights = source.integers(-127, 128, shape).astype("int8")
    given: dict[str, Any] = {} if kind == "FullyConnected" else window((1, 1))
    levels = {"weights_scale": scale.reshape(-1), "weights_zp": zero.astype("int32").reshape(-1)}
    layer = Layer("l", kind, [x], [y], given, {"weights": weights, **levels})
    size = weights[0].size
    by, plus = (np.repeat(v.reshape(len(v), -1), size * len(v) // v.size, 1) for v in (scale, zero))
    real = (weights.reshape(6, size) + plus) / by
    values = source.normal(size=x.shape).astype("float32")
    np.testing.assert_allclose(evaluate(layer, [values])[0], values @ real.T.astype("float32"), rtol=1e-4, atol=1e-4)
    check(layer, source, tmp_path)


def test_stored_weights_without_a_scale_are_refused():
    x, y = tensor("x", (3, 4), "float32"), tensor("y", (3, 6), "float32")
    layer = Layer("l", "FullyConnected", [x], [y], {}, {"weights": np.ones((6, 4), "int8")})
    for ask in (lambda: kernel_of([layer]), lambda: evaluate(layer, [np.zeros((3, 4), "float32")])):
        with pytest.raises(LayerError, match="'weights' is int8 in a layer of floats, but 'weights_scale' is missing"):
            ask()


def fully_connected(source: np.random.Generator) -> Iterator[Layer]:
    sizes = cycle(((1, 5, 3), (6, 70, 40), (1, 700, 65)))
    for dtype, (rows, depth, cols) in zip((*BYTES, *SHORTS, *FLOATS) * 2, sizes, strict=False):
        zero = {"int8": 4, "uint8": -9}.get(dtype, 0)
        x, y = tensor("x", (rows, depth), dtype, zero), tensor("y", (rows, cols), dtype)
        yield weighted(source, "FullyConnected", x, y, (cols, depth), {"with_activation": ACTIVATIONS[rows % 3]})


def test_fully_connected(tmp_path, source):
    for layer in some(fully_connected(source)):
        check(layer, source, tmp_path)


def test_a_border_outside_the_type_is_refused(source):
    with pytest.raises(LayerError, match="padding with -5"):
        kernel_of([convolution(source, GEOMETRIES[0], ("uint8", "uint8"), zero=5)])


@pytest.mark.parametrize("dtype", ("int8", "int16", "float32"))
def test_a_tail_joins(tmp_path, source, dtype):
    """A following element-wise layer reads its other operand at the output's place, and gives the same bits."""
    for geometry in (GEOMETRIES[0], DEPTHWISE[0]):
        layer = convolution(source, geometry, (dtype, dtype))
        y = layer.output
        other, last = tensor("other", y.shape, dtype), tensor("z", y.shape, dtype)
        given = {"method": "ADD", "scale_value": [1, 1, 1], "shift_value": 0}
        add = Layer("a", "Eltwise", [y, other], [last], given)
        inputs = [drawn(source, t) for t in (layer.input, other)]
        both = Layer("l", layer.type, [layer.input, other], [last], layer.attributes, layer.constants)
        got = run(kernel_of([layer, add]), both, inputs, tmp_path)[0]
        alone = run(kernel_of([layer]), layer, inputs[:1], tmp_path)[0]
        np.testing.assert_array_equal(got, evaluate(add, [alone, inputs[1]])[0])


def matmul(
    sizes: tuple[int, int, int],
    types: tuple[str, str],
    batches: tuple[tuple[int, ...], ...] = ((), ()),
    flips: tuple[bool, bool] = (False, False),
    zeros: tuple[int, int] = (0, 0),
    **given: Any,
) -> Layer:
    m, depth, n = sizes
    a = tensor("a", (*batches[0], *((depth, m) if flips[0] else (m, depth))), types[0], zeros[0])
    b = tensor("b", (*batches[1], *((n, depth) if flips[1] else (depth, n))), types[1], zeros[1])
    out = "uint16" if types[0] == "uint16" else types[0]
    y = tensor("y", (*np.broadcast_shapes(*batches), m, n), out, 3 if a.is_integer else 0)
    given = {"trans_a": flips[0], "trans_b": flips[1], **given}
    if a.is_integer:
        shift = int(np.log2(depth**0.5 * 70 * 70 * 200 / 60)) + np.iinfo(types[1]).bits - 8
        given = {"scale_value": 200, "shift_value": shift, **given}
    return Layer("m", "MatMul", [a, b], [y], given)


def test_matrix_products(tmp_path, source):
    pairs = [("int8", "int8"), ("uint8", "int8"), ("int16", "int16"), ("uint16", "int8")]
    for whole, types in [(True, p) for p in pairs] + [(False, (d, d)) for d in FLOATS]:
        factor: dict[str, Any] = {} if whole else {"fused_multiplier": 0.5}
        zeros = {"int8": (5, -7), "uint8": (-128, 3)}.get(types[0], (0, 0))
        cases = [
            matmul((37, 133, 70), types, ((2, 1), (3,)), (True, False), zeros),
            matmul((40, 130, 65), types, ((), (2,)), (False, True), zeros, **factor),
            matmul((5, 41, 19), types, zeros=zeros),
            matmul((1, 70, 33), types, ((2,), (2,)), (True, True), zeros),
        ]
        for layer in cases[: 4 if types[0] in ("int8", "float32") else 2]:
            check(layer, source, tmp_path)
    for remain in (8, 40):
        check(matmul((5, 41, 19), ("int16", "int16"), remain_shift=remain), source, tmp_path)
    with pytest.raises(LayerError, match="sums of 200000 products"):
        kernel_of([matmul((2, 200000, 3), ("int8", "int8"))])


@pytest.mark.parametrize("dtype", ("int8", "float32", "float16"))
def test_gemm(tmp_path, source, dtype):
    plain = matmul((5, 41, 19), (dtype, dtype), flips=(False, True))
    check(Layer("g", "Gemm", plain.inputs, plain.outputs, plain.attributes), source, tmp_path)
    given = {**plain.attributes, "alpha": 0.5, "beta": -2.0}
    if dtype == "int8":
        given |= {"scale_value": [150, 3, 700], "shift_value": 20}
    for shape in ((19,), (5, 19), (5, 1), ()):
        c = tensor("c", shape, "int16" if dtype == "int8" else dtype, 9 if dtype == "int8" else 0)
        check(Layer("g", "Gemm", [*plain.inputs, c], plain.outputs, given), source, tmp_path)


def batch_norm(
    source: np.random.Generator,
    shape: tuple[int, ...],
    axis: int,
    types: tuple[str, str],
    activation: str = "NONE",
    each: bool = True,
    kind: str = "BatchNorm",
) -> Layer:
    channels, whole = shape[axis], types[0] not in FLOATS
    x, y = tensor("x", shape, types[0], 3 if whole else 0), tensor("y", shape, types[1], 2 if whole else 0)
    given: dict[str, Any] = {"axis": axis, "with_activation": activation}
    if not whole:
        constants = {key: source.normal(0, 1, channels).astype("float32") for key in ("weights", "biases")}
        return Layer("b", kind, [x], [y], given, constants)
    bits = np.iinfo(types[0]).bits
    wide = 15 if kind == "BatchNorm" else 0
    constants = {
        "weights": source.integers(-32768, 32768, channels).astype("int16"),
        "biases": source.integers(-(1 << (bits + wide - 3)), 1 << (bits + wide - 3), channels).astype("int32"),
    }
    shift = 14 + wide + bits - np.iinfo(types[1]).bits
    if each:
        constants["scale"] = source.integers(100, 32768, channels).astype("uint16")
        constants["shift"] = np.full(channels, shift, "int8")
    else:
        given |= {"scale_value": 20000, "shift_value": shift}
    return Layer("b", kind, [x], [y], given, constants)


@pytest.mark.parametrize("dtype", (*BYTES, *SHORTS, "float32", "float16"))
def test_numbers_per_channel(tmp_path, source, dtype):
    other = dtype if dtype in FLOATS else "int8"
    check(batch_norm(source, (2, 5, 6, 33), 3, (dtype, other)), source, tmp_path)
    check(batch_norm(source, (2, 5, 33), 1, (dtype, dtype), "RELU", False), source, tmp_path)
    check(batch_norm(source, (2, 5, 33), -1, (dtype, dtype), kind="BiasAdd"), source, tmp_path)


@pytest.mark.parametrize("groups", (1, 3))
def test_batch_norm_behind_a_convolution(tmp_path, source, groups):
    """It joins, also where the groups do not fill whole vectors."""
    first = convolution(source, ((1, 6, 5, 6), 42, ((3, 3), 1, 1), groups), ("int8", "int8"))
    norm = batch_norm(source, first.output.shape, 3, ("int8", "int8"))
    norm = Layer(
        "b", "BatchNorm", [first.output], [tensor("z", first.output.shape, "int8")], norm.attributes, norm.constants
    )
    inputs = [drawn(source, first.input)]
    both = Layer("l", "Convolution", first.inputs, norm.outputs)
    got = run(kernel_of([first, norm]), both, inputs, tmp_path)[0]
    np.testing.assert_array_equal(got, evaluate(norm, evaluate(first, inputs))[0])


def test_whole_numbers_with_float_parameters_are_refused(source):
    norm = batch_norm(source, (2, 5), 1, ("float32", "int8"))
    with pytest.raises(LayerError, match="'y' is int8"):
        kernel_of([norm])


TRANSPOSED: tuple[tuple[Any, ...], ...] = (  # input, outputs, kernel, strides, pad, dilation, groups, output padding
    ((2, 5, 6, 7), 33, (3, 3), (2, 2), 1, 1, 1, 0),
    ((1, 4, 5, 8), 12, (4, 2), (2, 3), 0, 1, 4, 1),
    ((1, 6, 5, 3), 5, (3, 3), (1, 2), 3, 2, 1, 0),
    ((1, 3, 4, 40), 4, (2, 2), (2, 2), 0, 1, 1, 0),
    ((1, 4, 5, 8), 8, (3, 2), (1, 1), 1, 1, 8, 0),
)


@pytest.mark.parametrize("dtype", ("int8", "uint8", "int16", "float32", "float16"))
def test_transposed_convolutions(tmp_path, source, dtype):
    activations, zero = cycle(ACTIVATIONS), {"int8": 5, "uint8": -5}.get(dtype, 0)
    for shape, outputs, kernel, strides, pad, dilation, groups, extra in TRANSPOSED:
        size = [
            (n - 1) * s + dilation * (k - 1) + 1 + extra - 2 * pad
            for n, s, k in zip(shape[1:3], strides, kernel, strict=True)
        ]
        given = {**window(kernel, 1, pad, dilation), "stride_y": strides[0], "stride_x": strides[1], "group": groups}
        given |= {"output_padding_x": extra, "output_padding_y": extra, "with_activation": next(activations)}
        x, y = tensor("x", shape, dtype, zero), tensor("y", (shape[0], *size, outputs), dtype)
        each = weighted(source, "ConvTranspose", x, y, (outputs, *kernel, shape[3] // groups), given)
        filters = each.constants["weights"].reshape(-1)[: outputs // groups * kernel[0] * kernel[1] * shape[3]]
        constants = {**each.constants, "weights": filters.reshape(outputs // groups, *kernel, shape[3])}
        check(Layer("l", each.type, [x], [y], each.attributes, constants), source, tmp_path)


def test_rounding_of_long_products(tmp_path, source):
    """Products beyond 32 bits are rounded to the nearest, ties to even; every third sum is a multiple of 65536."""
    values = np.arange(-32768, 32768).astype("int16")
    for scale, shift in ((32768, 17), (65535, 20), (40000, 31), (32769, 18), (49152, 17)):
        biases = source.integers(-(2**22), 2**22, values.size).astype("int32")
        biases[::3] = (1 << 16) * source.integers(-50, 50, biases[::3].size) - values[::3]
        given = {"axis": 0, "scale_value": scale, "shift_value": shift}
        x, y = tensor("x", values.shape, "int16"), tensor("y", values.shape, "int16")
        layer = Layer("b", "BiasAdd", [x], [y], given, {"biases": biases})
        kernel = kernel_of([layer])
        np.testing.assert_array_equal(run(kernel, layer, [values], tmp_path)[0], evaluate(layer, [values])[0])


@pytest.mark.parametrize("out", ["int8", "int16"])
def test_sums_of_more_than_24_bits_are_rounded_once(tmp_path, out):
    """Factors that are powers of two lead to ties, and sums beyond what float32 holds to limits."""
    source, depth, outputs = np.random.default_rng(5), 1200, 40
    weights = source.integers(-128, 128, (outputs, depth), np.int8)
    scale = np.where(np.arange(outputs) % 2, source.integers(16384, 32768, outputs), 16384).astype(np.uint16)
    shift = (source.integers(14, 20, outputs) + (8 if out == "int8" else 0)).astype(np.int8)
    x, y = Tensor("x", (64, depth), "uint8", 1.0, 0), Tensor("y", (64, outputs), out, 1.0, 3)
    constants = {"weights": weights, "biases": np.zeros(outputs, np.int32), "scale": scale, "shift": shift}
    layer = Layer("f", "FullyConnected", [x], [y], {"num_output": outputs}, constants)
    few = source.integers(0, 256, x.shape, np.uint8) * (source.random(x.shape) < source.random((64, 1)))
    for values in (few, np.where(weights[:1] > 0, 255, 0).repeat(64, 0)):
        want = evaluate(layer, [values.astype(np.uint8)])[0]
        np.testing.assert_array_equal(run(kernel_of([layer]), layer, [values.astype(np.uint8)], tmp_path)[0], want)


@pytest.mark.parametrize("name", ["scale1", "zp0"])
def test_factors_in_floats_beside_integers_are_refused_by_name(name):
    constants = {"weights": np.ones((4, 8), "int8"), "biases": np.zeros(4, "int32"), name: np.ones(4, "float32")}
    tensors = Tensor("x", (2, 8), "int8", 8.0), Tensor("y", (2, 4), "int8", 8.0)
    layer = Layer("l", "FullyConnected", tensors[:1], tensors[1:], {"num_output": 4}, constants)
    for ask in (lambda: kernel_of([layer]), lambda: evaluate(layer, [np.zeros((2, 8), "int8")])):
        with pytest.raises(LayerError, match=f"'{name}' is given"):
            ask()


def test_signed_sums_of_many_weights_are_those_of_whole_numbers():
    """Sums have more bits than weights."""
    random = np.random.default_rng(3)
    for kind, size in ((np.int8, (5, 40000)), (np.int16, (700, 3, 100)), (np.int64, (3, 7))):
        weights = random.integers(-128, 128, size).astype(kind)
        rows = weights.reshape(size[0], -1).tolist()
        positive, negative = signed_sums(weights)
        assert positive.tolist() == [sum(w for w in row if w > 0) for row in rows]
        assert negative.tolist() == [sum(w for w in row if w < 0) for row in rows]


def test_formats_of_weights_as_they_are_stored_are_those_of_whole_numbers(source):
    """Bytes are not widened before their format is known; in every format they are the numbers that they were."""
    found = set()
    for kind, (stored, most), depth in product((*BYTES, *SHORTS), (("int8", 127), ("uint8", 255)), (3, 600, 9000)):
        weights = source.integers(most - 3, most + 1, (2, depth)).astype(stored)
        biases = source.integers(-500, 500, 2)
        f, wide = (
            integer_format(Tensor("x", (1, depth), kind), w, biases, 0) for w in (weights, weights.astype("int64"))
        )
        assert (f.staged, f.pair, f.low, f.high) == (wide.staged, wide.pair, wide.low, wide.high)
        assert f.planes.dtype == wide.planes.dtype and np.array_equal(f.planes, wide.planes)
        assert f.start.tolist() == wide.start.tolist()
        assert np.array_equal(sum(p.astype("int64") << 8 * i for i, p in enumerate(f.planes)), weights)
        found.add((f.staged, f.pair, len(f.planes)))
    assert found == {("uint8", False, 1), ("int16", False, 1), ("int16", True, 1)}


def test_weights_in_bytes_are_the_weights(source):
    for kind in ("int8", "uint8", "int16", "int64"):
        weights = source.integers(-128 * (kind != "uint8"), 128, (4, 9)).astype(kind)
        low, high = in_bytes(weights).astype("int64")
        assert np.array_equal(low + 256 * high, weights) and low.min() >= 0

"""Layers that are seldom seen: kernels give what the references give, and these what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import evaluate
from compassc.layers.families.pooling.fractional import boundaries
from compassc.layers.families.sampling.affine import points
from compassc.layers.kernels import kernel_of
from tests.choosing import some
from tests.layers.cases import drawn, same, tensor

Array = np.ndarray[Any, Any]
NEAR = {"float32": 1e-5, "float16": 4e-3}


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(29)


@pytest.mark.parametrize("dtype", ["float32"])
def test_rotations(tmp_path, source, dtype):
    for shape, cache, given in (
        ((2, 3, 5, 8), (9, 4), {}),
        ((2, 5, 3 * 70), (2, 9, 40), {"num_heads": 3, "rotary_embedding_dim": 66}),
        ((2, 3, 5, 8), (2, 9, 5), {"interleaved": 1, "rotary_embedding_dim": 6}),
    ):
        inputs = [
            tensor("x", shape, dtype),
            tensor("c", cache, dtype),
            tensor("s", cache, dtype),
            tensor("p", (2, 5), "int32"),
        ]
        values = [*(drawn(source, t) for t in inputs[:3]), source.integers(0, 9, (2, 5)).astype("int32")]
        many = 3 if shape[1] == 3 and not given else 4
        layer = Layer("l", "RotaryEmbedding", tuple(inputs[:many]), (tensor("y", shape, dtype),), given)
        same(layer, values[:many], tmp_path, NEAR[dtype])


def test_a_rotation_is_one_of_complex_numbers(source):
    angle = source.uniform(0, 6, (5, 4))
    inputs = (tensor("x", (1, 1, 5, 8), "float32"), *(tensor(n, (5, 4), "float32") for n in "cs"))
    layer = Layer("l", "RotaryEmbedding", inputs, (tensor("y", (1, 1, 5, 8), "float32"),), {"interleaved": True})
    x = drawn(source, inputs[0])
    (found,) = evaluate(layer, [x, np.cos(angle).astype("f4"), np.sin(angle).astype("f4")])
    turned = (x[0, 0, :, ::2] + 1j * x[0, 0, :, 1::2]) * np.exp(1j * angle)
    np.testing.assert_allclose(found[0, 0, :, ::2] + 1j * found[0, 0, :, 1::2], turned, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32"])
def test_attention(tmp_path, source, dtype):
    for n, heads, of_keys, m, c, keys, d, turned, mask in (
        (2, 4, 2, 3, 8, 37, 5, (False, True, False), (1, 4, 3, 37)),
        (1, 2, 2, 5, 6, 9, 40, (True, False, True), None),
    ):
        shapes = [(n, heads, m, c), (n, of_keys, c, keys), (n, of_keys, keys, d)]
        shapes = [(*s[:2], s[3], s[2]) if t else s for s, t in zip(shapes, turned, strict=True)]
        inputs = [tensor(name, s, dtype) for name, s in zip("qkvm", [*shapes, *([mask] if mask else [])], strict=False)]
        given = {
            **{f"trans_{a}": t for a, t in zip("qkv", turned, strict=True)},
            "enable_gqa": True,
            "with_mask": mask is not None,
            "scale_factor": 0.3,
        }
        layer = Layer("l", "SDPAttention", tuple(inputs), (tensor("y", (n, heads, m, d), dtype),), given)
        same(layer, [drawn(source, t) for t in inputs], tmp_path, NEAR[dtype])


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_counts(tmp_path, source, dtype):
    x = tensor("x", (5, 37), dtype)
    values = drawn(source, x, narrow=True)
    targets = np.asarray([0, 36, 5, -1, 40], "int32")
    layer = Layer("l", "InTopK", (x, tensor("t", (5,), "int32")), (tensor("y", (5,), "uint8"),), {"k": 12})
    same(layer, [values, targets], tmp_path)
    floats = dtype.startswith("float")
    x = Tensor("x", (5, 37), dtype, 1.0, 0 if floats else -2)
    for many in (1, 5):
        y = Tensor("y", (many,), dtype if floats else "uint8", 1.0, 0 if floats else 3)
        same(Layer("l", "ZeroFraction", (x,), (y,), {} if floats else {"output_scale": 255}), [values], tmp_path)


@pytest.mark.parametrize("dtype", ["float32"])
def test_histograms(tmp_path, source, dtype):
    x = tensor("x", (2, 60), dtype)
    values = source.uniform(-1.2, 1.2, x.shape).astype(dtype)
    values[:, :5] = [-1, -0.5, 0, 0.5, 1]
    for discrete in (True, False):
        layer = Layer(
            "l",
            "Count",
            (x,),
            (tensor("y", (2, 4), "int32"),),
            {"nbins": 4, "min": -1.0, "max": 1.0, "discrete": discrete},
        )
        same(layer, [values], tmp_path)
        found = evaluate(layer, [values])[0]
        want = [np.histogram(row[(row < 1) | discrete], 4, (-1, 1))[0] for row in values.astype("f8")]
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_affine_grids(tmp_path, source, dtype):
    for n, sizes, corners in ((2, (3, 5), True), (1, (4, 40), False), (2, (2, 3, 4), False)):
        axes = len(sizes)
        theta = tensor("t", (n, axes, axes + 1), dtype)
        given: dict[str, Any] = {"align_corners": corners}
        constants: dict[str, Array] = {}
        if not dtype.startswith("float"):
            given |= {"multiplier_bits": 8, "scale_value": 130, "shift_value": 15}
            constants = {
                f"{a}_lut": np.rint(np.linspace(-256, 256, s)).astype("int16")
                for a, s in zip("whd", reversed(sizes), strict=False)
            }
        y = Tensor("y", (n, *sizes, axes), dtype, 1.0, 0 if dtype.startswith("float") else 4)
        layer = Layer("l", "AffineGrid", (theta,), (y,), given, constants)
        same(layer, [drawn(source, theta)], tmp_path, NEAR.get(dtype, 0))


def test_the_identity_map_is_the_grid_of_pixels():
    layer = Layer("l", "AffineGrid", (tensor("t", (1, 2, 3), "float32"),), (tensor("y", (1, 3, 4, 2), "float32"),))
    (found,) = evaluate(layer, [np.asarray([[[1, 0, 0], [0, 1, 0]]], "float32")])
    np.testing.assert_allclose(found[0, 0, :, 0], [-0.75, -0.25, 0.25, 0.75], atol=1e-7)
    np.testing.assert_allclose(found[0, :, 0, 1], points(layer, 3), atol=1e-7)


@pytest.mark.parametrize("method", ["AVG", "MAX"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_random_windows(tmp_path, source, method, dtype):
    for shape, size, pseudo, overlap in (((2, 7, 9, 3), (5, 6), True, False), ((1, 10, 8, 40), (3, 7), False, True)):
        x = tensor("x", shape, dtype)
        outputs = (
            tensor("y", (shape[0], *size, shape[3]), dtype),
            tensor("r", (size[0] + 1,), "int32"),
            tensor("c", (size[1] + 1,), "int16"),
        )
        given = {"method": method, "pseudo": pseudo, "overlap": overlap, "seed": 7}
        same(Layer("l", "FractionalPool", (x,), outputs, given), [drawn(source, x)], tmp_path, NEAR.get(dtype, 0))


def test_windows_cover_the_image():
    for size in (5, 8, 31):
        for parts in some(range(1, size + 1)):
            for pseudo in (True, False):
                found = boundaries(size, parts, pseudo, 11 + parts)
                steps = np.diff(found)
                assert found[0] == 0 and found[-1] == size and len(steps) == parts
                assert pseudo or set(steps.tolist()) <= {size // parts, size // parts + 1}
                assert steps.min() >= 1


def test_windows_without_a_seed_are_refused():
    layer = Layer(
        "l",
        "FractionalPool",
        (tensor("x", (1, 4, 4, 2), "float32"),),
        (tensor("y", (1, 2, 2, 2), "float32"),),
        {"method": "MAX", "seed": 0},
    )
    with pytest.raises(LayerError, match="seed"):
        kernel_of([layer])


def test_the_first_input_with_elements(tmp_path, source):
    inputs = (tensor("a", (0, 3), "float16"), tensor("b", (40, 3), "float16"), tensor("c", (40, 3), "float16"))
    layer = Layer("l", "Switch", inputs, (tensor("y", (40, 3), "float16"),))
    values = [source.normal(0, 1, t.shape).astype(numpy_dtype(t.dtype)) for t in inputs]
    same(layer, values, tmp_path)
    np.testing.assert_array_equal(evaluate(layer, values)[0], values[1])

"""Layers on int8, and layers that only move data or convert it: results are exact."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Cases
from references import convolution, requantised, window_keys, windows


@pytest.fixture
def source():
    return np.random.default_rng(5)


def drawn(source, shape, dtype):
    return source.integers(-100, 100, shape).astype(dtype)


def test_linear_layers_on_int8(tmp_path, source):
    cases = Cases()
    x = source.integers(-128, 128, (1, 5, 6, 8)).astype("int8")
    for kernel, stride, groups, outputs in (
        ((3, 3), 1, 1, 40),
        ((1, 1), 1, 1, 5),
        ((3, 2), 2, 2, 6),
        ((3, 3), 1, 8, 8),
    ):
        w = source.integers(-128, 128, (outputs, *kernel, 8 // groups)).astype("int8")
        biases = source.integers(-999, 999, outputs).astype("int32")
        scale, shift = source.integers(1, 99, outputs).astype("int32"), np.full(outputs, 16, "int32")
        sums = convolution(x, w, biases, stride, 1, 1, groups)
        given = {"weights": w, "biases": biases, "group": groups, "layer_top_zp": [3], "layer_top_scale": [2.0]}
        given |= {"num_output": outputs, **window_keys(kernel, stride, 1)}
        kind = "DepthwiseConv" if groups == 8 else "Convolution"
        cases.add(kind, [x], requantised(sums, scale / 2.0**16, 3), scale=scale, shift=shift, **given)
        cases.add(kind, [x], requantised(sums, np.float64(7 / 2**12), 3, -3), scale_value=7, shift_value=12,
                  with_activation="RELU", **given)  # fmt: skip
    rows, w = source.integers(-128, 128, (3, 100)).astype("int8"), source.integers(-128, 128, (21, 100)).astype("int8")
    sums = rows.astype("int32") @ w.T.astype("int32")
    want = requantised(sums, np.float64(7 / 2**12), 0)
    cases.add("FullyConnected", [rows], want, weights=w, scale_value=7, shift_value=12, num_output=21)
    cases.check(tmp_path)


def real(q, scale, zero):
    return (q.astype("float32") + zero) / np.float32(scale)


def quantised(x, scale, zero, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x.astype("float32") * np.float32(scale)) - zero, limits.min, limits.max).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_elementwise_layers_on_quantised_values(tmp_path, source, dtype):
    limits, (sa, za), (sb, zb), (so, zo) = np.iinfo(dtype), (32.0, 3), (16.0, -5), (8.0, 7)
    cases = Cases()
    a, b = (source.integers(limits.min, limits.max + 1, (3, 45)).astype(dtype) for _ in range(2))
    kinds = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAX": np.maximum}
    for (method, function), act in zip(kinds.items(), ("NONE", "RELU", "NONE", "RELU6"), strict=True):
        want = function(real(a, sa, za), real(b, sb, zb))
        want = np.clip(want, 0 if act != "NONE" else -np.inf, 6 if act == "RELU6" else np.inf)
        scales = {"layer_top_scale": [so], "layer_top_zp": [zo]}
        given = {"input_scales": [(sa, za), (sb, zb)], "method": method, "with_activation": act, **scales}
        cases.add("Eltwise", [a, b], quantised(want, so, zo, dtype), **given)
    for method in ("RELU", "LEAKYRELU"):
        want = np.maximum(real(a, sa, za), real(a, sa, za) * np.float32(0.125 if method[0] == "L" else 0))
        cases.add("Activation", [a], quantised(want, so, zo, dtype), method=method, negative_slope_value=0.125,
                  input_scales=[(sa, za)], **scales)  # fmt: skip
    cases.check(tmp_path)


def test_pooling_of_int8(tmp_path, source):
    cases = Cases()
    x = source.integers(-128, 128, (2, 6, 4, 35)).astype("int8")
    seen = windows(x, (2, 2), 2, 0, 1, 0)
    cases.add("Pooling", [x], seen.max((-1, -2)), method="MAX", **window_keys((2, 2), 2))
    mean = np.rint(seen.astype("float32").mean((-1, -2))).astype("int8")
    cases.add("Pooling", [x], mean, method="AVG", **window_keys((2, 2), 2))
    cases.check(tmp_path)


def test_casts(tmp_path, source):
    cases = Cases()
    real = source.normal(0, 150, (3, 45)).astype("float32")
    whole = source.integers(-(10**6), 10**6, 77).astype("int32")
    small = source.integers(-128, 128, 33).astype("int8")
    for to in ("int8", "uint8", "int16", "int32"):
        limits = np.iinfo(to)
        cases.add("Cast", [real], np.clip(np.trunc(real), limits.min, limits.max).astype(to), dtype=to)
        cases.add("Cast", [whole], np.clip(whole, limits.min, limits.max).astype(to), dtype=to)
        cases.add("Cast", [whole], whole.astype(to), dtype=to, clip_mode="TRUNCATION")
    for to in ("float32", "float16"):
        cases.add("Cast", [small], small.astype(to), dtype=to)
        cases.add("Cast", [real], real.astype(to), dtype=to)
    cases.check(tmp_path)


@pytest.fixture(params=["float32", "float16", "int8"])
def dtype(request):
    return request.param


def test_transposes_and_reshapes(tmp_path, source, dtype):
    cases = Cases()
    for shape, perm in (((2, 5, 6, 7), (0, 3, 1, 2)), ((2, 5, 6, 7), (1, 0, 2, 3)), ((9, 40), (1, 0)), ((1, 3), (0, 1)),
                        ((2, 3, 4, 5), (3, 2, 1, 0)), ((2, 1, 3, 2, 9), (3, 0, 1, 2, 4))):  # fmt: skip
        x = drawn(source, shape, dtype)
        cases.add("Transpose", [x], x.transpose(perm), perm=list(perm))
    cases.graph.input("flat", (6, 10), dtype)
    cases.arrays["flat"] = drawn(source, (6, 10), dtype)
    top = cases.graph.layer("Reshape", ["flat"], (3, 20), dtype)
    cases.wanted[top] = "Reshape", cases.arrays["flat"].reshape(3, 20)
    cases.check(tmp_path)


def test_concat_and_split(tmp_path, source, dtype):
    cases = Cases()
    for shapes, axis in ((((2, 5, 6), (2, 3, 6)), 1), (((2, 40), (7, 40), (1, 40)), 0), (((9, 3),) * 8, 1)):
        parts = [drawn(source, shape, dtype) for shape in shapes]
        cases.add("Concat", parts, np.concatenate(parts, axis), axis=axis)
    x = drawn(source, (3, 50), dtype)
    cases.arrays["whole"] = x
    cases.graph.input("whole", x.shape, dtype)
    pieces = np.split(x, [7, 40], 1)
    cases.graph.add("Split", ["whole"], [(f"piece{i}", p.shape, dtype) for i, p in enumerate(pieces)], axis=1)
    cases.wanted |= {f"piece{i}": ("Split", piece) for i, piece in enumerate(pieces)}
    cases.check(tmp_path)


def test_remapping(tmp_path, source, dtype):
    cases = Cases()
    x = drawn(source, (2, 5, 6, 7), dtype)
    cases.add("Slice", [x], x[1:2, 4:0:-2, :, 1:7:2], begin=[1, 4, 0, 1], end=[2, 0, 6, 7], strides=[1, -2, 1, 2])
    cases.add("Slice", [x], x[:, ::-1, 1:-1], begin=[0, 4, 1, 0], end=[2, -1, -1, 99], strides=[1, -1, 1, 1])
    cases.add("Crop", [x], x[:, 1:4, -3:6], crops=[[0, 2], [1, 4], [-3, 6], [0, 7]])
    for mode in ("CONSTANT", "REFLECT", "SYMMETRIC", "EDGE", "WRAP"):
        for pads in ([[0, 0], [1, 2], [3, 0], [0, 0]], [[0, 1], [0, 0], [0, 0], [2, 1]]):
            fill = {"constant_values": 3} if mode == "CONSTANT" else {}
            cases.add("Pad", [x], np.pad(x, pads, mode.lower(), **fill), mode=mode, pads=pads, constant_value=3)
    cases.add("Tile", [x], np.tile(x, (1, 2, 1, 2)), repeats=[1, 2, 1, 2])
    cases.add("Resize", [x], x.repeat(2, 1).repeat(3, 2), method="NEAREST", ratio_y=2.0, ratio_x=3.0)
    down = x[:, np.floor(np.arange(2) / 0.4).astype(int)][:, :, np.floor(np.arange(3) / 0.5).astype(int)]
    cases.add("Resize", [x], down, method="NEAREST", ratio_y=0.4, ratio_x=0.5, mode="ASYMMETRIC", nearest_mode="FLOOR")
    cases.check(tmp_path)


def test_gather(tmp_path, source, dtype):
    cases = Cases()
    x = drawn(source, (3, 5, 33), dtype)
    idx = np.array([[1, -1], [4, 0]], "int32")
    cases.add("Gather", [x, idx], x[:, idx], axis=1, batch_dims=0)
    cases.add("Gather", [x, idx[0]], x[idx[0]], axis=0)
    beyond = np.array([5, -5, 2], "int32")
    padded = np.concatenate([x, np.zeros_like(x[:, :1])], 1)
    cases.add("Gather", [x, beyond], padded[:, [5, 0, 2]], axis=1)
    own = np.array([[1, 0], [2, 2], [-1, 4]], "int32")
    cases.add("Gather", [x, own], np.stack([x[i, own[i]] for i in range(3)]), axis=1, batch_dims=1)
    cases.check(tmp_path)

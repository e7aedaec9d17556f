"""Layers on int8, and layers that only move data or convert it: results are exact."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Cases


@pytest.fixture
def source():
    return np.random.default_rng(5)


def drawn(source, shape, dtype):
    return source.integers(-100, 100, shape).astype(dtype)


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
    if dtype == "int8":
        return cases.check(tmp_path)
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

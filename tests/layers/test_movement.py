"""Layers that move elements: kernels give exactly what the references give, for all element sizes and many shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer
from compassc.layers.families.movement.reference import PAD_MODES
from tests.choosing import some
from tests.layers.cases import SIZES, TYPES, drawn, layer_of, same, tensor

Rows = Iterator[tuple[str, list[tuple[int, ...]], dict[str, Any], list[tuple[int, ...]]]]
"""Layer type, shapes of the inputs, attributes, shapes of the outputs."""


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(5)


def reshapes() -> Rows:
    yield "Reshape", [(6, 10)], {"shape": [3, 20]}, [(3, 20)]
    yield "Flatten", [(2, 3, 67)], {}, [(2, 201)]
    yield "Squeeze", [(1, 5, 1)], {"axis": [0]}, [(5, 1)]
    yield "Reshape", [(1,)], {"shape": []}, [()]


def transposes() -> Rows:
    shapes = (
        ((2, 5, 6, 7), (0, 3, 1, 2)),
        ((2, 5, 6, 7), (1, 0, 2, 3)),
        ((9, 40), (1, 0)),
        ((1, 3), (0, 1)),
        ((2, 3, 4, 5), (3, 2, 1, 0)),
        ((2, 1, 3, 2, 9), (3, 0, 1, 2, 4)),
        ((3, 70, 130), (0, 2, 1)),
        ((2, 3, 2, 3, 2, 3), (5, 0, 3, 1, 4, 2)),
        ((1, 3, 33, 35), (0, 2, 3, 1)),
    )
    for shape, perm in shapes:
        yield "Transpose", [shape], {"perm": list(perm)}, [tuple(shape[p] for p in perm)]


def joined() -> Rows:
    for shapes, axis in ((((2, 5, 6), (2, 3, 6)), 1), (((2, 40), (7, 40), (1, 40)), 0), (((9, 3),) * 9, 1)):
        out = list(shapes[0])
        out[axis] = sum(s[axis] for s in shapes)
        yield "Concat", list(shapes), {"axis": axis}, [tuple(out)]
        yield "Split", [tuple(out)], {"axis": axis, "splits": [s[axis] for s in shapes]}, list(shapes)
    yield "Split", [(3, 50)], {"axis": -1, "splits": [7, 33, 10]}, [(3, 7), (3, 33), (3, 10)]


def parts() -> Rows:
    x = (2, 5, 6, 7)
    yield "Slice", [x], {"begin": [1, 4, 0, 1], "end": [2, 0, 6, 7], "strides": [1, -2, 1, 2]}, [(1, 2, 6, 3)]
    yield "Slice", [x], {"begin": [0, 4, 1, 0], "end": [2, -9, -1, 99], "strides": [1, -1, 1, 1]}, [(2, 5, 4, 7)]
    yield "StridedSlice", [(9, 100)], {"begin": [0, 99], "end": [9, -101], "strides": [2, -1]}, [(5, 100)]
    yield "Slice", [(4, 90)], {"begin": [1, 10], "end": [3, 85], "strides": [1, 1]}, [(2, 75)]
    yield "Crop", [x], {"crops": [[0, 2], [1, 4], [-3, 6], [0, 7]]}, [(2, 3, 3, 7)]
    yield "Tile", [x], {"repeats": [1, 2, 1, 2]}, [(2, 10, 6, 14)]
    yield "Tile", [(3, 80)], {"repeats": [2, 3]}, [(6, 240)]
    for mode in PAD_MODES:
        for pads in ([[0, 0], [1, 2], [3, 0], [0, 0]], [[0, 1], [0, 0], [0, 0], [2, 1]]):
            out = tuple(n + a + b for n, (a, b) in zip(x, pads, strict=True))
            yield "Pad", [x], {"mode": mode, "pads": pads, "constant_value": 1}, [out]


def blocks() -> Rows:
    by_two = {"block_size_x": 2, "block_size_y": 2}
    for mode in ("DCR", "CRD"):
        yield "DepthToSpace", [(2, 3, 4, 12)], {**by_two, "mode": mode}, [(2, 6, 8, 3)]
        flat = {"block_size_x": 3, "block_size_y": 1, "mode": mode}
        yield "DepthToSpace", [(1, 3, 2, 120)], flat, [(1, 3, 6, 40)]
    yield "SpaceToDepth", [(2, 6, 4, 5)], by_two, [(2, 3, 2, 20)]
    yield "SpaceToDepth", [(1, 4, 4, 70)], by_two, [(1, 2, 2, 280)]
    crops = {"crop_top": 1, "crop_bottom": 0, "crop_left": 2, "crop_right": 1}
    yield "BatchToSpace", [(8, 3, 4, 5)], {**by_two, **crops}, [(2, 5, 5, 5)]
    yield "BatchToSpace", [(6, 2, 2, 40)], {"block_size_x": 3, "block_size_y": 2}, [(1, 4, 6, 40)]
    yield "BatchToSpaceND", [(12, 2, 3, 4, 5)], {"block_size": [2, 1, 3]}, [(2, 4, 3, 12, 5)]
    yield "BatchToSpaceND", [(4, 3, 2, 33)], {"block_size": [2, 2], "crops": [[1, 0], [0, 2]]}, [(1, 5, 2, 33)]
    windows = {"kernel_x": 3, "kernel_y": 2, "stride_x": 2, "stride_y": 1}
    yield "DataStride", [(2, 4, 7, 5)], windows, [(2, 6, 9, 5)]
    pads = {"pad_top": 1, "pad_bottom": 2, "pad_left": 0, "pad_right": 3}
    yield "SpaceToBatch", [(2, 3, 5, 4)], {**by_two, **pads}, [(8, 3, 4, 4)]
    yield "SpaceToBatch", [(1, 4, 6, 33)], {"block_size_x": 3, "block_size_y": 2}, [(6, 2, 2, 33)]
    yield "BatchToDepth", [(6, 2, 3, 5)], {"block_size": 3}, [(2, 2, 3, 15)]
    yield "ChannelShuffle", [(2, 3, 4, 12)], {"group": 3, "splits": 1}, [(2, 3, 4, 12)]
    yield "ChannelShuffle", [(1, 5, 3, 64)], {"group": 2, "splits": 2}, [(1, 5, 3, 32)] * 2
    for indexing in ("xy", "ij"):
        grid = (5, 40) if indexing == "xy" else (40, 5)
        yield "Meshgrid", [(40,), (5,)], {"indexing": indexing}, [grid, grid]
        thin = [(1, 40), (5, 1)] if indexing == "xy" else [(40, 1), (1, 5)]
        yield "Meshgrid", [(40,), (5,)], {"indexing": indexing, "sparse": True}, thin


def check(rows: Rows, dtype: str, source: np.random.Generator, folder: Any) -> None:
    for kind, shapes, attributes, outs in rows:
        inputs = [tensor(f"x{i}", s, dtype, 1.0, 3) for i, s in enumerate(shapes)]
        layer = layer_of(kind, inputs, dtype, attributes, outs, 3)
        same(layer, [drawn(source, t) for t in inputs], folder)


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("rows", [reshapes, transposes, joined, parts, blocks], ids=lambda r: r.__name__)
def test_static_moves(tmp_path, source, rows, dtype):
    check(rows(), dtype, source, tmp_path)


@pytest.mark.parametrize("dtype", sorted(set(TYPES) - set(SIZES)))
def test_other_types(tmp_path, source, dtype):
    every = [r for rows in (reshapes, transposes, joined, parts, blocks) for r in list(rows())[:1]]
    check(iter(every), dtype, source, tmp_path)


def indices(source: np.random.Generator, shape: tuple[int, ...], low: int, high: int, dtype: str) -> np.ndarray:
    return source.integers(low, high, shape).astype(dtype)


def indexed(source: np.random.Generator) -> Iterator[tuple[str, list[Any], dict[str, Any], list[tuple[int, ...]]]]:
    """As `Rows`, with arrays of indices among the inputs' shapes."""
    for wide in (33, 1):
        x = (3, 5, wide)
        at = np.array([[1, -1], [4, 0]], "int32")
        yield "Gather", [x, at], {"axis": 1, "batch_dims": 0}, [(3, 2, 2, wide)]
        yield "Gather", [x, at[0].astype("int8")], {"axis": 0}, [(2, 5, wide)]
        yield "Gather", [x, np.array([5, -5, 2], "int32")], {"axis": 1}, [(3, 3, wide)]
        own = np.array([[1, 0], [2, 2], [-1, 4]], "int32")
        yield "Gather", [x, own], {"axis": 1, "batch_dims": 1}, [(3, 2, wide)]
        yield "Gather", [x, own[:, :0]], {"axis": 1, "batch_dims": 1}, [(3, 0, wide)]
        yield "GatherND", [x, indices(source, (7, 2), -3, 6, "int32")], {}, [(7, wide)]
        yield "GatherND", [x, indices(source, (3, 4, 1), -5, 5, "int16")], {"batch_dims": 1}, [(3, 4, wide)]
        yield "Repeat", [x, indices(source, (5,), 0, 4, "int32")], {"axis": 1}, [(3, 16, wide)]
        yield "Filter", [x, indices(source, (5,), 0, 2, "uint8")], {"axis": 1}, [x, (1,)]
        yield "Compress", [x, np.array([0, 1, 2, 0, 1], "int8")], {"axis": 1}, [(3, 3, wide)]
    yield "Repeat", [(2, 3), np.array([3], "uint8")], {}, [(20,)]
    yield "GatherND", [(4, 5), indices(source, (9, 2), -4, 7, "int32")], {}, [(9,)]
    for axis, shape, index in (
        (1, (3, 40, 5), (3, 9, 5)),
        (0, (7, 6), (3, 4)),
        (2, (2, 3, 90), (1, 3, 200)),
        (0, (400, 50), (5, 50)),
    ):
        n = shape[axis]
        yield "GatherElements", [shape, indices(source, index, -n - 2, n + 3, "int32")], {"axis": axis}, [index]
        at = indices(source, index, -n, n, "int32")
        yield "ScatterElements", [shape, at, index], {"axis": axis}, [shape]
    yield "ScatterND", [(6, 5, 7), indices(source, (8, 2), -5, 7, "int32"), (8, 7)], {}, [(6, 5, 7)]
    yield "ReverseSequence", [(4, 6, 33), np.array([6, 0, 3, 9], "int32")], {}, [(4, 6, 33)]
    yield "ReverseSequence", [(6, 2, 3), np.array([4, 2], "int32")], {"batch_axis": 1, "time_axis": 0}, [(6, 2, 3)]
    yield "ReverseSequence", [(3, 5)], {}, [(3, 5)]


def run_indexed(rows: Any, dtype: str, source: np.random.Generator, folder: Any) -> None:
    for kind, given, attributes, outs in rows:
        inputs = [
            tensor(f"x{i}", g if isinstance(g, tuple) else g.shape, dtype if isinstance(g, tuple) else g.dtype.name)
            for i, g in enumerate(given)
        ]
        layer = layer_of(kind, inputs, dtype, attributes, outs)
        if kind == "Filter":
            layer = Layer("layer", kind, inputs, [layer.outputs[0], tensor("n", (1,), "uint16")], attributes)
        arrays = [drawn(source, t) if isinstance(g, tuple) else g for t, g in zip(inputs, given, strict=True)]
        same(layer, arrays, folder)


@pytest.mark.parametrize("dtype", SIZES)
def test_indexed_moves(tmp_path, source, dtype):
    run_indexed(indexed(source), dtype, source, tmp_path)


@pytest.mark.parametrize(
    ("dtype", "reductions"),
    [("float32", "ADD MUL MAX MIN"), ("int8", "ADD MAX MIN"), ("uint8", "MAX"), ("float16", "ADD MUL MIN")],
)
def test_scatter_with_reductions(tmp_path, source, dtype, reductions):
    for method in some(reductions.split()):
        rows = [r for r in indexed(source) if r[0].startswith("Scatter")]
        run_indexed([(t, g, a | {"reduction": method}, o) for t, g, a, o in rows], dtype, source, tmp_path)


@pytest.mark.parametrize("reduction", ["NONE", "ADD", "MAX", "MIN"])
def test_scatter_with_scales(tmp_path, source, reduction):
    for i, (dtype, to) in enumerate((("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("int16", "int16"))):
        for kind in ("ScatterND", "ScatterElements"):
            shape, index = ((70, 5, 9), (6, 2)) if kind == "ScatterND" else ((4, 30, 9), (4, 6, 9))
            x = tensor("x", shape, dtype, 1.0, 3 * (i % 2))
            at = tensor("i", index, "int32")
            u = tensor("u", (6, 9) if kind == "ScatterND" else index, dtype, 1.0, -2)
            wide = dtype == "int16"
            given = {"reduction": reduction, "axis": 1, "shift_value": 16 if wide else 14}
            given["scale_value"] = [21000, 3, 2] if wide else [200, 130, 61]
            if kind == "ScatterElements" and not wide:
                given["shift_value"] = 13
            case = layer_of(kind, [x, at, u], to, given, [shape], zero=4)
            same(case, [drawn(source, x), indices(source, index, -4, 4, "int32"), drawn(source, u)], tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "float32", "int32"])
def test_one_hot_and_known_values(tmp_path, source, dtype):
    at = indices(source, (3, 41), -2, 40, "int32")
    for axis in (-1, 0, 1):
        out = list(at.shape)
        out.insert(axis if axis >= 0 else 2, 37)
        values = [-3.0, 2.5] if dtype.startswith("float") else [1, 7]
        layer = layer_of(
            "OneHot",
            [tensor("i", at.shape, "int32")],
            dtype,
            {"depth": 37, "axis": axis, "values": values},
            [tuple(out)],
        )
        same(layer, [at], tmp_path)
    weights = drawn(source, tensor("w", (5, 41), dtype))
    same(layer_of("Constant", [], dtype, {}, [(5, 41)], weights=weights), [], tmp_path)
    shape = [tensor("s", (2,), "int32")]
    same(layer_of("ConstantOfShape", shape, dtype, {"value": 3}, [(7, 9)]), [np.asarray([7, 9], "int32")], tmp_path)
    x = tensor("x", (4, 1, 7), dtype)
    same(layer_of("Shape", [x], "int32", {"start": 1}, [(2,)]), [drawn(source, x)], tmp_path)

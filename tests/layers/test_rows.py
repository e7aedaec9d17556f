"""Layers of rows and labels: kernels give what the references give, and these what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, Tensor
from compassc.layers.declare import evaluate
from tests.layers.cases import drawn, same, tensor

Array = np.ndarray[Any, Any]
TYPES = ["float32", "uint8"]
NEAR = {"float32": 3e-6, "float16": 2e-3}


@pytest.fixture
def source() -> np.random.Generator:
    return np.random.default_rng(19)


def scaled(dtype: str, **given: Any) -> dict[str, Any]:
    return given if dtype.startswith("float") else {**given, "scale_value": 150, "shift_value": 8}


def quantised(name: str, shape: tuple[int, ...], dtype: str) -> Tensor:
    return Tensor(name, shape, dtype, 1.0, 0 if dtype.startswith("float") else 6)


@pytest.mark.parametrize("dtype", TYPES)
def test_overlapping_frames(tmp_path, source, dtype):
    for lead, frames, length, step in (((2,), 3, 7, 3), ((), 4, 80, 33), ((2, 2), 1, 5, 5)):
        x = quantised("x", (*lead, frames, length), dtype)
        y = quantised("y", (*lead, (frames - 1) * step + length), dtype)
        layer = Layer("l", "OverlapAdd", (x,), (y,), scaled(dtype, frame_step=step))
        same(layer, [drawn(source, x)], tmp_path, NEAR.get(dtype, 0))


@pytest.mark.parametrize("dtype", TYPES)
def test_segments(tmp_path, source, dtype):
    for rows, width, ids in ((7, (3,), (0, 0, 1, 1, 3)), (5, (2, 20), (0, 2, 2, 4, 9)), (3, (), (1, 1, 2, 2))):
        x, y = quantised("x", (rows, *width), dtype), quantised("y", (6, *width), dtype)
        layer = Layer("l", "SegmentReduce", (x, tensor("i", (len(ids),), "int32")), (y,), scaled(dtype, method="SUM"))
        same(layer, [drawn(source, x), np.asarray(ids, "int32")], tmp_path, NEAR.get(dtype, 0))


@pytest.mark.parametrize("combiner", ["SUM", "MEAN", "SQRTN"])
def test_lookups(tmp_path, source, combiner):
    for dtype, width in (("float32", 40),):
        inputs = (
            tensor("t", (9, width), dtype),
            tensor("r", (6, 1), "int32"),
            tensor("i", (6,), "int32"),
            tensor("w", (6,), dtype),
        )
        layer = Layer("l", "EmbeddingLookupSparse", inputs, (tensor("y", (4, width), dtype),), {"combiner": combiner})
        rows, ids = np.asarray([[0], [0], [1], [3], [3], [3]], "int32"), source.integers(0, 9, 6).astype("int32")
        weights = np.asarray([0.5, 1, 0, 2, 0.25, 1], dtype)
        same(layer, [drawn(source, inputs[0]), rows, ids, weights], tmp_path, NEAR[dtype])


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_slots_and_queries(tmp_path, source, dtype):
    lists = (np.asarray([0, 3, 3], "int32"), np.asarray([5, 1], "int32"))
    given = [tensor(f"i{n}", v.shape, "int32") for n, v in enumerate(lists)]
    for width in (5, 40):
        x, y = quantised("x", (2, 2, 4, width), dtype), quantised("y", (2, 6, width), dtype)
        same(
            Layer("l", "SlotUpdate", (x, *given), (y,), scaled(dtype)),
            [drawn(source, x), *lists],
            tmp_path,
            NEAR.get(dtype, 0),
        )
        x, y = quantised("x", (2, 6, width), dtype), quantised("y", (2, 2, 4, width), dtype)
        same(Layer("l", "QueryRebatch", (x, *given), (y,)), [drawn(source, x), *lists], tmp_path)


def test_labels_without_repetitions(tmp_path):
    labels = np.asarray([[1, 1, 2, 2, 2, 1, 0, 0], [3, 3, 3, 3, 4, 4, 5, 5]], "int32")
    inputs = (tensor("x", labels.shape, "int32"), tensor("n", (2,), "int32"))
    outputs = (tensor("y", labels.shape, "int32"), tensor("m", (2,), "int32"))
    layer = Layer("l", "CollapseRepeated", inputs, outputs)
    values = [labels, np.asarray([8, 5], "int32")]
    found, many = evaluate(layer, values)
    assert (found[0, :4].tolist(), found[1].tolist(), many.tolist()) == ([1, 2, 1, 0], [3, 4] + [0] * 6, [4, 2])
    same(layer, values, tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("merge", [True, False])
def test_best_labels(tmp_path, source, dtype, merge):
    for classes in (3, 40):
        x = tensor("x", (3, 9, classes), dtype)
        layer = Layer(
            "l",
            "CTCGreedyDecoder",
            (x, tensor("n", (3,), "int32")),
            (tensor("y", (3, 6, 1, 1), "uint16"),),
            {"merge_repeated": merge},
        )
        values = drawn(source, x, narrow=True)
        values[:, 3] = values[:, 2]
        same(layer, [values, np.asarray([9, 4, 0], "int32")], tmp_path)


def test_a_path_of_labels():
    path = [2, 0, 0, 3, 0, 1, 1, 3]
    layer = Layer(
        "l",
        "CTCGreedyDecoder",
        (tensor("x", (1, 8, 4), "float32"), tensor("n", (1,), "int32")),
        (tensor("y", (1, 5, 1, 1), "int32"),),
        {"merge_repeated": True},
    )
    (found,) = evaluate(layer, [np.eye(4, dtype="float32")[path][None], np.asarray([8], "int32")])
    assert found.reshape(-1).tolist() == [2, 0, 0, 1, 2**31 - 1]


def test_accidental_hits(tmp_path):
    classes, sampled = np.asarray([[3, 5], [9, 3]], "int32"), np.asarray([5, 3, 7, 3], "int32")
    inputs = (tensor("c", (2, 2), "int32"), tensor("s", (4,), "int32"))
    outputs = (tensor("r", (8,), "int32"), tensor("p", (8,), "int32"), tensor("m", (1,), "int32"))
    layer = Layer("l", "AccidentalHits", inputs, outputs)
    rows, places, many = evaluate(layer, [classes, sampled])
    assert (rows[:5].tolist(), places[:5].tolist(), many[0]) == ([0, 0, 0, 1, 1], [1, 3, 0, 1, 3], 5)
    same(layer, [classes, sampled], tmp_path)

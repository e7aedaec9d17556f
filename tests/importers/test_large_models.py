"""Models whose initialisers stay in their file until they are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from compass_core.files.pieces import Pieces
from compassc.importers import import_model, import_object
from compassc.importers.onnx import apart, source
from tests.memory import peak_of_memory


def convolutions(count: int, channels: int) -> onnx.ModelProto:
    """A chain of convolutions, and a product of what comes of it."""
    draw, nodes, known = np.random.default_rng(0), [], []
    for i in range(count):
        weights = draw.normal(size=(channels, channels, 3, 3)).astype("float32")
        known.append(numpy_helper.from_array(weights, f"w{i}"))
        nodes.append(helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"x{i + 1}"], pads=[1] * 4))
    known.append(numpy_helper.from_array(np.float32([2]), "two"))
    nodes.append(helper.make_node("Mul", [f"x{count}", "two"], ["y"]))
    ends = [helper.make_tensor_value_info(name, 1, [1, channels, 4, 4]) for name in ("x0", "y")]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_an_import_holds_its_weights_little_more_than_once(tmp_path: Path) -> None:
    model, path = convolutions(8, 128), tmp_path / "m.onnx"
    beside = tmp_path / "beside.onnx"
    path.write_bytes(model.SerializeToString())
    onnx.save(onnx.load(path), beside, save_as_external_data=True, location="data")
    want = import_object(model)
    for file in path, beside:
        with peak_of_memory() as peak:
            graph = import_model(file)
        assert peak() < 1.5 * path.stat().st_size
        assert graph == want
        assert source.load(file) == model


MODEL = convolutions(2, 2)
MODEL.graph.initializer.add().CopyFrom(MODEL.graph.initializer[0])
CONTENT = MODEL.SerializeToString()


@pytest.fixture(scope="module")
def all_apart() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apart, "LEAST", 1)
        yield


def parsed(content: bytes) -> bytes | None:
    try:
        return onnx.load_model_from_string(content).SerializeToString(deterministic=True)
    except (DecodeError, ValueError, RuntimeError):
        return None


def put_together(content: bytes) -> bytes | None:
    try:
        model, large = source._parsed(Pieces([content]))
    except (DecodeError, ValueError, RuntimeError):
        return None
    source._put_in(model, large)
    return model.SerializeToString(deterministic=True)


@settings(max_examples=300)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 9),
)
def test_a_model_is_taken_apart_and_put_together_however_it_is_damaged(changes, cut, all_apart):
    content = bytearray(CONTENT)
    for at, byte in changes:
        content[at] = byte
    damaged = bytes(content[: len(content) - cut])
    assert put_together(damaged) == parsed(damaged)


def test_all_that_is_large_stays_apart(all_apart):
    model, large = source._parsed(Pieces([CONTENT]))
    assert [bytes(large[i]) for i in sorted(large)] == [t.raw_data for t in MODEL.graph.initializer]
    assert not any(t.raw_data for t in model.graph.initializer)

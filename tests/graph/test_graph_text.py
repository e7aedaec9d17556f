"""Graphs and their text: each reads back as the other."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc.graph import Graph, GraphBuilder, Layer, LayerError, Tensor, read, write
from compassc.graph.build import writable
from compassc.graph.dtypes import INTEGER_TYPES, IR_DTYPES, numpy_dtype
from compassc.graph.sections import parse
from tests.words import CHARACTERS, word

FOLDER = Path(__file__).parents[1] / "data" / "graphs"
KNOWN = sorted(FOLDER.glob("*/*.txt"))
IMPLIED = {
    "layer_top_scale=[1.0]",
    "layer_top_zp=[0]",
    "layer_top_scale=[1.0,1.0]",
    "layer_top_zp=[0,0]",
    "layer_top_scale=[1.0,1.0,1.0]",
    "layer_top_zp=[0,0,0]",
    "activation_quantization_axis=[None]",
    "activation_quantization_axis=[None,None]",
    "activation_quantization_axis=[None,None,None]",
}
"""Lines about floats that say what is so anyway."""


def known(path: Path) -> Graph:
    return read(path.read_text(), path.with_suffix(".bin").read_bytes(), str(path))


@pytest.mark.parametrize("path", KNOWN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_known_graphs_are_read_and_written_back_equal(path):
    graph = known(path)
    text, weights = write(graph)
    assert read(text, weights) == graph
    assert weights == path.with_suffix(".bin").read_bytes()
    sections = [s.strip().splitlines() for s in path.read_text().split("\n\n") if s.strip()]
    written = [s.splitlines() for s in text.strip().split("\n\n")]
    assert len(sections) == len(written)
    for before, after in zip(sections, written, strict=True):
        assert sorted(set(before) - set(after) - IMPLIED) == []
        assert set(after) <= set(before)


def test_there_are_all_known_graphs():
    assert len(KNOWN) == 41


# -- any graph

DTYPES = sorted(IR_DTYPES - {"bool"})
NAMES = st.text(
    st.characters(exclude_characters="[]=,'\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029 ", categories=["L", "N", "P"]),
    min_size=1,
    max_size=6,
)
WORDS = word(r"[A-Z][A-Z_]{2,6}X")
VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-(10**9), 10**9), st.floats(allow_nan=False), WORDS),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(word(r"[a-z]{3,5}_q"), VALUES, max_size=3)
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
SCALES = st.floats(1e-6, 1e6)
ZEROS = st.integers(-200, 200)
LIMITS = st.none() | st.tuples(st.integers(-9, 0), st.integers(0, 9))
TYPES = st.sampled_from(DTYPES)
FEW = [st.integers(0, most) for most in range(4)]
PLACES = st.lists(st.integers(0, 99), max_size=2)
"""Strategies are made once: hypothesis looks through each new one before it draws."""


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = numpy_dtype(draw(TYPES))
    shape = draw(SHAPES)
    size = math.prod(shape) * dtype.itemsize
    return np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype).reshape(shape)


ARRAYS = arrays()
CONSTANTS = st.dictionaries(st.sampled_from(["weights", "biases", "lut"]), ARRAYS, max_size=2)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    shape = draw(SHAPES)
    axis = (None, *range(len(shape)))[draw(FEW[len(shape)])]
    if axis is None:
        scale, zero = draw(SCALES), draw(ZEROS)
    else:
        scale = tuple(draw(SCALES) for _ in range(shape[axis]))
        zero = tuple(draw(ZEROS) for _ in range(shape[axis]))
        scale, zero = scale or 1.0, zero or 0
    return Tensor(draw(NAMES), shape, draw(TYPES), scale, zero, draw(LIMITS), axis)


OUTPUTS = st.lists(tensors(), min_size=1, max_size=2)


@st.composite
def graphs(draw: st.DrawFn, depth: int = 1) -> Graph:
    build = GraphBuilder(draw(NAMES))
    made = [build.input(draw(NAMES), draw(SHAPES), draw(TYPES)) for _ in range(draw(FEW[2]))]
    for _ in range(draw(FEW[3])):
        made += build.layer(
            draw(WORDS),
            [made[place % len(made)] for place in draw(PLACES)] if made else [],
            name=draw(NAMES),
            outputs=draw(OUTPUTS),
            attributes=draw(ATTRIBUTES),
            constants=draw(CONSTANTS),
        )
    made.append(build.constant(draw(ARRAYS), "c"))
    if depth:
        build.subgraph(draw(INNER))
    return build.finish([made[place % len(made)] for place in draw(PLACES)], **draw(ATTRIBUTES))


INNER = graphs(depth=0)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_any_graph_is_written_and_read_back_equal(graph):
    text, weights = write(graph)
    again = read(text, weights)
    assert again == graph
    assert write(again) == (text, weights)


@pytest.mark.parametrize("name", ["12", "1e3", "true", "INT8", "None", "+7", "a/b:0", "inf"])
def test_names_stay_what_they_are(name):
    build = GraphBuilder(name)
    x = build.input(name, (2,), "float32")
    graph = build.finish(build.layer("RELU", [x], name=name, outputs=[(x.shape, x.dtype)]))
    assert read(*write(graph)) == graph
    assert graph.layers[1].name != graph.layers[0].name == name


@given(st.text(CHARACTERS, max_size=8))
def test_what_is_made_writable_can_be_read_back(name):
    made = writable(name)
    assert parse(f"model_name=m\nx=1\nlayer_top=[{made}]").header.values["layer_top"] == [made]


def test_types_that_numpy_stores_wider_are_kept():
    text = (
        "model_name=m\n\nlayer_name=c\nlayer_type=Constant\nlayer_bottom=[]\nlayer_top=[c_0]\nlayer_top_shape=[[2]]\n"
        "layer_top_type=[aligned_int12]\nweights_type=aligned_int12\nweights_offset=0\nweights_size=4\n"
        "weights_shape=[2]\n"
    )
    graph = read(text, b"\1\0\2\0")
    assert graph.layers[0].constants["weights"].tolist() == [1, 2]
    assert "weights_type=aligned_int12" in write(graph)[0]
    assert read(*write(graph)) == graph


def test_a_scale_per_channel_may_be_a_constant():
    scales = np.asarray([0.5, 2, 4], "float32")
    lines = [
        "model_name=m",
        "",
        "layer_name=x",
        "layer_type=Input",
        "layer_bottom=[]",
        "layer_top=[x_0]",
        "layer_top_shape=[[1,3]]",
        "layer_top_type=[int8]",
        "layer_top_scale_type=float32",
        "layer_top_scale_offset=0",
        "layer_top_scale_size=12",
        "layer_top_scale_shape=[3]",
        "layer_top_zp=[[1,2,3]]",
        "activation_quantization_axis=[1]",
    ]
    graph = read("\n".join(lines), scales.tobytes())
    assert graph.inputs == (Tensor("x_0", (1, 3), "int8", (0.5, 2.0, 4.0), (1, 2, 3), axis=1),)
    assert graph.inputs[0] == Tensor("x_0", (1, 3), "int8", scales, np.asarray([1, 2, 3]), axis=1)
    assert not graph.layers[0].constants
    assert read(*write(graph)) == graph


def test_layers_are_sorted_and_an_input_may_have_its_shape_alone():
    text = (
        "model_name=m\n\nlayer_name=b\nlayer_type=RELU\nlayer_bottom=[a]\nlayer_top=[b]\nlayer_top_shape=[[2]]\n"
        "layer_top_type=[int8]\n\nlayer_name=a\nlayer_type=Input\nlayer_bottom=[]\nlayer_top=[a]\nlayer_top_shape=[2]\n"
        "layer_top_type=[int8]"
    )
    graph = read(text)
    assert [n.name for n in graph.layers] == ["a", "b"]
    assert [t.name for t in (*graph.inputs, *graph.outputs)] == ["a", "b"]
    assert {t: [n.name for n in users] for t, users in graph.users().items()} == {"a": ["b"], "b": []}
    assert {t: n.name for t, n in graph.producer().items()} == {"a": "a", "b": "b"}
    assert graph.layers[1].span.line == 3
    assert [n.name for n in graph.computing()] == ["b"]


RIGHT = "layer_name=n\nlayer_type=RELU\nlayer_bottom=[]\nlayer_top=[t]\nlayer_top_shape=[[2]]\nlayer_top_type=[int8]"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (RIGHT.replace("[]", "[u]"), "no layer produces the tensor 'u'"),
        (RIGHT.replace("[]", "[t]"), "depends on its own output"),
        (RIGHT.replace("[[2]]", "[[2],[3]]"), "1 tensors in layer_top, 2 shapes"),
        (RIGHT.replace("[int8]", "[fast]"), "'fast' is not a data type"),
        (RIGHT.replace("[[2]]", "[[x]]"), "not a list of whole numbers"),
        (RIGHT + "\nlayer_top_scale=[1e40]", "no scale"),
        (RIGHT + "\nlayer_top_range=[[1]]", "no pair"),
        (RIGHT + "\nw_type=int8\nw_size=4\nw_offset=0\nw_shape=[4]", "reach past the 2 bytes"),
        (RIGHT + "\nw_type=int8\nw_size=2\nw_offset=0\nw_shape=[4]", "2 bytes are not the int8 elements"),
        (RIGHT + "\nw_type=int8\nw_size=-2\nw_offset=0\nw_shape=[4]", "not a size in bytes"),
        (RIGHT.replace("layer_top=[t]", ""), "'layer_top' is missing"),
        (RIGHT.replace("RELU", "Constant"), "no constant 'weights'"),
        (RIGHT + "\n\n" + RIGHT, "produced twice"),
    ],
)
def test_contradictions_name_their_line(section, message):
    with pytest.raises(CompassError, match=message) as caught:
        read(f"model_name=m\n\n{section}", b"ab", "g.txt")
    assert str(caught.value.span).startswith("g.txt:")


# -- layers and tensors


def test_layers_are_equal_when_all_but_their_origin_is():
    x, w = Tensor("x", (2,), "int8"), np.asarray([1, 2], "int8")
    layer = Layer("n", "T", (x,), (x,), {"a": [1]}, {"w": w}, "node n")
    assert layer == replace(layer, constants={"w": w.copy()}, span=None)
    assert layer != replace(layer, constants={"w": w + 1})
    assert layer != replace(layer, constants={"w": w.astype("int16")})
    assert layer != replace(layer, attributes={"a": [2]})
    nan = np.asarray([np.nan], ml_dtypes.bfloat16)
    assert replace(layer, constants={"w": nan}) == replace(layer, constants={"w": nan.copy()})


def test_the_range_of_a_tensor():
    for name, kind in INTEGER_TYPES.items():
        tensor = Tensor("t", (1,), name)
        assert (tensor.low, tensor.high) == (kind.low, kind.high)
    assert Tensor("t", (1,), "int8", limits=(-3, 4)).low == -3
    with pytest.raises(LayerError, match="expected an integer type"):
        _ = Tensor("t", (1,), "float32").low
    with pytest.raises(LayerError, match="per channel"):
        _ = Tensor("t", (2,), "int8", (1.0, 2.0), axis=0).scalar_scale


def test_errors_name_the_node_of_a_model():
    graph = GraphBuilder("g").finish([])
    error = graph.error(Layer("n", "T", span="node 'conv1' of model.onnx"), "it is bad")
    assert "conv1" in error.notes[0].message


def test_names_of_the_known_tensors_are_those_of_the_text():
    path = FOLDER / "lenet" / "default.txt"
    names = json.loads(path.with_suffix(".names.json").read_text())
    assert set(names) <= known(path).tensors().keys()

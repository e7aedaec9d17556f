"""Graphs as text whose attributes and sizes ask for much: shapes are found and refused without computing anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compass_core.errors import CompassError, render
from compass_core.reading import limits
from compassc.graph import Layer, LayerError, Tensor, read, verify
from compassc.graph.build import GraphBuilder
from compassc.graph.passes import optimise
from compassc.graph.text import write
from compassc.importers.tflite import import_bytes
from compassc.layers.costs import cost_of
from compassc.layers.declare import evaluate
from compassc.layers.shapes import shapes_of
from tests.importers.tflite_models import Model
from tests.security.test_greedy_models import peak_of_memory

HUGE = 1 << 40
WINDOW = {f"{k}_{a}": 60000 for k in ("kernel", "dilation") for a in "xy"} | {"stride_x": 1, "stride_y": 1}
PADDED = {"pad_top": HUGE, "pad_bottom": HUGE, "pad_left": HUGE, "pad_right": HUGE}
GREEDY = {
    "Tile": {"repeats": [1, HUGE, 1, 1]},
    "Pad": {"pads": [[0, 0], [HUGE, HUGE], [0, 0], [0, 0]]},
    "OneHot": {"depth": HUGE},
    "SpaceToBatch": {"block_size_x": 1, "block_size_y": 1, **PADDED},
    "BatchToSpace": {"block_size_x": 1, "block_size_y": 1, "crop_top": HUGE},
    "DataStride": {"kernel_x": 1, "kernel_y": 1, "stride_x": HUGE, "stride_y": HUGE},
    "Pooling": {"method": "AVG", **WINDOW, **PADDED},
    "Slice": {"begin": [0, -HUGE, 0, 0], "end": [HUGE, HUGE, HUGE, HUGE], "strides": [HUGE, 1, 1, 1]},
}
"""Layers of one input [1, 2, 2, 1] whose attributes name numbers beyond any memory."""


def layer(name: str, shape: tuple[int, ...] = (1, 2, 2, 1)) -> Layer:
    return Layer(
        "greedy", name, (Tensor("x", (1, 2, 2, 1), "float32"),), (Tensor("y", shape, "float32"),), GREEDY[name], {}
    )


@pytest.mark.parametrize("name", GREEDY)
def test_shapes_follow_from_attributes_without_being_made(name):
    found = shapes_of(layer(name))
    assert found is not None and all(n >= 0 for n in found[0])


def text_of(name: str, shape: tuple[int, ...]) -> str:
    g = GraphBuilder("greedy")
    x = g.input("x", (1, 2, 2, 1), "float32")
    made = g.layer(name, [x], name="greedy", outputs=[(shape, "float32")], attributes=GREEDY[name])
    return write(g.finish(made))[0]


@pytest.mark.parametrize("name", ("Tile", "Pad", "OneHot", "SpaceToBatch", "Pooling"))
def test_a_small_shape_does_not_hide_a_large_one_and_a_large_one_is_refused(name):
    with pytest.raises(CompassError, match="it has 'greedy_0'"):
        verify.check(read(text_of(name, (1, 2, 2, 1))))
    with pytest.raises(CompassError, match="4,294,967,296 elements at most") as caught:
        read(text_of(name, (1, HUGE, 2, 1)))
    assert caught.value.code == "limit-exceeded" and caught.value.span is not None


def test_a_reference_is_not_asked_for_windows_without_end():
    greedy = layer("Pooling", (1, 4, 4, 1))
    assert cost_of(greedy).held > HUGE
    with pytest.raises(
        LayerError, match=r"\d+ bytes, but computing a layer .* 16 GiB at most .COMPASS_BUDGET=\d+ allows"
    ):
        evaluate(greedy, [np.zeros((1, 2, 2, 1), "float32")])


@pytest.mark.parametrize("method", ["ACROSS_CHANNELS", "WITHIN_CHANNEL"])
def test_neighbourhoods_end_where_the_image_does(method):
    x = np.arange(1, 13, dtype="float32").reshape(1, 2, 2, 3)
    made = []
    for size in (7, 10**9 + 1):  # the mean is over all cells across channels, over those of the image within one
        attributes = {"method": method, "size": size, "alpha": float(size) if method[0] == "A" else 1.0}
        t = Tensor("x", x.shape, "float32")
        made += evaluate(Layer("n", "LRN", (t,), (replace(t, name="y"),), attributes, {}), [x])
    np.testing.assert_allclose(made[0], made[1], 1e-5)


def test_constants_that_lie_in_the_same_bytes_are_counted_each_time(monkeypatch):
    g = GraphBuilder("shared")
    for i in range(40):
        g.constant(np.zeros(1000, "float32"), f"c{i}")
    text, weights = write(g.finish([]))
    shared = "\n".join("weights_offset=0" if line.startswith("weights_offset=") else line for line in text.split("\n"))
    monkeypatch.setattr("compassc.graph.text.COMPUTED_BYTES", limits.COMPUTED_BYTES._replace(most=0, per_byte=4))
    assert len(read(text, weights).layers) == 40
    with pytest.raises(CompassError, match="bytes at most"):
        read(shared, weights[:4000])


def test_layers_of_constants_are_not_computed_where_that_takes_much():
    g = GraphBuilder("folding")
    small, large = (g.constant(np.ones((1, n, n, 1), "float32"), f"c{n}") for n in (8, 400))
    window = {"kernel_x": 300, "kernel_y": 300, "stride_x": 1, "stride_y": 1, "method": "AVG"}
    tiny = replace(small, name="")
    (one,) = g.layer("Abs", [small], name="one", outputs=[tiny])
    (two,) = g.layer("Pooling", [large], name="two", outputs=[((1, 101, 101, 1), "float32")], attributes=window)
    x = g.input("x", (1, 1), "float32")
    (three,) = g.layer("Abs", [x], name="three", outputs=[((1, 1), "float32")])
    left = [n.type for n in optimise(g.finish([one, two, three])).layers]
    assert "Pooling" in left and left.count("Abs") == 1


# ------------------------------------------------------------------------------------------------------------- TFLite

CONSTANTS = {
    "TILE": lambda net, c: net("TILE", [c, net.constant([1, 40000, 40000, 1], np.int32)], (1, 1, 1, 1)),
    "PAD": lambda net, c: net("PAD", [c, net.constant([[0, 0], [1 << 14] * 2, [1 << 14] * 2, [0, 0]], np.int32)], (1,)),
    "FILL": lambda net, c: net(
        "FILL", [net.constant([1 << 16, 1 << 16], np.int32), net.constant(np.float32(1))], (1, 1)
    ),
    "ONE_HOT": lambda net, c: net(
        "ONE_HOT",
        [net.constant(v, np.int32) for v in ([1, 2], 1 << 30)] + [net.constant(np.float32(v)) for v in (1, 0)],
        (2, 1),
    ),
    "AVERAGE_POOL_2D": lambda net, c: net(
        "AVERAGE_POOL_2D",
        [c],
        (1, 2, 2, 1),
        options="Pool2DOptions",
        padding="SAME",
        filter_width=60000,
        filter_height=60000,
        stride_w=1,
        stride_h=1,
    ),
}
"""Operators of constants whose sizes are beyond any memory."""


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_of_tflite_models_are_refused_before_they_are_computed(name):
    net = Model()
    made = CONSTANTS[name](net, net.constant(np.ones((1, 2, 2, 1), np.float32)))
    content = net.bytes(net("ADD", [net.input("x", (1,)), made], (1, 1, 1, 1)))
    with peak_of_memory() as peak, pytest.raises(CompassError) as caught:
        import_bytes(content)
    assert "at most" in render(caught.value) and "COMPASS_BUDGET=" in render(caught.value)
    assert peak() < 40 << 20


def test_what_tables_of_a_tflite_file_share_is_counted_each_time(monkeypatch):
    net = Model()
    x = net.input("x" * 2000, (1,))
    for _ in range(40):
        x = net("ABS", [x], (1,))
    content = net.bytes(x)
    assert len(import_bytes(content).layers) == 41
    monkeypatch.setattr("compassc.importers.tflite.source.COMPUTED_ELEMENTS", limits.MODEL_NODES._replace(most=100))
    with pytest.raises(CompassError, match="100 nodes at most"):
        import_bytes(content)

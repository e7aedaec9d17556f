"""Models of a few bytes that ask for much: each is refused before it is spent, and says what to do."""

from __future__ import annotations

import pytest
from onnx import parser

from compass_core.errors import CompassError
from compass_core.reading.limits import MODEL_NODES
from compassc.graph.graph import Graph
from compassc.importers.onnx import import_model


def graph_of(nodes: str, functions: str = "") -> Graph:
    """The graph of a model from `x` to `y`, both of 4 floats, as text of ONNX."""
    head = '<ir_version: 9, opset_import: ["": 20, "own": 1]>'
    return import_model(
        parser.parse_model(f"{head} g (float[4] x) => (float[4] y) {{ {nodes} }} {functions}"), path="m"
    )


def refusal(nodes: str, functions: str = "") -> str:
    """The message for a model that is beyond a limit; its help says how that is raised."""
    with pytest.raises(CompassError) as caught:
        graph_of(nodes, functions)
    assert caught.value.code == "limit-exceeded" and "COMPASS_BUDGET=" in caught.value.help
    return str(caught.value)


# --------------------------------------------------------------------------------------------------------- many nodes


def loops(depth: int, source: str, result: str) -> str:
    """Loops of 100 steps within each other."""
    v, w = f"v{depth}", f"w{depth}"
    inner = loops(depth - 1, v, w) if depth else f"{w} = Relu({v})"
    head = f"b{depth} (int64 i{depth}, bool c{depth}, float[4] {v}) => (bool k{depth}, float[4] {w})"
    return f"{result} = Loop<body = {head} {{ k{depth} = Identity(c{depth}) {inner} }}>(hundred, , {source})"


def calls(depth: int) -> str:
    """Functions each of which calls the next one twice."""
    head = '<domain: "own", opset_import: ["": 20, "own": 1]>'
    pairs = "".join(f"{head} f{i} (a) => (b) {{ c = own.f{i + 1}(a) b = own.f{i + 1}(c) }} " for i in range(depth))
    return pairs + f"{head} f{depth} (a) => (b) {{ b = Relu(a) }}"


@pytest.mark.parametrize(
    "nodes, functions",
    [
        (f"hundred = Constant<value_int = 100>() {loops(6, 'x', 'y')}", ""),
        ("y = own.f0(x)", calls(30)),
    ],
    ids=["loops", "functions"],
)
def test_nodes_of_bodies_count_each_time_they_are_converted(nodes, functions, monkeypatch):
    monkeypatch.setattr("compassc.importers.onnx.convert.MODEL_NODES", MODEL_NODES._replace(most=2000))
    assert "2,000 nodes at most" in refusal(nodes, functions)


def test_a_long_chain_is_no_deep_one():
    nodes = " ".join(f"v{i + 1} = Relu(v{i})" for i in range(3000))
    assert len(graph_of(f"v0 = Neg(x) {nodes} y = Neg(v3000)").layers) == 3003

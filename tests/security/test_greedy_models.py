"""Models of a few bytes that ask for much: each is refused before it is spent, and says what to do."""

from __future__ import annotations

import pytest
from onnx import parser

from compass_core.errors import CompassError
from compass_core.reading import limits
from compass_core.reading.limits import MODEL_NODES
from compassc.graph.graph import Graph
from compassc.importers.onnx import import_model
from tests.memory import peak_of_memory


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


@pytest.fixture
def small_limits(monkeypatch):
    """16 MiB that may be computed, of 4 million elements."""
    for name, most in (("COMPUTED_BYTES", 16 << 20), ("COMPUTED_ELEMENTS", 4 << 20)):
        monkeypatch.setattr(f"compassc.importers.onnx.folding.{name}", getattr(limits, name)._replace(most=most))


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
    monkeypatch.setattr("compassc.importers.onnx.walk.MODEL_NODES", MODEL_NODES._replace(most=2000))
    assert "2,000 nodes at most" in refusal(nodes, functions)


def test_a_long_chain_is_no_deep_one():
    nodes = " ".join(f"v{i + 1} = Relu(v{i})" for i in range(3000))
    assert len(graph_of(f"v0 = Neg(x) {nodes} y = Neg(v3000)").layers) == 3003


# ------------------------------------------------------------------------------------------- tensors that are computed

HUGE = {
    "Expand": "s = Constant<value_ints = [1000000, 4000]>() a = Constant<value_floats = [1.0]>() c = Expand(a, s)",
    "Range": "a = Constant<value_int = 0>() s = Constant<value_int = 1>() e = Constant<value_int = 4000000000>()"
    "c = Range(a, e, s)",
    "Tile": "a = Constant<value_floats = [1.0]>() s = Constant<value_ints = [4000000000]>() c = Tile(a, s)",
    "Pad": "a = Constant<value_floats = [1.0]>() s = Constant<value_ints = [4000000000, 0]>() c = Pad(a, s)",
    "OneHot": "a = Constant<value_ints = [1]>() s = Constant<value_int = 4000000000>()"
    "v = Constant<value_floats = [0.0, 1.0]>() c = OneHot(a, s, v)",
    "ConstantOfShape": "s = Constant<value_ints = [4000000000]>() c = ConstantOfShape(s)",
    "HannWindow": "s = Constant<value_int = 4000000000>() c = HannWindow(s)",
    "MelWeightMatrix": "m = Constant<value_int = 8>() l = Constant<value_int = 4000000000>()"
    "r = Constant<value_int = 8000>() f = Constant<value_float = 1.0>() t = Constant<value_float = 9.0>()"
    "c = MelWeightMatrix(m, l, r, f, t)",
    "Add": "s = Constant<value_ints = [20000, 1]>() t = Constant<value_ints = [1, 20000]>()"
    "a = ConstantOfShape(s) b = ConstantOfShape(t) c = Add(a, b)",
    "Gather": "s = Constant<value_ints = [20000]>() a = ConstantOfShape(s) t = Constant<value_ints = [1, 20000]>()"
    "b = ConstantOfShape(t) i = Cast<to = 7>(a) c = Gather<axis = 0>(b, i)",
    "MatMul": "s = Constant<value_ints = [40000, 1]>() t = Constant<value_ints = [1, 40000]>()"
    "a = ConstantOfShape(s) b = ConstantOfShape(t) c = MatMul(a, b)",
    "Einsum": 's = Constant<value_ints = [2000]>() a = ConstantOfShape(s)c = Einsum<equation = "i,j,k->">(a, a, a)',
    "doubling": " ".join(
        ["c0 = Constant<value_floats = [1.0]>()"] + [f"c{i + 1} = Concat<axis = 0>(c{i}, c{i})" for i in range(30)]
    )
    + "c = Identity(c30)",
    "scattering": "s = Constant<value_ints = [1000, 1000]>() a = ConstantOfShape(s) i = Cast<to = 7>(a)"
    + " ".join(f"c{n} = ScatterElements(a, i, a)" for n in range(20))
    + "c = Identity(c19)",
}
"""Nodes that make a large constant `c`, each from a few bytes."""


@pytest.mark.parametrize("name", HUGE)
def test_a_constant_is_refused_before_it_is_computed(name, small_limits):
    with peak_of_memory() as peak:
        assert "what is " in refusal(f"{HUGE[name]} d = ReduceMax<keepdims = 0>(c) y = Add(x, d)")
    assert peak() < 40 << 20


def test_no_text_is_computed():
    text = 'a = Constant<value_strings = ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"]>()'
    for node in ('c = RegexFullMatch<pattern = "(a+)+b">(a)', "c = StringConcat(a, a)", "c = Add(a, a)"):
        with pytest.raises(CompassError) as caught:
            graph_of(f"{text} {node} d = Cast<to = 1>(c) y = Add(x, d)")
        assert "text" in str(caught.value.notes[0].message)


# --------------------------------------------------------------------------------------------- what importing makes

MADE = {
    "DFT": "l = Constant<value_int = 100000>() v = Reshape(x, cube) z = DFT(v, l)",
    "Resize": 's = Constant<value_ints = [1, 50000000, 1]>() v = Reshape(x, cube) z = Resize<mode = "cubic">(v, , , s)',
    "AffineGrid": "t = Constant<value_ints = [1, 2, 3]>() v = Tile(x, two) w = Slice(v, zero, six) u = Reshape(w, t)"
    "s = Constant<value_ints = [1, 1, 100000, 100000]>() z = AffineGrid(u, s)",
    "SplitToSequence": "s = Constant<value_ints = [4000000000]>() v = Expand(one, s) z = SplitToSequence(v)",
    "Trilu": "s = Constant<value_ints = [60000, 60000]>() v = Expand(one, s) z = Trilu(v)",
    "Dropout": "s = Constant<value_ints = [60000, 60000]>() v = Expand(one, s) w, z = Dropout(v)",
    "EyeLike": "s = Constant<value_ints = [60000, 60000]>() v = Expand(one, s) z = EyeLike(v)",
    "LayerNormalization": "s = Constant<value_ints = [1, 4000000000]>() v = Expand(one, s) z = LayerNormalization(v, one)",
}
"""Nodes of tensors that are only known at run time, with a result `z`, for which an import makes arrays or lists."""
SMALL = (
    "cube = Constant<value_ints = [1, 4, 1]>() two = Constant<value_ints = [2]>() zero = Constant<value_ints = [0]>()"
    "six = Constant<value_ints = [6]>() first = Constant<value_ints = [1]>() one = Slice(x, zero, first)"
)


@pytest.mark.parametrize("name", MADE)
def test_arrays_that_an_import_makes_are_asked_for(name):
    last = "y = ConcatFromSequence<axis = 0>(z)" if name == "SplitToSequence" else "y = Identity(z)"
    with peak_of_memory() as peak:
        assert "at most" in refusal(f"{SMALL} {MADE[name]} {last}")
    assert peak() < 40 << 20


@pytest.mark.parametrize("name", ["sequences", "initialisers"])
def test_lists_and_names_that_are_read_again_count(name, monkeypatch):
    """Each step of a chain of sequences copies the one before; each step of a loop looks at all names of its body."""
    if name == "sequences":
        monkeypatch.setattr(
            "compassc.importers.accounts.COMPUTED_BYTES", limits.COMPUTED_BYTES._replace(most=20_000, per_byte=0)
        )
        chain = " ".join(f"s{i + 1} = SequenceInsert(s{i}, x)" for i in range(100))
        nodes = f"s0 = SequenceConstruct(x) {chain} i = Constant<value_int = 0>() y = SequenceAt(s100, i)"
    else:
        most = limits.COMPUTED_ELEMENTS._replace(most=20_000, per_byte=0)
        monkeypatch.setattr("compassc.importers.onnx.walk.COMPUTED_ELEMENTS", most)
        names = ", ".join(["v"] * 2000)
        body = f"b (int64 i, bool c, float[4] v) => (bool k, float[4] w) {{ k = Identity(c) w = Sum({names}) }}"
        nodes = f"n = Constant<value_int = 100>() y = Loop<body = {body}>(n, , x)"
    assert "20,000 " in refusal(nodes)

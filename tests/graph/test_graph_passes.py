"""Passes on graphs: what each makes of small graphs, and that outputs stay what they were."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from messy import messy

from compassc.graph import Graph, GraphBuilder, Tensor, read, write
from compassc.graph.passes import GRAPHS, optimise
from compassc.graph.passes.pipelines import STAGES
from compassc.graph.run import run_graph
from compassc.graph.verify import Stage, check
from compassc.pass_manager import PassOptions, describe, load_pass, pipeline_names

PASSES = [name for name, *_ in describe(GRAPHS)]
EXACT = {"CancelMoves", "PushMoves", "CommonSubexprElim", "RemoveDeadLayers", "FoldConstant", "JoinActivations"}
"""Passes after which every bit of the outputs is the same."""


def lines(graph: Graph) -> list[str]:
    """A line per layer: `output = Type(inputs) attributes`."""
    found = []
    for layer in graph.layers:
        if layer.type == "Input":
            continue
        shown = [f"{k}={v}" for k, v in layer.attributes.items()]
        shown += [
            f"{k}={np.round(a.astype('float64'), 4).reshape(-1)[:4].tolist()}" for k, a in layer.constants.items()
        ]
        outputs, inputs = (", ".join(t.name for t in ts) for ts in (layer.outputs, layer.inputs))
        found.append(f"{outputs} = {layer.type}({inputs}) {' '.join(shown)}".strip())
    return found


class Net:
    """Small graphs: `net.f("Type", inputs, shape)`."""

    def __init__(self, shape=(1, 2, 3, 4)):
        self.build = GraphBuilder()
        self.x = self.build.input("x", shape, "float32")

    def f(self, name: str, kind: str, inputs, shape=None, constants=None, /, **given) -> Tensor:
        shape = inputs[0].shape if shape is None else shape
        arrays = {k: np.asarray(v, "float32") for k, v in (constants or {}).items()}
        outputs = [Tensor(name, tuple(shape), "float32")]
        return self.build.layer(
            kind, inputs, name=f"{name}_layer", outputs=outputs, attributes=given, constants=arrays
        )[0]

    def c(self, name: str, value) -> Tensor:
        array = np.asarray(value, "float32")
        return self.build.layer(
            "Constant",
            [],
            name=f"{name}_layer",
            outputs=[Tensor(name, array.shape, "float32")],
            constants={"weights": array},
        )[0]


def case_fold_constant(n: Net):
    total = n.f("total", "Add", [n.c("a", [1, 2, 3, 4]), n.c("b", [1, 1, 1, 1])])
    return [n.f("y", "Mul", [n.x, total])], ["total = Constant() weights=[2.0, 3.0, 4.0, 5.0]", "y = Mul(x, total)"]


def case_remove_dead_layers(n: Net):
    n.f("unused", "Exp", [n.f("before", "Exp", [n.x])])
    return [n.f("y", "RELU", [n.x])], ["y = RELU(x)"]


def case_common_subexpr_elim(n: Net):
    a, b = (n.f(name, "Mul", [n.x, n.c(f"c{name}", [2, 2, 2, 2])]) for name in "ab")
    want = ["ca = Constant() weights=[2.0, 2.0, 2.0, 2.0]", "a = Mul(x, ca)", "y = Add(a, a)"]
    return [n.f("y", "Add", [a, b])], want


def case_cancel_moves(n: Net):
    t = n.f("t", "Transpose", [n.x], (1, 4, 2, 3), perm=[0, 3, 1, 2])
    back = n.f("back", "Transpose", [n.f("n", "NoOp", [t])], (1, 2, 3, 4), perm=[0, 2, 3, 1])
    r = n.f("r", "Reshape", [n.f("e", "Exp", [back])], (6, 4), shape=[6, 4])
    return [n.f("y", "Reshape", [r], (24,), shape=[24])], ["e = Exp(x)", "y = Reshape(e) shape=[24]"]


def case_cancel_moves_2(n: Net):
    """A transpose of axes of size 1 is a reshape; one that turns elements round stays."""
    t = n.f("t", "Transpose", [n.x], (2, 1, 3, 4), perm=[1, 0, 2, 3])
    same = n.f("same", "Slice", [t], begin=[0] * 4, end=[2, 1, 3, 4], strides=[1] * 4)
    y = n.f("y", "Slice", [same], begin=[1, 0, 0, 0], end=[-3, 1, 3, 4], strides=[-1, 1, 1, 1])
    return [y], [
        "t = Reshape(x) shape=[2, 1, 3, 4]",
        "y = Slice(t) begin=[1, 0, 0, 0] end=[-3, 1, 3, 4] strides=[-1, 1, 1, 1]",
    ]


def case_push_moves(n: Net):
    a, b = (n.f(name, kind, [n.x]) for name, kind in (("a", "Exp"), ("b", "Abs")))
    ta, tb = (n.f(f"t{t.name}", "Transpose", [t], (1, 4, 2, 3), perm=[0, 3, 1, 2]) for t in (a, b))
    s = n.f("s", "RELU", [n.f("sum", "Add", [ta, tb])])
    y = n.f("y", "Transpose", [n.f("c", "Concat", [s], axis=1)], (1, 2, 3, 4), perm=[0, 2, 3, 1])
    want = [
        "a = Exp(x)",
        "b = Abs(x)",
        "sum_layer_moved_1 = Add(a, b)",
        "s_layer_moved_2 = RELU(sum_layer_moved_1)",
        "c_layer_moved_3 = Concat(s_layer_moved_2) axis=3",
        "c = Transpose(c_layer_moved_3) perm=[0, 3, 1, 2]",
        "y = Transpose(c) perm=[0, 2, 3, 1]",
    ]
    return [y], want


def case_fold_scaling_factors(n: Net):
    two = [2, 3]
    fc = n.f(
        "fc",
        "FullyConnected",
        [n.f("m", "Mul", [n.x, n.c("in", [1, 2, 1, 1])])],
        (1, 2, 3, 2),
        {"weights": np.ones((2, 4)), "biases": [1, 1]},
        num_output=2,
    )
    bn = n.f("bn", "BatchNorm", [fc], None, {"weights": two, "biases": [0, 1]}, axis=3)
    y = n.f("y", "Sub", [n.c("ten", [10]), bn], bn.shape)
    want = ["y = FullyConnected(x) num_output=2 weights=[-2.0, -4.0, -2.0, -2.0] biases=[8.0, 6.0]"]
    return [y], want


def case_fold_scaling_factors_2(n: Net):
    product = n.f("p", "MatMul", [n.x, n.x], (1, 2, 3, 3), trans_b=True)
    half = n.f("h", "Div", [product, n.c("two", [2])])
    scaled = n.f("s", "Mul", [half, n.c("factor", [1, 2, 4])])
    y = n.f("y", "Add", [scaled, n.c("addend", [5])])
    want = [
        "h = MatMul(x, x) trans_b=True fused_multiplier=0.5",
        "y = BatchNorm(h) axis=3 weights=[1.0, 2.0, 4.0] biases=[5.0, 5.0, 5.0]",
    ]
    return [y], want


def case_join_activations(n: Net):
    total = n.f("s", "Eltwise", [n.x, n.x], method="ADD")
    y = n.f("y", "Activation", [total], method="LEAKYRELU", negative_slope_value=0.5)
    return [y], ["y = Eltwise(x, x) method=ADD with_activation=LEAKYRELU negative_slope_value=0.5"]


def case_simplify(n: Net):
    a = n.f("a", "Sub", [n.f("a0", "Add", [n.x, n.c("zero", [0])]), n.c("zeros", [0, 0, 0, 0])])
    b = n.f("b", "Div", [n.f("b0", "Mul", [n.c("one", 1), a], a.shape), n.c("ones", [1])])
    c = n.f("c", "Negative", [n.f("c0", "Negative", [b])])
    d = n.f("d", "Pow", [n.f("d0", "Abs", [n.f("d1", "Abs", [c])]), n.c("two", [2])])
    e = n.f("e", "Add", [n.c("q", [1, 2, 3, 4]), n.f("e0", "Add", [d, n.c("p", [1])])], d.shape)
    y = n.f("y", "Mul", [e, n.c("minus", [-1])])
    want = [
        "d0 = Abs(x)",
        "d = Square(d0)",
        "e_layer_constant_1 = Constant() weights=[2.0, 3.0, 4.0, 5.0]",
        "e = Add(d, e_layer_constant_1)",
        "y = Negative(e)",
    ]
    return [y], want


def case_fuse_operators(n: Net):
    return [n.f("y", "Mul", [n.x, n.f("s", "Activation", [n.x], method="SIGMOID")])], ["y = Activation(x) method=SILU"]


def case_fuse_layers(n: Net):
    norm = n.f("n", "LayerNorm", [n.x], None, {"weights": [1, 1, 1, 1], "biases": [0, 0, 0, 0]}, axis=[3], epsilon=1e-5)
    scaled = n.f("s", "Mul", [norm, n.c("factor", [1, 2, 3, 4])])
    y = n.f("y", "Add", [scaled, n.c("addend", [5])])
    want = "y = LayerNorm(x) axis=[3] epsilon=1e-05 weights=[1.0, 2.0, 3.0, 4.0] biases=[5.0, 5.0, 5.0, 5.0]"
    return [y], [want]


def case_equalise_channels(n: Net):
    first = n.f("a", "FullyConnected", [n.x], (1, 2, 3, 1), {"weights": [[4, 4, 4, 4]], "biases": [4]}, num_output=1)
    y = n.f("y", "FullyConnected", [n.f("r", "RELU", [first])], None, {"weights": [[1]], "biases": [0]}, num_output=1)
    want = [
        "a = FullyConnected(x) num_output=1 weights=[2.0, 2.0, 2.0, 2.0] biases=[2.0]",
        "r = RELU(a)",
        "y = FullyConnected(r) num_output=1 weights=[2.0] biases=[0.0]",
    ]
    return [y], want


CASES = {name.removeprefix("case_"): make for name, make in globals().items() if name.startswith("case_")}


@pytest.mark.parametrize("name", CASES)
def test_before_and_after(name):
    net = Net()
    outputs, want = CASES[name](net)
    graph = net.build.finish(outputs)
    after = load_pass(name.removesuffix("_2"), GRAPHS).run(graph)
    assert lines(after) == want
    check(after)
    inputs = {"x": np.random.default_rng(0).normal(0, 1, net.x.shape).astype("float32")}
    compare(run_graph(graph, inputs), run_graph(after, inputs), graph, False)
    assert load_pass(name.removesuffix("_2"), GRAPHS).run(after) is after


def compare(before, after, graph: Graph, exact: bool) -> None:
    for t in graph.outputs:
        if exact:
            assert (before[t.name] == after[t.name]).all() or np.array_equal(
                before[t.name], after[t.name], equal_nan=True
            )
        else:
            largest = np.abs(before[t.name]).max(initial=1e-3)
            np.testing.assert_allclose(after[t.name], before[t.name], rtol=0, atol=2e-5 * largest, err_msg=t.name)


def values(graph: Graph, seed: int):
    source = np.random.default_rng(seed)
    draw = {"int8": lambda s: source.integers(-128, 128, s), "float32": lambda s: source.normal(0, 1, s)}
    return {t.name: draw[t.dtype](t.shape).astype(t.dtype) for t in graph.inputs}


@cache
def run_messy(seed: int, integers: bool):
    """A random graph, which is checked, inputs for it, and what it gives: the same for all passes."""
    graph = messy(seed, integers)
    check(graph)
    inputs = values(graph, seed)
    with np.errstate(all="ignore"):
        return graph, inputs, run_graph(graph, inputs)


@pytest.mark.parametrize("name", [*PASSES, "all"])
@pytest.mark.parametrize("integers", [False, True], ids=["floats", "integers"])
def test_outputs_stay_what_they_were(name, integers):
    of_floats = ("Simplify", "FoldConstant", "FoldScalingFactors", "JoinActivations", "PushMoves")
    finds = not (integers and name in of_floats) and name not in ("EqualiseChannels", "FuseOperators")
    changed = 0
    for seed in range(100):
        if seed >= (30 if name == "all" else 8) and (changed or not finds):
            break
        graph, inputs, before = run_messy(seed, integers)
        after = optimise(graph) if name == "all" else load_pass(name, GRAPHS).run(graph)
        changed += after is not graph
        check(after, Stage.OPTIMISED if name == "all" else Stage.ANY)
        assert after.inputs == graph.inputs
        assert [(t.name, t.shape, t.dtype) for t in after.outputs] == [
            (t.name, t.shape, t.dtype) for t in graph.outputs
        ]
        with np.errstate(all="ignore"):
            compare(before, run_graph(after, inputs), graph, integers or name in EXACT)
        assert len(after.layers) <= len(graph.layers) or name not in ("all", "CancelMoves", "Simplify")
        assert read(*write(after)) == after
    assert changed > 0 or not finds


def test_every_pass_is_in_the_pipeline_and_has_a_case():
    assert set(PASSES) == {name for stage in STAGES for name in pipeline_names(stage, GRAPHS)}
    cases = {load_pass(name.removesuffix("_2"), GRAPHS).NAME for name in CASES}
    assert cases == set(PASSES)


def test_passes_are_shown_as_those_of_kernels(capsys):
    net = Net()
    outputs, _ = case_cancel_moves(net)
    options = PassOptions(
        print_after=("CancelMoves",),
        print_changed=True,
        time_passes=True,
        verify=True,
        disabled=frozenset({"PushMoves"}),
    )
    optimise(net.build.finish(outputs), options)
    shown = capsys.readouterr().err
    assert "*** IR after CancelMoves ***\nmodel_name=graph" in shown
    assert "-layer_type=NoOp" in shown
    assert "total" in shown
    assert "PushMoves" not in shown

"""Relay programs built for NPUs: operators as layers, regions, programs that run there and on the host."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_runtime.compass_module import CompassModule
from compass_runtime.devices import cpu
from compass_runtime.graph_executor import GraphModule
from compass_runtime.module import load_module
from compassc import relay
from compassc.graph.run import run_graph
from compassc.operators.declare import sample
from compassc.pass_manager.context import PassContext
from compassc.relay import declared
from compassc.relay.backend import layers, vm
from compassc.relay.backend.build import GraphExecutorFactoryModule, build
from compassc.relay.backend.layer_forms import FORMS
from compassc.relay.backend.layers import graph_of, why_not
from compassc.relay.builders import build as built
from compassc.relay.builders import call, results
from compassc.relay.expr import Call, Function, Tuple, Var
from compassc.relay.module import IRModule
from compassc.relay.operators import OPERATORS
from compassc.relay.transform import InferType
from tests.choosing import some
from tests.relay.relay_values import evaluate, functions, module
from tests.relay.trying_operators import Case, cases, compare, type_of
from tests.sources import ROOT

declared.load()
TARGET = "X2_1204"


EVEN = {
    f"nn.adaptive_{kind}_pool{rank}d": sample((2, 3, 4, 6, 2)[: rank + 2], output_size=(2, 3, 1)[:rank])
    for kind in ("max", "avg")
    for rank in (1, 2, 3)
}
"""Shares that are windows."""


def _typed(f: Function) -> Function:
    typed = InferType()(IRModule.from_expr(f))["main"]
    assert isinstance(typed, Function)
    return typed


def _alone(case: Case, known: int) -> Function:
    """The typed function of one call, whose arguments from number `known` on are constants."""
    args, params = [], []
    for i, array in enumerate(case.arrays):
        if i >= known:
            args.append(relay.const(array))
        elif isinstance(array, list):
            given = [Var(f"x{i}_{n}", type_of(a)) for n, a in enumerate(array)]
            args, params = [*args, Tuple(given)], [*params, *given]
        else:
            args.append(Var(f"x{i}", type_of(array)))
            params.append(args[-1])
    return _typed(Function(params, Call(case.op, args, case.attrs)))


def _check(case: Case, known: int) -> bool:
    """Hold the layers of a case against the reference; False where it has none."""
    f = _alone(case, known)
    assert isinstance(f.body, Call)
    if why_not(f.body):
        return False
    graph = graph_of(f, "net")
    arrays = [a for given in case.arrays[:known] for a in (given if isinstance(given, list) else [given])]
    made = run_graph(graph, {t.name: a for t, a in zip(graph.inputs, arrays, strict=True)})
    compare(case, [made[t.name] for t in graph.outputs], case.reference())
    return True


WORDS = ("cast", "left_shift")
"""Layers of int32 alone, which quantised models are made of (`test_quantised_layers`)."""


@pytest.mark.parametrize("name", [name for name in FORMS if name not in WORDS])
def test_layers_compute_what_operators_do(name):
    """On each sample that has layers, with constant arguments behind the first one, and without constants."""
    done = []
    op = OPERATORS[name]
    for case in some([*cases(op), *([Case(op, EVEN[name], "float32")] if name in EVEN else [])]):
        if case.kind == "float32":
            done += [_check(case, known) for known in sorted({1, len(case.arrays)})]
    assert any(done), "no sample has layers"


rng = np.random.default_rng(5)


def weights(*shape: int) -> relay.Expr:
    return relay.const(rng.standard_normal(shape).astype("float32") / 2)


def _runs(f: Function, *arrays: np.ndarray, regions: int = 1) -> GraphExecutorFactoryModule:
    """Build a function for the NPU and hold a run against the interpreter. Gives what was built."""
    lib = build(IRModule({"main": f}), TARGET)
    assert len([m for m in lib.get_lib().imported_modules if isinstance(m, CompassModule)]) == regions
    graph = GraphModule(lib["default"](cpu()))
    _agrees(graph, f, *arrays)
    return lib


def _agrees(graph: GraphModule, f: Function, *arrays: np.ndarray) -> None:
    graph.run(**{p.name_hint: a for p, a in zip(f.params, arrays, strict=True)})
    expected = evaluate(InferType()(module(f)), *arrays)
    assert graph.get_num_outputs() == len(expected)
    for i, wanted in enumerate(expected):
        np.testing.assert_allclose(graph.get_output(i).numpy(), wanted, rtol=2e-5, atol=2e-5)


def cnn() -> Function:
    """A small CNN, with a shortcut, a depthwise convolution and a normalisation."""
    x = relay.var("x", shape=(1, 3, 8, 8))
    h = built("nn.bias_add", built("nn.conv2d", x, weights(4, 3, 3, 3), padding=1), weights(4))
    normal = results("nn.batch_norm", h, *(relay.const(np.full(4, n, "float32")) for n in (1.5, -0.5, 0.25, 2)))
    h = built("nn.relu", normal[0])
    h = h + built("nn.conv2d", h, weights(4, 1, 3, 3), padding=1, groups=4)
    h = built("nn.max_pool2d", h, pool_size=(2, 2), strides=(2, 2))
    h = built("nn.dense", built("nn.batch_flatten", h), weights(10, 64))
    return Function([x], built("nn.softmax", h))


def test_a_network_is_one_region_that_a_file_keeps(tmp_path):
    f, x = cnn(), rng.standard_normal((1, 3, 8, 8)).astype("float32")
    lib = _runs(f, x)
    lib.export_library(str(tmp_path / "model.tar"))
    _agrees(GraphModule(load_module(str(tmp_path / "model.tar"))["default"](cpu())), f, x)


def test_what_no_layer_does_runs_on_the_host_between_regions():
    x = relay.var("x", shape=(2, 4, 3))
    first = built("exp", built("transpose", x, axes=(0, 2, 1)))
    middle = call("cast", call("cast", first, dtype="int32"), dtype="float32")
    a, b = results("split", built("nn.relu", first + middle), 2, axis=2)
    f = Function([x], Tuple([a, built("concatenate", [b, b], axis=1), first, x, first]))
    _runs(f, rng.standard_normal((2, 4, 3)).astype("float32"), regions=2)


def _placed(lib: GraphExecutorFactoryModule) -> dict[str, tuple[str, str]]:
    return {row.operator: (row.place, row.why) for row in some(lib.placement.rows)}


def test_users_say_what_runs_where():
    x = relay.var("x", shape=(2, 4))
    f = Function([x], built("tanh", built("exp", built("log2", built("sqrt", built("abs", x))))))
    asked, small = "it is asked to run on the host", "its region has 1 of 2 calls"
    wanted = {
        "abs exp tanh": {"host": ["sqrt"]},
        "exp tanh": {"host": ["sqrt"], "minimal_calls": 2},
        "sqrt": {"npu": ["1"]},
    }
    for names, options in wanted.items():
        with PassContext(config={"relay.ext.compass.options": options}):
            found = _placed(build(IRModule({"main": f}), TARGET))
        assert names == " ".join(n for n, (place, _) in found.items() if place == "NPU")
        assert found["log2"] == ("host", "there is no layer for it")
        whys = {why for place, why in found.values() if place == "host"}
        assert (asked in whys) == ("host" in options) and (small in whys) == (names == "exp tanh")
    with (
        PassContext(config={"relay.ext.compass.options": {"hosts": []}}),
        pytest.raises(CompassError, match="host, npu"),
    ):
        build(IRModule({"main": f}), TARGET)
    with PassContext(config={"relay.ext.compass.options": {"host": ["ex"]}}), pytest.raises(CompassError, match="'ex'"):
        build(IRModule({"main": f}), TARGET)


def test_what_the_graph_builder_refuses_runs_on_the_host(monkeypatch):
    def refusing(graph, *args):
        if any(layer.name.startswith("exp_") for layer in graph.layers):
            raise CompassError("no plugin takes the layer 'exp_5' of type Exp")
        return accepting(graph, *args)

    accepting = layers.build_in_memory
    monkeypatch.setattr(layers, "build_in_memory", refusing)
    x = relay.var("x", shape=(2, 4))
    f = Function([x], built("tanh", built("exp", built("abs", x))))
    lib = _runs(f, rng.standard_normal((2, 4)).astype("float32"), regions=2)
    why = "the graph builder refuses it: no plugin takes the layer 'exp_5' of type Exp"
    assert _placed(lib) == {"abs": ("NPU", ""), "exp": ("host", why), "tanh": ("NPU", "")}


@st.composite
def networks(draw):
    """Networks of pictures: windows, functions of elements, shortcuts, joined and moved axes, and a head."""
    x = h = relay.var("x", shape=(1, 4, 6, 5))
    channels = 4
    for kind in draw(st.lists(st.sampled_from(["conv", "pool", "element", "join", "turn"]), min_size=2, max_size=5)):
        if kind == "conv":
            groups = draw(st.sampled_from([1, 2, channels]))
            h = built("nn.conv2d", h, weights(channels, channels // groups, 3, 3), padding=(1, 1), groups=groups)
            h = built("nn.bias_add", h, weights(channels))
        elif kind == "pool":
            pool = draw(st.sampled_from(["nn.max_pool2d", "nn.avg_pool2d"]))
            h = h + built(pool, h, pool_size=(3, 3), padding=(1, 1))
        elif kind == "element":
            h = built(draw(st.sampled_from(["nn.relu", "sigmoid", "tanh"])), h)
        elif kind == "join":
            h, channels = built("concatenate", [h, built("negative", h)], axis=1), channels * 2
        else:
            last = built("nn.softmax", built("transpose", h, axes=(0, 2, 3, 1)))
            h = h * built("transpose", last, axes=(0, 3, 1, 2))
    return Function([x], Tuple([built("mean", h, axis=[2, 3]), built("nn.batch_flatten", h)]))


@settings(max_examples=3, deadline=None)
@given(f=networks())
def test_random_networks_are_one_region_and_agree(f):
    _runs(f, np.random.default_rng(1).standard_normal((1, 4, 6, 5)).astype("float32"))


@settings(max_examples=3, deadline=None)
@given(f=functions())
def test_random_programs_agree(f):
    arrays = [np.arange(6, dtype="float32").reshape(2, 3) - 2, np.full((2, 3), 1.5, "float32")]
    _agrees(GraphModule(build(IRModule({"main": f}), TARGET)["default"](cpu())), f, *arrays)


@pytest.mark.parametrize("name", ["argwhere", "qnn.simulated_quantize"])
def test_what_runs_nowhere_is_named_with_its_line(name):
    case = cases(OPERATORS[name])[0]
    f = _alone(case, len(case.arrays))
    text = IRModule({"main": f}).astext(show_meta_data=True)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if f"{name}(" in row)
    with pytest.raises(CompassError, match="only supports static graphs|a call that is no kernel") as caught:
        build(relay.parse(text), TARGET)
    assert caught.value.span is not None and caught.value.span.line == line


def test_the_page_lists_the_operators_that_are_layers():
    page = (ROOT / "docs/relay.md").read_text().partition("## Programs for NPUs")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = [name for row in some(rows) for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(listed) == sorted(FORMS)


BRANCHES = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 2, 4, 4), float32], %up: bool) -> Tensor[(1, 2, 4, 4), float32] {
  %0 = nn.softmax(%x);
  if (%up) { exp(sigmoid(%0)) } else { sigmoid(nn.relu(%0)) }
}
"""


def test_the_machine_runs_regions_of_programs_with_branches():
    branches = InferType()(relay.parse(BRANCHES))
    program = vm.compile(branches, TARGET)
    assert "tvmgen_default_compass_main_" in program.stats
    machine = vm.VirtualMachine(program, cpu())
    x = np.linspace(-1, 1, 32, dtype="float32").reshape(1, 2, 4, 4)
    for up in (True, False):
        np.testing.assert_allclose(machine.run(x, up).numpy(), evaluate(branches, x, up)[0], rtol=1e-4, atol=1e-6)


def test_the_machine_runs_regions_before_within_and_behind_loops():
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 2, 4, 4), float32], %n: int32) -> Tensor[(1, 2, 4, 4), float32] {
  let %loop: fn (int32, Tensor[(1, 2, 4, 4), float32]) -> Tensor[(1, 2, 4, 4), float32] =
    fn (%i: int32, %s: Tensor[(1, 2, 4, 4), float32]) -> Tensor[(1, 2, 4, 4), float32] {
      if (%i < %n) { %loop(%i + 1, exp(negative(%s))) } else { %s }
    };
  nn.relu(%loop(0, nn.softmax(%x)))
}
"""
    looping = InferType()(relay.parse(text))
    program = vm.compile(looping, TARGET)
    assert len(set(re.findall(r"tvmgen_default_compass_main_\d", program.stats))) == 3
    x = np.linspace(-1, 1, 32, dtype="float32").reshape(1, 2, 4, 4)
    for n in (0, 3):
        found = vm.VirtualMachine(program, cpu()).run(x, n).numpy()
        np.testing.assert_allclose(found, evaluate(looping, x, n)[0], rtol=1e-4, atol=1e-6)


def test_the_machine_runs_no_region_before_what_it_takes_is_known():
    text = """#[version = "0.0.5"]
type Some[A] { One(A), None }
def @main(%x: Tensor[(1, 2, 4, 4), float32], %up: bool) -> Tensor[(1, 2, 4, 4), float32] {
  let %s = if (%up) { One(nn.softmax(%x)) } else { None };
  match (%s) { One(%y) => { nn.relu(exp(%y)) }, None => { tanh(%x) } }
}
"""
    matching = InferType()(relay.parse(text))
    machine = vm.VirtualMachine(vm.compile(matching, TARGET), cpu())
    x = np.linspace(-1, 1, 32, dtype="float32").reshape(1, 2, 4, 4)
    for up in (True, False):
        np.testing.assert_allclose(machine.run(x, up).numpy(), evaluate(matching, x, up)[0], rtol=1e-4, atol=1e-6)

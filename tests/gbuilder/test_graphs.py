"""Graphs of many layers: linked objects, plugins beside the library, views, private buffers, both device families."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compass_core.aipubin import read
from compass_core.elf.hostcode import parse_text_blob
from compass_core.elf.link import Part, link
from compass_core.errors import CompassError
from compass_runtime import Program
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.writer import GraphWriter
from tests.memory import peak_of_memory

SHAPE = (3, 40)


def chain(*kinds: tuple[str, dict]) -> tuple[GraphWriter, str]:
    """A graph in which each layer works on the one before."""
    graph = GraphWriter()
    at = graph.input("x", SHAPE, "float32")
    for kind, given in kinds:
        at = graph.layer(kind, [at], SHAPE, "float32", **given)
    return graph, at


TWICE = ("Activation", {"method": "LEAKYRELU", "negative_slope_value": 2.0})
SHIFT = ("Activation", {"method": "SOFTPLUS"})


@pytest.fixture
def built(tmp_path):
    """Builds a graph and loads it."""

    def build(graph, *outputs, target="X2_1204", plugins=(), fuse=False):
        text = graph.write(tmp_path, outputs)
        options = GraphOptions(plugin_dirs=plugins, library_dirs=plugins, work_dir=tmp_path / "kernels", fuse=fuse)
        result = build_model(text, tmp_path / "weight.bin", tmp_path / "aipu.bin", target, options)
        return result, Program.load(result.path)

    return build


def leaky(x):
    return np.where(x >= 0, x, 2 * x)


@pytest.mark.parametrize("target", ["X2_1204", "X2_1204MP3", "X3P_1304"])
def test_layers_of_one_kind_share_a_kernel(built, target):
    graph, top = chain(TWICE, TWICE, SHIFT, TWICE)
    result, program = built(graph, top, target=target)
    entries = parse_text_blob(program.content.text).entries
    assert (result.launches, len(entries)) == (4, 2)
    x = np.random.default_rng(0).normal(0, 2, SHAPE).astype("float32")
    (y,) = program.create_job().run({"x": x}).values()
    np.testing.assert_allclose(y, leaky(np.logaddexp(0, leaky(leaky(x)))), rtol=1e-5, atol=1e-6)


def test_joined_layers_give_the_same_bits(built):
    graph, top = chain(TWICE, SHIFT, TWICE, ("Activation", {"method": "TANH"}))
    x = np.random.default_rng(0).normal(0, 2, SHAPE).astype("float32")
    apart, program = built(graph, top)
    (want,) = program.create_job().run({"x": x}).values()
    joined, program = built(graph, top, fuse=True)
    (got,) = program.create_job().run({"x": x}).values()
    assert (apart.launches, joined.launches) == (4, 1)
    np.testing.assert_array_equal(got.view("uint32"), want.view("uint32"))


def test_names_and_shapes_travel_in_the_graph_description(built):
    graph, top = chain(TWICE)
    _, program = built(graph, top)
    assert [(t.name, t.shape) for t in (*program.inputs, *program.outputs)] == [("x", SHAPE), (top, SHAPE)]
    assert [layer["types"] for layer in json.loads(program.content.graph_json)["layers"]] == [["Activation"]]


def test_a_file_of_another_builder_has_numbered_names(built, tmp_path):
    from dataclasses import replace

    from compass_core.aipubin import write

    graph, top = chain(TWICE)
    _, program = built(graph, top)
    for note in (b"", b"{", b"[1]", b'{"inputs": 3}'):
        other = Program.load(write(replace(program.content, graph_json=note)))
        assert [(t.name, t.shape) for t in other.inputs] == [("input0", (120,))]


def test_reshapes_between_layers_are_views(built):
    graph = GraphWriter()
    x = graph.input("x", SHAPE, "float32")
    flat = graph.layer("Reshape", [graph.layer(TWICE[0], [x], SHAPE, "float32", **TWICE[1])], (120,), "float32")
    y = graph.layer(TWICE[0], [flat], (120,), "float32", **TWICE[1])
    z = graph.layer("Reshape", [y], (10, 12), "float32")
    result, program = built(graph, z)
    assert result.launches == 3  # the last one copies: its result is the graph's output
    value = np.random.default_rng(0).normal(0, 2, SHAPE).astype("float32")
    (got,) = program.create_job().run({"x": value}).values()
    np.testing.assert_array_equal(got, leaky(leaky(value)).reshape(10, 12))


def test_constant_layers(built):
    graph = GraphWriter()
    x = graph.input("x", SHAPE, "float32")
    weights = np.arange(40, dtype="float32")
    graph.add("Constant", [], [("c", (40,), "float32")], weights=weights)
    y = graph.layer("Add", [x, "c"], SHAPE, "float32")
    _, program = built(graph, y)
    (got,) = program.create_job().run({"x": np.ones(SHAPE, "float32")}).values()
    np.testing.assert_array_equal(got, np.ones(SHAPE, "float32") + weights)


def test_outputs_that_are_constants_are_written(built):
    graph = GraphWriter()
    x = graph.input("x", SHAPE, "float32")
    weights = np.arange(1, 41, dtype="float32")
    graph.add("Constant", [], [("c", (40,), "float32")], weights=weights)
    sums = graph.layer("Add", [x, "c"], SHAPE, "float32")
    _, program = built(graph, "c", sums)
    given = np.full(SHAPE, 2, "float32")
    found = program.create_job().run({"x": given})
    assert list(found) == ["c", sums]
    for got, want in zip(found.values(), (weights, given + weights), strict=True):
        np.testing.assert_array_equal(got, want)


def test_an_output_that_is_an_input_is_refused(built):
    graph, top = chain(TWICE)
    with pytest.raises(CompassError, match="input 'x' is one of its outputs"):
        built(graph, top, "x")


def test_a_graph_of_a_constant_alone_gives_it(built):
    graph = GraphWriter()
    graph.add("Constant", [], [("c", (3,), "int16")], weights=np.array([7, -8, 9], "int16"))
    _, program = built(graph, "c")
    np.testing.assert_array_equal(program.create_job().run({})["c"], [7, -8, 9])


@S.prim_func
def negate(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), w: S.ptr("fp32", "global"), n: S.i32):
    for i in range(S.get_local_id(), n, S.get_local_size()):
        w[i] = x[i] * -1.0
        y[i] = w[i]


PLUGIN = """
from AIPUBuilder.core import BuilderOpPlugin, BuilderParams, register_optype
from AIPUBuilder.logger import INFO
from AIPUBuilder.plugin_loader import PluginType, register_plugin

@register_plugin(PluginType.Builder, 1)
class Mine(BuilderOpPlugin):
    def get_graph_pattern(self):
        return ([("one", register_optype("{kind}"))], [])
    def get_score(self):
        return {score}
    def setup(self, sgnode, nodes):
        INFO("setting up")
        self.space = sgnode.attrs.add_private_buffer(480)
        return True
    def generate_code_name(self, sgnode, nodes):
        return "negate.o"
    def generate_params(self, sgnode, nodes):
        params = BuilderParams()
        for value in (sgnode.inputs[0], sgnode.outputs[0], self.space, 120):
            params.append(value)
        return params
"""


@pytest.fixture
def plugin(tmp_path):
    """Makes a folder with a plugin for a layer type and its object."""

    def make(kind, score):
        folder = tmp_path / "own"
        BuildManager("X2_1204").gen_op_lib(negate, "negate", str(folder / "negate.o"))
        (folder / "aipubt_mine.py").write_text(PLUGIN.format(kind=kind, score=score))
        return folder

    (tmp_path / "own").mkdir()
    return make


@pytest.mark.parametrize(("score", "mine"), [(1, True), (-1, False)])
def test_the_score_decides_between_a_plugin_and_the_library(built, plugin, score, mine):
    graph, top = chain(TWICE, SHIFT)
    _, program = built(graph, top, plugins=[plugin("Activation", score)])
    assert [len(g.private_buffers) for g in program.content.subgraphs] == ([1, 1] if mine else [0, 0])
    x = np.random.default_rng(0).normal(0, 2, SHAPE).astype("float32")
    (y,) = program.create_job().run({"x": x}).values()
    np.testing.assert_allclose(y, x if mine else np.logaddexp(0, leaky(x)), rtol=1e-5, atol=1e-6)


def test_a_plugin_for_a_type_of_its_own_beside_the_library(built, plugin, monkeypatch):
    graph, top = chain(TWICE, ("Negate", {}))
    monkeypatch.setenv("AIPUPLUGIN_PATH", f"/nowhere:{plugin('Negate', 1)}")
    _, program = built(graph, top)
    x = np.random.default_rng(0).normal(0, 2, SHAPE).astype("float32")
    np.testing.assert_array_equal(next(iter(program.create_job().run({"x": x}).values())), -leaky(x))


def test_a_layer_nobody_takes(built):
    graph, top = chain(("Frobnicate", {}))
    with pytest.raises(CompassError, match=r"'frobnicate_1' of type Frobnicate") as caught:
        built(graph, top)
    assert caught.value.help == "`compassc layers` lists the built-in types"
    graph, top = chain(("Sofmax", {}))
    with pytest.raises(CompassError) as caught:
        built(graph, top)
    assert caught.value.help == "did you mean Softmax?"


def test_why_the_library_refuses_a_layer(built):
    graph, top = chain(("Softmax", {"axis": 7}))
    with pytest.raises(CompassError, match="of type Softmax") as caught:
        built(graph, top)
    assert "'axis' is 7, but the input has 2 dimensions" in str(caught.value.notes)


def test_kernels_of_one_name_from_several_objects(tmp_path):
    """Objects that define the same symbols are linked, and each entry reaches its own code."""
    from compass_core.elf.hostcode import entry_symbol

    manager = BuildManager("X2_1204")
    manager.gen_op_lib(negate, "negate", str(tmp_path / "negate.o"))
    data, entry = (tmp_path / "negate.o").read_bytes(), entry_symbol("negate")
    parts = [Part("a.o", data, {entry: "first"}), Part("b.o", data, {entry: "second"})]
    once = link(parts)
    assert once == link(parts)
    again = link([Part("ab.o", once, {"first": "one", "second": "two"})])
    assert b"\0one\0" in again and b"\0two\0" in again
    with pytest.raises(CompassError, match="two objects define the entry 'first'"):
        link([parts[0], parts[0]])


@pytest.mark.parametrize("data", [b"", b"object code", b"\x7fELF\2\1" + bytes(20), b"\x7fELF\2\1" + bytes(100)])
def test_what_is_no_object_is_not_linked(data):
    with pytest.raises(CompassError, match=r"cannot link 'x\.o'"):
        link([Part("x.o", data, {}), Part("y.o", data, {})])


def command(folder, *args):
    run = [sys.executable, "-m", *args]
    return subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "tool", [("compassc", "gbuild", "graph.txt", "-t"), ("compassc.cli.aipugb", "graph.txt", "--target")]
)
def test_the_commands(tmp_path, tool):
    graph, top = chain(TWICE, SHIFT, TWICE)
    graph.write(tmp_path, [top])
    done = command(tmp_path, *tool, "X2_1204", "-w", "weight.bin")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "1 launch; intermediates: peak 0 bytes of 0" in done.stderr  # the three layers share a kernel
    assert len(read((tmp_path / "aipu.bin").read_bytes()).subgraphs) == 1


def test_the_vendor_options_of_aipugb(tmp_path):
    graph, top = chain(TWICE)
    graph.write(tmp_path, [top])
    done = command(
        tmp_path,
        "compassc.cli.aipugb",
        "graph.txt",
        "-w",
        "weight.bin",
        "--target",
        "X2_1204",
        "-o",
        "out.bin",
        "--disable_input_buffer_reuse",
        "--profile",
        "--tcm_size",
        "64",
        "--prof_unit",
        "TPC",
        "--DEBUG",
        "--Lib",
        ".",
    )
    assert done.returncode == 0, done.stderr
    assert "Total errors: 0" in done.stderr and "--tcm_size has no effect" in done.stderr
    content = read((tmp_path / "out.bin").read_bytes())
    assert content.compiler.reserved[0] == 1
    assert (tmp_path / "temp.graph.json").read_bytes() == content.graph_json
    failed = command(tmp_path, "compassc.cli.aipugb", "missing.txt")
    assert failed.returncode == 2 and "missing.txt" in failed.stderr


def test_a_fault_in_a_linked_kernel_is_found_in_its_source(built, plugin):
    folder = plugin("Negate", 1)
    path = folder / "aipubt_mine.py"
    path.write_text(path.read_text().replace("self.space, 120", "0, 120"))
    graph, top = chain(TWICE, ("Negate", {}), SHIFT)
    _, program = built(graph, top, plugins=[folder])
    with pytest.raises(CompassError) as caught:
        program.create_job().run({"x": np.ones(SHAPE, "float32")})
    assert caught.value.span is not None and caught.value.span.file == __file__
    line = Path(__file__).read_text().splitlines()[caught.value.span.line - 1]
    assert line.strip() == "w[i] = x[i] * -1.0"


def constant_of(graph, array):
    top = f"c{len(graph.tensors)}"
    graph.add("Constant", [], [(top, array.shape, array.dtype.name)], weights=array)
    return top


def test_equal_constants_lie_once_in_the_file(built):
    graph = GraphWriter()
    at = graph.input("x", SHAPE, "float32")
    big = np.random.default_rng(0).normal(size=SHAPE).astype("float32")
    other = big.copy()
    other[1, 20] += 1  # the ends are the same
    for array in (big, big.copy(), other, big):
        at = graph.layer("Add", [at, constant_of(graph, array)], SHAPE, "float32")
    result, program = built(graph, at)
    sizes = [s.size for s in program.content.features.bss[0].statics]
    assert result.launches == 4 and sizes == [big.nbytes] * 2
    (got,) = program.create_job().run({"x": np.zeros(SHAPE, "float32")}).values()
    np.testing.assert_array_equal(got, big + big + other + big)


def test_neither_a_file_nor_its_build_nor_its_run_is_much_more_than_its_constants(tmp_path):
    """Beside the constants as they were read, the build holds but a part of them in another order, and a run those of the
    device."""
    graph = GraphWriter()
    at = graph.input("x", (1, 1024), "float32")
    weights = np.random.default_rng(0).normal(size=(2, 2048 << 10)).astype("float32")
    for array, shape in zip(weights, ((2048, 1024), (1024, 2048)), strict=True):
        given = {"weights": array.reshape(shape), "biases": np.zeros(shape[0], "float32"), "num_output": shape[0]}
        at = graph.layer("FullyConnected", [at], (1, shape[0]), "float32", **given)
    text, options = graph.write(tmp_path, [at]), GraphOptions(work_dir=tmp_path / "kernels")
    for _ in range(2):  # what is imported or compiled counts the first time alone
        with peak_of_memory() as peak:
            build_model(text, tmp_path / "weight.bin", tmp_path / "aipu.bin", "X2_1204", options)
        built = peak()
        with peak_of_memory() as peak:
            job = Program.load(tmp_path / "aipu.bin").create_job()
            (got,) = job.run({"x": np.ones((1, 1024), "float32")}).values()
    assert (tmp_path / "aipu.bin").stat().st_size < 1.05 * weights.nbytes + (2 << 20)
    assert built < 0.3 * weights.nbytes and peak() < 0.2 * weights.nbytes
    first, second = (w.reshape(s) for w, s in zip(weights, ((2048, 1024), (1024, 2048)), strict=True))
    np.testing.assert_allclose(got[0], second @ first.sum(1), rtol=1e-3, atol=0.1)

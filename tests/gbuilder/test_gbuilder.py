"""From parameters and an object to aipu.bin: the reader finds in it what went in."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest

from compass_core.aipubin import layout as lay
from compass_core.aipubin import read
from compass_core.elf.hostcode import parse_text_blob
from compass_core.errors import CompassError
from compassc.gbuilder import build_from_params, build_graph


def pointer(name, role, index=0, shape=(8,), dtype="int32", **more):
    shape = None if shape is None else list(shape)
    return {"name": name, "kind": "pointer", "dtype": dtype, "role": role, "index": index, "shape": shape, **more}


def scalar(name, dtype="int32", value=None):
    return {"name": name, "kind": "scalar", "dtype": dtype, "role": "attr", "value": value}


def kernel(*params, **more):
    base = {"format": "compassc-params/1", "kernel": "vadd", "target": "X2_1204", "stack_size": 8192, "extents": None}
    return base | {"params": list(params)} | more


VADD = kernel(pointer("a", "input"), pointer("b", "output"))


@pytest.fixture
def build(tmp_path):
    """Builds parameters in a folder of their own and reads the result."""
    (tmp_path / "vadd.o").write_bytes(b"object code")

    def run(params, **fixed):
        out = build_from_params(params, tmp_path / "vadd.o", tmp_path, tmp_path / "aipu.bin", **fixed)
        return read(out.read_bytes())

    return run


def words(content):
    return struct.unpack(f"<{len(content.params) // 4}I", content.params)


def references(content, kind, index=0):
    return content.sub_sections(kind)[index].references


def test_a_kernel_becomes_one_subgraph(build):
    content = build(VADD)
    (graph,) = content.subgraphs
    code = parse_text_blob(content.text)
    assert code.elf == b"object code"
    assert code.offset_of("__compass_entry_vadd") == graph.text_offset
    assert (graph.params_offset, graph.params_size, graph.printf_size) == (0, 8, 0)
    assert content.features.bss[0].stack_size == 8192
    assert (references(content, lay.Kind.INPUT), references(content, lay.Kind.OUTPUT)) == ((0,), (4,))
    assert [s.size for s in content.features.bss[0].reuses] == [32, 32]
    assert content.kernel.to_json() == {**VADD, "uses_printf": False, "params": content.kernel.to_json()["params"]}


@pytest.mark.parametrize(
    ("dtype", "value", "word"),
    [
        ("int32", -1, 0xFFFFFFFF),
        ("int8", -1, 0xFFFFFFFF),
        ("uint8", 255, 0xFFFFFFFF),
        ("uint16", 7, 7),
        ("float32", 1.5, 0x3FC00000),
        ("float16", 1.0, 0x3C00),
        ("bfloat16", 1.0, 0x3F80),
        ("bool", True, 1),
        ("float32", 2, 0x40000000),
        ("bfloat16", 1.00390625, 0x3F80),
    ],
)
def test_scalars_are_passed_as_bits(build, dtype, value, word):
    content = build(kernel(scalar("n", dtype), pointer("b", "output")), values={"n": value})
    assert words(content)[0] == word
    assert references(content, lay.Kind.OUTPUT) == (4,)


@pytest.mark.parametrize(("dtype", "value"), [("int8", 128), ("uint32", -1), ("float16", 1e6), ("int32", 1.5)])
def test_a_scalar_that_does_not_fit_is_refused(build, dtype, value):
    with pytest.raises(CompassError, match="'n'"):
        build(kernel(scalar("n", dtype), pointer("b", "output")), values={"n": value})


@pytest.mark.parametrize("shape", [(10**20,), (10**6, 10**6)])
def test_a_shape_larger_than_the_memory_is_refused(build, shape):
    with pytest.raises(CompassError, match="'b' of shape 10.* is larger than the device's memory"):
        build(kernel(pointer("b", "output")), shapes={"b": shape})


def test_constants_go_to_the_weights(build):
    params = kernel(
        pointer("w", "const", scope="global.1", dtype="int8x32", shape=(32,)),
        pointer("b", "output"),
        pointer("v", "const", 1, scope="global.1", dtype="float16", shape=None),
    )
    content = build(params, consts={"w": bytes(range(32)), "v": b"\1\2\3\4"})
    statics = content.features.bss[0].statics
    found = [content.weights[s.src_offset : s.src_offset + s.size] for s in statics]
    assert found == [bytes(range(32)), b"\1\2\3\4"]
    assert [s.subs[0].references for s in statics] == [(0,), (8,)]
    assert all(s.src_offset % s.align == 0 for s in statics)


@pytest.mark.parametrize(
    ("consts", "message"),
    [
        ({}, "'w' has no data"),
        ({"w": np.zeros(4, np.float32)}, "'w' is int32, but its array is float32"),
        ({"w": np.zeros(3, np.int32)}, "'w' is 12 bytes, but int32 of shape .4. needs 16"),
        ({"w": np.zeros(4, np.int32), "b": np.zeros(1, np.int32)}, "no parameter 'b' among its constants"),
    ],
)
def test_constants_that_do_not_fit_are_refused(build, consts, message):
    params = kernel(pointer("w", "const", scope="global.1", shape=(4,)), pointer("b", "output"))
    with pytest.raises(CompassError, match=message):
        build(params, consts=consts)


def test_the_bytes_of_a_constant_are_in_the_order_of_the_device(build):
    params = kernel(pointer("w", "const", scope="global.1", shape=(2,)), pointer("b", "output"))
    assert build(params, consts={"w": np.array([1, 2], ">i4")}).weights[:8] == b"\1\0\0\0\2\0\0\0"


def test_unknown_sizes_get_a_page_and_keep_the_extents_program(build):
    program = {"entry": "vadd", "params": {"b": 4}, "functions": {}}
    content = build(kernel(pointer("b", "output", shape=None), scalar("n"), extents=program))
    (sub,) = content.sub_sections(lay.Kind.OUTPUT)
    assert sub.size == 0
    assert content.features.bss[0].reuses[0].size == lay.PAGE
    assert content.kernel.extents == program
    assert [p.shape for p in content.kernel.params] == [None, None]


def test_what_is_fixed_at_build_travels_along(build):
    content = build(kernel(pointer("b", "output", shape=None), scalar("n")), shapes={"b": (4, 2)}, values={"n": 3})
    assert (content.kernel.params[0].shape, content.kernel.params[1].value) == ((4, 2), 3)
    assert content.sub_sections(lay.Kind.OUTPUT)[0].size == 32


def test_printf_gets_its_area(build):
    assert build(kernel(pointer("b", "output"), uses_printf=True)).subgraphs[0].printf_size == 1024


def test_the_target_and_its_cores(build):
    content = build(kernel(pointer("b", "output"), target="X3P_1304MP2"))
    assert (content.target, content.cores) == ("X3P_1304MP2", 2)


def test_the_same_input_gives_the_same_bytes(build, tmp_path):
    build(VADD)
    first = (tmp_path / "aipu.bin").read_bytes()
    build(VADD)
    assert (tmp_path / "aipu.bin").read_bytes() == first


def test_the_graph_can_be_built_again_from_its_files(build, tmp_path):
    build(VADD)
    again = tmp_path / "again.bin"
    build_graph(tmp_path / "compass_ir.txt", tmp_path / "compass_ir.bin", again, "X2_1204", [tmp_path])
    assert again.read_bytes() == (tmp_path / "aipu.bin").read_bytes()


def test_nothing_of_the_plugins_stays_behind(build, tmp_path):
    path, modules = list(sys.path), set(sys.modules)
    build(VADD)
    assert sys.path == path
    assert not [m for m in set(sys.modules) - modules if m.startswith(("AIPUBuilder", "aipubt_"))]
    assert not (tmp_path / "__pycache__").exists()


def test_numpy_is_not_needed(tmp_path):
    import subprocess

    code = "import sys, compassc.gbuilder; assert 'numpy' not in sys.modules and 'yaml' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("params", "fixed", "message"),
    [
        (kernel(pointer("w", "const"), pointer("b", "output")), {}, "constant parameter 'w' has no data"),
        (kernel(pointer("w", "const"), pointer("b", "output")), {"consts": {"w": b"1"}}, "constant 'w' is 1 bytes"),
        (VADD, {"shapes": {"c": (1,)}}, "no parameter 'c'"),
        (VADD, {"values": {"n": 1}}, "no parameter 'n'"),
        (kernel(pointer("d", "descriptor"), pointer("b", "output")), {}, "hardware descriptor"),
        (kernel(pointer("a", "input", dtype="int7"), pointer("b", "output")), {}, "unknown data type 'int7'"),
        (kernel(pointer("b", "output"), target="X9_1204"), {}, "unknown target"),
        (kernel(pointer("b", "output"), format="other"), {}, "format is 'other'"),
        (kernel(pointer("b", "output", 1)), {}, "indices of the outputs"),
        (kernel(pointer("b", "output"), scalar("b")), {}, "two parameters are named 'b'"),
        (kernel(pointer("b", "output", shape=(1 << 30, 8))), {}, "larger than the device's memory"),
        (kernel(pointer("b", "inout")), {}, "expected one of"),
    ],
)
def test_what_cannot_be_built(build, params, fixed, message):
    with pytest.raises(CompassError, match=message):
        build(params, **fixed)


GRAPH = """
model_name=g
input_tensors=[x]
output_tensors=[z]

layer_name=second
layer_type=Twice
layer_bottom=[y]
layer_top=[z]
layer_top_shape=[[4]]
layer_top_type=[int32]

layer_name=first
layer_type=Twice
layer_bottom=[x]
layer_top=[y]
layer_top_shape=[[4]]
layer_top_type=[int32]
factor=3

layer_name=in
layer_type=Input
layer_bottom=[]
layer_top=[x]
layer_top_shape=[4]
layer_top_type=[int32]
"""

PLUGIN = """
from AIPUBuilder.core import BuilderOpPlugin, BuilderParams, Tensor, register_optype
from AIPUBuilder.plugin_loader import PluginType, register_plugin

@register_plugin(PluginType.Builder, "1.2")
class {name}(BuilderOpPlugin):
    def get_graph_pattern(self):
        return ([("n1", register_optype("Twice"))], [])
    def get_score(self):
        return {score}
    def check_params(self, nodes):
        return {check}
    def setup(self, sgnode, nodes):
        sgnode.attrs["keeping_layout"] = False
        assert sgnode.attrs.keeping_layout is False
        sgnode.attrs.valid_input_layouts = [[]]
        return sgnode.attrs["valid_input_layouts"] == [[]]
    def generate_code_name(self, sgnode, nodes):
        return "vadd.o"
    def generate_kernel(self, sgnode, nodes):
        return "{name}"
    def generate_descriptor(self, sgnode, nodes):
        words = BuilderParams()
        words.append(7)
        words.append(sgnode.attrs["descriptorbase"])
        return words
    def generate_params(self, sgnode, nodes):
        params = BuilderParams()
        params.append(sgnode.inputs[0])
        view = Tensor(sgnode.outputs[0])
        view.memory_offset().set_base_offset(sgnode.outputs[0].memory_offset())
        view.memory_offset().relative_offset = 8
        params.append(view)
        params.append(nodes[0].params.get("factor", 2))
        params.append(sgnode.attrs.descriptorbase)
        return params
"""


@pytest.fixture
def graph(tmp_path):
    (tmp_path / "g.txt").write_text(GRAPH)
    (tmp_path / "vadd.o").write_bytes(b"code")

    def run(*plugins, text=GRAPH):
        (tmp_path / "g.txt").write_text(text)
        for i, (name, score, check) in enumerate(plugins):
            (tmp_path / f"aipubt_{i}.py").write_text(PLUGIN.format(name=name, score=score, check=check))
        out = build_graph(tmp_path / "g.txt", None, tmp_path / "out.bin", "X2_1204", [tmp_path])
        return read(out.read_bytes())

    return run


def test_layers_run_in_topological_order(graph):
    content = graph(("K", 1, True))
    assert [g.id for g in content.subgraphs] == [0, 1]
    assert words(content)[2] == 3  # the first block belongs to the layer that comes last in the file
    second = content.subgraphs[1].params_offset // 4
    assert words(content)[second + 2] == 2
    assert [g.precursors for g in content.subgraphs] == [(), None]


def test_offsets_into_tensors_become_subsections(graph):
    content = graph(("K", 1, True))
    output = content.sub_sections(lay.Kind.OUTPUT)[0]
    (section,) = [s for s in content.features.bss[0].reuses if output in s.subs]
    assert output.references == ()
    assert [(s.offset, s.references) for s in section.subs[1:]] == [(8, (32 + 4,))]


def test_descriptors_are_reached_by_remap(graph):
    content = graph(("K", 1, True))
    assert content.desc[:4] == (7).to_bytes(4, "little")
    assert lay.Remap(lay.Area.PARAMS, 12, lay.Area.DESC, 0) in content.remap
    assert lay.Remap(lay.Area.DESC, 4, lay.Area.DESC, 0) in content.remap
    assert lay.Remap(lay.Area.PARAMS, 32 + 12, lay.Area.DESC, 32) in content.remap


def test_the_highest_score_that_accepts_wins(graph):
    def entries(*plugins):
        return {name for name, _ in parse_text_blob(graph(*plugins).text).entries}

    assert entries(("Low", 1, True), ("High", 2, True)) == {"__compass_entry_High"}
    assert entries(("Low", 1, True), ("High", 2, False)) == {"__compass_entry_Low"}


@pytest.mark.parametrize(
    ("plugins", "text", "message"),
    [
        ([], GRAPH, "no plugin takes the layer 'first' of type Twice"),
        ([("K", 1, False)], GRAPH, "no plugin takes"),
        ([("K", 1, "1/0")], GRAPH, "ZeroDivisionError"),
        ([("K", 1, True)], GRAPH.replace("layer_bottom=[x]", "layer_bottom=[q]"), "no layer produces the tensor 'q'"),
        ([("K", 1, True)], GRAPH.replace("layer_bottom=[x]", "layer_bottom=[z]"), "depends on its own output"),
        ([("K", 1, True)], GRAPH.replace("layer_top=[y]", "layer_top=[z]"), "produced twice"),
        ([("K", 1, True)], GRAPH.replace("layer_name=second", "layer_name=first"), "name 'first' is taken"),
        ([("K", 1, True)], GRAPH.replace("layer_type=Twice\n", "", 1), "'layer_type' is missing"),
        ([("K", 1, True)], GRAPH.replace("[int32]", "[int7]", 1), "not a data type"),
        ([("K", 1, True)], "model_name=g", "no layers that compute|no layers|computes anything"),
    ],
)
def test_graphs_that_cannot_be_built(graph, plugins, text, message):
    with pytest.raises(CompassError, match=message):
        graph(*plugins, text=text)


def test_a_failing_plugin_is_reported_at_its_line(graph, tmp_path):
    with pytest.raises(CompassError) as caught:
        graph(("K", 1, "1/0"))
    assert caught.value.span.file.endswith("aipubt_0.py")
    assert caught.value.span.line == PLUGIN.split("\n").index("        return {check}") + 1


def test_a_missing_object_is_reported(graph, tmp_path):
    (tmp_path / "vadd.o").unlink()
    with pytest.raises(CompassError, match=r"object file 'vadd.o'"):
        graph(("K", 1, True))


def test_plugins_are_found_through_the_environment(graph, tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "aipubt_more.py").write_text(PLUGIN.format(name="Far", score=9, check=True))
    monkeypatch.setenv("AIPUPLUGIN_PATH", str(folder))
    text = parse_text_blob(graph(("Near", 1, True)).text)
    assert [name for name, _ in text.entries] == ["__compass_entry_Far"]


def test_a_pattern_of_several_layers_becomes_one_launch(graph):
    pair = 'True\n    def get_graph_pattern(self):\n        t = register_optype("Twice")\n        return ([("b", t), ("a", t)], [("a", "b")])'
    content = graph(("Pair", 5, pair), ("Single", 1, True))
    assert len(content.subgraphs) == 1
    assert words(content)[2] == 2  # the alias "b" is the layer that comes last
    assert len(content.features.bss[0].reuses) == 2  # what lies between the two layers needs no memory
    assert references(content, lay.Kind.INPUT) == (0,)

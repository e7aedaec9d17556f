"""Programs for NPU and host in one file: what `compassc partition` shows and writes, and what `compass-run` does with it."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from compass_core.errors import CompassError
from compass_runtime.cli import command as compass_run
from compass_runtime.graph_program import GraphProgram
from compassc import relay
from compassc.cli.console import Console
from compassc.cli.main import cli
from compassc.pass_manager.context import PassContext
from compassc.relay.backend.build import build, partition
from compassc.relay.backend.placement_page import placement_page
from compassc.relay.builders import build as built
from compassc.relay.builders import call
from compassc.relay.module import IRModule
from compassc.relay.transform import InferType
from tests.choosing import some
from tests.relay.relay_values import evaluate

TARGET = "X2_1204"


def compassc(*words: str) -> str:
    """What a command prints to stdout."""
    return CliRunner().invoke(cli, words, obj=Console(), catch_exceptions=False).stdout


def program() -> IRModule:
    """Two regions, with the host between them, and two results."""
    x = relay.var("x", shape=(2, 4))
    first = built("tanh", built("abs", x))
    second = built("exp", built("log2", first))
    return InferType()(IRModule({"main": relay.Function([x], relay.Tuple([second, call("cast", x, dtype="int32")]))}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("package")
    (made / "net.relay").write_text(program().astext())
    words = ["partition", "net.relay", "-t", TARGET, "-o", "net.tar", "--html", "net.html"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        (made / "shown").write_text(compassc(*words))
    return made


def test_the_table_says_where_each_call_runs_and_why(folder):
    lines = (folder / "shown").read_text().splitlines()
    cells = [re.split(r"  +", line) for line in lines]
    assert cells[0] == ["call", "operator", "result", "runs on", "region, or why not", "line"]
    assert [row[:2] + row[3:] for row in cells[2:]] == [
        ["0", "abs", "NPU", "tvmgen_default_compass_main_0", "net.relay:3"],
        ["1", "tanh", "NPU", "tvmgen_default_compass_main_0", "net.relay:4"],
        ["2", "log2", "host", "there is no layer for it", "net.relay:5"],
        ["3", "exp", "NPU", "tvmgen_default_compass_main_1", "net.relay:6"],
        ["4", "cast", "host", "layers do not cast float32 to int32 as programs do", "net.relay:7"],
    ]
    again = compassc("partition", str(folder / "net.relay"), "-t", TARGET).replace(f"{folder}/", "")
    assert [line.split() for line in again.splitlines()[2:]] == [line.split() for line in lines[2:]]


def test_choices_of_the_command_are_those_of_python(folder):
    shown = compassc("partition", str(folder / "net.relay"), "-t", TARGET, "--host", "tanh", "--minimal-calls", "2")
    with PassContext(opt_level=3, config={"relay.ext.compass.options": {"host": ["tanh"], "minimal_calls": 2}}):
        rows = partition(program(), TARGET).rows
    assert [row.place for row in rows] == ["host"] * 5 and shown.count("  host  ") == 5
    with pytest.raises(CompassError, match="all of it runs on llvm"):
        partition(program(), "llvm")


def test_the_page_has_every_call_and_region(folder):
    page = (folder / "net.html").read_text()
    placement = partition(program(), TARGET)
    for row in placement.rows:
        assert f">{row.number} {row.operator}" in page and f">{row.place}<" in page
    assert page.count("<rect") >= 5  # the input, two regions, two calls on the host
    assert placement_page(placement, "net").startswith("<!doctype html>")


def test_a_package_is_run_like_an_aipu_bin(folder, monkeypatch):
    monkeypatch.chdir(folder)
    x = np.random.default_rng(2).standard_normal((3, 2, 4)).astype("float32")
    np.save("x.npy", x)
    done = CliRunner().invoke(compass_run, ["net.tar", "--inputs", "x.npy", "-o", "a.npy,b.npy"], standalone_mode=False)
    assert done.exit_code == 0 and "3 samples" in done.stdout
    wanted = [evaluate(program(), one) for one in x]
    for i, name in enumerate(("a.npy", "b.npy")):
        np.testing.assert_allclose(np.load(name), np.stack([w[i] for w in wanted]), rtol=2e-5, atol=2e-5)
    for words, why in (
        (["--inputs", "x.npy", "--profile"], "--profile: not with 'net.tar'"),
        (["--inputs", "x.npy", "--shape", "x=1x4"], "'x' cannot be set"),
        (["--inputs", "y=x.npy"], "'y'"),
    ):
        with pytest.raises(CompassError, match=re.escape(why)):
            CliRunner().invoke(compass_run, ["net.tar", *words], standalone_mode=False, catch_exceptions=False)


def test_damaged_packages_are_refused_with_the_place(folder):
    whole = (folder / "net.tar").read_bytes()
    rng = np.random.default_rng(3)
    places = [*rng.integers(0, len(whole), 60), *range(0, 1500, 50)]
    damaged = [whole[:at] + bytes([whole[at] ^ 1 << int(rng.integers(8))]) + whole[at + 1 :] for at in map(int, places)]
    damaged += [whole[: int(at)] for at in rng.integers(1, len(whole), 20)]
    for data in some(damaged):
        with pytest.raises(CompassError, match=r"at bytes? \d+|:\d+:\d+|net\.tar:\d+") as caught:
            GraphProgram.load(data, "net.tar")
        assert "net.tar" in f"{caught.value.span} {caught.value.message}"


def test_models_of_onnx_are_partitioned(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Mod", ["y", "y"], ["z"], fmod=1)]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, "n"]) for n in "xz"]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "net.onnx")
    shown = compassc("partition", str(tmp_path / "net.onnx"), "-t", TARGET, "--shape", "x=2x3")
    rows = [re.split(r"  +", line) for line in shown.splitlines()[2:]]
    assert [(row[1], row[3]) for row in rows] == [("nn.relu", "NPU"), ("mod", "host")]


def test_other_modules_have_no_graph(folder, tmp_path):
    library = build(program(), TARGET).get_lib().imported_modules[0]
    library.export_library(str(tmp_path / "kernels.tar"))
    with pytest.raises(CompassError, match="has no graph to run"):
        GraphProgram.load((tmp_path / "kernels.tar").read_bytes(), "kernels.tar")

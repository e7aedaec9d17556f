"""The commands and functions of tvmc: packages, what is read and filled, what is refused."""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from compass_core.errors import CompassError
from compass_runtime import rpc
from compass_runtime.rpc.errors import RPCError
from compassc import relay
from compassc.cli.console import Console
from compassc.cli.main import cli
from compassc.relay import tvmc
from compassc.relay.builders import build as built
from compassc.relay.builders import call
from compassc.relay.module import IRModule
from compassc.relay.transform import InferType
from tests.choosing import some
from tests.relay.relay_values import evaluate


def program() -> IRModule:
    x, y = relay.var("x", shape=(1, 6)), relay.var("y", shape=(1, 6), dtype="int8")
    total = built("exp", x) + call("cast", y, dtype="float32")
    return InferType()(IRModule({"main": relay.Function([x, y], relay.Tuple([total, built("negative", y)]))}))


def compassc(*words: str):
    done = CliRunner().invoke(cli, ["tvmc", *words], obj=Console(), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tvmc")
    (made / "net.relay").write_text(program().astext())
    shown = compassc(
        "compile", str(made / "net.relay"), "-o", str(made / "net.tar"), "--dump-code", "relay", "--dump-offloads", "-"
    )
    (made / "shown").write_text(shown)
    return made


def test_packages_have_kernels_graph_and_parameters(folder):
    with tarfile.open(folder / "net.tar") as archive:
        assert archive.getnames() == ["mod.so", "mod.json", "mod.params"]
    package = tvmc.TVMCPackage(folder / "net.tar")
    assert '"nodes"' in package.graph and package.type == "classic" and package.executor_type == "graph"
    assert "fn (" in (folder / "net.tar.relay").read_text()
    assert (
        (folder / "shown").read_text().startswith("Total number of operators and distribution by targets\nTotal: 0\n")
    )


def test_commands_and_functions_give_what_the_program_does(folder):
    x, y = np.linspace(-1, 1, 6, dtype="float32").reshape(1, 6), np.arange(6, dtype="int8").reshape(1, 6)
    np.savez(folder / "in.npz", x=x, y=y)
    shown = compassc(
        "run",
        str(folder / "net.tar"),
        "-i",
        str(folder / "in.npz"),
        "-o",
        str(folder / "out.npz"),
        "--print-time",
        "--print-top",
        "2",
    )
    wanted = evaluate(program(), x, y)
    result = tvmc.run(tvmc.TVMCPackage(folder / "net.tar"), inputs={"x": x, "y": y})
    with np.load(folder / "out.npz") as stored:
        for i, array in enumerate(wanted):
            np.testing.assert_allclose(stored[f"output_{i}"], array, rtol=1e-6)
            np.testing.assert_array_equal(result.get_output(f"output_{i}"), stored[f"output_{i}"])
    assert "mean (ms)" in shown and "[5." in shown
    top = tvmc.get_top_results(result, 2)
    assert top.shape == (2, 2) and list(top[0]) == [5, 4] and top[1][0] == wanted[0].max()


def test_inputs_that_are_not_given_are_filled(folder):
    ones = tvmc.run(tvmc.TVMCPackage(folder / "net.tar"), fill_mode="ones")
    np.testing.assert_allclose(ones.outputs["output_0"], np.full((1, 6), np.e + 1), rtol=1e-6)
    assert ones.times is None and ones.format_times() == ""
    for dtype, low, high in (("int8", 0, 127), ("uint8", 0, 127), ("float32", -1, 1)):
        made = tvmc.generate_tensor_data((100, 3), dtype, "random")
        assert made.dtype == dtype and low <= made.min() < made.max() <= high and made.shape == (100, 3)
    assert not tvmc.generate_tensor_data((2,), "int32", "zeros").any()


def test_shapes_are_read():
    found = tvmc.parse_shape_string("a:[1,3,-1] b/c:0:[10], d:[2, 2]")
    assert {name: [n if isinstance(n, int) else "?" for n in shape] for name, shape in found.items()} == {
        "a": [1, 3, "?"],
        "b/c:0": [10],
        "d": [2, 2],
    }
    for text in some(["a", "a:1,2", "a:[x]", "a:[1] b", ""]):
        with pytest.raises(argparse.ArgumentTypeError, match="not understood"):
            tvmc.parse_shape_string(text)


def convolution() -> tuple[IRModule, dict[str, np.ndarray]]:
    """A program with work for an NPU and for its host, and an input."""
    rng = np.random.default_rng(0)
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.const(rng.standard_normal((4, 3, 3, 3)).astype("float32"))
    body = built("log2", built("exp", built("nn.conv2d", x, w)))
    given = {"x": rng.standard_normal((1, 3, 8, 8)).astype("float32")}
    return InferType()(IRModule({"main": relay.Function([x], body)})), given


def test_layouts_and_targets(folder, tmp_path):
    module, given = convolution()
    for target, layout in (("X2_1204, llvm", ()), ("llvm", ("NHWC:HWIO",))):
        path = str(tmp_path / "net.tar")
        package = tvmc.compile(tvmc.TVMCModel(module), target, package_path=path, desired_layout=layout)
        assert ("layout_transform" in package.graph) == bool(layout) and ("compass" in package.graph) != bool(layout)
        result = tvmc.run(package, inputs=given, benchmark=True, repeat=2, number=1)
        np.testing.assert_allclose(result.outputs["output_0"], evaluate(module, given["x"])[0], rtol=2e-4, atol=2e-4)
        assert result.times is not None and len(result.times.results) == 2


def weighted(folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """A file of a model with one product, an input and the output."""
    x, w = relay.var("x", shape=(4, 16)), relay.const(np.arange(512, dtype="float32").reshape(32, 16) / 512)
    model = folder / "weighted.relay"
    model.write_text(InferType()(IRModule.from_expr(relay.Function([x], built("nn.dense", x, w)))).astext())
    given = np.ones((4, 16), "float32")
    return model, given, given @ w.array.T


@pytest.mark.parametrize("search", [(), ("--enable-autoscheduler", "--number", "1")], ids=["autotvm", "auto_scheduler"])
def test_records_of_hosts_are_searched_and_taken(tmp_path, search, caplog):
    model, given, wanted = weighted(tmp_path)
    records = str(tmp_path / "net.log")
    shown = compassc("tune", str(model), "-o", records, "--tasks", "list", *search)
    assert shown.startswith("Available Tasks for tuning:\n  0. ") and "dense" in shown
    assert not Path(records).exists()
    compassc("tune", str(model), "-o", records, "--trials", "2", "--timeout", "100", *search)
    lines = list(map(json.loads, Path(records).read_text().splitlines()))
    tasks = {tuple(line["i"][0][:2]) if search else tuple(line["input"][1::-1]) for line in lines}
    ((task, target),) = tasks
    assert target == "llvm -keys=cpu" and len(lines) == 2 and ("dense" in task) != bool(search)
    compassc("compile", str(model), "-o", str(tmp_path / "tuned.tar"), "--tuning-records", records)
    assert not caplog.records, "the kernel is on record"
    result = tvmc.run(tvmc.TVMCPackage(tmp_path / "tuned.tar"), inputs={"x": given})
    np.testing.assert_allclose(result.outputs["output_0"], wanted, rtol=1e-5)


def test_kernels_are_measured_one_by_one(tmp_path):
    model, given, wanted = weighted(tmp_path)
    compassc("compile", str(model), "-o", str(tmp_path / "net.tar"))
    assert "fused_nn_" in compassc("run", str(tmp_path / "net.tar"), "--profile")
    result = tvmc.run(tvmc.TVMCPackage(tmp_path / "net.tar"), inputs={"x": given}, profile=True)
    np.testing.assert_allclose(result.outputs["output_0"], wanted, rtol=1e-5)
    assert result.report is not None and len(result.report.calls) >= 1


def tokens(folder: Path, rights: str) -> Path:
    """A file with one token of these rights."""
    made = folder / f"tokens{rights}"
    made.write_text(f"{'d' * 40} {rights}\n")
    made.chmod(0o600)
    return made


def test_servers_run_packages_as_this_machine_does(tmp_path, monkeypatch):
    module, given = convolution()
    np.savez(tmp_path / "in.npz", **given)
    able, unable = tokens(tmp_path, "llvm"), tokens(tmp_path, "")
    monkeypatch.setenv("COMPASS_RPC_TOKENS", str(able))
    path, out = str(tmp_path / "net.tar"), tmp_path / "out.npz"
    with (
        rpc.Tracker(silent=True, token_file=able) as tracker,
        rpc.Server(tracker_addr=(tracker.host, tracker.port), key="board", silent=True, token_file=able),
        rpc.Server(silent=True, token_file=able) as server,
    ):
        ways = [
            ("--rpc-tracker", f"{peer.host}:{peer.port}", *key)
            for peer, key in ((tracker, ("--rpc-key", "board")), (server, ()))
        ]
        for target in ("llvm", "X2_1204, llvm"):
            package = tvmc.compile(tvmc.TVMCModel(module), target, package_path=path)
            here = tvmc.run(package, inputs=given)
            for way in ways:
                compassc("run", path, "-i", str(tmp_path / "in.npz"), "-o", str(out), *way)
                with np.load(out) as stored:
                    np.testing.assert_array_equal(stored["output_0"], here.outputs["output_0"])
    monkeypatch.setenv("COMPASS_RPC_TOKENS", str(unable))
    with rpc.Server(silent=True, token_file=unable) as server, pytest.raises(RPCError, match="HostLibrary") as caught:
        tvmc.run(package, "cpu", server.host, server.port)
    assert "'llvm'" in caught.value.help


def test_what_cannot_be_used_is_refused(folder, tmp_path):
    package = folder / "net.tar"
    cases = {
        ("run", str(tmp_path / "none.tar")): "doesn't exist",
        ("run", str(tmp_path)): "is a directory",
        ("run", str(folder / "net.relay")): "no archive that can be read",
        ("run", str(package), "--device", "gpu"): "no device gpu",
        ("compile", str(tmp_path / "none.onnx")): "doesn't exist, is a broken symbolic link, or a directory",
        ("compile", str(folder / "net.relay"), "--model-format", "onnx"): "not called as files of the format onnx",
        ("run", str(package), "--rpc-key", "board"): "and no tracker",
        ("run", str(package), "--rpc-tracker", "127.0.0.1", "--print-time"): "no times are measured on servers",
        ("run", str(package), "--rpc-tracker", "127.0.0.1", "--profile"): "no times are measured on servers",
        ("compile", str(folder / "net.relay"), "--output-format", "mlf"): r"no model libraries \(mlf\) are written",
        ("compile", str(folder / "net.relay"), "-f", "zip"): "no package of the format zip",
        ("compile", str(folder / "net.relay"), "--cross-compiler", "gcc"): "no compiler is called for packages",
        ("compile", str(folder / "net.relay"), "--cross-compiler-options", "-O2"): "no compiler is called for packages",
        ("compile", str(folder / "net.relay"), "--dump-code", "asm"): "no text of the kind asm",
        ("compile", str(folder / "net.relay"), "--target", "llvm, llvm, c"): "3 targets are given",
        ("compile", str(folder / "net.relay"), "--tuning-records", str(folder / "net.relay")): "holds no records",
        ("tune", str(folder / "net.relay"), "-o", str(tmp_path / "r")): "leaves anything to be chosen",
        (
            "tune",
            str(folder / "net.relay"),
            "--target",
            "X2_1204",
            "--tuner",
            "ga",
            "-o",
            str(tmp_path / "r"),
        ): "is an NPU",
        ("tune", str(folder / "net.relay"), "--target", "cuda", "-o", str(tmp_path / "r")): "have no tasks",
        ("tune", str(folder / "net.relay"), "--parallel", "2", "-o", str(tmp_path / "r")): "one by one",
    }
    for words, why in cases.items():
        with pytest.raises(CompassError, match=why) as caught:
            compassc(*words)
        assert caught.value.exit_code == 4
    with pytest.raises(CompassError, match="no input 'z'"):
        tvmc.run(tvmc.TVMCPackage(package), inputs={"z": np.zeros(1)})
    with tarfile.open(package) as archive, tarfile.open(tmp_path / "less.tar", "w") as less:
        for name in ("mod.so", "mod.json"):
            content = archive.extractfile(name).read()
            info = tarfile.TarInfo(name)
            info.size = len(content)
            less.addfile(info, io.BytesIO(content))
    with pytest.raises(CompassError, match=r"has no mod\.params"):
        tvmc.TVMCPackage(tmp_path / "less.tar")

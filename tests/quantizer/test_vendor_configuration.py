"""The vendor's configuration files: what their fields become, what is told about them, and a whole build."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("onnx")
import onnx

from compass_core.errors import CompassError
from compassc.cli import aipubuild
from compassc.cli.console import Console
from compassc.graph import Graph, GraphBuilder, files, verify
from compassc.quantizer import vendor, vendor_fields
from tests.importers import networks


def graph() -> Graph:
    g = GraphBuilder("net")
    x = g.input("x", (1, 8), "float32")
    for i, method in enumerate(("SIGMOID", "TANH", "SIGMOID", "GELU"), 1):
        (x,) = g.layer("Activation", [x], name=f"act{i}", outputs=[((1, 8), "float32")], attributes={"method": method})
    return g.finish([x])


def config(tmp_path: Path, *lines: str, section: str = "Optimizer") -> vendor.Config:
    path = tmp_path / "net.cfg"
    path.write_text("\n".join(("[Common]", "mode = build", f"[{section}]", *lines)))
    return vendor.read(path)


def test_values_of_single_layers_go_by_number_then_type_then_name(tmp_path):
    given = config(
        tmp_path,
        "activation_bits = 8 & <[(2,2)]:12> <[SIGMOID, Softmax]:16> <{act[14]}:10>",
        "calibration_strategy_for_activation = mean & <[Activation]:extrema>",
        "# a comment = 3",
        "lut_items_in_bits = ",
    )
    settings = vendor.settings_of(given, graph())
    bits = {layer.name: settings.of(layer).activation_bits for layer in graph().layers}
    assert bits == {"x": 8, "act1": 16, "act2": 12, "act3": 16, "act4": 10}
    assert settings.of(graph().layers[0]).activation_strategy == "mean"
    assert settings.of(graph().layers[1]).activation_strategy == "extrema"
    assert not given.warnings


def test_defaults_are_the_vendors(tmp_path):
    settings = vendor.settings_of(config(tmp_path), graph())
    assert settings.common.activation_strategy == "mean"
    assert not settings.common.per_channel
    assert settings.common.bias_effective_bits == 0
    assert settings.unify == 1.0
    near = vendor.settings_of(config(tmp_path, "unify_scales_for_concat = true"), graph())
    assert near.unify == 1.05
    old = vendor.settings_of(config(tmp_path, "min_compatible_zhouyi_target = X1"), graph())
    assert old.common.bias_effective_bits == 16


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("activation_bits = 7", "from 8 to 16"),
        ("activation_bits = 8 & [(1,2)]:16", "expected VALUE &"),
        ("quantize_method_for_weight = per_block_asymmetric", "per_tensor_ or per_channel_"),
        ("calibration_strategy_for_weight = median", "a strategy"),
        ("trigger_float_op = float8", "float16_preferred"),
        ("global_calibration = easy_quant", "not supported"),
        ("modify_batch_dim = 4", "not supported"),
        ("force_dtype_int = true", "not supported"),
        ("running_statistic_momentum = much", "no number"),
    ],
)
def test_wrong_values_are_named_with_their_line(tmp_path, line, words):
    with pytest.raises(CompassError) as raised:
        vendor.settings_of(config(tmp_path, "weight_bits = 8", line), graph())
    assert words in str(raised.value)
    assert raised.value.span.line == 5
    assert raised.value.code == "vendor-config"


def test_all_wrong_fields_are_named_at_once(tmp_path):
    with pytest.raises(CompassError) as raised:
        vendor.settings_of(config(tmp_path, "weight_bits = 99", "bias_bits = no", "enable_ds = true"), graph())
    assert all(key in str(raised.value) for key in ("weight_bits", "bias_bits", "enable_ds"))


def test_unknown_keys_and_what_has_no_effect_are_warnings(tmp_path):
    given = config(tmp_path, "weigth_bits = 8", "metric = topkmetric(5)", "dump = false")
    vendor.settings_of(given, graph())
    assert "did you mean 'weight_bits'" in given.warnings[0]
    assert any("'metric' has no effect" in w for w in given.warnings)
    assert not any("dump" in w for w in given.warnings)


def test_no_field_is_known_twice():
    lists = (vendor_fields.PER_LAYER, vendor_fields.TAKEN, vendor_fields.WITHOUT_EFFECT, vendor_fields.REFUSED)
    names = [name for listed in lists for name in listed]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("text", ["no section", "[Common]\nmode", "[Common]\nmode=build\nmode=run\n"])
def test_damaged_files_are_errors_with_a_line(tmp_path, text):
    path = tmp_path / "net.cfg"
    path.write_text(text)
    with pytest.raises(CompassError) as raised:
        vendor.read(path)
    assert raised.value.span.line >= 1


CFG = """\
[Common]
mode = {mode}
[Parser]
model_type = onnx
model_name = net
input_model = net.onnx
input = x
input_shape = [1,3,16,16]
output_dir = ir
[Optimizer]
dataset = {dataset}
calibration_data = cal.npy
output_dir = opt
quantize_method_for_activation = per_tensor_asymmetric
calibration_strategy_for_activation = mean & <[Softmax]:extrema>
trigger_float_op = disable & <[Softmax]:float16_preferred!>
[GBuilder]
target = X2_1204
inputs = input.bin
outputs = {outputs}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(networks.depthwise(), "net.onnx")
    np.save("cal.npy", np.random.default_rng(0).standard_normal((8, 3, 16, 16)).astype(np.float32))
    return tmp_path


def call(text: str):
    Path("net.cfg").write_text(text)
    return CliRunner().invoke(aipubuild.command, ["net.cfg"], obj=Console(), catch_exceptions=True)


def test_a_model_is_built_and_run(folder):
    result = call(CFG.format(mode="build", dataset="numpydataset", outputs="net.bin"))
    assert result.exit_code == 0, result.output
    made = files.load(folder / "opt" / "net_o.txt")
    verify.check(made, verify.Stage.QUANTISED)
    assert made.outputs[0].dtype == "float16"
    assert (folder / "ir" / "net.txt").exists()
    assert (folder / "net.bin").exists()
    given = made.inputs[0]
    np.zeros(given.shape, given.dtype).tofile("input.bin")
    result = call(CFG.format(mode="run", dataset="numpydataset", outputs="result.bin"))
    assert result.exit_code == 0, result.output
    scores = np.fromfile("result.bin", np.float16)
    assert scores.size == made.outputs[0].count
    assert abs(float(scores.astype(np.float32).sum()) - 1) < 0.01


def test_nothing_is_written_for_data_that_do_not_fit(folder):
    result = call(CFG.format(mode="build", dataset="numpynhwc2nchwdataset", outputs="net.bin"))
    assert isinstance(result.exception, CompassError)
    assert "[8, 16, 3, 16]" in str(result.exception)
    assert not list((folder / "opt").iterdir())
    assert not (folder / "net.bin").exists()


@pytest.mark.parametrize("wrong", ["1,3,16,x", "1,3,,16", f"1,3,16,{'9' * 5000}", "1,3,16,²", "1 3 16 16"])
def test_shapes_that_are_none_are_told(folder, wrong):
    text = CFG.format(mode="build", dataset="numpydataset", outputs="net.bin").replace("1,3,16,16", wrong)
    error = call(text).exception
    assert isinstance(error, CompassError) and "is no shape" in error.message and error.span.line == 8

"""Data, settings and graphs that cannot be quantised: errors that name what is wrong, and nothing written."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from compass_core.errors import CompassError, UsageError
from compassc.cli.commands import quantize as quantize_command
from compassc.cli.console import Console
from compassc.graph import Graph, GraphBuilder, files, verify
from compassc.quantizer import Calibration, Settings, calibrate, quantize, quantize_model
from compassc.quantizer.data import Pictures, load
from compassc.quantizer.execute import run


def dense(scale: float = 1.0, biases: float = 0.0, activation: str = "NONE") -> Graph:
    g = GraphBuilder("net")
    x = g.input("x", (1, 4), "float32")
    constants = {"weights": np.eye(4, dtype=np.float32) * np.float32(scale), "biases": np.full(4, biases, np.float32)}
    (y,) = g.layer("FullyConnected", [x], name="head", outputs=[((1, 4), "float32")],
                   attributes={"num_output": 4, "with_activation": activation}, constants=constants)  # fmt: skip
    return g.finish([y])


def image() -> Graph:
    g = GraphBuilder("net")
    x = g.input("picture", (1, 3, 4, 6), "float32")
    (y,) = g.layer(
        "Transpose", [x], name="moved", outputs=[((1, 4, 6, 3), "float32")], attributes={"perm": [0, 2, 3, 1]}
    )
    return g.finish([y])


def two_inputs() -> Graph:
    g = GraphBuilder("net")
    a, b = g.input("a", (1, 4), "float32"), g.input("b", (1, 4), "float32")
    (y,) = g.layer("Eltwise", [a, b], name="sum", outputs=[((1, 4), "float32")], attributes={"method": "ADD"})
    return g.finish([y])


ONES = np.ones((3, 4), np.float32)
RANGE = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_data_that_are_no_numbers_are_an_error_about_the_input(wrong):
    data = RANGE.copy()
    data[1, 2] = wrong
    with pytest.raises(CompassError, match="the calibration data hold"):
        calibrate(dense(), [{"x": row[None]} for row in data])


def test_a_layer_that_makes_infinite_values_is_named():
    with pytest.raises(CompassError, match="the layer 'head' makes infinite values"):
        quantize_model(dense(3e38), RANGE * 10)


def test_constant_data_are_a_warning():
    with pytest.warns(UserWarning, match="'x' is 1.0 everywhere"):
        quantize_model(dense(), ONES)


def test_data_of_zeros_give_a_graph_of_zeros():
    with pytest.warns(UserWarning, match=r"'x' is 0.0 everywhere"):
        made = quantize_model(dense(), np.zeros((2, 4), np.float32))
    verify.check(made.graph, verify.Stage.QUANTISED)


@pytest.mark.parametrize(
    ("graph", "data", "words"),
    [
        (dense(), np.ones((3, 5), np.float32), r"has the shape \[3, 5\] for 'x'"),
        (dense(), np.zeros((0, 4), np.float32), "no calibration samples"),
        (dense(), np.array([["a"] * 4]), "expected numbers"),
        (two_inputs(), {"a": ONES, "c": ONES}, "'c', which no input"),
        (two_inputs(), {"a": ONES}, "nothing for 'b'"),
        (two_inputs(), {"a": ONES, "b": ONES[:2]}, "samples of its inputs"),
        (two_inputs(), [(ONES[0], ONES[0], ONES[0])], "3 inputs, the graph 2"),
        (dense(), 5, "cannot be int"),
        (dense(), "missing.npy", "does not exist"),
        (dense(), [], "no calibration samples"),
    ],
)
def test_data_that_do_not_fit_are_told(graph, data, words):
    with pytest.raises(CompassError, match=words):
        load(data, graph)


def test_files_that_hold_no_arrays_are_told(tmp_path):
    for content in (b"", b"no array", b"\x93NUMPY\x01\x00"):
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(CompassError, match="no file of arrays|is not a .npy file"):
            load(tmp_path / "x.npy", dense())


def test_samples_come_from_every_source(tmp_path):
    np.save(tmp_path / "x.npy", RANGE)
    np.savez(tmp_path / "x.npz", x=RANGE)
    (tmp_path / "data.py").write_text(
        "import numpy as np\n"
        "class Samples:\n"
        "    def __len__(self): return 3\n"
        "    def __getitem__(self, i): return np.linspace(-1, 1, 12, dtype='float32').reshape(3, 4)[i], i\n"
    )
    want = [row[None] for row in RANGE]
    for source in (
        tmp_path / "x.npy",
        tmp_path / "x.npz",
        f"{tmp_path}/data.py:Samples",
        RANGE,
        {"x": RANGE},
        list(RANGE),
    ):
        got = load(source, dense())
        assert len(got) == 3
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a["x"], b)
    assert len(load(RANGE, dense(), limit=2)) == 2


def test_faults_of_programs_are_told(tmp_path):
    (tmp_path / "data.py").write_text("def broken(): raise RuntimeError('no disk')\n")
    with pytest.raises(CompassError, match="RuntimeError: no disk"):
        load(f"{tmp_path}/data.py:broken", dense())
    with pytest.raises(CompassError, match="has no 'brokn'"):
        load(f"{tmp_path}/data.py:brokn", dense())


def test_pictures_become_inputs(tmp_path):
    from PIL import Image

    pixels = np.zeros((8, 12, 3), np.uint8)
    pixels[..., 0] = 255
    Image.fromarray(pixels).save(tmp_path / "red.png")
    made = load(tmp_path, image(), Pictures(mean=(127.5,), std=(127.5, 1.0, 1.0)))
    array = made[0]["picture"]
    assert array.shape == (1, 3, 4, 6)
    np.testing.assert_allclose(array[0, :, 0, 0], [1.0, -127.5, -127.5])
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(CompassError, match=r"bad.png' is no image"):
        list(load(tmp_path, image()))
    with pytest.raises(CompassError, match="2 numbers as mean of 3 channels"):
        load(tmp_path, image(), Pictures(mean=(1.0, 2.0)))
    with pytest.raises(CompassError, match="no images"):
        (tmp_path / "empty").mkdir()
        load(tmp_path / "empty", image())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"activation_bits": 4}, "from 8 to 16"),
        ({"activation_mode": "even"}, "symmetric_full_range"),
        ({"activation_strategy": "medain"}, "a strategy"),
        ({"actvation_bits": 8}, "did you mean 'activation_bits'"),
        ({"per_channel": 3}, "true or false"),
        ({"float": "float8"}, "float16"),
        ({"fallback": "int8"}, "float16"),
    ],
)
def test_settings_that_do_not_exist_are_told(given, words):
    with pytest.raises(UsageError) as raised:
        Settings().changed(**given)
    assert words in str(raised.value) + raised.value.help


def test_settings_of_layers_that_do_not_exist_are_told():
    settings = Settings().overridden({"haed": {"activation_bits": 16}})
    with pytest.raises(CompassError, match="'haed'"):
        quantize_model(dense(), RANGE, settings)
    with pytest.raises(CompassError, match="'type:FullyConected'"):
        quantize_model(dense(), RANGE, Settings().overridden({"type:FullyConected": {"activation_bits": 16}}))


def test_settings_are_read_from_yaml(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        'base: w8a16\nactivation_strategy: mse\nlayers:\n  "head": {bits: 8}\n  "type:Input": {float: float16}\n'
    )
    settings = Settings.read(path)
    layers = {layer.name: layer for layer in dense().layers}
    assert settings.of(layers["head"]).activation_bits == 8
    assert settings.of(layers["x"]).float == "float16"
    assert settings.common.activation_bits == 16
    assert settings.common.activation_strategy == "mse"
    path.write_text("layers: [1]")
    with pytest.raises(UsageError, match="no mapping of mappings"):
        Settings.read(path)


def test_scales_that_overflow_leave_a_layer_a_float():
    # the output's scale over the scales of input and weights is no number that a multiplier and a shift hold
    made = quantize_model(dense(1e30), RANGE * np.float32(1e-20), Settings().changed(per_channel=False))
    verify.check(made.graph, verify.Stage.QUANTISED)
    assert "beyond what kernels compute" in (made.floats["head"] or "")


def test_statistics_of_another_graph_are_told():
    calibration = calibrate(dense(), [{"x": row[None]} for row in RANGE])
    with pytest.raises(CompassError, match=r"there are no statistics of 'a'"):
        quantize(two_inputs(), calibration)


def test_integers_need_data():
    with pytest.raises(CompassError, match="integers need calibration data"):
        quantize_model(dense())
    verify.check(quantize_model(dense(), None, "fp16").graph, verify.Stage.QUANTISED)


def test_the_command_writes_both_files_or_none(tmp_path):
    files.save(dense(), tmp_path / "net.txt")
    np.save(tmp_path / "good.npy", RANGE)
    np.save(tmp_path / "bad.npy", RANGE * np.nan)
    runner, out = CliRunner(), tmp_path / "quant.txt"

    def run(*words: str):
        return runner.invoke(
            quantize_command.command, [str(tmp_path / "net.txt"), *words, "-o", str(out)], obj=Console()
        )

    failed = run("--calibrate", str(tmp_path / "bad.npy"))
    assert isinstance(failed.exception, CompassError)
    assert not out.exists()
    assert not out.with_suffix(".bin").exists()
    statistics = tmp_path / "s.npz"
    assert run("--calibrate", str(tmp_path / "good.npy"), "--save-statistics", str(statistics)).exit_code == 0
    first = files.load(out)
    assert run("--statistics", str(statistics)).exit_code == 0
    assert files.load(out) == first
    assert Calibration.load(statistics).samples == 3
    with pytest.raises(CompassError, match="holds no statistics"):
        Calibration.load(tmp_path / "good.npy")


@pytest.mark.parametrize(
    ("option", "text"),
    [("--size", text) for text in ("", "0", "x", "8x", "8x8x8", "²", "9" * 5000)]
    + [("--std", text) for text in ("", "nan", "1,inf", "1,,2", "x")],
)
def test_sizes_and_numbers_that_are_none_are_told(option, text, tmp_path):
    result = CliRunner().invoke(quantize_command.command, ["net.txt", option, text], obj=Console())
    assert result.exit_code == 2 and "is no" in result.output


PROGRAM = """
class Item:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return 1 / (index - index)


class Walk:
    def __iter__(self):
        raise RuntimeError("no data")


def made():
    return [1][5]
"""


@pytest.mark.parametrize(("name", "line"), [("Item", 7), ("Walk", 12), ("made", 16)])
def test_what_a_data_set_raises_is_told_at_its_line(name, line, tmp_path):
    file = tmp_path / "data.py"
    file.write_text(PROGRAM)
    with pytest.raises(CompassError, match=f"the data set '{name}' fails") as caught:
        list(load(f"{file}:{name}", dense()))
    assert caught.value.span is not None and (caught.value.span.file, caught.value.span.line) == (str(file), line)


def test_a_program_that_cannot_be_read_is_told_at_its_line(tmp_path):
    file = tmp_path / "data.py"
    file.write_text("x = 1\ny = (\n")
    with pytest.raises(CompassError, match="SyntaxError") as caught:
        load(f"{file}:x", dense())
    assert caught.value.span is not None and caught.value.span.line == 2


def test_a_file_that_holds_no_arrays_is_told_without_numpys_advice(tmp_path):
    file = tmp_path / "samples.npz"
    file.write_text("not arrays")
    with pytest.raises(CompassError, match="is no file of arrays"):
        load(file, dense())
    np.savez(file, x=np.zeros((3, 2)))
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(CompassError, match="is not a .npz file"):
        load(file, dense())


@pytest.mark.parametrize("name", ["labels", "y", "weights"])
def test_arrays_of_other_names_are_no_samples(tmp_path, name):
    np.savez(tmp_path / "x.npz", **{name: RANGE})
    with pytest.raises(CompassError, match=f"'{name}', which no input of the graph is called|nothing for 'x'"):
        load(tmp_path / "x.npz", dense())


def test_arrays_without_names_are_taken_in_order(tmp_path):
    np.savez(tmp_path / "x.npz", RANGE)
    assert len(load(tmp_path / "x.npz", dense())) == 3


WRONG_SETTINGS = ("momentum: x", "momentum: [1]", "unify: {}", "fallback: []", "1: 2", "layers: {1: {}}", "- a", "a: *b",
                  "layers: {a: {2: 3}}", "base: [", "bits: " + "9" * 5000, "[" * 5000, "base: 2020-99-99", "equalise: 1",
                  "a: &b [1]\nc: *b", "? [a]\n: b", "\0", "layers: {type:Softmax: {float: [x]}}")  # fmt: skip


@pytest.mark.parametrize("text", WRONG_SETTINGS)
def test_wrong_settings_files_are_told(tmp_path, text):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(CompassError) as caught:
        Settings.read(path)
    assert "settings.yaml" in str(caught.value)


@pytest.mark.parametrize("strategy", ["0extrema", "0std", "0.0percentile"])
def test_ranges_of_nothing_are_refused(strategy):
    with pytest.raises(CompassError, match="above 0"):
        Settings.preset("int8").overridden({"head": {"activation_strategy": strategy}})


def test_an_input_whose_values_no_scale_tells_apart_is_a_warning():
    tiny = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 1, 4) * np.float32(1e-38)
    with pytest.warns(UserWarning, match="which no scale tells apart"):
        quantize_model(dense(), tiny, "int8")


def test_infinite_values_of_an_evaluation_say_nothing_of_numpy(recwarn):
    made, inputs = dense(), np.array([[np.inf, -np.inf, 1, 2]], np.float32)
    run(made, {"x": inputs}, lambda *seen: None)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]

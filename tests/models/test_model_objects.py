"""Models in Python: real numbers in and out, samples along a first axis, and the same results as the command line's."""

import subprocess
import sys
import traceback

import numpy as np
import onnx
import pytest

import compassc
from compass_core.errors import CompassError, UsageError
from compassc.graph import GraphBuilder
from compassc.graph.run import run_graph


def test_importing_the_package_loads_nothing_of_models():
    code = "import sys, compassc; found = {m for m in sys.modules if m.startswith(('compassc.', 'numpy'))}\n"
    code += "assert found == {'compassc.services'}, found; compassc.compile"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'compil'"):
        compassc.compil  # noqa: B018


def test_what_users_name_is_found_in_the_package():
    code = (
        "import compassc; compassc.evaluation.evaluate, compassc.quantizer.Settings; assert 'compile' in dir(compassc)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert compassc.CompassError is CompassError
    assert [n for n in compassc.__all__ if not hasattr(compassc, n)] == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python shows notes of errors since 3.11")
def test_an_error_that_is_not_caught_shows_its_help(tmp_path):
    (tmp_path / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n")
    with pytest.raises(CompassError) as caught:
        compassc.compile(tmp_path / "model.onnx")
    shown = "".join(traceback.format_exception(caught.value))
    assert "it holds a pointer of Git LFS" in shown and "git lfs pull" in shown


def test_a_model_gives_what_the_framework_gives(model, lenet):
    x, y = np.load(lenet / "x0.npy"), np.load(lenet / "y0.npy")
    assert np.allclose(model(x), y, atol=1e-6)
    assert np.array_equal(model(x=x), model(x)) and np.array_equal(model(x_0=x), model(x))
    assert (model.target, model.inputs[0].shape) == ("X2_1204", (1, 1, 28, 28))
    assert {"Convolution", "FullyConnected"} <= {layer.type for layer in model.layers}


def test_samples_lie_along_the_first_axis(model, lenet):
    x = np.load(lenet / "x0.npy")
    many = model(np.concatenate([x, -x, x]))
    assert many.shape == (3, 10)
    assert np.array_equal(many[1:2], model(-x)) and np.array_equal(many[2], many[0])
    assert np.array_equal(model(np.stack([x, -x])), many[:2])


def test_a_quantised_model_takes_and_gives_real_numbers_or_integers(integers, lenet):
    x, y = np.load(lenet / "x0.npy"), np.load(lenet / "y0.npy")
    (tensor,), (output,) = integers.inputs, integers.outputs
    raw = np.clip(np.rint(x * tensor.scale), -128, 127).astype("int8")
    made = integers(raw, raw=True)
    assert made.dtype == np.int8 and np.array_equal(made, run_graph(integers.graph, {tensor.name: raw})[output.name])
    assert np.array_equal(integers(x), np.float32(made) * np.float32(1 / np.float32(output.scale)))
    assert np.allclose(integers(x), y, atol=0.01) and not np.allclose(integers(x), y, atol=1e-5)


def test_tensors_and_profiles_are_those_of_the_launches(integers, lenet):
    x = np.load(lenet / "x0.npy")
    seen, names = integers.tensors(x), integers.graph.tensors()
    assert set(seen) <= set(names) and len(seen) > 5
    assert np.array_equal(seen[integers.outputs[0].name], integers(x))
    profile = integers.profile()
    assert profile.cycles > 1000 and len(profile.layers) == len(integers.program.note.launches)


def test_models_come_from_files_objects_and_graphs(model, lenet, tmp_path):
    x = np.load(lenet / "x0.npy")
    for source in (str(lenet / "model.onnx"), onnx.load(lenet / "model.onnx"), model.graph):
        again = compassc.compile(source, "X2_1204", folder=tmp_path / "built")
        assert np.array_equal(again(x), model(x))
        assert (tmp_path / "built" / "build.yaml").is_file()
    with pytest.raises(UsageError, match="builtins.dict is no model"):
        compassc.compile({})


def test_export_writes_the_file_or_everything(model, tmp_path):
    assert model.export(tmp_path / "net.bin").read_bytes() == model.path.read_bytes()
    folder = model.export(str(tmp_path / "net"))
    assert {"aipu.bin", "float.txt", "float.bin", "opt.txt", "opt.bin", "launches.txt", "build.yaml"} == {
        f.name for f in folder.iterdir()
    }
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        model.export(tmp_path / "taken")


def test_several_inputs_are_told_apart():
    g = GraphBuilder("sum")
    a, b = g.input("a_0", (2, 3), "float32"), g.input("b_0", (2, 3), "float32")
    (top,) = g.layer("Eltwise", [a, b], name="sum", outputs=[(a.shape, a.dtype)], attributes={"method": "SUB"})
    made = compassc.compile(g.finish([top]))
    x, y = np.ones((2, 3), "float32"), np.arange(6, dtype="float32").reshape(2, 3)
    assert np.array_equal(made(x, y), x - y) and np.array_equal(made(b=y, a_0=x), x - y)
    assert made(np.stack([x, y]), y).shape == (2, 2, 3)
    for given, message in (
        (([x],), "takes 2 inputs"),
        (([x, y[:1]],), "'b' is 2x3, but the array is 1x3"),
        (([np.stack([x] * 3), np.stack([x] * 2)],), "different numbers of samples"),
    ):
        with pytest.raises(CompassError, match=message):
            made(*given[0])
    with pytest.raises(CompassError, match="input 'b' is missing"):
        made(a=x)
    with pytest.raises(CompassError, match="no input 'c'"):
        made(a=x, b=y, c=y)


@pytest.mark.parametrize(
    "given", [np.ones((2, 3), complex), np.zeros((2, 3), "M8[s]"), [["1"] * 3] * 2, {1}, [[1], [1, 2]]]
)
def test_what_are_no_real_numbers_is_refused(given):
    g = GraphBuilder("net")
    x = g.input("x", (2, 3), "float32")
    (top,) = g.layer("Negative", [x], name="less", outputs=[(x.shape, x.dtype)])
    made = compassc.compile(g.finish([top]))
    for call in (lambda: made(given), lambda: made(x=given), lambda: made(given, raw=True)):
        with pytest.raises(CompassError, match="input 'x' (has|makes)") as caught:
            call()
        assert caught.value.code == "tensor-dtype"


def test_a_program_of_torch_is_compiled_by_its_importer(model, monkeypatch):
    from compassc.importers import torch as importer

    class ExportedProgram:
        """As torch.export names it; the importer itself is tried where torch is installed."""

    program, asked = ExportedProgram(), []

    def import_program(given, shapes=None):
        asked.append((given, dict(shapes or {})))
        return model.graph

    monkeypatch.setattr(importer, "import_program", import_program)
    made = compassc.compile(program, "X2_1204", shapes={"x": (1, 1, 28, 28)})
    assert asked == [(program, {"x": (1, 1, 28, 28)})] and made.source is program
    x = np.zeros((1, 1, 28, 28), np.float32)
    assert np.array_equal(made(x), model(x))


def test_any_number_of_samples_gives_as_many_outputs(model, integers, lenet):
    x = np.load(lenet / "x0.npy")
    for made in (model, integers):
        none, one = made(x[:0]), made(x)
        assert (none.shape, none.dtype) == ((0, *one.shape[1:]), one.dtype)
        with pytest.raises(CompassError, match="have 0 samples, but one is looked at"):
            made.tensors(x[:0])
        with pytest.raises(CompassError, match="have 2 samples, but one is looked at"):
            made.profile(np.concatenate([x, x]))
    assert integers(x[:0].astype("int8"), raw=True).dtype == np.int8


def test_integers_stand_for_no_nan_and_for_nothing_beyond_their_type(integers, lenet):
    x = np.load(lenet / "x0.npy")
    holed = x.copy()
    holed[0, 0, 3, 3:5] = np.nan
    with pytest.raises(CompassError, match="'x' has 2 NaN, which no int8 stands for"):
        integers(holed)
    with pytest.warns(UserWarning, match="'x' has 2 NaN"):
        assert np.array_equal(integers(holed, nan="warn"), integers(np.nan_to_num(holed)))
    with pytest.raises(UsageError, match="one of refuse, warn"):
        integers(x, nan="keep")
    g = GraphBuilder("whole")
    (top,) = g.layer("Abs", [g.input("n_0", (4,), "int32")], name="abs", outputs=[((4,), "int32")])
    made = compassc.compile(g.finish([top]))
    assert made(np.array([-5, 0, 1, 2], "int64")).tolist() == [5, 0, 1, 2]
    with pytest.raises(CompassError, match="'n' has 4294967297, which does not fit int32"):
        made(np.array([1, 2, 3, 2**32 + 1], "int64"))

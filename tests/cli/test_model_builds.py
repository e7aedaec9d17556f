"""A model built in one command, or stage by stage, gives the same files; each stage starts from the file before it."""

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml

from compass_core.errors import CompassError
from compassc.models.model import Model
from tests.choosing import some

LENET = Path(__file__).parents[1] / "data" / "graphs" / "lenet"
GRAPHS = {"import": "float.txt", "optimize": "opt.txt"}


@pytest.fixture
def model(compassc, tmp_path):
    shutil.copy(LENET / "model.onnx", tmp_path)
    return tmp_path / "model.onnx"


def test_a_build_leaves_every_stage_and_says_how(compassc, model):
    done = compassc("build", model, "-t", "X2_1204", "-v")
    assert done.status == 0, done.err
    record = yaml.safe_load(Path("model.compass/build.yaml").read_text())
    assert [s["name"] for s in record["stages"]] == ["import", "optimize", "gbuild"]
    lines = [line for line in done.err.splitlines() if not line.startswith("kernels: ")]  # progress on a slow machine
    assert [line.split()[0] for line in lines[:3]] == ["import", "optimize", "gbuild"]
    assert all(Path(s["output"]).is_file() for s in record["stages"])
    assert record["inputs"][0]["shape"] == [1, 1, 28, 28]
    shown = compassc("inspect", "model.compass").out
    assert "model.onnx" in shown and "opt.txt" in shown and "1x1x28x28" in shown

    compassc("import", model, "-o", "by_hand/float.txt")
    compassc("optimize", "by_hand/float.txt", "-o", "by_hand/opt.txt")
    compassc("gbuild", "by_hand/opt.txt", "-w", "by_hand/opt.bin", "-t", "X2_1204", "-o", "by_hand/aipu.bin")
    for name in ("float.txt", "float.bin", "opt.txt", "opt.bin"):
        assert Path("by_hand", name).read_bytes() == Path("model.compass", name).read_bytes(), name
    whole = Path("aipu.bin").read_bytes()
    assert Path("by_hand/aipu.bin").read_bytes() == whole
    for graph in GRAPHS.values():
        assert compassc("build", f"model.compass/{graph}", "-t", "X2_1204", "-o", "again.bin").status == 0
        assert Path("again.bin").read_bytes() == whole


def test_a_quantised_build_is_that_of_the_stages_by_hand(compassc, model):
    x = np.random.default_rng(0).normal(size=(6, 1, 28, 28)).astype("float32")
    np.savez("samples.npz", x=x, labels=np.zeros(6))
    done = compassc(
        "build", model, "-t", "X2_1204", "--calibrate", "samples.npz", "--samples", "4", "--quantize", "int8"
    )
    assert done.status == 0 and "layers are quantised" in done.err, done.err
    record = yaml.safe_load(Path("model.compass/build.yaml").read_text())
    assert [s["name"] for s in record["stages"]] == ["import", "optimize", "quantize", "gbuild"]
    assert record["quantize"] == {
        "settings": "int8",
        "calibrate": "samples.npz",
        "min_cosine": None,
        "min_sqnr": None,
        "samples": 4,
    }
    assert record["inputs"][0]["dtype"] == "int8"
    whole, quant = Path("aipu.bin").read_bytes(), Path("model.compass/quant.txt").read_text()

    np.savez("four.npz", x=x[:4])
    for source in (["--calibrate", "four.npz"], ["--statistics", "model.compass/calibration.npz"]):
        compassc("quantize", "model.compass/opt.txt", *source, "--quantize", "int8", "-o", "by_hand/quant.txt")
        assert Path("by_hand/quant.txt").read_text() == quant
    assert compassc("build", "by_hand/quant.txt", "-t", "X2_1204", "-o", "again.bin").status == 0
    assert Path("again.bin").read_bytes() == whole
    assert compassc("gbuild", "by_hand/quant.txt", "-t", "X2_1204", "-o", "graph.bin", "--save-temps").status == 0
    kernels = list(Path("quant.compass").glob("layer_*.py"))
    for kernel in some(kernels):
        text = kernel.read_text()
        assert "# computes '" in text and "def layer(" in text
        compile(text, str(kernel), "exec")
    assert any("# compassc/layers/" in kernel.read_text() for kernel in kernels)
    half = compassc("build", model, "--quantize", "fp16", "--stop-after", "quantize", "-o", "half.txt")
    assert half.status == 0 and "layers are float16" in half.err and "quantised" not in half.err
    assert "float16" in Path("half.txt").read_text()


def test_a_build_with_samples_ends_with_a_verdict(compassc, model):
    np.savez("samples.npz", x=np.random.default_rng(0).normal(size=(10, 1, 28, 28)).astype("float32"))
    given = (model, "-t", "X2_1204", "--calibrate", "samples.npz")
    done = compassc("build", *given)
    assert done.status == 0 and "int8 keeps a cosine of 0.999" in done.err, done.err
    assert "on 2 samples held back from calibration" in done.err and "(Convolution) keeps" in done.err
    assert "warning" not in done.err
    Path("aipu.bin").unlink()
    for option in (("--min-sqnr", "90", "--quantize", "int8"), ("--min-cosine", "1", "--quantize", "int8")):
        failed = compassc("build", *given, *option)
        assert failed.status == 1 and ("less than 90 dB" if "90" in option else "a cosine of 1.0") in failed.err, (
            failed.err
        )
        assert not Path("aipu.bin").exists()
    Path("far.yaml").write_text("activation_strategy: 5percentile")
    far = compassc("build", *given, "--quantize-settings", "far.yaml")
    assert far.status == 0 and "warning: outputs are far" in far.err


def test_inner_tensors_may_be_outputs_of_a_build(compassc, model):
    inner = onnx.load(model).graph.node[0].output[0]
    options = ("-t", "X2_1204", "--stop-after", "import", "--output-tensor")
    assert compassc("build", model, *options, inner).status == 0
    assert yaml.safe_load(Path("model.compass/build.yaml").read_text())["output_tensors"] == [inner]
    done = compassc("build", "model.compass/float.txt", "--output-tensor", inner)
    assert done.status == 2 and "chosen at the import" in done.err


@pytest.mark.parametrize("suffix", [".pth", ".npz", ".h5", ".pb"])
def test_a_build_says_what_the_import_says_of_other_files(compassc, suffix):
    Path(f"net{suffix}").write_bytes(b"")
    said = [compassc(command, f"net{suffix}") for command in ("build", "import")]
    assert said[0].status == said[1].status == 2 and said[0].err == said[1].err and "help: " in said[0].err


def test_a_build_is_found_from_other_folders(compassc, model, monkeypatch, tmp_path):
    Path("there").mkdir()
    model.rename("there/model.onnx")
    assert compassc("build", "there/model.onnx", "-t", "X2_1204", "-o", "there/net.bin").status == 0
    monkeypatch.chdir("there")
    made = Model.load("model.compass")
    assert made.path.read_bytes() == Path("net.bin").read_bytes() and made.source == Path("model.onnx")
    Path("net.bin").write_bytes(b"other")
    with pytest.raises(CompassError, match="not there any more"):
        Model.load("model.compass")
    compassc("build", tmp_path / "there/model.onnx", "--stop-after", "import", "--save-temps-dir", "half")
    with pytest.raises(CompassError, match="ended before"):
        Model.load("half")


@pytest.mark.parametrize("stage", GRAPHS)
def test_a_build_of_a_model_ends_where_it_is_told_to(compassc, model, stage):
    assert compassc("build", model, "--stop-after", stage, "-o", "here.txt").status == 0
    assert Path("here.txt").is_file() and Path("here.bin").is_file() and not Path("aipu.bin").exists()
    assert compassc("build", model, "--stop-after", stage).status == 0
    assert Path("model.compass", GRAPHS[stage]).read_text() == Path("here.txt").read_text().replace(
        "./here.bin", f"./{Path(GRAPHS[stage]).stem}.bin"
    )


def test_passes_are_shown_and_left_out_as_in_optimize(compassc, model):
    done = compassc("build", model, "--stop-after", "optimize", "--dump-dir", "dumps", "--disable-pass", "Simplify")
    assert done.status == 0, done.err
    names = [path.stem.partition("-")[2] for path in sorted(Path("dumps").iterdir())]
    assert "FoldConstant" in names and "Simplify" not in names
    assert compassc("build", model, "--print-pipeline").out == compassc("optimize", "--print-pipeline").out


def test_a_model_runs_in_one_go_and_so_does_its_build(compassc, model):
    x, y = np.load(LENET / "x0.npy"), np.load(LENET / "y0.npy")
    np.save("x.npy", np.concatenate([x, -x]))
    done = compassc("run", model, "-t", "X2_1204", "--inputs", "x.npy", "-o", "y.npy")
    assert done.status == 0 and "2 samples, one after the other" in done.out, done.err
    assert np.allclose(np.load("y.npy")[:1], y, atol=1e-6) and Path("model.compass/aipu.bin").is_file()
    assert compassc("run", "model.compass", "--inputs", "x.npy", "-o", "again.npy").status == 0
    assert np.array_equal(np.load("again.npy"), np.load("y.npy"))
    assert compassc("run", "model.compass", "--inputs", "x.npy", "--expect", "x.npy").status == 1


def test_several_samples_are_built_in(compassc, model):
    x = np.random.default_rng(0).normal(size=(6, 1, 28, 28)).astype("float32")
    np.save("x.npy", x)
    built = compassc("build", model, "-t", "X2_1204", "--batch", "3", "--calibrate", "x.npy", "--quantize", "int8")
    assert built.status == 0, built.err
    whole = Model.load("model.compass")
    assert whole.inputs[0].shape == (3, 1, 28, 28) and whole.outputs[0].shape == (3, 10)
    one = compassc("build", model, "-t", "X2_1204", "--calibrate", "x.npy", "--quantize", "int8", "-o", "one.bin")
    assert one.status == 0, one.err
    assert np.array_equal(whole(x[:3]), Model.load("model.compass")(x[:3]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["kernel.py", "--batch", "2"], "--batch is about models"),
        (["model.onnx", "-o", "quant.bin"], "'quant.bin' is what the constants of a stage are called"),
        (["model.compass/float.txt", "--stop-after", "import"], "not imported any more"),
        (["model.onnx", "--stop-after", "optimise"], "did you mean 'optimize'?"),
        (["model.onnx", "--stop-after", "import", "-o", "-"], "a graph is two files"),
        (["model.onnx", "--set", "n=1"], "--set is about kernels"),
        (["model.onnx", "--stop-after", "quantize"], "--calibrate DATA"),
        (["kernel.py", "--calibrate", "x.npz"], "--calibrate is about models"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(compassc, model, words, message):
    compassc("build", model, "--stop-after", "import")
    Path("kernel.py").write_text("")
    done = compassc("build", *words)
    assert done.status == 2 and message in done.err

"""Configuration files of the vendor (.cfg) that somebody else wrote: no program runs, and no file is written elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from compass_core.errors import CompassError
from compassc.cli import aipubuild
from compassc.cli.console import Console

MARK = "open({!r}, 'w').close()\n"
DATA = "class D:\n    def __len__(self): return 1\n    def __getitem__(self, i): return [[0.5] * 8]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A folder that somebody filled: a model, samples, a configuration, programs that leave a mark."""
    place = tmp_path / "models"
    (place / "plugin").mkdir(parents=True)
    monkeypatch.chdir(place)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "net.onnx")
    np.save("cal.npy", np.random.default_rng(0).standard_normal((4, 1, 8)).astype(np.float32))
    np.zeros(8, np.int8).tofile("input.bin")
    (place / "evil.py").write_text(MARK.format(str(tmp_path / "data ran")) + DATA)
    for at, where in enumerate(("", "plugin/")):
        (place / f"{where}aipubt_evil{at}.py").write_text(MARK.format(str(tmp_path / "plugin ran")))
    return tmp_path


GIVEN = {
    "common": {"mode": "run"},
    "parser": {"model_type": "onnx", "model_name": "net", "input_model": "net.onnx", "output_dir": "."},
    "optimizer": {"dataset": "numpydataset", "calibration_data": "cal.npy", "output_dir": "opt"},
    "gbuilder": {"target": "X2_1204", "inputs": "input.bin", "outputs": "out.bin"},
}


def run(folder: Path, *options: str, **changed: str) -> tuple[CompassError | None, set[str]]:
    """The error of `aipubuild`, and the files that are new or other than before. `changed`: SECTION_KEY=VALUE."""

    def found() -> dict[str, bytes]:
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    lines = []
    for section, keys in GIVEN.items():
        of_section = {k.removeprefix(f"{section}_"): v for k, v in changed.items() if k.startswith(f"{section}_")}
        lines += [f"[{section}]", *(f"{key} = {value}" for key, value in (keys | of_section).items())]
    Path("net.cfg").write_text("\n".join(lines))
    before = found()
    done = CliRunner().invoke(aipubuild.command, ["net.cfg", *options], obj=Console(), catch_exceptions=True)
    after = found()
    assert done.exception is None or isinstance(done.exception, CompassError), done.exception
    return done.exception, {name for name, content in after.items() if before.get(name) != content}


def test_plugins_of_the_current_folder_run_when_they_are_named(folder):
    error, made = run(folder)
    assert error is None and "models/out.bin" in made and "plugin ran" not in made
    error, made = run(folder, "--plugins", "plugin")
    assert error is None and "plugin ran" in made


@pytest.mark.parametrize("data", ["evil.py:D", "./evil.py:D", "ABSOLUTE/evil.py:D"])
@pytest.mark.parametrize("dataset", ["numpydataset", "numpynhwc2nchwdataset"])
def test_data_sets_of_programs_run_when_the_file_is_trusted(folder, data, dataset):
    data = data.replace("ABSOLUTE", str(folder / "models"))
    error, made = run(folder, optimizer_calibration_data=data, optimizer_dataset=dataset)
    assert error is not None and error.code == "vendor-config" and error.span.line > 1
    assert not made & {"data ran", "models/out.bin"}
    if dataset == "numpydataset":
        assert "--trust" in error.help
        error, made = run(folder, "--trust", optimizer_calibration_data=data)
        assert error is None and "data ran" in made


def test_programs_of_pytorch_are_loaded_when_the_file_is_trusted(folder):
    Path("net.pt2").write_bytes(b"PK")
    error, made = run(folder, parser_model_type="torch", parser_input_model="net.pt2")
    assert error is not None and "--trust" in error.help and not made


ELSEWHERE = {
    "outputs": "gbuilder_outputs",
    "graph": "parser_output_dir",
    "quantised graph": "optimizer_output_dir",
}


@pytest.mark.parametrize("key", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("place", ["../home", "HOME", "linked", ".config", "a/.b"])
def test_results_are_written_into_the_folder_alone(folder, key, place):
    """Of the current folder or of the file; not into hidden ones, nor through links to others."""
    (folder / "home").mkdir()
    Path("linked").symlink_to("../home")
    place = place.replace("HOME", str(folder / "home"))
    value = f"{place}/out.bin" if key == "gbuilder_outputs" else place
    error, made = run(folder, **{key: value})
    assert error is not None and "--trust" in error.help and error.span.line > 1
    assert all(name.startswith("models/") and "/." not in name for name in made) and not Path(".config").exists()
    error, made = run(folder, "--trust", **{key: value})
    assert error is None and any(os.path.realpath(folder / name).startswith(os.path.realpath(place)) for name in made)


@pytest.mark.parametrize(
    "changed",
    [
        {"gbuilder_outputs": ".bashrc"},
        {"gbuilder_outputs": "Makefile"},
        {"gbuilder_outputs": "numpy.py"},
        {"gbuilder_outputs": "requirements.txt"},
        {"parser_model_name": "../home/x"},
        {"optimizer_quant_ir_name": "../home/x"},
    ],
    ids=str,
)
def test_results_are_called_like_results(folder, changed):
    error, made = run(folder, **changed)
    assert error is not None and error.code == "vendor-config"
    assert {Path(name).suffix for name in made} <= {".txt", ".bin"} and all(n.startswith("models/") for n in made)

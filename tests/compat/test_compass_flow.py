"""The flow of models by a configuration: its keys, what its stages leave, and programs that are run and exported."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import relay
from compassc.compat.compass_flow.config import KEYS, PASSED_OVER, CompassConfig
from compassc.compat.compass_flow.deployable import ExecutionEngine
from compassc.compat.compass_flow.flow import Compass
from compassc.compat.compass_flow.pruning import worth
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes import make
from tests.relay import test_relay_contributed
from tests.relay.relay_values import evaluate

RNG = np.random.default_rng(3)
WEIGHT = (RNG.standard_normal((4, 3, 3, 3)) / 4).astype("float32")
X = RNG.standard_normal((1, 3, 8, 8)).astype("float32")


def network() -> IRModule:
    """A convolution, a function of the host, and a sum."""
    x = relay.var("x", shape=(1, 3, 8, 8))
    hidden = relay.nn.relu(relay.nn.conv2d(x, relay.const(WEIGHT), padding=1))
    return relay.IRModule({"main": relay.Function([x], relay.nn.relu(relay.log2(hidden + relay.const(1.5))))})


def flow(folder: Path, *optimizer: str, common: str = "compute_threshold = 0") -> Compass:
    made = Compass(
        "\n".join(
            [
                "[Common]",
                f"output_dir = {folder}/out",
                common,
                "[Optimizer]",
                *optimizer,
                "[GBuilder]",
                "target=x2_1204",
            ]
        )
    )
    made.ir_mod = network()
    return made


def names(module: IRModule) -> set[str]:
    return {v.name_hint for v in module.functions}


@pytest.mark.parametrize(
    ("section", "key", "variable"),
    [(s, k, known.variable) for s, keys in KEYS.items() for k, known in keys.items() if known.variable],
)
def test_the_environment_goes_before_the_file_and_that_before_defaults(monkeypatch, section, key, variable) -> None:
    def of(text: str) -> dict[str, str]:
        made = CompassConfig(text)
        return made.optimizer() if section == "optimizer" else getattr(made, section)

    upper = str.upper if key == "target" else str
    default = KEYS[section][key].default
    assert of("").get(key) == (default if default is None else upper(default))
    with pytest.warns(UserWarning) if key in PASSED_OVER else nullcontext():
        assert of(f"[{section}]\n{key} = given")[key] == upper("given")
    monkeypatch.setenv(variable, "elsewhere")
    assert of("")[key] == upper("elsewhere")


def test_configurations_are_files_or_texts(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone.cfg"):
        CompassConfig(str(tmp_path / "gone.cfg"))
    path = tmp_path / "net.cfg"
    path.write_text("[Parser]\nmodel_type = onnx\ninput_model = __CURRENT_CFG_DIR__/net.onnx\n")
    assert CompassConfig(str(path)).parser["input_model"] == str(tmp_path / "net.onnx")
    with pytest.warns(UserWarning, match="did you mean 'output_dir'"):
        CompassConfig("[Common]\noutput_dirs = x")


def test_a_folder_of_others_is_not_emptied(tmp_path: Path) -> None:
    flow(tmp_path)
    flow(tmp_path)
    (tmp_path / "out" / ".compass_output").unlink()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(CompassError, match="holds what no flow has written"):
        flow(tmp_path)
    assert (tmp_path / "out" / "mine").exists()


def test_what_the_npu_runs_is_in_functions(tmp_path: Path) -> None:
    compass = flow(tmp_path)
    compass.partition()
    assert list(compass.regions()) == ["tvm_compass_subfunc0", "tvm_compass_subfunc1"]
    assert all(f.attrs["global_symbol"] == n and f.attrs["Codegen"] == "compass" for n, f in compass.regions().items())
    assert (tmp_path / "out" / "partitioned_graph.txt").read_text().startswith("#[version")
    compass.ir_mod = network()
    compass.partition(fallback_nodes={"main": ["tvm_compass_subfunc1"]})
    assert names(compass.ir_mod) == {"main", "tvm_compass_subfunc0"}
    compass.ir_mod = network()
    compass.partition(fallback_indices=[0])
    assert names(compass.ir_mod) == {"main", "tvm_compass_subfunc1"}
    with pytest.raises(CompassError, match="no function 'nothing' of the NPU") as error:
        compass.partition(fallback_nodes={"main": ["nothing"]})
    assert "tvm_compass_subfunc" in error.value.help


def test_what_comes_after_a_hint_is_on_the_host(tmp_path: Path) -> None:
    compass = flow(tmp_path)
    compass.partition(postprocess_hint_fn=lambda known, e: op_name(e) == "log2")
    assert len(compass.regions()) == 1
    compass.ir_mod = network()
    compass.partition(postprocess_hint_fn=lambda known, e: op_name(e) == "nn.conv2d")
    assert not compass.regions()


def test_small_functions_go_back_unless_all_are_small(tmp_path: Path) -> None:
    compass = flow(tmp_path)
    compass.partition()
    one, two = map(worth, compass.regions().values())
    macs, moved = 4 * 8 * 8 * 27, 4 * (WEIGHT.size + X.size + 4 * 64)
    assert one == pytest.approx((2 * macs) ** 2 / moved) and two == 0
    compass = flow(tmp_path, common=f"compute_threshold = {one / 2}")
    compass.partition()
    assert list(compass.regions()) == ["tvm_compass_subfunc0"]
    compass = flow(tmp_path, common=f"compute_threshold = {2 * one}")
    compass.partition()
    assert len(compass.regions()) == 2


def test_programs_in_integers_are_run_and_exported(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", RNG.standard_normal((8, 3, 8, 8)).astype("float32"))
    compass = flow(tmp_path, f"calibration_data = {tmp_path}/data.npy", "dataset = numpydataset")
    compass.partition()
    compass.collect_calibration_data()
    stored = np.load(tmp_path / "out" / "tvm_compass_subfunc0" / "optimizer" / "calibration_data.npz")
    assert (stored["arr_0"] == np.load(tmp_path / "data.npy")).all()
    deployable = compass.build()
    engine = deployable.create_execution_engine(with_profile=True)
    (got,) = engine.run(X)
    assert {"tvm_compass_subfunc0", "tvm_compass_subfunc1"} <= {c["Name"] for c in engine.profile(X).calls}
    compass.config.common["forward_engine"] = "opt_float"
    with pytest.raises(RuntimeError, match="only what the engine driver runs"):
        (in_floats := compass.build()).export(tmp_path / "no")
    (exact,) = in_floats.create_execution_engine().run(X)
    a, b = got.numpy(), exact.numpy()
    assert 0.999 < (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()) < 1
    deployable.export(tmp_path / "deploy")
    assert (tmp_path / "deploy" / "tvm_compass_subfunc1" / "gbuilder" / "aipu.bin").stat().st_size
    (again,) = ExecutionEngine(tmp_path / "deploy").run(X)
    assert (again.numpy() == a).all()


def test_outputs_may_stay_integers(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", RNG.standard_normal((4, 3, 8, 8)).astype("float32"))
    compass = flow(tmp_path, f"calibration_data = {tmp_path}/data.npy", "dataset = numpydataset")
    compass.partition()
    compass.collect_calibration_data()
    with pytest.raises(CompassError, match="output 1 is not made of integers"):
        compass.build(bypass_output_dequant=[1])
    (got,) = compass.build(bypass_output_dequant=[0]).create_execution_engine().run(X)
    assert got.numpy().dtype.kind in "iu"


def test_what_cannot_be_is_refused_by_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    compass = flow(tmp_path, common="forward_engine = gt")
    with pytest.raises(CompassError, match="there is no engine 'gt'"):
        compass.build()
    with pytest.raises(CompassError, match="names no 'input_model'"):
        Compass("[Parser]\nmodel_type = onnx").parse()
    with pytest.raises(CompassError, match="'tensorflow' cannot be read") as error:
        Compass("[Parser]\ninput_model = x.pb").parse()
    assert "ONNX" in error.value.help


def test_quantised_models_run_in_their_own_integers(tmp_path: Path) -> None:
    """As functions of the NPU, with the numbers of the interpreter; calibration data do not matter."""
    model, x = test_relay_contributed.network()
    np.save(tmp_path / "data.npy", x)
    compass = flow(tmp_path, "dataset = numpydataset", f"calibration_data = {tmp_path}/data.npy")
    compass.ir_mod = relay.frontend.from_onnx(model)[0]
    (want,) = evaluate(make("FakeQuantizationToInteger", use_qat=True)(compass.ir_mod), x)
    compass.partition()
    compass.collect_calibration_data()
    assert not compass.observed and list(compass.regions()) == ["tvm_compass_subfunc0"]
    (got,) = compass.build().create_execution_engine().run(x)
    np.testing.assert_array_equal(got, want)

"""Tuning the layers of a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compassc import passes
from compassc.graph import Graph, Layer, LayerError, Tensor, text
from compassc.layers.choices import deciding
from compassc.layers.kernels import kernel_of
from compassc.layers.machine import planned_for
from compassc.tuning import records
from compassc.tuning.artifact import Artifact, artifact
from compassc.tuning.cost.programs import features_of
from compassc.tuning.history import apply_history_best
from compassc.tuning.layer_task import LayerTask, best_choices, workload_of
from compassc.tuning.measure import MeasureOptions, measure
from compassc.tuning.networks import NetworkResult, NetworkTask, tasks_of_graph, tune_network
from compassc.tuning.records import Record
from compassc.tuning.space import Candidate
from compassc.tuning.tune import Search, TuneOptions

from .invented import Invented

TARGET = "X2_1204"


def convolution(name: str, channels: int = 16, groups: int = 1, dtype: str = "int8", source: str = "x") -> Layer:
    """A convolution of 3x3 on a picture of 12x12; `groups` of channels make it depthwise."""
    x = Tensor(source, (1, 12, 12, channels), dtype)
    y = Tensor(name, (1, 12, 12, channels), dtype)
    rng = np.random.default_rng(1)
    own = channels // groups
    kernel = {"kernel_x": 3, "kernel_y": 3, "stride_x": 1, "stride_y": 1, "dilation_x": 1, "dilation_y": 1}
    kernel |= {"pad_left": 1, "pad_right": 1, "pad_top": 1, "pad_bottom": 1, "group": groups, "num_output": channels}
    constants = {
        "weights": rng.integers(-9, 9, (channels, 3, 3, own)).astype("int8"),
        "biases": rng.integers(-99, 99, channels).astype("int32"),
        "scale": np.array([3], "uint8"),
        "shift": np.array([7], "int8"),
    }
    kind = "Convolution" if groups == 1 else "DepthwiseConv"
    return Layer(name, kind, (x,), (y,), {**kernel, "with_activation": "NONE"}, constants)


def pooling(name: str) -> Layer:
    x, y = Tensor("x", (1, 24, 24, 16), "int8"), Tensor(name, (1, 12, 12, 16), "int8")
    given = {f"{key}_{axis}": 2 for key in ("kernel", "stride") for axis in "xy"} | {"method": "MAX"}
    return Layer(name, "Pooling", (x,), (y,), given, {})


def product(name: str) -> Layer:
    x, y, z = (Tensor(n, (1, 80, 96), "float32") for n in ("x", "y", name))
    return Layer(name, "Eltwise", (x, y), (z,), {"method": "MUL"}, {})


def recurrence(name: str) -> Layer:
    """A GRU whose weights are more than the usual room in LSRAM."""
    cell, features, steps = 64, 48, 2
    x, h = Tensor("x", (1, steps, features), "float32"), Tensor("h", (1, cell), "float32")
    weights = np.random.default_rng(1).normal(size=(3 * cell, features + cell)).astype("float32") / 8
    constants = {"weights": weights, "biases": np.zeros(3 * cell, "float32")}
    given = {"time_steps": steps, "input_size": features, "cell_size": cell, "out_sequence": ["H"]}
    return Layer(name, "GRUv3", (x, h), (Tensor(name, (1, steps, cell), "float32"),), given, constants)


LAYERS = {
    "convolution": convolution("c"),
    "depthwise": convolution("d", 32, 32),
    "pooling": pooling("p"),
    "product": product("m"),
    "recurrence": recurrence("g"),
}


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_every_choice_gives_the_same_result(name: str) -> None:
    """Those that are estimated best and worst, held against the reference; the first is what is built without tuning."""
    layer = LAYERS[name]
    task = LayerTask((layer,), TARGET)
    choices = list(task.space.grid())
    assert len(choices) > 3
    assert task.default == choices[0]
    with deciding(task.default):
        wanted = kernel_of([layer]).text
    assert wanted == kernel_of([layer]).text
    results = measure(task, [choices[0], choices[1], choices[-1]], MeasureOptions())
    assert [r.error for r in results] == ["", "", ""], results
    assert len({r.cost for r in results}) > 1


def test_a_model_of_costs_tells_choices_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they differ in arguments of the same kernel alone, which is compiled once."""
    first, *_, last = LayerTask((LAYERS["convolution"],), TARGET).space.grid()
    calls: list[object] = []
    lower = passes.lower
    monkeypatch.setattr(passes, "lower", lambda *given: calls.append(given) or lower(*given))

    def seen(task: LayerTask, choice: Candidate) -> list[Any]:
        features, made = features_of(task, choice), artifact(task, choice)
        assert features is not None and isinstance(made, Artifact) and made.arguments is not None
        return [features.tobytes(), *(np.asarray(a).tobytes() for a in made.arguments), made.text, made.params]

    apart = [seen(LayerTask((LAYERS["convolution"],), TARGET), choice) for choice in (first, last)]
    assert apart[0][0] != apart[1][0] and apart[0][-2:] == apart[1][-2:] and len(calls) == 4
    both = LayerTask((LAYERS["convolution"],), TARGET)
    assert [seen(both, choice) for choice in (first, last)] == apart
    assert len(calls) == 6  # its loops, and its C text


def test_depthwise_kernels_of_bytes_have_two_forms() -> None:
    task = LayerTask((LAYERS["depthwise"],), TARGET)
    made = []
    for form in task.space.parameters["form"]:
        with deciding({"form": form}):
            made.append(kernel_of([LAYERS["depthwise"]]).text)
    assert task.space.parameters["form"] == ("quads", "pixels") and made[0] != made[1]
    (other,) = measure(task, [task.default | {"form": "pixels"}], MeasureOptions())
    assert other.error == "", "its result is that of the reference"


def test_a_choice_that_there_is_none_of_is_refused() -> None:
    with deciding({"tiling": "1000x1000"}), pytest.raises(LayerError, match="1000x1000"):
        kernel_of([LAYERS["convolution"]])


def test_kernels_take_what_is_best_on_record(tmp_path: Path) -> None:
    """For their target, and choices that there are."""
    layer = LAYERS["convolution"]
    task = LayerTask((layer,), TARGET)
    last = list(task.space.grid())[-1]
    with deciding(last):
        wanted = kernel_of([layer]).arguments
    path = tmp_path / "r.jsonl"
    records.write(
        path, [Record(task.workload, task.default, "cycles", 9.0), Record(task.workload, last, "cycles", 5.0)]
    )

    def made(target: str) -> tuple[Any, ...]:
        with planned_for(target):
            return kernel_of([layer]).arguments

    def numbers(arguments: Sequence[Any]) -> list[Any]:
        return [a for a in arguments if isinstance(a, (int, float))]

    default = numbers(kernel_of([layer]).arguments)
    assert numbers(wanted) != default
    with apply_history_best(path):
        assert numbers(made(TARGET)) == numbers(wanted)
        assert numbers(made("X3P_1304")) == default
        assert numbers(kernel_of([layer]).arguments) == default
    records.write(path, [Record(task.workload, {"tiling": "77x77"}, "cycles", 1.0)])
    with apply_history_best(path):
        assert best_choices([layer], TARGET) is None
        assert numbers(made(TARGET)) == default


def test_names_and_numbers_do_not_make_another_workload() -> None:
    one = workload_of([convolution("one")], TARGET)
    other = convolution("other", source="elsewhere")
    other.constants["weights"][0] += 1
    assert workload_of([other], TARGET).key == one.key
    for different in (convolution("one", 32), convolution("one", dtype="uint8"), convolution("one", 16, 16)):
        assert workload_of([different], TARGET).key != one.key


def network() -> Graph:
    """Two convolutions alike, and a depthwise one."""
    first = convolution("a", 32)
    second = replace(convolution("b", 32), inputs=first.outputs)
    third = replace(convolution("c", 32, 32), inputs=second.outputs)
    source = Layer("x", "Input", (), first.inputs, {})
    return Graph("net", first.inputs, third.outputs, (source, first, second, third))


def test_equal_layers_are_one_task(tmp_path: Path) -> None:
    tasks = tasks_of_graph(network(), TARGET, tmp_path)
    assert [(t.task.layers[0].type, t.calls) for t in tasks] == [("Convolution", 2), ("DepthwiseConv", 1)]


def test_the_budget_goes_where_most_is_to_be_gained(tmp_path: Path) -> None:
    """Everything is tried; no more trials are made than were given, and what is called more often gets more."""
    from .invented import Valley

    few, many = (
        NetworkTask(Valley(name=n, workload=replace(Valley().workload, structure=n)), calls)
        for n, calls in (("few", 1), ("many", 50))
    )  # type: ignore[arg-type]
    workers = Invented()
    tune_network([few, many], TuneOptions(trials=64, strategy="random"), tmp_path / "r.jsonl", workers)
    assert len(workers.asked) == few.trials + many.trials == 64
    assert many.trials > few.trials >= 16
    again = Invented()
    rest = [NetworkTask(t.task, t.calls) for t in (few, many)]
    tune_network(rest, TuneOptions(trials=64, strategy="random"), tmp_path / "r.jsonl", again)
    assert not again.asked, "what is on record is not measured again"
    assert [t.trials for t in rest] == [few.trials, many.trials]


def test_a_task_without_more_candidates_gets_none(tmp_path: Path) -> None:
    from .invented import Valley

    one = NetworkTask(Valley())  # type: ignore[arg-type]
    tune_network([one], TuneOptions(trials=1000, strategy="grid"), tmp_path / "r.jsonl", Invented())
    assert one.trials == 64 and one.done
    assert isinstance(one.search, Search) and one.search.best is not None


def test_what_takes_most_is_tried_first(tmp_path: Path) -> None:
    from .invented import Valley

    tasks = [
        NetworkTask(Valley(name=n, workload=replace(Valley().workload, structure=n)), cycles=cycles)
        for n, cycles in (("brief", 10.0), ("long", 1e9))
    ]  # type: ignore[arg-type]
    tune_network(tasks, TuneOptions(trials=4, strategy="random"), tmp_path / "r.jsonl", Invented())
    assert [t.trials for t in tasks] == [0, 4]


def test_the_verdict_says_whether_there_is_more_to_gain(tmp_path: Path) -> None:
    from .invented import Valley

    assert "leave nothing to choose" in NetworkResult((), 9, 9, ()).verdict
    one = NetworkTask(Valley())  # type: ignore[arg-type]
    tune_network([one], TuneOptions(trials=8, strategy="grid"), tmp_path / "r.jsonl", Invented())
    assert NetworkResult((), 9, 9, (one,)).verdict.startswith("56 of 64 candidates of 1 kernel were not tried")
    tune_network([one], TuneOptions(trials=64, strategy="grid"), tmp_path / "r.jsonl", Invented())
    assert NetworkResult((), 9, 9, (one,)).verdict == "nothing to gain: all 64 candidates of 1 kernel are known"
    assert NetworkResult((), 9, 5, (one,)).verdict.startswith("nothing more to gain")


def test_tune_of_a_model(compassc: Callable[..., Any], tmp_path: Path) -> None:
    """What the search found is what the network takes with the records."""
    words, constants = text.write(network())
    (tmp_path / "net.txt").write_text(words)
    (tmp_path / "net.bin").write_bytes(constants)
    done = compassc(
        "tune", "net.txt", "-t", TARGET, "--trials", "48", "--strategy", "random", "-o", "r.jsonl", "--json"
    )
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["after"] <= found["before"] and len(found["layers"]) == 3
    best = {t["task"].split()[0]: t["best"]["cost"] for t in found["tasks"]}
    assert round(found["layers"][1]["after"]) == pytest.approx(best["Convolution"], rel=0.02)
    listed = compassc("records", "list", "r.jsonl").out
    assert "Convolution" in listed and "DepthwiseConv" in listed


def test_a_model_is_quantised_once(compassc: Callable[..., Any], tmp_path: Path, monkeypatch: Any) -> None:
    """The build with what was found takes what the first one made."""
    from compassc.graph import GraphBuilder
    from compassc.quantizer import model

    g, rng = GraphBuilder("net"), np.random.default_rng(0)
    constants = {"weights": rng.normal(size=(100, 130)).astype("float32"), "biases": np.zeros(100, np.float32)}
    attributes = {"num_output": 100, "with_activation": "NONE"}
    x = g.input("x", (64, 130), "float32")
    y = g.layer(
        "FullyConnected", [x], name="y", outputs=[((64, 100), "float32")], attributes=attributes, constants=constants
    )
    words, content = text.write(g.finish(y))
    (tmp_path / "net.txt").write_text(words)
    (tmp_path / "net.bin").write_bytes(content)
    np.save(tmp_path / "x.npy", rng.normal(size=(2, 64, 130)).astype("float32"))
    calls = []
    quantize = model.quantize_model
    monkeypatch.setattr(model, "quantize_model", lambda *a, **k: calls.append(1) or quantize(*a, **k))
    words = ["tune", "net.txt", "-t", TARGET, "--calibrate", "x.npy", "--quantize", "int8", "--trials", "40"]
    done = compassc(*words, "-o", "r.jsonl", "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["after"] < found["before"] and "nothing more to gain" in found["verdict"] and len(calls) == 1

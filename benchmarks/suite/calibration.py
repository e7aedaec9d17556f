"""Calibration beside what ONNX Runtime takes to run the same samples: a network of 100 ONNX nodes with 100 of them, which
ONNX's reference evaluator runs, too, and which is quantised; and networks of the size that people use."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core import Goal, Result, in_a_row, median, median_ratio, seconds, side_by_side
from benchmarks.networks import NETWORKS

from .model_import import CHANNELS, model

SAMPLES, EVALUATED = 100, 4
NAMES, OF_NETWORKS = ("mobilenet", "resnet18"), 8
"""Networks, and how many samples of each."""
GOALS = {
    "reference": Goal("calibration, times faster than ONNX's reference evaluator", "x", 5, at_most=False),
    "runtime": Goal("calibration, as part of ONNX Runtime's time", "x", 2),
    "quantize": Goal("quantisation of the calibrated network", "s"),
    **{name: Goal(f"calibration of {NETWORKS[name].title}, as part of ONNX Runtime's time", "x", 2) for name in NAMES},
}
ROUNDS, NETWORK_ROUNDS = 5, 2


def measure() -> dict[str, Result]:
    return {**_of_a_hundred_nodes(), **{name: _of_network(name) for name in NAMES}}


def _of_network(name: str) -> Result:
    """Both on all processors, by turns."""
    try:
        from benchmarks.onnx_runtime import session
    except ImportError:
        return Result(None, "not installed")
    from compassc.graph import passes
    from compassc.importers import import_object
    from compassc.layers.threads import processors
    from compassc.quantizer import Settings, calibrate
    from tests.networks.whole import drawn

    made = NETWORKS[name].model()
    graph, other, settings = import_object(made), session(made, processors()), Settings.preset("int8")
    data = [drawn(graph, i, False) for i in range(OF_NETWORKS)]
    given = [dict(zip([i.name for i in made.graph.input], sample.values(), strict=True)) for sample in data]
    graph = passes.optimise(graph)
    own, runtime = _in_turns(
        lambda: calibrate(graph, data, settings),
        lambda: [other.run(None, sample) for sample in given],
        rounds=NETWORK_ROUNDS,
    )
    detail = f"{1e3 * median(own):.0f} ms for {OF_NETWORKS} samples, {1e3 * median(runtime):.0f} ms"
    return Result(median_ratio(own, runtime), detail)


def _of_a_hundred_nodes() -> dict[str, Result]:
    from compassc.graph import passes
    from compassc.importers import import_model
    from compassc.quantizer import Settings, calibrate, quantize

    made = model(100)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        path = Path(folder, "net.onnx")
        path.write_bytes(made.SerializeToString())
        graph = passes.optimise(import_model(path))
    random = np.random.default_rng(0)
    samples = [random.standard_normal((1, CHANNELS, 16, 16)).astype(np.float32) for _ in range(SAMPLES)]
    settings, name = Settings.preset("int8"), graph.inputs[0].name
    data = [{name: sample} for sample in samples]
    calibration = calibrate(graph, data, settings)
    session = _session(made)
    runs = [lambda: calibrate(graph, data, settings)]
    if session:
        runs.append(lambda: [session.run(None, {"x": s}) for s in samples])
    times = _in_turns(*runs, rounds=ROUNDS)
    own = median(times[0])
    reference = _reference(made, samples[:EVALUATED]) * SAMPLES / EVALUATED
    quantising = median(seconds(lambda: quantize(graph, calibration, settings)) for _ in range(ROUNDS))
    detail = f"{own:.3f} s"
    return {
        "reference": Result(reference / own, f"{detail} for {SAMPLES} samples, {reference:.2f} s"),
        "runtime": _against(times, detail) if session else Result(None, "not installed"),
        "quantize": Result(quantising, f"{len(graph.layers)} layers"),
    }


def _in_turns(*runs: Callable[[], object], rounds: int) -> list[list[float]]:
    """The seconds of runs, each after a rest and some in a row: the threads of ONNX Runtime wait busily when it is done."""
    return side_by_side([in_a_row(lambda run=run: seconds(run)) for run in runs], rounds)


def _against(times: list[list[float]], detail: str) -> Result:
    return Result(median_ratio(*times), f"{detail}, {median(times[1]):.3f} s")


def _reference(made: Any, samples: list[Any]) -> float:
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(made)
    return seconds(lambda: [evaluator.run(None, {"x": sample}) for sample in samples])


def _session(made: Any) -> Any | None:
    """The model in ONNX Runtime; None where that is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    session.run(None, {"x": np.zeros((1, CHANNELS, 16, 16), np.float32)})
    return session

"""Whole networks in every form of numbers: each layer on the simulator against its reference, and joined against apart."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from compass_runtime import Program
from compass_runtime.tensors import all_tensors
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.graph import Graph, Layer, Tensor, files, passes, verify
from compassc.graph.dtypes import numpy_dtype
from compassc.importers import import_object
from compassc.layers.declare import BOUNDS, evaluate
from compassc.layers.real_values import to_raw
from compassc.quantizer import Settings, calibrate
from compassc.quantizer.convert import quantize_with_reasons
from compassc.quantizer.numbers import ASYMMETRIC
from compassc.quantizer.settings import PRESETS
from compassc.quantizer.statistics import Calibration
from tests.networks.catalogue import NETWORKS

Arrays = Mapping[str, np.ndarray[Any, Any]]
TARGET = "X2_1204"
SAMPLES = 4
VENDOR = {"rescale_means": False, "rescale_norms": False, "per_channel": False}
"""What the vendor's quantiser does unless told otherwise."""


def _preset(name: str, **changes: Any) -> Settings:
    """A preset without its exceptions for single types: everything that has a form in integers takes it."""
    return Settings().changed(**{k: getattr(PRESETS[name], k) for k in PRESETS[name].__dataclass_fields__} | changes)


def _mixed(graph: Graph) -> Settings:
    """Layers of 8 bits, of 16 bits, with weights of 8 bits, and of floats side by side."""
    wide = {"activation_bits": 16, "weight_bits": 16, "bias_bits": 48, "table_bits": 10, "force_signed": True}
    kinds: list[Mapping[str, Any]] = [{}, wide, {}, wide | {"weight_bits": 8}, {"float": "float16"}, {}, wide]
    layers = [layer.name for layer in graph.layers if layer.type not in ("Input", "Constant")]
    return Settings.preset("int8").overridden({n: kinds[i % len(kinds)] for i, n in enumerate(layers)})


FORMS: dict[str, Any] = {
    "float32": None,
    "float16": Settings.preset("fp16"),
    "bfloat16": Settings.preset("bf16"),
    "int8": Settings.preset("int8"),
    "int8_per_tensor": _preset("int8", **VENDOR),
    "int8_asymmetric": _preset("int8", activation_mode=ASYMMETRIC),
    "int8_asymmetric_weights": _preset("int8", activation_mode=ASYMMETRIC, weight_mode=ASYMMETRIC, **VENDOR),
    "int8_signed": _preset("int8", force_signed=True, weight_bits=4),
    "uint8": _preset("int8", **VENDOR),
    "int16": Settings.preset("int16"),
    "int16_whole": _preset("int16", **VENDOR),
    "uint16": _preset("int16", force_signed=False, bias_bits=32),
    "w8a16": Settings.preset("w8a16"),
    "w8a16_whole": _preset("w8a16", force_signed=False, multiplier_bits=8),
    "mixed": _mixed,
}
"""Settings of the quantiser by name, or what makes them for a graph. `uint8` and `uint16` have inputs that are not
negative."""
POSITIVE = ("uint8", "uint16")


RIGHTLY_FLOATS = ("all who take its values", "reciprocals in 16 bits")
"""Words of the reasons for which a layer may stay a float in a form of integers."""


@cache
def network(name: str) -> Graph:
    """The float graph of a network."""
    model = NETWORKS[name]()
    shapes = {i.name: [d.dim_value or 1 for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return passes.optimise(import_object(model, shapes))


def drawn(graph: Graph, seed: int, positive: bool) -> dict[str, np.ndarray[Any, Any]]:
    """Real inputs of a graph. Inputs of integers are words of a vocabulary, inputs named mask are 0 or 1."""
    random = np.random.default_rng(seed)

    def values(t: Tensor) -> np.ndarray[Any, Any]:
        if t.is_integer:
            return random.integers(0, 40, t.shape).astype(numpy_dtype(t.dtype))
        if t.name.startswith("mask"):
            return (np.arange(t.count).reshape(t.shape) < 0.7 * t.count).astype(np.float32)
        drawn = random.standard_normal(t.shape).astype(np.float32)
        return np.abs(drawn) if positive else drawn

    return {t.name: values(t) for t in graph.inputs}


@cache
def _calibration(name: str, positive: bool) -> Calibration:
    graph = network(name)
    return calibrate(graph, [drawn(graph, s, positive) for s in range(SAMPLES)], Settings.preset("int8"))


def in_form(
    name: str, form: str, given: Callable[[Calibration], Calibration] = lambda found: found
) -> tuple[Graph, list[str]]:
    """A network in a form of numbers, and why layers stay floats that should not. `given`: the statistics that the
    quantiser gets, of those that were found."""
    graph, settings = network(name), FORMS[form]
    if settings is None:
        return graph, []
    found = given(_calibration(name, form in POSITIVE))
    made = quantize_with_reasons(graph, found, settings(graph) if callable(settings) else settings)
    verify.check(made.graph, verify.Stage.QUANTISED)
    # neighbours of other bits leave some layers no other way in a mixed network
    told = form == "mixed"
    reasons = {
        layer: why
        for layer, why in made.floats.items()
        if why and not told and not any(reason in why for reason in RIGHTLY_FLOATS)
    }
    return made.graph, [f"{layer} stays a float: {why}" for layer, why in reasons.items()]


def _built(graph: Graph, folder: Path, fuse: bool) -> Program:
    weights = files.save(graph, folder / "net.txt")
    options = GraphOptions(work_dir=folder / "kernels", fuse=fuse)
    return Program.load(build_model(folder / "net.txt", weights, folder / "aipu.bin", TARGET, options).path)


def _differ(t: Tensor, got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> str:
    """How a tensor differs more than it may; "" where it does not."""
    if got.size != want.size:
        return f"{got.shape} for {want.shape}"
    a, b = got.reshape(-1), want.reshape(-1).astype(got.dtype)
    if t.is_integer or t.dtype == "bool":
        wrong = a != b
    else:
        a, b = a.astype(np.float64), b.astype(np.float64)
        limit = BOUNDS[t.dtype] * np.maximum(np.abs(b), max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0)))
        wrong = ~((np.abs(a - b) <= limit) | (a == b) | (np.isnan(a) & np.isnan(b)))
    at = np.flatnonzero(wrong)
    return f"{at.size} of {a.size} differ, at {at[0]}: {a[at[0]]} for {b[at[0]]}" if at.size else ""


def layer_faults(graph: Graph, seen: Arrays) -> Iterator[str]:
    """Layers whose outputs on the simulator are not what their references give for what they got there."""
    values = dict(seen)
    for layer in graph.layers:
        if layer.type == "Input":
            continue
        if layer.type == "Constant":
            values[layer.outputs[0].name] = evaluate(layer, [])[0]
            continue
        given = [values[t.name].reshape(t.shape) for t in layer.inputs]
        for t, want in zip(layer.outputs, evaluate(layer, given), strict=True):
            values.setdefault(t.name, want)  # views have no tensor of their own
            if fault := _differ(t, values[t.name], want):
                yield f"{layer.type} {_shown(layer)} {t.name}: {fault}"


def _shown(layer: Layer) -> str:
    return f"{layer.name} ({', '.join(t.dtype for t in layer.inputs)} -> {layer.outputs[0].dtype})"


def faults(name: str, form: str) -> list[str]:
    """What is wrong with a network in a form; layers that stay floats without being told to are faults, too."""
    graph, found = in_form(name, form)
    given = drawn(network(name), 77, form in POSITIVE)
    inputs = {t.name: to_raw(t, given[t.name]) for t in graph.inputs}
    with tempfile.TemporaryDirectory() as apart, tempfile.TemporaryDirectory() as joined:
        seen = all_tensors(_built(graph, Path(apart), False).create_job(), inputs)
        outputs = _built(graph, Path(joined), True).create_job().run(inputs)
    found += layer_faults(graph, dict(inputs) | seen)
    for t in graph.outputs:
        a, b = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (outputs[t.name], seen[t.name]))
        if not np.array_equal(a, b):
            found.append(f"{t.name}: joined layers give other bits than layers apart")
    return [f"{name} {form}: {fault}" for fault in found]

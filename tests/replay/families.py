"""The cases by family. A case's name is a path; what it measures follows from the name alone."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from compass_core.errors import CompassError
from compass_runtime.program import Program
from compassc.graph import Graph, Layer, LayerError, Tensor
from compassc.quantizer import Settings, calibrate
from compassc.quantizer.statistics import Calibration, Moments, Record
from tests.choosing import chosen
from tests.replay.outcome import Outcome, of_arrays, of_call, of_graph

X2, X3 = "X2_1204", "X3P_1304"
ROOT = Path(__file__).parents[2]


class Family(NamedTuple):
    """`names`: of all cases; `measured`: the program of a case and what its run gives; `every`: of so many cases `make test`
    takes one, of 0 none."""

    names: Callable[[], Iterator[str]]
    measured: Callable[[str], tuple[Outcome, list[Program]]]
    every: int


# -- examples: every case of `check.py`


def _example_names() -> Iterator[str]:
    from harness import names

    yield from names()


def _example(name: str) -> tuple[Outcome, list[Program]]:
    from harness import Example

    example, found = Example(name), []
    for case in example.cases(0):
        args = case.fresh_args()
        example.executor(*args)  # with constants the program is made for the call
        args = case.fresh_args()
        outputs = [a for n, a in zip(case.args, args, strict=True) if n in case.expected]
        found.append(of_call(example.executor.program, args, outputs))
    result = of_arrays([np.frombuffer("".join(one.result for one in found).encode(), np.uint8)])
    return Outcome(sum(one.cycles for one in found), result, found[0].c), [example.executor.program]


# -- layers: small samples of every type with kernels, of four data types

ALIKE = (("float32",), ("float16", "bfloat16"), ("int8",), ("uint8", "int16", "uint16"))
"""Data types of which a layer type is tried with one."""


OWN_KERNELS: Mapping[str, tuple[str, dict[str, Any], tuple[int, ...], str]] = {
    "Activation CRELU": (
        "Activation",
        {"method": "CRELU", "axis": 1, "scale_value": 171, "shift_value": 8},
        (3, 18, 5),
        "",
    ),
    "Select of one": ("Select", {}, (135, 3), "int32"),
    "Where of one": ("Where", {}, (135, 3), "int32"),
}
"""Forms with kernels of their own that samples are not: type, attributes, shape and type of the output, "" for the input's."""


def _layer_names() -> Iterator[str]:
    from compassc.layers.declare import all_types
    from compassc.layers.support import forms_of

    for name, declared in all_types().items():
        known = {form.dtype for form in forms_of(declared) if form.kernel}
        for group in ALIKE:
            yield from sorted(chosen((f"{name}/{dtype}" for dtype in group if dtype in known), len(group)))
    yield from (f"{name}/{dtype}" for name in OWN_KERNELS for dtype in ("float32", "int8"))


def _sampled_layer(name: str, dtype: str) -> Layer:
    """The first sample with a kernel; LayerError where there is none."""
    from compassc.layers.kernels import kernel_of
    from compassc.layers.samples import Draw, drawn
    from compassc.layers.support import SHAPES, TRIES

    if name in OWN_KERNELS:
        kind, attributes, shape, out = OWN_KERNELS[name]
        x, y = Tensor("x", (3, 9, 5), dtype), Tensor("y", shape, out or dtype)
        return Layer("layer", kind, (x,), (y,), attributes, {})
    reason = LayerError("there is no sample")
    for seed, shape in enumerate(SHAPES * TRIES):
        layer = drawn(Draw(np.random.default_rng(seed)), name, Tensor("x", shape, dtype))
        if layer is None:
            continue
        try:
            kernel_of([layer])
            return layer
        except LayerError as error:
            reason = error
    raise reason


def _layer(name: str) -> tuple[Outcome, list[Program]]:
    from compass_core import files
    from compassc.dsl import BuildManager
    from compassc.layers.kernel_cache import program_of
    from compassc.layers.kernels import kernel_of, load_kernels
    from compassc.layers.samples import Draw
    from tests.layers.harness import arguments

    load_kernels()
    layer, draw = _sampled_layer(*name.split("/")), Draw(np.random.default_rng(7))
    ranges = [(t.low, t.high) if t.is_integer else (None, None) for t in layer.inputs]
    inputs = [draw.array(t.dtype, *t.shape, low=a, high=b) for t, (a, b) in zip(layer.inputs, ranges, strict=True)]
    kernel = kernel_of([layer])
    with tempfile.TemporaryDirectory() as folder:
        program = (
            BuildManager(X2).build(program_of(kernel, files.write(Path(folder) / "kernel.py", kernel.text))).program
        )
    args, outputs = arguments(kernel, layer, inputs)
    return of_call(program, args, outputs), [program]


# -- topi: every sample of every operator, each of one type


@cache
def _topi_samples() -> Mapping[str, Any]:
    """(operator, type, sample) by name. A sample's name is made of what is in it, so that others do not change it."""
    from compassc import topi

    return {
        f"{operator.name}/{kind}/{crc32(repr(sample).encode()):08x}": (operator, kind, sample)
        for operator in topi.OPERATORS.values()
        for sample in operator.samples
        for kind in [operator.types[crc32(f"{operator.name} {sample}".encode()) % len(operator.types)]]
    }


def _topi(name: str) -> tuple[Outcome, list[Program]]:
    from compassc import te, topi
    from compassc.dsl import BuildManager

    operator, kind, sample = _topi_samples()[name]
    tensors, arrays = sample.inputs(kind)
    outs = operator.define(*tensors, **sample.options)
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    args = [t for x in tensors for t in (x if isinstance(x, list) else [x]) if isinstance(t, te.Tensor)]
    given = [a for x in arrays for a in (x if isinstance(x, list) else [x]) if isinstance(a, np.ndarray)]
    results = [np.zeros([d.value for d in t.shape], str(t.dtype)) for t in outs]
    module = te.lower(topi.schedule(outs, X2), [*args, *outs], "operator", X2)
    program = BuildManager(X2).build(module).program
    return of_call(program, [*given, *results], results), [program]


# -- graphs: layers of the sizes of networks, and networks


def _steady(values: Any) -> Any:
    """Numbers with 12 bits behind the first: sums of another order, as other processors make them, are the same."""
    mantissa, exponent = np.frexp(np.asarray(values, np.float64))
    return np.ldexp(np.rint(mantissa * 4096) / 4096, exponent)


def steady(found: Calibration) -> Calibration:
    """Statistics that are the same on all machines, without histograms: tables take all values alike then."""
    numbers = ("least", "most", "running_least", "running_most", "mean", "std", "mad", "bound")

    def record(one: Record) -> Record:
        return replace(one, counts=np.zeros(0), **{n: float(_steady(getattr(one, n))) for n in numbers})

    def moments(one: Moments) -> Moments:
        return replace(one, mean=_steady(one.mean), products=None if one.products is None else _steady(one.products))

    return replace(
        found,
        records={name: record(one) for name, one in found.records.items()},
        moments={name: moments(one) for name, one in found.moments.items()},
    )


def _graph(graph: Graph, inputs: Mapping[str, np.ndarray[Any, Any]], target: str) -> tuple[Outcome, list[Program]]:
    from compassc.gbuilder.build import GraphOptions, build_in_memory
    from compassc.layers.real_values import to_raw

    with tempfile.TemporaryDirectory() as folder:
        out, options = Path(folder) / "aipu.bin", GraphOptions(work_dir=Path(folder) / "kernels")
        program = Program.load(build_in_memory(graph, Path(folder), out, target, options).path)
    return of_graph(program, {t.name: to_raw(t, inputs[t.name]) for t in graph.inputs}), [program]


@cache
def _form_table() -> Mapping[str, Any]:
    from benchmarks.layer_forms import forms

    return {form.name.replace("/", " by "): form for form in forms()}


def _form_names() -> Iterator[str]:
    yield from (f"{name}/{dtype}/{t}" for name in _form_table() for dtype in ("float32", "int8") for t in (X2, X3))


def _form(name: str) -> tuple[Outcome, list[Program]]:
    from compassc.quantizer.convert import quantize

    called, dtype, target = name.split("/")
    form = _form_table()[called]
    graph, data = form.graph(), form.data()
    if dtype == "int8":
        settings, samples = Settings.preset("int8"), [{n: a[i : i + 1] for n, a in data.items()} for i in range(4)]
        graph = quantize(graph, steady(calibrate(graph, samples, settings)), settings)
    return _graph(graph, {name: a[:1] for name, a in data.items()}, target)


def _network_names() -> Iterator[str]:
    """Every network of 8 bits, half of them of floats, one in each of the other forms."""
    from tests.networks.whole import FORMS, NETWORKS

    for form in FORMS:
        every = {"int8": 1, "float32": 2}.get(form, len(NETWORKS))
        yield from chosen((f"{name}/{form}" for name in NETWORKS), every)


def _network(name: str) -> tuple[Outcome, list[Program]]:
    from tests.networks.whole import POSITIVE, drawn, in_form, network

    called, form = name.split("/")
    graph, _ = in_form(called, form, steady)
    return _graph(graph, drawn(network(called), 77, form in POSITIVE), X2)


FAMILIES = {
    "examples": Family(_example_names, _example, 5),
    "forms": Family(_form_names, _form, 100),
    "layers": Family(_layer_names, _layer, 200),
    "topi": Family(lambda: iter(_topi_samples()), _topi, 120),
    "networks": Family(_network_names, _network, 0),
}
"""Name -> family. `forms` are layers of the sizes of networks, on both generations."""
sys.path.insert(0, str(ROOT / "examples"))


def _measured(case: str) -> tuple[Outcome, list[Program]]:
    family, _, name = case.partition("/")
    return FAMILIES[family].measured(name)


def measure(case: str) -> Outcome:
    """What a case gives, by FAMILY/CASE; the reason where the toolchain refuses it."""
    try:
        return _measured(case)[0]
    except CompassError as error:
        return Outcome(refused=error.message.partition("\n")[0])


def programs(case: str) -> list[Program]:
    """The programs of a case."""
    return _measured(case)[1]

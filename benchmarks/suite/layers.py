"""Layers of one type each in int8 against float32: estimated cycles, which are the same in every run, and times of whole
calls, which the words tell."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.core import Goal, Result, median, seconds, side_by_side
from benchmarks.layer_forms import Form, forms
from compassc.graph import Graph
from compassc.graph.dtypes import numpy_dtype

from ._examples import TARGET

ROUNDS = 5
FORMS = {form.name: form for form in forms()}
GOALS = {name: Goal(f"{name}, estimated cycles of int8 / float32", "x", 1.0) for name in FORMS}


class Built(NamedTuple):
    """A layer that is ready to run, and what a run of it costs."""

    run: Callable[[], object]
    cycles: int


def measure() -> dict[str, Result]:
    return {name: _compared(form) for name, form in FORMS.items()}


def _compared(form: Form) -> Result:
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        graphs = {"float32": form.graph(), "int8": form.quantised()}
        real, whole = (_built(graph, Path(folder, name)) for name, graph in graphs.items())
        times = side_by_side([lambda: seconds(real.run), lambda: seconds(whole.run)], ROUNDS)
    ours, theirs = (1000 * median(t) for t in (times[1], times[0]))
    words = f"{whole.cycles:,} and {real.cycles:,} cycles, {ours:.2f} and {theirs:.2f} ms"
    left = {t.dtype for layer in graphs["int8"].computing() for t in layer.outputs} & {"float16", "float32"}
    return Result(whole.cycles / real.cycles, words + (", left as floats by the quantiser" if left else ""))


def _built(graph: Graph, folder: Path) -> Built:
    from compass_runtime import Program
    from compass_runtime.profile.collect import counting
    from compass_runtime.profile.result import profile_of
    from compassc.gbuilder.build import GraphOptions, build_model
    from compassc.graph import files

    folder.mkdir()
    text, weights, target = folder / "graph.txt", folder / "graph.bin", folder / "aipu.bin"
    files.save(graph, text)
    build_model(text, weights, target, TARGET, GraphOptions(work_dir=folder / "kernels"))
    program = Program.load(target)
    source = np.random.default_rng(0)
    inputs: dict[str, Any] = {
        t.name: (source.integers(t.low, t.high + 1, t.shape) if t.is_integer else source.normal(0, 1, t.shape)).astype(
            numpy_dtype(t.dtype)
        )
        for t in graph.inputs
    }
    counted = counting(program).program.create_job()
    counted.run(inputs, record=True)
    assert counted.result is not None
    job = program.create_job()
    return Built(lambda: job.run(inputs), profile_of(program, counted.result).cycles)

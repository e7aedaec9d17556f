"""Networks on the simulator against ONNX Runtime's CPU execution of the same networks with two threads.

Times are of whole calls, with the inputs handed in and the outputs handed out. They are medians of several runs in a row of one
side, after a rest and some runs that do not count, and the sides take turns block by block: ONNX Runtime's threads wait busily
for milliseconds after a run, which would take a processor from what is measured right after it. Cycles are the profiler's
estimates. Both start from one ONNX model in float32 and quantise it with the same samples, each by its own quantiser. What
comes out is compared with the float32 of ONNX Runtime first. Where the time goes is a table for each network, of its launches
against their floors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import compassc
from benchmarks.core import Goal, Result, in_a_row, median, median_ratio, seconds, side_by_side
from benchmarks.floors import rows, text
from benchmarks.networks import NETWORKS, Network
from compass_core.arrays import Array
from compassc.models import Model

from ._examples import TARGET

if TYPE_CHECKING:
    from onnx import ModelProto

THREADS = 2
ROUNDS = 7
SAMPLES = 4
"""To calibrate with."""
NEAR = {"float32": 0.999999, "int8": 0.98}
"""The least cosine of our outputs and those of ONNX Runtime in float32."""
FLOATS = ("GRU", "LSTM", "RNN")
"""Operators that ONNX Runtime's quantiser leaves as floats."""
GOALS = {
    key: goal
    for name, net in NETWORKS.items()
    for key, goal in {
        f"{name} float32": Goal(f"{net.title} float32, ONNX Runtime / simulator", "x", 0.6, at_most=False),
        f"{name} int8": Goal(f"{net.title} int8, ONNX Runtime / simulator", "x", 0.6, at_most=False),
        f"{name} time": Goal(f"{net.title}, time of int8 / float32", "x", 1.0),
        f"{name} cycles": Goal(f"{net.title}, estimated cycles of int8 / float32", "x", 1.0),
    }.items()
}


@dataclass(frozen=True)
class Form:
    """A network in one data type, ready to run both ways on one sample. `words` say what is not of that type."""

    model: Model
    sample: Mapping[str, Array]
    run: Callable[[], object]
    reference: Callable[[], list[Array]]
    words: str = ""

    def cosine(self, wanted: list[Array]) -> float:
        """The least of all outputs."""
        made = self.model.run(self.sample)
        pairs = [(np.ravel(made[t.name]), np.ravel(b)) for t, b in zip(self.model.outputs, wanted, strict=True)]
        return min(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in pairs)


def measure() -> dict[str, Result]:
    found: dict[str, Result] = {}
    for name, net in NETWORKS.items():
        found |= {f"{name} {key}": result for key, result in _network(net).items()}
    return found


def _network(net: Network) -> dict[str, Result]:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as missing:
        words = f"{missing.name} is not installed"
        return dict.fromkeys(("float32", "int8", "time", "cycles"), Result(None, words))
    forms = _forms(net.model())
    wanted = forms["float32"].reference()
    for dtype, form in forms.items():
        if not (cosine := form.cosine(wanted)) >= NEAR[dtype]:
            raise RuntimeError(f"{net.title} in {dtype}: it differs from ONNX Runtime's float32, cosine {cosine:.6f}")
    runs = [run for form in forms.values() for run in (form.run, form.reference)]
    samples = side_by_side([in_a_row(lambda run=run: seconds(run)) for run in runs], ROUNDS)
    ours, theirs = samples[::2], samples[1::2]
    cycles = [form.model.profile(**form.sample).cycles for form in forms.values()]
    for dtype, form in forms.items():
        print(text(f"{net.title}, {dtype}", rows(form.model, form.sample)))
    found = {
        dtype: Result(
            median_ratio(b, a), f"{1000 * median(b):.2f} ms, simulator {1000 * median(a):.2f} ms{forms[dtype].words}"
        )
        for dtype, a, b in zip(forms, ours, theirs, strict=True)
    }
    found["time"] = Result(median_ratio(ours[1], ours[0]))
    millions = ", ".join(f"{n / 1e6:.1f} M {dtype}" for n, dtype in zip(cycles, forms, strict=True))
    found["cycles"] = Result(cycles[1] / cycles[0], millions)
    return found


def _forms(model: ModelProto) -> dict[str, Form]:
    """Both data types of a network; random samples, of which the first is the one that is run."""
    from benchmarks.onnx_runtime import quantised
    from tests.networks.whole import drawn

    floats = compassc.compile(model, TARGET)
    names = [given.name for given in model.graph.input]
    sample, *samples = [drawn(floats.graph, seed, False) for seed in range(1 + SAMPLES)]
    whole = compassc.compile(model, TARGET, calibrate=samples)
    theirs = quantised(model, [dict(zip(names, given.values(), strict=True)) for given in samples])
    left = {node.op_type for node in theirs.graph.node}.intersection(FLOATS)
    words = f", {', '.join(left)} left as floats by ONNX Runtime's quantiser" if left else ""
    return {"float32": _form(floats, model, sample), "int8": _form(whole, theirs, sample, words)}


def _form(model: Model, reference: ModelProto, sample: Mapping[str, Array], words: str = "") -> Form:
    from benchmarks.onnx_runtime import session

    job, raw, theirs = model.program.create_job(), model.raw_inputs(sample), session(reference, THREADS)
    given = dict(zip((i.name for i in theirs.get_inputs()), sample.values(), strict=True))
    return Form(model, sample, lambda: job.run(raw), lambda: theirs.run(None, given), words)

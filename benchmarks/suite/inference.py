"""Networks on the simulator against ONNX Runtime's CPU execution of the same networks with two threads.

Times are of whole calls, with the image handed in and the classes handed out. Cycles are the profiler's estimates. What
both give is compared first: the classes of a float network are the same to a thousandth, those of a quantised one
point the same way. Where the time goes is a table for each network, of its launches against their floors.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core import Goal, Result, median, median_ratio, seconds, side_by_side
from benchmarks.floors import Row, rows, text
from benchmarks.networks import NETWORKS, Array, Network, Quantised, quantised

from ._examples import TARGET

THREADS = 2
ROUNDS = 7
NEAR = {"float32": 0.999999, "int8": 0.98}
"""The least cosine of what both give."""
GOALS = {
    key: goal
    for name in NETWORKS
    for key, goal in {
        f"{name} float32": Goal(f"{name} float32, ONNX Runtime / simulator", "x", 0.6, at_most=False),
        f"{name} int8": Goal(f"{name} int8, ONNX Runtime / simulator", "x", 0.6, at_most=False),
        f"{name} time": Goal(f"{name}, time of int8 / float32", "x", 1.0),
        f"{name} cycles": Goal(f"{name}, estimated cycles of int8 / float32", "x", 1.0),
    }.items()
}


@dataclass(frozen=True)
class Form:
    """A network in one data type, ready to run both ways."""

    run: Callable[[], Array]
    reference: Callable[[], Array] | None
    cycles: Callable[[], int]
    launches: Callable[[], list[Row]]


def measure() -> dict[str, Result]:
    found: dict[str, Result] = {}
    for name, make in NETWORKS.items():
        found |= {f"{name} {key}": result for key, result in _network(make()).items()}
    return found


def _network(net: Network) -> dict[str, Result]:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as missing:
        words = f"{missing.name} is not installed"
        return dict.fromkeys(("float32", "int8", "time", "cycles"), Result(None, words))
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        scales = quantised(net, _tensors(net))
        forms = {dtype: _form(net, Path(folder, dtype), used) for dtype, used in (("float32", None), ("int8", scales))}
        for dtype, form in forms.items():
            _agree(net.name, dtype, form)
        runs = [run for form in forms.values() for run in (form.run, form.reference) if run is not None]
        samples = side_by_side([lambda run=run: seconds(run) for run in runs], ROUNDS)
        ours, theirs = samples[::2], samples[1::2]
        cycles = [form.cycles() for form in forms.values()]
        for dtype, form in forms.items():
            print(text(f"{net.name}, {dtype}", form.launches()))
    found = {
        dtype: Result(median_ratio(b, a), f"{1000 * median(b):.0f} ms, simulator {1000 * median(a):.0f} ms")
        for dtype, a, b in zip(forms, ours, theirs, strict=True)
    }
    found["time"] = Result(median_ratio(ours[1], ours[0]))
    millions = ", ".join(f"{n / 1e6:.1f} M {dtype}" for n, dtype in zip(cycles, forms, strict=True))
    found["cycles"] = Result(cycles[1] / cycles[0], millions)
    return found


def _session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _planar(net: Network) -> dict[str, Array]:
    """The image as ONNX wants it."""
    return {"x": np.ascontiguousarray(net.image().transpose(0, 3, 1, 2))}


def _tensors(net: Network) -> dict[str, Array]:
    """What every tensor holds in float32."""
    from benchmarks.onnx_form import onnx_model

    names = [layer.name for layer in net.layers]
    values = _session(onnx_model(net, outputs=names)).run(None, _planar(net))
    return {"x": net.image(), **dict(zip(names, values, strict=True))}


def _form(net: Network, folder: Path, scales: dict[str, Quantised] | None) -> Form:
    from benchmarks.compass_form import write_graph
    from benchmarks.onnx_form import onnx_model
    from compass_runtime import Program
    from compass_runtime.profile.collect import counting
    from compass_runtime.profile.result import profile_of
    from compassc.gbuilder.build import GraphOptions, build_model

    graph = write_graph(net, folder, scales)
    build_model(graph, folder / "weight.bin", folder / "aipu.bin", TARGET, GraphOptions(work_dir=folder / "kernels"))
    program = Program.load(folder / "aipu.bin")
    image = net.image()
    if scales:
        image = np.clip(np.rint(image * scales["x"].scale), -128, 127).astype(np.int8)
    job = program.create_job()

    def run() -> Array:
        (classes,) = job.run({"x": image}).values()
        return classes

    def cycles() -> int:
        counted = counting(program).program.create_job()
        counted.run({"x": image}, record=True)
        assert counted.result is not None
        return profile_of(program, counted.result).cycles

    def launches() -> list[Row]:
        return rows(net, "int8" if scales else "float32", folder / "aipu.bin", {"x": image})

    session, planar = _session(onnx_model(net, scales)), _planar(net)
    return Form(run, lambda: session.run(None, planar)[0], cycles, launches)


def _agree(name: str, dtype: str, form: Form) -> None:
    """The classes of both point the same way, or nothing is worth measuring."""
    if form.reference is None:
        return
    a, b = (run().astype(np.float64).reshape(-1) for run in (form.run, form.reference))
    cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    if not cosine >= NEAR[dtype]:
        raise RuntimeError(f"{name} in {dtype}: the simulator and ONNX Runtime differ, cosine {cosine:.6f}")

"""Networks in float32 on the host by Relay, with default schedules, against ONNX Runtime, on one thread each.

Times are of the processor and of the calling thread alone, the least of several by turns: what else the machine does matters
little. Builds are cold, with all the cache that they find empty.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks.core import Goal, Result
from benchmarks.networks import NETWORKS

GOALS = {
    key: goal
    for name in (*NETWORKS, "encoder")
    for key, goal in {
        name: Goal(f"{name} float32 on the host, ONNX Runtime / ours, 1 thread", "x", 0.5, at_most=False),
        f"{name} build": Goal(f"{name}, cold build for the host", "s", 60.0),
    }.items()
}
_PROGRAM = """
import sys, time
import numpy as np
import onnxruntime
from benchmarks.host_forms import forms
from compass_runtime.devices import cpu
from compass_runtime.graph_executor import GraphModule
from compassc.pass_manager.context import PassContext
from compassc.relay import build
module, model, x = forms(sys.argv[1])
start = time.perf_counter()
with PassContext(opt_level=3):
    library = build(module, "llvm -num-cores=1")
took = time.perf_counter() - start
graph = GraphModule(library["default"](cpu()))
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
graph.run(x=x)
(wanted,) = session.run(None, {"x": x})
np.testing.assert_allclose(graph.get_output(0).numpy(), wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
def one(f):
    start = time.thread_time(); f(); return time.thread_time() - start
times = [[one(graph.run), one(lambda: session.run(None, {"x": x}))] for _ in range(15)]
print(took, *[min(column) for column in zip(*times)])
"""


def measure() -> dict[str, Result]:
    """Each network in a process of its own."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return {key: Result(None, "onnxruntime is not installed") for key in GOALS}
    found = {}
    for name in (*NETWORKS, "encoder"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _PROGRAM, name]
            given = {**os.environ, "COMPASS_CACHE_DIR": folder}
            done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
        took, ours, other = map(float, done.stdout.split())
        found[name] = Result(other / ours, f"{1e3 * ours:.1f} ms, ONNX Runtime {1e3 * other:.1f} ms")
        found[f"{name} build"] = Result(took)
    return found

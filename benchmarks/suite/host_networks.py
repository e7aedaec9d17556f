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

NAMES = ("resnet18", "mobilenet", "encoder")
GOALS = {
    key: goal
    for name in NAMES
    for key, goal in {
        name: Goal(
            f"{NETWORKS[name].title} float32 on the host, ONNX Runtime / ours, 1 thread", "x", 0.5, at_most=False
        ),
        f"{name} build": Goal(f"{NETWORKS[name].title}, cold build for the host", "s", 60.0),
    }.items()
}
_PROGRAM = """
import sys, time
import numpy as np
from benchmarks.networks import NETWORKS
from benchmarks.onnx_runtime import session
from compass_runtime.devices import cpu
from compass_runtime.graph_executor import GraphModule
from compassc.importers import import_object
from compassc.pass_manager.context import PassContext
from compassc.relay import build
from compassc.relay.frontend import from_onnx
from tests.networks.whole import drawn
model = NETWORKS[sys.argv[1]].model()
given = drawn(import_object(model), 0, False)
inputs = dict(zip((i.name for i in model.graph.input), given.values()))
module, params = from_onnx(model)
start = time.perf_counter()
with PassContext(opt_level=3):
    library = build(module, "llvm -num-cores=1", params=params)
took = time.perf_counter() - start
graph = GraphModule(library["default"](cpu()))
other = session(model, 1)
graph.run(**inputs)
for i, wanted in enumerate(other.run(None, inputs)):
    np.testing.assert_allclose(graph.get_output(i).numpy(), wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())
def one(f):
    start = time.thread_time(); f(); return time.thread_time() - start
times = [[one(graph.run), one(lambda: other.run(None, inputs))] for _ in range(15)]
print(took, *[min(column) for column in zip(*times)])
"""


def measure() -> dict[str, Result]:
    """Each network in a process of its own."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return {key: Result(None, "onnxruntime is not installed") for key in GOALS}
    found = {}
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _PROGRAM, name]
            given = {**os.environ, "COMPASS_CACHE_DIR": folder}
            done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
        took, ours, other = map(float, done.stdout.split())
        found[name] = Result(other / ours, f"{1e3 * ours:.1f} ms, ONNX Runtime {1e3 * other:.1f} ms")
        found[f"{name} build"] = Result(took)
    return found

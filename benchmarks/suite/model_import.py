"""`compassc import` of ONNX models of 100 and 2,000 nodes as a new process: convolutions, normalisations, spelled-out GELUs."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core import Goal, Result, environment, median, seconds

from ._examples import compassc_command

GOALS = {
    "hundred": Goal("compassc import of 100 nodes, new process", "s", 1),
    "thousands": Goal("compassc import of 2,000 nodes, new process", "s", 10),
}
NODES = {"hundred": 100, "thousands": 2000}
ROUNDS = 3
CHANNELS = 16


def measure() -> dict[str, Result]:
    found = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        work = Path(folder)
        variables = environment(work)
        for key, count in NODES.items():
            path = work / f"{key}.onnx"
            path.write_bytes(model(count).SerializeToString())
            command = [*compassc_command(), "import", str(path)]

            def run(command: list[str] = command) -> str:
                done = subprocess.run(command, cwd=work, env=variables, check=True, capture_output=True, text=True)
                return done.stderr

            summary = run().splitlines()[0]
            found[key] = Result(median(seconds(run) for _ in range(ROUNDS)), summary)
    return found


def model(count: int) -> Any:
    """Blocks of ten nodes until there are `count`."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(array: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(array, np.float32), f"c{len(constants)}"))
        return f"c{len(constants) - 1}"

    def add(op: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [f"t{len(nodes)}"], f"n{len(nodes)}", **attributes))
        return f"t{len(nodes) - 1}"

    x = "x"
    ones = constant(np.ones(CHANNELS))
    while len(nodes) + 10 <= count:
        y = x
        for _ in range(2):
            weights = constant(random.standard_normal((CHANNELS, CHANNELS, 3, 3)) / 12)
            y = add("Conv", y, weights, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
            y = add("BatchNormalization", y, ones, constant(random.standard_normal(CHANNELS)), ones, ones)
        half = add("Add", add("Erf", add("Div", y, constant(np.sqrt(2)))), constant(1.0))
        x = add("Add", add("Mul", add("Mul", y, half), constant(0.5)), x)
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, CHANNELS, 16, 16])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, CHANNELS, 16, 16])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

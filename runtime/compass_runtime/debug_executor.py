"""Graphs run node by node: each node's time, what each gives, and files of both."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from compass_core import files
from compass_runtime.devices import Device, cpu
from compass_runtime.errors import RuntimeStateError, RuntimeValueError
from compass_runtime.graph_executor import GraphExecutor, GraphModule
from compass_runtime.module import Module
from compass_runtime.ndarray import NDArray
from compass_runtime.param_dict import save_param_dict
from compass_runtime.profile.calls import Call, Count, Duration, Percent, Report
from compass_runtime.timing import BenchmarkResult, Plan, measure

WARM_UPS = 3
GRAPH, TENSORS, TRACE = "_tvmdbg_graph_dump.json", "output_tensors.params", "_tvmdbg_execution_trace.json"
COLUMNS = ("Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs", "Measurements(us)")


class DebugNode(TypedDict):
    """What is known of a node before it has run."""

    name: str
    op: str
    inputs: list[str]
    attrs: dict[str, str]
    shape: list[int]


class DebugResult:
    """What is known of the nodes of a graph: names, kernels, inputs, shapes, types, and the seconds of each after a run."""

    def __init__(self, executor: GraphExecutor) -> None:
        g = executor.graph
        outputs = [range(first, first + n.outputs) for n, first in zip(g.nodes, g.first)]
        maker = {entry: i for i, entries in enumerate(outputs) for entry in entries}
        self._nodes: list[DebugNode] = [
            {
                "name": n.name,
                "op": n.kernel or "param",
                "inputs": [g.nodes[maker[e]].name for e in n.inputs],
                "attrs": {"T": f"type: {g.dtypes[entries[0]]}"},
                "shape": list(g.shapes[entries[0]]),
            }
            for n, entries in zip(g.nodes, outputs)
        ]
        self._outputs = [n.outputs for n in g.nodes]
        self.times: list[BenchmarkResult] = []

    def get_graph_nodes(self) -> list[DebugNode]:
        """The nodes in the order they run in."""
        return self._nodes

    def get_graph_node_shapes(self) -> dict[str, list[int]]:
        """The shape of the first output of each node, by name."""
        return {n["name"]: n["shape"] for n in self._nodes}

    def rows(self, sort_by_time: bool = True) -> list[list[str]]:
        """A row for each node that a kernel computes, with a last one for all of them where they are sorted."""
        total = sum(r.mean for r in self.times)
        found: list[tuple[float, list[str]]] = []
        for node, result, outputs in zip(self._nodes, self.times, self._outputs):
            if node["op"] == "param":
                continue
            share = result.mean / total * 100 if total else 0.0
            measured = [round(r * 1e6, 3) for r in result.results]
            figures = [f"{round(result.mean * 1e6, 3)}", f"{round(share, 3)}", str(tuple(node["shape"]))]
            counts = [str(len(node["inputs"])), str(outputs), str(measured)]
            found.append((result.mean, [node["name"], node["op"], *figures, *counts]))
        if sort_by_time:
            found.sort(key=lambda pair: -pair[0])
        rows = [row for _, row in found]
        last = ["Total_time", "-", f"{round(total * 1e6, 3)}", "-", "-", "-", "-", "-"]
        return [*rows, last] if sort_by_time else rows

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        """Print the table of `rows`."""
        rows = [list(COLUMNS), ["-" * len(c) for c in COLUMNS], *self.rows(sort_by_time)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        print("\n".join("  ".join(t.ljust(w) for t, w in zip(row, widths)).rstrip() for row in rows))


class GraphModuleDebug(GraphModule):
    """A graph executor that measures its nodes and shows what they give."""

    def __init__(
        self,
        module: GraphExecutor,
        device: Device | Sequence[Device],
        graph_json_str: str,
        dump_root: str | None = None,
    ) -> None:
        super().__init__(module)
        devices = [device] if isinstance(device, Device) else list(device)
        own = devices[0] if devices else cpu()
        self._device = f"{own.kind}{own.index}"
        root = Path(dump_root or tempfile.mkdtemp(prefix="tvmdbg_"))
        self._dump_path = root / f"_tvmdbg_device_{own.kind.upper()}_{own.index}"
        self.debug_datum = DebugResult(module)
        steps = {id(node): step for node, step in module.steps}
        self._steps: list[Callable[[], object] | None] = [steps.get(id(node)) for node in module.graph.nodes]

    def run(
        self,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 1,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        sort_by_time: bool = True,
        **inputs: Any,
    ) -> None:
        """Measure each node, run the graph node by node, write what nodes give to the dump folder, and print a table."""
        if inputs:
            self.set_input(**inputs)
        plan = Plan(
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
        )
        self.debug_datum.times = self._measured(plan)
        self._dump()
        self.debug_datum.display_debug_result(sort_by_time)

    def run_individual(
        self,
        number: int,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
    ) -> list[list[float]]:
        """Seconds of each node, `repeat` of them; 0 for inputs."""
        plan = Plan(
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
        )
        return [list(result.results) for result in self._measured(plan)]

    def run_individual_node(
        self,
        index: int,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
    ) -> BenchmarkResult:
        """Seconds of one node, after those before it were run. RuntimeValueError where there is none of that number."""
        self._known(index)
        self._run_to(index - 1)
        plan = Plan(
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
        )
        return self._of_node(index, plan)

    def profile(self, collectors: Sequence[object] | None = None, **inputs: Any) -> Report:
        """What each kernel takes in one run, after three others. RuntimeStateError for `collectors`: there are none."""
        if collectors:
            raise RuntimeStateError("there are no collectors of metrics here", code="profile", help="leave it out")
        if inputs:
            self.set_input(**inputs)
        for _ in range(WARM_UPS):
            self.module.run()
        graph, times = self.module.graph, []
        begun = time.perf_counter()
        for step in self._steps:
            start = time.perf_counter()
            if step is not None:
                step()
            times.append((time.perf_counter() - start) * 1e6)
        total = (time.perf_counter() - begun) * 1e6
        calls: list[Call] = []
        for i, (node, took) in enumerate(zip(graph.nodes, times)):
            if self._steps[i] is None:
                continue
            entries = [*node.inputs, *range(graph.first[i], graph.first[i] + node.outputs)]
            shapes = ", ".join(f"{graph.dtypes[e]}[{', '.join(map(str, graph.shapes[e]))}]" for e in entries)
            calls.append(
                {
                    "Name": node.kernel, "Duration (us)": Duration(took), "Percent": Percent(took / total * 100),
                    "Device": self._device, "Count": Count(1), "Argument Shapes": shapes,
                }
            )  # fmt: skip
        whole: Call = {"Duration (us)": Duration(total), "Percent": Percent(100.0), "Count": Count(1)}
        return Report(calls, {self._device: whole}, {"Executor": "Graph"})

    def debug_get_output(self, node: int | str, out: NDArray | Device | None = None) -> NDArray:
        """The first output of a node, by number or name, after the graph was run up to it; with `out` a copy in it. AttributeError
        for a name that no node has."""
        index = self._index(node)
        self._run_to(index)
        found = self.module.entries[self.module.graph.first[index]]
        made = NDArray(found.numpy().copy())
        if out is not None:
            made.copyto(out)
        return made

    def exit(self) -> None:
        """Remove the dump folder."""
        shutil.rmtree(self._dump_path, ignore_errors=True)

    # -- within

    def _index(self, node: int | str) -> int:
        if not isinstance(node, str):
            return self._known(node)
        for i, n in enumerate(self.module.graph.nodes):
            if n.name == node:
                return i
        raise AttributeError(f"Could not find a node named {node} in this graph.")

    def _known(self, index: int) -> int:
        if not 0 <= index < len(self._steps):
            raise RuntimeValueError(
                f"there is no node {index}: the graph has {len(self._steps)}", code="graph-output",
                help="give a number of debug_datum.get_graph_nodes()",
            )  # fmt: skip
        return index

    def _run_to(self, index: int) -> None:
        for step in self._steps[: index + 1]:
            if step is not None:
                step()

    def _of_node(self, index: int, plan: Plan) -> BenchmarkResult:
        step = self._steps[index]
        if step is None:
            return BenchmarkResult((0.0,) * plan.repeat)

        def once() -> None:
            step()

        return measure(once, plan)

    def _measured(self, plan: Plan) -> list[BenchmarkResult]:
        self._run_to(len(self._steps))  # memory that is shared has what each node needs only in order
        found = []
        for i, step in enumerate(self._steps):
            found.append(self._of_node(i, plan))
            if step is not None:
                step()
        return found

    def _dump(self) -> None:
        """Run node by node, and write the graph, what nodes give and when they ran."""
        graph, tensors, events = self.module.graph, {}, []
        clock = time.perf_counter()
        for i, node in enumerate(graph.nodes):
            for phase in "BE":
                events.append(
                    {"ts": (time.perf_counter() - clock) * 1e6, "tid": 1, "pid": 1, "name": node.name, "ph": phase}
                )
                if phase == "B" and (step := self._steps[i]) is not None:
                    step()
            for n in range(node.outputs):
                value = self.module.entries[graph.first[i] + n]
                tensors[f"{node.name}____topo-index:{i}____output-num:{n}"] = NDArray(value.numpy().copy())
        self._dump_path.mkdir(parents=True, exist_ok=True)
        shown: Mapping[str, object] = {**json.loads(self.module.text), "nodes": self.debug_datum.get_graph_nodes()}
        files.write(self._dump_path / GRAPH, json.dumps(shown, indent=4, sort_keys=True))
        files.write(self._dump_path / TENSORS, bytes(save_param_dict(tensors)))
        files.write(self._dump_path / TRACE, json.dumps({"displayTimeUnit": "ns", "traceEvents": events}))


def create(
    graph_json_str: str, libmod: Module, device: Device | Sequence[Device], dump_root: str | None = None
) -> GraphModuleDebug:
    """A graph with the library of its kernels on a device, node by node. Parameters that the library has are set."""
    devices = [device] if isinstance(device, Device) else list(device)
    params = libmod["get_graph_params"]() if libmod.implements_function("get_graph_params") else {}
    return GraphModuleDebug(GraphExecutor(graph_json_str, libmod, devices, params), devices, graph_json_str, dump_root)

"""Graphs run node by node: what nodes give, how long they take, the files and reports of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_runtime.debug_executor import GRAPH, TENSORS, TRACE, GraphModuleDebug, create
from compass_runtime.devices import cpu
from compass_runtime.errors import RuntimeStateError, RuntimeValueError
from compass_runtime.param_dict import load_param_dict
from compass_runtime.profile.calls import Count, Duration, Metric, Percent, Ratio, Report
from compassc import relay
from compassc.relay.backend.build import build

X = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.fixture(scope="module")
def library() -> object:
    x = relay.var("x", shape=(2, 3))
    body = relay.exp(relay.reshape(relay.nn.softmax(relay.abs(x)), (3, 2)))
    return build(relay.IRModule({"main": relay.Function([x], body)}), "llvm")


@pytest.fixture
def graph(library, tmp_path: Path) -> GraphModuleDebug:  # type: ignore[no-untyped-def]
    return create(library.get_graph_json(), library.module, cpu(), str(tmp_path))


def test_nodes_give_what_a_whole_run_gives(graph: GraphModuleDebug) -> None:
    graph.set_input("x", X)
    nodes = graph.debug_datum.get_graph_nodes()
    given = {n["name"]: graph.debug_get_output(i).numpy() for i, n in enumerate(nodes)}
    assert (given["x"] == X).all()
    graph.module.run()
    assert (given[nodes[-1]["name"]] == graph.get_output(0).numpy()).all()
    assert all(given[n["name"]].shape == tuple(n["shape"]) for n in nodes)


def test_a_run_writes_its_files_and_a_table(graph: GraphModuleDebug, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    graph.run(number=1, min_repeat_ms=0, x=X)
    table = capsys.readouterr().out
    assert table.splitlines()[0].split()[:3] == ["Node", "Name", "Ops"] and "Total_time" in table
    folder = tmp_path / "_tvmdbg_device_CPU_0"
    nodes = json.loads((folder / GRAPH).read_text())["nodes"]
    assert [n["name"] for n in nodes] == [n["name"] for n in graph.debug_datum.get_graph_nodes()]
    assert nodes[0]["op"] == "param" and nodes[0]["attrs"]["T"] == "type: float32"
    tensors = load_param_dict((folder / TENSORS).read_bytes())
    assert (tensors["x____topo-index:0____output-num:0"].numpy() == X).all()
    last = f"{nodes[-1]['name']}____topo-index:{len(nodes) - 1}____output-num:0"
    assert (tensors[last].numpy() == graph.get_output(0).numpy()).all()
    events = json.loads((folder / TRACE).read_text())["traceEvents"]
    assert [e["ph"] for e in events] == ["B", "E"] * len(nodes)
    assert [e["ts"] for e in events] == sorted(e["ts"] for e in events)
    graph.exit()
    assert not folder.exists()


def test_single_nodes_are_measured(graph: GraphModuleDebug) -> None:
    times = graph.run_individual(number=1, repeat=3)
    kernels = [n["op"] not in ("param", "__nop") for n in graph.debug_datum.get_graph_nodes()]
    assert [all(t > 0 for t in row) for row in times] == kernels and all(len(row) == 3 for row in times)
    assert len(graph.run_individual_node(kernels.index(True), number=1, repeat=2).results) == 2


def test_a_profile_is_a_report(graph: GraphModuleDebug) -> None:
    report = graph.profile(x=X)
    names = [n["op"] for n in graph.debug_datum.get_graph_nodes() if n["op"] not in ("param", "__nop")]
    assert [c["Name"] for c in report.calls] == names
    assert report.calls[0]["Argument Shapes"] == "float32[2, 3], float32[2, 3]"
    lines = str(report).splitlines()
    assert lines[0].startswith("Name") and any(line.startswith("Total") for line in lines)
    assert "Executor: Graph" in lines


def test_what_is_not_there_is_named(graph: GraphModuleDebug) -> None:
    with pytest.raises(AttributeError, match="Could not find a node named nowhere in this graph"):
        graph.debug_get_output("nowhere")
    with pytest.raises(RuntimeValueError, match="there is no node 99"):
        graph.run_individual_node(99)
    with pytest.raises(RuntimeStateError, match="no collectors"):
        graph.profile(collectors=[object()])


def test_the_factory_makes_it(library) -> None:  # type: ignore[no-untyped-def]
    made = GraphModuleDebug(library["debug_create"]("default", cpu()), [cpu()], library.get_graph_json())
    assert made.profile(x=X).calls
    made.exit()


NUMBERS = st.floats(0, 1e6)
METRICS = {
    "Name": st.sampled_from("abc"), "Duration (us)": NUMBERS.map(Duration), "Percent": NUMBERS.map(Percent),
    "Count": st.integers(1, 9).map(Count), "Device": st.just("cpu0"), "Reuse": NUMBERS.map(Ratio),
}  # fmt: skip
REPORTS = st.builds(
    Report,
    st.lists(st.fixed_dictionaries(METRICS), max_size=6),
    st.just({"cpu0": {"Duration (us)": Duration(3.0)}}),
    st.just({"Executor": "Graph"}),
)


@given(REPORTS)
def test_reports_come_back_from_json_and_sums_stay(report: Report) -> None:
    again = Report.from_json(report.json())
    assert vars(again) == vars(report)
    assert len(report.csv().splitlines()) == len(report.calls) + 1

    def sums(table: str) -> list[str]:
        return [line for line in table.splitlines() if line.startswith(("Sum", "Total"))]

    merged, plain = sums(report.table()), sums(report.table(sort=False, aggregate=False))
    assert [line.split()[0] for line in merged] == [line.split()[0] for line in plain]
    counted: list[Metric] = [c["Count"] for c in report.calls]
    if counted:
        assert str(sum(c.count for c in counted if isinstance(c, Count))) in merged[0].split()


@pytest.mark.parametrize("text", ["{}", "[]", '{"calls": [{"a": {"b": 1}}], "device_metrics": {}}', "3"])
def test_damaged_reports_are_refused(text: str) -> None:
    with pytest.raises(RuntimeValueError, match="this is no report"):
        Report.from_json(text)

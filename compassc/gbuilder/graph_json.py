"""The note `graphjson` (and `temp.graph.json`) of a build: the graph's tensors with their places, and its launches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compass_core.aipubin.dtypes import element_dtype
from compass_core.aipubin.graphnote import BEFORE_ALL, GraphNote, NotedLaunch, NotedState, NotedTensor
from compassc.gbuilder.launches import Launch
from compassc.gbuilder.memory import Plan, nbytes, owner
from compassc.gbuilder.nodes import Nodes
from compassc.gbuilder.plugin_api import Tensor
from compassc.graph.states import states_of

FILE = "temp.graph.json"
"""The file in which vendor tools look for the same text."""


def graph_note(graph: Nodes, runs: Sequence[Launch], planned: Plan) -> GraphNote:
    """The note of a graph that was built."""
    places = {
        id(placed.tensor): (number, placed.offset)
        for number, section in enumerate(planned.sections)
        for placed in section.placements
    }
    ends = {id(t) for t in (*graph.inputs, *graph.outputs)}
    merged = [run.match.merged for run in runs]
    seen = {id(t): t for m in merged for t in (*m.inputs, *m.outputs) if not t.is_constant and id(t) not in ends}
    made = _made(runs, [*graph.inputs, *graph.outputs, *seen.values()])
    between = [_noted(t, places, made[id(t)]) for t in seen.values()]
    return GraphNote(
        inputs=tuple(_noted(t, places) for t in graph.inputs),
        outputs=tuple(_noted(t, places, made[id(t)]) for t in graph.outputs),
        tensors=tuple(sorted(between, key=lambda t: t.made)),
        launches=tuple(_launch(run) for run in runs),
        states=tuple(
            NotedState(graph.graph.inputs[s.input].name, graph.graph.outputs[s.output].name, s.initial)
            for s in states_of(graph.graph)
        ),
    )


def _made(runs: Sequence[Launch], tensors: Iterable[Tensor]) -> dict[int, int]:
    """By id of a tensor: the last launch that writes a part of its memory."""
    written: dict[int, list[tuple[int, int, int]]] = {}
    for number, run in enumerate(runs):
        for tensor in run.match.merged.outputs:
            of, low = tensor.memory_offset().resolve()
            written.setdefault(id(of), []).append((low, low + nbytes(tensor), number))
    found = {}
    for tensor in tensors:
        of, low = tensor.memory_offset().resolve()
        high = low + nbytes(tensor)
        parts = written.get(id(of), ())
        found[id(tensor)] = max((n for start, end, n in parts if start < high and low < end), default=BEFORE_ALL)
    return found


def _noted(tensor: Tensor, places: dict[int, tuple[int, int]], made: int = BEFORE_ALL) -> NotedTensor:
    known = places.get(id(owner(tensor))) if min(tensor.shape, default=0) >= 0 else None
    offset = tensor.memory_offset().resolve()[1]
    return NotedTensor(
        name=tensor.name,
        dtype=element_dtype(str(tensor.dtype)).name,
        shape=tuple(tensor.shape),
        scale=_numbers(tensor.scale),
        zero_point=_numbers(tensor.zero_point),
        axis=tensor.axis,
        section=known[0] if known else None,
        offset=known[1] + offset if known else 0,
        made=made,
    )


def _numbers(value: object) -> Any:
    """A number, or those of an array as a tuple."""
    listed = value.tolist() if hasattr(value, "tolist") else value
    return tuple(listed) if isinstance(listed, list) else listed


def _launch(run: Launch) -> NotedLaunch:
    merged = run.match.merged
    outside = {id(t) for t in merged.outputs}
    return NotedLaunch(
        names=tuple(node.name for node in run.match.nodes),
        types=tuple(str(node.type) for node in run.match.nodes),
        kernel=run.kernel,
        inputs=tuple(t.name for t in merged.inputs),
        outputs=tuple(t.name for t in merged.outputs),
        inner=tuple(t.name for node in run.match.nodes for t in node.outputs if id(t) not in outside),
    )

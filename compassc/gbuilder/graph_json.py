"""The note `graphjson` (and `temp.graph.json`): names and shapes of a graph's tensors, and what runs in which order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compassc.gbuilder.graph import Graph
from compassc.gbuilder.plugin_api import Tensor

if TYPE_CHECKING:
    from compassc.gbuilder.emit import Launch

FORMAT = "compassc-graph/1"
FILE = "temp.graph.json"
"""Where vendor tools look for the same text."""


def graph_json(graph: Graph, runs: Sequence[Launch]) -> bytes:
    """The note's content. `inputs` and `outputs` are in the runtime's order, `layers` in the order they run."""
    content = {
        "format": FORMAT,
        "inputs": [_tensor(t) for t in graph.inputs],
        "outputs": [_tensor(t) for t in graph.outputs],
        "layers": [
            {
                "names": [node.name for node in run.match.nodes],
                "types": [str(node.type) for node in run.match.nodes],
                "kernel": run.kernel,
                "inputs": [t.name for t in run.match.merged.inputs],
                "outputs": [t.name for t in run.match.merged.outputs],
            }
            for run in runs
        ],
    }
    return json.dumps(content, separators=(",", ":")).encode()


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {"name": tensor.name, "dtype": str(tensor.dtype), "shape": list(tensor.shape)}

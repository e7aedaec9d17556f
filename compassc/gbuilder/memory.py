"""Where the tensors of a graph lie: which section of aipu.bin each one is in, and at which offset.

A section is memory that a job allocates as one piece. `plan` gives every tensor a section of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from compass_core.aipubin.dtypes import element_dtype
from compass_core.aipubin.layout import PAGE, Kind
from compassc.gbuilder.graph import Graph
from compassc.gbuilder.plugin_api import Tensor


class Role(NamedTuple):
    """What a tensor is to the outside: its kind, and its number among the tensors of that kind."""

    kind: Kind
    number: int = 0


class Placement(NamedTuple):
    """A tensor in a section. A tensor may have two roles: a graph's input can be its output, too."""

    tensor: Tensor
    roles: tuple[Role, ...]
    offset: int = 0


class PlannedSection(NamedTuple):
    """`size` bytes of device memory and what lies in them."""

    size: int
    placements: tuple[Placement, ...]


def nbytes(tensor: Tensor) -> int:
    """Bytes of a tensor; 0 when a dim is not known at build time."""
    total = element_dtype(str(tensor.dtype)).size
    for dim in tensor.shape:
        total *= max(dim, 0)
    return total


def plan(graph: Graph) -> list[PlannedSection]:
    """A section for every tensor: inputs, outputs, intermediates. Empty and dynamic tensors get one page."""
    roles: dict[int, list[Role]] = {}
    tensors: dict[int, Tensor] = {}
    for kind, listed in ((Kind.INPUT, graph.inputs), (Kind.OUTPUT, graph.outputs)):
        for index, tensor in enumerate(listed):
            tensors[id(tensor)] = tensor
            roles.setdefault(id(tensor), []).append(Role(kind, index))
    for node in graph.nodes:
        for tensor in [*node.inputs, *node.outputs]:
            if tensor.data is None and id(tensor) not in tensors:
                tensors[id(tensor)] = tensor
                roles[id(tensor)] = [Role(Kind.INTERMEDIATE)]
    return [
        PlannedSection(nbytes(tensor) or PAGE, (Placement(tensor, tuple(roles[key])),))
        for key, tensor in tensors.items()
    ]

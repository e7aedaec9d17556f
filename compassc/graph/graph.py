"""A graph: layers in topological order, and the tensors that they hand on by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span
from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor
from compassc.graph.values import Value

SOURCES = ("Input", "Constant")
"""Layer types that only introduce tensors."""


@dataclass(frozen=True)
class Graph:
    """A graph, which never changes: `compassc.graph.edit` makes others of it.

    Each tensor is made by one layer: those of `inputs` by layers of the type Input, constant ones by layers of the type
    Constant. `inputs` and `outputs` are in the runtime's order; `layers` so that producers come first. `attributes` are
    the further keys of the text's header; `subgraphs` what layers name as branches and bodies. `path` is the text that it
    was read from, for messages.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    layers: tuple[Layer, ...]
    attributes: Mapping[str, Value] = field(default_factory=dict)
    subgraphs: Mapping[str, Graph] = field(default_factory=dict)
    path: str = field(default="", compare=False)

    def producer(self) -> Mapping[str, Layer]:
        """The layer that makes a tensor, by the tensor's name."""
        return self._producer

    def users(self) -> Mapping[str, tuple[Layer, ...]]:
        """The layers that a tensor goes into, by the tensor's name, in order and each once; none for an unused one."""
        return self._users

    def forgotten(self) -> Sequence[Sequence[str]]:
        """For each layer the names of tensors that no layer after it takes."""
        return self._forgotten

    def tensors(self) -> Mapping[str, Tensor]:
        """Every tensor by its name, in the order they are made."""
        return {t.name: t for layer in self.layers for t in layer.outputs}

    def computing(self) -> Iterator[Layer]:
        """The layers that compute something: all but Input and Constant."""
        return (layer for layer in self.layers if layer.type not in SOURCES)

    @cached_property
    def _producer(self) -> dict[str, Layer]:
        return {t.name: layer for layer in self.layers for t in layer.outputs}

    @cached_property
    def _users(self) -> dict[str, tuple[Layer, ...]]:
        found: dict[str, list[Layer]] = {t.name: [] for layer in self.layers for t in layer.outputs}
        for layer in self.layers:
            for name in dict.fromkeys(t.name for t in layer.inputs):
                found.setdefault(name, []).append(layer)
        return {name: tuple(layers) for name, layers in found.items()}

    @cached_property
    def _forgotten(self) -> list[list[str]]:
        last = {t.name: i for i, layer in enumerate(self.layers) for t in layer.outputs}
        last |= {t.name: i for i, layer in enumerate(self.layers) for t in layer.inputs}
        found: list[list[str]] = [[] for _ in self.layers]
        for name, i in last.items():
            found[i].append(name)
        return found

    def written(self) -> tuple[str, bytes]:
        """Text and constants of it, as a module of kernels keeps it."""
        from compassc.graph.text import write

        return write(self)

    def error(self, layer: Layer | None, message: str, help: str = "", code: str = "compass-ir") -> CompassError:
        """The error about a layer, or about the graph as a whole, at its place in the file that it comes from."""
        whole = Span(self.path, 1) if self.path else None
        return error_at(layer.span if layer else whole, message, help, code)


def error_at(span: Span | str | None, message: str, help: str = "", code: str = "compass-ir") -> CompassError:
    """The error at a line of a text, or about a node of a model."""
    if isinstance(span, str):
        return CompassError(message, code=code, notes=(f"it comes from {span}",), help=help)
    return CompassError(message, span, code=code, help=help)

"""Building a graph layer by layer.

g = GraphBuilder("net")
x = g.input("x", (1, 28, 28, 1), "float32")
(y,) = g.layer("RELU", [x], name="act", outputs=[(x.shape, x.dtype)])
graph = g.finish([y])
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compass_core.arrays import Array
from compass_core.errors import Span
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor
from compassc.graph.values import plain

Output = Tensor | tuple[Sequence[int], str]
"""A tensor, or shape and data type of one that is to be named after its layer."""
_UNWRITABLE = re.compile(r"[\[\],='\s]")


def writable(name: str) -> str:
    """A name that the text form can hold in a list: blanks, commas, brackets, quotes and `=` become `_`."""
    made = "".join(c if c.isprintable() else "_" for c in _UNWRITABLE.sub("_", name))
    return made or "_"


class GraphBuilder:
    """A graph under construction. Names that are taken get a number behind them."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self._inputs: list[Tensor] = []
        self._layers: list[Layer] = []
        self._subgraphs: dict[str, Graph] = {}
        self._layer_names: set[str] = set()
        self._tensor_names: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._producer: dict[str, Layer] = {}

    def producer(self, tensor: Tensor) -> Layer:
        """The layer that makes a tensor of this graph."""
        return self._producer[tensor.name]

    def input(self, name: str, shape: Sequence[int], dtype: str, **quantisation: Any) -> Tensor:
        """Adds an input of the graph and its Input layer. The tensor is called `name`, or as it becomes free; the layer of
        a tensor NAME_0 is NAME, as of all layers.

        `quantisation`: `scale`, `zero`, `limits`, `axis` of the tensor.
        """
        layer = name.removesuffix("_0") or name
        return self.layer("Input", [], name=layer, outputs=[Tensor(name, tuple(shape), dtype, **quantisation)])[0]

    def constant(self, array: Array, name: str, **quantisation: Any) -> Tensor:
        """Adds a Constant layer with the array as it is; gives its tensor."""
        shaped = Tensor(f"{name}_0", array.shape, array.dtype.name, **quantisation)
        return self.layer("Constant", [], name=name, outputs=[shaped], constants={"weights": array})[0]

    def layer(
        self,
        type: str,
        inputs: Sequence[Tensor],
        *,
        name: str,
        outputs: Sequence[Output],
        attributes: Mapping[str, object] | None = None,
        constants: Mapping[str, Array] | None = None,
        span: Span | str | None = None,
    ) -> tuple[Tensor, ...]:
        """Adds a layer; gives its outputs. Attributes that are None are left out. Layers of the type Input make the
        graph's inputs.

        Outputs are tensors, or (shape, data type) for tensors that are called NAME_0, NAME_1 and so on.
        """
        name = self._free(name, self._layer_names)
        made = tuple(self._output(f"{name}_{i}", given) for i, given in enumerate(outputs))
        kept = {key: plain(value) for key, value in (attributes or {}).items() if value is not None}
        self._layers.append(Layer(name, type, tuple(inputs), made, kept, dict(constants or {}), span))
        if type == "Input":
            self._inputs += made
        self._producer.update((tensor.name, self._layers[-1]) for tensor in made)
        return made

    def subgraph(self, graph: Graph) -> str:
        """Adds a graph that layers name as a branch or body; gives its name."""
        self._subgraphs[graph.name] = graph
        return graph.name

    def finish(self, outputs: Sequence[Tensor], **header: object) -> Graph:
        """The graph with these outputs. `header`: further keys of the text's header."""
        attributes = {key: plain(value) for key, value in header.items() if value is not None}
        return Graph(
            writable(self.name), tuple(self._inputs), tuple(outputs), tuple(self._layers), attributes, self._subgraphs
        )

    def _output(self, name: str, given: Output) -> Tensor:
        if isinstance(given, Tensor):
            return replace(given, name=self._free(given.name or name, self._tensor_names))
        shape, dtype = given
        return Tensor(self._free(name, self._tensor_names), tuple(shape), dtype)

    def _free(self, wanted: str, taken: set[str]) -> str:
        """The name, or the first of NAME_1, NAME_2, ... that is free."""
        wanted = name = writable(wanted)
        while name in taken:
            number = self._numbers.get(wanted, 0) + 1
            self._numbers[wanted] = number
            name = f"{wanted}_{number}"
        taken.add(name)
        return name

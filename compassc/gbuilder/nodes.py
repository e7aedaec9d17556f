"""A graph as its plugins see it: nodes with tensors that have a place in memory, made of the graph's layers."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import Any

from compass_core.aipubin.dtypes import element_dtype
from compass_core.arrays import content_of
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.gbuilder.plugin_api import OpType, Tensor, register_optype
from compassc.graph import Graph, Layer
from compassc.graph import Tensor as GraphTensor
from compassc.graph.dtypes import IR_DTYPES

NO_SUCH = "which a device has no tensors of"


@dataclass
class Node:
    """A layer. `params` are its attributes, `constants` its constant tensors by name."""

    layer: Layer
    type: OpType
    inputs: list[Tensor]
    outputs: list[Tensor]
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.layer.name

    @cached_property
    def constants(self) -> dict[str, Tensor]:
        return {name: _constant(self.layer, name) for name in self.layer.constants}


@dataclass
class Nodes:
    """The nodes of `graph` in topological order, without Input and Constant layers; its inputs and outputs."""

    graph: Graph
    nodes: list[Node]
    inputs: list[Tensor]
    outputs: list[Tensor]


def nodes_of(graph: Graph) -> Nodes:
    """The nodes of a graph. CompassError for a data type that aipu.bin does not have, and for a name that two nodes have.

    An output that is a constant is a copy of it: only kernels write what a job gives back. One that is an input of the
    graph is refused, since a job knows its tensors by their names.
    """
    names: set[str] = set()
    for layer in graph.computing():
        if layer.name in names:
            raise graph.error(layer, f"the name '{layer.name}' is taken by another layer")
        names.add(layer.name)
    made: dict[str, Tensor] = {}
    for layer in graph.layers:
        for tensor in layer.outputs:
            made[tensor.name] = _view(graph, layer, tensor)
        if layer.type == "Constant":
            made[layer.output.name].content = content_of(layer.constant("weights"))
    nodes = [
        Node(
            layer,
            register_optype(layer.type),
            [made[t.name] for t in layer.inputs],
            [made[t.name] for t in layer.outputs],
            dict(layer.attributes),
        )
        for layer in graph.computing()
    ]
    outputs = dict(made)
    for tensor in {t.name: t for t in graph.outputs}.values():
        maker = graph.producer()[tensor.name]
        if maker.type == "Input":
            raise graph.error(
                maker,
                f"the graph's input '{tensor.name}' is one of its outputs",
                "make the output by a layer of the type NoOp, or leave it out",
            )
        if maker.type == "Constant":
            nodes.append(_copy(graph, maker, tensor, made[tensor.name]))
            outputs[tensor.name] = nodes[-1].outputs[0]
    return Nodes(graph, nodes, [made[t.name] for t in graph.inputs], [outputs[t.name] for t in graph.outputs])


def _copy(graph: Graph, maker: Layer, given: GraphTensor, source: Tensor) -> Node:
    """A node that copies a constant to an output of the graph."""
    layer = Layer(
        f"{maker.name}/copy", "NoOp", (replace(given, name=f"{given.name}/constant"),), (given,), span=maker.span
    )
    constant = _view(graph, layer, layer.input)
    constant.content = source.content
    return Node(layer, register_optype(layer.type), [constant], [_view(graph, layer, given)])


def _view(graph: Graph, layer: Layer, tensor: GraphTensor) -> Tensor:
    try:
        element_dtype(tensor.dtype)
    except CompassError as error:
        if tensor.dtype in IR_DTYPES:
            reason = f"the layer '{layer.name}': its tensor '{tensor.name}' is {tensor.dtype}, {NO_SUCH}"
            raise graph.error(layer, reason, "cast it before the graph runs", "no-plugin") from None
        raise graph.error(layer, f"the tensor '{tensor.name}': {error.message}", error.help) from None
    made = Tensor()
    made.name, made.shape, made.dtype = tensor.name, list(tensor.shape), tensor.dtype
    made.scale, made.zero_point, made.axis, made.limits = tensor.scale, tensor.zero, tensor.axis, tensor.limits
    return made


def _constant(layer: Layer, name: str) -> Tensor:
    array = layer.constants[name]
    made = Tensor()
    made.name, made.shape = name, list(array.shape)
    made.dtype = str(layer.attributes.get(f"{name}_type", array.dtype.name))
    made.content = content_of(array)
    return made

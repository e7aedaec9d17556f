"""Graphs of layers as programs: the body of a layer type, which says in calls of operators what a layer is, makes expressions where
`call` is a `Meaning`."""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import LayerError
from compassc.importers.refusals import Refusal
from compassc.importers.values import Refused
from compassc.layers.declare import type_of
from compassc.relay.expr import Expr, Var
from compassc.relay.frontend.terms import Expressions, Operand, Term
from compassc.relay.types import TensorType

MOVING = (
    "Concat",
    "Crop",
    "Flatten",
    "Permute",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unsqueeze",
)
"""Layers that do the same with whole numbers as with real ones."""


class Meaning:
    """Calls of operators of the registry as expressions."""

    def __init__(self, b: Expressions) -> None:
        self.b = b

    def constant(self, array: Array) -> Term:
        return self.b.known(array)

    def __call__(self, name: str, *operands: Operand, **attributes: object) -> Term | list[Term]:
        return self.b.several(name, *operands, **attributes)


def program_of(b: Expressions, graph: Graph, names: Sequence[str]) -> tuple[list[Var], list[Expr]]:
    """The inputs of a graph of real numbers, called `names`, and its outputs as expressions. Layers that are none are refused
    (`b.refusals`), and then there are no outputs."""
    variables = [Var(n, TensorType(t.shape, t.dtype)) for n, t in zip(names, graph.inputs, strict=True)]
    return variables, [t.expr for t in terms_of(b, graph, [b.term(v) for v in variables])]


def terms_of(b: Expressions, graph: Graph, operands: Sequence[Term]) -> list[Term]:
    """The outputs of a graph for the tensors of its inputs. Layers that are no expressions are refused (`b.refusals`), and then
    there are none."""
    before = len(b.refusals)
    made = {t.name: v for t, v in zip(graph.inputs, operands, strict=True)}
    for layer in graph.layers:
        if layer.type == "Input" or any(t.name not in made for t in layer.inputs):
            continue  # what it takes is refused
        try:
            found = _made(b, layer, [made[t.name] for t in layer.inputs])
        except (Refused, CompassError, LayerError) as error:
            said = error.message if isinstance(error, CompassError) else str(error)
            b.refusals.append(Refusal(f"the layer '{layer.name}'", layer.type, said))
            continue
        for t, term in zip(layer.outputs, found, strict=True):
            as_said = term.shape == t.shape and term.kind == t.dtype
            made[t.name] = term if as_said else b.cast(b.reshape(term, list(t.shape)), t.dtype)
    return [made[t.name] for t in graph.outputs] if len(b.refusals) == before else []


def _made(b: Expressions, layer: Layer, operands: list[Term]) -> list[Term]:
    if layer.type == "Constant":
        return [b.known(layer.constant("weights"))]
    body = type_of(layer.type).body
    if body is None or layer.is_quantised and layer.type not in MOVING:
        raise Refused("it has no definition by operators of real numbers")
    found = body(Meaning(b), layer, *operands)
    return list(found) if isinstance(found, (tuple, list)) else [found]

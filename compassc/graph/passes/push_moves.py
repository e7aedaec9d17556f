"""Move transposes and reshapes behind element-wise layers and joins, where they meet others and cancel.

    f(Transpose(x)) -> Transpose(f(x))
    Add(Transpose(x, p), Transpose(y, p)) -> Transpose(Add(x, y), p)
    Add(Transpose(x, p), constant) -> Transpose(Add(x, constant'), p)
    Concat(Transpose(x, p), Transpose(y, p), axis) -> Transpose(Concat(x, y, p[axis]), p)
    f(Reshape(x)) -> Reshape(f(x))

An element-wise layer then stands right behind what makes its input, whose kernel it can join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compassc import services
from compassc.graph.edit import GraphEditor, Rule, rewrite
from compassc.graph.graph import SOURCES, Graph
from compassc.graph.layer import Layer
from compassc.graph.passes._layers import RESHAPES, TRANSPOSES, same_type
from compassc.graph.tensor import Tensor
from compassc.graph.values import Value
from compassc.operators.patterns import PatternKind

NAME = "PushMoves"


def unary(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """f(move(x)) -> move(f(x))"""
    move = edit.sole(layer.input) if _is_pointwise(layer) and len(layer.inputs) == 1 else None
    if move is None or move.type not in (*RESHAPES, *TRANSPOSES) or not _can_pass(edit, move):
        return None
    inner = edit.tensor(f"{layer.name}_moved", layer.output, move.input.shape)
    return [replace(layer, inputs=(move.input,), outputs=(inner,)), _behind(layer, move, inner)]


def _behind(layer: Layer, move: Layer, inner: Tensor) -> Layer:
    """The move, applied to the layer's new output."""
    return replace(move, name=f"{move.name}_moved", inputs=(inner,), outputs=layer.outputs)


def _is_pointwise(layer: Layer) -> bool:
    """Whether a layer treats all elements alike, wherever they are."""
    tables = all("lut" in key for key in layer.constants)
    return tables and len(layer.outputs) == 1 and all(t.axis is None for t in (*layer.inputs, *layer.outputs))


def _can_pass(edit: GraphEditor, move: Layer) -> bool:
    """Whether it is a move of computed elements alone; it stays at the graph's inputs and constants."""
    source = edit.producer(move.input)
    return same_type(move.input, move.output) and source.type not in (*SOURCES, *RESHAPES, *TRANSPOSES)


def operands(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """f(transpose(x), transpose(y)) -> transpose(f(x, y)); constants are transposed back, numbers stay"""
    moves = [edit.producer(t) for t in layer.inputs if edit.constant(t) is None]
    found = _perm(edit, layer, moves)
    if found is None or not _is_pointwise(layer):
        return None
    perm, back, before = found
    inputs, constants = [], []
    for tensor in layer.inputs:
        array = edit.constant(tensor)
        if array is None:
            inputs.append(edit.producer(tensor).input)
        elif tensor.count == 1:
            inputs.append(tensor)
        elif tensor.axis is None:
            wide = array.reshape((1,) * (len(perm) - array.ndim) + array.shape).transpose(back)
            made = edit.tensor(f"{tensor.name}_moved", tensor, wide.shape)
            source = edit.producer(tensor)
            constants.append(
                replace(source, name=f"{source.name}_moved", outputs=(made,), constants={"weights": wide.copy()})
            )
            inputs.append(made)
        else:
            return None
    inner = edit.tensor(f"{layer.name}_moved", layer.output, [layer.output.shape[i] for i in back])
    return [*constants, replace(layer, inputs=tuple(inputs), outputs=(inner,)), _behind(layer, before, inner)]


def _perm(edit: GraphEditor, layer: Layer, moves: Sequence[Layer]) -> tuple[list[int], list[int], Layer] | None:
    """(order of axes, the inverse, one of the moves) where all moves are the same transpose, used by `layer` alone."""
    if not moves or any(m.type not in TRANSPOSES or not _can_pass(edit, m) for m in moves):
        return None
    perm = moves[0].integers("perm")
    alone = all(edit.users(m.output) == [layer] and m.output.name not in edit.ends for m in moves)
    if not alone or any(m.integers("perm") != perm for m in moves) or len(layer.output.shape) != len(perm):
        return None
    return perm, [perm.index(i) for i in range(len(perm))], moves[0]


def joined(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """concat(transpose(x), transpose(y)) -> transpose(concat(x, y))"""
    moves = [edit.producer(t) for t in layer.inputs]
    found = _perm(edit, layer, moves)
    if found is None or any(t.axis is not None for t in (*layer.inputs, layer.output)):
        return None
    perm, back, before = found
    inner = edit.tensor(f"{layer.name}_moved", layer.output, [layer.output.shape[i] for i in back])
    attributes: Mapping[str, Value] = {**layer.attributes, "axis": perm[layer.axis()]}
    inputs = tuple(m.input for m in moves)
    return [replace(layer, inputs=inputs, outputs=(inner,), attributes=attributes), _behind(layer, before, inner)]


def run(graph: Graph) -> Graph:
    return rewrite(graph, rules())


def rules() -> dict[str, Sequence[Rule]]:
    """The rules by layer type, as the types are declared."""
    found: dict[str, Sequence[Rule]] = {"Concat": [joined]}
    for declared in services.layer_types().values():
        if declared.refused or "axis" in {a.name for a in declared.attributes}:
            continue
        if declared.pattern is PatternKind.ELEMENTWISE:
            found[declared.name] = [unary]
        elif declared.pattern is PatternKind.BROADCAST:
            found[declared.name] = [operands]
    return found

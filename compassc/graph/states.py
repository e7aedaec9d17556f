"""States of a graph: outputs of a run that are inputs of the next one.

They stand in the header of the graph's text, `states=[[INPUT,OUTPUT,INITIAL], ...]`, with the numbers of an input and of an
output; passes keep both in order. In the first run the input has the number INITIAL everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.errors.suggest import help_for
from compass_core.namedtuple import NamedTuple
from compassc import services
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import LayerError, Tensor

KEY, NAMES = "states", "output_names"
"""Attributes of graphs: the states, and what the model calls the outputs."""
AUTO = "auto"
"""Asks for the states of recurrent layers, which the graph tells."""
RECURRENT = ("BasicLSTM", "GRUv1", "GRUv3", "RNN")
"""Layers whose inputs behind the first are states, one for each sample."""
MOVED = ("Reshape", "Transpose", "Squeeze", "Split", "Slice", "Gather", "Concat")
"""Layers through which a state is followed to the graph's ends."""
MOST = 1 << 24
"""Elements of a state, so that float32 numbers them."""


class State(NamedTuple):
    """Numbers of an input and of the output that it is of the run before, and what the input is in the first run."""

    input: int
    output: int
    initial: float = 0.0


def states_of(graph: Graph) -> tuple[State, ...]:
    """The states of a graph. CompassError where its header has something else there."""
    listed: Any = graph.attributes.get(KEY, ())
    found = [_state(graph, one) for one in listed] if isinstance(listed, (list, tuple)) else [None]
    states = tuple(s for s in found if s is not None)
    if len(states) < len(found) or len({s.input for s in states}) < len(states):
        raise graph.error(None, f"'{KEY}' is not a list of an input, an output and a number each")
    return states


def _state(graph: Graph, one: object) -> State | None:
    if not isinstance(one, (list, tuple)) or len(one) != 3 or any(type(n) not in (int, float) for n in one):
        return None
    into, out, initial = one
    inside = type(into) is type(out) is int and 0 <= into < len(graph.inputs) and 0 <= out < len(graph.outputs)
    return State(into, out, float(initial)) if inside and math.isfinite(initial) else None


def with_states(graph: Graph, states: Sequence[State]) -> Graph:
    """The graph with these states besides its own. CompassError where an input is two, and where an input and an output are
    not of one shape and kind."""
    every = [*states_of(graph), *states]
    for state in every:
        into, out = graph.inputs[state.input], graph.outputs[state.output]
        if into.shape != out.shape or into.is_integer != out.is_integer:
            shown = [f"'{t.name}' {t.dtype} {'x'.join(map(str, t.shape))}" for t in (out, into)]
            raise CompassError(
                f"the output {shown[0]} cannot be the input {shown[1]} of the next run: they are not alike",
                code="state",
            )
        if sum(s.input == state.input for s in every) > 1:
            raise CompassError(f"the input '{into.name}' is given two states", code="state", help="give one for each")
    if not every:
        return graph
    return replace(graph, attributes={**graph.attributes, KEY: [list(s) for s in every]})


def asked_states(graph: Graph, asked: Mapping[str, str] | str) -> Graph:
    """The graph with the states that somebody asks for: inputs by the names of outputs, as the model or the graph calls
    them, or AUTO. CompassError for unknown names, and where nothing is found."""
    if isinstance(asked, str):
        if not (found := recurrent_states(graph)):
            raise CompassError(
                "no input of the graph is the state of a recurrent layer that an output has",
                code="state",
                help="name them: --state OUTPUT=INPUT",
            )
        return with_states(graph, found)
    inputs, outputs = input_names(graph), output_names(graph)
    pairs = []
    for out, into in asked.items():
        for name, known, what in ((out, outputs, "output"), (into, inputs, "input")):
            if name not in known:
                help = help_for(name, list(known), f"{what}s")
                raise CompassError(f"the graph has no {what} '{name}'", code=f"no-{what}", help=help)
        pairs.append(State(inputs[into], outputs[out]))
    return with_states(graph, pairs)


def input_names(graph: Graph) -> dict[str, int]:
    """The numbers of inputs by their names: of tensors and of their layers."""
    names = [(t.name, graph.producer()[t.name].name) for t in graph.inputs]
    return {name: i for i, each in enumerate(names) for name in reversed(each)}


def output_names(graph: Graph) -> dict[str, int]:
    """The numbers of outputs by their names: of tensors, and those that the model has for them."""
    said = graph.attributes.get(NAMES)
    own = [str(n) for n in said] if isinstance(said, (list, tuple)) and len(said) == len(graph.outputs) else []
    return {t.name: i for i, t in enumerate(graph.outputs)} | {name: i for i, name in enumerate(own)}


def shown_inputs(graph: Graph) -> tuple[Tensor, ...]:
    """The inputs that users give: all but states."""
    hidden = {s.input for s in states_of(graph)}
    return tuple(t for i, t in enumerate(graph.inputs) if i not in hidden)


def shown_outputs(graph: Graph) -> tuple[Tensor, ...]:
    """The outputs that users want: all but states; where there are no others, these."""
    hidden = {s.output for s in states_of(graph)}
    return tuple(t for i, t in enumerate(graph.outputs) if i not in hidden) or graph.outputs


# -- states of recurrent layers


def recurrent_states(graph: Graph) -> list[State]:
    """Inputs that are nothing but the states of recurrent layers, with the output that has what these become."""
    taken = {s.input for s in states_of(graph)}
    found = []
    for i, t in enumerate(graph.inputs):
        places = {} if i in taken or t.is_integer or t.count > MOST else _followed(graph, t)
        alike = (j for j, out in enumerate(graph.outputs) if _is_whole(t, out, places.get(out.name)))
        if (output := next(alike, None)) is not None:
            found.append(State(i, output))
    return found


def _is_whole(into: Tensor, out: Tensor, places: Array | None) -> bool:
    """Whether an output has, in order, what the elements of an input become."""
    return places is not None and into.shape == out.shape and places.reshape(-1).tolist() == list(range(into.count))


def _followed(graph: Graph, tensor: Tensor) -> dict[str, Array]:
    """Which elements of an input others become from one step to the next, by tensor; none where it is more than a state.
    Numbers of elements go through the layers that move them."""
    import numpy as np

    own = {tensor.name: np.arange(tensor.count, dtype=np.float32).reshape(tensor.shape)}
    made: dict[str, Array] = {}
    for layer in graph.layers:
        names = [t.name for t in layer.inputs]
        if layer.type in RECURRENT and names[0] not in own:
            states = {t.name: names[i] for t in layer.outputs if (i := _last_state(layer, t)) is not None}
            made |= {name: own[state] for name, state in states.items() if state in own}
        elif layer.type in MOVED and (moved := _moved(graph, layer, own)):
            own |= moved
        elif any(name in own for name in names):
            return {}
        elif layer.type in MOVED:
            made |= _moved(graph, layer, made)
    return made


def _moved(graph: Graph, layer: Layer, places: Mapping[str, Array]) -> dict[str, Array]:
    """The numbers in the outputs of a layer that moves elements, of which it has all."""
    makers, given = graph.producer(), []
    for t in layer.inputs:
        maker = makers[t.name]
        if t.name not in places and (maker.type != "Constant" or layer.type == "Concat"):
            return {}
        given.append((places[t.name] if t.name in places else maker.constant("weights")).reshape(t.shape))
    if not any(t.name in places for t in layer.inputs):
        return {}
    try:
        return {t.name: array for t, array in zip(layer.outputs, services.evaluate_layer(layer, given), strict=True)}
    except LayerError:
        return {}


def _last_state(layer: Layer, tensor: Tensor) -> int | None:
    """Which of its inputs an output of a recurrent layer is behind the last step; None for sequences of several steps."""
    said = layer.attributes.get("out_sequence")
    listed = [str(n).upper() for n in said] if isinstance(said, (list, tuple)) else [str(said).upper()]
    at = [t.name for t in layer.outputs].index(tensor.name)
    name = listed[at] if at < len(listed) else ""
    sequence = "H" if layer.type.startswith("GRU") else "Y"
    if name == sequence:
        return 1 if tensor.shape[1] == 1 else None
    return 2 if name == "C" else 1

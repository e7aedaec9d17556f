"""A graph for inputs of other shapes: all shapes that follow, and attributes that name sizes, change with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from compass_core.errors import CompassError, together
from compass_core.errors.suggest import help_for
from compassc import services
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import LayerError, Tensor
from compassc.graph.values import Value

Shape = tuple[int, ...]


def specialise(graph: Graph, shapes: Mapping[str, Sequence[int]]) -> Graph:
    """The graph with these shapes of inputs, by the name of the tensor or of its Input layer.

    CompassError for names that no input has, and naming all layers whose outputs do not follow from what they would take.
    """
    wanted = _wanted(graph, shapes)
    if not wanted:
        return graph
    known: dict[str, Tensor] = {}
    layers: list[Layer] = []
    found: list[CompassError] = []
    lost: set[str] = set()
    for layer in graph.layers:
        if any(t.name in lost for t in layer.inputs):
            lost |= {t.name for t in layer.outputs}  # the error of its input was reported
            continue
        try:
            made = _specialised(layer, known, wanted)
        except LayerError as error:
            found.append(graph.error(layer, f"the layer '{layer.name}' of type {layer.type}: {error}"))
            lost |= {t.name for t in layer.outputs}
            continue
        known |= {t.name: t for t in made.outputs}
        layers.append(made)
    if found:
        raise together(found)
    ends = (tuple(known[t.name] for t in listed) for listed in (graph.inputs, graph.outputs))
    inputs, outputs = ends
    return replace(graph, layers=tuple(layers), inputs=inputs, outputs=outputs)


def _wanted(graph: Graph, shapes: Mapping[str, Sequence[int]]) -> dict[str, Shape]:
    """The shapes of inputs that change, by the names of tensors."""
    names = {layer.name: layer.output.name for layer in graph.layers if layer.type == "Input"}
    names |= {t.name: t.name for t in graph.inputs}
    known = {t.name: t.shape for t in graph.inputs}
    found = {}
    for name, shape in shapes.items():
        if name not in names:
            help = help_for(name, list(known), "inputs")
            raise CompassError(f"the graph has no input '{name}'", code="no-input", help=help)
        tensor = names[name]
        if len(shape) != len(known[tensor]) or min(shape, default=1) < 1:
            raise CompassError(
                f"the input '{tensor}' has {len(known[tensor])} dimensions, {list(shape)} is no shape of it",
                code="tensor-shape",
                help="give a positive size for each dimension",
            )
        if tuple(shape) != known[tensor]:
            found[tensor] = tuple(shape)
    return found


def _specialised(layer: Layer, known: Mapping[str, Tensor], wanted: Mapping[str, Shape]) -> Layer:
    """The layer on the tensors as they are now."""
    if layer.type == "Input":
        return replace(layer, outputs=tuple(replace(t, shape=wanted.get(t.name, t.shape)) for t in layer.outputs))
    inputs = tuple(known[t.name] for t in layer.inputs)
    if all(new.shape == old.shape for new, old in zip(inputs, layer.inputs, strict=True)):
        return layer
    change = _SIZES.get(layer.type)
    attributes = layer.attributes if change is None else {**layer.attributes, **change(layer, inputs[0].shape)}
    made = replace(layer, inputs=inputs, attributes=attributes)
    shapes = services.layer_shapes(made) or _of_images(layer, inputs[0].shape)
    if shapes is None or len(shapes) != len(layer.outputs):
        raise LayerError(f"the shape of its output does not follow from {[list(t.shape) for t in inputs]}")
    return replace(made, outputs=tuple(replace(t, shape=s) for t, s in zip(layer.outputs, shapes, strict=True)))


def _of_images(layer: Layer, new: Shape) -> list[Shape] | None:
    """Of more or fewer images in the same size."""
    if layer.type not in BY_IMAGE or new[1:] != layer.input.shape[1:]:
        return None
    return [(new[0], *t.shape[1:]) for t in layer.outputs]


# -- attributes that name sizes

BY_IMAGE = ("Resize", "Interp", "AdaptivePool")
"""Types whose outputs' sizes are declared, but follow for another number of images."""

Sizes = Callable[[Layer, Shape], Mapping[str, Value]]
"""`sizes(layer, shape)`: the attributes that change when the layer's first input has the shape."""


def _reshaped(layer: Layer, new: Shape) -> Mapping[str, Value]:
    """The size that the changed one went into grows with it. LayerError where that is more than one, or none."""
    old, made = layer.input.shape, list(layer.output.shape)
    for axis, (before, after) in enumerate(zip(old, new, strict=True)):
        if before != after:
            at = _holder(old, tuple(layer.output.shape), axis)
            if at is None or made[at] * after % before:
                raise LayerError(f"'shape' is {made}, which does not tell where the {after} of {list(new)} go")
            made[at] = made[at] * after // before
    return {"shape": made}


def _holder(old: Shape, made: Shape, axis: int) -> int | None:
    """The axis of `made` that the elements of an axis of `old` go along.

    Axes at the front and at the end that are the same stay; between them sizes are grouped where products meet.
    """
    behind = axis - len(old)
    if old[: axis + 1] == made[: axis + 1]:
        return axis
    if old[behind:] == made[behind:]:
        return len(made) + behind
    i = j = 0
    while i < len(old):
        first_i, first_j, a, b = i, j, 1, 1
        while True:
            a, i = a * old[i], i + 1
            while b < a and j < len(made):
                b, j = b * made[j], j + 1
            if a == b or i == len(old):
                break
        if first_i <= axis < i:
            inside = [k for k in range(first_j, j) if made[k] != 1] or list(range(first_j, j))
            same = [k for k in inside if made[k] == old[axis]]
            return inside[0] if len(inside) == 1 else same[0] if len(same) == 1 else None
    return None


def _sliced(layer: Layer, new: Shape) -> Mapping[str, Value]:
    """The end of a slice follows the end of its axis."""
    if not layer.has("end"):
        return {}
    ends = layer.integers("end")
    return {"end": [b if e == a else e for e, a, b in zip(ends, layer.input.shape, new, strict=True)]}


def _cropped(layer: Layer, new: Shape) -> Mapping[str, Value]:
    crops = layer.pairs("crops")
    return {"crops": [[f, b if e == a else e] for (f, e), a, b in zip(crops, layer.input.shape, new, strict=True)]}


def _steps(layer: Layer, new: Shape) -> Mapping[str, Value]:
    return {"time_steps": new[1]} if layer.has("time_steps") else {}


_SIZES: Mapping[str, Sizes] = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), _reshaped),
    **dict.fromkeys(("Slice", "StridedSlice"), _sliced),
    **dict.fromkeys(("BasicLSTM", "GRUv1", "GRUv3", "RNN"), _steps),
    "Crop": _cropped,
}

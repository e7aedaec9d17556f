"""The end of an import: the graph with the layers that its outputs need, and fused."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compass_core.errors import CompassError, UsageError, together
from compass_core.errors.suggest import help_for
from compassc.graph.build import writable
from compassc.graph.graph import Graph
from compassc.graph.passes import run_stage
from compassc.graph.states import NAMES
from compassc.graph.tensor import Tensor
from compassc.importers.building import Building
from compassc.importers.values import Refused, Value, stored_type


def chosen_outputs(own: Sequence[str], wanted: Sequence[str], tensors: Sequence[str], path: str) -> list[str]:
    """The names of the graph's outputs: the model's `own`, or those that the user wants of its `tensors`."""
    for name in wanted:
        if name not in tensors:
            raise UsageError(
                f"'{path}' has no tensor '{name}'", code="no-output", help=help_for(name, tensors, "tensors")
            )
    return list(wanted or own)


def finished(b: Building, names: Sequence[str], outputs: Sequence[object], path: str, code: str) -> Graph:
    """The graph with the layers that its outputs need, their axes in the model's order. `code`: of what is wrong."""
    tensors, errors = [], []
    for name, value in zip(names, outputs, strict=True):
        b.name = name
        try:
            tensors.append(_output(b, value))
        except Refused as error:
            errors.append(CompassError(f"'{path}': the output '{name}': {error}", code=code))
    if errors:
        raise together(errors)
    told = {} if [t.name.removesuffix("_0") for t in tensors] == list(names) else {NAMES: [*map(writable, names)]}
    graph = b.graph.finish(tensors, data_format="NHWC", precision="float32", compat_quantized_model=False, **told)
    used = without_unused(graph)
    warn_of_narrowed(used, b.narrowed, path)
    made = run_stage("import", used)
    warn_of_numbers(made, path)
    return made


LISTED = 4
"""Names in a warning; the rest are counted."""


def warn_of_narrowed(graph: Graph, narrowed: Mapping[str, tuple[str, Any]], path: str) -> None:
    """A warning for 64-bit whole numbers that are computed in 32 bits."""
    nodes = [narrowed[t.name] for layer in graph.layers for t in layer.outputs if t.name in narrowed]
    for dtype in dict.fromkeys(d for _, d in nodes):
        names = list(dict.fromkeys(name for name, d in nodes if d == dtype))
        shown = ", ".join(f"'{name}'" for name in names[:LISTED])
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        warnings.warn(
            f"'{path}': {shown}{more} compute{'' if len(names) > 1 else 's'} {dtype} in {stored_type(dtype)}, to which results are limited; "
            "`compass-run --check overflow` finds those beyond it",
            stacklevel=2,
        )


def warn_of_numbers(graph: Graph, path: str) -> None:
    """A warning for weights and other constants that are NaN or infinite: what they make will be so, too.

    Infinite constants that are tensors of their own may be meant (masks of attention, limits).
    """
    for layer in graph.layers:
        for key, array in layer.constants.items():
            if array.dtype.kind not in "fV" or np.isfinite(wide := array.astype(np.float32, copy=False)).all():
                continue
            wrong, what = int(np.isnan(wide).sum()), "NaN"
            if not wrong and layer.type != "Constant":
                wrong, what = int(np.isinf(wide).sum()), "infinite"
            if wrong:
                where = f"the constant '{layer.name}'" if layer.type == "Constant" else f"'{key}' of '{layer.name}'"
                warnings.warn(f"'{path}': {wrong} of {array.size} values of {where} are {what}", stacklevel=2)


def _output(b: Building, value: object) -> Tensor:
    """The tensor of an output: made by a layer of its own where the model hands an input or a constant on."""
    if not isinstance(value, Value):
        raise Refused("it is a sequence of tensors")
    tensor = b.laid(value)
    if b.producer(tensor).type in ("Input", "Constant"):
        return b.layer("Reshape", [tensor], tensor.shape, tensor.dtype, shape=list(tensor.shape))
    return tensor


def without_unused(graph: Graph) -> Graph:
    """The graph without layers that no output needs; inputs stay."""
    needed = {t.name for t in graph.outputs}
    kept = []
    for layer in reversed(graph.layers):
        if layer.type == "Input" or any(t.name in needed for t in layer.outputs):
            needed.update(t.name for t in layer.inputs)
            kept.append(layer)
    return replace(graph, layers=tuple(reversed(kept)))

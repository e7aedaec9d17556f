"""The matrix of operators: which rules and implementations each has, and why not where it has none."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import LayerError, Tensor
from compassc.layers.declare import LayerType, all_types, consistent, type_of
from compassc.layers.docs import NO_KERNEL
from compassc.layers.kernels import BY_HAND, BY_SCHEDULE, SCHEDULED, STEPS, load_kernels
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.support import SHAPES, WITHOUT_KERNEL, has_kernel
from compassc.operators.calls import References, all_operators
from compassc.operators.patterns import PatternKind

TRIES = 3


class LayerRow(NamedTuple):
    """A layer type: the operators that define it, its references, and how NPUs and other targets compute it."""

    name: str
    pattern: str
    operators: str
    reference: str
    npu: str
    others: str


class OperatorRow(NamedTuple):
    """An operator: what follows from its declaration, and the layer types that are defined by it."""

    name: str
    pattern: str
    types: str
    samples: int
    layers: str


class _Noted(References):
    """Calls on arrays that note the operators' names."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def __call__(self, name: str, *operands: object, **attributes: object) -> Any:
        self.names[name] = None
        return super().__call__(name, *operands, **attributes)


@cache
def operators_of(name: str) -> tuple[str, ...]:
    """The operators that samples of a layer type are made of; none where it has no body."""
    body, noted = type_of(name).body, _Noted()
    if body is None:
        return ()
    for seed, shape in enumerate(SHAPES * TRIES):
        layer = drawn(Draw(np.random.default_rng(seed)), name, Tensor("x", shape, "float32"))
        if layer is None:
            continue
        given: list[Array] = [np.ones(t.shape, "int32" if t.is_integer else "float32") for t in layer.inputs]
        try:
            with np.errstate(all="ignore"), consistent(layer):
                body(noted, layer, *given)
        except LayerError:
            continue
    return tuple(noted.names)


def layer_rows(part: str = "") -> list[LayerRow]:
    """The layer types whose names contain `part`."""
    load_kernels()
    return [_row(t) for t in all_types().values() if part.lower() in t.name.lower()]


def _row(declared: LayerType) -> LayerRow:
    name = declared.name
    if declared.refused:
        return LayerRow(name, "", "", "", f"not supported: {declared.refused}", "")
    made_of = operators_of(name)
    known = {"floats": declared.float, "integers": declared.quantised}
    ways = [BY_SCHEDULE] * (name in SCHEDULED) + ["steps" if name in STEPS else BY_HAND] * has_kernel(name)
    missing = WITHOUT_KERNEL.get(name, NO_KERNEL)
    moves = declared.pattern is PatternKind.INJECTIVE and declared.quantised is declared.float
    scheduled = "schedule" if moves else "schedule of floats, reference of integers"
    return LayerRow(
        name,
        declared.pattern.name.lower(),
        ", ".join(made_of) or "none defines it",
        ", ".join(form for form, reference in known.items() if reference is not None),
        ", ".join(ways) or missing,
        scheduled if declared.body else "reference",
    )


def operator_rows(part: str = "") -> list[OperatorRow]:
    """The operators whose names contain `part`."""
    found = [o for o in all_operators().values() if part.lower() in o.name.lower()]
    by_operator: dict[str, list[str]] = {}
    for name in all_types() if found else ():
        for operator in operators_of(name) if name in SAMPLES else ():
            by_operator.setdefault(operator, []).append(name)
    return [
        OperatorRow(
            o.name,
            o.pattern.name.lower(),
            ", ".join(o.types),
            len(o.samples),
            ", ".join(by_operator.get(o.name, ())) or "of no sample",
        )
        for o in found
    ]

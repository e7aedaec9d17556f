"""Control flow that is known at import: branches chosen, loops unrolled; and sequences of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.reading.limits import MODEL_NODES
from compassc.importers.onnx.declare import Constant, constant_only, operator, refuse
from compassc.importers.onnx.operators.elementwise import combined
from compassc.importers.onnx.operators.indexing import gather
from compassc.importers.values import NotConstant, Refused, Reported, Value

if TYPE_CHECKING:
    from onnx import GraphProto

    from compassc.importers.onnx.convert import Conversion

MOST_STEPS = 1000
"""Steps of a loop that is unrolled."""


@operator("If")
def branch(b: Conversion, condition: Value, *, then_branch: GraphProto, else_branch: GraphProto) -> list[Any]:
    """The branch of a known condition. Of a computed one both are computed, and the results chosen from."""
    if condition.array is not None:
        return b.run(then_branch if condition.array.reshape(-1)[0] else else_branch, {})
    before = len(b.refusals)
    both = [b.run(graph, {}) for graph in (then_branch, else_branch)]
    if len(b.refusals) > before:
        raise Reported("nodes of its branches are refused")
    found = []
    for x, y in zip(*both, strict=True):
        if not isinstance(x, Value) or not isinstance(y, Value) or x.shape != y.shape or x.dtype != y.dtype:
            reason = "its condition is computed, and its branches give tensors of different shapes or types"
            raise NotConstant(reason, [condition.tensor.name] if condition.tensor else [])
        found.append(combined(b, [condition, x, y], "Where", x.dtype))
    return found


@operator("Loop", partly="where the number of steps is known at import")
def loop(
    b: Conversion, most: Value | None, condition: Value | None = None, *states: object, body: GraphProto
) -> list[Any]:
    """Unrolled."""
    limit = None if most is None else b.numbers(most, "number of steps")[0]
    going = condition is None or bool(b.numbers(condition, "condition")[0])
    carried, step = list(states), 0
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    names = [i.name for i in body.input]
    while going and (limit is None or step < limit):
        if step >= MOST_STEPS:
            raise Refused(f"it has more than {MOST_STEPS} steps")
        given = [Value.of(np.asarray(step, np.int64)), Value.of(np.asarray(True)), *carried]
        outputs = _run(b, body, dict(zip(names, given, strict=True)))
        going = bool(b.numbers(outputs[0], "condition")[0])
        carried = outputs[1 : 1 + len(carried)]
        for listed, value in zip(scanned, outputs[1 + len(carried) :], strict=True):
            listed.append(b.unsqueeze(value, [0]))
        step += 1
    return [*carried, *(_stacked(b, listed, 0) for listed in scanned)]


def _run(b: Conversion, body: GraphProto, given: dict[str, Any]) -> list[Any]:
    before = len(b.refusals)
    outputs = b.run(body, given)
    if len(b.refusals) > before:
        raise Reported("nodes of its body are refused")
    return outputs


def _stacked(b: Conversion, parts: Sequence[Value], axis: int) -> Value:
    if not parts:
        raise Refused("it makes no step, and nothing tells the shape of what it collects")
    return b.concat(*parts, axis=axis)


@operator("Scan", since=9)
def scan(
    b: Conversion,
    *xs: Value,
    body: GraphProto,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> list[Any]:
    """Unrolled."""
    many = num_scan_inputs
    carried, scanned = list(xs[:-many]), list(xs[-many:])
    axes = list(scan_input_axes or [0] * many)
    backward = list(scan_input_directions or [0] * many)
    steps = scanned[0].shape[scanned[0].axis(axes[0])]
    if steps > MOST_STEPS:
        raise Refused(f"it has more than {MOST_STEPS} steps")
    parts = [b.split(x, a, [1] * steps) for x, a in zip(scanned, axes, strict=True)]
    outputs: list[list[Value]] = [[] for _ in range(len(body.output) - len(carried))]
    out_axes = list(scan_output_axes or [0] * len(outputs))
    names = [i.name for i in body.input]
    for step in range(steps):
        items = [
            b.squeeze(p[steps - 1 - step if back else step], [a])
            for p, a, back in zip(parts, axes, backward, strict=True)
        ]
        found = _run(b, body, dict(zip(names, [*carried, *items], strict=True)))
        carried = found[: len(carried)]
        for listed, value, axis in zip(outputs, found[len(carried) :], out_axes, strict=True):
            listed.append(b.unsqueeze(value, [axis]))
    turned = list(scan_output_directions or [0] * len(outputs))
    return [
        *carried,
        *(_stacked(b, p[::-1] if back else p, a) for p, a, back in zip(outputs, out_axes, turned, strict=True)),
    ]


@operator("Scan", since=8)
def scan_of_batches(
    b: Conversion,
    lengths: Constant | None,
    *xs: Value,
    body: GraphProto,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> list[Value]:
    """The older form: batches by themselves, time second."""
    many, batch = num_scan_inputs, xs[0].shape[0]
    b.budget.take(MODEL_NODES, batch, f"the node '{b.name}'")
    if lengths is not None and (lengths != xs[-1].shape[1]).any():
        raise Refused("its sequences have different lengths")
    rows = []
    for row in range(batch):
        part = [gather(b, x, Value.of(np.asarray(row, np.int64)), axis=0) for x in xs]
        rows.append(scan(b, *part, body=body, num_scan_inputs=many, scan_input_directions=directions))
    return [b.concat(*(b.unsqueeze(v, [0]) for v in column), axis=0) for column in zip(*rows, strict=True)]


refuse("text is not supported", "StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch")
refuse(
    "it is random", "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"
)
refuse("images are decoded on the host", "ImageDecoder")


constant_only("ConstantOfShape", "Range", "MelWeightMatrix", "BlackmanWindow", "HammingWindow", "HannWindow")

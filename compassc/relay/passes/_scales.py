"""Scales of channels that go into weights: where they come from, and what lies between them and an operator with weights."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr, Function
from compassc.relay.passes._functions import is_primitive, op_name
from compassc.relay.types import TensorType, is_dynamic
from compassc.relay.visit import children, post_order

RECTIFIERS = ("nn.relu", "nn.leaky_relu")
SUMS = ("add", "subtract")
_WINDOWS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")


def shape(e: Expr) -> tuple[int, ...] | None:
    """The extents of a typed tensor, None where one is open."""
    t = e.checked_type_
    return t.concrete_shape if isinstance(t, TensorType) and not is_dynamic(t) else None


def axis_of(scale: Expr, data: Expr) -> int | None:
    """The axis of `data` along which a tensor differs, that has one extent of that size and axes of extent 1."""
    small, large = shape(scale), shape(data)
    if small is None or large is None or len(small) > len(large):
        return None
    places = [i + len(large) - len(small) for i, n in enumerate(small) if n != 1]
    return places[0] if len(places) == 1 and max(small) == large[places[0]] else None


def is_positive(e: Expr) -> bool:
    """Whether a tensor is known and all its elements are above 0."""
    return isinstance(e, Constant) and bool((e.array > 0).all())


def users(f: Function) -> Counter[int]:
    """How many uses each expression of a function has, by `id`."""
    return Counter(id(c) for e in post_order(f, is_primitive) for c in children(e))


@dataclass(frozen=True)
class Weights:
    """An operator with weights: which axis of its data and of its result is the channels, and the axes of the weights that go
    with them (None where a scale of them is none of the weights)."""

    data_axis: int
    result_axis: int
    for_data: int | None
    for_result: int | None


def weights(e: Expr) -> Weights | None:
    """What is known of a call that has weights; None of others, and of layouts with blocks."""
    if not isinstance(e, Call) or e.attrs is None:
        return None
    data, weight = (shape(e.args[0]), shape(e.args[1])) if len(e.args) == 2 else (None, None)
    if data is None or weight is None:
        return None
    if op_name(e) == "nn.dense":
        return Weights(len(data) - 1, len(data) - 1, 1, 0)
    if op_name(e) not in _WINDOWS:
        return None
    attrs = e.attrs
    layout, kernel = str(attrs["data_layout"]), str(attrs["kernel_layout"])
    result = shape(e)
    if (layout + kernel).upper() != layout + kernel or not (layout + kernel).isalpha() or result is None:
        return None
    if attrs["out_layout"] not in ("", layout) or len(layout) != len(data) or len(kernel) != len(weight):
        return None
    axis, out, into = layout.index("C"), kernel.index("O"), kernel.index("I")
    depthwise = attrs["groups"] == data[axis] == weight[out] and weight[into] == 1
    for_data = out if depthwise else into if attrs["groups"] == 1 else None
    for_result = out if weight[out] == result[axis] else None
    return Weights(axis, axis, for_data, for_result)


def scaled(weight: Expr, scale: Expr, axis: int, rank: int) -> Expr:
    """Weights times a scale along an axis."""
    if not rank - 1 - axis:
        return call("multiply", weight, call("reshape", scale, newshape=(-1,)))
    return call("multiply", weight, call("reshape", scale, newshape=(-1, *[1] * (rank - 1 - axis))))


def other_and_scale(e: Expr) -> tuple[Expr, Expr, int] | None:
    """Of a product with a scale of channels: what is scaled, the scale, and the axis."""
    if op_name(e) != "multiply" or not isinstance(e, Call):
        return None
    for data, scale in (e.args, e.args[::-1]):
        axis = axis_of(scale, data)
        if axis is not None and shape(data) == shape(e):
            return data, scale, axis
    return None


def inner_and_addend(e: Call, axis: int) -> tuple[Expr, Expr] | None:
    """Of a sum with a vector of channels along an axis: what it is added to (or taken from), and the vector."""
    pairs = [e.args] if op_name(e) == "subtract" else [e.args, e.args[::-1]]
    for inner, vector in pairs:
        if axis_of(vector, inner) == axis and shape(inner) == shape(e):
            return inner, vector
    return None

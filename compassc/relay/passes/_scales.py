"""Scales of channels that go into weights: which operators have weights, and what lies between them and a scale."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from compass_core.dataclass import dataclass
from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr, Function
from compassc.relay.layouts import layout
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import shape, tensor
from compassc.relay.types import TensorType, is_dynamic
from compassc.relay.visit import children, is_primitive, post_order

Axes = tuple[int, ...]
RECTIFIERS = ("nn.relu", "nn.leaky_relu")
SUMS = ("add", "subtract")
_WINDOWS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
ANY, NOT_ZERO, POSITIVE = 0, 1, 2
"""What scales are asked to be: anything, constants without zeros, constants above zero."""


@dataclass(frozen=True)
class Demand:
    """A value may have a scale along `axes` (an axis, or its outer and its inner part) that is at least `sign`."""

    axes: Axes
    sign: int = ANY

    def at_least(self, sign: int) -> Demand:
        """The demand that also asks for a sign."""
        return replace(self, sign=max(self.sign, sign))

    def met_by(self, scale: Expr) -> bool:
        """Whether a scale has the sign that is asked for."""
        if self.sign == ANY:
            return True
        return isinstance(scale, Constant) and bool(
            ((scale.array > 0) if self.sign == POSITIVE else scale.array != 0).all()
        )


def both(a: Demand | None, b: Demand | None) -> Demand | None:
    """What meets two demands, None where nothing does."""
    return a.at_least(b.sign) if a is not None and b is not None and a.axes == b.axes else None


def is_known(e: Expr) -> bool:
    """Whether a value is a tensor with known extents."""
    return isinstance(e.checked_type_, TensorType) and not is_dynamic(e.checked_type_)


def users(f: Function) -> Counter[int]:
    """How many uses each expression of a function has, by `id`."""
    return Counter(id(c) for e in post_order(f, is_primitive) for c in children(e))


# ------------------------------------------------------------------------------------------------------------- vectors


def vector(scale: Expr, value: Expr, data: Expr, axes: Axes) -> Expr | None:
    """`value`, which takes the place of `scale`, as a tensor of the axes of `data` alone; None where `scale` differs along
    others, or not along all of these."""
    if not is_known(scale) or not is_known(data):
        return None
    small, large = shape(scale), shape(data)
    if not small and isinstance(scale, Constant):
        value = call("expand_dims", value, axis=0, num_newaxis=len(axes))
        for i, axis in enumerate(axes):
            value = call("repeat", value, repeats=large[axis], axis=i)
        return value
    base = len(large) - len(small)
    if base < 0 or any(a < base for a in axes):
        return None
    if any(n != (large[i + base] if i + base in axes else 1) for i, n in enumerate(small)):
        return None
    ones = [i for i in range(len(small)) if i + base not in axes]
    return call("squeeze", value, axis=ones) if ones else value


def expanded(scale: Expr, like: Expr, axes: Axes) -> Expr:
    """A tensor of some axes with those of `like` behind and between them, of extent 1. Parts of an axis may be split otherwise."""
    extents = shape(like)
    if len(axes) > 1:
        return call("reshape", scale, newshape=[n if i in axes else 1 for i, n in enumerate(extents)])
    behind = len(extents) - 1 - axes[0]
    return call("expand_dims", scale, axis=1, num_newaxis=behind) if behind else scale


def addend(e: Call, axes: Axes, inner: int) -> bool:
    """Whether what a sum adds to an argument is a vector along some axes."""
    data, other = e.args[inner], e.args[1 - inner]
    return vector(other, other, data, axes) is not None and shape(data) == shape(e)


# ------------------------------------------------------------------------------------------------------------- weights


@dataclass(frozen=True)
class Weights:
    """An operator with weights: which axes of its data and of its result are the channels, and the axes of the weights that go
    with them (none where a scale of them is none of the weights)."""

    data_axes: Axes
    result_axes: Axes
    for_data: Axes
    for_result: Axes


def weights(e: Expr) -> Weights | None:
    """What is known of a call that has weights; None of others."""
    if not isinstance(e, Call) or e.attrs is None or len(e.args) != 2 or not all(map(is_known, (*e.args, e))):
        return None
    data, weight = (shape(a) for a in e.args)
    if op_name(e) == "nn.dense":
        return Weights((len(data) - 1,), (len(data) - 1,), (1,), (0,))
    attrs = e.attrs
    if op_name(e) not in _WINDOWS or attrs["out_layout"] not in ("", attrs["data_layout"]):
        return None
    own, kernel = layout(attrs["data_layout"]), layout(attrs["kernel_layout"])
    axes, out, into = tuple(own.parts("C")), tuple(kernel.parts("O")), tuple(kernel.parts("I"))
    if len(axes) != len(out) or len(out) != len(into) or len(own.axes) - len(own.primals) != len(axes) - 1:
        return None
    channels = _size(data, axes)
    depthwise = attrs["groups"] == channels == _size(weight, out) and _size(weight, into) == 1
    for_data = out if depthwise else into if attrs["groups"] == 1 else ()
    for_result = out if depthwise or attrs["groups"] == 1 else ()
    return Weights(axes, axes, for_data, for_result)


def _size(extents: tuple[object, ...], axes: Axes) -> int:
    found = 1
    for a in axes:
        n = extents[a]
        assert isinstance(n, int), "extents are known"
        found *= n
    return found


def scaled(e: Call, args: tuple[Expr, Expr], scale: Expr, axes: Axes) -> Expr:
    """A call with weights, on `args`, whose weights are multiplied by a scale along axes."""
    weight = call("multiply", args[1], expanded(scale, e.args[1], axes))
    return Call(e.op, [args[0], weight], e.attrs, (), e.span)


def is_same_type(e: Call) -> bool:
    """Whether data, weights and result have one type of elements, so that a scale of one can be multiplied by another."""
    return tensor(e).dtype == tensor(e.args[0]).dtype == tensor(e.args[1]).dtype

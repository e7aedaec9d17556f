"""Sums, means, extremes and norms along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from compass_core.arrays import Array
from compassc.graph.dtypes import numpy_dtype
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import (
    arithmetic,
    cast,
    divided,
    in_floats,
    unary,
)
from compassc.importers.onnx.reading import Reducing
from compassc.importers.values import Refused, Value, stored_type

METHODS = {
    "ReduceMax": "MAX",
    "ReduceMin": "MIN",
    "ReduceMean": "MEAN",
    "ReduceProd": "PROD",
    "ReduceSum": "SUM",
    "ReduceL1": "L1",
    "ReduceL2": "L2",
}
LARGEST_COUNT = 46340
"""Of whole numbers that have a mean: the square, which bounds the sum of their rests, has 31 bits."""
Make = Callable[[Building, Value, Sequence[int]], Value]


def reduced(b: Building, x: Value, method: str, axes: Sequence[int]) -> Value:
    """A reduction along axes, which are kept with size 1; along none, of each element by itself."""
    if not axes:
        return unary(b, x, "Abs") if method in ("L1", "L2") and x.dtype.kind != "u" else x
    if x.array is not None and not x.count:
        return Value.of(_of_nothing(x, method, axes))
    tensor, order = b.stored(x)
    places = sorted(order.index(x.axis(a)) for a in axes)
    shape = [1 if i in places else d for i, d in enumerate(tensor.shape)]
    made = b.layer("Reduce", [tensor], shape, stored_type(x.dtype), method=method, axis=places)
    return b.value(made, x.dtype, order)


def _of_nothing(x: Value, method: str, axes: Sequence[int]) -> Array:
    """The result of reducing no elements."""
    shape = [1 if i in {x.axis(a) for a in axes} else d for i, d in enumerate(x.shape)]
    if method in ("MAX", "MIN"):
        info = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        limits = (False, True) if x.dtype == bool else (info.min, info.max) if info else (-np.inf, np.inf)
        return np.full(shape, limits[method == "MIN"], x.dtype)
    return np.full(shape, {"PROD": 1, "MEAN": np.nan}.get(method, 0), x.dtype)


def reduction(b: Building, x: Value, method: str, axes: Sequence[int]) -> Value:
    """A reduction of real or whole numbers, whose results have the type of the numbers."""
    if x.is_float or method in ("MAX", "MIN", "SUM") or not axes:
        return reduced(b, x, method, axes)
    if method in WHOLE and x.count:
        return WHOLE[method](b, x, axes)
    return in_floats(b, x, lambda v: reduced(b, v, method, axes))


def _whole_mean(b: Building, x: Value, axes: Sequence[int]) -> Value:
    """The mean of whole numbers, toward zero, also where their sum does not fit: each divided by their number, and the
    rests together."""
    count = prod(x.shape[a] for a in axes)
    if count > LARGEST_COUNT:
        raise Refused(f"means of more than {LARGEST_COUNT} whole numbers are not supported")
    many = Value.of(np.full(1, count, x.dtype))
    share, rest = (reduced(b, v, "SUM", axes) for v in divided(b, x, many, "TRUNC"))
    more, left = divided(b, rest, many, "TRUNC")
    mean = arithmetic(b, share, more, "Add")
    if x.dtype.kind == "u":
        return mean
    # what is left lies on the other side of 0: one step toward it
    apart = arithmetic(b, unary(b, left, "Sign"), unary(b, mean, "Sign"), "Sub")
    return arithmetic(b, mean, divided(b, apart, Value.of(np.full(1, 2, x.dtype)), "TRUNC")[0], "Add")


def _whole_product(b: Building, x: Value, axes: Sequence[int]) -> Value:
    """The product of whole numbers, one half of them times the other: the layer keeps 16 bits of each step."""
    for axis in axes:
        odd: list[Value] = []
        while (size := x.shape[axis]) > 1:
            half = size // 2
            if size % 2:
                odd.append(b.sliced(x, [size - 1], [size], [1], [axis]))
            x = arithmetic(
                b, b.sliced(x, [0], [half], [1], [axis]), b.sliced(x, [half], [2 * half], [1], [axis]), "Mul"
            )
        for rest in odd:
            x = arithmetic(b, x, rest, "Mul")
    return x


WHOLE: dict[str, Make] = {
    "MEAN": _whole_mean,
    "PROD": _whole_product,
    "L1": lambda b, x, axes: reduced(b, unary(b, x, "Abs") if x.dtype.kind == "i" else x, "SUM", axes),
}
"""How whole numbers are reduced where the layer's own arithmetic loses some of their bits."""


def _by_method(method: str, b: Building, x: Value, axes: Sequence[int]) -> Value:
    return reduction(b, x, method, axes)


def _sum_square(b: Building, x: Value, axes: Sequence[int]) -> Value:
    square = unary(b, x, "Square") if x.is_float else arithmetic(b, x, x, "Mul")
    return reduced(b, square, "SUM", axes)


def _log_sum(b: Building, x: Value, axes: Sequence[int]) -> Value:
    return in_floats(b, x, lambda v: unary(b, reduced(b, v, "SUM", axes), "Log"))


def _log_sum_exp(b: Building, x: Value, axes: Sequence[int]) -> Value:
    """Less the maximum, so that nothing overflows."""
    if not axes:
        return x

    def make(v: Value) -> Value:
        most = reduced(b, v, "MAX", axes)
        bounded = cast(b, _finite(b, most), v.dtype)
        total = reduced(b, unary(b, arithmetic(b, v, bounded, "Sub"), "Exp"), "SUM", axes)
        return arithmetic(b, unary(b, total, "Log"), bounded, "Add")

    return in_floats(b, x, make)


def _finite(b: Building, x: Value) -> Value:
    """Of infinities the largest numbers, from which infinities differ."""
    import ml_dtypes

    most = float(ml_dtypes.finfo(numpy_dtype(stored_type(x.dtype))).max)
    return unary(b, x, "Activation", method="CLIP", clip_min=-most, clip_max=most)


def _declare(name: str, make: Make) -> None:
    @operator(name)
    def handler(b: Building, x: Value, axes: Constant | None = None, *, asked: Reducing) -> Value:
        chosen = asked.over(x, axes)
        found = make(b, x, chosen)
        return found if asked.keepdims or not chosen else b.squeeze(found, chosen)


for _name, _method in METHODS.items():
    _declare(_name, partial(_by_method, _method))
_declare("ReduceSumSquare", _sum_square)
_declare("ReduceLogSum", _log_sum)
_declare("ReduceLogSumExp", _log_sum_exp)

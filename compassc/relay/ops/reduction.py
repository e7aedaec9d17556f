"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.dtypes import dtype as data_type
from compassc.operators.arrays import mean_of_sum, place_of_extreme
from compassc.operators.calls import CallOperator, X
from compassc.operators.declare import Whole, numbers, sample
from compassc.operators.elementwise import mapped
from compassc.operators.expressions import define
from compassc.relay.attributes import Attrs
from compassc.relay.builders import BUILDERS, Builder, build, builder, call
from compassc.relay.expr import Expr, Tuple, TupleWrapper
from compassc.relay.ops.declare import REDUCTION, Body, Evaluate, Express, declare, record
from compassc.relay.ops.relations import axes_of, fail, require, shaped, stretched
from compassc.relay.types import Dim, RelationError, TensorType, Type
from compassc.te.tensor import Tensor

_FIELDS: dict[str, object] = {"axis": None, "keepdims": False, "exclude": False}
_ARGUMENTS = "data, axis=None, keepdims=False, exclude=False"
_SAMPLES = (
    sample((3, 4)), sample((2, 3, 4), axis=1), sample((2, 3, 4), axis=[0, -1], keepdims=True),
    sample((2, 3, 4), axis=[1], exclude=True), sample(()),
)  # fmt: skip


def reduced_axes(a: Attrs, rank: int) -> list[int]:
    """The axes that are reduced over, in order."""
    if a.axis is None or a.axis == ():
        return [] if a.exclude and a.axis == () else list(range(rank))
    try:
        named = axes_of(a.axis, rank)
    except RelationError:
        raise fail(f"Axis out of bounds in reduce operator: axis {a.axis} of {rank} dimensions") from None
    return [d for d in range(rank) if (d in named) != bool(a.exclude)]


def reduced(a: Attrs, data: TensorType, dtype: str = "") -> TensorType:
    """The type of a reduction."""
    axes = reduced_axes(a, len(data.shape))
    kept: list[Dim] = [1 if d in axes else n for d, n in enumerate(data.shape) if a.keepdims or d not in axes]
    return shaped(data, kept, dtype)


def _reduce(name: str) -> Body:
    return lambda call, a, t, x: _reduced(name, call, a, x)


def _reduced(name: str, call: CallOperator[X], a: Attrs, x: X) -> X:
    axes = reduced_axes(a, x.ndim)
    return call(name, x, axes, bool(a.keepdims)) if axes else call("identity", x)


_reduce_attrs = record("ReduceAttrs", **_FIELDS)
for _name in "sum max min prod".split():
    declare(_name, _ARGUMENTS, lambda a, x: reduced(a, x), REDUCTION, *_SAMPLES, record=_reduce_attrs,
            body=_reduce(_name), level=4, types=("float32", "int8", "int32"))  # fmt: skip


def _mean(a: Attrs, t: TensorType, x: Array) -> Array:
    axes = tuple(reduced_axes(a, x.ndim))
    count = int(np.prod([x.shape[d] for d in axes], dtype="int64"))
    made: Array
    if data_type(t.dtype).is_floating:
        made = np.mean(x, axes, dtype="float64", keepdims=a.keepdims)
    else:
        made = mean_of_sum(np.sum(x, axes, dtype="int64", keepdims=a.keepdims), max(count, 1), x.dtype)
    return made


def _mean_value(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
    return _reduced("mean", define, a, x)


declare("mean", _ARGUMENTS, lambda a, x: reduced(a, x), REDUCTION, *_SAMPLES, record=_reduce_attrs, reference=_mean,
        compute=_mean_value, level=4, types=("float32", "int8", "int32"))  # fmt: skip


def _truth(a: Attrs, data: TensorType) -> Type:
    require(data.dtype == "bool", lambda: f"the data must be of bools, it is {data}")
    return reduced(a, data)


_BOOLS = Whole((3, 4), 0, 2, "bool")
for _name in ("all", "any"):
    declare(_name, _ARGUMENTS, _truth, REDUCTION, sample(_BOOLS), sample(_BOOLS, axis=1), sample(_BOOLS, axis=0, keepdims=True),
            record=_reduce_attrs, body=_reduce(_name), level=4)  # fmt: skip


def _placed(name: str) -> Evaluate:
    """The place of the best element in the flattened axes: the first of equal ones, or the last."""
    largest = name == "argmax"

    def evaluate(a: Attrs, t: TensorType, x: Array) -> Array:
        axes = reduced_axes(a, x.ndim)
        others = [d for d in range(x.ndim) if d not in axes]
        rows = x.transpose([*others, *axes]).reshape([x.shape[d] for d in others] + [-1])
        found = place_of_extreme(rows[..., ::-1] if a.select_last_index else rows, -1, largest)
        found = rows.shape[-1] - 1 - found if a.select_last_index else found
        return np.expand_dims(found, tuple(axes)) if a.keepdims else found

    return evaluate


def _from_end(rows: Tensor, places: Tensor) -> Tensor:
    last = numbers(rows, "argmax")[-1] - 1
    return mapped(places, lambda v: te.const(last) - v, "T_from_end")


def _place_value(name: str) -> Express:
    def express(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
        axes = reduced_axes(a, x.ndim)
        others = [d for d in range(x.ndim) if d not in axes]
        rows = define("transpose", x, [*others, *axes]) if others + axes != list(range(x.ndim)) else x
        shape = numbers(rows, name)
        flat = define("reshape", rows, [*shape[: len(others)], int(np.prod(shape[len(others) :], dtype="int64"))])
        if a.select_last_index:
            found = _from_end(flat, define(name, define("flip", flat, len(others)), len(others)))
        else:
            found = define(name, flat, len(others))
        return define("reshape", found, list(t.concrete_shape)) if t.shape else found

    return express


_place_attrs = record("ArgReduceAttrs", axis=None, keepdims=False, select_last_index=False, exclude=False)
_TIES = np.array([[1, 3, 3], [3, 1, 2]], "int32")
for _name in ("argmax", "argmin"):
    declare(
        _name, _ARGUMENTS + ", select_last_index=False", lambda a, x: reduced(a, x, "int32"), REDUCTION, *_SAMPLES[:4],
        sample(_TIES, axis=1), sample(_TIES, axis=1, select_last_index=True), sample(_TIES),
        record=_place_attrs, reference=_placed(_name), compute=_place_value(_name), level=4,
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- variance


def _variance(a: Attrs, data: TensorType, mean: TensorType) -> Type:
    require(mean.dtype == data.dtype, lambda: f"the data is {data}, its mean {mean}: their data types must be one")
    stretched(data.shape, mean.shape, lambda: f"a mean {mean} does not go with the data {data}")
    return reduced(a, data)


def _spread(call: CallOperator[X], a: Attrs, t: TensorType, x: X, mean: X) -> X:
    axes = reduced_axes(a, x.ndim)
    shape = numbers(x, "variance") if isinstance(x, Tensor) else list(x.shape)
    count = int(np.prod([shape[d] for d in axes], dtype="int64")) - bool(a.unbiased)
    apart = call("subtract", x, mean)
    return call("divide", call("sum", call("multiply", apart, apart), axes, bool(a.keepdims)), float(count))


declare(
    "variance", "data, mean, axis=None, keepdims=False, exclude=False, unbiased=False", _variance, REDUCTION,
    sample((3, 4), (3, 1), axis=[1]), sample((3, 4), (1, 1), keepdims=True, unbiased=True),
    record=record("VarianceAttrs", axis=None, keepdims=False, exclude=False, unbiased=False), body=_spread, level=4,
    build=False,
)  # fmt: skip


@builder("variance")
def variance(
    data: Expr, axis: object = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False, with_mean: object = None
) -> Expr:  # fmt: skip
    """The mean of squares about the mean (`with_mean`, with the reduced axes as 1, where it is known)."""
    mean = build("mean", data, axis, True, exclude) if with_mean is None else with_mean
    return call("variance", data, mean, axis=axis, keepdims=keepdims, exclude=exclude, unbiased=unbiased)


@builder("std")
def std(
    data: Expr, axis: object = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False, with_mean: object = None
) -> Expr:  # fmt: skip
    """The root of the variance."""
    return build("sqrt", variance(data, axis, keepdims, exclude, unbiased, with_mean))


def _with_mean(spread: Callable[..., Expr]) -> Builder:
    def both(
        data: Expr, axis: object = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
    ) -> TupleWrapper:
        mean = build("mean", data, axis, True, exclude)
        value = spread(data, axis, keepdims, exclude, unbiased, mean)
        return TupleWrapper(Tuple([mean if keepdims else build("squeeze", mean, axis), value]), 2)

    return both


BUILDERS["mean_variance"], BUILDERS["mean_std"] = _with_mean(variance), _with_mean(std)


@builder("logsumexp")
def logsumexp(data: Expr, axis: object = None, keepdims: bool = False) -> Expr:
    """The logarithm of the sum of exponentials, of what the largest element is taken from."""
    peak = build("max", data, axis, True)
    total = build("sum", build("exp", data - peak), axis, True)
    found = build("log", total) + peak
    return found if keepdims else build("squeeze", found, axis)

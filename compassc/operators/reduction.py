"""Reductions over axes, and the places of the largest and the smallest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.dtypes import INT32, dtype
from compassc.ir.exprs import Expr
from compassc.ir.iter_vars import IterVar
from compassc.operators import arrays
from compassc.operators.declare import (
    axes_of,
    axis_of,
    largest,
    mean_of,
    number,
    numbers,
    operator,
    sample,
    sizes,
    smallest,
    summed,
    wide,
)
from compassc.operators.elementwise import cast, mapped
from compassc.operators.movement import reshape
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from compassc.te.reduce import Reducer

Axes = int | list[int] | tuple[int, ...] | None
"""One axis, several, or all."""
_SAMPLES = (sample((4, 5)), sample((3, 4, 5), 1), sample((3, 4, 5), [0, 2], keepdims=True), sample((3, 4, 5), -1))


def reduced(
    x: Tensor, axis: object, keepdims: bool, function: Callable[[Expr, list[IterVar]], object], name: str
) -> Tensor:
    """A reduction of the elements over axes; `function` gets an element and the axes to reduce over."""
    axes, shape = axes_of(axis, x.ndim, name), sizes(x)
    over = {d: te.reduce_axis((0, shape[d]), name=f"k{d}") for d in axes}
    kept = [d for d in range(x.ndim) if d not in axes]
    made = [1 if d in axes else shape[d] for d in range(x.ndim)] if keepdims else [shape[d] for d in kept]

    def element(*i: Expr) -> object:
        places = dict(zip(range(x.ndim) if keepdims else kept, i))
        return function(x[tuple(over[d] if d in over else places[d] for d in range(x.ndim))], list(over.values()))

    found: Tensor = te.compute(made or [1], element, name=f"T_{name}", tag="comm_reduce")
    return found


def _wide(x: Tensor, axis: object, keepdims: bool, reducer: Reducer, name: str) -> Tensor:
    """A reduction of narrow reals in float32, the result as they are."""
    kind = wide(x.dtype)
    found = reduced(x, axis, keepdims, lambda e, over: reducer(te.cast(e, kind), over), name)
    return found if kind is x.dtype else cast(found, str(x.dtype))


@operator(
    PatternKind.REDUCTION,
    lambda x, axis=None, keepdims=False: np.sum(x, _np(axis), dtype=x.dtype, keepdims=keepdims),
    *_SAMPLES,
)
def sum(data: Tensor, axis: object = None, keepdims: bool = False) -> Tensor:
    """The sum, in the type of the elements; of float16 it is computed in float32."""
    return _wide(data, axis, keepdims, te.sum, "sum")


@operator(
    PatternKind.REDUCTION,
    lambda x, axis=None, keepdims=False: np.prod(x, _np(axis), dtype=x.dtype, keepdims=keepdims),
    *(sample(*s.args, low=0.5, high=1.5, **s.options) for s in _SAMPLES),
)
def prod(data: Tensor, axis: object = None, keepdims: bool = False) -> Tensor:
    """The product, in the type of the elements; of float16 it is computed in float32."""
    if data.dtype.is_integer and data.dtype.bits == 8:  # there are no products of bytes; the low bits are the same
        whole = reduced(data, axis, keepdims, lambda e, over: te.prod(te.cast(e, INT32), over), "prod")
        return cast(whole, str(data.dtype))
    return _wide(data, axis, keepdims, te.prod, "prod")


@operator(
    PatternKind.REDUCTION, lambda x, axis=None, keepdims=False: arrays.largest_of(x, _np(axis), keepdims), *_SAMPLES
)
def max(data: Tensor, axis: object = None, keepdims: bool = False) -> Tensor:
    """The largest element; of bools whether one is true. NaN is left out; where there is nothing else, it is minus infinity."""
    if data.dtype.is_bool:
        return any(data, axis, keepdims)
    return reduced(data, axis, keepdims, largest, "max")


@operator(
    PatternKind.REDUCTION, lambda x, axis=None, keepdims=False: arrays.smallest_of(x, _np(axis), keepdims), *_SAMPLES
)
def min(data: Tensor, axis: object = None, keepdims: bool = False) -> Tensor:
    """The smallest element; of bools whether all are true. NaN is left out; where there is nothing else, it is infinity."""
    if data.dtype.is_bool:
        return all(data, axis, keepdims)
    return reduced(data, axis, keepdims, smallest, "min")


@operator(PatternKind.REDUCTION, lambda x, axis=None, keepdims=False: arrays.mean(x, _np(axis), keepdims), *_SAMPLES)
def mean(data: Tensor, axis: object = None, keepdims: bool = False) -> Tensor:
    """The sum over the count; of whole numbers cut towards zero, in their type. Their sums wrap around in int32, or in their
    own type where that has 32 bits."""
    shape = numbers(data, "mean")
    count = int(np.prod([shape[d] for d in axes_of(axis, data.ndim, "mean")], dtype=np.int64))
    kind = summed(data.dtype)
    total = reduced(data, axis, keepdims, lambda e, over: te.sum(te.cast(e, kind), over), "mean_sum")
    return mapped(total, lambda v: mean_of(v, count, data.dtype), "T_mean")


def _np(axis: Axes) -> int | tuple[int, ...] | None:
    return tuple(axis) if isinstance(axis, list) else axis


def _place(name: str, best: Reducer, worse: Callable[[Expr, Expr], Expr]) -> Callable[..., Tensor]:
    """The first place of the best element: the best number, then the least of the places where there is none `worse`, which is
    that of NaN, too, so that there is one in every row. Both become vectors."""

    def apply(data: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
        if axis is None:
            shape = numbers(data, name)
            flat = reshape(data, [int(np.prod(shape, dtype=np.int64))])
            found = apply(flat, 0)
            return reshape(found, [1] * data.ndim) if keepdims else found
        at, shape = axis_of(axis, data.ndim, name), sizes(data)
        k, j = (te.reduce_axis((0, shape[at]), name=n) for n in "kj")
        made = [1 if d == at else e for d, e in enumerate(shape) if keepdims or d != at]

        def value(i: tuple[Expr, ...], over: IterVar) -> Expr:
            rest = (*i[:at], *i[at + 1 :]) if keepdims else i if data.ndim > 1 else ()
            found: Expr = data[(*rest[:at], over, *rest[at:])]
            return found

        top: Tensor = te.compute(made or [1], lambda *i: best(value(i, k), axis=k), name=f"T_{name}_best")

        kind = (
            dtype("int16") if data.dtype.bytes < 4 and 64 <= shape[at] <= 1 << 15 else INT32
        )  # lanes as near to those of elements as can be
        none = te.const((1 << kind.bits - 1) - 1, str(kind))

        def place(*i: Expr) -> object:
            return te.min(te.Select(worse(value(i, j), top[i]), none, te.cast(j, kind)), axis=j)

        places: Tensor = te.compute(made or [1], place, name=f"T_{name}_place", tag="comm_reduce_idx")
        return places if kind is INT32 else cast(places, "int32")

    apply.__name__ = name
    apply.__doc__ = (
        f"The place of the {name[3:]}imum on an axis, the first one of equal ones; of all elements for None. NaN counts as equal "
        f"to it, where NumPy gives the place of the first NaN."
    )
    return apply


def _arg(largest: bool) -> Callable[..., Array]:
    def apply(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
        if axis is None:
            return arrays.place_of_extreme(x.reshape(-1), 0, largest).reshape([1] * (x.ndim if keepdims else 1))
        found = arrays.place_of_extreme(x, axis, largest)
        return np.expand_dims(found, axis) if keepdims else found.reshape(found.shape or 1)

    return apply


_ARG_SAMPLES = (sample((4, 6), 1), sample((3, 4, 5), 0, keepdims=True), sample((3, 4)), sample((3, 5), keepdims=True))
argmax = operator(PatternKind.REDUCTION, _arg(largest=True), *_ARG_SAMPLES)(
    _place("argmax", largest, lambda x, top: x < top)
)
argmin = operator(PatternKind.REDUCTION, _arg(largest=False), *_ARG_SAMPLES)(
    _place("argmin", smallest, lambda x, top: x > top)
)


@operator(
    PatternKind.REDUCTION,
    lambda x, axis=None, keepdims=False: np.all(x != 0, _np(axis), keepdims=keepdims),
    sample((3, 5), 1),
    types=("int8",),
)
def all(data: Tensor, axis: object = None, keepdims: bool = False) -> Tensor:
    """Whether no element is 0."""
    zero = number(0, data.dtype)
    return reduced(data, axis, keepdims, lambda e, over: te.all(e != zero, axis=over), "all")


@operator(
    PatternKind.REDUCTION,
    lambda x, axis=None, keepdims=False: np.any(x != 0, _np(axis), keepdims=keepdims),
    sample((3, 5), 1),
    types=("int8",),
)
def any(data: Tensor, axis: object = None, keepdims: bool = False) -> Tensor:
    """Whether an element is not 0."""
    zero = number(0, data.dtype)
    return reduced(data, axis, keepdims, lambda e, over: te.any(e != zero, axis=over), "any")

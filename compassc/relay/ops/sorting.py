"""Operators that sort, search, count, and sum along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.exprs import Expr as Element
from compassc.operators.arrays import order
from compassc.operators.declare import Whole, sample
from compassc.operators.expressions import define
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, TupleWrapper
from compassc.relay.ops.declare import OPAQUE, VOID, Evaluate, Express, declare, record
from compassc.relay.ops.relations import axis_of, differ, product, require, shaped
from compassc.relay.ops.shapes import extents, listed
from compassc.relay.types import Dim, TensorType, TupleType, Type
from compassc.te.reduce import Reducer
from compassc.te.tensor import Tensor


def _sorted(a: Attrs, x: TensorType) -> Type:
    axis_of(a.axis, len(x.shape))
    return x


_sort_attrs = record("ArgsortAttrs", axis=-1, is_ascend=True, dtype=VOID)
_TIES = np.array([[3, 1, 3, 2], [0, 0, 1, 1]], "int32")
declare(
    "sort", "data, axis=-1, is_ascend=1", _sorted, OPAQUE, sample((3, 7)), sample((5, 2), axis=0, is_ascend=False),
    record=_sort_attrs, reference=lambda a, t, x: np.take_along_axis(x, order(x, a.axis, a.is_ascend), a.axis), level=6,
    compute=lambda a, t, x: define("sort", x, a.axis, bool(a.is_ascend)), prepare=lambda v: v.update(is_ascend=bool(v["is_ascend"])),
)  # fmt: skip
declare(
    "argsort", 'data, axis=-1, is_ascend=1, dtype="int32"', lambda a, x: shaped(_tensor(_sorted(a, x)), x.shape, a.dtype or "int32"),
    OPAQUE, sample((3, 7), dtype="int32"), sample(_TIES, is_ascend=False, dtype="int32"), record=_sort_attrs, level=6,
    reference=lambda a, t, x: order(x, a.axis, a.is_ascend), prepare=lambda v: v.update(is_ascend=bool(v["is_ascend"])),
    compute=lambda a, t, x: define("argsort", x, a.axis, bool(a.is_ascend)),
)  # fmt: skip


def _tensor(t: Type) -> TensorType:
    assert isinstance(t, TensorType)
    return t


# -------------------------------------------------------------------------------------------------------------- the largest

RESULTS = ("both", "values", "indices")


def top_type(a: Attrs, x: TensorType, count: Dim) -> Type:
    """The types of the largest elements of an axis and of their places."""
    at = axis_of(a.axis, len(x.shape))
    require(a.ret_type in RESULTS, lambda: f"ret_type is one of {', '.join(RESULTS)}, not '{a.ret_type}'")
    shape = [*x.shape[:at], count, *x.shape[at + 1 :]]
    values, places = shaped(x, shape), shaped(x, shape, a.dtype or "int32")
    return {"both": TupleType([values, places]), "values": values, "indices": places}[a.ret_type]


def _top(a: Attrs, x: TensorType) -> Type:
    extent = x.shape[axis_of(a.axis, len(x.shape))]
    require(not isinstance(extent, int) or a.k <= extent, lambda: f"k {a.k} is larger than the axis of {extent} of {x}")
    return top_type(a, x, extent if a.k < 1 else a.k)


def top(a: Attrs, x: Array, count: int) -> Array | tuple[Array, Array]:
    """The largest (or smallest) elements of an axis in order, and their places."""
    places = np.take(order(x, a.axis, a.is_ascend), range(count if count > 0 else x.shape[a.axis]), a.axis)
    values = np.take_along_axis(x, places, a.axis)
    made: dict[str, Array | tuple[Array, Array]] = {"both": (values, places), "values": values, "indices": places}
    return made[a.ret_type]


declare(
    "topk", "data, k, axis, ret_type, is_ascend, dtype", _top, OPAQUE, sample((3, 9), k=4, dtype="int32"),
    sample((5, 4), k=0, axis=0, ret_type="values", is_ascend=True), sample(_TIES, k=3, ret_type="indices", dtype="int64"),
    record=record("TopkAttrs", k=..., axis=-1, ret_type="both", is_ascend=False, dtype=VOID), build=False, level=6,
    reference=lambda a, t, x: top(a, x, a.k),
    compute=lambda a, t, x: define("topk", x, max(a.k, 0), a.axis, a.ret_type, bool(a.is_ascend), a.dtype or "int32"),
)  # fmt: skip


@builder("topk")
def topk(
    data: Expr, k: object = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32"
) -> Expr | TupleWrapper:
    """The `k` largest (or smallest) elements of an axis in order, and their places; all for k below 1."""
    count = listed(k)
    options: dict[str, object] = {"axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype}
    if isinstance(count, Expr):
        made = call("dyn.topk", data, count, k=None, **options)
    else:
        made = call("topk", data, k=count[0] if isinstance(count, list) else count, **options)
    return TupleWrapper(made, 2) if ret_type == "both" else made


def _searched(a: Attrs, edges: TensorType, values: TensorType) -> Type:
    require(len(edges.shape) > 0, lambda: f"the sorted sequence needs a dimension, it is {edges}")
    require(edges.dtype == values.dtype, lambda: f"the sequence is {edges}, the values {values}: their data types must be one")  # fmt: skip
    if len(edges.shape) > 1:
        same = len(edges.shape) == len(values.shape) and not any(map(differ, edges.shape[:-1], values.shape[:-1]))
        require(same, lambda: f"the sequence {edges} and the values {values} differ on outer axes")
    return shaped(values, values.shape, a.dtype or "int32")


def _search(a: Attrs, t: TensorType, edges: Array, values: Array) -> Array:
    side: Literal["right", "left"] = "right" if a.right else "left"
    if edges.ndim == 1:
        return np.searchsorted(edges, values, side)
    found = np.empty(values.shape, "int64")
    for i in np.ndindex(edges.shape[:-1]):
        found[i] = np.searchsorted(edges[i], values[i], side)
    return found


declare(
    "searchsorted", 'sorted_sequence, values, right=False, dtype="int32"', _searched, OPAQUE,
    sample(np.array([1, 3, 3, 5], "float32"), (2, 3)), sample(np.array([[1, 2], [3, 4]], "float32"), (2, 3), right=True),
    record=record("SearchSortedAttrs", right=False, dtype="int32"), reference=_search, level=6,
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- running sums


def _scanned(a: Attrs, x: TensorType) -> Type:
    if a.axis is not None:
        axis_of(a.axis, len(x.shape))
    return shaped(x, x.shape if a.axis is not None else [product(x.shape)], a.dtype)


def _scan(name: str, first: int) -> Evaluate:
    def evaluate(a: Attrs, t: TensorType, x: Array) -> Array:
        data, axis = (x.reshape(-1), 0) if a.axis is None else (x, a.axis)
        found: Array = getattr(np, name)(data, axis, dtype=t.dtype)
        if not a.exclusive:
            return found
        kept = np.take(found, range(data.shape[axis] - 1), axis)
        start = np.full_like(np.take(found, range(1), axis), first)
        return np.concatenate([start, kept], axis)

    return evaluate


def _scan_value(reducer: Reducer, first: int) -> Express:
    def express(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
        data, at = (define("reshape", x, list(t.concrete_shape)), 0) if a.axis is None else (x, a.axis % x.ndim)
        k = te.reduce_axis((0, extents(data)[at]), name="k")

        def element(*i: Element) -> Element:
            counted = k < i[at] if a.exclusive else k <= i[at]
            own = te.cast(data[(*i[:at], k, *i[at + 1 :])], t.dtype)
            made: Element = reducer(te.Select(counted, own, te.const(first, t.dtype)), axis=k)
            return made

        made: Tensor = te.compute(list(t.concrete_shape), element, name="T_scan", tag="comm_reduce")
        return made

    return express


_scan_attrs = record("ScanopAttrs", axis=None, dtype=VOID, exclusive=False)
for _name, _first, _reducer in (("cumsum", 0, te.sum), ("cumprod", 1, te.prod)):
    declare(
        _name, "data, axis=None, dtype=None, exclusive=None", _scanned, OPAQUE, sample((3, 4)), sample((3, 4), axis=1, exclusive=True),
        sample(Whole((3, 4), -9, 9, "int8"), axis=0), sample(Whole((3, 4), -9, 9, "int8"), axis=0, dtype="int32"),
        record=_scan_attrs, reference=_scan(_name, _first), compute=_scan_value(_reducer, _first), prepare=lambda v: v.update(exclusive=bool(v["exclusive"])),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------- unique


def _distinct(a: Attrs, x: TensorType) -> Type:
    require(len(x.shape) == 1, lambda: f"the data must have one dimension, it is {x}")
    (n,) = x.shape
    places = TensorType((n,), "int32")
    return TupleType([x, places, places, TensorType((1,), "int32"), *[places] * a.return_counts])


def _unique(a: Attrs, t: TupleType, x: Array) -> Sequence[Array]:
    """Results of the length of the data; what is behind the distinct values is 0."""
    values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    if not a.sorted:  # in the order in which they come
        rank = np.argsort(first, kind="stable")
        place = np.argsort(rank, kind="stable")
        values, first, counts, inverse = values[rank], first[rank], counts[rank], place[inverse]

    def filled(given: Array) -> Array:
        made = np.zeros(x.shape, given.dtype)
        made[: len(given)] = given
        return made

    found = [filled(values), filled(first), inverse.reshape(x.shape), np.array([len(values)])]
    return [*found, *[filled(counts)] * bool(a.return_counts)]


declare(
    "unique", "data, sorted, return_counts", _distinct, OPAQUE, sample(np.array([3, 1, 3, 0], "int32"), sorted=True, return_counts=True),
    sample(np.array([3, 1, 3, 0], "int32"), sorted=False), record=record("UniqueAttrs", sorted=True, return_counts=False),
    reference=_unique, build=False,
)  # fmt: skip


@builder("unique")
def unique(data: Expr, is_sorted: bool = True, return_counts: bool = False) -> TupleWrapper:
    """The distinct values: they, where each is first, which one each element is, how many there are (and how often)."""
    made = call("unique", data, sorted=is_sorted, return_counts=return_counts)
    return TupleWrapper(made, 5 if return_counts else 4)

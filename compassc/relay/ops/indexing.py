"""Operators whose places are data: what is taken, gathered, scattered and masked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.ir.expr_op import ExprOp
from compassc.ir.exprs import Expr as Element
from compassc.operators.arrays import larger, smaller
from compassc.operators.declare import Whole, greatest, largest, least, number, sample, smallest
from compassc.operators.expressions import define
from compassc.operators.movement import from_flat
from compassc.relay.attributes import Attrs
from compassc.relay.builders import build, builder
from compassc.relay.expr import Expr, const
from compassc.relay.ops.declare import INJECTIVE, OPAQUE, declare, record
from compassc.relay.ops.relations import (
    axis_of,
    differ,
    fail,
    require,
    shaped,
    stretched,
    tensors,
)
from compassc.relay.ops.shapes import extents
from compassc.relay.types import Dim, Open, TensorType, TupleType, Type
from compassc.te.reduce import Reducer
from compassc.te.tensor import Tensor


def whole(t: TensorType, what: str = "the indices") -> None:
    """RelationError for a tensor of reals."""
    require(t.dtype.startswith(("int", "uint")), lambda: f"{what} must be whole numbers, not {t}")


# ------------------------------------------------------------------------------------------------------------------- taken


def _batches(a: Attrs, rank: int) -> int:
    dims = a.batch_dims + rank if a.batch_dims < 0 else a.batch_dims
    require(0 <= dims <= rank, lambda: f"batch_dims {a.batch_dims} is out of range for indices of {rank} dimensions")
    return int(dims)


def _taken(a: Attrs, x: TensorType, indices: TensorType) -> Type:
    whole(indices)
    require(a.mode in ("clip", "wrap", "fast"), lambda: f"there is no mode '{a.mode}': clip, wrap, fast")
    if a.axis is None:
        return shaped(x, indices.shape)
    at, batch = axis_of(a.axis, len(x.shape)), _batches(a, len(indices.shape))
    require(batch <= at, lambda: f"batch_dims {a.batch_dims} must not be above axis {a.axis}")
    for m, n in zip(x.shape[:batch], indices.shape):
        require(not differ(m, n), lambda: f"the data {x} and the indices {indices} have different batches")
    return shaped(x, [*x.shape[:at], *indices.shape[batch:], *x.shape[at + 1 :]])


def _inside(places: Array, extent: int, mode: str) -> Array:
    """Places on an axis: the nearest there are, or counted round."""
    if mode == "wrap":
        return np.mod(places, extent)
    if mode == "fast" and places.size and (places.min() < 0 or places.max() >= extent):
        raise ExpressionError(f"take: there are places outside of 0..{extent - 1}", 'give mode="clip" or "wrap"')
    return np.clip(places, 0, extent - 1)


def _take(a: Attrs, t: TensorType, x: Array, indices: Array) -> Array:
    if a.axis is None:
        return x.reshape(-1)[_inside(indices, x.size, a.mode)]
    at, batch = a.axis % x.ndim, _batches(a, indices.ndim)
    places = _inside(indices, x.shape[at], a.mode)
    if not batch:
        return np.take(x, places, at)
    rows = [np.take(x[b], places[b], at - batch) for b in np.ndindex(x.shape[:batch])]
    return np.stack(rows).reshape([*x.shape[:batch], *rows[0].shape])


def _place_value(place: Element, extent: int, mode: str) -> Element:
    if mode == "wrap":
        made: Element = te.floormod(place, extent)
        return made
    return place if mode == "fast" else te.max(te.min(place, extent - 1), 0)


def _take_value(a: Attrs, t: TensorType, x: Tensor, indices: Tensor) -> Tensor:
    batch = 0 if a.axis is None else _batches(a, indices.ndim)
    if not batch:
        return define("take", x, indices, a.axis, a.mode)
    at, end = a.axis % x.ndim, a.axis % x.ndim + indices.ndim - batch

    def element(*i: Element) -> Element:
        place = te.cast(indices[(*i[:batch], *i[at:end])], "int32")
        return x(*i[:at], _place_value(place, extents(x)[at], a.mode), *i[end:])

    made: Tensor = te.compute(list(t.concrete_shape), element, name="T_take", tag="injective")
    return made


declare(
    "take", 'data, indices, axis=None, batch_dims=0, mode="clip"', _taken, INJECTIVE,
    sample((5, 4), Whole((2, 3), -1, 7), axis=0), sample((3, 6), Whole((4,), -9, 9), axis=-1, mode="wrap"),
    sample((3, 4), Whole((5,), 0, 12)), sample((2, 5, 3), Whole((2, 4), 0, 5), axis=1, batch_dims=1), record=record("TakeAttrs", batch_dims=0, axis=None, mode="clip"),
    reference=_take, compute=_take_value, types=("float32", "int8"), level=3,
)  # fmt: skip


def _gathered(a: Attrs, x: TensorType, indices: TensorType) -> Type:
    whole(indices)
    at = axis_of(a.axis, len(x.shape))
    require(len(x.shape) == len(indices.shape), lambda: f"the data {x} and the indices {indices} have different ranks")
    for d, (m, n) in enumerate(zip(x.shape, indices.shape)):
        require(d == at or not differ(m, n), lambda: f"the data {x} and the indices {indices} differ on axes other than {at}")  # fmt: skip
    return shaped(x, indices.shape)


declare(
    "gather", "data, axis, indices", _gathered, INJECTIVE, sample((4, 5), Whole((4, 3), 0, 5), axis=1),
    sample((4, 5), Whole((2, 5), 0, 4), axis=0), record=record("GatherAttrs", axis=None), level=3,
    body=lambda call, a, t, x, i: call("gather", x, a.axis, i),
)  # fmt: skip


def _nd(a: Attrs, x: TensorType, indices: TensorType) -> Type:
    whole(indices)
    require(len(indices.shape) > 0, lambda: f"the indices need a dimension, they are {indices}")
    count = indices.shape[0] if a.index_rank is None else a.index_rank
    require(isinstance(count, int), lambda: f"how many axes the indices {indices} name must be known: give index_rank")
    require(a.batch_dims >= 0, lambda: f"batch_dims {a.batch_dims} must not be below 0")
    named = a.batch_dims + (count if isinstance(count, int) else 0)
    require(
        named <= len(x.shape), lambda: f"indices {indices} with batch_dims {a.batch_dims} name more axes than {x} has"
    )
    return shaped(x, [*indices.shape[1:], *x.shape[named:]])


def _nd_reference(a: Attrs, t: TensorType, x: Array, indices: Array) -> Array:
    batches = np.indices(indices.shape[1:], sparse=True)[: a.batch_dims]
    made: Array = x[(*batches, *indices)]
    return made


def _nd_value(a: Attrs, t: TensorType, x: Tensor, indices: Tensor) -> Tensor:
    if not a.batch_dims:
        return define("gather_nd", x, indices)
    shape, (count, *inner) = extents(x), extents(indices)

    def element(*i: Element) -> Element:
        places = [te.cast(indices[(n, *i[: len(inner)])], "int32") for n in range(count)]
        named = [te.Select(p < 0, p + m, p) for p, m in zip(places, shape[a.batch_dims :])]
        return x(*i[: a.batch_dims], *named, *i[len(inner) :])

    made: Tensor = te.compute(list(t.concrete_shape), element, name="T_gather_nd", tag="injective")
    return made


declare(
    "gather_nd", "data, indices, batch_dims=0, index_rank=None", _nd, INJECTIVE, sample((4, 5), Whole((2, 3), 0, 4)),
    sample((4, 5), Whole((1, 3), 0, 4)), sample((2, 4, 5), Whole((1, 2), -3, 4), batch_dims=1), record=record("GatherNDAttrs", batch_dims=0, index_rank=None), level=3,
    reference=_nd_reference, compute=_nd_value,
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- scattered

_JOINS: dict[str, Callable[[Array, Array], Array]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "mean": lambda old, new: (old + new) / 2,
    "min": smaller,
    "max": larger,
}
"""What an element and an update give. The mean is taken with one update after the other."""


def _known(reduction: str, *without: str) -> None:
    names = [n for n in _JOINS if n not in without]
    require(reduction in names, lambda: f"there is no '{reduction}': {', '.join(names)}")


def _elements(a: Attrs, x: TensorType, indices: TensorType, updates: TensorType) -> Type:
    whole(indices)
    axis_of(a.axis, len(x.shape))
    _known(a.reduction)
    require(len(x.shape) == len(indices.shape), lambda: f"the data {x} and the indices {indices} have different ranks")
    same = len(indices.shape) == len(updates.shape) and not any(map(differ, indices.shape, updates.shape))
    require(same, lambda: f"indices {indices} and updates {updates} have different shapes")
    require(updates.dtype == x.dtype, lambda: f"the data is {x}, the updates {updates}: their data types must be one")
    return x


def _scatter(a: Attrs, t: TensorType, x: Array, indices: Array, updates: Array) -> Array:
    made, axis, join = x.copy(), a.axis % x.ndim, _JOINS[a.reduction]
    for i in np.ndindex(indices.shape):
        at = (*i[:axis], indices[i], *i[axis + 1 :])
        made[at] = join(made[at], updates[i])
    return made


def _scatter_value(a: Attrs, t: TensorType, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return define("scatter_elements", x, indices, updates, a.axis, a.reduction)


declare(
    "scatter_elements", 'data, indices, updates, axis=0, reduction="update"', _elements, OPAQUE,
    sample((5, 3), Whole((4, 3), 0, 5), (4, 3)), sample((3, 6), Whole((3, 4), -6, 6), (3, 4), axis=-1),
    *(sample((5, 3), Whole((7, 3), 0, 5), (7, 3), reduction=r) for r in ("add", "min", "max")),
    record=record("ScatterElementsAttrs", axis=0, reduction="update"), reference=_scatter, compute=_scatter_value, level=10,
)  # fmt: skip


def _scattered_nd(a: Attrs, x: TensorType, indices: TensorType, updates: TensorType) -> Type:
    whole(indices)
    _known(a.mode, "mean")
    count = indices.shape[0] if indices.shape else 0
    require(isinstance(count, int) and 0 < count <= len(x.shape), lambda: f"indices {indices} do not name axes of {x}")
    wanted = [*indices.shape[1:], *x.shape[count if isinstance(count, int) else 0 :]]
    fits = len(wanted) == len(updates.shape) and not any(map(differ, wanted, updates.shape))
    require(fits, lambda: f"updates {updates} of the data {x} at indices {indices} must have the shape {wanted}")
    require(updates.dtype == x.dtype, lambda: f"the data is {x}, the updates {updates}: their data types must be one")
    return x


def _scatter_nd(a: Attrs, t: TensorType, x: Array, indices: Array, updates: Array) -> Array:
    made, join = x.copy(), _JOINS[a.mode]
    for i in np.ndindex(indices.shape[1:]):
        at = tuple(indices[(slice(None), *i)])
        made[at] = join(made[at], updates[i])
    return made


def _scatter_nd_value(a: Attrs, t: TensorType, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Each element looks at all updates: the last one of its place counts, or all are joined."""
    count, *inner = extents(indices)
    k = te.reduce_axis((0, int(np.prod(inner, dtype="int64"))), name="k")

    def update(i: Sequence[Element], place: ExprOp) -> Element:
        return updates(*from_flat(place, inner), *i[count:])

    def hit(i: Sequence[Element]) -> Element:
        at = from_flat(k, inner)
        places = [te.cast(indices[(n, *at)], "int32") for n in range(count)]
        made: Element = te.all(*(te.Select(p < 0, p + n, p) == v for p, n, v in zip(places, extents(x), i)))
        return made

    made: Tensor
    if a.mode == "update":
        last = te.compute(
            extents(x), lambda *i: te.max(te.if_then_else(hit(i), te.cast(k, "int32"), te.const(-1)), axis=k), name="T_scatter_last", tag="comm_reduce"
        )  # fmt: skip
        made = te.compute(
            extents(x), lambda *i: te.if_then_else(last[i] >= 0, update(i, te.max(last[i], 0)), x[i]), name="T_scatter_nd", tag="injective"
        )  # fmt: skip
        return made
    joins: dict[str, tuple[Reducer, Callable[[Element, Element], Element], Element]] = {
        "add": (te.sum, lambda p, q: p + q, number(0, t.dtype)),
        "mul": (te.prod, lambda p, q: p * q, number(1, t.dtype)),
        "min": (smallest, lambda p, q: te.min(p, q), greatest(t.dtype)),
        "max": (largest, lambda p, q: te.max(p, q), least(t.dtype)),
    }
    reducer, join, nothing = joins[a.mode]
    joined = te.compute(
        extents(x), lambda *i: reducer(te.if_then_else(hit(i), update(i, k), nothing), axis=k), name="T_scatter_joined", tag="comm_reduce"
    )  # fmt: skip
    made = te.compute(extents(x), lambda *i: join(x[i], joined[i]), name="T_scatter_nd", tag="injective")
    return made


declare(
    "scatter_nd", 'data, indices, updates, mode="update"', _scattered_nd, OPAQUE,
    sample((4, 5), Whole((1, 3), 0, 4), (3, 5)), *(sample((4, 5), Whole((2, 6), 0, 4), (6,), mode=m) for m in ("add", "mul", "max", "update")),
    record=record("ScatterNDAttrs", mode="update"), reference=_scatter_nd, compute=_scatter_nd_value, level=3,
)  # fmt: skip


@builder("segment_sum")
def segment_sum(data: Expr, segment_ids: Expr, num_segments: object = None) -> Expr:
    """Sums of the rows of one id each. Without `num_segments` there are as many sums as rows."""
    shape = build("shape_of", data, dtype="int32")
    count = build("take", shape, const(0)) if num_segments is None else const(num_segments, "int32")
    sizes = build("scatter_elements", shape, const([0]), build("expand_dims", count, 0))
    nothing = build("full", build("cast_like", const(0), data), sizes)
    rest = build("strided_slice", shape, [1], [2**31 - 1])
    ids = build("tile", segment_ids, build("concatenate", [rest, const([1])], 0))
    order = build("reshape", ids, build("concatenate", [rest, build("take", shape, const([0]))], 0))
    return build("scatter_elements", nothing, build("transpose", order), data, 0, "add")


# ---------------------------------------------------------------------------------------------------------- places as data


def _unravelled(a: object, indices: TensorType, shape: TensorType) -> Type:
    whole(indices)
    whole(shape, "the shape")
    require(len(shape.shape) == 1, lambda: f"the shape must have one dimension, it is {shape}")
    require(len(indices.shape) < 2, lambda: f"the indices must have one dimension at most, they are {indices}")
    return shaped(indices, [shape.shape[0], *indices.shape])


declare(
    "unravel_index", "indices, shape", _unravelled, INJECTIVE, sample(np.array([22, 14, 0], "int32"), np.array([7, 4], "int32")),
    reference=lambda a, t, i, shape: np.array(np.unravel_index(i, tuple(shape))), level=10,
)  # fmt: skip
declare(
    "argwhere", "condition", lambda a, x: TensorType((Open(), len(x.shape)), "int32"), OPAQUE,
    sample(Whole((3, 4), 0, 2, "bool")), reference=lambda a, t, x: np.argwhere(x), level=10,
)  # fmt: skip


def _advanced(a: object, given: TupleType) -> Type:
    fields = tensors(given, "adv_index")
    require(len(fields) > 0, "the tuple is empty")
    x, *indices = fields
    require(len(indices) <= len(x.shape), lambda: f"{len(indices)} indices are too many for {x}")
    shape: list[Dim] = []
    for i in indices:
        whole(i)
        shape = stretched(shape, i.shape, lambda: f"Incompatible broadcast type of indices {indices}")
    return shaped(x, [*shape, *x.shape[len(indices) :]])


declare(
    "adv_index", "inputs", _advanced, INJECTIVE, tuples="inputs", reference=lambda a, t, x: x[0][tuple(x[1:])], level=3
)


def _masked(a: Attrs, x: TensorType, lengths: TensorType) -> Type:
    require(len(x.shape) >= 2, lambda: f"the data needs two dimensions, it is {x}")
    require(a.axis in (0, 1), lambda: f"the axis is 0 or 1, not {a.axis}")
    fits = len(lengths.shape) == 1 and not differ(lengths.shape[0], x.shape[1 - a.axis])
    require(
        fits, lambda: f"valid_length must have one length for each of {x.shape[1 - a.axis]} of {x}, it is {lengths}"
    )
    return x


def _mask(a: Attrs, t: TensorType, x: Array, lengths: Array) -> Array:
    steps = np.arange(x.shape[a.axis])
    valid = steps[:, None] < lengths if a.axis == 0 else steps < lengths[:, None]
    return np.where(valid.reshape(valid.shape + (1,) * (x.ndim - 2)), x, np.asarray(a.mask_value).astype(x.dtype))


def _mask_value(a: Attrs, t: TensorType, x: Tensor, lengths: Tensor) -> Tensor:
    def element(*i: Element) -> Element:
        length = lengths[i[1 - a.axis]]
        return te.Select(te.cast(i[a.axis], length.dtype) < length, x[i], te.const(a.mask_value, t.dtype))

    made: Tensor = te.compute(extents(x), element, name="T_sequence_mask", tag="injective")
    return made


declare(
    "sequence_mask", "data, valid_length, mask_value=0, axis=0", _masked, INJECTIVE,
    sample((4, 3, 2), np.array([1, 0, 4], "int32"), mask_value=-1), sample((3, 4), np.array([1, 0, 4], "int32"), axis=1),
    record=record("SequenceMaskAttrs", mask_value=0, axis=0), reference=_mask, compute=_mask_value, level=10,
)  # fmt: skip


def _inverse(a: object, x: TensorType) -> Type:
    require(len(x.shape) == 1, lambda: f"a permutation has one dimension, it is {x}")
    whole(x, "a permutation")
    return x


def _inverted(a: Attrs, t: TensorType, x: Array) -> Array:
    made = np.zeros_like(x)
    made[x] = np.arange(len(x))
    return made


declare("invert_permutation", "data", _inverse, INJECTIVE, sample(np.array([2, 0, 3, 1], "int32")), reference=_inverted)


# ----------------------------------------------------------------------------------------------------------------- windows


def _window_counts(a: Attrs, shape: Sequence[Dim]) -> tuple[int, list[Dim]]:
    at = axis_of(a.axis, len(shape))
    require(len(a.window_shape) == len(a.strides) == len(shape) - at, lambda: f"axis {a.axis} of {len(shape)} needs {len(shape) - at} windows and strides, not {a.window_shape} and {a.strides}")  # fmt: skip
    counts: list[Dim] = []
    for n, w, s in zip(shape[at:], a.window_shape, a.strides):
        if isinstance(n, int) and w > n:
            raise fail(f"a window of {w} is larger than the axis of {n}")
        counts.append((n - w) // s + 1 if isinstance(n, int) else Open())
    return at, counts


def _windowed(a: Attrs, x: TensorType) -> Type:
    at, counts = _window_counts(a, x.shape)
    return shaped(x, [*x.shape[:at], *counts, *a.window_shape])


def _windows(a: Attrs, t: TensorType, x: Array) -> Array:
    at = a.axis % x.ndim
    found = np.lib.stride_tricks.sliding_window_view(x, a.window_shape, tuple(range(at, x.ndim)))
    return found[(*[slice(None)] * at, *[slice(None, None, s) for s in a.strides])]


def _window_value(a: Attrs, t: TensorType, x: Tensor) -> Tensor:
    at = a.axis % x.ndim
    count = x.ndim - at

    def element(*i: Element) -> Element:
        places = [n * s + w for n, s, w in zip(i[at:], a.strides, i[at + count :])]
        return x(*i[:at], *places)

    made: Tensor = te.compute(list(t.concrete_shape), element, name="T_sliding_window", tag="injective")
    return made


declare(
    "sliding_window", "data, axis, window_shape, strides", _windowed, OPAQUE,
    sample((2, 5, 6), axis=1, window_shape=[3, 2], strides=[1, 2]),
    record=record("SlidingWindowAttrs", axis=..., window_shape=..., strides=...), reference=_windows, compute=_window_value,
    level=3,
)  # fmt: skip

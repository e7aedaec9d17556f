"""Elements at indices: gathering, scattering, and choosing by order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building, makes
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import arithmetic, cast, compare
from compassc.importers.onnx.operators.movement import padded
from compassc.importers.values import Refused, Value, fitting, plain, stored_type

if TYPE_CHECKING:
    from compassc.importers.onnx.convert import Conversion


def _indices(value: Value, size: int) -> Value:
    """Known indices counted from the front; computed ones as they are (layers count negative ones from the end)."""
    if value.array is None:
        return value
    index = value.array.astype(np.int64)
    if index.size and (index.min() < -size or index.max() >= size):
        raise Refused(f"an index is outside the {size} elements of the axis")
    return Value.of(np.where(index < 0, index + size, index).astype(np.int32))


@operator("Gather")
@makes("take")
def gather(b: Building, x: Value, indices: Value, *, axis: int = 0) -> Value:
    """Known indices that follow each other are a slice."""
    at = x.axis(axis)
    index = _indices(indices, x.shape[at])
    if index.array is not None and (found := _as_slice(b, x, index.array, at)) is not None:
        return found
    if index.array is not None and index.rank == 0:
        return b.squeeze(gather(b, x, Value.of(index.array.reshape(1)), axis=at), [at])
    order = x.order if x.tensor is not None and index.rank == 1 else plain(x.rank)
    tensor, place = b.laid(x, order), order.index(at)
    shape = (*tensor.shape[:place], *index.shape, *tensor.shape[place + 1 :])
    scalar = index.rank == 0
    source = b.laid(b.unsqueeze(index, [0]) if scalar else index)
    full = (*tensor.shape[:place], 1, *tensor.shape[place + 1 :]) if scalar else shape
    made = b.layer("Gather", [tensor, source], full, tensor.dtype, axis=place, batch_dims=0)
    return b.value(b.reshaped(made, shape) if scalar else made, x.dtype, order if index.rank == 1 else None)


def _as_slice(b: Building, x: Value, index: Array, axis: int) -> Value | None:
    if index.ndim > 1 or not index.size:
        return None
    listed = index.reshape(-1)
    steps = np.diff(listed)
    if len(listed) > 1 and (steps[0] == 0 or not (steps == steps[0]).all()):
        return None
    step = int(steps[0]) if len(listed) > 1 else 1
    end = int(listed[-1]) + (1 if step > 0 else -1)
    part = b.sliced(x, [int(listed[0])], [end if end >= 0 else -x.shape[axis] - 1], [step], [axis])
    return b.squeeze(part, [axis]) if index.ndim == 0 else part


@operator("GatherElements", since=11)
def gather_elements(b: Building, x: Value, indices: Value, *, axis: int = 0) -> Value:
    index = _indices(indices, x.shape[x.axis(axis)])
    tensor = b.laid(x)
    made = b.layer("GatherElements", [tensor, b.laid(index)], index.shape, tensor.dtype, axis=x.axis(axis))
    return b.value(made, x.dtype)


@operator("GatherND", since=11)
def gather_nd(b: Building, x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    shape = (*indices.shape[:-1], *x.shape[batch_dims + indices.shape[-1] :])
    tensor = b.laid(x)
    made = b.layer("GatherND", [tensor, b.laid(indices)], shape or (1,), tensor.dtype, batch_dims=batch_dims)
    return b.value(made if shape else b.reshaped(made, ()), x.dtype)


@operator("ScatterElements", since=9)
def scatter_elements(
    b: Building, x: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    index = _indices(indices, x.shape[x.axis(axis)])
    tensors = [b.laid(x), b.laid(index), b.laid(updates)]
    made = b.layer(
        "ScatterElements", tensors, x.shape, stored_type(x.dtype), axis=x.axis(axis), reduction=reduction.upper()
    )
    return b.value(made, x.dtype)


@operator("ScatterND", since=11)
def scatter_nd(b: Building, x: Value, indices: Value, updates: Value, *, reduction: str = "none") -> Value:
    tensors = [b.laid(x), b.laid(indices), b.laid(updates)]
    made = b.layer("ScatterND", tensors, x.shape, stored_type(x.dtype), reduction=reduction.upper())
    return b.value(made, x.dtype)


@operator("Compress", since=9)
def compress(b: Building, x: Value, condition: Constant, *, axis: int | None = None) -> Value:
    if axis is None:
        x, axis = b.reshape(x, (x.count,)), 0
    kept = np.flatnonzero(condition.reshape(-1)[: x.shape[x.axis(axis)]])
    return gather(b, x, Value.of(kept.astype(np.int32)), axis=axis)


@operator("OneHot", since=9)
def one_hot(b: Building, indices: Value, depth: Constant, values: Constant, *, axis: int = -1) -> Value:
    """Negative indices count from the end, which the layer does not do."""
    many = int(depth.reshape(-1)[0])
    at = axis + indices.rank + 1 if axis < 0 else axis
    if indices.array is not None:
        b.room(indices.count, many)
        wrapped = indices.array.astype(np.int64)
        hot = np.where(wrapped < 0, wrapped + many, wrapped)[..., None] == np.arange(many)
        return Value.of(np.moveaxis(np.where(hot, values[1], values[0]), -1, at).astype(values.dtype))
    index = cast(b, indices, np.int32)
    if indices.dtype.kind != "u":
        negative = cast(b, compare(b, index, Value.of(np.zeros(1, np.int32)), "LESS"), np.int32)
        moved = arithmetic(b, negative, Value.of(np.full(1, many, np.int32)), "Mul")
        index = arithmetic(b, index, moved, "Add")
    shape = (*index.shape[:at], many, *index.shape[at:])
    fitting(values)
    made = b.layer(
        "OneHot",
        [b.laid(index)],
        shape,
        stored_type(values.dtype),
        depth=many,
        axis=at,
        values=[values[0].item(), values[1].item()],
    )
    return b.value(made, values.dtype)


@operator("ArgMax", "ArgMin")
def arg_extreme(b: Conversion, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
    found = place_of_extreme(b, x, b.op[3:].upper(), axis, bool(select_last_index))
    return found if keepdims else b.squeeze(found, [axis])


def place_of_extreme(b: Building, x: Value, method: str, axis: int, last: bool = False) -> Value:
    """Where along an axis, which stays with size 1, the maximum (MAX) or minimum (MIN) lies."""
    tensor, order = b.stored(x)
    place = order.index(x.axis(axis))
    shape = [1 if i == place else d for i, d in enumerate(tensor.shape)]
    made = b.layer("ArgMinMax", [tensor], shape, "int32", method=method, axis=place, select_last_index=last)
    return b.value(made, np.int64, order)


@operator("TopK")
def top_k(b: Building, x: Value, k: Constant, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> list[Value]:
    """Of equal elements the first."""
    tensor, order = b.last(x, axis)
    many = int(k.reshape(-1)[0])
    if not 0 <= many <= tensor.shape[-1]:
        raise Refused(f"it asks for {many} of {tensor.shape[-1]} elements")
    shape = (*tensor.shape[:-1], many)
    made = b.layers_of(
        "TopK",
        [tensor],
        [(shape, tensor.dtype), (shape, "int32")],
        k=many,
        axis=x.rank - 1,
        largest=bool(largest),
        sorted=bool(sorted),
        select_index="first",
    )
    return [b.value(made[0], x.dtype, order), b.value(made[1], np.int64, order)]


@operator("CumSum", "CumProd", since=11)
def cumulate(b: Conversion, x: Value, axis: Constant, *, exclusive: int = 0, reverse: int = 0) -> Value:
    method = "SUM" if b.op == "CumSum" else "PROD"
    return cumulated(b, x, method, int(axis.reshape(-1)[0]), bool(exclusive), bool(reverse))


def cumulated(b: Building, x: Value, method: str, axis: int, exclusive: bool, reverse: bool) -> Value:
    """Running sums (SUM) or products (PROD) along an axis."""
    if not x.is_float:
        return _by_distances(b, x, method, x.axis(axis), exclusive, reverse)
    _, order = b.stored(x)
    at = order.index(x.axis(axis))
    return b.mapped("Cumulate", x, order, method=method, axis=at, exclusive=exclusive, reverse=reverse)


def _by_distances(b: Building, x: Value, method: str, axis: int, exclusive: bool, reverse: bool) -> Value:
    """Running sums or products of whole numbers, which the layer has no room for: each with the one 1, 2, 4, ... places
    before it."""
    neutral, name = {"SUM": (0, "Add"), "PROD": (1, "Mul")}[method]

    def moved(v: Value, places: int) -> Value:
        if places >= v.shape[axis]:
            return Value.of(np.full(b.room(*v.shape), neutral, v.dtype))
        pairs = [(0, 0)] * v.rank
        pairs[axis] = (-places, places) if reverse else (places, -places)
        return padded(b, v, pairs, value=neutral)

    found = moved(x, 1) if exclusive else x
    distance = 1
    while distance < x.shape[axis]:
        found = arithmetic(b, found, moved(found, distance), name)
        distance *= 2
    return found


@operator("TensorScatter", since=24)
def tensor_scatter(
    b: Building, cache: Value, update: Value, indices: Constant | None = None, *, axis: int = -2, mode: str = "linear"
) -> Value:
    """Rows of each batch element replaced from an index on: by selecting, since the indices are known."""
    at, batch = cache.axis(axis), cache.shape[0]
    starts: Sequence[int] = [0] * batch if indices is None else [int(i) for i in indices.reshape(-1)]
    size, many = cache.shape[at], update.shape[at]
    place = np.full(b.room(batch, size), -1)
    for row, start in enumerate(starts):
        where = start + np.arange(many)
        if mode == "circular":
            where %= size
        elif where.max(initial=0) >= size:
            raise Refused(f"{many} rows from {start} on do not fit the {size} of the cache")
        place[row, where] = np.arange(many)
    parts = []
    for row in range(batch):
        both = [b.sliced(v, [row], [row + 1], [1], [0]) for v in (cache, update)]
        joined = _concat(b, both, at)
        index = np.where(place[row] >= 0, place[row] + size, np.arange(size))
        parts.append(gather(b, joined, Value.of(index.astype(np.int32)), axis=at))
    return _concat(b, parts, 0)


def _concat(b: Building, parts: Sequence[Value], axis: int) -> Value:
    return b.concat(*parts, axis=axis)

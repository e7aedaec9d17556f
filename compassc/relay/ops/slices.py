"""Slices of tensors, tensors that are repeated or turned round, and what is stretched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.exprs import Expr as Element
from compassc.operators.calls import CallOperator, X
from compassc.operators.declare import sample
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, const
from compassc.relay.ops.declare import BROADCAST, INJECTIVE, REDUCTION, VOID, declare, record
from compassc.relay.ops.elementwise import NUMBERS
from compassc.relay.ops.relations import axes_of, axis_of, differ, fail, product, require, shaped, stretched
from compassc.relay.ops.shapes import extents, several, shown
from compassc.relay.types import Dim, Open, TensorType, Type
from compassc.te.tensor import Tensor


def cut(begin: int | None, end: int | None, stride: int, extent: int) -> tuple[int, int, int]:
    """The places from which, and to before which, a slice of an axis goes, and how many elements it has."""
    require(stride != 0, "strides must not be 0")
    low, high = (0, extent) if stride > 0 else (-1, extent - 1)

    def place(at: int | None, default: int) -> int:
        return default if at is None else min(max(at + extent if at < 0 else at, low), high)

    first = place(begin, low if stride > 0 else high)
    last = place(end, high if stride > 0 else low)
    length = last - first if stride > 0 else first - last
    require(
        length >= 0, lambda: f"the slice from {begin} to {end} by {stride} of {extent} elements ends before it begins"
    )
    return first, last, -(-length // abs(stride))


def slices(a: Attrs, rank: int) -> dict[int, tuple[int | None, int | None, int]]:
    """Begin, end and stride of the axes that are cut. In the mode `size` the end is a count, -1 for all."""
    begin, end, strides = (list(v or ()) for v in (a.begin, a.end, a.strides))
    axes = list(range(rank)) if a.axes is None else axes_of(a.axes, rank)
    if a.axes is None:
        require(max(len(begin), len(end)) <= rank, lambda: f"a slice of {max(len(begin), len(end))} axes does not go with {rank}")  # fmt: skip
    else:
        require(len(begin) == len(end) == len(axes), lambda: f"axes {a.axes} need a begin and an end each, not {a.begin} and {a.end}")  # fmt: skip
    found: dict[int, tuple[int | None, int | None, int]] = {}
    for n, d in enumerate(axes):
        first, last = (v[n] if n < len(v) else None for v in (begin, end))
        stride = 1 if a.slice_mode == "size" or n >= len(strides) else strides[n]
        if a.slice_mode == "size" and last is not None:
            last = None if last == -1 else (first or 0) + last
        found[d] = (first, last, stride)
    return found


def _sliced(a: Attrs, x: TensorType) -> Type:
    made = list(x.shape)
    for d, (first, last, stride) in slices(a, len(made)).items():
        extent = made[d]
        if isinstance(extent, int):
            made[d] = cut(first, last, stride, extent)[2]
        elif (first, last, stride) != (None, None, 1):
            made[d] = Open()
    return shaped(x, made)


def _slice(call: CallOperator[X], a: Attrs, t: TensorType, x: X) -> X:
    shape, cuts = extents(x), slices(a, x.ndim)
    if not cuts:
        return call("identity", x)
    begin, end = [], []
    for d, (first, last, stride) in cuts.items():
        low, high, _ = cut(first, last, stride, shape[d])
        begin.append(low)
        end.append(None if high < 0 else high)
    return call("strided_slice", x, begin, end, [s for _, _, s in cuts.values()], list(cuts))


_slice_attrs = record("StridedSliceAttrs", begin=..., end=..., strides=None, slice_mode="end", axes=None)
declare(
    "strided_slice", 'data, begin, end, strides=None, axes=None, slice_mode="end"', _sliced, INJECTIVE,
    sample((6, 7), begin=[1, 2], end=[5, 100], strides=[2, 3]), sample((6, 7), begin=[-1], end=[-7], strides=[-2]),
    sample((6, 7), begin=[2], end=[-1], axes=[1]), sample((6, 7), begin=[1, 2], end=[-1, 3], slice_mode="size"),
    record=_slice_attrs, body=_slice, level=4, types=NUMBERS, build=False,
)  # fmt: skip


@builder("strided_slice")
def strided_slice(
    data: Expr, begin: object, end: object, strides: object = None, axes: object = None, slice_mode: str = "end"
) -> Expr:
    """Every `strides`-th element from `begin` to before `end`, on the first axes or on those that are named."""
    begin, end, strides, axes = several(begin), several(end), several(strides), several(axes)
    if any(isinstance(v, Expr) for v in (begin, end, strides)):
        if axes is not None:
            raise fail("slices whose places are computed have no axes", "give begin and end for all axes")
        given = [v if isinstance(v, Expr) else const(np.array([1] if v is None else v, "int64")) for v in (begin, end, strides)]  # fmt: skip
        return call("dyn.strided_slice", data, *given, begin=None, end=None, slice_mode=slice_mode)
    steps = [1] if strides is None else strides
    return call("strided_slice", data, begin=begin, end=end, strides=steps, slice_mode=slice_mode, axes=axes)


def slice_arrays(
    begin: object, end: object, strides: object, shape: Sequence[int], mode: str = "end"
) -> tuple[slice, ...]:
    """The slices that arrays of places say."""
    a = _slice_attrs(
        begin=np.asarray(begin).tolist(), end=np.asarray(end).tolist(), strides=np.asarray(strides).tolist(), slice_mode=mode
    )  # fmt: skip
    found = [slice(None)] * len(shape)
    for d, (first, last, stride) in slices(a, len(shape)).items():
        low, high, _ = cut(first, last, stride, shape[d])
        found[d] = slice(low, None if high < 0 else high, stride)
    return tuple(found)


def _set(a: Attrs, t: TensorType, x: Array, v: Array, begin: Array, end: Array, strides: Array) -> Array:
    made = x.copy()
    made[slice_arrays(begin, end, strides, x.shape)] = v
    return made


declare(
    "strided_set", "data, v, begin, end, strides", lambda a, x, v, *cuts: x, INJECTIVE,
    sample((5, 4), (2, 4), np.array([1, 0], "int32"), np.array([5, 4], "int32"), np.array([2, 1], "int32")),
    reference=_set, level=4, build=False,
)  # fmt: skip


@builder("strided_set")
def strided_set(data: Expr, v: Expr, begin: object, end: object, strides: object = None) -> Expr:
    """`data` with a slice of it set to `v`."""
    places = [g if isinstance(g, Expr) else const(np.array([1] if g is None else g)) for g in (begin, end, strides)]
    return call("strided_set", data, v, *places)


def _slice_like(a: Attrs, x: Sequence[Dim], like: Sequence[Dim]) -> list[Dim]:
    axes = range(min(len(x), len(like))) if not a.axes else axes_of(a.axes, len(x))
    made = list(x)
    for d in axes:
        require(d < len(like), lambda: f"axis {d} is not in the shape ({shown(like)})")  # noqa: B023
        m, n = made[d], like[d]
        require(not (isinstance(m, int) and isinstance(n, int) and m < n), lambda: f"End index in axis {d} exceeds input shape: {n} vs {m}")  # noqa: B023  # fmt: skip
        made[d] = n
    return made


declare(
    "slice_like", "data, shape_like, axes=None", lambda a, x, like: shaped(x, _slice_like(a, x.shape, like.shape)),
    INJECTIVE, sample((4, 5), (2, 3)), sample((4, 5), (7, 3), axes=[1]), record=record("SliceLikeAttrs", axes=None), level=10,
    body=lambda call, a, t, x, like: call("strided_slice", x, [0] * x.ndim, _slice_like(a, extents(x), extents(like))),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------- repeated and turned round


def _tiled(a: Attrs, x: TensorType) -> Type:
    require(all(r > 0 for r in a.reps), lambda: f"Tile reps value should always be larger than 0, but get: {a.reps}")
    rank = max(len(a.reps), len(x.shape))
    shape = [1] * (rank - len(x.shape)) + list(x.shape)
    reps = [1] * (rank - len(a.reps)) + list(a.reps)
    return shaped(x, [n if r == 1 else product([n, r]) for n, r in zip(shape, reps)])


@builder("tile")
def tile(data: Expr, reps: object) -> Expr:
    """A tensor so many times on each axis."""
    times = several(reps)
    return call("dyn.tile", data, times, reps=None) if isinstance(times, Expr) else call("tile", data, reps=times)


declare(
    "tile", "data, reps", _tiled, BROADCAST, sample((2, 3), reps=[2, 1, 2]), sample((2, 3), reps=[2]), level=3, build=False,
    record=record("TileAttrs", reps=...), body=lambda call, a, t, x: call("tile", x, list(a.reps)),
)  # fmt: skip


def _repeated(a: Attrs, x: TensorType) -> Type:
    require(a.repeats >= 1, lambda: f"repeats must be 1 or more, it is {a.repeats}")
    at = axis_of(a.axis, len(x.shape))
    return shaped(x, [*x.shape[:at], product([x.shape[at], a.repeats]), *x.shape[at + 1 :]])


declare(
    "repeat", "data, repeats, axis", _repeated, BROADCAST, sample((2, 3), repeats=2, axis=-1),
    record=record("RepeatAttrs", repeats=..., axis=None), body=lambda call, a, t, x: call("repeat", x, a.repeats, a.axis),
    level=3,
)  # fmt: skip


def _kept(a: Attrs, x: TensorType) -> Type:
    axis_of(a.axis, len(x.shape))
    return x


declare("reverse", "data, axis", _kept, INJECTIVE, sample((2, 3), axis=-1), record=record("ReverseAttrs", axis=None), level=3,
        body=lambda call, a, t, x: call("flip", x, a.axis))  # fmt: skip


def _sequences(a: Attrs, x: TensorType, lengths: TensorType) -> Type:
    seq, batch = axis_of(a.seq_axis, len(x.shape)), axis_of(a.batch_axis, len(x.shape))
    require(len(lengths.shape) == 1, lambda: f"seq_lengths must have one dimension, it is {lengths}")
    require(not differ(lengths.shape[0], x.shape[batch]), lambda: f"For reverse_sequnece seq_lengths size should match with dimension of batch axis, but got dimension of batch_axis = {x.shape[batch]}, and seq_length size = {lengths.shape[0]}")  # fmt: skip
    require(lengths.dtype in ("int32", "int64"), lambda: f"seq_lengths must be whole numbers, it is {lengths}")
    require(seq != batch, "seq_axis and batch_axis must be different")
    return x


def _turned(a: Attrs, t: TensorType, x: Array, lengths: Array) -> Array:
    made = x.copy()
    rows, turned = (np.moveaxis(v, (a.batch_axis, a.seq_axis), (0, 1)) for v in (x, made))
    for row, back, length in zip(rows, turned, lengths):
        n = min(max(int(length), 1), len(row))
        back[:n] = row[:n][::-1]
    return made


def _turned_value(a: Attrs, t: TensorType, x: Tensor, lengths: Tensor) -> Tensor:
    seq, batch = a.seq_axis % x.ndim, a.batch_axis % x.ndim
    extent = extents(x)[seq]

    def element(*i: Element) -> Element:
        length = te.max(te.min(te.cast(lengths[i[batch]], "int32"), extent), 1)
        place = te.Select(i[seq] < length, length - 1 - i[seq], i[seq])
        return x(*i[:seq], place, *i[seq + 1 :])

    made: Tensor = te.compute(extents(x), element, name="T_reverse_sequence", tag="injective")
    return made


declare(
    "reverse_sequence", "data, seq_lengths, seq_axis=1, batch_axis=0", _sequences, INJECTIVE,
    sample((3, 5, 2), np.array([2, 0, 9], "int32")), sample((5, 3), np.array([4, 5, 1], "int32"), seq_axis=0, batch_axis=1),
    record=record("ReverseSequenceAttrs", seq_axis=1, batch_axis=0), reference=_turned, compute=_turned_value, level=3,
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- broadcasts


def _broadcast_shape(x: TensorType, shape: Sequence[Dim]) -> Type:
    def said() -> str:
        return f"a tensor {x} cannot be stretched to ({shown(shape)})"

    require(len(stretched(x.shape, shape, said)) == len(shape), said)
    for m, n in zip(x.shape[::-1], shape[::-1]):
        require(m == 1 or not differ(m, n), said)
    return shaped(x, shape)


_init = record("InitOpAttrs", shape=..., dtype=VOID)


@builder("broadcast_to")
def broadcast_to(data: Expr, shape: object) -> Expr:
    """A tensor stretched to a shape."""
    wanted = several(shape)
    name = "dyn.broadcast_to" if isinstance(wanted, Expr) else "broadcast_to"
    return call(name, data, wanted, shape=None) if isinstance(wanted, Expr) else call(name, data, shape=wanted)


declare(
    "broadcast_to", "data, shape", lambda a, x: _broadcast_shape(x, a.shape), BROADCAST, sample((3, 1), shape=[2, 3, 4]),
    record=_init, body=lambda call, a, t, x: call("broadcast_to", x, list(a.shape)), level=4, build=False,
)  # fmt: skip
declare(
    "broadcast_to_like", "data, broadcast_type", lambda a, x, like: _broadcast_shape(x, like.shape), BROADCAST,
    sample((3, 1), (2, 3, 4)), body=lambda call, a, t, x, like: call("broadcast_to", x, extents(like)), level=10,
)  # fmt: skip


def _collapsed(x: TensorType, shape: Sequence[Dim]) -> Type:
    _broadcast_shape(shaped(x, shape), x.shape)
    return shaped(x, shape)


def _collapse(call: CallOperator[X], x: X, shape: Sequence[int]) -> X:
    own = extents(x)
    more = len(own) - len(shape)
    axes = [d for d, n in enumerate(own) if d < more or shape[d - more] != n]
    return call("reshape", call("sum", x, axes, True) if axes else x, list(shape))


declare(
    "collapse_sum_like", "data, collapse_type", lambda a, x, like: _collapsed(x, like.shape), REDUCTION,
    sample((2, 3, 4), (3, 1)), body=lambda call, a, t, x, like: _collapse(call, x, extents(like)), level=10,
)  # fmt: skip
declare(
    "collapse_sum_to", "data, shape_, shape", lambda a, x, shape: _collapsed(x, a.shape), REDUCTION,
    sample((2, 3, 4), np.array([3, 1], "int32"), shape=[3, 1]), record=_init, build=False, level=4,
    body=lambda call, a, t, x, shape: _collapse(call, x, a.shape),
)  # fmt: skip


@builder("collapse_sum_to")
def collapse_sum_to(data: Expr, shape: object) -> Expr:
    """The sum of what `broadcast_to` would have stretched from a shape."""
    wanted = several(shape)
    return call("collapse_sum_to", data, const(np.array(wanted, "int32")), shape=wanted)

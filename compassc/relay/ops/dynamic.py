"""Operators whose attributes are computed (`dyn`): the ordinary builders make calls of them where they get expressions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.operators.calls import References
from compassc.operators.declare import Whole, sample
from compassc.relay.attributes import RECORDS, Attrs, Record, record
from compassc.relay.ops.creation import hot, scalar
from compassc.relay.ops.declare import ANCHOR, BROADCAST, ELEMENTWISE, INJECTIVE, OPAQUE, Evaluate, declare
from compassc.relay.ops.indexing import whole
from compassc.relay.ops.padding import padded
from compassc.relay.ops.relations import axis_of, require, shaped
from compassc.relay.ops.resizing import how_larger, in_plain, larger, resized
from compassc.relay.ops.shapes import reshaped
from compassc.relay.ops.slices import slice_arrays
from compassc.relay.ops.sorting import top, top_type
from compassc.relay.ops.spectra import scattered
from compassc.relay.types import Dim, Open, TensorType, Type


def _attrs(name: str) -> Record:
    return RECORDS[f"relay.attrs.{name}"]


def _length(t: TensorType, what: str) -> int:
    """How many numbers a vector has, which must be known."""
    whole(t, what)
    require(len(t.shape) == 1, lambda: f"{what} must have one dimension, it is {t}")
    (count,) = t.shape
    if not isinstance(count, int):
        require(False, f"the length of {what} must be known, it is {t}")
        return 0
    return count


def _open(count: int) -> list[Dim]:
    return [Open() for _ in range(count)]


def _of(shape: object) -> list[int]:
    found: list[int] = np.asarray(shape).reshape(-1).tolist()
    return found


def _i(*values: int) -> Array:
    return np.array(values, "int64")


# ------------------------------------------------------------------------------------------------------------------ shapes

declare(
    "dyn.reshape", "data, codes", lambda a, x, n: shaped(x, _open(_length(n, "newshape"))), INJECTIVE,
    sample((2, 3, 4), _i(0, -1), newshape=None), record=_attrs("ReshapeAttrs"), build=False, level=3, TReshapeOp=True,
    reference=lambda a, t, x, n: x.reshape(reshaped(x.shape, _of(n), a.allowzero)),
)  # fmt: skip
declare(
    "dyn.tile", "data, repetitions", lambda a, x, r: shaped(x, _open(max(_length(r, "reps"), len(x.shape)))), BROADCAST,
    sample((2, 3), _i(2, 1, 2), reps=None), record=_attrs("TileAttrs"), build=False, level=3, reference=lambda a, t, x, r: np.tile(x, _of(r)),
)  # fmt: skip
declare(
    "dyn.broadcast_to", "data, target", lambda a, x, s: shaped(x, _open(_length(s, "the shape"))), BROADCAST,
    sample((3, 1), _i(2, 3, 4), shape=None), record=_attrs("InitOpAttrs"), build=False, level=4, reference=lambda a, t, x, s: np.broadcast_to(x, _of(s)),
)  # fmt: skip
for _name, _value in (("zeros", 0), ("ones", 1)):
    declare(
        f"dyn.{_name}", "extents", lambda a, s: TensorType(_open(_length(s, "the shape")), a.dtype), ELEMENTWISE,
        sample(_i(2, 3), shape=None, dtype="int32"), record=_attrs("InitOpAttrs"), build=False, level=3,
        reference=lambda a, t, s, value=_value: np.full(_of(s), value),
    )  # fmt: skip


def _filled(a: Attrs, value: TensorType, shape: TensorType) -> Type:
    scalar(value, "fill_value")
    return TensorType(_open(_length(shape, "the shape")), a.dtype or value.dtype)


declare("dyn.full", "fill_value, extents", _filled, ELEMENTWISE, sample((), _i(2, 3), shape=None), record=_attrs("InitOpAttrs"), build=False,
        level=3, reference=lambda a, t, value, s: np.full(_of(s), value))  # fmt: skip
declare(
    "dyn.expand_dims", "data, axis", lambda a, x, axis: shaped(x, _open(len(x.shape) + a.num_newaxis)), BROADCAST, sample((2, 3), np.array(1)),
    record=record("DynExpandDimsAttrs", num_newaxis=1), build=False, level=1,
    reference=lambda a, t, x, axis: _expanded(x, int(np.asarray(axis).reshape(())), a.num_newaxis),
)  # fmt: skip


def _expanded(x: Array, axis: int, count: int) -> Array:
    at = axis + x.ndim + 1 if axis < 0 else axis
    return x.reshape([*x.shape[:at], *[1] * count, *x.shape[at:]])


declare(
    "dyn.squeeze", "data, axes", lambda a, x, axes: shaped(x, _open(len(x.shape) - _length(axes, "the axes"))), INJECTIVE,
    sample((1, 3, 1), _i(0, -1), axis=None), record=_attrs("SqueezeAttrs"), build=False, level=3, TReshapeOp=True,
    reference=lambda a, t, x, axes: np.squeeze(x, tuple(_of(axes))),
)  # fmt: skip


def _sliced(a: object, x: TensorType, begin: TensorType, end: TensorType, strides: TensorType) -> Type:
    for t, what in ((begin, "begin"), (end, "end"), (strides, "strides")):
        whole(t, what)
    count = begin.shape[0] if begin.shape and isinstance(begin.shape[0], int) else len(x.shape)
    return shaped(x, [*_open(count), *x.shape[count:]])


declare(
    "dyn.strided_slice", "data, first, last, steps", _sliced, INJECTIVE, sample((6, 7), _i(1), _i(5), _i(2), begin=None, end=None),
    record=_attrs("StridedSliceAttrs"), build=False, level=4,
    reference=lambda a, t, x, begin, end, strides: x[slice_arrays(begin, end, strides, x.shape, a.slice_mode)],
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- the others


def _hot_rule(a: Attrs, indices: TensorType, on: TensorType, off: TensorType, depth: TensorType) -> Type:
    at = axis_of(a.axis, len(indices.shape) + 1)
    return shaped(indices, [*indices.shape[:at], Open(), *indices.shape[at:]], a.dtype)


declare(
    "dyn.one_hot", "indices, on_value, off_value, count", _hot_rule, ANCHOR,
    sample(Whole((3, 2), 0, 4), (), np.array(0, "float32"), np.array(4, "int32"), axis=-1, dtype="float32"),
    record=_attrs("OneHotAttrs"), build=False, reference=lambda a, t, i, on, off, depth: hot(i, on, off, int(depth.reshape(())), a.axis, a.dtype),
)  # fmt: skip
declare(
    "dyn.topk", "data, count", lambda a, x, k: top_type(a, x, Open()), OPAQUE, sample((3, 9), np.array(4), k=None, dtype="int32"),
    record=_attrs("TopkAttrs"), build=False, level=6, reference=lambda a, t, x, k: top(a, x, int(k.reshape(()))),
)  # fmt: skip


def _resize_rule(a: Attrs, x: TensorType, size: TensorType, roi: TensorType) -> Type:
    require(len(x.shape) == 4 and a.layout in ("NCHW", "NHWC"), lambda: f"{x} has no layout {a.layout}, which must be NCHW or NHWC")  # fmt: skip
    at = a.layout.index("H")
    return shaped(x, [Open() if d in (at, at + 1) else n for d, n in enumerate(x.shape)], a.out_dtype)


declare(
    "dyn.image.resize2d", "data, extents, area", _resize_rule, INJECTIVE, sample((1, 2, 4, 5), _i(7, 3), np.zeros(4, "float32")),
    record=_attrs("Resize2DAttrs"), build=False, level=5,
    reference=lambda a, t, x, size, roi: in_plain(References(), a.layout, x, 2, lambda y: resized(y, _of(size), a, _of(roi))),
)  # fmt: skip


def _larger_rule(rank: int) -> Callable[..., Type]:
    def rule(a: Attrs, x: TensorType, *scales: TensorType) -> Type:
        require(len(x.shape) == rank + 2, lambda: f"the data must have {rank + 2} dimensions, it is {x}")
        return shaped(x, [n if letter in "NC" else Open() for letter, n in zip(a.layout, x.shape)])

    return rule


def _larger(rank: int) -> Evaluate:
    def evaluate(a: Attrs, t: TensorType, x: Array, *scales: Array) -> Array:
        def one(y: Array) -> Array:
            size = [larger(n, float(s.reshape(()))) for n, s in zip(y.shape[2:], scales)]
            return resized(y, size, how_larger(a))  # type: ignore[arg-type]  # the extents of an array are numbers

        return in_plain(References(), a.layout, x, rank, one)

    return evaluate


_TWO = np.array(2, "float32")
declare("dyn.nn.upsampling", "data, by_h, by_w", _larger_rule(2), INJECTIVE, sample((1, 2, 3, 4), _TWO, _TWO, scale_h=None, scale_w=None),
        record=_attrs("UpSamplingAttrs"), build=False, level=2, reference=_larger(2))  # fmt: skip
declare(
    "dyn.nn.upsampling3d", "data, by_d, by_h, by_w", _larger_rule(3), INJECTIVE,
    sample((1, 2, 3, 4, 2), _TWO, _TWO, _TWO, scale_d=None, scale_h=None, scale_w=None), record=_attrs("UpSampling3DAttrs"), build=False, level=2,
    reference=_larger(3),
)  # fmt: skip


def _pad_rule(a: object, x: TensorType, widths: TensorType, value: TensorType) -> Type:
    whole(widths, "pad_width")
    return shaped(x, _open(len(x.shape)))


declare(
    "dyn.nn.pad", "data, widths, pad_value", _pad_rule, INJECTIVE, sample((2, 3), np.array([[1, 0], [0, 2]], "int64"), (), pad_width=None),
    record=_attrs("PadAttrs"), build=False, level=2,
    reference=lambda a, t, x, widths, value: padded(x, widths.tolist(), a.pad_mode, value.reshape(())),
)  # fmt: skip


def _dense_rule(a: object, places: TensorType, values: TensorType, default: TensorType, shape: TensorType) -> Type:
    whole(places, "sparse_indices")
    return shaped(values, _open(_length(shape, "output_shape")))


declare(
    "dyn.sparse_to_dense", "sparse_indices, sparse_values, default_value, extents", _dense_rule, OPAQUE,
    sample(np.array([[0, 1], [2, 0]], "int32"), (2,), (), _i(3, 3), output_shape=None), record=_attrs("SparseToDenseAttrs"), build=False, level=3,
    reference=lambda a, t, places, values, default, shape: scattered(places, values, default, _of(shape)),
)  # fmt: skip

"""`tvm.topi`: operators that move elements, choose them by places, sort them, and reduce them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from compass_core.arrays import Array

from ... import te
from ...ir.errors import ExpressionError
from ...ir.exprs import Expr
from ...operators import elementwise
from ...operators.declare import axis_of, greatest, least, number, numbers, sizes
from ...operators.movement import flat_index
from ...te.tensor import Tensor
from .by_numpy import called
from .calls import array_of, one, several

__all__ = [
    "adv_index", "arange", "argmax", "argmin", "argsort", "ceil_log2", "collapse_sum", "cumprod", "cumsum", "dft", "einsum", "embedding",
    "expand_like", "fast_erf", "fast_exp", "fast_tanh", "fixed_point_multiply", "fixed_point_multiply_per_axis", "gather_nd",
    "invert_permutation", "layout_transform", "matrix_set_diag", "meshgrid", "ndarray_size", "one_hot", "reinterpret", "reverse_sequence",
    "scatter_elements", "scatter_nd", "searchsorted", "sequence_mask", "shape", "sliding_window", "sort", "sparse_to_dense", "stft",
    "strided_set", "strided_slice", "take", "tensordot", "topk", "trilu", "unravel_index",
]  # fmt: skip


def fast_exp(x: Tensor) -> Tensor:
    """An approximation of e to the power of each element."""
    return one("fast_exp", x)


def fast_tanh(x: Tensor) -> Tensor:
    """An approximation of the hyperbolic tangent."""
    return one("fast_tanh", x)


def fast_erf(x: Tensor) -> Tensor:
    """An approximation of the error function."""
    return one("fast_erf", x)


def ceil_log2(x: Tensor) -> Tensor:
    """The logarithm to base 2, rounded up, of whole numbers from 1 on."""
    bits = x.dtype.bits
    if x.dtype.is_floating or bits > 32:
        raise ExpressionError(f"ceil_log2 takes whole numbers of up to 32 bits, got {x.dtype}")

    def element(*i: te.Var) -> Expr:
        # The number of powers of two that are smaller.
        value = te.cast(x[i], "int64")
        found = te.const(0, "int64")
        for power in range(bits):
            found = found + te.Select(value > te.const(1 << power, "int64"), te.const(1, "int64"), te.const(0, "int64"))
        return te.cast(found, x.dtype)

    made: Tensor = te.compute(x.shape, element, name="T_ceil_log2", tag="elemwise")
    return made


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """The bits of each element as another type of the same width."""
    made: Tensor = te.compute(x.shape, lambda *i: te.reinterpret(dtype, x[i]), name="tensor", tag="elemwise")
    return made


def fixed_point_multiply(x: Tensor, multiplier: int, shift: int) -> Tensor:
    """x times multiplier / 2**31 times 2**shift, rounded."""
    return one("fixed_point_multiply", x, multiplier=multiplier, shift=shift)


def fixed_point_multiply_per_axis(
    x: Tensor,
    y: Tensor,
    lshift: Tensor,
    rshift: Tensor,
    is_lshift_required: bool,
    is_rshift_required: bool,
    axes: Sequence[int],
) -> Tensor:
    """`fixed_point_multiply` by numbers of each place of `axes`."""
    return one(
        "fixed_point_multiply_per_axis", x, y, lshift, rshift, is_lshift_required=is_lshift_required,
        is_rshift_required=is_rshift_required, axes=list(axes),
    )  # fmt: skip


def arange(start: object, stop: object = None, step: object = 1, dtype: str = "float32") -> Tensor:
    """Numbers from `start` (0 where only `stop` is given) to `stop`, which is none of them."""
    first, last = (0, start) if stop is None else (start, stop)
    made = np.arange(_plain(first), _plain(last), _plain(step))
    begin, by = number(_plain(first), dtype), number(_plain(step), dtype)
    found: Tensor = te.compute((len(made),), lambda i: begin + by * te.cast(i, dtype), name="T_arange", tag="injective")
    return found


def _plain(value: object) -> int | float:
    found = getattr(value, "value", value)
    if not isinstance(found, (int, float)):
        raise ExpressionError(f"a range has numbers as its ends, got {value}")
    return found


# ------------------------------------------------------------------------------------------------------------ reductions


def argmax(data: Tensor, axis: object = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """Where the largest element is; of equals the first, or the last."""
    return one("argmax", data, axis=_axes(axis), keepdims=keepdims, select_last_index=select_last_index)


def argmin(data: Tensor, axis: object = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """Where the smallest element is; of equals the first, or the last."""
    return one("argmin", data, axis=_axes(axis), keepdims=keepdims, select_last_index=select_last_index)


def _axes(axis: object) -> object:
    return list(axis) if isinstance(axis, tuple) else axis


def collapse_sum(data: Tensor, target_shape: Sequence[int]) -> Tensor:
    """The sums that a shape which was stretched to this one has."""
    return one("collapse_sum_to", data, [int(n) for n in target_shape])


def cumsum(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """Sums of all elements up to each on an axis (None: of all in order); `exclusive`: without it."""
    return one("cumsum", data, axis=axis, dtype=dtype or "", exclusive=bool(exclusive))


def cumprod(data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Tensor:
    """Products of all elements up to each on an axis (None: of all in order); `exclusive`: without it."""
    return one("cumprod", data, axis=axis, dtype=dtype or "", exclusive=bool(exclusive))


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """Einstein's sum of products."""
    return one("einsum", list(operand), equation=subscripts)


def tensordot(a: Tensor, b: Tensor, axes: object) -> Tensor:
    """Sums of products over axes of both: so many last and first ones, or pairs of lists."""
    if isinstance(axes, int):
        mine, yours = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        mine, yours = ([d] if isinstance(d, int) else list(d) for d in axes)  # type: ignore[attr-defined]
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left = [next(letters) for _ in range(a.ndim)]
    met = dict(
        zip((axis_of(d, b.ndim, "tensordot") for d in yours), (left[axis_of(d, a.ndim, "tensordot")] for d in mine))
    )
    right = [met.get(d) or next(letters) for d in range(b.ndim)]
    out = [x for x in [*left, *right] if x not in met.values()]
    return one("einsum", [a, b], equation=f"{''.join(left)},{''.join(right)}->{''.join(out)}")


# ------------------------------------------------------------------------------------------------------------- movement


def expand_like(a: Tensor, shape_like: Tensor, axis: Sequence[int] | int) -> Tensor:
    """`a` with new axes of the extents of `shape_like`."""
    at = sorted(axis_of(d, shape_like.ndim, "expand_like") for d in ([axis] if isinstance(axis, int) else axis))
    others = [d for d in range(shape_like.ndim) if d not in at]
    made: Tensor = te.compute(
        shape_like.shape, lambda *i: a[tuple(i[d] for d in others) or (0,)], name="T_expand_like", tag="broadcast"
    )
    return made


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """The first elements of each sequence, as many as its length, turned round."""
    return one("reverse_sequence", a, seq_lengths, seq_axis=seq_axis, batch_axis=batch_axis)


def strided_slice(
    a: Tensor,
    begin: object,
    end: object,
    strides: object = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Tensor:
    """A part of a tensor; in the mode `size` ends are numbers of elements, -1 for all that follow."""
    first, last, by = (None if v is None else _whole(v) for v in (begin, end, strides))
    return one("strided_slice", a, first, last, by, axes=None if axes is None else list(axes), slice_mode=slice_mode)


def _whole(values: object) -> list[int]:
    return [int(_plain(v)) for v in values]  # type: ignore[attr-defined]


def strided_set(a: Tensor, v: Tensor, begin: object, end: object, strides: object = None) -> Tensor:
    """A tensor with a part of it replaced."""
    given = [x if x is None or isinstance(x, Tensor) else array_of(_whole(x)) for x in (begin, end, strides)]
    return one("strided_set", a, v, *given)


def take(a: Tensor, indices: Tensor, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """The elements (or slices on an axis) at these places."""
    return one("take", a, indices, axis=axis, batch_dims=batch_dims, mode=mode)


def embedding(data: Tensor, indices: Tensor) -> Tensor:
    """The rows at these places."""
    return one("take", data, indices, axis=0, mode="fast")


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """Parts by their leading indices, which are along the first axis of `indices`."""
    if indices.dtype.is_floating:
        indices = elementwise.cast(indices, "int32")
    return one("gather_nd", a, indices, batch_dims=batch_dims)


def layout_transform(array: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> Tensor:
    """A tensor with its axes in another order, some of them split."""
    if src_layout == dst_layout:
        return array
    return one("layout_transform", array, src_layout=src_layout, dst_layout=dst_layout)


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """The extents of a tensor."""
    own = sizes(array)

    def element(i: te.Var) -> Expr:
        found: Expr = te.const(0, dtype)
        for d, n in enumerate(own):
            found = te.Select(i == d, te.cast(n, dtype), found)
        return found

    made: Tensor = te.compute((len(own),), element, name="T_shape", tag="injective")
    return made


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements of a tensor."""
    total: Expr | int = 1
    for n in sizes(array):
        total = total * n
    made: Tensor = te.compute((1,), lambda i: te.cast(total, dtype), name="ndarray_size", tag="injective")
    return made


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0) -> Tensor:
    """Sequences of which what is behind their lengths is a value."""
    return one("sequence_mask", data, valid_length, mask_value=mask_value, axis=axis)


def meshgrid(a_tuple: Sequence[Tensor], indexing: str) -> list[Tensor]:
    """The coordinates of a grid of each tensor's elements."""
    return several("meshgrid", list(a_tuple), indexing=indexing)


def one_hot(indices: Tensor, on_value: object, off_value: object, depth: int, axis: int, dtype: str) -> Tensor:
    """A new axis on which one element is `on_value`, the others `off_value`."""
    on, off = (v if isinstance(v, Tensor) else np.asarray(_plain(v), dtype) for v in (on_value, off_value))
    return one("one_hot", indices, on, off, depth, axis, dtype)


def unravel_index(indices: Tensor, shape: object) -> Tensor:
    """The indices, one row for each axis, of places among all elements of a shape."""
    if isinstance(shape, Tensor):
        kind = [([numbers(shape, "unravel_index")[0], *sizes(indices)], str(indices.dtype))]
        return called(
            "unravel_index",
            lambda arrays: [np.stack(np.unravel_index(arrays[0], tuple(arrays[1])))],
            [indices, shape],
            kind,
        )[0]
    extents, rank = _whole(shape), indices.ndim
    behind = [int(np.prod(extents[d + 1 :])) for d in range(len(extents))]

    def element(d: te.Var, *i: te.Var) -> Expr:
        found: Expr = te.const(0, str(indices.dtype))
        for axis, (n, step) in enumerate(zip(extents, behind)):
            place = indices[i or (0,)] if rank else indices[()]
            found = te.Select(d == axis, te.floormod(te.floordiv(place, step), n), found)
        return found

    made: Tensor = te.compute([len(extents), *sizes(indices)], element, name="T_unravel", tag="injective")
    return made


def sparse_to_dense(
    sparse_indices: Tensor, output_shape: object, sparse_values: Tensor, default_value: object = 0
) -> Tensor:
    """A tensor with values at some places and `default_value` at all others."""
    fill = (
        default_value
        if isinstance(default_value, Tensor)
        else np.asarray(_plain(default_value), str(sparse_values.dtype))
    )
    return one("sparse_to_dense", sparse_indices, _whole(output_shape), sparse_values, fill)


def matrix_set_diag(data: Tensor, diagonal: Tensor, k: object = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with other elements on some of their diagonals."""
    return one("matrix_set_diag", data, diagonal, list(k) if isinstance(k, tuple) else k, align)


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """The elements whose first indices are those of tensors, which are stretched to each other."""
    return one("adv_index", [data, *indices])


def invert_permutation(data: Tensor) -> Tensor:
    """Where each place of a permutation is."""
    return one("invert_permutation", data)


def sliding_window(data: Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """Windows over the axes from `axis` on."""
    return one("sliding_window", data, axis=axis, window_shape=list(window_shape), strides=list(strides))


def trilu(data: Tensor, k: object, upper: bool) -> Tensor:
    """Matrices of which one side of a diagonal is 0."""
    given = k if isinstance(k, Tensor) else np.asarray(_plain(k), "int32")
    return one("trilu", data, given, upper)


# ------------------------------------------------------------------------------------------------------ sorts, scattering


def sort(data: Tensor, axis: int = -1, is_ascend: object = 1) -> Tensor:
    """The elements in order on an axis."""
    return one("sort", data, axis=axis, is_ascend=bool(is_ascend))


def argsort(
    data: Tensor, valid_count: Tensor | None = None, axis: int = -1, is_ascend: object = 1, dtype: str = "float32"
) -> Tensor:
    """The places of the elements in order. `valid_count`: how many of each row count, the others stay where they are; a number for each
    row, in the order of the axes that are left."""
    if valid_count is not None:
        data = _last_beyond(data, valid_count, axis, bool(is_ascend))
    whole = dtype if not dtype.startswith("float") else "int32"
    made = one("argsort", data, axis=axis, is_ascend=bool(is_ascend), dtype=whole)
    return made if whole == dtype else elementwise.cast(made, dtype)


def _last_beyond(data: Tensor, counts: Tensor, axis: int, is_ascend: bool) -> Tensor:
    """The elements, those beyond the count of their row the last in order, as none is before them."""
    extents, at = numbers(data, "argsort"), axis % len(data.shape)
    others = [n for i, n in enumerate(extents) if i != at]
    if numbers(counts, "argsort") != [prod(others)]:
        raise ExpressionError(
            f"argsort has {prod(others)} rows, and counts of the shape {numbers(counts, 'argsort')}",
            "give a number for each row",
        )
    last = (greatest if is_ascend else least)(data.dtype)

    def element(*i: te.Var) -> Expr:
        row = flat_index([v for n, v in enumerate(i) if n != at], others)
        return te.if_then_else(i[at] < counts[row], data[i], last)

    made: Tensor = te.compute(extents, element, name="T_valid", tag="injective")
    return made


def topk(
    data: Tensor, k: object = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int64"
) -> Tensor | list[Tensor]:
    """The first `k` (0: all) elements in order, their places, or both."""
    count = int(_plain(k)) or numbers(data, "topk")[axis]
    whole = dtype if not dtype.startswith("float") else "int32"
    made = several("topk", data, count, axis=axis, ret_type=ret_type, is_ascend=is_ascend, dtype=whole)
    if whole != dtype and ret_type != "values":
        made[-1] = elementwise.cast(made[-1], dtype)
    return made if ret_type == "both" else made[0]


def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update"
) -> Tensor:
    """A tensor with elements replaced (or joined with others: `add`, `mul`, `mean`, `min`, `max`) at places of an axis."""
    if reduction == "mean":
        return _running_means(data, indices, updates, axis)
    return one("scatter_elements", data, indices, updates, axis=axis, reduction=reduction)


def _running_means(data: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """Each update replaces its element by the mean of both, one after the other."""
    at = axis_of(axis, data.ndim, "scatter_elements")

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        made, places, values = arrays[0].copy(), arrays[1], arrays[2]
        for i in np.ndindex(places.shape):
            here = (*i[:at], int(places[i]), *i[at + 1 :])
            made[here] = (made[here] + values[i]) / 2
        return [made]

    return called("scatter_means", function, [data, indices, updates], [(list(data.shape), str(data.dtype))], at)[0]


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str) -> Tensor:
    """A tensor with parts replaced (or joined with others: `add`, ...) by their leading indices."""
    return one("scatter_nd", data, indices, updates, mode=mode)


def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64") -> Tensor:
    """Where values belong in rows that are sorted; `right`: behind those that are equal."""
    return one("searchsorted", sorted_sequence, values, right=right, dtype=out_dtype)


def dft(re_data: Tensor, im_data: Tensor, inverse: object) -> list[Tensor]:
    """The discrete Fourier transform of the last axis: real and imaginary parts."""
    return several("dft", re_data, im_data, inverse=bool(_plain(inverse)))


def stft(
    data: Tensor, n_fft: int, hop_length: int, win_length: int, window: Tensor, normalized: bool, onesided: bool,
    output_shape: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Fourier transforms of windows of a signal."""
    return one("stft", data, n_fft, hop_length, win_length, window, normalized, onesided)

"""`tvm.topi`: operators whose results depend on values, and of sparse matrices: hosts compute them by NumPy."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from compass_core.arrays import Array

from ...ir.errors import ExpressionError
from ...operators.declare import numbers, sizes
from ...relay.backend.referenced import ArrayFunction, by_function
from ...te.tensor import Tensor

__all__ = [
    "argwhere", "sparse_add", "sparse_dense", "sparse_fill_empty_rows", "sparse_reshape", "sparse_transpose", "unique",
]  # fmt: skip


def called(
    name: str,
    function: ArrayFunction,
    tensors: Sequence[Tensor],
    results: Sequence[tuple[Sequence[object], str]],
    *options: object,
) -> list[Tensor]:
    """Results that a function of arrays computes; `options`: what else it depends on."""
    told = f"{name} {options} {[(str(t.dtype), [str(n) for n in t.shape]) for t in tensors]}"
    return by_function(f"topi.{name}.{zlib.crc32(told.encode()):x}", function, tensors, results)


# --------------------------------------------------------------------------------------------------- depending on values


def argwhere(output_shape: Tensor, condition: Tensor) -> Tensor:
    """The places of the elements that are not 0, in order, as rows; as many of them as `output_shape` has rows."""
    rows = numbers(output_shape, "argwhere")[0]

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        found = np.argwhere(arrays[0])[:rows]
        made = np.zeros((rows, max(arrays[0].ndim, 1)), "int32")
        made[: len(found), : found.shape[1]] = found
        return [made]

    return called("argwhere", function, [condition], [((rows, max(condition.ndim, 1)), "int32")], rows)[0]


def unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[Tensor]:
    """The distinct values of a row, in order or as they come; where each is first; which of them each element is; how many
    there are; and how often each is there, if asked for. What is behind the distinct values is 0."""
    count = numbers(data, "unique")[0]

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        values, first, which, often = np.unique(arrays[0], return_index=True, return_inverse=True, return_counts=True)
        if not is_sorted:
            order = np.argsort(first, kind="stable")
            values, first, often = values[order], first[order], often[order]
            which = np.argsort(order, kind="stable")[which]
        padded = [np.resize(np.pad(v, (0, count - len(v))), count) for v in (values, first)]
        made = [*padded, which.reshape(-1), np.array([len(values)])]
        return [*made, np.pad(often, (0, count - len(often)))] if return_counts else made

    kinds: list[tuple[Sequence[object], str]] = [
        ((count,), str(data.dtype)),
        ((count,), "int32"),
        ((count,), "int32"),
        ((1,), "int32"),
    ]
    return called(
        "unique",
        _typed(function, kinds := [*kinds, *([((count,), "int32")] if return_counts else [])]),
        [data],
        kinds,
        is_sorted,
    )


def _typed(function: ArrayFunction, kinds: Sequence[tuple[Sequence[object], str]]) -> ArrayFunction:
    return lambda arrays: [np.asarray(v).astype(kind) for v, (_, kind) in zip(function(arrays), kinds, strict=True)]


def sparse_reshape(
    sparse_indices: Tensor,
    prev_shape: Tensor,
    new_shape: Tensor,
    new_sparse_indices_shape: Sequence[int],
    new_shape_shape: Sequence[int],
) -> list[Tensor]:
    """The places of values of a tensor when it gets another shape (one extent may be -1), and that shape."""

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        places, before, wanted = arrays
        after = wanted.astype("int64")
        if (after < 0).any():
            after[after < 0] = int(before.astype("int64").prod()) // int(np.prod(after[after >= 0]))
        flat = np.ravel_multi_index(tuple(places.T.astype("int64")), tuple(int(n) for n in before))
        return [np.stack(np.unravel_index(flat, tuple(after)), 1), after]

    kinds = [(list(new_sparse_indices_shape), str(sparse_indices.dtype)), (list(new_shape_shape), str(new_shape.dtype))]
    return called("sparse_reshape", _typed(function, kinds), [sparse_indices, prev_shape, new_shape], kinds)


def sparse_fill_empty_rows(
    sparse_indices: Tensor, sparse_values: Tensor, dense_shape: Tensor, default_value: Tensor, new_sparse_indices_shape: Sequence[int],
    new_sparse_values_shape: Sequence[int], empty_row_indicator_shape: Sequence[int],
) -> list[Tensor]:  # fmt: skip
    """Values and places of a matrix in which each row without a value gets one at its beginning; which rows these are."""

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        places, values, shape, default = arrays
        empty = ~np.isin(np.arange(int(shape[0])), places[:, 0])
        more = np.zeros((int(empty.sum()), places.shape[1]), places.dtype)
        more[:, 0] = np.flatnonzero(empty)
        whole, all_values = (
            np.concatenate([places, more]),
            np.concatenate([values, np.full(len(more), default.reshape(-1)[0], values.dtype)]),
        )
        order = np.argsort(whole[:, 0], kind="stable")
        return [whole[order], all_values[order], empty]

    kinds = [
        (list(new_sparse_indices_shape), str(sparse_indices.dtype)),
        (list(new_sparse_values_shape), str(sparse_values.dtype)),
        (list(empty_row_indicator_shape), "bool"),
    ]
    return called(
        "sparse_fill_empty_rows",
        _typed(function, kinds),
        [sparse_indices, sparse_values, dense_shape, default_value],
        kinds,
    )


# --------------------------------------------------------------------------------------------------------------- sparse


class Sparse(Protocol):
    """A matrix of `tvm.contrib.sparse`: the values of its rows, their columns, where each row begins."""

    data: Tensor
    indices: Tensor
    indptr: Tensor
    shape: Sequence[object]


def dense_of(values: Array, columns: Array, begins: Array, width: int) -> Array:
    """A matrix of the values (or blocks) of its rows."""
    blocks = values.reshape(len(values), *(values.shape[1:] or (1, 1)))
    height, breadth = blocks.shape[1:]
    made = np.zeros(((len(begins) - 1) * height, width), values.dtype)
    for row, (first, last) in enumerate(itertools.pairwise(begins)):
        for n in range(int(first), int(last)):
            at = int(columns[n]) * breadth
            made[row * height : (row + 1) * height, at : at + breadth] += blocks[n]
    return made


def sparse_dense(
    dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor, sparse_lhs: bool = False
) -> Tensor:
    """A dense matrix by the transposed sparse one (values or blocks of rows); `sparse_lhs`: the sparse one by the transposed
    dense one."""
    height = sizes(sparse_data)[1] if sparse_data.ndim == 3 else 1
    rows = (sizes(sparse_indptr)[0] - 1) * height
    others, depth = sizes(dense_data)

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        x, *parts = arrays
        w = dense_of(parts[0], parts[1], parts[2], x.shape[1])
        return [w @ x.T if sparse_lhs else x @ w.T]

    shape = [rows, others] if sparse_lhs else [others, rows]
    return called(
        "sparse_dense",
        function,
        [dense_data, sparse_data, sparse_indices, sparse_indptr],
        [(shape, str(dense_data.dtype))],
        sparse_lhs,
        str(depth),
    )[0]


def sparse_add(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> Tensor:
    """A dense matrix plus a sparse one."""

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        x, *parts = arrays
        return [x + dense_of(parts[0], parts[1], parts[2], x.shape[1])]

    return called(
        "sparse_add",
        function,
        [dense_data, sparse_data, sparse_indices, sparse_indptr],
        [(list(dense_data.shape), str(dense_data.dtype))],
    )[0]


def sparse_transpose(sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> list[Tensor]:
    """The values, columns and beginnings of rows of the transposed square matrix."""

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        values, columns, begins = arrays
        rows = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
        order = np.argsort(columns, kind="stable")
        ends = np.cumsum(np.bincount(columns, minlength=len(begins) - 1))
        return [values[order], rows[order], np.concatenate([[0], ends])]

    given = [sparse_data, sparse_indices, sparse_indptr]
    kinds = [(list(t.shape), str(t.dtype)) for t in given]
    return called("sparse_transpose", _typed(function, kinds), given, kinds)


def product(a: Sparse, b: Tensor, addend: Tensor | None, name: str) -> Tensor:
    """A sparse matrix by a dense one, plus a number for each row."""
    given = [a.data, a.indices, a.indptr, b, *([addend] if addend is not None else [])]

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        values, columns, begins, x, *more = arrays
        made = dense_of(values, columns, begins, len(x)) @ x
        return [made + more[0].reshape(-1, 1) if more else made]

    return called(name, function, given, [([a.shape[0], b.shape[1]], str(b.dtype))])[0]


def csrmv(a: Sparse, x: Tensor, y: Tensor | None = None) -> Tensor:
    """A sparse matrix by a column, plus `y`."""
    return product(a, x, y, "csrmv")


def csrmm(a: Sparse, b: Tensor, c: Tensor | None = None) -> Tensor:
    """A sparse matrix by a dense one, plus a number for each row."""
    return product(a, b, c, "csrmm")


def dense(data: object, weight: object, bias: Tensor | None = None) -> Tensor:
    """data @ weight.T where one of the two is sparse, plus a bias for each column. ExpressionError where none or both are."""
    if isinstance(data, Tensor) and not isinstance(weight, Tensor):
        return _dense_by(data, weight, bias, False)  # type: ignore[arg-type]
    if isinstance(weight, Tensor) and not isinstance(data, Tensor):
        return _dense_by(weight, data, bias, True)  # type: ignore[arg-type]
    raise ExpressionError("topi.sparse.dense takes one sparse and one dense matrix", "topi.nn.dense takes dense ones")


def _dense_by(x: Tensor, s: Sparse, bias: Tensor | None, first: bool) -> Tensor:
    given = [x, s.data, s.indices, s.indptr, *([bias] if bias is not None else [])]

    def function(arrays: Sequence[Array]) -> Sequence[Array]:
        a, values, columns, begins, *more = arrays
        w = dense_of(values, columns, begins, a.shape[1])
        made = w @ a.T if first else a @ w.T
        return [made + more[0] if more else made]

    shape = [s.shape[0], x.shape[0]] if first else [x.shape[0], s.shape[0]]
    return called("dense", function, given, [(shape, str(x.dtype))], first)[0]

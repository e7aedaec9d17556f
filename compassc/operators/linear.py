"""Products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core.arrays import Array
from compassc import te
from compassc.ir.dtypes import DataType
from compassc.ir.errors import ExpressionError
from compassc.operators.declare import operator, sample, sizes, wide
from compassc.operators.elementwise import cast
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from compassc.ir.exprs import Expr


def sum_type(kind: DataType, out_dtype: str | None) -> DataType:
    """The type that products are added in: int32 for bytes, float32 for narrow reals."""
    if kind.is_floating:
        return wide(kind)
    return DataType("int32" if kind.bits < 32 else str(kind)) if out_dtype is None else DataType(out_dtype)


def result(total: Tensor, kind: DataType, out_dtype: str | None) -> Tensor:
    """Sums in the type that was asked for: by default int32 for bytes, else that of the elements."""
    wanted = DataType(out_dtype) if out_dtype else (kind if kind.is_floating else total.dtype)
    return total if wanted is total.dtype else cast(total, str(wanted))


def product(a: Expr, b: Expr, kind: DataType) -> Expr:
    """The product of two elements in a wider type."""
    return te.cast(a, kind) * te.cast(b, kind)


def wide_product(x: Array) -> Array:
    """An array wide enough for the sums of products of its elements."""
    if x.dtype.kind not in "iu":
        return x.astype("float64")
    return x.astype("int64" if x.dtype.itemsize == 8 else "int32")


def _matmul(a: Array, b: Array, transp_a: bool = False, transp_b: bool = False) -> Array:
    a, b = wide_product(a), wide_product(b)
    return (a.T if transp_a else a) @ (b.T if transp_b else b)


@operator(
    PatternKind.ANCHOR,
    _matmul,
    sample((5, 9), (9, 12)),
    sample((9, 4), (9, 5), True),
    sample((3, 8), (6, 8), False, True),
)
def matmul(
    a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False, out_dtype: str | None = None
) -> Tensor:
    """The product of two matrices, either of them turned round before. Bytes give int32."""
    (n, depth), (other, m) = (sizes(t)[:: -1 if turned else 1] for t, turned in ((a, transp_a), (b, transp_b)))
    _same(depth, other, "matmul")
    k, kind = te.reduce_axis((0, depth), name="k"), sum_type(a.dtype, out_dtype)

    def element(i: Expr, j: Expr) -> object:
        x = a[k, i] if transp_a else a[i, k]
        y = b[j, k] if transp_b else b[k, j]
        return te.sum(product(x, y, kind), axis=k)

    return result(te.compute([n, m], element, name="T_matmul", tag="matmul"), a.dtype, out_dtype)


def _same(a: object, b: object, what: str) -> None:
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise ExpressionError(f"topi.{what}: extents {a} and {b} that are reduced over differ")


def _dense(x: Array, w: Array, bias: object = None) -> Array:
    found = wide_product(x) @ wide_product(w).T
    return found if bias is None else found + bias


@operator(PatternKind.ANCHOR, _dense, sample((4, 9), (6, 9)), sample((4, 9), (6, 9), (6,)))
def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """data @ weight.T, with a bias for each column."""
    found = matmul(data, weight, False, True, out_dtype)
    if bias is None:
        return found
    made: Tensor = te.compute(
        sizes(found), lambda i, j: found[i, j] + te.cast(bias[j], found.dtype), name="T_dense_bias", tag="broadcast"
    )
    return made


def _batch_matmul(x: Array, y: Array, transpose_a: bool = False, transpose_b: bool = True) -> Array:
    x, y = wide_product(x), wide_product(y)
    return (x.swapaxes(1, 2) if transpose_a else x) @ (y.swapaxes(1, 2) if transpose_b else y)


@operator(PatternKind.ANCHOR, _batch_matmul, sample((3, 4, 5), (3, 6, 5)), sample((2, 4, 5), (1, 5, 6), False, False))
def batch_matmul(
    x: Tensor, y: Tensor, transpose_a: bool = False, transpose_b: bool = True, out_dtype: str | None = None
) -> Tensor:
    """A product of matrices for each batch; the second one is turned round unless it is said. A batch of 1 goes with
    all."""
    (bx, *sx), (by, *sy) = sizes(x), sizes(y)
    (n, depth), (other, m) = sx[:: -1 if transpose_a else 1], sy[:: -1 if transpose_b else 1]
    _same(depth, other, "batch_matmul")
    k, kind = te.reduce_axis((0, depth), name="k"), sum_type(x.dtype, out_dtype)

    def element(b: Expr, i: Expr, j: Expr) -> object:
        first, second = (0 if isinstance(e, int) and e == 1 else b for e in (bx, by))
        left = x[first, k, i] if transpose_a else x[first, i, k]
        right = y[second, j, k] if transpose_b else y[second, k, j]
        return te.sum(product(left, right, kind), axis=k)

    batch = by if isinstance(bx, int) and bx == 1 else bx
    total = te.compute([batch, n, m], element, name="T_batch_matmul", tag="batch_matmul")
    return result(total, x.dtype, out_dtype)

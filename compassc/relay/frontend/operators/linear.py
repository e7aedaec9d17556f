"""Products of matrices and sums of products."""

from __future__ import annotations

import numpy as np

from compassc.relay.frontend.operators.movement import product_of
from compassc.relay.frontend.terms import Expressions, Size, Term, operator


def product(b: Expressions, x: Term, y: Term, dtype: str = "") -> Term:
    """The product of matrices, whose leading axes broadcast; vectors are a row, a column. `dtype`: of the sums."""
    if x.rank == 1 or y.rank == 1:
        wide = [
            b.call("expand_dims", x, axis=0) if x.rank == 1 else x,
            b.call("expand_dims", y, axis=1) if y.rank == 1 else y,
        ]
        made = product(b, wide[0], wide[1], dtype)
        if y.rank == 1:
            made = b.squeeze(made, [-1])
        return b.squeeze(made, [-2 + (y.rank == 1)]) if x.rank == 1 else made
    kind = {"out_dtype": dtype} if dtype else {}
    if x.rank == y.rank == 2:
        return b.call("nn.matmul", x, y, **kind)
    if y.rank == 2:
        sizes = b.sizes(x)
        flat = b.reshape(x, [product_of(b, sizes[:-1]), sizes[-1]])
        return b.reshape(b.call("nn.matmul", flat, y, **kind), [*sizes[:-1], b.size(y, 1)])
    rank = max(x.rank, y.rank)
    x, y = b.ranked(x, rank), b.ranked(y, rank)
    if rank == 3:
        return b.call("nn.batch_matmul", x, y, transpose_b=False, **kind)
    batch = [_common(b, x, y, i) for i in range(rank - 2)]
    given = []
    for v in (x, y):
        wide_v = b.broadcast(v, [*batch, *b.sizes(v)[-2:]])
        given.append(b.reshape(wide_v, [product_of(b, batch), *b.sizes(v)[-2:]]))
    made = b.call("nn.batch_matmul", *given, transpose_b=False, **kind)
    return b.reshape(made, [*batch, b.size(x, rank - 2), b.size(y, rank - 1)])


def _common(b: Expressions, x: Term, y: Term, axis: int) -> Size:
    """The extent of an axis that broadcasts."""
    own, other = x.shape[axis], y.shape[axis]
    if own == 1 or other != 1 and isinstance(other, int) and not isinstance(own, int):
        return b.size(y, axis)
    return b.size(x, axis)


@operator("MatMul")
def matmul(b: Expressions, x: Term, y: Term) -> Term:
    return product(b, x, y)


@operator("Gemm", since=7)
def gemm(
    b: Expressions, x: Term, y: Term, c: Term | None = None, *, alpha: float = 1.0, beta: float = 1.0,
    transA: int = 0, transB: int = 0,
) -> Term:  # fmt: skip
    made = b.call("nn.matmul", x, y, transpose_a=bool(transA), transpose_b=bool(transB))
    if alpha != 1:
        made = b.call("multiply", made, b.of(alpha, made))
    if c is None or beta == 0:
        return made
    return b.call("add", made, c if beta == 1 else b.call("multiply", c, b.of(beta, c)))


@operator("Einsum")
def einsum(b: Expressions, *xs: Term, equation: str) -> Term:
    wide = [b.cast(x, "float32") if x.kind == "bfloat16" else x for x in xs]
    return b.cast(b.call("einsum", wide, equation=equation.replace(" ", "")), xs[0].dtype)


def without_zero(b: Expressions, x: Term, zero: Term | None, axis: int | None = None) -> Term:
    """Whole numbers of 32 bits without their zero point, which may be one for each place of an axis."""
    wide = b.cast(x, "int32")
    if zero is None or zero.array is not None and not np.any(zero.array):
        return wide
    z = b.cast(zero, "int32")
    if z.rank == 1 and axis is not None and x.rank - 1 - x.axis(axis) and z.shape != (1,):
        z = b.call("expand_dims", z, axis=1, num_newaxis=x.rank - 1 - x.axis(axis))
    return b.call("subtract", wide, z)


@operator("MatMulInteger")
def matmul_of_integers(
    b: Expressions, x: Term, y: Term, x_zero: Term | None = None, y_zero: Term | None = None
) -> Term:
    return product(b, without_zero(b, x, x_zero, -2), without_zero(b, y, y_zero, -1), "int32")

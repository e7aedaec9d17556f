"""Products of matrices."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building, known, makes
from compassc.importers.onnx.declare import operator
from compassc.importers.onnx.operators.elementwise import arithmetic, cast
from compassc.importers.values import Order, Refused, Value, broadcast_shape, plain, stored_type


def fully_connected(b: Building, x: Value, weights: Array, biases: Array | None = None) -> Value:
    """x times the transposed weights [O,I], over the last axis."""
    tensor = b.laid(x)
    outputs = weights.shape[0]
    dtype = np.float32 if weights.dtype == np.float64 else weights.dtype
    if weights.shape[1] != x.shape[-1]:
        raise Refused(f"{list(x.shape)} and {list(weights.shape[::-1])} are not matrices with a product")
    made = b.layer(
        "FullyConnected",
        [tensor],
        (*tensor.shape[:-1], outputs),
        tensor.dtype,
        weights=np.ascontiguousarray(weights, dtype),
        biases=np.zeros(outputs, dtype) if biases is None else np.ascontiguousarray(biases, dtype),
        num_output=outputs,
        with_activation="NONE",
    )
    return b.value(made, x.dtype)


@makes("dense")
def dense(b: Building, x: Value, weights: Value) -> Value:
    """x times the transposed weights [O,I], which are known."""
    return fully_connected(b, x, known(weights))


def _swapped(order: Order) -> bool:
    """Whether only the last two axes are swapped."""
    rank = len(order)
    return rank >= 2 and order == (*range(rank - 2), rank - 1, rank - 2)


def multiply(b: Building, x: Value, y: Value) -> Value:
    """The product of matrices; leading axes broadcast. Transposed operands are read in place."""
    if x.rank == 1 or y.rank == 1:
        left = b.unsqueeze(x, [0]) if x.rank == 1 else x
        right = b.unsqueeze(y, [1]) if y.rank == 1 else y
        product = multiply(b, left, right)
        gone = ([product.rank - 2] if x.rank == 1 else []) + ([product.rank - 1] if y.rank == 1 else [])
        return b.squeeze(product, gone)
    if x.shape[-1] != y.shape[-2]:
        raise Refused(f"{list(x.shape)} and {list(y.shape)} are not matrices with a product")
    if x.is_float and y.array is not None and y.rank == 2 and x.tensor is not None:
        return fully_connected(b, x, y.array.T)
    rank = max(x.rank, y.rank)
    x, y = b.ranked(x, rank), b.ranked(y, rank)
    flags, tensors = [], []
    for v in (x, y):
        swapped = v.tensor is not None and _swapped(v.order)
        flags.append(swapped)
        tensors.append(b.laid(v, v.order if swapped else plain(rank)))
    shape = (*broadcast_shape([x.shape[:-2], y.shape[:-2]]), x.shape[-2], y.shape[-1])
    made = b.layer("MatMul", tensors, shape, stored_type(x.dtype), trans_a=flags[0], trans_b=flags[1])
    return b.value(made, x.dtype)


@operator("MatMul")
def matmul(b: Building, x: Value, y: Value) -> Value:
    if not x.is_float:
        return _integers(b, x, y, 0, 0)
    return multiply(b, x, y)


@operator("MatMulInteger", since=10)
def matmul_integer(b: Building, x: Value, y: Value, x_zero: Value | None = None, y_zero: Value | None = None) -> Value:
    (x, of_x), (y, of_y) = centred(b, x, x_zero), centred(b, y, y_zero, columns=True)
    return _integers(b, x, y, of_x, of_y)


def centred(b: Building, x: Value, zero: Value | None, columns: bool = False) -> tuple[Value, int]:
    """8-bit numbers and the one known zero point that is to be taken off them; others are taken off already: those found
    at run time, and those of `columns`. Refused for several others."""
    if zero is None:
        return x, 0
    if zero.array is not None and len(set(zero.array.reshape(-1).tolist())) == 1:
        return x, int(zero.array.reshape(-1)[0])
    if zero.count != 1 and not (columns and zero.shape[-1:] == x.shape[-1:]):
        raise Refused("it has several zero points")
    if x.array is not None and zero.array is not None:
        return Value.of(x.array.astype(np.int16) - zero.array.astype(np.int16)), 0
    wide = arithmetic(b, cast(b, x, np.int32), cast(b, zero, np.int32), "Sub")
    return cast(b, wide, np.int16), 0


def _integers(b: Building, x: Value, y: Value, x_zero: int, y_zero: int) -> Value:
    shape = np.empty((*x.shape, 0)).shape[:-1], y.shape
    result = (np.empty(shape[0], np.int8) @ np.empty(shape[1], np.int8)).shape if x.count * y.count < 1 << 16 else None
    if result is None:
        result = (*broadcast_shape([x.shape[:-2], y.shape[:-2]]), x.shape[-2], y.shape[-1])
    to = np.dtype(np.int32) if x.dtype.itemsize < 4 else x.dtype
    made = b.layer(
        "MatMulInteger", [b.laid(x), b.laid(y)], result, stored_type(to), a_zero_point=x_zero, b_zero_point=y_zero
    )
    return b.value(made, to)


@operator("Gemm", since=7)
def gemm(
    b: Building,
    x: Value,
    y: Value,
    c: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """Known weights and biases are a FullyConnected."""
    left = b.transpose(x, (1, 0)) if transA else x
    if x.is_float and x.tensor is not None and y.array is not None and (c is None or c.array is not None):
        weights = y.array if transB else y.array.T
        if alpha != 1:
            weights = weights.astype(np.float64) * alpha
        bias = None if c is None or c.array is None else c.array.astype(np.float64) * beta
        if bias is None or (bias.ndim < 2 or bias.shape[0] == 1) and bias.size in (1, weights.shape[0]):
            kind = np.float32 if y.dtype == np.float64 else y.dtype
            spread = None if bias is None else np.broadcast_to(bias.reshape(-1), (weights.shape[0],)).astype(kind)
            return fully_connected(b, left, weights.astype(kind), spread)
    right = b.transpose(y, (1, 0)) if transB else y
    product = multiply(b, left, right)
    if alpha != 1:
        product = arithmetic(b, product, Value.of(np.full(1, alpha, x.dtype)), "Mul")
    if c is None or beta == 0:
        return product
    if beta != 1:
        if c.array is not None:
            c = Value.of((c.array.astype(np.float64) * beta).astype(c.dtype))
        else:
            c = arithmetic(b, c, Value.of(np.full(1, beta, x.dtype)), "Mul")
    return arithmetic(b, product, c, "Add")

"""MatMul on floats: float32 sums; the row of the left operand that is worked on stays in LSRAM."""

from functools import cache

from compassc.dsl import script as S
from compassc.gbuilder.plugin_api import Tensor
from compassc.oplib.activations import TABLE
from compassc.oplib.layer import FLOATS, Choice, Layer, Unsupported, constant, count, operator
from compassc.oplib.vector import LANES, ROW, SHORT, filled, narrow, wide

WIDE = 32
"""Columns worked on at once: four registers of sums."""


@cache
def _columns(act: str, dtype: str, wdtype: str):
    """y = act(scale * a @ b + bias); b is depth x cols. Element (m, k) of a lies at m * step_m + k * step_k."""
    lanes, activation = LANES[dtype], TABLE[act].apply

    @S.prim_func
    def matmul(
        a: S.ptr(dtype, "global"), b: S.ptr(wdtype, "global"), bias: S.ptr("float32", "global"),
        y: S.ptr(dtype, "global"), batches: S.i32, rows: S.i32, depth: S.i32, cols: S.i32,
        step_m: S.i32, step_k: S.i32, step_b: S.i32, scale: S.fp32, p: S.fp32, q: S.fp32,
    ):  # fmt: skip
        row = S.alloc(ROW, "float32", scope="lsram")
        for r in range(S.get_local_id(), batches * rows, S.get_local_size()):
            batch = r / rows
            left = a + (batch * rows * depth + r % rows * step_m)
            for i in range(0, depth, lanes):
                own = S.tail_mask(S.min(depth - i, lanes), lanes)
                S.vstore(wide(S.vload(left + i * step_k, own, stride=step_k), dtype), row + i)
            for c in range(0, cols, WIDE):
                mask = S.tail_mask(S.min(cols - c, WIDE), WIDE)
                right = b + (batch * step_b + c)
                acc = filled(0.0, WIDE)
                for k in range(depth):
                    acc = acc + wide(S.vload(right + k * cols, mask, lanes=WIDE), wdtype) * row[k]
                acc = activation(acc * scale + S.vload(bias + c, mask, lanes=WIDE), p, q)
                S.vstore(narrow(acc, dtype), y + (r * cols + c), mask)

    return matmul


@cache
def _dots(dtype: str):
    """y = scale * a @ transposed b; b is cols x depth, so every element is a dot product of two rows."""
    lanes = LANES[dtype]

    @S.prim_func
    def matmul(
        a: S.ptr(dtype, "global"), b: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"),
        batches: S.i32, rows: S.i32, depth: S.i32, cols: S.i32,
        step_m: S.i32, step_k: S.i32, step_b: S.i32, scale: S.fp32,
    ):  # fmt: skip
        row = S.alloc(ROW, "float32", scope="lsram")
        for r in range(S.get_local_id(), batches * rows, S.get_local_size()):
            batch = r / rows
            left = a + (batch * rows * depth + r % rows * step_m)
            for i in range(0, depth, lanes):
                own = S.tail_mask(S.min(depth - i, lanes), lanes)
                S.vstore(wide(S.vload(left + i * step_k, own, stride=step_k), dtype), row + i)
            for c in range(cols):
                right = b + (batch * step_b + c * depth)
                acc = filled(0.0, lanes)
                for k in range(0, depth, lanes):
                    mask = S.tail_mask(S.min(depth - k, lanes), lanes)
                    v = wide(S.vload(right + k, mask), dtype) * S.vload(row + k, lanes=lanes)
                    acc = S.vsel(acc + v, acc, mask)
                y[r * cols + c] = S.vrpadd(acc)[0] * scale

    return matmul


def _fits(depth: int) -> int:
    if depth > ROW:
        raise Unsupported(f"sums of {depth} products; at most {ROW} fit LSRAM")
    return depth


@operator("MatMul")
def matmul_layer(layer: Layer) -> Choice:
    import numpy as np

    dtype = layer.dtype(*FLOATS)
    a, b, y = layer.input(0), layer.input(1), layer.output
    rows, depth, cols, batches, step_b = _sizes(layer, a, b)
    steps = [1, rows, step_b] if layer.flag("trans_a") else [depth, 1, step_b]
    sizes = [batches, rows, depth, cols, *steps, float(layer.number("fused_multiplier", 1.0))]
    if layer.flag("trans_b"):
        return Choice(_dots(dtype), f"matmul_dots_{SHORT[dtype]}", [a, b, y, *sizes])
    zeros = constant("no_biases", np.zeros(cols, "float32"))
    return Choice(_columns("NONE", dtype, dtype), f"matmul_{SHORT[dtype]}", [a, b, zeros, y, *sizes, 0.0, 0.0])


def _sizes(layer: Layer, a: Tensor, b: Tensor) -> tuple[int, int, int, int, int]:
    """Rows, depth, columns, batches, and elements from one batch of b to the next."""
    if min(len(a.shape), len(b.shape)) < 2:
        raise Unsupported("an operand has fewer than two dimensions")
    rows, depth = a.shape[:-3:-1] if layer.flag("trans_a") else a.shape[-2:]
    deep, cols = b.shape[:-3:-1] if layer.flag("trans_b") else b.shape[-2:]
    batches, others = count(a.shape[:-2]), count(b.shape[:-2])
    if depth != deep or (others != 1 and list(a.shape[:-2]) != list(b.shape[:-2])):
        raise Unsupported(f"the shapes {list(a.shape)} and {list(b.shape)} do not fit")
    return rows, _fits(depth), cols, batches, 0 if others == 1 else deep * cols

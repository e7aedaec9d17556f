"""Softmax and LogSoftmax, computed in float32."""

from functools import cache

from compassc.dsl import script as S
from compassc.oplib.layer import FLOATS, Choice, Layer, count, operator, split_axes
from compassc.oplib.vector import LANES, ROW, SHORT, filled, highest, narrow, wide


def _finish(log: bool):
    """The result from x - max, e^(x - max) and their sum (or its logarithm)."""
    return (lambda shifted, e, total: shifted - total) if log else (lambda shifted, e, total: e / total)


@cache
def _rows(log: bool, dtype: str):
    """Softmax of every row of rows x cols; a row stays in LSRAM."""
    lanes = LANES[dtype]

    @S.prim_func
    def softmax(x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), rows: S.i32, cols: S.i32):
        row = S.alloc(ROW, "float32", scope="lsram")
        for r in range(S.get_local_id(), rows, S.get_local_size()):
            best = filled("-inf", lanes)
            for i in range(0, cols, lanes):
                mask = S.tail_mask(S.min(cols - i, lanes), lanes)
                v = S.vsel(wide(S.vload(x + (r * cols + i), mask), dtype), filled("-inf", lanes), mask)
                S.vstore(v, row + i)
                best = S.max(best, v)
            top = highest(best, lanes)
            total = filled(0.0, lanes)
            for j in range(0, cols, lanes):
                e = S.exp(S.vload(row + j, lanes=lanes) - top)
                total = total + e
                if not log:
                    S.vstore(e, row + j)
            whole = S.vrpadd(total)[0]
            if log:
                whole = top + S.log(whole)
            else:
                whole = 1.0 / whole
            for k in range(0, cols, lanes):
                last = S.tail_mask(S.min(cols - k, lanes), lanes)
                v2 = S.vload(row + k, lanes=lanes)
                if log:
                    v2 = v2 - whole
                else:
                    v2 = v2 * whole
                S.vstore(narrow(v2, dtype), y + (r * cols + k), last)

    return softmax


@cache
def _columns(log: bool, dtype: str):
    """Softmax along the middle of outer x n x inner; the lanes are neighbours along `inner`."""
    lanes, finish = LANES[dtype], _finish(log)

    @S.prim_func
    def softmax(x: S.ptr(dtype, "global"), y: S.ptr(dtype, "global"), outer: S.i32, n: S.i32, inner: S.i32):
        blocks = S.ceildiv(inner, lanes)
        for b in range(S.get_local_id(), outer * blocks, S.get_local_size()):
            at = b % blocks * lanes
            start = b / blocks * n * inner + at
            mask = S.tail_mask(S.min(inner - at, lanes), lanes)
            best = filled("-inf", lanes)
            for i in range(n):
                best = S.max(best, wide(S.vload(x + (start + i * inner), mask), dtype))
            total = filled(0.0, lanes)
            for j in range(n):
                total = total + S.exp(wide(S.vload(x + (start + j * inner), mask), dtype) - best)
            if log:
                total = S.log(total)
            for k in range(n):
                v = wide(S.vload(x + (start + k * inner), mask), dtype) - best
                S.vstore(narrow(finish(v, S.exp(v), total), dtype), y + (start + k * inner), mask)

    return softmax


@operator("Softmax", "LogSoftmax")
def select(layer: Layer) -> Choice:
    dtype, log = layer.dtype(*FLOATS), layer.type == "LogSoftmax"
    x, y = layer.input(), layer.output
    outer, n, inner = split_axes(list(x.shape), layer.axes())
    name = f"{layer.type}_{SHORT[dtype]}".lower()
    if inner == 1 and n <= ROW:
        return Choice(_rows(log, dtype), f"{name}_rows", [x, y, outer, n])
    return Choice(_columns(log, dtype), f"{name}_columns", [x, y, outer, n, count([inner])])

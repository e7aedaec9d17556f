"""Tensor expressions with schedules for operators that the examples have as kernels by hand, of the same sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.core import Goal, Result
from compassc import te

K, M = 1024, 1024 * 1024
Made = tuple[te.Schedule, list[te.Tensor]]


@dataclass(frozen=True)
class Form:
    """A schedule by the name of the loop that does the same (`loops.py`), and which of the loop's arguments it has."""

    name: str
    make: Callable[[], Made]
    arguments: tuple[int, ...]


def _tecs() -> te.IterVar:
    return te.thread_axis("threadIdx.x")


def dynamic_add(n: int = 4 * M, tile: int = 2 * K) -> Made:
    a, b = (te.placeholder((n,), "float16", name=name) for name in "ab")
    c = te.compute((n,), lambda i: a[i] + b[i], name="c")
    s = te.create_schedule(c)
    local = s.cache_write(c, "lsram")
    copies = [s.cache_read(t, "lsram", [local]) for t in (a, b)]
    share, rest = s[c].split(c.op.axis[0], nparts=4)
    outer, _ = s[c].split(rest, factor=tile)
    s[c].bind(share, _tecs())
    for t in (local, *copies):
        s[t].compute_at(s[c], outer)
        s[t].double_buffer()
    turns, lanes = s[local].split(local.op.axis[0], factor=16)
    s[local].unroll(s[local].split(turns, factor=4)[1])
    s[local].vectorize(lanes)
    return s, [a, b, c]


def matmul_int8(m: int = 256, n: int = 256, depth: int = 512, rows: int = 4, columns: int = 4) -> Made:
    a, b = te.placeholder((m, depth), "int8", name="a"), te.placeholder((n, depth), "int8", name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k), name="c")
    s = te.create_schedule(c)
    local = s.cache_write(c, "lsram")
    a_rows, b_rows = (s.cache_read(t, "lsram", [local]) for t in (a, b))
    io, jo, _, _ = s[c].tile(*c.op.axis, 16, 16)
    s[c].bind(io, _tecs())
    s[a_rows].compute_at(s[c], io)
    s[b_rows].compute_at(s[c], jo)
    s[b_rows].double_buffer()
    s[local].compute_at(s[c], jo)
    i, j = local.op.axis
    i_out, i_in = s[local].split(i, factor=rows)
    j_out, j_in = s[local].split(j, factor=columns)
    k_out, k_in = s[local].split(local.op.reduce_axis[0], factor=32)
    s[local].reorder(i_out, j_out, k_out, i_in, j_in, k_in)
    s[local].unroll(i_in)
    s[local].unroll(j_in)
    s[local].vectorize(k_in)
    return s, [a, b, c]


def softmax(rows: int = 4 * K, columns: int = K) -> Made:
    x = te.placeholder((rows, columns), "float16", name="x")
    k, j = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "j")
    top = te.compute((rows,), lambda r: te.max(x[r, k], axis=k), name="top")
    e = te.compute((rows, columns), lambda r, c: te.exp(x[r, c].astype("float32") - top[r].astype("float32")), name="e")
    total = te.compute((rows,), lambda r: te.sum(e[r, j], axis=j), name="total")
    scale = te.compute((rows,), lambda r: 1.0 / total[r], name="scale")
    y = te.compute((rows, columns), lambda r, c: (e[r, c] * scale[r]).astype("float16"), name="y")
    s = te.create_schedule(y)
    out = s.cache_write(y, "lsram")
    row = s.cache_read(x, "lsram", [top, e])
    turn = y.op.axis[0]
    s[y].bind(turn, _tecs())
    for t in (row, top, e, total, scale, out):
        s[t].compute_at(s[y], turn)
    for t in (row, out):
        s[t].double_buffer()
    for t, axis in ((top, k), (total, j), (e, e.op.axis[1]), (out, out.op.axis[1])):
        outer, lanes = s[t].split(axis, factor=16)
        s[t].vectorize(lanes)
        if t is top:
            s[t].unroll(s[t].split(outer, factor=4)[1])
    return s, [x, y]


def depthwise_3x3(height: int = 64, width: int = 64, channels: int = 128) -> Made:
    x = te.placeholder((height + 2, width + 2, channels), name="x")
    w = te.placeholder((9, channels), name="w")
    di, dj = te.reduce_axis((0, 3), "di"), te.reduce_axis((0, 3), "dj")
    y = te.compute(
        (height, width, channels),
        lambda i, j, c: te.sum(x[i + di, j + dj, c] * w[di * 3 + dj, c], axis=[di, dj]),
        name="y",
    )
    s = te.create_schedule(y)
    i, j, c = y.op.axis
    group, lanes = s[y].split(c, factor=8)
    s[y].reorder(i, group, j, di, dj, lanes)
    s[y].bind(i, _tecs())
    s[y].unroll(di)
    s[y].unroll(dj)
    s[y].vectorize(lanes)
    return s, [x, w, y]


def max_reduce(n: int = 4 * M, parts: int = 4, tile: int = 4 * K) -> Made:
    x = te.placeholder((n,), "int32", name="x")
    k = te.reduce_axis((0, n), "k")
    out = te.compute((1,), lambda i: te.max(x[k], axis=k), name="out")
    s = te.create_schedule(out)
    share, _ = s[out].split(k, nparts=parts)
    partial = s.rfactor(out, share)
    s[partial].set_scope("shared")
    s[partial].bind(partial.op.axis[0], _tecs())
    outer, inner = s[partial].split(partial.op.reduce_axis[0], factor=tile)
    copy = s.cache_read(x, "lsram", [partial])
    s[copy].compute_at(s[partial], outer)
    s[copy].double_buffer()
    turns, lanes = s[partial].split(inner, factor=32)
    s[partial].unroll(s[partial].split(turns, factor=4)[1])
    s[partial].vectorize(lanes)
    return s, [x, out]


def layer_norm(rows: int = 512, columns: int = 512) -> Made:
    x = te.placeholder((rows, columns), name="x")
    w, b = (te.placeholder((columns,), name=name) for name in "wb")
    k, j = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "j")
    total = te.compute((rows,), lambda r: te.sum(x[r, k], axis=k), name="total")
    mean = te.compute((rows,), lambda r: total[r] / float(columns), name="mean")
    squares = te.compute((rows,), lambda r: te.sum((x[r, j] - mean[r]) * (x[r, j] - mean[r]), axis=j), name="squares")
    scale = te.compute((rows,), lambda r: 1.0 / te.sqrt(squares[r] / float(columns) + 1e-5), name="scale")
    y = te.compute((rows, columns), lambda r, c: b[c] + (x[r, c] - mean[r]) * scale[r] * w[c], name="y")
    s = te.create_schedule(y)
    out = s.cache_write(y, "lsram")
    row = s.cache_read(x, "lsram", [total, squares, out])
    turn = y.op.axis[0]
    s[y].bind(turn, _tecs())
    for t in (row, total, mean, squares, scale, out):
        s[t].compute_at(s[y], turn)
    for t in (row, out):
        s[t].double_buffer()
    for t, axis in ((total, k), (squares, j), (out, out.op.axis[1])):
        outer, lanes = s[t].split(axis, factor=16)
        s[t].unroll(s[t].split(outer, factor=4)[1])
        s[t].vectorize(lanes)
    return s, [x, w, b, y]


FORMS = (
    Form("matmul_int8", matmul_int8, (0, 1, 2)),
    Form("softmax", softmax, (0, 1)),
    Form("dynamic_add", dynamic_add, (0, 1, 2)),
    Form("depthwise_3x3", depthwise_3x3, (0, 1, 2)),
    Form("max_reduce", max_reduce, (0, 1)),
    Form("layer_norm", layer_norm, (0, 1, 2, 3)),
)


def goals(what: str) -> dict[str, Goal]:
    """What is asked of each form, and of all together: how many times as fast as by hand, in time and in cycles."""
    return {
        "time": Goal(f"{what}, geometric mean of times", "x", 0.8, at_most=False),
        "cycles": Goal("the same in estimated cycles", "x", 0.8, at_most=False),
        **{f"{f.name} time": Goal(f"{f.name}, time", "x", 0.5, at_most=False) for f in FORMS},
        **{f"{f.name} cycles": Goal(f"{f.name}, estimated cycles", "x", 0.5, at_most=False) for f in FORMS},
    }


def compared(compare: Callable[[Form], dict[str, Result]]) -> dict[str, Result]:
    """The results of each form, and their geometric means."""
    results: dict[str, Result] = {}
    for form in FORMS:
        results |= compare(form)
    for what in ("time", "cycles"):
        values = [results[f"{f.name} {what}"].value or 0.0 for f in FORMS]
        results[what] = Result(math.exp(sum(map(math.log, values)) / len(values)))
    return results

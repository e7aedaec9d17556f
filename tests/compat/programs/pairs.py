"""Computations with two results, and a reduction of pairs."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
low, high = te.compute((n, m), lambda i, j: (A[i, j] - 1, A[i, j] + 1), name="ends")
print(tvm.lower(te.create_schedule(low.op), [A, low, high], simple_mode=True))


def better(x, y):
    first = x[1] <= y[1]
    return tvm.tir.Select(first, x[0], y[0]), tvm.tir.Select(first, x[1], y[1])


argmin = te.comm_reducer(better, lambda i, v: (tvm.tir.const(-1, i), tvm.te.max_value(v)), name="argmin")
place = te.placeholder((n, m), name="place", dtype="int32")
r = te.reduce_axis((0, m), "r")
where, least = te.compute((n,), lambda i: argmin((place[i, r], A[i, r]), axis=r), name="argmin")
run = tvm.build(te.create_schedule(where.op), [place, A, where, least], "llvm")
given = np.random.rand(3, 9).astype("float32")
places = np.tile(np.arange(9, dtype="int32"), (3, 1))
found, value = tvm.nd.array(np.zeros(3, "int32")), tvm.nd.array(np.zeros(3, "float32"))
run(tvm.nd.array(places), tvm.nd.array(given), found, value)
assert (found.numpy() == given.argmin(1)).all() and (value.numpy() == given.min(1)).all()

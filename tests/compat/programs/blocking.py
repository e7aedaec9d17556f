"""A matrix product in steps: plain, tiled, packed with a copy of its results."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

SIZE, TILE = 64, 16
device = tvm.device("llvm", 0)
left = tvm.nd.array(np.random.rand(SIZE, SIZE).astype("float32"), device)
right = tvm.nd.array(np.random.rand(SIZE, SIZE).astype("float32"), device)
X = te.placeholder((SIZE, SIZE), name="X")
Y = te.placeholder((SIZE, SIZE), name="Y")
r = te.reduce_axis((0, SIZE), "r")


def check(schedule, out):
    built = tvm.build(schedule, [X, Y, out], target="llvm", name="product")
    result = tvm.nd.array(np.zeros((SIZE, SIZE), dtype="float32"), device)
    built(left, right, result)
    tvm.testing.assert_allclose(result.numpy(), left.numpy() @ right.numpy(), rtol=1e-5)
    timer = built.time_evaluator(built.entry_name, device, number=2)
    assert timer(left, right, result).mean > 0
    return str(tvm.lower(schedule, [X, Y, out], simple_mode=True))


Z = te.compute((SIZE, SIZE), lambda i, j: te.sum(X[i, r] * Y[r, j], axis=r), name="Z")
check(te.create_schedule(Z.op), Z)
s = te.create_schedule(Z.op)
io, jo, ii, ji = s[Z].tile(Z.op.axis[0], Z.op.axis[1], TILE, TILE)
ro, ri = s[Z].split(s[Z].op.reduce_axis[0], factor=4)
s[Z].reorder(io, jo, ro, ri, ii, ji)
s[Z].vectorize(ji)
assert "vectorized" in check(s, Z)
packed = te.compute((SIZE // TILE, SIZE, TILE), lambda a, b, c: Y[b, a * TILE + c], name="packed")
Z = te.compute(
    (SIZE, SIZE), lambda i, j: te.sum(X[i, r] * packed[j // TILE, r, tvm.tir.indexmod(j, TILE)], axis=r), name="Z"
)
s = te.create_schedule(Z.op)
kept = s.cache_write(Z, "global")
io, jo, ii, ji = s[Z].tile(Z.op.axis[0], Z.op.axis[1], TILE, TILE)
s[kept].compute_at(s[Z], jo)
ki, kj = s[kept].op.axis
ro, ri = s[kept].split(s[kept].op.reduce_axis[0], factor=4)
s[kept].reorder(ro, ki, ri, kj)
s[kept].unroll(ri)
s[kept].vectorize(kj)
s[Z].parallel(io)
a, _, c = s[packed].op.axis
s[packed].vectorize(c)
s[packed].parallel(a)
assert "parallel" in check(s, Z)

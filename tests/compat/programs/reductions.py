"""Sums over rows of open sizes: split, factored, over threads; a reduction of one's own."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

rows, columns = te.var("rows"), te.var("columns")
A = te.placeholder((rows, columns), name="A")
r = te.reduce_axis((0, columns), "r")
B = te.compute((rows,), lambda i: te.sum(A[i, r], axis=r), name="B")
s = te.create_schedule(B.op)
_, inner = s[B].split(B.op.reduce_axis[0], factor=16)
part = s.rfactor(B, inner)
outer, thread = s[B].split(s[B].op.axis[0], factor=32)
s[B].bind(outer, te.thread_axis("blockIdx.x"))
s[B].bind(thread, te.thread_axis("threadIdx.y"))
tx = te.thread_axis("threadIdx.x")
s[B].bind(s[B].op.reduce_axis[0], tx)
s[part].compute_at(s[B], s[B].op.reduce_axis[0])
s[B].set_store_predicate(tx.var.equal(0))
assert "__global__" in tvm.build(s, [A, B], "cuda").imported_modules[0].get_source()
product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
P = te.compute((rows,), lambda i: product(A[i, r], axis=r), name="P")
run = tvm.build(te.create_schedule(P.op), [A, P], "llvm")
given = np.random.uniform(0.5, 1.5, size=(4, 5)).astype("float32")
found = tvm.nd.array(np.zeros(4, "float32"))
run(tvm.nd.array(given), found)
tvm.testing.assert_allclose(found.numpy(), given.prod(1), rtol=1e-5)

"""A sum that is built, timed, saved, linked and loaded again."""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.contrib import cc, utils

target = tvm.target.Target(target="llvm", host="llvm")
n = te.var("n")
A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
s = te.create_schedule(C.op)
outer, inner = s[C].split(C.op.axis[0], factor=4)
s[C].parallel(outer)
s[C].vectorize(inner)
built = tvm.build(s, [A, B, C], target, name="added")
dev = tvm.device(target.kind.name, 0)
a, b = (tvm.nd.array(np.random.rand(37).astype(A.dtype), dev) for _ in range(2))
folder = utils.tempdir()
built.save(folder.relpath("added.o"))
cc.create_shared(folder.relpath("added.so"), [folder.relpath("added.o")])
built.export_library(folder.relpath("packed.so"))
for run in (built, *(tvm.runtime.load_module(folder.relpath(name)) for name in ("added.so", "packed.so"))):
    c = tvm.nd.array(np.zeros(37, dtype=C.dtype), dev)
    run(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
assert built.time_evaluator(built.entry_name, dev, number=3)(a, b, c).mean > 0

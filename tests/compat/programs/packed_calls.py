"""BLAS and a function of Python's in the middle of a kernel."""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.contrib import cblas, random

assert tvm.get_global_func("tvm.contrib.cblas.matmul", allow_missing=True)
n, l, m = 6, 5, 4
shift = te.var("shift", dtype="float32")
A, B = te.placeholder((n, l), name="A"), te.placeholder((m, l), name="B")
calls = []


@tvm.register_func("tests.halve", override=True)
def halve(x, y, name, factor):
    calls.append((name, factor))
    tvm.nd.array(x.numpy() * factor).copyto(y)


C = cblas.matmul(A, B, transb=True)
D = te.extern(C.shape, [C], lambda i, o: tvm.tir.call_packed("tests.halve", i[0], o[0], "half", 0.5), name="D")
E = te.compute(C.shape, lambda i, j: D[i, j] + shift, name="E")
run = tvm.build(te.create_schedule(E.op), [A, B, E, shift], "llvm")
a, b = np.random.rand(n, l).astype("float32"), np.random.rand(m, l).astype("float32")
e = tvm.nd.array(np.zeros((n, m), "float32"))
run(tvm.nd.array(a), tvm.nd.array(b), e, 10.0)
tvm.testing.assert_allclose(e.numpy(), a @ b.T / 2 + 10, rtol=1e-5)
assert calls == [("half", 0.5)]
R = random.uniform(2.0, 3.0, (50,))
fill = tvm.build(te.create_schedule(R.op), [R], "llvm")
drawn = tvm.nd.array(np.zeros(50, "float32"))
fill(drawn)
assert 2 <= drawn.numpy().min() < drawn.numpy().max() <= 3
tvm.register_func("tests.halve", lambda *args: 1 / 0, override=True)
try:
    run(tvm.nd.array(a), tvm.nd.array(b), e, 10.0)
except ZeroDivisionError:
    pass
else:
    raise AssertionError("what the function raises is lost")

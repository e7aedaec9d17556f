"""Rows that follow from those before, with a stage inside."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

steps, width = te.var("steps"), te.var("width")
X = te.placeholder((steps, width), name="X")
state = te.placeholder((steps, width))
first = te.compute((1, width), lambda _, i: X[0, i])
half = te.compute((steps, width), lambda t, i: state[t - 1, i] * 0.5, name="half")
update = te.compute((steps, width), lambda t, i: half[t, i] + X[t, i], name="update")
decay = tvm.te.scan(first, update, state, inputs=[X])
s = te.create_schedule(decay.op)
outer, _ = s[update].split(update.op.axis[1], factor=4)
s[half].compute_at(s[update], outer)
print(tvm.lower(s, [X, decay], simple_mode=True))
run = tvm.build(s, [X, decay], "llvm")
given = np.random.rand(6, 7).astype("float32")
found = tvm.nd.array(np.zeros((6, 7), "float32"))
run(tvm.nd.array(given), found)
expected = given.copy()
for t in range(1, 6):
    expected[t] += expected[t - 1] * 0.5
tvm.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)

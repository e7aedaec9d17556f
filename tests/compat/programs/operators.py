"""Operators by name, on tensors' own operators, and their schedules."""

import numpy as np
import tvm
import tvm.topi.testing
from tvm import te, topi
from tvm.topi.nn.utils import get_pad_tuple

x = te.placeholder((8, 3, 3), name="x")
y = te.placeholder((3, 3), name="y")
total = topi.sum(topi.elemwise_sum([x + y, x * y]) / 2.0)
with tvm.target.cuda():
    s = topi.cuda.schedule_reduce(total)
assert "__global__" in tvm.build(s, [x, y, total], "cuda").imported_modules[0].get_source()
tvm.topi.testing.compare_numpy_tvm(
    [np.random.rand(2, 3, 9, 9).astype("float32"), np.random.rand(4, 3, 3, 3).astype("float32")],
    np.zeros((2, 4, 5, 5), "float32"), "llvm", tvm.cpu(0),
    lambda d, w: topi.multiply(topi.nn.conv2d_nchw(d, w, 2, 1, 1), 0.0),
    topi.testing.get_injective_schedule("llvm"),
)  # fmt: skip
for name, compute, schedule in topi.testing.dispatch(
    "llvm", {"generic": [("conv", *topi.testing.get_conv2d_nchw_implement("llvm"))]}
):
    d, w = te.placeholder((1, 3, 7, 7), name="d"), te.placeholder((4, 3, 3, 3), name="w")
    out = compute(d, w, 2, 1, 1)
    run = tvm.build(schedule([out]), [d, w, out], "llvm")
    data, weight = np.random.rand(1, 3, 7, 7).astype("float32"), np.random.rand(4, 3, 3, 3).astype("float32")
    made = tvm.nd.array(np.zeros(topi.utils.get_const_tuple(out.shape), "float32"))
    run(tvm.nd.array(data), tvm.nd.array(weight), made)
    tvm.testing.assert_allclose(made.numpy(), topi.testing.conv2d_nchw_python(data, weight, 2, 1), rtol=1e-4)
assert get_pad_tuple("SAME", (3, 4)) == (1, 2, 1, 1) and get_pad_tuple((1, 2), (3, 3)) == (1, 2, 1, 2)

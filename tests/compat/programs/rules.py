"""Operations with rules of one's own for a target."""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.ir import register_intrin_lowering, register_op_attr


def swish_rule(call):
    assert isinstance(call, tvm.tir.Call) and call.op.name == "tir.swish" and call.dtype == "float32"
    (x,) = call.args
    return x * te.sigmoid(x)


register_op_attr("tir.swish", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
register_intrin_lowering("tir.swish", target="default", f=swish_rule, level=99)
n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute(A.shape, lambda i: tvm.tir.call_intrin(A.dtype, "tir.swish", A[i]), name="B")
s = te.create_schedule(B.op)
run = tvm.build(s, [A, B], "llvm")
x = np.linspace(-2, 2, 9).astype("float32")
y = tvm.nd.array(np.zeros(9, "float32"))
run(tvm.nd.array(x), y)
tvm.testing.assert_allclose(y.numpy(), x / (1 + np.exp(-x)), rtol=1e-5)
outer, inner = s[B].split(B.op.axis[0], factor=64)
s[B].bind(outer, te.thread_axis("blockIdx.x"))
s[B].bind(inner, te.thread_axis("threadIdx.x"))
register_intrin_lowering(
    "tir.swish", target="cuda", f=lambda c: tvm.tir.call_pure_extern("float32", "my_swish", c.args[0]), level=100
)
assert "my_swish(" in tvm.build(s, [A, B], "cuda").imported_modules[0].get_source()

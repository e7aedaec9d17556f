"""A function of C in the place of the inner loops."""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.contrib import clang, utils
from tvm.topi.utils import get_const_tuple

ROWS, COLUMNS, DEPTH, STEP = 12, 16, 24, 8
A, B = te.placeholder((ROWS, DEPTH), name="A"), te.placeholder((COLUMNS, DEPTH), name="B")
r = te.reduce_axis((0, DEPTH), "r")
C = te.compute((ROWS, COLUMNS), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")


def dots(m, l):
    a, b = te.placeholder((l,), name="a"), te.placeholder((m, l), name="b")
    k = te.reduce_axis((0, l), "k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    buffers = {
        a: tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1]),
        b: tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("pitch"), 1]),
        c: tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1]),
    }

    def made(ins, outs):
        def call(name, *args):
            ib = tvm.tir.ir_builder.create()
            ib.emit(tvm.tir.call_extern("int32", name, outs[0].access_ptr("w"), *args))
            return ib.get()

        add = call("add_dots", ins[0].access_ptr("r"), ins[1].access_ptr("r"), m, l, ins[1].strides[0])
        return add, call("clear_dots", m), add

    return te.decl_tensor_intrin(c.op, made, binds=buffers)


CODE = """
extern "C" int clear_dots(float *c, int m) { for (int i = 0; i < m; ++i) c[i] = 0; return 0; }
extern "C" int add_dots(float *c, float *a, float *b, int m, int l, int pitch) {
  for (int i = 0; i < m; ++i) for (int k = 0; k < l; ++k) c[i] += a[k] * b[i * pitch + k];
  return 0;
}
"""
s = te.create_schedule(C.op)
jo, ji = s[C].split(C.op.axis[1], factor=STEP)
ro, ri = s[C].split(C.op.reduce_axis[0], factor=STEP)
s[C].reorder(C.op.axis[0], jo, ro, ji, ri)
s[C].tensorize(ji, dots(STEP, STEP))
s[C].pragma(jo, "import_llvm", clang.create_llvm(CODE, output=utils.tempdir().relpath("dots.ll")))
run = tvm.build(s, [A, B, C], target="llvm", name="dots")
a, b = (np.random.rand(*get_const_tuple(t.shape)).astype(t.dtype) for t in (A, B))
c = tvm.nd.array(np.zeros(get_const_tuple(C.shape), dtype=C.dtype))
run(tvm.nd.array(a), tvm.nd.array(b), c)
tvm.testing.assert_allclose(c.numpy(), a @ b.T, rtol=1e-4)

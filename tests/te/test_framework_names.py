"""The program of the framework's walkthrough, under the framework's names."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from compassc import te

WALKTHROUGH = """
import sys
import numpy as np
import tvm

target = sys.argv[1]
n = 1024
A = tvm.te.placeholder((n,), name="A")
B = tvm.te.placeholder((n,), name="B")
C = tvm.te.compute(A.shape, lambda i: A[i] + B[i], name="C")
s = tvm.te.create_schedule(C.op)
bx, tx = s[C].split(C.op.axis[0], factor=64)
s[C].bind(bx, tvm.te.thread_axis("blockIdx.x"))
s[C].bind(tx, tvm.te.thread_axis("threadIdx.x"))
print(tvm.lower(s, [A, B, C], simple_mode=True))
fadd = tvm.build(s, [A, B, C], target)
dev = tvm.device(target, 0)
a = tvm.nd.array(np.random.uniform(size=n).astype(A.dtype), dev)
b = tvm.nd.array(np.random.uniform(size=n).astype(B.dtype), dev)
c = tvm.nd.array(np.zeros(n, dtype=C.dtype), dev)
fadd(a, b, c)
np.testing.assert_array_equal(c.numpy(), a.numpy() + b.numpy())
print("right")
"""


@pytest.mark.parametrize("target", ["X2_1204", "llvm"])
def test_the_walkthrough_runs(tmp_path, target):
    (tmp_path / "walk.py").write_text(WALKTHROUGH)
    done = subprocess.run(
        [sys.executable, "-m", "compassc.compat", "walk.py", target],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "def main(" in done.stdout and done.stdout.endswith("right\n")


def test_a_built_module_is_exported_and_loaded(tmp_path):
    from compass_runtime import load_module

    a = te.placeholder((10,), "int16", name="a")
    b = te.compute((10,), lambda i: a[9 - i], name="b")
    built = te.build(te.create_schedule(b), [a, b], "X3P_1304", name="reverse")
    built.export_library(str(tmp_path / "reverse.so"))
    given, found = np.arange(10, dtype="int16"), np.zeros(10, "int16")
    load_module(str(tmp_path / "reverse.so"))(given, found)
    assert (found == given[::-1]).all()


def test_a_function_that_is_lowered_has_its_buffers():
    from compass_core.errors import CompassError
    from compassc.compat import framework

    a = te.placeholder((1,), name="a")
    b = te.compute((1,), lambda i: a[i], name="b")
    with pytest.raises(CompassError, match="binds"):
        framework.lower(te.create_prim_func([a, b]), binds={})


def test_the_walkthrough_builds_for_cuda(tmp_path):
    program = (
        WALKTHROUGH.split("dev =")[0]
        .replace("fadd = ", "print(")
        .replace("[A, B, C], target)", "[A, B, C], target).get_source())")
    )
    (tmp_path / "walk.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "compassc.compat", "walk.py", "cuda"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "__global__ void default_function_kernel(" in done.stdout, done.stderr


TENSORIZE = """
import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.contrib import clang, utils

CODE = '''
extern "C" int rows_update(float *c, float *a, float *b, int m, int l, int stride) {
  for (int i = 0; i < m; ++i) for (int j = 0; j < l; ++j) c[i] += a[j] * b[i * stride + j];
  return 0;
}
extern "C" int rows_reset(float *c, int m) { for (int i = 0; i < m; ++i) c[i] = 0; return 0; }
'''


def rows(m, l):
    a, b, k = te.placeholder((l,), name="a"), te.placeholder((m, l), name="b"), te.reduce_axis((0, l), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    one = {t: tvm.tir.decl_buffer(t.shape, t.dtype, name=t.op.name, offset_factor=1, strides=[1]) for t in (a, c)}
    two = tvm.tir.decl_buffer(b.shape, b.dtype, name="b", offset_factor=1, strides=[te.var("s1"), 1])

    def function(ins, outs):
        def update():
            ib = tvm.tir.ir_builder.create()
            given = [outs[0].access_ptr("w"), ins[0].access_ptr("r"), ins[1].access_ptr("r")]
            ib.emit(tvm.tir.call_extern("int32", "rows_update", *given, m, l, ins[1].strides[0]))
            return ib.get()

        ib = tvm.tir.ir_builder.create()
        ib.emit(tvm.tir.call_extern("int32", "rows_reset", outs[0].access_ptr("w"), m))
        return update(), ib.get(), update()

    return te.decl_tensor_intrin(c.op, function, binds={**one, b: two})


A, B, k = te.placeholder((8, 64), name="A"), te.placeholder((32, 64), name="B"), te.reduce_axis((0, 64), name="k")
C = te.compute((8, 32), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
s = te.create_schedule(C.op)
yo, yi = s[C].split(C.op.axis[1], factor=16)
zo, zi = s[C].split(k, factor=16)
s[C].reorder(C.op.axis[0], yo, zo, yi, zi)
s[C].tensorize(yi, rows(16, 16))
s[C].pragma(C.op.axis[0], "import_llvm", clang.create_llvm(CODE, output=utils.tempdir().relpath("made.ll")))
function = tvm.build(s, [A, B, C], target="llvm", name="rows")
a, b = (np.random.uniform(size=(n, 64)).astype("float32") for n in (8, 32))
c = tvm.nd.array(np.zeros((8, 32), "float32"))
function(tvm.nd.array(a), tvm.nd.array(b), c)
tvm.testing.assert_allclose(c.numpy(), a @ b.T, rtol=1e-4)
print("right")
"""


def test_functions_of_c_are_intrinsics(tmp_path):
    (tmp_path / "tensorize.py").write_text(TENSORIZE)
    command = [sys.executable, "-m", "compassc.compat", "tensorize.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr

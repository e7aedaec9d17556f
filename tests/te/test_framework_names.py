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

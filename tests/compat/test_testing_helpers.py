"""What `tvm.testing` has for tests: run as a test file of a user's."""

from __future__ import annotations

import subprocess
import sys

FILE = """
import os

import numpy as np
import tvm
from tvm import te, topi

rows = tvm.testing.parameter(3, 8)
dtype = tvm.testing.parameter("float32", "int32", ids=["real", "whole"])

@tvm.testing.parametrize_targets("llvm", "X2_1204", "cuda")
def test_add(target, dev, rows, dtype):
    a = te.placeholder((rows, 5), dtype, name="a")
    c = topi.add(a, a)
    f = tvm.build(topi.schedule(c, target), [a, c], tvm.target.Target(target))
    x = tvm.nd.array(np.ones((rows, 5), dtype), dev)
    y = tvm.nd.array(np.zeros((rows, 5), dtype), dev)
    f(x, y)
    tvm.testing.assert_allclose(y.numpy(), 2)

n, kind = tvm.testing.parameters((2, "int8"), (5, "float16"), ids=["bytes", "halves"])

def test_rows(n, kind, rows):
    assert (n, kind) in ((2, "int8"), (5, "float16")) and rows in (3, 8)

@tvm.testing.requires_cuda
def test_needs_a_device():
    raise AssertionError

@tvm.testing.requires_llvm
def test_names():
    assert tvm.device("nvptx", 1) == tvm.cuda(1) and tvm.device("llvm -mcpu=x86-64-v3") == tvm.cpu()
    assert tvm.runtime.enabled("llvm") and not tvm.runtime.enabled("vulkan") and tvm.runtime.num_threads() > 0
    assert tvm.target.cuda(arch="sm_86").arch == "sm_86" and tvm.target.llvm("-num-cores=2").attrs["num-cores"] == 2
    assert tvm.testing.enabled_targets()[0][0] == "llvm"
    os.environ["TVM_TEST_TARGETS"] = "opencl; X2_1204;llvm -opt-level=1"
    assert [name for name, _ in tvm.testing.enabled_targets()] == ["X2_1204", "llvm -opt-level=1"]

def test_own_targets(target, dev):
    assert dev.exist and tvm.target.Target(target).kind.name in ("llvm", "cuda")

if __name__ == "__main__":
    tvm.testing.main()
"""


def test_the_helpers(tmp_path):
    (tmp_path / "test_theirs.py").write_text(FILE)
    words = [sys.executable, "-m", "compassc.compat", "test_theirs.py", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "14 passed, 5 skipped" in done.stdout, done.stdout + done.stderr

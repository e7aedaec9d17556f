"""OpenCL C: what it says is what CUDA C says in other words, and clang takes it."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

from compass_core.errors import CompassError
from compass_core.hostcc.clang import find_clang
from compassc import targets, te, topi
from compassc.targets import Target
from compassc.te.lowering import lower

_WORDS = [
    (r"get_group_id\((\d)\)", lambda m: f"blockIdx.{'xyz'[int(m[1])]}"),
    (r"get_local_id\((\d)\)", lambda m: f"threadIdx.{'xyz'[int(m[1])]}"),
    (r"barrier\(CLK_LOCAL_MEM_FENCE\)", "__syncthreads()"),
    (r"__local ", "__shared__ "),
    (r"__global (\w+) \*restrict", r"\1 *__restrict__"),
    (r"__kernel", 'extern "C" __global__'),
    (r"\n *int32 (\w+) = (\(int32\)\w+\.\w);\n( *)if \(\1 < ", r"\n\3if (int32 \1 = \2; \1 < "),
]


def product(shared, n=20, m=33, k=17):
    """A product of matrices by tiles; with rows of the first one in memory of a block."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    rows = s.cache_read(a, "shared", [c]) if shared else None
    bx, tx = s[c].split(c.op.axis[0], factor=4)
    by, ty = s[c].split(c.op.axis[1], factor=8)
    s[c].reorder(bx, by, tx, ty)
    for axis, tag in ((bx, "blockIdx.x"), (by, "blockIdx.y"), (tx, "threadIdx.x"), (ty, "threadIdx.y")):
        s[c].bind(axis, te.thread_axis(tag))
    if rows is not None:
        s[rows].compute_at(s[c], by)
        s[rows].bind(s[rows].split(rows.op.axis[1], factor=4)[1], te.thread_axis("threadIdx.x"))
    return s, [a, b, c]


def kernels(text):
    return text[min(i for i in (text.find("__kernel"), text.find('extern "C"')) if i >= 0) :]


@pytest.mark.parametrize("shared", [False, True])
def test_kernels_are_those_of_cuda_in_other_words(shared):
    opencl, cuda = (kernels(te.build(*product(shared), target).get_source()) for target in ("opencl", "cuda"))
    assert ("barrier(" in opencl) is shared
    for pattern, words in _WORDS:
        opencl = re.sub(pattern, words, opencl)
    assert opencl == cuda


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64", "bool"]
)
def test_clang_takes_the_text_of_all_types(dtype, tmp_path):
    a = te.placeholder((40,), dtype, name="a")
    reals = dtype.startswith("float")
    body = {
        "bool": lambda i: te.any(a[i], i > 3),
        "float": lambda i: te.max(te.exp(a[i]), te.min_value(dtype)) / te.const(3, dtype),
        "int": lambda i: te.max(a[i] // te.const(3, dtype), te.min_value(dtype)) % te.const(5, dtype),
    }["float" if reals else "bool" if dtype == "bool" else "int"]
    b = te.compute((40,), body, name="b")
    text = targets.build(lower(topi.schedule(b, "opencl"), [a, b], target="opencl"), target="opencl").get_source()
    source = tmp_path / "k.cl"
    source.write_text(text, encoding="utf-8")
    flags = "-x cl -cl-std=CL2.0 -target spir64 -Xclang -finclude-default-header -fsyntax-only".split()
    done = subprocess.run([find_clang().path, *flags, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "error" not in done.stderr, done.stderr


def test_what_is_not_run_says_so():
    s, args = product(False)
    module = te.build(s, args, "opencl")
    with pytest.raises(CompassError, match="nothing here launches on these"):
        module(*[np.zeros(tuple(int(d) for d in t.shape), "float32") for t in args])
    a = te.placeholder((4,), "bfloat16", name="a")
    b = te.compute((4,), lambda i: a[i], name="b")
    with pytest.raises(CompassError, match="bfloat16 has no form on OpenCL devices"):
        te.build(te.create_schedule(b), [a, b], "opencl")


@pytest.mark.parametrize("kind", "rocm vulkan metal webgpu nvptx sdaccel aocl hexagon ext_dev stackvm hybrid".split())
def test_other_devices_are_lowered_for_and_not_built(kind):
    s, args = product(False)
    module = te.lower(s, args, target=kind)
    assert module.target == Target(kind).machine().name and "for" in module.script()
    with pytest.raises(CompassError, match=f"no code generator for '{kind}'"):
        targets.build(module, target=kind)

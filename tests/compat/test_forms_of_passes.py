"""Passes on functions of blocks give the forms that programs compare them with."""

from __future__ import annotations

import pytest

from compass_core.errors import UsageError
from compassc.compat.tvmscript import from_source
from compassc.ir import assert_structural_equal

pytestmark = pytest.mark.usefixtures("names")

HEAD = """from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((16, 16)), C: T.Buffer((16, 16))):
"""
WHOLE = """    B = T.alloc_buffer((16, 16))
    for i in range(16):
        for j in range(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0
        for j in range(16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * 2.0
"""
IN_THE_LOOP = """    for i in range(16):
        with T.block():
            B = T.alloc_buffer((16, 16))
            for j in range(16):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + 1.0
            for j in range(16):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] * 2.0
"""
THREADS = """    for i in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            C[vi, 0] = A[vi, 0]
    for i in T.thread_binding({n}, thread="threadIdx.x"):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi + 4, 0] = A[vi, 0]
"""


def ran(name: str, text: str):
    import tvm

    module = getattr(tvm.tir.transform, name)()(tvm.IRModule({"main": from_source(HEAD + text)}))
    return module["main"]


def test_memory_is_allocated_around_all_that_uses_it():
    assert_structural_equal(ran("PlanAndUpdateBufferAllocationLocation", WHOLE), ran("LowerMatchBuffer", IN_THE_LOOP))
    again = ran("PlanAndUpdateBufferAllocationLocation", IN_THE_LOOP)
    assert_structural_equal(again, ran("LowerMatchBuffer", IN_THE_LOOP))


def test_threads_have_one_extent():
    text = THREADS.format(n=4)
    assert_structural_equal(ran("UnifyThreadBinding", text), ran("LowerMatchBuffer", text))
    with pytest.raises(UsageError, match="4 and 8 threads of threadIdx.x"):
        ran("UnifyThreadBinding", THREADS.format(n=8))


def test_digits_are_remainders_of_quotients():
    block = "    for i in range(256):\n        with T.block('C'):\n            vi = T.axis.spatial(256, i)\n            C[vi // 16, {}] = A[vi // 16, vi % 16]\n"
    assert_structural_equal(
        ran("RenormalizeSplitPattern", block.format("vi % 16 // 2")),
        ran("LowerMatchBuffer", block.format("vi // 2 % 8")),
    )

"""Functions as the framework's script prints them: the text is read as an equal function."""

from __future__ import annotations

import random

import pytest

from compassc import te, tir
from compassc.compat.script_printer import script_of
from compassc.compat.tvmscript import from_source
from compassc.ir import structural_equal
from tests.choosing import some
from tests.te.random_cases import case
from tests.tir import random_blocks

pytestmark = pytest.mark.usefixtures("names")
COUNT = 12


@pytest.mark.parametrize("part", range(2))
def test_scheduled_blocks_and_lowered_schedules_are_read_as_they_were(part):
    for seed in some(range(part * COUNT, (part + 1) * COUNT)):
        draw = random.Random(seed)
        made = case(draw, statements=False)
        lowered = te.lower(te.create_schedule(made.outputs), made.args, "k", target="llvm").entry_func
        s = tir.Schedule(random_blocks.function(made), seed=1)
        random_blocks.steps(draw, s, 6)
        for function in (lowered, s.mod.entry_func):
            text = script_of(function)
            assert structural_equal(from_source(text), function), text
            assert script_of(from_source(text)) == text


SUGAR = """# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(var_A: T.handle, B: T.Buffer((16, 8), "float16"), m: T.int32):
        n = T.int32()
        A = T.match_buffer(var_A, (n, 8), "int32")
        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i < n and (j != m or 4 <= j))
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = T.Cast("float16", A[vi, vj] % 3 * (2 - vj)) * T.float16(0.5)
        for i in T.serial(4, annotations={"pragma_x": 1}):
            for j in T.vectorized(8):
                with T.block("C"):
                    vi = T.axis.spatial(16, i * 4)
                    vj = T.axis.spatial(8, j)
                    T.reads(B[vi, vj])
                    T.writes(B[vi, vj])
                    T.block_attr({"note": "a \\"word\\""})
                    B[vi, vj] = T.max(B[vi, vj], T.float16("inf"))
"""


def test_the_sugar_is_kept():
    import tvm

    module = tvm.script.from_source(SUGAR)
    assert module.script() == SUGAR
    assert tvm.ir.structural_equal(tvm.script.from_source(module.script()), module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@T.prim_func\ndef f(a: T.handle):\n    import os\n", "Import"),
        ("@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer('b', (4,))\n", "no parameter"),
        ("@T.prim_func\ndef f(A: T.Buffer((4,))):\n    A[0] = B[0]\n", "B"),
        ("@T.prim_func\ndef f(\n", "never closed"),
        ("x = 1\n", "no function"),
    ],
)
def test_text_that_is_no_function_is_told_with_its_line(text, message):
    import tvm

    with pytest.raises(tvm.error.DiagnosticError, match=message):
        tvm.script.from_source(text)


VECTORS = """# from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i in T.parallel(4):
        B[i * 8:i * 8 + 8] = A[i * 8:i * 8 + 8] + T.Broadcast(T.float32(1.5), 8)
    B[0:4:2] = T.Broadcast(T.float32(2), 2)
"""


def test_slices_are_vectors():
    import numpy as np
    import tvm

    function = tvm.script.from_source(VECTORS)
    assert function.script() == VECTORS
    a, b = np.arange(32, dtype="float32"), np.zeros(32, "float32")
    tvm.build(function, target="llvm")(a, b)
    expected = a + 1.5
    expected[0:4:2] = 2
    np.testing.assert_array_equal(b, expected)


FORMS = {
    "a root block, lists of regions": (
        "a: T.handle, b: T.handle",
        """
    A = T.match_buffer(a, [8, 4])
    B = T.match_buffer(b, (8, 4), "float32")
    with T.block("root"):
        T.reads([])
        C = T.alloc_buffer([8, 4], scope="wmma.matrix_a")
        for i, j in T.grid(8, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads([A[vi, vj]])
                C[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi = T.axis.spatial(T.Range(0, 8), i)
                vj = T.axis.S((0, 4), j)
                B[vi, vj] = C[vi, vj]
""",
    ),
    "a part of a buffer": (
        "A: T.Buffer((8, 4), 'float32'), B: T.Buffer((8, 4), 'float32')",
        """
    for i in range(4):
        with T.block("rows"):
            vi = T.axis.spatial(4, i)
            A0 = T.match_buffer(A[vi * 2 : vi * 2 + 2, 0:4], (2, 4), offset_factor=1)
            B0 = T.match_buffer(B[vi * 2 : vi * 2 + 2, 0:4], (2, 4), strides=[4, 1])
            for r, j in T.grid(2, 4):
                with T.block("inner"):
                    vr, vj = T.axis.remap("SS", [r, j])
                    B0[vr, vj] = A0[vr, vj] + A0[vr, vj]
""",
    ),
    "memory and a loop as lowered functions have them": (
        "A: T.Buffer((8, 4), 'float32'), B: T.Buffer((32,), 'float32')",
        """
    C = T.allocate([32], "float32", "global")
    C_1 = T.Buffer((8, 4), data=C)
    for i, j in T.grid(8, 4):
        C_1[i, j] = A[i, j]
    D = T.decl_buffer((1,), "int32")
    D[0] = 0
    while D[0] < 32:
        with T.LetStmt(D[0]) as at:
            B[at] = C[at] * T.float32(2)
        D[0] += 1
""",
    ),
    "functions with the type of their results": (
        "A: T.Buffer((8, 4), 'float32'), B: T.Buffer((8, 4), 'float32')",
        """
    for i, j in T.grid(8, 4):
        with T.block():
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(vi >= 0 and not vj > 4, T.fabs(A[vi, vj], dtype="float32") * 2.0, 0.0, dtype="float32")
""",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_read_and_mean_what_they_say(name):
    import numpy as np
    import tvm

    parameters, body = FORMS[name]
    function = tvm.script.from_source(f"@T.prim_func\ndef main({parameters}):{body}")
    a = np.random.default_rng(0).random((8, 4)).astype("float32")
    b = np.zeros((32,) if "(32,)" in parameters else (8, 4), "float32")
    tvm.build(function, target="llvm")(a, b)
    np.testing.assert_array_equal(b.reshape(8, 4), a * 2)


def test_threads_are_loops_over_the_rest():
    import tvm

    text = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    tx = T.env_thread("threadIdx.x")
    bx = T.launch_thread("blockIdx.x", 4)
    T.launch_thread(tx, 16)
    B[bx * 16 + tx] = A[bx * 16 + tx]
"""
    function = tvm.script.from_source(text)
    assert 'for bx in T.thread_binding(4, thread="blockIdx.x")' in function.script()
    assert tvm.ir.structural_equal(tvm.script.from_source(function.script()), function)
    assert "blockIdx.x" in tvm.build(function, target="cuda").imported_modules[0].get_source()

"""Statements of the framework's script: what is read, printed and read again, and what building says of them."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import tir
from compassc.compat.schedule_testing import verify_trace_roundtrip
from compassc.compat.tvmscript import from_source
from compassc.ir import assert_structural_equal
from compassc.ir import stmts as S
from compassc.ir.printer import print_module
from compassc.ir.text import parse_module
from compassc.ir.visit import walk_stmts

pytestmark = pytest.mark.usefixtures("names")

STATEMENTS = {
    "attr": 'T.attr(A.data, "pragma_own", 1)\nA[0] = 1',
    "attr of a text": 'with T.attr("default", "async_scope", 1):\n    A[0] = 1\nA[1] = 2',
    "assert": 'assert n > 0, "too few"\nA[0] = n',
    "Assert": 'with T.Assert(n > 0, "too few"):\n    A[0] = n',
    "allocate": 'p = T.allocate([4], "int32", "global")\nB = T.Buffer((2, 2), "int32", data=p)\nB[1, 0] = 3\nA[0] = B[1, 0]',
    "decl_buffer": 'B = T.decl_buffer((4, 4), "int32", data=A.data)\nB[1, 1] = 3',
    "allocate_const": 'B = T.allocate_const([1, 2, 3], "int32", [3])\nA[0] = B[1]',
    "realize": 'B = T.Buffer((4,), "int32")\nT.realize(B[0:4], "")\nB[0] = 1\nA[0] = B[0]',
    "LetStmt": "x = T.int32()\nwith T.LetStmt(n * 2, var=x):\n    A[x] = x",
    "let": "x = T.int32()\nwith T.let(x, 5):\n    A[x] = x",
    "typed": "x: T.int32 = 5\nA[x] = x",
    "call": 'T.call_extern("int32", "twice", A.data, 16)\nT.call_extern("twice", A.access_ptr("r", offset=4), dtype="int32")',
    "packed": 'T.call_packed("twice", A.data, 1)',
    "thread": 'with T.launch_thread("threadIdx.x", 16) as x:\n    A[x] = x',
    "thread by attr": 'x = T.int32()\nT.attr(T.iter_var(x, (0, 16), "ThreadIndex", "threadIdx.x"), "thread_extent", 16)\nA[x] = x',
    "bits": "A[0] = T.bitwise_and(n, 3) + T.shift_left(n, 2) - T.truncmod(n, 3) + T.abs(n)",
    "address": "T.tvm_storage_sync(\"shared\")\nT.evaluate(T.address_of(A[3]))\nT.tvm_access_ptr(T.type_annotation('int32'), A.data, 0, 16, 1)",
}


def function(lines: str, parameters: str = 'A: T.Buffer((16,), "int32"), n: T.int32'):
    body = "".join(f"    {line}\n" for line in lines.split("\n"))
    return from_source(f"@T.prim_func\ndef f({parameters}):\n{body}")


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_is_printed_is_read_as_an_equal_function(name):
    read = function(STATEMENTS[name])
    assert "T.func(" not in read.script()  # it has a form in the script
    assert_structural_equal(from_source(read.script()), read, map_free_vars=True)
    own = parse_module(print_module(read.module()), "own") if name == "attr" else None
    assert own is None or any(isinstance(s, S.AttrStmt) for s in walk_stmts(own.entry_func.body))


def test_allocated_views_and_tables_are_computed_with():
    import tvm

    found = np.zeros(16, "int32")
    for name in ("allocate", "allocate_const", "decl_buffer", "realize"):
        tvm.build(function(STATEMENTS[name]), target="llvm")(found, 0)
    assert (found[0], found[5]) == (1, 3)


@pytest.mark.parametrize("name", ["attr", "assert"])
def test_what_programs_alone_know_is_refused_by_building(name):
    import tvm

    with pytest.raises(CompassError, match="has no form on the host"):
        tvm.build(function(STATEMENTS[name]), target="llvm")


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ('A = T.match_buffer(a, (4, 4), "int32", aline=64)', "not declared with 'aline'"),
        ('A = T.match_buffer(a, (4, 4), "int32", elem_offset=3)', "begins at its address"),
        ('A = T.match_buffer(a, (4, 4), "int32", strides=[5, 1])', "has the stride 5"),
        ('A = T.match_buffer(a, (4, 4), "int32", strides=["s"])', "2 dimensions and 1 strides"),
        ('B = T.alloc_buffer((4,), "int32", size=3)', "not declared with 'size'"),
    ],
)
def test_what_a_buffer_cannot_have_is_refused(declared, said):
    with pytest.raises(CompassError, match=said):
        function(declared, "a: T.handle")


def test_a_stride_that_no_dimension_tells_is_asked_for_by_building():
    import tvm

    read = function(
        'A = T.match_buffer(a, (4, 4), "int32", strides=["s", 1])\nC[0] = A[1, 0] + s',
        "a: T.handle, C: T.Buffer((1,), 'int32')",
    )
    with pytest.raises(CompassError, match="is no dimension of a tensor"):
        tvm.build(read, target="llvm")(np.zeros((4, 4), "int32"), np.zeros(1, "int32"))


DESCRIPTION = """
@T.prim_func
def description(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (4, 4), "int32", align=64, offset_factor=1)
    B = T.match_buffer(b, (4, 4), "int32", align=64, offset_factor=1)
    with T.block("root"):
        T.reads(A[0:4, 0:4])
        T.writes(B[0:4, 0:4])
        for i, j in T.grid(4, 4):
            with T.block("copy"):
                x, y = T.axis.remap("SS", [i, j])
                B[x, y] = A[x, y]
"""
IMPLEMENTATION = """
@T.prim_func
def implementation(a: T.handle, b: T.handle):
    s, t = T.int32(), T.int32()
    A = T.match_buffer(a, (4, 4), "int32", align=64, offset_factor=1, strides=[s, 1])
    B = T.match_buffer(b, (4, 4), "int32", align=64, offset_factor=1, strides=[t, 1])
    with T.block("root"):
        T.reads(A[0:4, 0:4])
        T.writes(B[0:4, 0:4])
        T.evaluate(T.call_extern("int32", "copy", A.data, A.elem_offset, s, B.data, B.elem_offset, t))
"""
WHOLE = """
@T.prim_func
def whole(A: T.Buffer((16, 32), "int32"), B: T.Buffer((16, 32), "int32")):
    for i, j in T.grid(16, 32):
        with T.block("copy"):
            x, y = T.axis.remap("SS", [i, j])
            B[x, y] = A[x, y]
"""
REPLACED = """
@T.prim_func
def whole(A: T.Buffer((16, 32), "int32"), B: T.Buffer((16, 32), "int32")):
    for i, j in T.grid(4, 8):
        with T.block("copy_o"):
            x, y = T.axis.remap("SS", [i, j])
            T.reads(A[x * 4:x * 4 + 4, y * 4:y * 4 + 4])
            T.writes(B[x * 4:x * 4 + 4, y * 4:y * 4 + 4])
            p, q = T.int32(), T.int32()
            C = T.match_buffer(A[x * 4:x * 4 + 4, y * 4:y * 4 + 4], (4, 4), "int32", strides=["s", 1], elem_offset=p)
            D = T.match_buffer(B[x * 4:x * 4 + 4, y * 4:y * 4 + 4], (4, 4), "int32", strides=["t", 1], elem_offset=q)
            T.call_extern("int32", "copy", C.data, p, s, D.data, D.elem_offset, D.strides[0])
"""


def test_an_intrinsic_learns_where_its_parts_begin_and_how_far_rows_are_apart():
    name = "copy of parts that begin somewhere"
    tir.TensorIntrin.register(name, from_source(DESCRIPTION), from_source(IMPLEMENTATION), override=True)
    whole = from_source(WHOLE)
    s = tir.Schedule(whole, debug_mask="all")
    i, j = s.get_loops("copy")
    (io, ii), (jo, ji) = s.split(i, [None, 4]), s.split(j, [None, 4])
    s.reorder(io, jo, ii, ji)
    s.tensorize(ii, name)
    assert_structural_equal(s.mod.entry_func, from_source(REPLACED))
    verify_trace_roundtrip(s, whole)


def test_products_of_open_extents_are_padded_and_computed():
    import tvm

    open_ = from_source("""
@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (16, 8), "float32")
    B = T.match_buffer(b, (n, 8), "float32")
    C = T.match_buffer(c, (16, n), "float32")
    for i, j, k in T.grid(16, n, 8):
        with T.block("C"):
            x, y, z = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[x, y] = T.float32(0)
            C[x, y] = C[x, y] + A[x, z] * B[y, z]
""")
    s = tir.Schedule(open_, debug_mask="all")
    s.pad_einsum("C", [16, 32, 8])
    sizes = {
        v.buffer.data.name: str(v.buffer.shape) for v in walk_stmts(s.mod.entry_func.body) if isinstance(v, S.Alloc)
    }
    assert sizes == {"B_pad": "((((n + 31) // 32) * 32), 8)", "C_pad": "(16, (((n + 31) // 32) * 32))"}
    a, b = (np.random.default_rng(1).random((n, 8), "float32") for n in (16, 13))
    found = np.zeros((16, 13), "float32")
    tvm.build(s.mod, target="llvm")(a, b, found)
    np.testing.assert_allclose(found, a @ b.T, rtol=1e-5)

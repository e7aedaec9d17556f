"""What programs say of blocks with addresses, of choices that tie, and of types outside of functions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.compat.tvmscript import from_source
from compassc.ir import stmts as S
from compassc.ir import structural_equal
from compassc.ir.printer import print_module
from compassc.ir.text import parse_module
from compassc.tir import Schedule, ScheduleError
from compassc.tir.canonical import EXPLICIT

pytestmark = pytest.mark.usefixtures("names")

FILLED = """
def f(A: T.Buffer((32, 32)), B: T.Buffer((32, 32))):
    for i, j in T.grid(4, 4):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            {told}
            T.evaluate(T.call_extern("int32", "fill", A.data, B.data, vi, vj))
"""
TOLD = "T.reads([A[vi * 8:vi * 8 + 8, vj * 8:vj * 8 + 8]]); T.writes(B[vi * 8:vi * 8 + 8, vj * 8:vj * 8 + 8])"


def program(text: str):
    return from_source(f"from tvm.script import tir as T\n\n@T.prim_func\n{text}")


def test_of_addresses_it_is_known_what_the_program_says():
    s = Schedule(program(FILLED.format(told=TOLD)), debug_mask="all")
    s.cache_read("fill", 0, "shared")
    s.cache_write("fill", 0, "local")
    fill = s.get(s.get_block("fill"))
    assert [r.buffer.data.name for r in (*fill.reads, *fill.writes)] == ["A_shared", "B_local"]
    (call,) = fill.body
    assert [a.name for a in call.value.args[:2]] == ["A_shared", "B_local"]
    assert set(EXPLICIT.values()) <= {*dict(fill.annotations)}


def test_nothing_is_known_of_addresses_otherwise():
    s = Schedule(program(FILLED.format(told="pass")))
    with pytest.raises(ScheduleError):
        s.cache_write("fill", 0, "local")


PLACES = """
def f(V: T.Buffer((8, 12)), K: T.Buffer((8,), "int32"), M: T.Buffer((8,))):
    for i, ko, ki in T.grid(8, 3, 4):
        with T.block("best"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(12, ko * 4 + ki)
            with T.init():
                K[vi] = -1
                M[vi] = T.min_value("float32")
            k: T.int32 = T.Select(M[vi] {op} V[vi, vk], K[vi], vk)
            m: T.float32 = T.Select(M[vi] {op} V[vi, vk], M[vi], V[vi, vk])
            K[vi] = k
            M[vi] = m
"""


def test_choices_that_tie_are_told_of():
    s = Schedule(program(PLACES.format(op=">=")))
    with pytest.warns(UserWarning, match="'ko' is outside of the loop: where values tie"):
        s.rfactor(s.get_loops("best")[2], 0)
    assert [b.name_hint for b in s.tree("f").blocks.values()] == ["best_rf", "best"]


def test_loops_and_stores_have_the_types_that_the_text_has():
    wide = program("""
def f(A: T.Buffer((T.int64(8),), "float32"), n: T.int64):
    for i in range(T.int64(8)):
        with T.block("A"):
            vi = T.axis.spatial(T.int64(8), i)
            A[vi] = vi + T.Cast("int64", 1)
""")
    (loop,) = (s for s in wide.body if isinstance(s, S.For))
    assert str(loop.loop_var.dtype) == str(loop.body[0].vars[0].dtype) == "int64"
    assert str(loop.body[0].body[0].value.dtype) == "float32"


def test_the_block_that_a_function_is_may_be_written():
    plain = FILLED.format(told=TOLD)
    lines = plain.splitlines()
    inside = [lines[1], '    with T.block("root"):', "        T.reads()", *("    " + x for x in lines[2:])]
    assert structural_equal(program(plain), program("\n".join(inside)))


def test_parts_of_buffers_know_where_they_are():
    part = """
def f(A: T.Buffer((32, 32), "float32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 8:vi * 8 + 8, 4:8])
            T.writes(A[vi * 8:vi * 8 + 8, 4:8])
            {rest}
"""
    rest = "P = T.match_buffer(A[vi * 8:vi * 8 + 8, 4:8], (8, 4)); "
    rest += 'T.evaluate(T.call_extern("int32", "f", A.data, P.elem_offset, P.strides[0]))'
    same = 'T.evaluate(T.call_extern("int32", "f", A.data, vi * 8 * 32 + 4, 32))'
    assert structural_equal(program(part.format(rest=rest)), program(part.format(rest=same)))


def test_types_make_expressions_outside_of_functions():
    import tvm
    from tvm.script import tir as T

    assert str(T.int64(3).dtype) == "int64" and T.float32(1).value == 1.0
    assert isinstance(T.int32(), tvm.tir.Var) and isinstance(T.int32(is_size_var=True), tvm.tir.SizeVar)
    assert tvm.tir.decl_buffer((4,)).scope() == "global"
    assert program(FILLED.format(told="pass")).body[0].buffer.scope() == "global"


SEPARATED = """
def f(a: T.handle, C: T.Buffer((8, 16), "float32")):
    A = T.match_buffer(a, (8, 16){of_a})
    B = T.alloc_buffer((8, 16){of_b})
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""
BOUNDARY = ", axis_separators=[1]"


def test_boundaries_of_physical_dimensions_are_part_of_buffers():
    plain, both = (program(SEPARATED.format(of_a=x, of_b=x)) for x in ("", BOUNDARY))
    s = Schedule(plain)
    for side, sides in (("write", ("", BOUNDARY)), ("read", (BOUNDARY, BOUNDARY))):
        s.set_axis_separator("B", (side, 0), [1])
        expected = program(SEPARATED.format(of_a=sides[0], of_b=sides[1]))
        assert structural_equal(s.mod.functions[0], expected) and not structural_equal(s.mod.functions[0], plain)
    assert s.get(s.get_block("C")).reads[0].buffer.axis_separators == (1,)
    assert structural_equal(from_source(both.script()), both)
    assert structural_equal(parse_module(print_module(both.module())), both.module())
    with pytest.raises(CompassError, match="axis_separators are ascending places between 2 dimensions"):
        parse_module(print_module(both.module()).replace("axis_separators=[1]", "axis_separators=[2]"))
    s.cache_read("C", 0, "local")
    assert s.get(s.get_block("C")).reads[0].buffer.axis_separators == (1,)
    again = Schedule(both)
    for name in "AB":
        again.set_axis_separator("B", name, [])
    assert structural_equal(again.mod.functions[0], plain)


def test_elements_stand_somewhere_in_each_physical_dimension():
    import tvm

    shape, at = (4, 8, 6), (3, 5, 2)
    for separators in ([], [1], [2], [1, 2]):
        ends = [0, *separators, 3]
        parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
        places = [int(np.ravel_multi_index(at[part], shape[part])) for part in parts]
        declared = tvm.tir.decl_buffer(shape, axis_separators=separators)
        assert list(declared.axis_separators) == separators
        assert [tvm.arith.Analyzer().simplify(e).value for e in declared.offset_of(at)] == places
    for wrong in ([0], [3], [2, 1], [1, 1]):
        with pytest.raises(ValueError, match="no ascending places between its 3 dimensions"):
            tvm.tir.decl_buffer(shape, axis_separators=wrong)

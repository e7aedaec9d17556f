"""Results of steps have the forms that programs compare them with, whatever the blocks are called."""

from __future__ import annotations

import pytest

from compassc.compat import schedule_testing as testing
from compassc.compat.tvmscript import from_source
from compassc.ir import assert_structural_equal, structural_equal
from compassc.tir import Instruction, InstructionKind, Schedule, ScheduleError, Trace
from compassc.tir.trace import KINDS, BlockRV

pytestmark = pytest.mark.usefixtures("names")


def program(text: str):
    return from_source(f"from tvm.script import tir as T\n\n@T.prim_func\n{text}")


CHAIN = """
def f(c: T.handle, a: T.handle):
    B = T.alloc_buffer((64, 32))
    A = T.match_buffer(a, (64, 32))
    C = T.match_buffer(c, (64, 32))
    for i, j in T.grid(64, 32):
        with T.block("{one}"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(64, 32):
        with T.block("{other}"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0
"""
FUSED = """
def f(A: T.Buffer((4, 8, 6)), C: T.Buffer((4, 8, 6))):
    for q in range(192):
        with T.block("C"):
            vi = T.axis.spatial(4, q // 48)
            vj = T.axis.spatial(8, q % 48 // 6)
            vk = T.axis.spatial(6, q % 6)
            C[vi, vj, vk] = A[vi, vj, vk]
"""
PLAIN = """
def f(A: T.Buffer((4, 8, 6)), C: T.Buffer((4, 8, 6))):
    for i, j, k in T.grid(4, 8, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            C[vi, vj, vk] = A[vi, vj, vk]
"""
SUM = """
def f(A: T.Buffer((16, 8, 24)), C: T.Buffer((16,))):
    for i, j, k in T.grid(16, 8, 24):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + A[vi, vj, vk]
"""
FACTORED = """
def f(A: T.Buffer((16, 8, 24)), C: T.Buffer((16,))):
    P = T.alloc_buffer((16, 24))
    for i, j, k in T.grid(16, 8, 24):
        with T.block("C_rf"):
            own, vi, vj = T.axis.remap("SSR", [k, i, j])
            with T.init():
                P[vi, own] = 0.0
            P[vi, own] = P[vi, own] + A[vi, vj, own]
    for i, k in T.grid(16, 24):
        with T.block("C"):
            own, vi = T.axis.remap("RS", [k, i])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + P[vi, own]
"""
PADDED = """
def f(A: T.Buffer((8, 20)), C: T.Buffer((12, 22))):
    for i, j in T.grid(12, 22):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vi >= 3 and vi < 11 and vj < 20, A[vi - 3, vj], 0.0)
"""
UNPADDED = """
def f(A: T.Buffer((8, 20)), C: T.Buffer((12, 22))):
    for i, j in T.grid(12, 22):
        with T.block("C_pad_const"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = 0.0
    for i, j in T.grid(8, 20):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi + 3, vj] = A[vi, vj]
"""


def after(text, step):
    s = Schedule(program(text), debug_mask="all")
    step(s)
    testing.verify_trace_roundtrip(s, program(text))
    return s.mod[s.mod.entry]


def test_names_of_blocks_do_not_count():
    one, other = program(CHAIN.format(one="B", other="C")), program(CHAIN.format(one="first", other="C"))
    assert structural_equal(one, other)


def test_buffers_stand_in_the_order_of_the_parameters():
    first = "def f(c: T.handle, a: T.handle):\n    B = T.alloc_buffer((64, 32))\n    A = T.match_buffer(a, (64, 32))\n    C = T.match_buffer(c, (64, 32))\n"
    head = "def f(c: T.handle, a: T.handle):\n    A = T.match_buffer(a, (64, 32))\n    C = T.match_buffer(c, (64, 32))\n    B = T.alloc_buffer((64, 32))\n"
    text = CHAIN.format(one="B", other="C")
    assert first in text
    assert_structural_equal(program(text), program(text.replace(first, head)))


@pytest.mark.parametrize(
    ("text", "step", "expected"),
    [
        (PLAIN, lambda s: s.fuse(*s.get_loops("C")), FUSED),
        (SUM, lambda s: s.rfactor(s.get_loops("C")[2], 1), FACTORED),
        (PADDED, lambda s: s.decompose_padding("C", s.get_loops("C")[0]), UNPADDED),
    ],
    ids=["fuse", "rfactor", "decompose_padding"],
)
def test_a_step_gives_the_form(text, step, expected):
    assert_structural_equal(after(text, step), program(expected))


def test_a_padded_axis_that_is_split_is_copied_under_a_condition():
    def step(s):
        i, _ = s.get_loops("C")
        s.split(i, [3, 4])
        s.decompose_padding("C", s.get_loops("C")[0])

    assert "T.where(" in after(PADDED, step).script()


def test_annotations_are_looked_up_by_name():
    s = Schedule(program(PLAIN))
    s.annotate(s.get_block("C"), "note", 3)
    found = s.get(s.get_block("C")).annotations
    assert "note" in found and found["note"] == 3 and "other" not in found


def test_functions_of_c_and_operations_of_machines_are_scheduled():
    text = PLAIN.replace(
        "C[vi, vj, vk] = A", 'T.evaluate(T.call_extern("int32", "log_it", vi))\n            C[vi, vj, vk] = A'
    )
    assert "log_it" in str(after(text, lambda s: s.split(s.get_loops("C")[0], [2, 2])))
    text = PLAIN.replace(
        "C[vi, vj, vk] = A", 'T.evaluate(T.ptx_wait_group(0, dtype=""))\n            C[vi, vj, vk] = A'
    )
    assert "ptx_wait_group" in str(after(text, lambda s: s.split(s.get_loops("C")[0], [2, 2])))


def test_traces_are_made_of_instructions():
    block = BlockRV()
    found = Instruction(InstructionKind.get("GetBlock"), [], ["C", "f"], [block])
    trace = Trace([found], {})
    lines = ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
    assert str(trace) == "\n".join([*lines, '  b0 = sch.get_block(name="C", func_name="f")'])
    assert str(found) == '_ = sch.get_block(name="C", func_name="f")' and found.kind.is_pure
    assert str(trace.simplified()) == "\n".join([*lines, "  pass"])
    trace.apply_to_schedule(Schedule(program(PLAIN)))
    assert {InstructionKind.get(k).name for k in KINDS} == set(KINDS)
    with pytest.raises(ScheduleError, match="no instruction 'GetBlok'"):
        InstructionKind.get("GetBlok")


def test_symbols_that_are_gone_are_errors_of_indices():
    s = Schedule(program(PLAIN))
    block = s.get_block("C")
    s.remove_rv(block)
    with pytest.raises(IndexError, match="none of this schedule"):
        s.get(block)


def test_sums_that_go_on_from_turn_to_turn_do_not_go_round():
    text = """
def f(A: T.Buffer((12, 16), "int32"), C: T.Buffer((8, 16), "int32")):
    B = T.alloc_buffer((10, 16), "int32")
    for q in range(4):
        for i, j in T.grid(4, 16):
            with T.block("B"):
                vi = T.axis.spatial(10, q * 2 + i)
                vj, vk = T.axis.remap("SR", [j, q])
                with T.init():
                    B[vi, vj] = 5
                B[vi, vj] = B[vi, vj] + A[vi + vk, vj]
        for i, j in T.grid(2, 16):
            with T.block("C"):
                vi = T.axis.spatial(8, q * 2 + i)
                vj = T.axis.spatial(16, j)
                C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]
"""
    with pytest.raises(ScheduleError, match="along 'vk' its sums go on from turn to turn of 'q'"):
        Schedule(program(text)).rolling_buffer("B", 0)

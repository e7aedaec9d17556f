"""Steps that move, copy and join blocks have the forms that programs compare them with, and compute what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.compat import schedule_testing as testing
from compassc.compat.tvmscript import from_source
from compassc.ir import assert_structural_equal
from compassc.tir import Schedule, ScheduleError

pytestmark = pytest.mark.usefixtures("names")


def program(text: str):
    return from_source(f"from tvm.script import tir as T\n\n@T.prim_func\n{text}")


def nest(head: str, loops: str, extents: str, block: str, statements: str, deep: int = 4) -> str:
    """The text of loops around a block whose first statements are given, one on each line."""
    pad = " " * deep
    lines = [f"{head}for {loops} in T.grid({extents}):", f'    with T.block("{block}"):']
    return "".join(f"{pad}{x}\n" for x in [*lines, *(f"        {s}" for s in statements.split("\n"))])


OF_TWO = "def f(A: T.Buffer({a}), C: T.Buffer({c})):\n"
SS = 'vi, vj = T.axis.remap("SS", [i, j])\n'
ROWS = OF_TWO.format(a=(8, 16), c=(128,))
FLAT = (
    ROWS
    + "    B = T.alloc_buffer((8, 16))\n"
    + nest("", "i, j", "8, 16", "B", SS + "B[vi, vj] = A[vi, vj] * 2.0")
    + nest("", "i", "128", "C", "vi = T.axis.spatial(128, i)\nC[vi] = B[vi // 16, vi % 16] + 1.0")
)
FLAT_AT_THE_PRODUCER = ROWS + nest("", "i, j", "8, 16", "B", SS + "C[vi * 16 + vj] = A[vi, vj] * 2.0 + 1.0")
FLAT_AT_THE_CONSUMER = ROWS + nest(
    "", "i", "128", "C", "vi = T.axis.spatial(128, i)\nC[vi] = A[vi // 16, vi % 16] * 2.0 + 1.0"
)
STORED_FLAT = (
    ROWS
    + "    B = T.alloc_buffer((128,))\n"
    + nest("", "i, j", "8, 16", "B", SS + "B[vi * 16 + vj] = A[vi, vj] * 2.0")
    + nest("", "i", "128", "C", "vi = T.axis.spatial(128, i)\nC[vi] = B[vi] + 1.0")
)
SMALLER = OF_TWO.format(a=(12, 12), c=(11, 10))
MORE = (
    SMALLER
    + "    B = T.alloc_buffer((12, 12))\n"
    + nest("", "i, j", "12, 12", "B", SS + "B[vi, vj] = A[vi, vj] * 2.0")
    + nest("", "i, j", "11, 10", "C", SS + "C[vi, vj] = B[vi, vj] + 1.0")
)
MORE_AT_THE_PRODUCER = SMALLER + nest(
    "", "i, j", "12, 12", "B", SS + "T.where(i < 11 and j < 10)\nC[vi, vj] = A[vi, vj] * 2.0 + 1.0"
)
SQUARE = OF_TWO.format(a=(32, 32), c=(32, 32))
TILE = "vx = T.axis.spatial(32, {i} * 8 + x)\nvy = T.axis.spatial(32, {j} * 8 + y)\n"
IN_A_BLOCK = (
    SQUARE
    + nest("", "i, j", "4, 4", "scope", SS.rstrip())
    + nest("", "x, y", "8, 8", "C", TILE.format(i="vi", j="vj") + "C[vx, vy] = A[vx, vy] + 1.0", 12)
)
COPIED_IN_A_BLOCK = (
    SQUARE
    + nest("", "i, j", "4, 4", "scope", SS + "P = T.alloc_buffer((8, 8))")
    + nest("", "p, q", "8, 8", "P", 'v0, v1 = T.axis.remap("SS", [p, q])\nP[v0, v1] = A[vi * 8 + v0, vj * 8 + v1]', 12)
    + nest("", "x, y", "8, 8", "C", TILE.format(i="vi", j="vj") + "C[vx, vy] = P[vx - vi * 8, vy - vj * 8] + 1.0", 12)
)
SIDE_BY_SIDE = (
    SQUARE
    + "    B = T.alloc_buffer((32, 32))\n    for i, j in T.grid(4, 4):\n"
    + nest("", "x, y", "8, 8", "B", TILE.format(i="i", j="j") + "B[vx, vy] = A[vx, vy] * 2.0", 8)
    + nest("", "x, y", "8, 8", "C", TILE.format(i="i", j="j") + "C[vx, vy] = B[vx, vy] + 1.0", 8)
)
OWN = 'vx, vy = T.axis.remap("SS", [x, y])\n'
POINT = "[vi * 8 + vx, vj * 8 + vy]"
IN_ONE_BLOCK = (
    SQUARE
    + "    B = T.alloc_buffer((32, 32))\n"
    + nest("", "i, j", "4, 4", "outer_B_C_", SS.rstrip())
    + nest("", "x, y", "8, 8", "B", f"{OWN}B{POINT} = A{POINT} * 2.0", 12)
    + nest("", "x, y", "8, 8", "C", f"{OWN}C{POINT} = B{POINT} + 1.0", 12)
)
BY_A_QUOTIENT = (
    ROWS
    + "    B = T.alloc_buffer((8, 16))\n"
    + nest("", "i, j", "8, 16", "B", SS + "B[vi, vj] = A[vi, vj] * 2.0")
    + nest("", "o, i", "32, 4", "C", "vi = T.axis.spatial(128, o * 4 + i)\nC[vi] = B[vi // 16, vi % 16] + 1.0")
)
AT_A_QUOTIENT = (
    ROWS
    + "    B = T.alloc_buffer((8, 16))\n    for o in range(32):\n"
    + nest(
        "",
        "p",
        "4",
        "B",
        "vi = T.axis.spatial(8, o // 4)\nvj = T.axis.spatial(16, o % 4 * 4 + p)\nB[vi, vj] = A[vi, vj] * 2.0",
        8,
    )
    + nest("", "i", "4", "C", "vi = T.axis.spatial(128, o * 4 + i)\nC[vi] = B[vi // 16, vi % 16] + 1.0", 8)
)
SUMS = OF_TWO.format(a=(6, 30), c=(6,))
CUT = SUMS + nest(
    "",
    "i, k0, k1",
    "6, 4, 8",
    "C",
    "T.where(k0 * 8 + k1 < 30)\nvi = T.axis.spatial(6, i)\nvk = T.axis.reduce(30, k0 * 8 + k1)\n"
    "with T.init():\n    C[vi] = 0.0\nC[vi] = C[vi] + A[vi, vk]",
)
CUT_IN_PARTS = (
    SUMS
    + "    P = T.alloc_buffer((6, 4))\n"
    + nest(
        "",
        "i, k0, k1",
        "6, 4, 8",
        "C_rf",
        'T.where(k0 * 8 + k1 < 30)\nown, vi, vk = T.axis.remap("SSR", [k0, i, k1])\n'
        "with T.init():\n    P[vi, own] = 0.0\nP[vi, own] = P[vi, own] + A[vi, own * 8 + vk]",
    )
    + nest(
        "",
        "i, k0",
        "6, 4",
        "C",
        'own, vi = T.axis.remap("RS", [k0, i])\nwith T.init():\n    C[vi] = 0.0\nC[vi] = C[vi] + P[vi, own]',
    )
)
ONE = "def f(A: T.Buffer((32,)), C: T.Buffer(())):\n"
WHOLE_SUM = ONE + nest(
    "",
    "i, k",
    "4, 8",
    "C",
    "vk = T.axis.reduce(32, i * 8 + k)\nwith T.init():\n    C[()] = 0.0\nC[()] = C[()] + A[vk]",
)
SUM_IN_PARTS = (
    ONE
    + "    P = T.alloc_buffer((4,))\n"
    + nest(
        "",
        "i, k",
        "4, 8",
        "C_rf",
        'own, vk = T.axis.remap("SR", [i, k])\nwith T.init():\n    P[own] = 0.0\nP[own] = P[own] + A[own * 8 + vk]',
    )
    + nest(
        "",
        "i",
        "4",
        "C",
        "own = T.axis.reduce(4, i)\nwith T.init():\n    C[()] = 0.0\nC[()] = C[()] + P[own]",
    )
)
POOL = OF_TWO.format(a=(16, 6), c=(8, 6))
WINDOW = "with T.init():\n    C[vi, vj] = 0.0\nC[vi, vj] = T.max(C[vi, vj], B[vi * 2 + vr, vj])"
POOLED = (
    POOL
    + "    B = T.alloc_buffer((16, 6))\n"
    + nest(
        "",
        "o, i, j",
        "4, 4, 6",
        "B",
        "vi = T.axis.spatial(16, o * 4 + i)\nvj = T.axis.spatial(6, j)\nB[vi, vj] = A[vi, vj] * 2.0",
    )
    + nest("", "i, j, r", "8, 6, 2", "C", 'vi, vj, vr = T.axis.remap("SSR", [i, j, r])\n' + WINDOW)
)
POOLED_AT_ROWS = (
    POOL
    + "    B = T.alloc_buffer((16, 6))\n    for o in range(4):\n"
    + nest(
        "",
        "i, j",
        "4, 6",
        "B",
        "vi = T.axis.spatial(16, o * 4 + i)\nvj = T.axis.spatial(6, j)\nB[vi, vj] = A[vi, vj] * 2.0",
        8,
    )
    + nest(
        "",
        "i, j, r",
        "2, 6, 2",
        "C",
        'vi = T.axis.spatial(8, o * 2 + i)\nvj, vr = T.axis.remap("SR", [j, r])\n' + WINDOW,
        8,
    )
)
FLAT_ROWS = (
    ROWS
    + "    B = T.alloc_buffer((128,))\n"
    + nest("", "i, j", "8, 16", "B", SS + "B[vi * 16 + vj] = A[vi, vj] * 2.0")
    + nest("", "o, i", "4, 32", "C", "v = T.axis.spatial(128, o * 32 + i)\nC[v] = B[v] + 1.0")
)
FLAT_AT_ROWS = (
    ROWS
    + "    B = T.alloc_buffer((128,))\n    for o in range(4):\n"
    + nest(
        "",
        "i, j",
        "2, 16",
        "B",
        "vi = T.axis.spatial(8, o * 2 + i)\nvj = T.axis.spatial(16, j)\nB[vi * 16 + vj] = A[vi, vj] * 2.0",
        8,
    )
    + nest("", "i", "32", "C", "v = T.axis.spatial(128, o * 32 + i)\nC[v] = B[v] + 1.0", 8)
)
BORDER = OF_TWO.format(a=(6, 5), c=(9, 8))
BORDERED = BORDER + nest(
    "",
    "i, j",
    "9, 8",
    "C",
    SS + "C[vi, vj] = T.if_then_else(vi >= 1 and vi < 7 and vj >= 2 and vj < 7, A[vi - 1, vj - 2], 0.5)",
)
BORDERED_BY_ROWS = (
    BORDER
    + "    for i in range(9):\n"
    + nest("", "j", "8", "P", 'vi, vj = T.axis.remap("SS", [i, j])\nC[vi, vj] = 0.5', 8)
    + nest(
        "",
        "j",
        "5",
        "C",
        "vi = T.axis.spatial(6, i - 1)\nvj = T.axis.spatial(5, j)\nT.where(1 <= i and i < 7)\nC[vi + 1, vj + 2] = A[vi, vj]",
        8,
    )
)
CASES = {
    "reverse_compute_inline by digits": (FLAT, lambda s: s.reverse_compute_inline("C"), FLAT_AT_THE_PRODUCER),
    "compute_inline read by digits": (FLAT, lambda s: s.compute_inline("B"), FLAT_AT_THE_CONSUMER),
    "compute_inline written by digits": (STORED_FLAT, lambda s: s.compute_inline("B"), FLAT_AT_THE_CONSUMER),
    "reverse_compute_inline into more": (MORE, lambda s: s.reverse_compute_inline("C"), MORE_AT_THE_PRODUCER),
    "cache_read in a block": (IN_A_BLOCK, lambda s: s.cache_read("C", 0, "global"), COPIED_IN_A_BLOCK),
    "blockize of several": (SIDE_BY_SIDE, lambda s: s.blockize([s.get_block(n) for n in "BC"]), IN_ONE_BLOCK),
    "compute_at by a quotient": (BY_A_QUOTIENT, lambda s: s.compute_at("B", s.get_loops("C")[0]), AT_A_QUOTIENT),
    "rfactor under a condition": (CUT, lambda s: s.rfactor(s.get_loops("C")[1], 1), CUT_IN_PARTS),
    "reverse_compute_at by windows": (POOLED, lambda s: s.reverse_compute_at("C", s.get_loops("B")[0]), POOLED_AT_ROWS),
    "compute_at by digits": (FLAT_ROWS, lambda s: s.compute_at("B", s.get_loops("C")[0]), FLAT_AT_ROWS),
    "decompose_padding in a loop": (
        BORDERED,
        lambda s: s.decompose_padding("C", s.get_loops("C")[1]),
        BORDERED_BY_ROWS,
    ),
    "rfactor of one number": (WHOLE_SUM, lambda s: s.rfactor(s.get_loops("C")[0], 0), SUM_IN_PARTS),
}


@pytest.mark.parametrize("case", CASES)
def test_a_step_gives_the_form_and_the_numbers(case):
    import tvm

    text, step, expected = CASES[case]
    before = program(text)
    s = Schedule(before, debug_mask="all")
    step(s)
    testing.verify_trace_roundtrip(s, before)
    assert_structural_equal(s.mod[s.mod.entry], program(expected))
    shapes = [d.buffer.shape for d in before.body if type(d).__name__ == "DeclBuffer"]
    a, c = (np.random.default_rng(0).integers(-8, 8, [e.value for e in shape]).astype("float32") for shape in shapes)
    first, second = c.copy(), c.copy()
    for mod, out in ((before, first), (s.mod, second)):
        tvm.build(mod, target="llvm")(a, out)
    assert np.array_equal(first, second) and not np.array_equal(first, c)


def test_a_fused_axis_of_open_extent_is_the_quotient_of_a_remainder():
    head = "def f(a: T.handle, c: T.handle, n: T.int32):\n    A = T.match_buffer(a, (4, 6, n))\n    C = T.match_buffer(c, (4, 6, n))\n"
    s = Schedule(
        program(
            head
            + nest(
                "",
                "i, j, k",
                "4, 6, n",
                "C",
                'vi, vj, vk = T.axis.remap("SSS", [i, j, k])\nC[vi, vj, vk] = A[vi, vj, vk]',
            )
        )
    )
    s.fuse(*s.get_loops("C"))
    axes = "vi = T.axis.spatial(4, q // (n * 6))\nvj = T.axis.spatial(6, q % (n * 6) // n)\nvk = T.axis.spatial(n, q % n)\n"
    assert_structural_equal(
        s.mod["main"], program(head + nest("", "q", "n * 24", "C", axes + "C[vi, vj, vk] = A[vi, vj, vk]"))
    )


def test_loops_of_one_turn_are_left_out_on_demand():
    head = OF_TWO.format(a=(1, 16), c=(1, 16))
    for keep in (True, False):
        s = Schedule(program(head + nest("", "i, j", "1, 16", "C", SS + "C[vi, vj] = A[vi, vj]")))
        s.split(s.get_loops("C")[1], [4, 4], preserve_unit_iters=keep)
        axes = f"vi = T.axis.spatial(1, {'i' if keep else 0})\nvj = T.axis.spatial(16, j0 * 4 + j1)\n"
        want = head + nest("", "i, j0, j1", "1, 4, 4", "C", axes + "C[vi, vj] = A[vi, vj]")
        assert_structural_equal(s.mod["main"], program(want))


def test_blocks_whose_axes_get_a_part_of_their_values_are_not_reordered():
    s = Schedule(
        program(
            OF_TWO.format(a=(8, 16), c=(8, 16))
            + nest(
                "",
                "i, j",
                "8, 4",
                "C",
                "vi = T.axis.spatial(8, i)\nvj = T.axis.spatial(16, j * 4)\nC[vi, vj] = A[vi, vj]",
            )
        )
    )
    with pytest.raises(ScheduleError):
        s.reorder(*reversed(s.get_loops("C")))


def test_text_of_steps_has_the_parameters_in_order():
    s = Schedule(program(FLAT))
    block = s.get_block("C")
    s.cache_read(block, 0, "global")
    s.split(s.get_loops(block)[0], [None, 4])
    s.transform_layout(block, ("write", 0), lambda i: (i // 8 % 2, i // 16, i % 8))
    assert s.trace.as_python()[1::2] == [
        'b1 = sch.cache_read(block=b0, read_buffer_index=0, storage_scope="global")',
        "l3, l4 = sch.split(loop=l2, factors=[None, 4], preserve_unit_iters=True)",
    ]
    assert "index_map=lambda i: (i // 8 % 2, i // 16, i % 8,), pad_value=None" in s.trace.as_python()[4]
    for wrong in ("nothing", ("write", 1)):
        with pytest.raises(AssertionError):
            s.transform_layout(block, wrong, lambda i: (i,))


def test_turns_of_blocks_that_are_neither_complete_nor_reductions_are_not_shared_out():
    begun = OF_TWO.format(a=(8, 16), c=(8,)) + nest(
        "", "i, k", "8, 16", "C", 'vi, vk = T.axis.remap("SR", [i, k])\nC[vi] = C[vi] + A[vi, vk]'
    )
    in_a_condition = (
        OF_TWO.format(a=(8,), c=(8,))
        + "    for i in range(8):\n        if i < 5:\n"
        + nest("", "j", "1", "C", "vi = T.axis.spatial(8, i + j)\nC[vi] = A[vi]", 12)
    )
    for text, legal in ((begun, False), (in_a_condition, True)):
        s = Schedule(program(text))
        try:
            s.parallel(s.get_loops("C")[0])
        except ScheduleError:
            assert not legal
        else:
            assert legal


def test_sampling_begins_where_seed_says():
    s = Schedule(program(FLAT), seed=5)
    made = []
    for _ in range(2):
        s.seed(11)
        made.append([s.get(s.sample_categorical(list(range(99)), [1.0] * 99)) for _ in range(4)])
    assert made[0] == made[1]
    for wrong, error in ((0, ValueError), ("1", TypeError)):
        with pytest.raises(error):
            s.seed(wrong)


def test_states_have_a_statement_in_the_place_of_another_one_as_it_is():
    import tvm

    function = program(FLAT)
    state = tvm.tir.ScheduleState(function, debug_mask="all")
    old = state.get_sref(function.body.block).stmt.body[1].body[0]
    made = tvm.tir.Block(old.iter_vars, [], old.writes, "other", old.body)
    sref = state.get_sref(old)
    state.replace(sref, made, {old: made})
    (loop,) = (
        x
        for x in state.mod["main"].body.block.body
        if x.loop_var.name == "i" and len(x.body) == 1 and hasattr(x.body[0], "name_hint")
    )
    assert loop.body[0] is sref.stmt and not sref.stmt.reads and sref.stmt.iter_values == old.iter_values

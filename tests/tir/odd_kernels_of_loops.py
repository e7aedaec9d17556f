"""Kernels whose blocks use the variables of loops themselves, not by axes of theirs.

In blocks whose names end with `_R` the first statement is the init of a reduction.
"""

from compassc.dsl import script as S


@S.prim_func
def without_axes(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (32,))
    for i, j in S.grid(4, 8):
        with S.block("P"):
            p2[i, j] = a2[3 - i, j] * i
    for i, j in S.grid(4, 8):
        with S.block("C"):
            c2[i * 8 + j] = p2[i, j] + j


@S.prim_func
def around_blocks(a: S.ptr("i32", "global"), p: S.ptr("i32", "global")):
    a2, p2 = S.match_buffer(a, (4, 16)), S.match_buffer(p, (4, 16))
    for i in range(4):
        for j in range(8):
            with S.block("O"):
                for k in range(2):
                    with S.block("P"):
                        vi, vj = S.axis.spatial(4, i), S.axis.spatial(16, j * 2 + k)
                        p2[vi, vj] = a2[vi, vj] * 3


@S.prim_func
def one_after_the_other(a: S.ptr("i32", "global"), p: S.ptr("i32", "global")):
    a2, p2 = S.match_buffer(a, (17,)), S.match_buffer(p, (17,))
    for i in range(16):
        with S.block("P"):
            p2[i + 1] = p2[i] + a2[i]


@S.prim_func
def from_the_turn_before(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (5, 8)), S.match_buffer(c, (4, 8))
    for i, j in S.grid(4, 8):
        with S.block("P"):
            p2[i + 1, j] = a2[i, j] * 2
        with S.block("C"):
            c2[i, j] = p2[i, j] + i


@S.prim_func
def in_the_same_turn(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (4, 8))
    for i in range(4):
        for j in range(8):
            with S.block("P"):
                vi = S.axis.spatial(4, i)
                p2[vi, j] = a2[i, j] * 2 + j
        for j in range(8):
            with S.block("C"):
                vj = S.axis.spatial(8, j)
                c2[i, vj] = p2[i, 7 - vj] - i


@S.prim_func
def the_last_one(a: S.ptr("i32", "global"), p: S.ptr("i32", "global")):
    a2, p2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (8,))
    for i, j in S.grid(4, 8):
        with S.block("P"):
            vj = S.axis.spatial(8, j)
            p2[vj] = a2[i, vj] - i


@S.prim_func
def half_a_row(a: S.ptr("i32", "global"), p: S.ptr("i32", "global")):
    a2, p2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (64,))
    for i, j in S.grid(4, 8):
        with S.block("P"):
            vi = S.axis.spatial(4, i)
            p2[vi * 4 + j] = a2[vi, j]


@S.prim_func
def joined_by_loops(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (8,)), S.match_buffer(c, (4, 8))
    for i, j in S.grid(4, 8):
        with S.block("P"):
            p2[j] += a2[i, j] * i
    for i, j in S.grid(4, 8):
        with S.block("C"):
            c2[i, j] *= j


@S.prim_func
def begun_by_loops(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4,)), S.match_buffer(c, (4, 8))
    for i, k in S.grid(4, 8):
        with S.block("P_R"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = i
            p2[vi] += a2[vi, k] * k
    for i, k in S.grid(4, 8):
        with S.block("C_R"):
            vk = S.axis.reduce(8, k)
            c2[i, 0] = i * 3
            c2[i, 0] += a2[i, vk]


@S.prim_func
def reduced_outside(a: S.ptr("i32", "global"), p: S.ptr("i32", "global")):
    a2, p2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (8,))
    for k in range(4):
        for j in range(8):
            with S.block("P_R"):
                vj, vk = S.axis.spatial(8, j), S.axis.reduce(4, k)
                p2[vj] = j
                p2[vj] += a2[vk, vj] * k + j


@S.prim_func
def begun_where_it_goes_on(a: S.ptr("i32", "global"), p: S.ptr("i32", "global")):
    a2, p2 = S.match_buffer(a, (8,)), S.match_buffer(p, (8,))
    for k in range(8):
        with S.block("I"):
            p2[0] = 1
        with S.block("P"):
            vk = S.axis.spatial(8, k)
            p2[vk] = p2[vk] * 2 + a2[vk]


@S.prim_func
def moved_by_a_value(a: S.ptr("i32", "global"), p: S.ptr("i32", "global")):
    a2, p2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (16,))
    for i, j in S.grid(4, 8):
        with S.block("P"):
            vi, vj = S.axis.remap("SS", [i, j])
            x = vj // 2
            p2[vi + x] = a2[vi, vj]


@S.prim_func
def a_cut_row(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 7)), S.match_buffer(p, (8,)), S.match_buffer(c, (4, 8))
    for i in range(4):
        for j in range(7):
            with S.block("P"):
                p2[j] = a2[i, j]
        for j in range(8):
            with S.block("C"):
                vi, vj = S.axis.remap("SS", [i, j])
                c2[vi, vj] = p2[vj]

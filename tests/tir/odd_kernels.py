"""Kernels of blocks as somebody may write them: parts, conditions, loops in any order, values that go on, several writers.

In blocks whose names end with `_R` the first statement is the init of a reduction.
"""

from compassc.dsl import script as S


@S.prim_func
def guarded(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            if a2[vi] > 0:
                p2[vi] = a2[vi] * 3
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def guarded_by_an_axis(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            if vi < 11:
                p2[vi] = a2[vi] * 3
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def zero_trip(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            for k in range(vi - 5):
                p2[vi] = a2[vi] * 3 + k
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def two_views(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, p3, c2 = (
        S.match_buffer(a, (16,)),
        S.match_buffer(p, (16,)),
        S.match_buffer(p, (4, 4)),
        S.match_buffer(c, (16,)),
    )
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            p2[vi] = a2[vi] * 3
    for i, j in S.grid(4, 4):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi * 4 + vj] = p3[vj, vi] + 1


@S.prim_func
def backwards(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, 15 - i)
            p2[vi] = a2[vi] * 3
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[15 - vi] = p2[vi] + 1


@S.prim_func
def prefix(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (17,)), S.match_buffer(c, (16,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            p2[vi + 1] = p2[vi] + a2[vi]
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def update(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, 16):
        with S.block("P"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = p2[vi] + a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def difference(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, 16):
        with S.block("P_R"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = 5
            p2[vi] = p2[vi] - a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def doubling(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, 16):
        with S.block("P_R"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = 5
            p2[vi] = p2[vi] * 2 + a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def some_added(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, 16):
        with S.block("P_R"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = 5
            if a2[vi, vk] > 2:
                p2[vi] = p2[vi] + a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def reduced_in_parts(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, ko, ki in S.grid(8, 4, 5):
        if ko * 5 + ki < 16:
            with S.block("P_R"):
                vi = S.axis.spatial(8, i)
                vk = S.axis.reduce(16, ko * 5 + ki)
                p2[vi] = 5
                p2[vi] = p2[vi] + a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def reduced_backwards(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, 16):
        with S.block("P_R"):
            vi = S.axis.spatial(8, 7 - i)
            vk = S.axis.reduce(16, 15 - k)
            p2[vi] = 5
            p2[vi] = p2[vi] + a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def whole_nests(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    with S.block("P"):
        for i in range(16):
            p2[i] = a2[i] * 3
    with S.block("C"):
        for i in range(16):
            c2[i] = p2[15 - i] + 1


@S.prim_func
def two_writers(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(8):
        with S.block("P"):
            vi = S.axis.spatial(8, i)
            p2[vi] = a2[vi] * 3
    for i in range(8):
        with S.block("Q"):
            vi = S.axis.spatial(8, i)
            p2[vi + 8] = a2[vi] * 5
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = p2[15 - vi] + 1


@S.prim_func
def from_three_on(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(3, 16):
        with S.block("P"):
            vi = S.axis.spatial((3, 16), i)
            p2[vi] = a2[vi] * 3
    for i in range(1, 14):
        with S.block("C"):
            vi = S.axis.spatial((1, 14), i)
            c2[vi] = p2[vi + 2] + 1


@S.prim_func
def squares(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(4):
        with S.block("P"):
            vi = S.axis.spatial(16, i * i)
            p2[vi] = a2[vi] * 3
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, (i * 5) % 16)
            c2[vi] = p2[vi] + 1


@S.prim_func
def pairs(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (8,))
    for i in range(8):
        with S.block("P"):
            vi = S.axis.spatial(8, i)
            p2[vi * 2] = a2[vi] * 3
            p2[vi * 2 + 1] = a2[vi] * 4
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi * 2] + p2[vi * 2 + 1]


@S.prim_func
def every_second(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (8,))
    for i in range(8):
        with S.block("P"):
            vi = S.axis.spatial(8, i)
            p2[vi * 2] = a2[vi] * 3
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi * 2 + 1] + p2[vi * 2]


@S.prim_func
def read_before_written(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    t = S.alloc_buffer((16,), "i32")
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            t[vi] = a2[vi] + p2[vi]
    for i in range(16):
        with S.block("Q"):
            vi = S.axis.spatial(16, i)
            p2[vi] = a2[15 - vi] * 2
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = t[vi] + p2[vi]


@S.prim_func
def values(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    t = S.alloc_buffer((16,), "i32")
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            x = a2[vi] * 3
            t[vi] = x + 1
            p2[(vi + x) & 15] = x
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            y = t[15 - vi]
            c2[vi] = y * p2[vi]


@S.prim_func
def guarded_memory(a: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, c2 = S.match_buffer(a, (16,)), S.match_buffer(c, (16,))
    t = S.alloc_buffer((16,), "i32")
    for i in range(16):
        with S.block("Z"):
            vi = S.axis.spatial(16, i)
            t[vi] = 7
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            if a2[vi] > 0:
                t[vi] = a2[vi] * 3
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = t[vi] + 1


@S.prim_func
def blocks_in_a_block(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (4, 8))
    for i in range(4):
        with S.block("O"):
            vi = S.axis.spatial(4, i)
            t = S.alloc_buffer((8,), "i32")
            for j in range(8):
                with S.block("T"):
                    vj = S.axis.spatial(8, j)
                    t[vj] = a2[vi, vj] * 2
            for j in range(8):
                with S.block("U"):
                    vj = S.axis.spatial(8, j)
                    p2[vi, vj] = t[7 - vj] + p2[vi, vj]
    for i, j in S.grid(4, 8):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi, vj] = p2[3 - vi, vj] + 1


@S.prim_func
def two_at_once(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            p2[vi] = a2[vi] * 3
            c2[15 - vi] = a2[vi] + 2
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = c2[vi] + p2[vi]


@S.prim_func
def largest(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    t = S.alloc_buffer((8, 16), "i32")
    for i, k in S.grid(8, 16):
        with S.block("T"):
            vi, vk = S.axis.remap("SS", [i, k])
            t[vi, vk] = a2[vi, vk] * 2
    for i, k in S.grid(8, 16):
        with S.block("P_R"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = c2[vi]
            p2[vi] = S.max(p2[vi], t[vi, vk])
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def triangle(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 8)), S.match_buffer(p, (8, 8)), S.match_buffer(c, (8,))
    for i in range(8):
        for j in range(i + 1):
            with S.block("P"):
                vi, vj = S.axis.spatial(8, i), S.axis.spatial(8, j)
                p2[vi, vj] = a2[vi, vj] * 3
    for i in range(8):
        for j in range(i + 1):
            with S.block("C_R"):
                vi, vj = S.axis.spatial(8, i), S.axis.reduce(8, j)
                c2[vi] = 0
                c2[vi] = c2[vi] + p2[vi, vj]


@S.prim_func
def from_three_on_of_all(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(3, 16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            p2[vi] = a2[vi] * 3
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def triangle_of_a_square(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 8)), S.match_buffer(p, (8, 8)), S.match_buffer(c, (8, 8))
    for i in range(8):
        for j in range(i + 1):
            with S.block("P"):
                vi, vj = S.axis.spatial(8, i), S.axis.spatial(8, j)
                p2[vi, vj] = a2[vi, vj] * 3
    for i in range(8):
        for j in range(8):
            with S.block("C"):
                vi, vj = S.axis.spatial(8, i), S.axis.spatial(8, j)
                c2[vi, vj] = p2[vi, vj] + 1


@S.prim_func
def rows_under_a_condition(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (4, 8))
    for i in range(4):
        if a2[i, 0] > 0:
            for j in range(8):
                with S.block("P"):
                    vi, vj = S.axis.remap("SS", [i, j])
                    p2[vi, vj] = a2[vi, vj] * 3
    for i, j in S.grid(4, 8):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi, vj] = p2[vi, vj] + 1


@S.prim_func
def some_rows(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (4, 8))
    for i in range(4):
        if i < 3:
            for j in range(8):
                with S.block("P"):
                    vi, vj = S.axis.remap("SS", [i, j])
                    p2[vi, vj] = a2[vi, vj] * 3
        for j in range(8):
            with S.block("C"):
                vi, vj = S.axis.remap("SS", [i, j])
                c2[vi, vj] = p2[vi, vj] + 1


@S.prim_func
def joined_elsewhere(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, 16):
        with S.block("P_R"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = 0
            p2[vi] = p2[7 - vi] + a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def joined_twice(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, 16):
        with S.block("P_R"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = 0
            p2[vi] = p2[vi] + (a2[vi, vk] - p2[vi] * 2)
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def neighbour(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8, 16)), S.match_buffer(c, (8, 16))
    for i, k in S.grid(8, 16):
        with S.block("P"):
            vi, vk = S.axis.remap("SS", [i, k])
            p2[vi, vk] = a2[vi, vk] + p2[S.max(vi - 1, 0), vk]
    for i, k in S.grid(8, 16):
        with S.block("C"):
            vi, vk = S.axis.remap("SS", [i, k])
            c2[vi, vk] = p2[vi, 15 - vk] + 1


@S.prim_func
def three_of_four(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (8, 16)), S.match_buffer(p, (8, 16)), S.match_buffer(c, (8, 16))
    for i, k in S.grid(8, 4):
        with S.block("P"):
            vi, vk = S.axis.remap("SS", [i, k])
            for x in range(3):
                p2[vi, vk * 4 + x] = a2[vi, vk] + x
    for i, k in S.grid(8, 16):
        with S.block("C"):
            vi, vk = S.axis.remap("SS", [i, k])
            c2[vi, vk] = p2[vi, vk] + 1


@S.prim_func
def changed_in_place(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (16,)), S.match_buffer(p, (16,)), S.match_buffer(c, (16,))
    for i in range(16):
        with S.block("P"):
            vi = S.axis.spatial(16, i)
            p2[vi] = p2[vi] * 3 + a2[vi]
    for i in range(16):
        with S.block("C"):
            vi = S.axis.spatial(16, i)
            c2[vi] = p2[vi] + c2[15 - vi]
    for i in range(16):
        with S.block("D"):
            vi = S.axis.spatial(16, i)
            p2[vi] = c2[vi] - 1


@S.prim_func
def three(a: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(c, (4, 8))
    t, u = S.alloc_buffer((4, 8), "i32"), S.alloc_buffer((4, 8), "i32")
    for i, j in S.grid(4, 8):
        with S.block("T"):
            vi, vj = S.axis.remap("SS", [i, j])
            t[vi, vj] = a2[3 - vi, vj] * 2
    for i, j in S.grid(4, 8):
        with S.block("U"):
            vi, vj = S.axis.remap("SS", [i, j])
            u[vi, 7 - vj] = t[vi, vj] + t[3 - vi, vj]
    for i, j in S.grid(4, 8):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi, vj] = u[vi, vj] + t[vi, vj]


@S.prim_func
def value_of_a_row(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (4, 8))
    for i in range(4):
        x = a2[i, 0]
        for j in range(8):
            with S.block("P"):
                vi, vj = S.axis.remap("SS", [i, j])
                p2[vi, vj] = a2[vi, vj] * x
    for i, j in S.grid(4, 8):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi, vj] = p2[vi, vj] + 1


@S.prim_func
def number_of_a_row(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (4, 8))
    for i in range(4):
        x = i + 1
        for j in range(8):
            with S.block("P"):
                vi, vj = S.axis.remap("SS", [i, j])
                p2[vi, vj] = a2[vi, vj] * x
        for j in range(8):
            with S.block("C"):
                vi, vj = S.axis.remap("SS", [i, j])
                c2[vi, vj] = p2[vi, vj] + 1


@S.prim_func
def loops_as_numbers(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (4, 8))
    for i in range(4):
        for j in range(8):
            with S.block("P"):
                vi, vj = S.axis.remap("SS", [i, j])
                p2[vi, vj] = a2[vi, vj] * i
    for i, j in S.grid(4, 8):
        with S.block("C"):
            vi = S.axis.spatial(4, i)
            c2[vi, j] = p2[vi, j] + 1


@S.prim_func
def left_by_a_turn(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global")):
    a2, p2, c2 = S.match_buffer(a, (4, 8)), S.match_buffer(p, (4, 8)), S.match_buffer(c, (4, 8))
    t = S.alloc_buffer((8,), "i32")
    for i in range(4):
        for j in range(8):
            with S.block("P"):
                vi, vj = S.axis.remap("SS", [i, j])
                t[vj] = a2[vi, vj] * 2
            with S.block("Q"):
                vi, vj = S.axis.remap("SS", [i, j])
                if vi > 0:
                    p2[vi, vj] = t[7 - vj]
        for j in range(8):
            with S.block("C"):
                vi, vj = S.axis.remap("SS", [i, j])
                c2[vi, vj] = t[vj]

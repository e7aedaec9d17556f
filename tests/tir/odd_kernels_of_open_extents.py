"""Kernels of blocks as somebody may write them, of as many points as a parameter says; see `odd_kernels`."""

from compassc.dsl import script as S


@S.prim_func
def rows_of_open_number(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (n, 8)), S.match_buffer(p, (n, 8)), S.match_buffer(c, (n, 8))
    for i, j in S.grid(n, 8):
        with S.block("P"):
            vi, vj = S.axis.remap("SS", [i, j])
            p2[vi, vj] = a2[vi, vj] * 3
    for i, j in S.grid(n, 8):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi, vj] = p2[vi, vj] + p2[vi, 7 - vj]


@S.prim_func
def open_triangle(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (n, n)), S.match_buffer(p, (n, n)), S.match_buffer(c, (n, n))
    for i in range(n):
        for j in range(i + 1):
            with S.block("P"):
                vi, vj = S.axis.spatial(n, i), S.axis.spatial(n, j)
                p2[vi, vj] = a2[vi, vj] * 3
    for i, j in S.grid(n, n):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi, vj] = p2[vi, vj] + 1


@S.prim_func
def all_but_the_last(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (n,)), S.match_buffer(p, (n,)), S.match_buffer(c, (n,))
    for i in range(n - 1):
        with S.block("P"):
            vi = S.axis.spatial(n, i)
            p2[vi] = a2[vi] * 3
    for i in range(n):
        with S.block("C"):
            vi = S.axis.spatial(n, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def even_ones(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (n * 2,)), S.match_buffer(p, (n * 2,)), S.match_buffer(c, (n * 2,))
    for i in range(n):
        with S.block("P"):
            vi = S.axis.spatial(n, i)
            p2[vi * 2] = a2[vi] * 3
    for i in range(n * 2):
        with S.block("C"):
            vi = S.axis.spatial(n * 2, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def row_in_hand(a: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, c2 = S.match_buffer(a, (n, 8)), S.match_buffer(c, (n, 8))
    t = S.alloc_buffer((8,), "i32")
    for i in range(n):
        for j in range(8):
            with S.block("P"):
                vi, vj = S.axis.remap("SS", [i, j])
                t[vj] = a2[vi, vj] * 3
        for j in range(8):
            with S.block("C"):
                vi, vj = S.axis.remap("SS", [i, j])
                c2[vi, vj] = t[7 - vj] + 1


@S.prim_func
def sum_of_open_length(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (8, n)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, n):
        with S.block("P_R"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = 0
            p2[vi] = p2[vi] + a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def update_of_open_length(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (8, n)), S.match_buffer(p, (8,)), S.match_buffer(c, (8,))
    for i, k in S.grid(8, n):
        with S.block("P"):
            vi, vk = S.axis.remap("SR", [i, k])
            p2[vi] = p2[vi] + a2[vi, vk]
    for i in range(8):
        with S.block("C"):
            vi = S.axis.spatial(8, i)
            c2[vi] = p2[vi] + 1


@S.prim_func
def all_but_two_rows(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (n, 8)), S.match_buffer(p, (n, 8)), S.match_buffer(c, (n, 8))
    for i in range(n):
        if i < n - 2:
            for j in range(8):
                with S.block("P"):
                    vi, vj = S.axis.remap("SS", [i, j])
                    p2[vi, vj] = a2[vi, vj] * 3
    for i, j in S.grid(n, 8):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi, vj] = p2[vi, vj] + 1


@S.prim_func
def open_backwards(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (n,)), S.match_buffer(p, (n,)), S.match_buffer(c, (n,))
    for i in range(n):
        with S.block("P"):
            vi = S.axis.spatial(n, n - 1 - i)
            p2[vi] = a2[vi] * 3
    for i in range(n):
        with S.block("C"):
            vi = S.axis.spatial(n, i)
            c2[vi] = p2[n - 1 - vi] + p2[vi]


@S.prim_func
def open_prefix(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (n,)), S.match_buffer(p, (n + 1,)), S.match_buffer(c, (n,))
    for i in range(n):
        with S.block("P"):
            vi = S.axis.spatial(n, i)
            p2[vi + 1] = p2[vi] + a2[vi]
    for i in range(n):
        with S.block("C"):
            vi = S.axis.spatial(n, i)
            c2[vi] = p2[vi] * 2


@S.prim_func
def five_columns(a: S.ptr("i32", "global"), p: S.ptr("i32", "global"), c: S.ptr("i32", "global"), n: S.i32):
    a2, p2, c2 = S.match_buffer(a, (n, 8)), S.match_buffer(p, (n, 8)), S.match_buffer(c, (n, 8))
    for i, j in S.grid(n, 5):
        with S.block("P"):
            vi, vj = S.axis.spatial(n, i), S.axis.spatial(8, j)
            p2[vi, vj] = a2[vi, vj] * 3
    for i, j in S.grid(n, 8):
        with S.block("C"):
            vi, vj = S.axis.remap("SS", [i, j])
            c2[vi, vj] = p2[vi, vj] + 1

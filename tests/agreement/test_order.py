"""Operands are computed once and in Python's order, and those that Python leaves out are left out: compiled and in PySim."""

import numpy as np
import pytest

from compassc.dsl import BuildManager
from compassc.dsl import script as S

P = S.ptr("i32", "global")


@S.prim_func
def next_of(p: P) -> S.i32:
    p[0] = p[0] + 1
    return p[0]


@S.prim_func
def next_vector(p: P) -> S.i32x8:
    p[0] = p[0] + 1
    return S.vbcast(p[0])


def more(v):
    return v + 1


def stores(p, v):
    p[1] = v
    return p[0] + v


def twice(v):
    return v + v


@S.macro
def pasted(a, p):
    p[5] = a + next_of(p)
    p[6] = p[0] + a
    p[7] = p[0] + more(a) + a
    if 0 < a < 90:
        p[8] = 5


@S.prim_func
def reads_between_calls(y: P, n: S.i32):
    if S.get_local_id() == 0:
        y[10] = y[0] + more(next_of(y))
        y[11] = more(next_of(y)) + y[0]
        y[12] = y[0] * 10 + next_of(y)
        y[13] = (next_of(y) + next_of(y) * 10) + more(next_of(y) * 100)
        y[14] = next_of(y) * 1000 - more(next_of(y) - next_of(y) * 10)
        y[15] = y[0] + [next_of(y) for i in range(2)][1] + y[0]
        y[15] = y[15] * 100 + next_of(y) + sum(v * 2 for v in (1, y[0]))
        y[16] = y[0] + stores(y, next_of(y)) + y[1] + y[0]
        y[17] = twice(next_of(y)) + sum(map(twice, [next_of(y), y[0]]))
        y[18] = y[0] + more(S.atomic_add(y, 3)) + y[0]
        y[0], i, j = next_of(y), y[0], next_of(y)
        (i, y[2]), j = (next_of(y), i + j), next_of(y)
        y[19] = i
        y[20] = j


@S.prim_func
def comparisons(y: P, n: S.i32):
    if S.get_local_id() == 0:
        for k in range(6):
            y[0] = 0
            y[8 + k] = S.i32(k < next_of(y) < next_of(y) < next_of(y) + 1 < y[0] * 2)
            y[16 + k] = y[0]
            y[0] = 3
            y[24 + k] = S.i32(k < y[0] < next_of(y) < 9)
            y[32 + k] = S.i32(k < 7 < y[0] + k < next_of(y) < 19)
            if 0 < S.atomic_add(y, k) < n:
                y[40 + k] = 1
            y[48 + k] = y[0]


@S.prim_func
def places(y: P, n: S.i32):
    b = S.match_buffer(y, (8, 8))
    if S.get_local_id() == 0:
        y[next_of(y) + 3] += next_of(y)
        b[next_of(y), next_of(y)] += next_of(y)
        b[1, next_of(y)] = b[next_of(y) % 8, 1] = next_of(y)
        b[4, 0:8] += next_of(y)
        y[y[0] + 30] += next_of(y)
        y[y[0] + 30] = next_of(y)
        (y + next_of(y))[1] -= 7
        a = S.vload(y)
        a[next_of(y) & 7] += next_of(y)
        a[next_of(y) & 7] = a[0] + next_of(y) * 10
        S.vstore(a + S.vload(y) + next_vector(y), y + 40)
        y[S.atomic_add(y, 1) % 8 + 48] += 1
        low, high = S.vsplit(S.vconcat((next_vector(y), next_vector(y) * 10)))
        S.vstore(low - high, y + 56)


@S.prim_func
def left_out(y: P, n: S.i32):
    if S.get_local_id() == 0:
        if n > 7 and more(next_of(y)) > 0:
            y[20] = 1
        if n < 7 or more(next_of(y)) > 0:
            y[21] = 1
        y[22] = more(next_of(y)) if n > 7 else 5
        y[23] = 5 if n > 7 else more(next_of(y))
        if n > 7 and more(next_of(y)) > 0 and more(next_of(y)) > 3 or n > 2 and more(next_of(y)) > 0:
            y[24] = y[0]
        y[25] = S.i32(n > 7 and (more(next_of(y)) > 3 or n < 9))
        y[26] = S.i32(n > 3 and (more(next_of(y)) > 300 or n < 9) and not (n < 3 or more(next_of(y)) < 3))
        y[27] = y[0] + (more(next_of(y)) if n > 3 else y[0]) + y[0]
        v = S.vload(y + 32) if n > 7 else S.vbcast(more(next_of(y)))
        w = S.vbcast(more(next_of(y))) if v > 3 else S.vbcast(more(next_of(y)) * 10)
        S.vstore(v + w, y + 40)


@S.prim_func
def conditions_of_loops(y: P, n: S.i32):
    if S.get_local_id() == 0:
        i = 0
        while more(next_of(y)) < 9:
            i += 1
            if i == 3:
                continue
            if i == 6:
                break
        y[10] = i
        while i < 20 and more(next_of(y)) < 30:
            i += 1
        y[11] = i
        while 0 < next_of(y) < next_of(y) < 60:
            i += 1
        y[12] = i


@S.prim_func
def macros(y: P, n: S.i32):
    if S.get_local_id() == 0:
        pasted(y[0], y)
        pasted(next_of(y), y + 8)
        pasted(y[0] + next_of(y), y + 16)


KERNELS = (reads_between_calls, comparisons, places, left_out, conditions_of_loops, macros)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_compiled_as_in_python(kernel) -> None:
    built = BuildManager("X2_1204").build(kernel)
    for n in (2, 5, 8):
        found = []
        for run in (built, kernel):
            found.append(np.arange(64, dtype="int32") % 3)
            run(found[-1], n)
        assert np.array_equal(*found), np.flatnonzero(found[0] != found[1])


def test_chained_comparisons_by_hand() -> None:
    y = np.zeros(64, "int32")
    comparisons(y, 5)
    assert y[16:22].tolist() == [3, 1, 1, 1, 1, 1] and y[8:14].tolist() == [1, 0, 0, 0, 0, 0]

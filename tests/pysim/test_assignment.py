"""Assignments in PySim behave as in compiled code."""

import sys

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import script as S

TABLE = np.arange(10, 18, dtype="int16").reshape(2, 4)
LANES = 8


@S.prim_func
def literals(out: S.ptr("int32", "global")):
    n = 5
    a, b = 7, -7
    out[0] = n / 2
    out[1] = b / 2
    out[2] = b // 3
    big = 2147483647
    out[3] = big + n
    count = S.meta_var(8)
    out[4:LANES] = 0
    buf = S.alloc((count,), "int32")
    buf[0] = a
    out[4] = buf[0]
    a, b = b, a
    out[5] = a
    x = 0.1
    out[6] = x * 10 == S.fp32(0.1) * 10
    a += 1
    out[7] = a


def test_literals_become_typed_variables():
    out = np.zeros(8, "int32")
    literals(out)
    assert out.tolist() == [2, -3, -2, -2147483644, 7, -7, 1, -6]


@S.prim_func
def copies(a: S.ptr("int32", "global"), out: S.ptr("int32", "global")):
    x = S.vload(a)
    y = x
    z = S.cast(x, "i32")
    y[0] = 100
    z[1] = 200
    x[2] = 300
    S.vstore(x, out)
    S.vstore(y, out + 8)
    S.vstore(z, out + 16)


def test_vectors_are_copied():
    out = np.zeros(24, "int32")
    copies(np.zeros(8, "int32"), out)
    assert [(i, int(v)) for i, v in enumerate(out) if v] == [(2, 300), (8, 100), (17, 200)]


@S.prim_func
def tables(out: S.ptr("int16", "global")):
    lut = TABLE
    for i, j in S.grid(2, 4):
        out[i * 4 + j] = lut[i, j]


@S.prim_func
def written(out: S.ptr("int16", "global")):
    lut = TABLE
    lut[0, 0] = out[0]


def test_arrays_become_constant_tables():
    out = np.zeros(8, "int16")
    tables(out)
    assert out.tolist() == list(range(10, 18))
    with pytest.raises(CompassError, match="constant memory cannot be written"):
        written(out)
    assert TABLE[0, 0] == 10


def test_closures_and_sub_functions():
    step = 3

    @S.prim_func
    def scaled(x: S.i32, by: S.i32 = 4) -> S.i32:
        half = by / 2
        return x * half + step

    @S.prim_func
    def k(out: S.ptr("int32", "global")):
        out[0] = scaled(10)
        out[1] = scaled(10, 7)

    out = np.zeros(2, "int32")
    k(out)
    assert out.tolist() == [23, 33]


@S.prim_func
def loops(out: S.ptr("int32", "global"), n: S.u8):
    v = S.i8x32(1)
    for i in range(5, 6):
        out[0] = (v + i)[0]
        out[1] = (i - 8) // 3
        out[2] = i / 2
    for i in range(n):
        out[3] = i - 200
    for i, j in S.grid(2, n):
        out[4] = -(i + 1) / 2
        out[5] = j - 200
    for i in range(3, 0, -1):
        out[6] = i
    total = 0
    for i in range(n):
        if i == 4:
            break
        total += S.i32(i)
    out[7] = total


def test_loop_variables_are_typed():
    out = np.zeros(8, "int32")
    loops(out, 7)
    assert out.tolist() == [6, -1, 2, 62, -1, 62, 1, 6]


@S.prim_func
def with_else(out: S.ptr("int32", "global"), n: S.i32):
    for i in range(n):
        out[0] = i
    else:  # noqa: PLW0120
        out[1] = 1
    j = n
    while j > 0:
        j = j - 1
    else:  # noqa: PLW0120
        out[2] = 1


def test_the_else_of_a_loop_is_ignored_as_in_compiled_code():
    out = np.zeros(4, "int32")
    with_else(out, 3)
    assert out.tolist() == [2, 0, 0, 0]


def test_break_leaves_the_innermost_loop_of_a_grid():
    out = np.zeros(1, "int32")

    @S.prim_func
    def k(out: S.ptr("int32", "global")):
        for _ in S.tec_range(1):
            leaving_once(out)

    @S.prim_func
    def leaving_once(out: S.ptr("int32", "global")):
        for i, j in S.grid(3, 4):
            if j > i:
                break
            out[0] += 1

    k(out)
    assert out[0] == 6


@S.prim_func
def variable_shape(out: S.ptr("int32", "global")):
    n = 4
    S.alloc((n,), "int32")


@S.prim_func
def too_big(out: S.ptr("int32", "global")):
    n = 3000000000
    out[0] = n


@pytest.mark.parametrize(("kernel", "message"), [(variable_shape, "integer constant"), (too_big, "does not fit int32")])
def test_errors_point_at_the_source(kernel, message):
    with pytest.raises(CompassError, match=message) as e:
        kernel(np.zeros(4, "int32"))
    with open(__file__) as f:
        line = f.read().splitlines()[e.value.span.line - 1]
    assert "S.alloc" in line or "3000000000" in line
    if sys.version_info >= (3, 11):  # which keeps columns
        assert line[e.value.span.col - 1 :].startswith(("S.alloc", "3000000000"))


def test_without_source_the_function_runs_as_it_is():
    from compassc.language.functions import Param
    from compassc.pysim import run_entry

    scope = {"S": S}
    exec("def k(out):\n    n = 5\n    out[0] = n + 1\n", scope)  # noqa: S102
    out = np.zeros(1, "int32")
    run_entry(scope["k"], [Param("out", S.ptr("int32", "global").type, False, None)], (out,))
    assert out[0] == 6

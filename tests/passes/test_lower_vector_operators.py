"""LowerVectorOperators: vector operators and subscripts are operations."""

from __future__ import annotations

from vector_text import after, unchanged

LOAD = 'x: T.int32x8 = S.vload(T.addr(a, 0), 1, dtype="int32x8")'


def test_ramp_subscripts_become_loads_and_stores():
    assert after("LowerVectorOperators", "b[T.ramp(n, 2, 8)] = a[T.ramp(0, 1, 8)]") == [
        'S.vstore(S.vload(T.addr(a, 0), 1, dtype="int32x8"), T.addr(b, n), 2, dtype="void")'
    ]


def test_a_predicate_becomes_the_mask():
    (line,) = after("LowerVectorOperators", "T.store(b, T.ramp(0, 1, 8), value=T.splat(n, 8), mask=T.tail(n, 8))")
    assert line == 'S.vstore(T.splat(n, 8), T.addr(b, 0), 1, dtype="void", mask=T.tail(n, 8))'


def test_vector_operators_become_operations_with_swapped_greater():
    lines = after(
        "LowerVectorOperators",
        f"{LOAD}\ny: T.int32x8 = (x + x)\nm: T.boolx8 = (x > y)\nz: T.int32x8 = T.truncmod(x, y)",
    )
    assert lines[1:] == [
        'y: T.int32x8 = S.vadd(x, x, dtype="int32x8", saturate=False)',
        'm: T.boolx8 = S.vclt(y, x, dtype="boolx8")',
        "z: T.int32x8 = T.truncmod(x, y)",
    ]


def test_general_indices_become_a_gather_with_byte_offsets():
    body = 'i: T.uint16x8 = S.vload(T.addr(b, 0), 1, dtype="uint16x8")\ny: T.int32x8 = a[i]'
    assert (
        "S.__vload_gather(T.addr(a, 0), S.vsl(i, T.splat(T.uint16(2), 8)"
        in after("LowerVectorOperators", body, other="uint16")[1]
    )


def test_a_ramp_as_a_value_is_counted_lanes():
    (line,) = after("LowerVectorOperators", "b[T.ramp(0, 1, 4)] = T.ramp(n, 3, 4)")
    assert 'S.vadd(T.splat(n, 4), T.vector("int32x4", 0, 3, 6, 9)' in line


def test_scalar_code_is_left_alone():
    assert unchanged("LowerVectorOperators", "b[n] = (a[n] + 1)")

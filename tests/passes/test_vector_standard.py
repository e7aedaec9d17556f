"""Passes before vectors are aligned: operators to operations, constants right, shifts for products, returns."""

from __future__ import annotations

import warnings

from vector_text import after, c_of, unchanged

LOAD = 'x: T.int32x8 = S.vload(T.addr(a, 0), 1, dtype="int32x8")'


def test_ramp_subscripts_become_loads_and_stores():
    assert after("LowerStandard", "b[T.ramp(n, 2, 8)] = a[T.ramp(0, 1, 8)]") == [
        'S.vstore(S.vload(T.addr(a, 0), 1, dtype="int32x8"), T.addr(b, n), 2, dtype="void")'
    ]


def test_a_predicate_becomes_the_mask():
    (line,) = after("LowerStandard", "T.store(b, T.ramp(0, 1, 8), value=T.splat(n, 8), mask=T.tail(n, 8))")
    assert line == 'S.vstore(T.splat(n, 8), T.addr(b, 0), 1, dtype="void", mask=T.tail(n, 8))'


def test_vector_operators_become_operations_with_swapped_greater():
    lines = after(
        "LowerStandard", f"{LOAD}\ny: T.int32x8 = (x + x)\nm: T.boolx8 = (x > y)\nz: T.int32x8 = T.truncmod(x, y)"
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
        in after("LowerStandard", body, other="uint16")[1]
    )


def test_a_ramp_as_a_value_is_counted_lanes():
    (line,) = after("LowerStandard", "b[T.ramp(0, 1, 4)] = T.ramp(n, 3, 4)")
    assert 'S.vadd(T.splat(n, 4), T.vector("int32x4", 0, 3, 6, 9)' in line


def test_scalar_code_is_left_alone():
    assert unchanged("LowerStandard", "b[n] = (a[n] + 1)")
    assert unchanged("LowerVectorCast", 'b[n] = T.cast((a[n] + 1), "int32")')
    assert unchanged("AlignVectorWidth", f'{LOAD}\nS.vstore(x, T.addr(b, 0), 1, dtype="void")')


def test_constants_move_right_only_in_commutative_operations():
    body = LOAD + '\ny: T.int32x8 = S.{}(T.splat(3, 8), x, dtype="int32x8")'
    assert after("ExchangeConstantToRight", body.format("vadd"))[1].startswith("y: T.int32x8 = S.vadd(x, T.splat(3, 8)")
    assert unchanged("ExchangeConstantToRight", body.format("vsub"))
    assert unchanged("ExchangeConstantToRight", LOAD + '\ny: T.int32x8 = S.vadd(T.splat(n, 8), x, dtype="int32x8")')


def test_products_by_powers_of_two_are_shifts():
    body = LOAD + '\ny: T.int32x8 = S.vmul(x, T.splat({}, 8), dtype="int32x8")'
    assert after("SimplifyVirtualIsa", body.format(8))[1] == (
        'y: T.int32x8 = S.vsl(x, T.splat(3, 8), dtype="int32x8", saturate=False)'
    )
    assert "T.splat(0, 8)" in after("SimplifyVirtualIsa", body.format(1))[1]
    for other in ("6", "0", "-4", "n"):
        assert unchanged("SimplifyVirtualIsa", body.format(other))


def test_pointers_to_odd_vectors_count_elements():
    assert after(
        "LowerVirtualVectorPointer", 'S.vstore(T.splat(n, 12), T.addr(a, n, "int32x12"), 1, dtype="void")'
    ) == ['S.vstore(T.splat(n, 12), T.addr(a, (n * 12)), 1, dtype="void")']
    assert unchanged("LowerVirtualVectorPointer", 'S.vstore(T.splat(n, 8), T.addr(a, n, "int32x8"), 1, dtype="void")')


HALF = 'x: T.float16x16 = S.vload(T.addr(a, 0), 1, dtype="float16x16")\n'
CAST = 'S.cast(x, dtype="float32x16", part="all", saturate=None)'
TAGGED = f'y: T.float32x16 = S.tag({CAST}, dtype="float32x16", tag="no_zip")'


def test_no_zip_selects_even_and_odd_on_x2():
    lines = c_of(HALF + TAGGED + '\nS.vstore(y, T.addr(b, 0), 1, dtype="void")', elem="float16", other="float32")
    assert lines[2:4] == ["y[0] = __vcvtue_tfp32(x);", "y[1] = __vcvtuo_tfp32(x);"]


def test_no_zip_is_dropped_with_a_warning_elsewhere():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lines = after("LowerTag", HALF + TAGGED, elem="float16", target="X3P_1304")
    assert "no_zip" in str(found[0].message) and "S.tag" not in lines[1]


SUB = """
    @T.func
    def f(x: T.float32x12) -> T.float32x12:
        return (x + x)
"""


def test_odd_vectors_are_returned_through_memory():
    body = 'y: T.float32x12 = Module.f(T.splat(T.float32(1.0), 12))\nS.vstore(y, T.addr(b, 0), 1, dtype="void")'
    lines = after("HandleSubFuncReturnFWV", body, elem="float32", more=SUB)
    assert lines[:3] == [
        "tmp_var0: T.float32x12 = T.splat(T.float32(0.0), 12)",
        'Module.f(T.splat(T.float32(1.0), 12), T.addr(T.address_of(tmp_var0), 0, "float32"))',
        "y: T.float32x12 = tmp_var0",
    ]


def test_a_call_in_a_loop_condition_is_evaluated_each_time():
    body = "while (T.element(Module.f(T.splat(T.float32(1.0), 12)), 0) < T.float32(9.0)):\n    b[0] = T.float32(1.0)"
    lines = after("HandleSubFuncReturnFWV", body, elem="float32", more=SUB)
    assert lines[0] == "while True:" and "if (not (T.element(tmp_var0, 0) < T.float32(9.0))):" in lines


def test_native_returns_stay():
    native = SUB.replace("x12", "x8")
    assert unchanged("HandleSubFuncReturnFWV", "b[0] = T.float32(1.0)", elem="float32", more=native)


def test_tables_become_bytes_with_a_typed_pointer():
    assert after("RenameConstBufferVar", 't = T.alloc_const((2,), "int16", "01000200")\nb[0] = t[1]', elem="int16") == [
        'k_u8_t = T.alloc_const((4,), "uint8", "01000200")',
        't: T.ptr("int16", "constant") = T.addr(k_u8_t, 0, "int16")',
        "b[0] = t[1]",
    ]

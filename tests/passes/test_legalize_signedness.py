"""LegalizeSignedness: operands and results have the signs of the instruction, the same bits."""

from __future__ import annotations

import pytest
from vector_text import W, after, any_source, load, store, unchanged, value_of


def read(x: str, kind: str) -> str:
    return f"T.reinterpret({x}, T.{kind})"


def test_an_absolute_value_is_unsigned_where_it_is_computed():
    text = 'z: T.int32x8 = S.abs(x, dtype="int32x8", saturate=False)'
    computed = 'S.abs(x, dtype="uint32x8", saturate=False)'
    assert after("LegalizeSignedness", W + text)[-1] == f"z: T.int32x8 = {read(computed, 'int32x8')}"
    assert unchanged("LegalizeSignedness", W + text.replace("False", "True"))


def test_operands_of_a_sum_are_read_as_its_result():
    text = 'z: T.uint32x8 = S.vadd({}, {}, dtype="uint32x8", saturate=False)'
    assert after("LegalizeSignedness", W + text.format("x", "y"))[-1] == text.format(
        *(read(v, "uint32x8") for v in "xy")
    )
    signed = text.replace("uint", "int").format("x", "y")
    assert unchanged("LegalizeSignedness", W + signed)


def test_a_widening_product_is_unsigned_only_if_both_factors_are():
    text = "z: T.int16x16 = {}"
    product = 'S.vmull(x, y, dtype="{}")'
    both, one = (load("x", "uint8x32") + load("y", kind) for kind in ("uint8x32", "int8x32"))
    body = text.format(product.format("int16x16"))
    assert after("LegalizeSignedness", both + body)[-1] == text.format(read(product.format("uint16x16"), "int16x16"))
    assert unchanged("LegalizeSignedness", one + body)


def test_shift_amounts_of_a_left_shift_have_the_sign_of_the_value():
    text = 'z: T.int32x8 = S.vsl(x, {}, dtype="int32x8", saturate=False)'
    body = load("x", "int32x8") + load("s", "uint32x8", "b")
    assert after("LegalizeSignedness", body + text.format("s"))[-1] == text.format(read("s", "int32x8"))


def test_indices_of_a_table_are_unsigned():
    text = 'z: T.int32x8 = S.vtbl(x, y, {}, dtype="int32x8")'
    assert after("LegalizeSignedness", W + text.format("x"))[-1] == text.format(read("x", "uint32x8"))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int32x8", 'S.abs(x, dtype="int32x8", saturate=False)', "as_int8(__vabs(as_uint8(r), x, ALL_TRUE_w))"),
        ("int32x8", 'S.abs(x, dtype="int32x8", saturate=True)', "__vabss(r, x, ALL_TRUE_w)"),
        ("uint32x8", 'S.vadd(x, y, dtype="uint32x8", saturate=False)', "(as_uint8(x) + as_uint8(y))"),
        ("uint32x8", 'S.vpcnt(x, dtype="uint32x8")', "__vpcnt(r, x, ALL_TRUE_w)"),
        ("int32x8", 'S.vpcnt(x, dtype="int32x8")', "as_int8(__vpcnt(as_uint8(r), x, ALL_TRUE_w))"),
    ],
)
def test_operands_take_the_sign_of_the_instruction(kind, value, expected):
    element = kind.partition("x")[0]
    assert any_source(value_of(W + store(value), other=element)) == expected

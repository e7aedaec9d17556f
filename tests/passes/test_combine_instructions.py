"""CombineInstructions: nested operations that one instruction does alone."""

from __future__ import annotations

import pytest
from vector_text import H, W, after, any_source, cast, load, store, unchanged, value_of

ROUNDED = 'S.vsr({}, T.splat(T.int16(3), 16), dtype="int16x16", with_round=True)'


def test_narrowed_shifts_are_one_instruction_each():
    body = H + store(cast(f"{ROUNDED.format('x')}, {ROUNDED.format('y')}", "uint8x32", saturate=True))
    shift = "as_ushort16((short16)(short)3), __vmov_h(1431655765)"
    expected = f"__vexte(__vnsrasr_u(x, {shift}), __vnsrasr_u(y, {shift}))"
    assert value_of(body, elem="int16", other="uint8") == expected


def test_a_masked_shift_is_not_narrowed():
    masked = 'S.vsr(x, y, dtype="int16x16", mask=T.mask("3T13F"), r=x, with_round=False)'
    assert unchanged("CombineInstructions", H + "z: T.int8x32 = " + cast(masked, "int8x32"), elem="int16")


def test_a_shift_in_a_variable_is_not_narrowed():
    body = H + f"s: T.int16x16 = {ROUNDED.format('x')}\nz: T.int8x32 = " + cast("s", "int8x32")
    assert unchanged("CombineInstructions", body, elem="int16")


BYTES = load("x", "int8x32") + load("y", "int8x32")


def product(a: str, b: str, kind: str, extra: str = "") -> str:
    return f'S.vmul({a}, {b}, dtype="{kind}"{extra})'


@pytest.mark.parametrize(
    ("part", "kind", "expected"),
    [
        ("low", "int16x16", "__vmul(r, x, y, ALL_TRUE_b)"),
        ("high", "int16x16", "__vmulh(r, x, y, ALL_TRUE_b)"),
        ("lh", "int32x8", "__vmulh(r, __vsxtl(x), __vsxtl(y), ALL_TRUE_h)"),
        ("hl", "int32x8", "__vmul(r, __vsxth(x), __vsxth(y), ALL_TRUE_h)"),
    ],
)
def test_products_of_widened_factors(part, kind, expected):
    body = BYTES + store(product(cast("x", kind, part), cast("y", kind, part), kind))
    element = kind.partition("x")[0]
    assert any_source(value_of(body, elem="int8", other=element)) == expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (cast("x", "int16x16", "low"), cast("y", "int16x16", "high")),
        (cast("x", "int16x16", "even"), cast("y", "int16x16", "even")),
        (cast("x", "int16x16", "low"), "T.splat(T.int16(3), 16)"),
    ],
)
def test_other_products_stay(a, b):
    body = BYTES + "z: T.int16x16 = " + product(a, b, "int16x16")
    assert unchanged("CombineInstructions", body, elem="int8")


def test_a_splat_of_a_converted_scalar_counts_as_widened():
    body = (
        BYTES
        + "z: T.int16x16 = "
        + product(cast("x", "int16x16", "low"), 'T.splat(T.cast(a[n], "int16"), 16)', "int16x16")
    )
    assert after("CombineInstructions", body, elem="int8")[-1].startswith(
        "z: T.int16x16 = S.vmull(x, T.splat(a[n], 32)"
    )


def test_the_mask_of_a_product_covers_the_other_half():
    mask = ', mask=T.mask("3T13F"), r=T.splat(T.int16(0), 16)'
    body = (
        BYTES
        + "z: T.int16x16 = "
        + product(cast("x", "int16x16", "high"), cast("y", "int16x16", "high"), "int16x16", mask)
    )
    assert 'mask=T.mask("19T13F")' in after("CombineInstructions", body, elem="int8")[-1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("S.vand(x, S.vinv(y, {t}), {t})", "__vbclr(x, y)"),
        ("S.vand(S.vinv(y, {t}), x, {t})", "__vbclr(x, y)"),
        ("S.vor(x, S.vinv(y, {t}), {t})", "__vbset(x, y)"),
        ('S.vand(x, S.vinv(y, {t}), {t}, mask=T.mask("1T7F"))', "__vbclr(r, x, y, __vmov_w(0x00000001))"),
    ],
)
def test_inverted_operands(value, expected):
    text = value_of(W + store(value.format(t='dtype="int32x8"')))
    assert any_source(text) == expected


def test_an_operand_inverted_in_fewer_lanes_stays():
    value = 'S.vand(x, S.vinv(y, dtype="int32x8", mask=T.mask("1T7F")), dtype="int32x8", mask=T.mask("2T6F"))'
    assert unchanged("CombineInstructions", W + "z: T.int32x8 = " + value)


def test_inverted_results_only_of_masks():
    t = 'dtype="boolx8"'
    body = f"m: T.boolx8 = T.tail(n, 8)\nk: T.boolx8 = S.vinv(S.vor(m, T.tail(3, 8), {t}), {t})\n"
    assert after("CombineInstructions", body)[-1] == 'k: T.boolx8 = S.__vnor(m, T.tail(3, 8), dtype="boolx8")'
    data = W + 'z: T.int32x8 = S.vinv(S.vor(x, y, dtype="int32x8"), dtype="int32x8")'
    assert unchanged("CombineInstructions", data)


def test_conversion_of_rounded_values():
    body = load("x", "float32x8") + store(cast('S.rint(x, dtype="float32x8")', "int32x8", saturate=True))
    assert value_of(body, elem="float32", other="int32") == "__vcvt(x)"

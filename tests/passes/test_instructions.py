"""Passes on registers: combined instructions, inactive lanes, signs, conversions, predicates, subscripts."""

from __future__ import annotations

import re

import pytest
from vector_text import after, c_of, unchanged

from compass_core.errors import CompassError

ZERO_SHIFT = "__vnsrls_h_s(x, (uint8)(uint)0, __vmov_w(286331153))"


def load(name: str, kind: str, pointer: str = "a") -> str:
    return f'{name}: T.{kind} = S.vload(T.addr({pointer}, 0, "{kind.partition("x")[0]}"), 1, dtype="{kind}")\n'


def store(value: str, mask: str = "") -> str:
    return f'S.vstore({value}, T.addr(b, 0), 1, dtype="void"{mask})'


def value_of(body: str, **kwargs: str) -> str:
    """The text stored by the last line of the C of a body."""
    line = c_of(body, **kwargs)[-1]
    return line.removeprefix("__vstore(").rpartition(", (__global")[0]


def any_source(text: str) -> str:
    """The text with `r` for a register of zeros, which inactive lanes come from."""
    return re.sub(r"\((?:int8|uint8|short16)\)(?:\(\w+\))?0\b", "r", text, count=1)


def cast(x: str, kind: str, part: str = "all", saturate: object = None) -> str:
    return f'S.cast({x}, dtype="{kind}", part="{part}", saturate={saturate})'


W = load("x", "int32x8") + load("y", "int32x8")
H = load("x", "int16x16") + load("y", "int16x16")
ROUNDED = 'S.vsr({}, T.splat(T.int16(3), 16), dtype="int16x16", with_round=True)'


# ------------------------------------------------------------------------------------------------ combined instructions


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


# ------------------------------------------------------------------------------------------------------- inactive lanes


def test_inactive_lanes_by_context():
    divide = 'S.vdiv({}, y, dtype="int32x8", mask=T.mask("3T5F"))'
    body = (
        W
        + f"z: T.int32x8 = {divide.format('x')}\nz = {divide.format('z')}\n"
        + store(divide.format(divide.format("z")))
    )
    lines = c_of(body)
    mask = "__vmov_w(0x00000111)"
    assert lines[2:4] == [f"int8 z = __vdiv(z, x, y, {mask});", f"z = __vdiv((int8)0, z, y, {mask});"]
    assert lines[4].startswith(f"__vstore(__vdiv((int8)0, __vdiv((int8)0, z, y, {mask}), y, {mask}), ")


def test_operations_without_a_source_are_left_alone():
    assert unchanged("ReviseParamR", W + 'z: T.int32x8 = S.vadd(x, y, dtype="int32x8", saturate=False)')


def test_a_masked_integer_product_is_selected():
    body = W + 'z: T.int32x8 = S.vmul(x, y, dtype="int32x8", mask=T.tail(n, 8), r=x)'
    assert c_of(body)[-1].startswith("int8 z = __vsel((x * y), x, __vmov_w(")


# ---------------------------------------------------------------------------------------------------------------- signs


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


# ---------------------------------------------------------------------------------------------------------- conversions


@pytest.mark.parametrize(
    ("source", "count", "target", "part", "saturate", "expected"),
    [
        ("int32x8", 1, "uint32x8", "all", False, "as_uint8(x)"),
        ("int8x32", 1, "uint8x32", "all", True,
         "as_uchar32(__vmax(x, __vmin(x, x, (char32)(char)127, ALL_TRUE_b), (char32)(char)0, ALL_TRUE_b))"),
        ("int8x32", 1, "int16x16", "odd", None, "__vsxtl(__vexto(x, x))"),
        ("int8x32", 1, "uint16x16", "low", False, "as_ushort16(__vsxtl(x))"),
        ("uint8x32", 1, "float32x8", "lh", None, "__vcvt(as_int8(__vuxth(__vuxtl(x))))"),
        ("int32x8", 1, "float32x8", "all", None, "__vcvt(x)"),
        ("float32x8", 1, "int32x8", "all", True, "convert_int8(x)"),
        ("float32x8", 2, "uint16x16", "all", None,
         "__vexte(as_ushort16(convert_int8(x)), as_ushort16(convert_int8(x)))"),
        ("int32x8", 1, "int8x32", "all", False, "__vcompt(as_char32(x), __vmov_b(0x11111111))"),
        ("uint32x8", 2, "int16x16", "all", True,
         f"__vexte({ZERO_SHIFT}, {ZERO_SHIFT})"),
        ("int32x8", 3, "int8x32", "all", False,
         "__vexte(__vexte(as_char32(x), as_char32(x)), __vexte(as_char32(x), as_char32(x)))"),
        ("float32x8", 2, "float16x16", "all", None, "__vcvtd(x, x)"),
        ("int32x8", 1, "bfloat16x16", "all", None, "__vcvtd_tbf16(x, x)"),
        ("float16x16", 1, "bfloat16x16", "all", None, "__vcvt(x)"),
        ("float16x16", 1, "float32x8", "low", None, "__vzipl(__vcvtue_tfp32(x), __vcvtuo_tfp32(x))"),
        ("float16x16", 1, "uint32x8", "even", None, "as_uint8(convert_int8(__vcvtue_tfp32(x)))"),
    ],
)  # fmt: skip
def test_conversion_sequences(source, count, target, part, saturate, expected):
    body = load("x", source) + store(cast(", ".join(["x"] * count), target, part, saturate))
    assert value_of(body, elem=source.partition("x")[0], other=target.partition("x")[0]) == expected


def test_x3_unpacks_halves_directly():
    body = load("x", "float16x16") + store(cast("x", "float32x8", "high"))
    assert value_of(body, elem="float16", other="float32", target="X3P_1304") == "__vcvtuh_tfp32(x)"


def test_a_conversion_that_does_not_exist_is_named():
    with pytest.raises(CompassError, match="no conversion from uint32x8 to float32x8 with part='all', saturate=None"):
        c_of(load("x", "uint32x8") + store(cast("x", "float32x8")), elem="uint32", other="float32")


# ----------------------------------------------------------------------------------------------- predicates, subscripts


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("int32x8", "__vmov_w((((((n << 2) >> 5) ^ 1) << (n << 2)) - 1))"),
        ("int16x16", "__vmov_h((((((n << 1) >> 5) ^ 1) << (n << 1)) - 1))"),
        ("int8x32", "__vmov_b(((((n >> 5) ^ 1) << n) - 1))"),
    ],
)
def test_tail_masks_are_arithmetic(kind, expected):
    element, lanes = kind.partition("x")[::2]
    body = load("x", kind) + store("x", f", mask=T.tail(n, {lanes})")
    assert c_of(body, elem=element)[-1].endswith(f", {expected});")


@pytest.mark.parametrize(("word", "text"), [("8T", "ALL_TRUE_w"), ("3T5F", "__vmov_w(0x00000111)")])
def test_constant_masks(word, text):
    assert c_of(f'm: T.boolx8 = T.mask("{word}")\nm = (m & T.mask("{word}"))')[0] == f"bool8 m = {text};"


def test_a_constant_in_a_concatenation_is_decimal_where_it_fits():
    concat = 'S.vconcat(S.vand(m, T.mask("{}"), dtype="boolx8"), m, dtype="boolx16", part="all")'
    body = "m: T.boolx8 = T.tail(n, 8)\nk: T.boolx16 = " + concat
    assert c_of(body.format("1T7F"))[1] == "bool16 k = (bool16)(__vand(m, __vmov_w(1), __vmov_w(286331153)),m);"
    high = 'S.vconcat(x, S.vsel(x, x, dtype="int8x32"), dtype="int8x32", part="even")'
    assert "ALL_TRUE_b" in c_of(load("x", "int8x32") + f"y: T.int8x32 = {high}", elem="int8")[1]


def test_concatenated_constants_are_one_constant():
    body = 'k: T.boolx16 = S.vconcat(T.mask("8T"), T.mask("8F"), dtype="boolx16", part="all")'
    assert after("LowerVirtualIsa", body) == ['k: T.boolx16 = T.mask("8T8F")']


def test_whole_registers_behind_a_register_pointer_are_subscripts():
    body = 'S.vstore(S.vload(T.addr(a, n), 1, dtype="int32x8"), T.addr(b, 0), 1, dtype="void")'
    assert after("Revert2Standard", body, elem="int32x8") == ["b[0] = a[n]"]
    masked = 'S.vstore(T.splat(n, 8), T.addr(b, 0), 1, dtype="void", mask=T.tail(n, 8))'
    assert unchanged("Revert2Standard", masked, elem="int32x8")
    assert unchanged("Revert2Standard", body)

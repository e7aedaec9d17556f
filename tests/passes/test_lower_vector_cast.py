"""LowerVectorCast: the instructions of each conversion."""

from __future__ import annotations

import pytest
from vector_text import W, after, c_of, cast, load, store, unchanged, value_of

from compass_core.errors import CompassError

ZERO_SHIFT = "__vnsrls_h_s(x, (uint8)(uint)0, __vmov_w(286331153))"


@pytest.mark.parametrize(
    ("source", "count", "target", "part", "saturate", "expected"),
    [
        ("int32x8", 1, "uint32x8", "all", False, "as_uint8(x)"),
        (
            "int8x32",
            1,
            "uint8x32",
            "all",
            True,
            "as_uchar32(__vmax(x, __vmin(x, x, (char32)(char)127, ALL_TRUE_b), (char32)(char)0, ALL_TRUE_b))",
        ),
        ("int8x32", 1, "int16x16", "odd", None, "__vsxtl(__vexto(x, x))"),
        ("int8x32", 1, "uint16x16", "low", False, "as_ushort16(__vsxtl(x))"),
        ("uint8x32", 1, "float32x8", "lh", None, "__vcvt(as_int8(__vuxth(__vuxtl(x))))"),
        ("int32x8", 1, "float32x8", "all", None, "__vcvt(x)"),
        ("float32x8", 1, "int32x8", "all", True, "convert_int8(x)"),
        (
            "float32x8",
            2,
            "uint16x16",
            "all",
            None,
            "__vexte(as_ushort16(convert_int8(x)), as_ushort16(convert_int8(x)))",
        ),
        ("int32x8", 1, "int8x32", "all", False, "__vcompt(as_char32(x), __vmov_b(0x11111111))"),
        ("uint32x8", 2, "int16x16", "all", True, f"__vexte({ZERO_SHIFT}, {ZERO_SHIFT})"),
        (
            "int32x8",
            3,
            "int8x32",
            "all",
            False,
            "__vexte(__vexte(as_char32(x), as_char32(x)), __vexte(as_char32(x), as_char32(x)))",
        ),
        ("float32x8", 2, "float16x16", "all", None, "__vcvtd(x, x)"),
        ("int32x8", 1, "bfloat16x16", "all", None, "__vcvtd_tbf16(x, x)"),
        ("float16x16", 1, "bfloat16x16", "all", None, "__vcvt(x)"),
        ("float16x16", 1, "float32x8", "low", None, "__vzipl(__vcvtue_tfp32(x), __vcvtuo_tfp32(x))"),
        ("float16x16", 1, "uint32x8", "even", None, "as_uint8(convert_int8(__vcvtue_tfp32(x)))"),
    ],
)
def test_conversion_sequences(source, count, target, part, saturate, expected):
    body = load("x", source) + store(cast(", ".join(["x"] * count), target, part, saturate))
    assert value_of(body, elem=source.partition("x")[0], other=target.partition("x")[0]) == expected


def test_x3_unpacks_halves_directly():
    body = load("x", "float16x16") + store(cast("x", "float32x8", "high"))
    assert value_of(body, elem="float16", other="float32", target="X3P_1304") == "__vcvtuh_tfp32(x)"


def test_a_conversion_that_does_not_exist_is_named():
    with pytest.raises(CompassError, match="no conversion from uint32x8 to float32x8 with part='all', saturate=None"):
        c_of(load("x", "uint32x8") + store(cast("x", "float32x8")), elem="uint32", other="float32")


def test_a_change_of_sign_moves_no_bits():
    line = after("LowerVectorCast", W + f"z: T.uint32x8 = {cast('x', 'uint32x8', saturate=False)}")[-1]
    assert line == "z: T.uint32x8 = T.reinterpret(x, T.uint32x8)"


def test_scalars_are_converted_by_c():
    assert unchanged("LowerVectorCast", 'b[n] = T.cast((a[n] + 1), "int32")')

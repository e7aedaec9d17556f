"""LowerPredicates: masks of the first n lanes, by arithmetic."""

from __future__ import annotations

import pytest
from vector_text import after, c_of, load, store, unchanged


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


def test_constant_masks_stay():
    assert unchanged("LowerPredicates", 'm: T.boolx8 = T.mask("3T5F")')


@pytest.mark.parametrize(("lanes", "shift"), [(8, 2), (16, 1), (32, 0)])
def test_the_arithmetic_sets_the_bits_of_the_first_lanes(lanes, shift):
    """Lane i of a predicate is bit i * 32 / lanes."""
    scaled = f"(n << {shift})" if shift else "n"
    text = f"((((({scaled} >> 5) ^ 1) << {scaled}) - 1))"
    (line,) = after("LowerPredicates", f"m: T.boolx{lanes} = T.tail(n, {lanes})")
    assert text.strip("()") in line
    for n in range(lanes + 1):
        bits = eval(text, {"n": n})
        assert [bits >> i * 32 // lanes & 1 for i in range(lanes)] == [int(i < n) for i in range(lanes)]

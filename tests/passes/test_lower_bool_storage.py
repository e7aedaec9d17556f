"""LowerBoolStorage: bools in memory are bytes, compared where they are read."""

from __future__ import annotations

PARAMS = 'p: T.ptr("int32", "global")'
BOOLS = 'm = T.alloc((4,), "bool", "lsram")\n'
BYTES = 'm = T.alloc((4,), "uint8", "lsram")\n'


def test_an_element_is_a_byte_that_is_compared(check):
    before = BOOLS + "m[0] = (p[0] < 3)\nif m[0]:\n    p[1] = 1"
    after = BYTES + 'm[0] = T.cast((p[0] < 3), "uint8")\nif (m[0] != T.uint8(0)):\n    p[1] = 1'
    check("LowerBoolStorage", PARAMS, before, after)


def test_joined_elements_are_the_larger_or_smaller_byte(transform):
    text = transform("LowerBoolStorage", BOOLS + "m[0] = (m[0] or (p[0] < 3))\nm[1] = (m[1] and (p[0] < 3))", PARAMS)
    assert "T.max(m[0], " in text and "T.min(m[1], " in text


def test_other_memory_stays(check):
    check("LowerBoolStorage", PARAMS, 'm = T.alloc((4,), "int8", "lsram")\nm[0] = T.int8(1)')

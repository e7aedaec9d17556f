"""Accesses are reported exactly when they are certain to leave their storage."""

import pytest

OUTSIDE = {
    "element": ('t = S.alloc(8, "i32", "lsram")\nt[8] = n\na[0] = t[0]', "writes 't' at element 8"),
    "negative": ('t = S.alloc(8, "i32", "lsram")\na[0] = t[-1]', "reads 't' at element -1"),
    "moved pointer": ('t = S.alloc(8, "i32", "lsram")\np = t + 6\na[0] = p[2]', "at element 8"),
    "retyped pointer": ('t = S.alloc(8, "i32", "lsram")\np = t.as_ptr("i8")\na[0] = p[32]', "at element 8"),
    "slice": ('t = S.alloc(8, "i32", "lsram")\na[0:8] = t[1:9]', "at element 8"),
    "vector load": ('t = S.alloc(8, "i32", "lsram")\na[0:8] = S.vload(t + 4)', "at element 11"),
    "strided load": ('t = S.alloc(8, "i32", "lsram")\na[0:8] = S.vload(t, stride=2)', "at element 14"),
    "masked load": ('t = S.alloc(8, "i32", "lsram")\na[0:8] = S.vload(t + 4, mask="5T3F")', "at element 8"),
    "loop": ('t = S.alloc(8, "i32", "lsram")\nfor i in range(9):\n    t[i] = n\na[0] = t[0]', "at element 8"),
    "last step": (
        't = S.alloc(8, "i32", "lsram")\nfor i in range(0, 9, 3):\n    t[i + 2] = n\na[0] = t[0]',
        "element 8",
    ),
    "nested loops": (
        't = S.alloc(16, "i32", "lsram")\nfor i in range(4):\n    for j in range(5):\n        t[i * 4 + j] = n\na[0] = t[0]',
        "at element 16",
    ),
    "TEC number": ('t = S.alloc(3, "i32", "lsram")\nid = S.get_local_id()\nt[id] = n\na[0] = t[0]', "at element 3"),
    "copy": ('t = S.alloc(8, "i32", "lsram")\nS.dma_copy(t, a, 9)\na[0] = t[0]', "writes 't' at element 8"),
    "copy of rows": (
        't = S.alloc(8, "i32", "lsram")\nS.dma_copy(t, a, 2, src_stride=4, times=3, dst_stride=4)\na[0] = t[0]',
        "at element 9",
    ),
    "dimension": ("m = S.match_buffer(a, (4, 8))\nm[3, 8] = n", "at index 8 of dimension 1, but it has 8 there"),
    "table": ('t = S.alloc_const((4,), "int32", [1, 2, 3, 4])\na[0] = t[4]', "reads 't' at element 4"),
    "variable": ('t = S.alloc(8, "i32", "lsram")\ni = S.i32(4)\nj = i * 2\na[0] = t[j]', "at element 8"),
}
INSIDE = {
    "last element": 't = S.alloc(8, "i32", "lsram")\nt[7] = n\na[0] = t[0]',
    "unknown index": 't = S.alloc(8, "i32", "lsram")\nt[n] = 1\na[0] = t[0]',
    "unknown size": "a[100000] = n",
    "whole loop": 't = S.alloc(8, "i32", "lsram")\nfor i in range(8):\n    t[i] = n\na[0] = t[0]',
    "guarded": 't = S.alloc(8, "i32", "lsram")\nfor i in range(9):\n    if i < 8:\n        t[i] = n\na[0] = t[0]',
    "left before": (
        't = S.alloc(8, "i32", "lsram")\nfor i in range(9):\n    if a[i] == n:\n        break\n    t[i] = n\na[0] = t[0]'
    ),
    "changed index": 't = S.alloc(8, "i32", "lsram")\ni = S.i32(8)\ni = n\na[0] = t[i]',
    "unknown loop": 't = S.alloc(8, "i32", "lsram")\nfor i in range(n):\n    t[i] = n\na[0] = t[0]',
    "tail mask": 't = S.alloc(8, "i32", "lsram")\na[0:8] = S.vload(t + 4, mask=S.tail_mask(n, 8))',
    "TEC range": 't = S.alloc(3, "i32", "lsram")\nfor i in S.tec_range(3):\n    t[i] = n\na[0] = t[0]',
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_access_outside_is_an_error(found, name):
    body, message = OUTSIDE[name]
    errors = [e for e in found(body) if e.code == "out-of-bounds"]
    assert len(errors) == 1 and message in errors[0].message, [e.message for e in errors]
    assert errors[0].severity == "error" and errors[0].span is not None


@pytest.mark.parametrize("name", INSIDE)
def test_access_that_may_be_inside_is_not_reported(found, name):
    assert [e.message for e in found(INSIDE[name]) if e.code == "out-of-bounds"] == []


def test_an_access_that_may_never_happen_is_a_warning(found):
    (finding,) = found('t = S.alloc(8, "i32", "lsram")\nif n > 0:\n    t[8] = n\na[0] = t[0]')
    assert finding.severity == "warning" and finding.code == "out-of-bounds"


def test_given_values_and_shapes_are_used(found):
    body = "for i in range(n):\n    a[i] = i"
    assert found(body) == []
    assert found(body, values={2: 8}, shapes={0: (2, 4)}) == []
    (error,) = found(body, values={2: 9}, shapes={0: (2, 4)})
    assert "'a' at element 8" in error.message

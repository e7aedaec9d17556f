"""Products of bytes that are added one after another: four at a time, and exact."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compassc import targets, te

TARGET = "X2_1204"
BYTES = ("int8", "uint8")
DRAW = np.random.default_rng(0)


def of_all_values(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    return DRAW.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)


def product(rows: int, depth: int, columns: int, kinds: tuple[str, str], together: int, turned: bool):
    """A product of matrices with `together` steps of the sum unrolled; `turned`: the bytes that lanes share lie apart."""
    a = te.placeholder((depth, rows) if turned else (rows, depth), kinds[0], name="a")
    b = te.placeholder((depth, columns), kinds[1], name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute(
        (rows, columns),
        lambda i, j: te.sum((a[k, i] if turned else a[i, k]).astype("int32") * b[k, j].astype("int32"), axis=k),
        name="c",
    )
    s = te.create_schedule(c)
    outer, inner = s[c].split(k, factor=together)
    s[c].reorder(c.op.axis[0], outer, inner, c.op.axis[1])
    s[c].unroll(inner)
    s[c].vectorize(c.op.axis[1])
    return s, [a, b, c]


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(2, 40), st.integers(2, 40), st.sampled_from(BYTES),
    st.sampled_from(BYTES), st.booleans(),
)  # fmt: skip
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_sums_of_products_of_bytes_are_exact(rows, turns, together, columns, first, second, turned):
    s, args = product(rows, turns * together, columns, (first, second), together, turned)
    text = te.lower(s, args, "k", target=TARGET).script()
    assert ("vqdpa" in text) == ((first, second) != ("uint8", "uint8")), "dot products are signed"
    x, w = (of_all_values(str(t.dtype), tuple(d.value for d in t.shape)) for t in args[:2])
    found = np.zeros((rows, columns), "int32")
    targets.build(s, args, TARGET)(x, w, found)
    np.testing.assert_array_equal(found, (x.T if turned else x).astype("i4") @ w.astype("i4"))


def test_sums_that_may_leave_32_bits_wrap_around_as_others_do():
    depth = 1 << 18
    s, args = product(1, depth, 8, ("int8", "int8"), 4, False)
    text = te.lower(s, args, "k", target=TARGET).script()
    assert "vqdot" in text and "vqdpa" not in text
    x, w, found = np.full((1, depth), -128, "int8"), np.full((depth, 8), -128, "int8"), np.zeros((1, 8), "int32")
    targets.build(s, args, TARGET)(x, w, found)
    np.testing.assert_array_equal(found, (x.astype("i8") @ w.astype("i8")).astype("int32"))


def test_bytes_that_lanes_share_are_read_once_where_they_follow_each_other():
    s, args = product(2, 32, 16, ("int8", "int8"), 32, False)
    text = te.lower(s, args, "k", target=TARGET).script()
    assert len(re.findall(r"bytes\w*: T\.int8x32 = ", text)) == 1, "all 32 at once"
    assert len(re.findall(r"fours\w*: T\.int8x64 = ", text)) == 8, "four by four"


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_are_added_as_products_with_one(kind):
    x = te.placeholder((7, 24), kind, name="x")
    k = te.reduce_axis((0, 7), "k")
    out = te.compute((24,), lambda j: te.sum(x[k, j].astype("int32"), axis=k), name="out")
    s = te.create_schedule(out)
    s[out].reorder(k, out.op.axis[0])
    s[out].unroll(k)
    s[out].vectorize(out.op.axis[0])
    assert te.lower(s, [x, out], "k", target=TARGET).script().count("vqdpa") == 2
    given_bytes, found = of_all_values(kind, (7, 24)), np.zeros(24, "int32")
    targets.build(s, [x, out], TARGET)(given_bytes, found)
    np.testing.assert_array_equal(found, given_bytes.astype("i4").sum(0))


def test_the_pass_leaves_what_is_added_once(check):
    add = 'v: T.int32x8 = T.splat(0, 8)\nv = (v + T.splat(p[0], 8))\nS.vstore(v, T.addr(p, 0), 1, dtype="void")'
    check("CombineDotProducts", 'p: T.ptr("int32", "lsram")', add)

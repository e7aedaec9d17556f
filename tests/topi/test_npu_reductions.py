"""Reductions of much that is given, on the NPU: what they read is transferred beside the work, at sizes that nothing divides."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te, topi

TARGET = "X2_1204"
KINDS = ("int8", "float16", "float32")
ROWS = {
    "rows": ((64, 512), 1),
    "rows that no vector divides": ((37, 301), 1),
    "rows of two axes": ((3, 12, 17, 19), [2, 3]),
    "rows inside": ((6, 21, 199), 2),
    "columns": ((512, 64), 0),
    "columns that no vector divides": ((133, 101), 0),
    "columns of two axes": ((2, 23, 17, 40), [1, 2]),
    "all": ((64, 512), None),
}
OPERATORS = {"sum": np.sum, "max": np.max, "mean": np.mean, "argmax": np.argmax}


def made(name, kind, shape, axis):
    """What a reduction was lowered to, what it gives, and what it should."""
    given = np.random.default_rng(0).integers(0, 4, shape).astype(kind)
    x = te.placeholder(shape, kind, name="x")
    out = getattr(topi, name)(x, axis)
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    s = topi.schedule(out, TARGET)
    targets.build(s, [x, out], TARGET)(given, found)
    wanted = OPERATORS[name](given.astype("f8"), tuple(axis) if isinstance(axis, list) else axis)
    return te.lower(s, [x, out], "k", target=TARGET).script(), found.ravel(), np.ravel(wanted)


DOT_PRODUCTS = [("mean", case, "int8") for case in ("rows", "rows that no vector divides", "all")]
"""Sums of bytes that are."""
CASES = [(name, case) for name in OPERATORS for case in ROWS if name != "argmax" or "two axes" not in case]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "case"), CASES)
def test_what_is_reduced_is_transferred(name, case, kind):
    text, found, wanted = made(name, kind, *ROWS[case])
    if kind == "int8":
        np.testing.assert_array_equal(found, wanted.astype("i8").astype(found.dtype))
    else:
        np.testing.assert_allclose(found.astype("f8"), wanted, rtol=2e-3)
    assert "dma_copy" in text
    assert "vqdpa" in text or (name, case, kind) not in DOT_PRODUCTS


@pytest.mark.parametrize("extent", [5, 64, 32768, 32769])
def test_places_are_right_in_any_type_that_holds_them(extent):
    given = np.zeros((1, extent), "int8")
    given[0, extent - 1] = 7
    x = te.placeholder((1, extent), "int8", name="x")
    out = topi.argmax(x, 1)
    found = np.zeros([d.value for d in out.shape], "int32")
    targets.build(topi.schedule(out, TARGET), [x, out], TARGET)(given, found)
    assert found.ravel()[0] == extent - 1

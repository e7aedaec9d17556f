"""The first few elements of long rows, each found by reductions of its own: order of equal ones, infinities, any axis."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.te.tensor import post_order

SHAPES = {
    "last axis": ((5, 130), -1, 5),
    "first axis": ((80, 3), 0, 2),
    "one row": ((200,), 0, 8),
    "all equal": ((2, 64), 1, 4),
}


@pytest.mark.parametrize("is_ascend", [False, True])
@pytest.mark.parametrize("kind", ["int8", "float16", "float32"])
@pytest.mark.parametrize("case", SHAPES)
def test_the_first_elements_are_in_order(case, kind, is_ascend):
    shape, axis, k = SHAPES[case]
    given = np.random.default_rng(0).integers(-9, 9, shape).astype(kind)
    if case == "all equal":
        given[:] = 7
    if kind != "int8":
        given.ravel()[::7], given.ravel()[::9] = -np.inf, np.inf
    else:
        given.ravel()[::7], given.ravel()[::9] = -128, 127
    x = te.placeholder(shape, kind, name="x")
    outs = topi.topk(x, k, axis, "both", is_ascend)
    found = [np.zeros([d.value for d in t.shape], str(t.dtype)) for t in outs]
    for target in ("X2_1204", "llvm"):
        targets.build(topi.schedule(outs, target), [x, *outs], target)(given, *found)
        order = np.argsort(given if is_ascend else -given.astype("f8"), axis, kind="stable")
        places = np.take(order, range(k), axis)
        np.testing.assert_array_equal(found[1], places)
        np.testing.assert_array_equal(found[0], np.take_along_axis(given, places, axis))


@pytest.mark.parametrize(("k", "ranked"), [(5, False), (17, True)])
def test_few_of_long_rows_are_not_ranked(k, ranked):
    values = topi.topk(te.placeholder((4, 256), "int8", name="x"), k, 1, "values")
    assert any("ranks" in op.name for op in post_order([values.op])) == ranked

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


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_values_of_several_rows_a_turn_keep_their_signs(kind):
    given = np.random.default_rng(0).choice([0.0, -0.0, -1.5, -np.inf, -7.25], (16, 80)).astype(kind)
    given[8:] = -np.abs(given[8:])
    x = te.placeholder(given.shape, kind, name="x")
    out = topi.topk(x, 3, 1, "values")
    found = np.zeros((16, 3), kind)
    targets.build(topi.schedule(out, "X2_1204"), [x, out], "X2_1204")(given, found)
    wanted = np.take_along_axis(given, np.argsort(-given, 1, kind="stable")[:, :3], 1)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("k", "ranked"), [(5, False), (17, True)])
def test_few_of_long_rows_are_not_ranked(k, ranked):
    values = topi.topk(te.placeholder((4, 256), "int8", name="x"), k, 1, "values")
    assert any("ranks" in op.name for op in post_order([values.op])) == ranked


@pytest.mark.parametrize("extent", [128, 129])  # the most that int8 has a place for, and one more
@pytest.mark.parametrize("reduction", ["update", "max"])
def test_places_in_narrow_types_are_those_that_were_given(extent, reduction):
    places = np.array([[extent - 1, 0], [-1, 1], [5, extent - 2], [-extent, 0]], "int32")
    data, updates = np.zeros((extent, 2), "int8"), np.arange(1, 9, dtype="int8").reshape(4, 2)
    tensors = [te.placeholder(a.shape, str(a.dtype), name=n) for n, a in zip("xiu", (data, places, updates))]
    out = topi.scatter_elements(*tensors, 0, reduction)
    assert any(op.name == "T_scatter_places" for op in post_order([out.op]))
    found, wanted = np.zeros_like(data), data.copy()
    for row, column in np.ndindex(4, 2):
        wanted[places[row, column], column] = updates[row, column]
    for target in ("X2_1204", "llvm"):
        targets.build(topi.schedule(out, target), [*tensors, out], target)(data, places, updates, found)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
@pytest.mark.parametrize("reduction", ["add", "max", "update"])
def test_rows_of_indices_that_are_shorter_than_vectors(reduction, target):
    """The last vector of places ends behind the last index."""
    draw, operator = np.random.default_rng(0), topi.OPERATORS["scatter_elements"]
    arrays = [draw.integers(-9, 9, (13, 13)).astype("int32"), draw.integers(-13, 13, (11, 11)).astype("int32")]
    arrays.append(draw.integers(-9, 9, (11, 11)).astype("int32"))
    args = [te.placeholder(a.shape, str(a.dtype), name=n) for a, n in zip(arrays, "diu")]
    out, found = operator.define(*args, 0, reduction), np.zeros((13, 13), "int32")
    targets.build(topi.schedule(out, target), [*args, out], target)(*arrays, found)
    np.testing.assert_array_equal(found, operator.reference(*arrays, 0, reduction))

"""DeinterleaveLoads: every other element is the even lanes of what lies there, and nothing more is read."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te

PARAMS = 'p: T.ptr("{0}", "global"), q: T.ptr("{0}", "global")'
BEFORE = "q[T.ramp(0, 1, {1})] = p[T.ramp(3, {2}, {1})]"
AFTER = (
    "q[T.ramp(0, 1, {1})] = S.vconcat(T.load(p, T.ramp(3, 1, {2}), mask=T.mask('{3}T1F')), "
    'dtype="{0}x{1}", part="even")'
)


@pytest.mark.parametrize(
    ("kind", "lanes"), [("int8", 16), ("int8", 32), ("float16", 16), ("int32", 4), ("float32", 24)]
)
def test_every_other_element_is_loaded_from_whole_registers(check, kind, lanes):
    check(
        "DeinterleaveLoads",
        PARAMS.format(kind),
        BEFORE.format(kind, lanes, 2),
        AFTER.format(kind, lanes, 2 * lanes, 2 * lanes - 1),
    )


@pytest.mark.parametrize(("lanes", "stride"), [(8, 2), (32, 3), (32, 1), (32, -2)])
def test_others_are_left(check, lanes, stride):
    check("DeinterleaveLoads", PARAMS.format("int8"), BEFORE.format("int8", lanes, stride))


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
@pytest.mark.parametrize(("kind", "start", "count"), [("int8", 1, 80), ("float16", 0, 48), ("float32", 1, 24)])
def test_lanes_are_those_that_were(target, kind, start, count):
    size = start + 2 * count - 1  # there is nothing after the last one
    x = te.placeholder((3, size), kind, name="x")
    y = te.compute((3, count), lambda i, j: x[i, start + 2 * j], name="y")
    s = te.create_schedule(y)
    s[y].vectorize(s[y].split(y.op.axis[1], factor=16)[1])
    a, found = np.random.default_rng(0).integers(-99, 99, (3, size)).astype(kind), np.zeros((3, count), kind)
    built = targets.build(s, [x, y], target)
    assert "stride" not in te.lower(s, [x, y], "k", target=target).script()
    built(a, found)
    np.testing.assert_array_equal(found, a[:, start::2])

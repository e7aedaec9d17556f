"""ShareConversions: on X2 the even and the odd lanes of a register of halves are converted once each."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te

PARAMS = 'p: T.ptr("{0}", "global"), q: T.ptr("{1}", "global")'
LOAD = "part: T.{0}x{2} = p[T.ramp(0, 1, {2})]\n"
BEFORE = LOAD + 'q[T.ramp(0, 1, {2})] = S.cast(part, dtype="{1}x{2}", part="all", saturate=None)'
AFTER = (
    LOAD
    + 'even: T.{1}x{3} = S.cast(part, dtype="{1}x{3}", part="even", saturate=None)\n'
    + 'odd: T.{1}x{3} = S.cast(part, dtype="{1}x{3}", part="odd", saturate=None)\n'
    + 'q[T.ramp(0, 1, {2})] = S.vzip(even, odd, dtype="{1}x{2}", part="all")'
)


@pytest.mark.parametrize(
    ("kind", "wide", "lanes"),
    [("float16", "float32", 16), ("float16", "float32", 32), ("bfloat16", "float32", 16), ("float16", "int32", 16)],
)
def test_whole_registers_are_converted_once(check, kind, wide, lanes):
    of = kind, wide, lanes, lanes // 2
    check("ShareConversions", PARAMS.format(*of), BEFORE.format(*of), AFTER.format(*of))


@pytest.mark.parametrize(("kind", "wide", "lanes"), [("float16", "float32", 8), ("int16", "int32", 16)])
def test_others_are_left(check, kind, wide, lanes):
    check("ShareConversions", PARAMS.format(kind, wide), BEFORE.format(kind, wide, lanes))


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
def test_lanes_keep_their_places(target):
    x = te.placeholder((3, 80), "float16", name="x")
    y = te.compute((3, 80), lambda i, j: x[i, j].astype("float32") * 3.0 + x[i, j].astype("float32"), name="y")
    s = te.create_schedule(y)
    s[y].vectorize(s[y].split(y.op.axis[1], factor=16)[1])
    shared = "odd" in te.lower(s, [x, y], "k", target=target).script()
    assert shared == (target == "X2_1204")
    a, found = np.random.default_rng(0).standard_normal((3, 80)).astype("f2"), np.zeros((3, 80), "f4")
    targets.build(s, [x, y], target)(a, found)
    np.testing.assert_array_equal(found, a.astype("f4") * np.float32(3) + a.astype("f4"))

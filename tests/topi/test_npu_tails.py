"""What default schedules make on the NPU of sizes that no vector divides: right, and without loops of scalars."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.operators.declare import OPERATORS
from tests.choosing import some

TARGET = "X2_1204"
P = te.placeholder


def made(out, args, given):
    """What a schedule for the simulator gives; it has no loop that was to be one of vectors."""
    s = topi.schedule(out, TARGET)
    text = te.lower(s, [*args, out], "k", target=TARGET).script()
    assert not re.search(r"for \w*inner\w* in T\.serial\(0, (8|16|32|64),", text), text
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    targets.build(s, [*args, out], TARGET)(*given, found)
    return found


def whole(shape, kind, low=-50, high=50):
    return np.random.default_rng(0).integers(low, high, shape).astype(kind)


@pytest.mark.parametrize("kind", ["int8", "float16", "float32"])
@pytest.mark.parametrize("name", ["max", "min", "sum", "argmin"])
def test_rows_of_any_length_are_reduced_in_lanes(name, kind):
    lengths = (5, 25, 61) if name == "max" else (37,)
    for length in some(lengths):
        given = whole((9, length), kind, -9, 9)
        x = P(given.shape, kind, name="x")
        wanted = OPERATORS[name].reference(given, 1)
        np.testing.assert_array_equal(made(getattr(topi, name)(x, 1), [x], [given]), wanted)


@pytest.mark.parametrize("name", ["prod", "max"])
def test_bytes_of_odd_extents_are_joined_in_lanes(name):
    x, given = P((17, 51), "int8", name="x"), whole((17, 51), "int8", -3, 4)
    for axis in (None, 0, 1):
        wanted = np.reshape(OPERATORS[name].reference(given, axis), -1)
        np.testing.assert_array_equal(made(getattr(topi, name)(x, axis), [x], [given]), wanted)


@pytest.mark.parametrize("kind", ["int8", "float32"])
@pytest.mark.parametrize("axes", [[0, 2, 1], [2, 0, 1], [1, 0, 2], [2, 1, 0]])
def test_axes_in_any_order(axes, kind):
    given = whole((5, 35, 19), kind)
    x = P(given.shape, kind, name="x")
    np.testing.assert_array_equal(made(topi.transpose(x, axes), [x], [given]), given.transpose(axes))


@pytest.mark.parametrize(("shape", "groups"), [((1, 12, 5, 7), 3), ((2, 8, 8, 8), 4), ((1, 4, 33, 31), 2)])
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_groups_are_normalised_one_at_a_time(shape, groups, kind):
    x, *numbers = P(shape, kind, name="x"), *(P((shape[1],), kind, name=n) for n in "gb")
    draw = np.random.default_rng(0)
    given = [draw.uniform(0.5, 2, [d.value for d in t.shape]).astype(kind) for t in (x, *numbers)]
    out = topi.nn.group_norm(x, *numbers, groups, 1, [2, 3])
    s = topi.schedule(out, TARGET)
    assert "barrier" not in te.lower(s, [x, *numbers, out], "k", target=TARGET).script(), "no sum is shared by all TECs"
    wanted = OPERATORS["group_norm"].reference(*(a.astype("f4") for a in given), groups, 1, [2, 3])
    rough = 2e-2 if kind == "float16" else 1e-4
    np.testing.assert_allclose(made(out, [x, *numbers], given).astype("f4"), wanted, rtol=rough, atol=rough)


def test_several_short_rows_are_transferred_at_once():
    x, *numbers = P((2, 12, 10, 13), name="x"), *(P((13,), name=n) for n in "gbmv")
    given = [np.random.default_rng(0).uniform(0.5, 2, [d.value for d in t.shape]).astype("f4") for t in (x, *numbers)]
    out = topi.nn.batch_norm(x, *numbers, 3)
    text = te.lower(topi.schedule(out, TARGET), [x, *numbers, out], "k", target=TARGET).script()
    assert "520, 520, 520" in text, "ten rows of 13 numbers"
    np.testing.assert_allclose(
        made(out, [x, *numbers], given), OPERATORS["batch_norm"].reference(*given, 3), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("kind", ["int8", "float16"])
def test_elements_at_places_that_are_data_are_gathered(kind):
    given, x = whole((19, 37), kind), P((19, 37), kind, name="x")
    at, i = whole((19, 21), "int32", -37, 37), P((19, 21), "int32", name="i")
    wanted = np.take_along_axis(given, at, 1)
    np.testing.assert_array_equal(made(topi.gather(x, 1, i), [x, i], [given, at]), wanted)
    pairs, p = np.stack([whole(51, "int32", 0, 19), whole(51, "int32", 0, 37)]), P((2, 51), "int32", name="p")
    np.testing.assert_array_equal(made(topi.gather_nd(x, p), [x, p], [given, pairs]), given[tuple(pairs)])
    new, u = whole((19, 21), kind), P((19, 21), kind, name="u")
    found = made(topi.scatter_elements(x, i, u, 1), [x, i, u], [given, at, new])
    np.testing.assert_array_equal(found, OPERATORS["scatter_elements"].reference(given, at, new, 1))


def test_places_that_there_are_not_are_the_nearest():
    x, i = P((4,), "int32", name="x"), P((4,), "int32", name="i")
    found = made(topi.gather(x, 0, i), [x, i], [np.arange(4, dtype="int32"), np.array([9, -9, 70000, -1], "int32")])
    assert found.tolist() == [3, 0, 3, 3]

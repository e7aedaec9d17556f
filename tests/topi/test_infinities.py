"""The largest and the smallest where they are infinite, of nothing at all, or not numbers."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.operators.declare import OPERATORS

CASES = [
    ("max_pool2d", (1, 2, 7, 7), (2, 3, 1, [0, 0, 0, 0], "max", True)),
    ("max_pool2d", (1, 5, 5, 16), (2, 4, 1, [0, 0, 2, 2], "max", True, "NHWC")),
    ("max_pool2d", (1, 2, 6, 6), (2, 2, 1, [2, 2, 2, 2], "max")),
    ("adaptive_pool", (1, 2, 7, 9), ([3, 4], "max")),
    *((name, (5, 40), (1,)) for name in ("max", "min", "argmax", "argmin")),
]


def check(name: str, arrays: list[np.ndarray], options: tuple[object, ...], target: str) -> np.ndarray:
    operator = OPERATORS[name]
    args = [te.placeholder(a.shape, str(a.dtype), name=f"x{i}") for i, a in enumerate(arrays)]
    out = operator.define(*args, *options)
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    targets.build(topi.schedule(out, target), [*args, out], target)(*arrays, found)
    np.testing.assert_array_equal(found, np.asarray(operator.reference(*arrays, *options)).astype(found.dtype))
    return found


@pytest.mark.parametrize("target", ["c", "X2_1204"])
@pytest.mark.parametrize("name,shape,options", CASES)
@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_the_largest_of_infinities_and_of_nothing(kind, name, shape, options, target):
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(kind)
    if kind != "int8":
        x.reshape(-1)[: x.size // 2] = np.inf if "min" in name else -np.inf
    found = check(name, [x], options, target)
    assert kind == "int8" or "arg" in name or np.isinf(found).any()


@pytest.mark.parametrize("join,value", [("max", -np.inf), ("min", np.inf)])
def test_infinities_stay_where_nothing_is_scattered(join, value):
    x = np.full((6, 4), value, "float32")
    places, updates = np.array([[2, 3, 0, 2]], "int32"), np.ones((1, 4), "float32")
    assert np.isinf(check("scatter_elements", [x, places, updates], (0, join), "X2_1204")).sum() == 20


ROWS = [["nan"] * 4, [1, "nan", 3, 2], [3, 1, "nan", 2], ["nan", "inf", 1, 2], ["inf", "nan", 0, "-inf"], [1, 3, 2, 0]]
"""Rows of numbers and what is none."""


def with_nan(kind: str, many: int) -> np.ndarray:
    return np.tile(np.array(ROWS, kind), many)


def results(name: str, x: np.ndarray, options: tuple[object, ...], target: str) -> list[np.ndarray]:
    data = te.placeholder(x.shape, str(x.dtype), name="x")
    made = OPERATORS[name].define(data, *options)
    outs = list(made) if isinstance(made, list) else [made]
    found = [np.zeros([d.value for d in t.shape], str(t.dtype)) for t in outs]
    targets.build(topi.schedule(outs, target), [data, *outs], target)(x, *found)
    return found


@pytest.mark.parametrize("target", ["c", "X2_1204"])
@pytest.mark.parametrize("name,kind,many", [("argmax", "float16", 20), ("argmin", "float32", 1)])
def test_the_place_of_an_extreme_is_the_first_where_nothing_is_better(name, kind, many, target):
    x = with_nan(kind, many)
    (found,) = results(name, x, (1,), target)
    key = np.where(np.isnan(x), np.inf, x if name == "argmax" else -x)
    numbers = np.where(np.isnan(x), -np.inf, x if name == "argmax" else -x).max(1, keepdims=True)
    np.testing.assert_array_equal(found, (key >= numbers).argmax(1))


@pytest.mark.parametrize("target", ["c", "X2_1204"])
@pytest.mark.parametrize(
    "kind,many,k,ascending", [("float32", 10, 2, True), ("float16", 16, 4, False), ("float16", 2, 7, True)]
)
def test_elements_in_order_end_with_what_is_no_number(kind, many, k, ascending, target):
    x = with_nan(kind, many)
    values, places = results("topk", x, (k, 1, "both", ascending), target)
    order = np.where(np.isnan(x), np.inf, x if ascending else -x).argsort(1, kind="stable")[:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("target", ["c", "X2_1204"])
@pytest.mark.parametrize("kind,many,k,ascending", [("float16", 96, 5, False), ("float16", 80, 3, True), ("uint8", 64, 3, True),
                                                   ("int8", 256, 8, False), ("int8", 300, 2, True), ("uint16", 64, 4, False)])  # fmt: skip
def test_values_alone_are_those_at_the_places(kind, many, k, ascending, target):
    draw = np.random.default_rng(0)
    if kind == "float16":
        x = draw.choice(np.array(["nan", "inf", "-inf", 0, -0.0, 6e-8, -6e-8, 2, -65504], kind), (6, many))
        x[::2] = draw.choice(np.array(["nan", "inf" if ascending else "-inf", -0.0, 0], kind), (3, many))
        x[0, 2:] = "nan"
    else:
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        x = draw.choice(np.array([low, low + 1, 0, 1, high - 1, high], kind), (6, many))
        x[0], x[1] = low, high
    key = np.where(np.isnan(x), np.inf, x if ascending else -x.astype("float64"))
    expected = np.take_along_axis(x, key.argsort(1, kind="stable")[:, :k], 1)
    (found,) = results("topk", x, (k, 1, "values", ascending), target)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[found == 0], np.signbit(expected)[found == 0])


def test_the_mean_of_nothing_is_not_a_number():
    assert np.isnan(check("mean", [np.zeros((0, 3), "float32")], (0,), "c")).all()
    with pytest.raises(te.ExpressionError, match="no mean of no whole numbers"):
        topi.mean(te.placeholder((0, 3), "int32"), 0)


SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 2.5, -2.5, 0.25, -0.25, 3e38, -3e38], "float32")
OF_ONE = """negative sign abs floor trunc asin atan asinh atanh sinh tanh relu elu selu celu hard_sigmoid hard_swish softplus
            leaky_relu clip""".split()
OPTIONS = {"leaky_relu": (0.25,), "clip": (-1, 2)}


@pytest.mark.parametrize("target", ["c", "X2_1204"])
def test_signs_of_zeros_and_what_is_not_a_number(target):
    """What operators of one element are of special ones, and the larger and the smaller of each two."""
    pairs = [a.reshape(-1) for a in np.meshgrid(SPECIAL, SPECIAL)]
    x, a, b = (te.placeholder(v.shape, "float32", name=n) for v, n in zip((SPECIAL, *pairs), "xab", strict=True))
    calls = [(n, (x, *OPTIONS.get(n, ())), (SPECIAL, *OPTIONS.get(n, ()))) for n in OF_ONE]
    calls += [(n, (a, b), tuple(pairs)) for n in ("maximum", "minimum")]
    outs = [OPERATORS[name].define(*given) for name, given, _ in calls]
    found = [np.zeros([d.value for d in t.shape], "float32") for t in outs]
    targets.build(topi.schedule(outs, target), [x, a, b, *outs], target)(SPECIAL, *pairs, *found)
    with np.errstate(all="ignore"):
        wanted = [OPERATORS[name].reference(*given) for name, _, given in calls]
    for (name, *_), got, want in zip(calls, found, wanted, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4, err_msg=name)
        np.testing.assert_array_equal(*(np.signbit(v[want == 0]) for v in (got, want)), err_msg=name)


@pytest.mark.parametrize("target", ["c", "X2_1204"])
@pytest.mark.parametrize("name,shape,options", [CASES[0], *((name, (5, 40), (1,)) for name in ("max", "argmin"))])
def test_extremes_with_what_is_not_a_number(name, shape, options, target):
    x = np.random.default_rng(0).choice(np.array([np.nan, np.inf, -np.inf, 1, 2], "float32"), shape)
    x[0] = np.nan
    check(name, [x], options, target)


@pytest.mark.parametrize("target", ["c", "X2_1204"])
@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_sums_for_means_of_whole_numbers_wrap_around(kind, target):
    x = (
        np.random.default_rng(0)
        .integers(*(int(v) for v in (np.iinfo(kind).min, np.iinfo(kind).max)), (1, 3, 4, 4))
        .astype(kind)
    )
    assert (check("mean", [x], ((2, 3),), target) != x.mean((2, 3)).astype(kind)).any()
    check("avg_pool2d", [x], (2, 2, 1, [0, 0, 0, 0], "avg"), target)

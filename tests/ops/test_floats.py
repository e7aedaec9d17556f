"""Floating-point results: one rounding where one is promised, IEEE specials, the device's NaN rules."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from compassc.ir.dtypes import dtype as kernel_type
from compassc.ops import arithmetic, core
from compassc.pysim import fp, pysim_impl
from compassc.pysim.memory import PyPointer, Storage
from compassc.pysim.values import of_numpy

BF16 = ml_dtypes.bfloat16
FLOATS = (np.float16, BF16, np.float32)
NAN, INF = math.nan, math.inf


def lanes(dtype):
    return 32 // np.dtype(dtype).itemsize


def sample(rng, dtype, scale=4.0):
    x = (rng.standard_normal(lanes(dtype)) * scale).astype(dtype)
    x[:6] = np.array([NAN, INF, -INF, 0.0, -0.0, 1.0], np.float32).astype(dtype)
    return rng.permutation(x)


def same(a, b):
    """Equal values with equal signs of zero; all NaNs are alike."""
    assert a.dtype == b.dtype
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    np.testing.assert_array_equal(a, b)
    zero = a == 0
    np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_rounds_once(run, rng, dtype):
    x, y = sample(rng, dtype), sample(rng, dtype)
    with np.errstate(all="ignore"):
        for name, f in (("vadd", np.add), ("vsub", np.subtract), ("vmul", np.multiply)):
            exact = f(x.astype(np.float64), y.astype(np.float64))
            same(run(name, x, y), exact.astype(np.float32).astype(dtype) if dtype is not np.float32 else f(x, y))
    same(run("abs", x), np.abs(x.astype(np.float32)).astype(dtype))


def test_float_division_is_ieee(run):
    x, y = np.array([1, -1, 0, 3] * 2, np.float32), np.array([0, 0, 0, 2] * 2, np.float32)
    same(run("vdiv", x, y), np.array([INF, -INF, NAN, 1.5] * 2, np.float32))


@pytest.mark.parametrize("dtype", FLOATS)
def test_rint_ties_to_even(run, dtype):
    x = np.zeros(lanes(dtype), dtype)
    x[:8] = [0.5, 1.5, 2.5, -0.4, -1.5, NAN, INF, -0.0]
    expected = np.zeros(lanes(dtype), dtype)
    expected[:8] = [0, 2, 2, -0.0, -2, NAN, INF, -0.0]
    same(run("rint", x), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_maximum_prefers_the_number_and_clip_keeps_nan(run, dtype):
    x = np.resize(np.array([NAN, 1, NAN, 5], np.float32), lanes(dtype)).astype(dtype)
    y = np.resize(np.array([2, NAN, NAN, 4], np.float32), lanes(dtype)).astype(dtype)
    same(run("max", x, y)[:4], np.array([2, 1, NAN, 5], np.float32).astype(dtype))
    same(run("min", x, y)[:4], np.array([2, 1, NAN, 4], np.float32).astype(dtype))
    same(run("clip", x, 2, 3)[:4], np.array([NAN, 2, NAN, 3], np.float32).astype(dtype))


def test_clip_bounds_of_infinity_are_the_largest_numbers(run):
    x = np.array([INF, -INF, 1, 2] * 2, np.float32)
    top = np.finfo(np.float32).max
    same(run("clip", x, -INF, INF), np.array([top, -top, 1, 2] * 2, np.float32))
    assert run("clip", np.float32(NAN), 0, 1) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_comparisons_with_nan(run, rng, dtype):
    x, y = sample(rng, dtype), sample(rng, dtype)
    a, b = x.astype(np.float64), y.astype(np.float64)
    for name, truth in (("vceq", a == b), ("vcneq", a != b), ("vcge", a >= b), ("vcgt", a > b), ("vcle", a <= b)):
        assert run(name, x, y).tolist() == truth.tolist()
    m = rng.integers(0, 2, len(x)).astype(bool)
    for name, truth in (("isnan", np.isnan(a)), ("isinf", np.isinf(a)), ("isfinite", np.isfinite(a))):
        assert run(name, x).tolist() == truth.tolist()
        assert run(name, x, mask=m).tolist() == (truth & m).tolist()


def test_scalar_class_tests_are_bools(run):
    assert run("isnan", np.float32(NAN)) is True and run("isfinite", np.float16(1)) is True


@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions(run, rng, dtype):
    x = rng.integers(-9, 9, 2 * lanes(dtype)).astype(np.float32).astype(dtype)
    m = rng.integers(0, 2, len(x)).astype(bool)
    out = run("vrpadd", x, mask=m)
    assert out.dtype == np.float32 and len(out) == 16
    assert out[0] == x[m].astype(np.float32).sum()
    half, on = x[: lanes(dtype)], m[: lanes(dtype)]
    on[0] = True
    assert run("vrpmax", half, mask=on)[0] == half[on].max()
    assert run("vrpmin", half, mask=on)[0] == half[on].min()


def test_index_is_an_integer_bit_pattern(run):
    token = core.TARGET.set("X3P")
    x = np.arange(8, dtype=np.float32)
    assert run("vrpmax", x, return_idx=True).view(np.int32)[1] == 7
    core.TARGET.reset(token)


@pytest.mark.parametrize("dtype", (np.float16, BF16))
def test_half_products(run, rng, dtype):
    x, y = ((rng.integers(-8, 8, 16) / 4).astype(dtype) for _ in range(2))
    acc = np.arange(8, dtype=np.float32)
    product = x.astype(np.float32) * y.astype(np.float32)
    kept = acc.copy()
    same(run("vfmae", acc, x, y, mask="5T"), np.where(np.arange(8) < 5, acc + product[::2], acc))
    same(run("vfmao", acc, x, y), acc + product[1::2])
    fours = product.reshape(4, 4).sum(axis=1)
    same(run("vqdot", x, y)[::2], fours)
    out = run("vqdpa", acc, x, y, mask="12T")
    same(out[::2], acc[::2] + np.array([*fours[:3], 0], np.float32))
    same(out[1::2], acc[1::2])
    same(acc, kept)


def exact_float32(value):
    """A Fraction rounded to float32: nearest, ties to even (normal range)."""
    if value == 0:
        return np.float32(0)
    exponent = math.floor(math.log2(abs(value))) - 30
    scale = Fraction(2) ** exponent
    bits = abs(value) / scale
    while bits >= 1 << 24:
        bits, exponent = bits / 2, exponent + 1
    return np.float32(math.copysign(math.ldexp(round(bits), exponent), value))


def test_fma_rounds_once(run, rng):
    x, y = (rng.standard_normal(2000).astype(np.float32) for _ in range(2))
    acc = (-(x.astype(np.float64) * y) * (1 + rng.choice([0, 2.0**-24, 2.0**-40], 2000))).astype(np.float32)
    acc[::2] = rng.standard_normal(1000) * 2.0 ** rng.integers(-40, 40, 1000)
    expected = [
        exact_float32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))
        for a, b, c in zip(x, y, acc, strict=True)
    ]
    same(fp.fma(x, y, acc), np.array(expected, np.float32))
    tie = np.float32(1 + 2**-23), np.float32(1 + 2**-23)
    assert fp.fma(np.array(tie[0]), np.array(tie[1]), np.array(np.float32(2**-70))) == exact_float32(
        Fraction(float(tie[0])) * Fraction(float(tie[1])) + Fraction(1, 2**70)
    )


MATH = {"exp": math.exp, "exp2": lambda v: 2.0**v, "tanh": math.tanh, "sin": math.sin, "cos": math.cos, "erf": math.erf}
POSITIVE = {"log": math.log, "sqrt": math.sqrt, "rsqrt": lambda v: 1 / math.sqrt(v)}


@pytest.mark.parametrize("name", [*MATH, *POSITIVE])
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_are_close_and_keep_the_type(run, rng, name, dtype):
    x = (rng.uniform(0.01, 9, lanes(dtype)) if name in POSITIVE else rng.uniform(-9, 9, lanes(dtype))).astype(dtype)
    out, f = run(name, x), {**MATH, **POSITIVE}[name]
    assert out.dtype == np.dtype(dtype)
    expected = np.array([f(v) for v in x.astype(np.float64).tolist()])
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=2 * float(ml_dtypes.finfo(dtype).eps), atol=1e-7)


@pytest.mark.parametrize(
    "name, values, expected",
    [
        ("exp", [-INF, INF, NAN, 89, 88.5, -88, 0, -0.0], [0, INF, NAN, INF, INF, 0, 1, 1]),
        ("log", [0.0, -0.0, -1, INF, 1, NAN, 1, 1], [-INF, -INF, NAN, INF, 0, NAN, 0, 0]),
        ("tanh", [INF, -INF, -0.0, NAN, 0, 0, 0, 0], [1, -1, -0.0, NAN, 0, 0, 0, 0]),
        ("sin", [INF, -INF, NAN, -0.0, 0, 0, 0, 0], [NAN, NAN, NAN, -0.0, 0, 0, 0, 0]),
        ("rsqrt", [0.0, -0.0, INF, -INF, -1, NAN, 4, 1], [INF, -INF, 0.0, NAN, NAN, NAN, 0.5, 1]),
        ("sqrt", [-1, -0.0, INF, 4, NAN, 9, 0, 1], [NAN, -0.0, INF, 2, NAN, 3, 0, 1]),
        ("floor", [1.5, -1.5, -0.0, INF, -INF, NAN, 2, -0.5], [1, -2, -0.0, INF, -INF, NAN, 2, -1]),
        ("ceil", [1.5, -1.5, -0.0, INF, -INF, NAN, 2, -0.5], [2, -1, -0.0, INF, -INF, NAN, 2, -0.0]),
        ("exp2", [3, -INF, INF, 200, NAN, 0, -1, 10], [8, 0, INF, INF, NAN, 1, 0.5, 1024]),
        ("erf", [INF, -INF, -0.0, NAN, 0, 0, 0, 0], [1, -1, -0.0, NAN, 0, 0, 0, 0]),
    ],
)
def test_special_values(run, name, values, expected):
    same(run(name, np.array(values, np.float32)), np.array(expected, np.float32))


def test_pow(run):
    x = np.array([NAN, 1, -2, -2, 0, -0.0, 2, 1e30], np.float32)
    y = np.array([0, NAN, 0.5, 3, -1, -2, 10, 2], np.float32)
    same(run("pow", x, y), np.array([1, 1, NAN, -8, INF, INF, 1024, INF], np.float32))
    out = run("pow", np.float16(3), 2)
    assert out == 9 and out.dtype == np.float16


def test_scalar_forms_follow_the_common_type(run):
    assert run("max", np.float16(1), 2.0).dtype == np.float32
    assert run("max", np.uint8(1), 300).dtype == np.int32
    assert run("exp", 0.0) == 1
    assert run("fma", np.float32(1), 2, 3.0) == 7


@pytest.mark.parametrize("dtype", (np.float16, BF16))
@pytest.mark.parametrize("name", ("vmml", "vmma"))
def test_matrix_product_in_memory(rng, dtype, name):
    x, y = ((rng.integers(-8, 8, (4, 4)) / 4).astype(dtype) for _ in range(2))
    memory = np.arange(20, dtype=np.float32)
    ptr = PyPointer(Storage(memory.view(np.uint8), "memory"), 8, kernel_type("float32"), "global")
    pysim_impl(core.get(name))(ptr, of_numpy(x.reshape(16)), of_numpy(y.T.reshape(16)))
    product = (x.astype(np.float32) @ y.astype(np.float32)).reshape(16)
    expected = np.arange(20, dtype=np.float32)
    expected[2:18] = product + (expected[2:18] if name == "vmma" else 0)
    same(memory, expected)


@pytest.mark.parametrize("dtype", (np.float16, BF16))
def test_vqdot_sums_in_double_in_lane_order_and_rounds_once(run, rng, dtype):
    """Any bits: products cancel, overflow float32, are subnormal, infinite or NaN."""
    for _ in range(50):
        x, y = (rng.integers(0, 1 << 16, 16).astype(np.uint16).view(dtype) for _ in range(2))
        with np.errstate(all="ignore"):
            p = (x.astype(np.float64) * y.astype(np.float64)).reshape(4, 4)
            wanted = (((p[:, 0] + p[:, 1]) + p[:, 2]) + p[:, 3]).astype(np.float32)
        found = run("vqdot", x, y)[::2]
        assert ((found.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(found) & np.isnan(wanted))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=str)
@pytest.mark.parametrize("rest", [2, 6, 14])
def test_a_sum_of_part_of_a_register_is_that_with_zeros_behind(dtype, rest):
    """Vectors before they are cut into registers may have any number of lanes."""
    whole, total = lanes(dtype), arithmetic.vrpadd.definition
    x = np.random.default_rng(rest).standard_normal((3, whole + rest)).astype(dtype)
    padded = np.pad(x, ((0, 0), (0, -rest % whole)))
    shorter, longer = (kernel_type("float32").with_lanes(n.shape[1]) for n in (x, padded))
    np.testing.assert_array_equal(total(x, shorter)[:, 0], total(padded, longer)[:, 0])

"""Integer results against unbounded Python integers: wrap, clip, round and place exactly as documented."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

INTS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
SIGNED = INTS[:3]


def lanes(dtype):
    return 32 // np.dtype(dtype).itemsize


def bounds(dtype):
    info = np.iinfo(dtype)
    return info.min, info.max


def sample(rng, dtype, n=None):
    """Random lanes, with the type's edges and small numbers in front."""
    low, high = bounds(dtype)
    x = rng.integers(low, high, n or lanes(dtype), dtype=dtype, endpoint=True)
    edges = np.array([low, high, low, high, 0, 1, low + 1, high - 1], dtype)
    x[: len(edges)] = rng.permutation(edges)
    return x


def wrap(value, dtype):
    bits = np.dtype(dtype).itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.startswith("int") and value >> (bits - 1) else value


def clip(value, dtype):
    low, high = bounds(dtype)
    return min(max(value, low), high)


def truncated(a, b):
    return 0 if b == 0 else int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))


def round_even(value):
    return round(value)  # Python rounds a Fraction to nearest, ties to even


def check(out, expected, dtype):
    assert out.dtype == np.dtype(dtype)
    assert out.tolist() == expected


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("fit, options", [(wrap, {}), (clip, {"saturate": True})])
def test_sum_and_difference(run, rng, dtype, fit, options):
    x, y = sample(rng, dtype), sample(rng, dtype)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    check(run("vadd", x, y, **options), [fit(a + b, dtype) for a, b in pairs], dtype)
    check(run("vsub", x, y, **options), [fit(a - b, dtype) for a, b in pairs], dtype)


@pytest.mark.parametrize("bits", (8, 16, 32))
@pytest.mark.parametrize("out_sign, prefix", [("u", "uint"), ("s", "int")])
def test_mixed_signs_use_the_exact_values(run, rng, bits, out_sign, prefix):
    x, y, dtype = sample(rng, f"int{bits}"), sample(rng, f"uint{bits}"), f"{prefix}{bits}"
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    for name, f in (("vadd", lambda a, b: a + b), ("vsub", lambda a, b: a - b)):
        check(run(name, x, y, out_sign=out_sign), [wrap(f(a, b), dtype) for a, b in pairs], dtype)
        check(run(name, x, y, out_sign=out_sign, saturate=True), [clip(f(a, b), dtype) for a, b in pairs], dtype)
    if bits > 8:
        check(run("vmul", x, y, out_sign=out_sign), [wrap(a * b, dtype) for a, b in pairs], dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_pairwise_operations(run, rng, dtype):
    x, y = sample(rng, dtype), sample(rng, dtype)
    both = x.tolist() + y.tolist()
    pairs = list(zip(both[::2], both[1::2], strict=True))
    check(run("vaddh", x, y), [clip(a + b, dtype) for a, b in pairs], dtype)
    check(run("vsubh", x, y), [clip(a - b, dtype) for a, b in pairs], dtype)
    check(run("vmaxh", x, y), [max(p) for p in pairs], dtype)
    check(run("vminh", x, y), [min(p) for p in pairs], dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_absolute_value(run, rng, dtype):
    x = sample(rng, dtype)
    check(run("abs", x), [wrap(abs(a), dtype) for a in x.tolist()], dtype)
    check(run("abs", x, saturate=True), [clip(abs(a), dtype) for a in x.tolist()], dtype)
    assert run("abs", x[0]) == wrap(abs(int(x[0])), dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_division_truncates_and_has_no_traps(run, rng, dtype):
    x, y = sample(rng, dtype), sample(rng, dtype)
    x[8:12], y[8:12] = bounds(dtype)[0], np.array([0, -1, 1, 3]).astype(dtype) if lanes(dtype) > 8 else y[8:12]
    for a, b in ((x, y), (np.full_like(x, bounds(dtype)[0]), np.full_like(y, np.array(-1).astype(dtype)))):
        pairs = list(zip(a.tolist(), b.tolist(), strict=True))
        check(run("vdiv", a, b), [clip(truncated(p, q), dtype) for p, q in pairs], dtype)
        check(run("vmod", a, b), [0 if q == 0 else p - truncated(p, q) * q for p, q in pairs], dtype)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("name, start", [("vmull", 0), ("vmulh", 1)])
def test_widening_product(run, rng, dtype, name, start):
    x, y = sample(rng, dtype), sample(rng, dtype)
    half = len(x) // 2
    chosen = slice(start * half, start * half + half)
    products = [a * b for a, b in zip(x[chosen].tolist(), y[chosen].tolist(), strict=True)]
    bits = np.dtype(dtype).itemsize * 8
    if bits == 32:
        expected = [wrap(p >> shift, dtype) for p in products for shift in (0, 32)]
        check(run(name, x, y), expected, dtype)
    else:
        check(run(name, x, y), products, dtype.replace(str(bits), str(bits * 2)))


def test_widening_product_masks_source_lanes(run):
    x = np.arange(32, dtype=np.int8)
    out = run("vmulh", x, x, mask=[False] * 16 + [True] + [False] * 15, r=-5)
    assert out.tolist() == [256] + [-5] * 15
    y = np.arange(8, dtype=np.int32)
    assert run("vmull", y, y, mask="1F2T5F", r=9).tolist() == [9, 9, 1, 0, 4, 0, 9, 9]


@pytest.mark.parametrize("x_type, y_type", [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")])
def test_dot_products_clip_the_exact_sum_once(run, rng, x_type, y_type):
    x, y, active = sample(rng, x_type), sample(rng, y_type), rng.integers(0, 2, 32).astype(bool)
    code = "uint" if x_type == y_type == "uint8" else "int"
    products = [a * b * m for a, b, m in zip(x.tolist(), y.tolist(), active.tolist(), strict=True)]
    twos = [sum(products[i : i + 2]) for i in range(0, 32, 2)]
    fours = [sum(products[i : i + 4]) for i in range(0, 32, 4)]
    check(run("vdot", x, y, mask=active), [clip(s, f"{code}16") for s in twos], f"{code}16")
    check(run("vqdot", x, y, mask=active), [clip(s, f"{code}32") for s in fours], f"{code}32")
    acc16, acc32 = sample(rng, f"{code}16"), sample(rng, f"{code}32")
    expected = [clip(a + s, f"{code}16") for a, s in zip(acc16.tolist(), twos, strict=True)]
    check(run("vdpa", acc16, x, y, mask=active), expected, f"{code}16")
    expected = [clip(a + s, f"{code}32") for a, s in zip(acc32.tolist(), fours, strict=True)]
    check(run("vqdpa", acc32, x, y, mask=active), expected, f"{code}32")


def test_dot_saturates_at_the_largest_sum(run):
    x = np.full(32, -128, np.int8)
    assert run("vdot", x, x).tolist() == [32767] * 16


@pytest.mark.parametrize("dtype", INTS)
def test_sum_of_lanes_wraps(run, rng, dtype):
    x, active = sample(rng, dtype, 2 * lanes(dtype)), rng.integers(0, 2, 2 * lanes(dtype)).astype(bool)
    assert run("vrpadd", x)[0] == wrap(sum(x.tolist()), dtype)
    assert run("vrpadd", x, mask=active)[0] == wrap(sum(x[active].tolist()), dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_clip_limits_literals_first(run, rng, dtype):
    x = sample(rng, dtype)
    assert run("clip", x, -(10**12), 10).tolist() == [min(a, 10) for a in x.tolist()]
    assert run("clip", x, 3, 10, mask="2T").tolist() == [min(max(a, 3), 10) for a in x.tolist()[:2]] + x.tolist()[2:]
    assert run("clip", x[0], 3, 10) == min(max(int(x[0]), 3), 10)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("with_round", (False, True))
def test_shift_right(run, rng, dtype, with_round):
    bits = np.dtype(dtype).itemsize * 8
    x, s = sample(rng, dtype), rng.integers(0, bits + 3, lanes(dtype)).astype(dtype)
    s[-1] = np.array(-1).astype(dtype)
    amounts = [v & ((1 << bits) - 1) for v in s.tolist()]
    shift = (lambda a, n: round_even(Fraction(a, 1 << min(n, 99)))) if with_round else (lambda a, n: a >> n)
    expected = [shift(a, n) for a, n in zip(x.tolist(), amounts, strict=True)]
    check(run("vsr", x, s, with_round=with_round), expected, dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_shift_left_and_rotate(run, rng, dtype):
    bits = np.dtype(dtype).itemsize * 8
    x, s = sample(rng, dtype), rng.integers(0, bits + 3, lanes(dtype)).astype(dtype)
    pairs = list(zip(x.tolist(), s.tolist(), strict=True))
    check(run("vsl", x, s), [wrap(a << n, dtype) for a, n in pairs], dtype)
    if dtype in SIGNED:
        check(run("vsl", x, s, saturate=True), [clip(a << min(n, bits), dtype) for a, n in pairs], dtype)
    u = [a & ((1 << bits) - 1) for a in x.tolist()]
    rotated = [wrap((a >> n % bits) | (a << (bits - n % bits)), dtype) for a, n in zip(u, s.tolist(), strict=True)]
    check(run("vror", x, s), rotated, dtype)


@pytest.mark.parametrize(
    "dtype, to_h", [("int16", False), ("uint16", False)] + [(d, h) for d in ("int32", "uint32") for h in (0, 1)]
)
@pytest.mark.parametrize("out_sign", ("s", "u"))
@pytest.mark.parametrize("saturate", (False, True))
@pytest.mark.parametrize("with_round", (False, True))
def test_narrowing_shift(run, rng, dtype, to_h, out_sign, saturate, with_round):
    bits, out_bits = np.dtype(dtype).itemsize * 8, 16 if to_h else 8
    x, n, active = sample(rng, dtype), rng.integers(0, bits + 2, lanes(dtype)).astype(dtype), "1F1T2F9T"
    out_type = ("int" if out_sign == "s" else "uint") + str(out_bits)
    on = ([False, True, False, False] + [True] * 9)[: len(x)] + [False] * max(0, len(x) - 13)
    mask = on if len(x) == 8 else active
    values = [
        (round_even(Fraction(a, 1 << k)) if with_round else a >> k) if m else 0
        for a, k, m in zip(x.tolist(), n.tolist(), on, strict=True)
    ]
    expected = np.zeros(len(x) * bits // out_bits, out_type)
    expected[:: bits // out_bits] = [(clip if saturate else wrap)(v, out_type) for v in values]
    out = run("vnsr", x, n, mask=mask, saturate=saturate, out_sign=out_sign, with_round=with_round, to_h=bool(to_h))
    check(out, expected.tolist(), out_type)
    if saturate and with_round:
        check(run("vnsrsr", x, n, mask=mask, out_sign=out_sign, to_h=bool(to_h)), expected.tolist(), out_type)


@pytest.mark.parametrize("dtype", INTS)
def test_bits_of_an_element(run, rng, dtype):
    bits = np.dtype(dtype).itemsize * 8
    x = sample(rng, dtype)
    text = [f"{a & ((1 << bits) - 1):0{bits}b}" for a in x.tolist()]
    check(run("clz", x), [bits - len(t.lstrip("0")) for t in text], dtype)
    check(run("vpcnt", x), [t.count("1") for t in text], dtype)
    check(run("vbrevs", x), [wrap(int(t[::-1], 2), dtype) for t in text], dtype)
    assert run("clz", x[0]) == bits - len(text[0].lstrip("0"))
    assert run("vpcnt", x, out_sign="u").dtype.kind == "u"
    if dtype in SIGNED:
        same = [len(t) - len(t.lstrip(t[0])) - 1 for t in text]
        check(run("vcls", x), same, dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_logic(run, rng, dtype):
    x, y = sample(rng, dtype), sample(rng, dtype)
    check(run("vand", x, y), (x & y).tolist(), dtype)
    check(run("vor", x, y), (x | y).tolist(), dtype)
    check(run("vxor", x, y), (x ^ y).tolist(), dtype)
    check(run("vinv", x), (~x).tolist(), dtype)


def test_logic_of_masks_is_false_where_inactive(run, rng):
    x, y, m = (rng.integers(0, 2, 16).astype(bool) for _ in range(3))
    assert run("vand", x, y, mask=m).tolist() == (x & y & m).tolist()
    assert run("vor", x, y, mask=m).tolist() == ((x | y) & m).tolist()
    assert run("vxor", x, y, mask=m).tolist() == ((x ^ y) & m).tolist()
    assert run("vinv", x, mask=m).tolist() == (~x & m).tolist()
    assert run("vand", x, True).tolist() == x.tolist()
    assert run("vall", x | ~x) is True and run("vall", x & ~x) is False
    assert run("vany", x & ~x) is False and run("vany", ~x | x) is True


@pytest.mark.parametrize("dtype", INTS)
def test_comparisons_and_extremes(run, rng, dtype):
    x, y, m = sample(rng, dtype), sample(rng, dtype), rng.integers(0, 2, lanes(dtype)).astype(bool)
    y[::3] = x[::3]
    for name, truth in (("vceq", x == y), ("vcneq", x != y), ("vcge", x >= y), ("vcgt", x > y), ("vcle", x <= y)):
        check(run(name, x, y), truth.tolist(), bool)
        check(run(name, x, y, mask=m), (truth & m).tolist(), bool)
    check(run("max", x, y), np.maximum(x, y).tolist(), dtype)
    check(run("min", x, y, mask=m, r=1), np.where(m, np.minimum(x, y), 1).tolist(), dtype)


@pytest.mark.parametrize("dtype", INTS)
def test_extreme_of_a_register(run, rng, dtype):
    x, m = sample(rng, dtype), rng.integers(0, 2, lanes(dtype)).astype(bool)
    m[3] = True
    found = np.where(m)[0]
    for name, best in (("vrpmax", np.argmax), ("vrpmin", np.argmin)):
        index = found[best(x[found])]
        assert run(name, x, mask=m)[0] == x[index]
        from compassc.ops import core

        token = core.TARGET.set("X3P")
        assert run(name, x, mask=m, return_idx=True)[:2].tolist() == [x[index], index]
        core.TARGET.reset(token)


def test_r_decides_inactive_lanes_and_no_r_ignores_the_mask(run):
    x = np.arange(8, dtype=np.int32)
    assert run("vadd", x, 1, mask="3T5F", r=-7).tolist() == [1, 2, 3] + [-7] * 5
    assert run("vadd", x, 1, mask="3T5F").tolist() == (x + 1).tolist()
    assert run("vsub", x.astype(np.uint32), 1, mask="8F", r=-1).tolist() == [2**32 - 1] * 8


def test_ceildiv_follows_its_formula(run):
    for a, b in ((7, 2), (8, 2), (0, 5), (-8, 2), (-7, -2), (-7, 2)):
        assert run("ceildiv", np.int32(a), np.int32(b)) == truncated(a + b - 1, b)
    assert run("ceildiv", np.uint8(200), np.uint8(100)) == 0
    out = run("ceildiv", np.uint8(200), 300)
    assert out == 1 and out.dtype == np.int32

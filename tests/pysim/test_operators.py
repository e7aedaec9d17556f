"""Python operators on typed values: the compiled meaning, against plain Python integers and NumPy floats."""

import itertools
import math
import operator

import ml_dtypes
import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.ir.dtypes import dtype
from compassc.ops.numeric import np_dtype
from compassc.ops.typing import match_operator
from compassc.pysim.values import PyVar, pyvar

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
FLOATS = ["float16", "bfloat16", "float32"]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def wrap(v, t):
    v &= (1 << t.bits) - 1
    return v - (1 << t.bits) if t.is_int and v >> (t.bits - 1) else v


def c_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def corners(t):
    low, high = t.range()
    return [v for v in (low, low + 1, -7, -2, -1, 0, 1, 2, 3, 8, 100, high - 1, high) if low <= v <= high]


def scalar(v, t):
    return PyVar(np_dtype(t).type(v), t)


def lanes(values, t):
    return PyVar(np.array(values, np_dtype(t)), t.with_lanes(len(values)))


EXACT = {
    operator.add: lambda a, b, t: wrap(a + b, t),
    operator.sub: lambda a, b, t: wrap(a - b, t),
    operator.mul: lambda a, b, t: wrap(a * b, t),
    operator.and_: lambda a, b, t: wrap(a & b, t),
    operator.or_: lambda a, b, t: wrap(a | b, t),
    operator.xor: lambda a, b, t: wrap(a ^ b, t),
}
DIVISION = {  # of lanes, whose quotient saturates
    operator.truediv: lambda a, b, t: min(c_div(a, b), t.range()[1]) if b else 0,
    operator.floordiv: lambda a, b, t: min(c_div(a, b), t.range()[1]) if b else 0,
    operator.mod: lambda a, b, t: a - b * c_div(a, b) if b else 0,
}
SCALAR_DIVISION = {
    operator.truediv: lambda a, b, t: wrap(c_div(a, b), t),
    operator.floordiv: lambda a, b, t: wrap(c_div(a, b), t),
    operator.mod: DIVISION[operator.mod],
}


@pytest.mark.parametrize(("ta", "tb"), [*itertools.product(INTS, repeat=2)])
def test_integer_arithmetic(ta, tb):
    ta, tb = dtype(ta), dtype(tb)
    common = match_operator(ta, tb)
    pairs = list(itertools.product(corners(ta), corners(tb)))
    va, vb = lanes([p[0] for p in pairs], ta), lanes([p[1] for p in pairs], tb)
    for op, meaning in {**EXACT, **DIVISION}.items():
        if op is operator.mul and common.bits == 8:
            continue  # the hardware has no such product of vectors
        expected = [meaning(wrap(a, common), wrap(b, common), common) for a, b in pairs]
        out = op(va, vb)
        assert out.dtype is common.with_lanes(len(pairs))
        assert out.value.dtype == np_dtype(common)
        assert out.value.tolist() == expected
        defined = [(a, b) for a, b in pairs if op in EXACT or wrap(b, common)]
        singles = [op(scalar(a, ta), scalar(b, tb)) for a, b in defined]
        assert all(s.dtype is common and s.value.dtype == np_dtype(common) for s in singles)
        exact = {**EXACT, **SCALAR_DIVISION}[op]
        assert [int(s) for s in singles] == [exact(wrap(a, common), wrap(b, common), common) for a, b in defined]


@pytest.mark.parametrize("t", INTS)
def test_constant_powers_of_two_floor_on_scalars_and_truncate_on_vectors(t):
    t = dtype(t)
    for v, k in itertools.product(corners(t), (1, 2, 8)):
        x = scalar(v, t)
        assert (int(x // k), int(x % k)) == (v // k, v % k)
        assert (x // k).dtype is t
        wide = lanes([v] * 4, t)
        assert (wide // k).value.tolist() == [c_div(v, k)] * 4
    x = scalar(min(100, t.range()[1]), t)
    assert int(x // 3) == 33
    assert int(scalar(t.range()[0], t) % 3) == math.fmod(t.range()[0], 3)


@pytest.mark.parametrize("t", INTS)
def test_shifts(t):
    t = dtype(t)
    for v, n in itertools.product(corners(t), range(32)):
        x = scalar(v, t)
        assert int(x << n) == wrap(v << n, t)
        assert int(x >> n) == wrap(v >> n, t)
        assert (x << n).dtype is t
    for n in (0, 3, t.bits - 1):
        wide = lanes(corners(t), t)
        assert (wide << n).value.tolist() == [wrap(v << n, t) for v in corners(t)]
        assert (wide >> n).value.tolist() == [v >> n for v in corners(t)]
    assert (1 << scalar(3, t)).dtype == "int32"
    assert int(scalar(1, dtype("int32")) << scalar(33, dtype("int32"))) == 2


@pytest.mark.parametrize("t", FLOATS)
def test_float_arithmetic_rounds_each_operation(t):
    t = dtype(t)
    kind = np_dtype(t)
    a, b = np.array([0.1, 3.5, -7.25, 65000], kind), np.array([0.3, 1.1, 2.0, 1000], kind)
    for op in (operator.add, operator.sub, operator.mul, *([operator.truediv] if t.bits == 32 else [])):
        out = op(PyVar(a, t.with_lanes(4)), PyVar(b, t.with_lanes(4)))
        expected = op(a.astype(np.float64), b.astype(np.float64)).astype(np.float32).astype(kind)
        assert out.dtype is t.with_lanes(4)
        assert out.value.astype(np.float64).tolist() == expected.astype(np.float64).tolist()


def test_literals_adapt():
    i8, f16 = dtype("int8"), dtype("float16")
    assert (scalar(1, i8) + 1).dtype is i8
    assert (scalar(1, i8) + 200).dtype == "int32"
    assert (lanes([1, 2], i8) + 200).dtype == "int32x2"
    assert (scalar(1, f16) + 1.5).dtype == "float32"
    assert (scalar(1, f16) + 1).dtype is f16
    assert (1.5 + lanes([1, 2], dtype("int32"))).dtype == "float32x2"
    assert (scalar(1, dtype("uint8")) > -1) is True


def test_comparisons_and_truth():
    i32 = dtype("int32")
    v = lanes([1, 2, 3], i32)
    assert (v > 2).dtype == "boolx3"
    assert (v > 2).value.tolist() == [False, False, True]
    assert (v == scalar(2, i32)).value.tolist() == [False, True, False]
    assert (scalar(1, i32) < 2) is True
    assert ~(v > 2) & (v > 1) is not None
    assert (~(v > 2) & (v > 1)).value.tolist() == [False, True, False]
    assert not scalar(0, i32)
    assert scalar(-1, i32)
    with pytest.raises(CompassError, match="truth value"):
        bool(v)


def test_lanes_are_read_and_written():
    v = lanes([1, 2, 3], dtype("int8"))
    assert v[1].dtype == "int8"
    v[2] = scalar(300, dtype("int32"))
    assert v.value.tolist() == [1, 2, 44]
    for wrong, message in (
        (lambda: v[3], "lane 3 of int8x3"),
        (lambda: v[-1], "lane -1"),
        (lambda: v.__setitem__(0, 300), "300 does not fit int8"),
        (lambda: v[1.0], "must be an integer"),
        (lambda: v.__setitem__(0, 1.5), "float32 cannot be stored"),
        (lambda: scalar(1, dtype("int8"))[0], "cannot be indexed"),
    ):
        with pytest.raises(CompassError, match=message):
            wrong()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (lambda i, f, v: f // 2, "needs integers"),
        (lambda i, f, v: f & 1, "needs integers"),
        (lambda i, f, v: f << 1, "a shift needs integers"),
        (lambda i, f, v: i << 32, "from 0 to 31"),
        (lambda i, f, v: i / 0, "constant zero"),
        (lambda i, f, v: v % 0, "constant zero"),
        (lambda i, f, v: i**2, "floating-point"),
        (lambda i, f, v: v + lanes([1, 2], dtype("int32")), "different lanes"),
        (lambda i, f, v: -scalar(1, dtype("uint8")), "cannot be negated"),
        (lambda i, f, v: ~f, "integer or a mask"),
        (
            lambda i, f, v: v + lanes([1, 2, 3], dtype("float16")) * lanes([1, 2, 3], dtype("int8")),
            "no vector conversion",
        ),
    ],
)
def test_what_the_compiler_refuses(expression, message):
    with pytest.raises(CompassError, match=message):
        expression(scalar(5, dtype("int32")), scalar(5, dtype("float32")), lanes([1, 2, 3], dtype("int32")))


def test_values_mix_with_python_and_numpy():
    n = scalar(3, dtype("int32"))
    assert list(range(n)) == [0, 1, 2]
    assert [10, 20, 30, 40][n] == 40
    assert (np.int32(4) + n).dtype == "int32"
    assert np.asarray(lanes([1, 2], dtype("int32"))).tolist() == [1, 2]
    assert [0] * n == [0, 0, 0]
    assert pyvar(np.array([1, 2], ml_dtypes.bfloat16)).dtype == "bfloat16x2"
    assert (int(n), float(n), len(lanes([1, 2], dtype("int8")))) == (3, 3.0, 2)
    assert n.hex == "0x00000003"

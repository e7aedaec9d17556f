"""Functions that are made of the NPU's operations: against NumPy, on the host and in the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te

ENDS = [0.0, 1e-6, -1e-6, np.nan]
WIDE = [*np.linspace(-5, 5, 120), 1e6, -1e30, np.inf, -np.inf, *ENDS]
UNIT = [*np.linspace(-1, 1, 121), 0.9999999, 1.5, -1.5, *ENDS]
EXPONENTS = [*np.linspace(-5, 5, 120), 1e-30, -1e-10, 79.9, -89.4, 88.4, 90.0, np.inf, -np.inf, *ENDS]
FUNCTIONS = {
    "sinh": EXPONENTS,
    "cosh": EXPONENTS,
    "atan": WIDE,
    "asinh": WIDE,
    "asin": UNIT,
    "acos": UNIT,
    "atanh": UNIT,
    "acosh": [1.0, 1.00001, 1499, *WIDE],
}


def _applied(name, a):
    return lambda i: getattr(te, name)(a[i])


@pytest.mark.parametrize("target", ["llvm -opt-level=1", "X2_1204"])
def test_inverse_functions_have_the_precision_of_float32(target):
    tensors, found, arrays = [], [], []
    for name, values in FUNCTIONS.items():
        a = te.placeholder((len(values),), name=f"{name}_in")
        tensors.append(a)
        found.append(te.compute(a.shape, _applied(name, a), name=name))
        arrays.append(np.array(values, "float32"))
    results = [np.zeros_like(x) for x in arrays]
    te.build(te.create_schedule(found), [*tensors, *found], target)(*arrays, *results)
    for name, x, y in zip(FUNCTIONS, arrays, results):
        with np.errstate(all="ignore"):
            wanted = getattr(np, f"arc{name[1:]}" if name[0] == "a" else name)(x.astype("float64")).astype("float32")
        np.testing.assert_allclose(y, wanted, rtol=3e-7, atol=1e-30, err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_bits_are_counted(dtype):
    given = np.random.default_rng(0).integers(-120 if dtype[0] == "i" else 0, 120, 50).astype(dtype)
    a = te.placeholder((50,), dtype, name="a")
    b = te.compute((50,), lambda i: te.popcount(a[i]), name="b")
    found = np.zeros(50, dtype)
    te.build(te.create_schedule(b), [a, b], "llvm -opt-level=0")(given, found)
    assert list(found) == [(int(x) & ((1 << 8 * x.itemsize) - 1)).bit_count() for x in given]


def test_sums_of_exponentials_do_not_run_over():
    x, y = (np.array(v, "float32") for v in ([0, -100, np.inf, 50, -np.inf], [0, 100, np.inf, 49, -np.inf]))
    a, b = te.placeholder((5,), name="a"), te.placeholder((5,), name="b")
    c = te.compute((5,), lambda i: te.logaddexp(a[i], b[i]), name="c")
    found = np.zeros(5, "float32")
    te.build(te.create_schedule(c), [a, b, c], "llvm -opt-level=0")(x, y, found)
    np.testing.assert_allclose(found, np.logaddexp(x, y), rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x, f: te.atan(x), "te.atan needs a float16, float32 or float64, got int32"),
        (lambda x, f: te.fmod(x, f), "te.fmod has no form for int32 and float32"),
        (lambda x, f: te.popcount(f), "te.popcount needs a whole number, got float32"),
    ],
)
def test_other_types_are_refused(wrong, words):
    with pytest.raises(te.ExpressionTypeError, match=words):
        wrong(te.var("x"), te.var("f", "float32"))

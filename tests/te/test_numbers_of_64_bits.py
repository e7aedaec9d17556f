"""Expressions of 64 bits between tensors of 32: the NPU computes them one by one, and refuses what it has no place for."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te
from compassc.ir.operators import binary

OPERATORS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "bitxor": np.bitwise_xor,
}


@pytest.mark.parametrize("kind", ["int64", "uint64"])
@pytest.mark.parametrize("target", ["X2_1204", "llvm"])
def test_operators_are_those_of_numpy(kind, target):
    """The middle 32 bits of each result, and how it compares."""
    draw = np.random.default_rng(0)
    x, y = draw.integers(-(2**31), 2**31, (2, 48)).astype("int32")
    y[:6] = 1, -1, 7, -7, 2**31 - 1, -(2**31)
    a, b = (te.placeholder((48,), "int32", name=n) for n in "ab")

    def wide(t, i):
        return t[i].astype(kind)

    def middle(op):
        return te.compute((48,), lambda i: (binary(op, wide(a, i), wide(b, i)) >> 7).astype("int32"), name=op)

    outs = [middle(op) for op in OPERATORS]
    outs.append(te.compute((48,), lambda i: wide(a, i) < wide(b, i) + te.const(3, kind), name="below"))
    s = te.create_schedule([t.op for t in outs])
    for t in outs:
        s[t].vectorize(s[t].split(t.op.axis[0], factor=8)[1])
    found = [np.zeros(48, str(t.dtype)) for t in outs]
    targets.build(s, [a, b, *outs], target)(x, y, *found)
    wx, wy = x.astype(kind), y.astype(kind)
    wanted = [(f(wx, wy) >> np.array(7, kind)).astype("int32") for f in OPERATORS.values()]
    for t, f, w in zip(outs, found, [*wanted, wx < wy + np.array(3, kind)], strict=True):
        np.testing.assert_array_equal(f, w, err_msg=t.name)


def stored(kind):
    a = te.placeholder((8,), kind, name="a")
    return a, te.compute((8,), lambda i: a[i].astype("int32"), name="b")


def constant(value, kind):
    a = te.placeholder((8,), "int32", name="a")
    return a, te.compute((8,), lambda i: (a[i].astype(kind) * te.const(value, kind)).astype("int32"), name="b")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: stored("int64"), "'a' has elements of type int64"),
        (lambda: stored("float64"), "'a' has elements of type float64"),
        (lambda: constant(1 << 40, "int64"), "1099511627776 has more than 32 bits"),
        (lambda: constant(2.1, "float64"), "2.1 of type float64"),
    ],
)
def test_what_has_no_place_is_refused_with_the_line(make, said):
    a, b = make()
    with pytest.raises(te.LowerError, match=said) as caught:
        targets.build(te.create_schedule(b.op), [a, b], "X2_1204")
    assert caught.value.span.file == __file__ and caught.value.help

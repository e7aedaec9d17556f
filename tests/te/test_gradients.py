"""Gradients of tensor expressions are what differences say, and those of whole numbers exact."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import targets, te, topi


def product(a, b):
    k = te.reduce_axis((0, 5), "k")
    return te.compute((4, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))


def odd_sum(a):
    k = te.reduce_axis((0, 6), "k")
    return te.compute((3,), lambda i: te.sum(a[i, k] * a[0, k], axis=k, where=k % 2 == 1))


def functions(a):
    return te.compute(
        (2, 3),
        lambda i, j: te.exp(a[i, j]) * a[j, i] + te.log(a[i, j]) - te.tanh(a[i, 0]) / a[i, j] + te.sigmoid(a[1, j])
        + te.sqrt(a[i, j]) * te.rsqrt(a[j, i]) + te.power(a[i, j], a[j, i]) + te.sin(a[i, j]) * te.cos(a[i, i]) + te.erf(a[i, j]),
    )  # fmt: skip


def chosen(a):
    return te.compute((6,), lambda i: te.Select(i < 3, a[i] * a[5 - i], te.abs(a[i]) + te.floor(a[0])))


CASES = [
    (product, (4, 5), (5, 6)),
    (odd_sum, (3, 6)),
    (functions, (3, 3)),
    (chosen, (6,)),
    (lambda a, w: topi.nn.conv2d(a, w, 2, 1, 1), (1, 2, 5, 5), (2, 2, 3, 3)),
    (lambda a: topi.nn.relu(topi.nn.dense(a, a)), (3, 4)),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_gradients_are_what_differences_say(case):
    make, *shapes = case
    given = [te.placeholder(s, name=f"x{i}") for i, s in enumerate(shapes)]
    out = make(*given)
    ones = te.compute(out.shape, lambda *_: te.const(1.0, "float32"), name="ones")
    found = te.gradient(out, given, ones)
    assert [t.shape[0].value for t in found] == [s[0] for s in shapes]
    both = targets.build(te.create_schedule([t.op for t in (*found, out)]), [*given, *found, out], "llvm")

    def run(arrays):
        results = [np.zeros([int(d.value) for d in t.shape], "f4") for t in (*found, out)]
        both(*arrays, *results)
        return results[:-1], results[-1].astype("f8").sum()

    values = np.random.default_rng(3)
    arrays = [values.uniform(0.3, 0.9, s).astype("f4") for s in shapes]
    slopes, _ = run(arrays)
    for array, slope in zip(arrays, slopes):
        for place in values.choice(array.size, 3, replace=False):
            kept = array.flat[place]
            ends = []
            for step in (0.01, -0.01):
                array.flat[place] = kept + np.float32(step)
                ends.append(run(arrays)[1])
            array.flat[place] = kept
            assert slope.flat[place] == pytest.approx((ends[0] - ends[1]) / 0.02, rel=0.02, abs=0.02)


def test_without_a_head_it_is_the_jacobian():
    x = te.placeholder((3,), name="x")
    mid = te.compute((3,), lambda i: x[i] * 2.0, name="mid")
    y = te.compute((3,), lambda i: mid[i] * x[2 - i], name="y")
    other = te.placeholder((2,), name="other")
    found = te.gradient(y, [x, mid, other])
    run = targets.build(te.create_schedule([t.op for t in found]), [x, *found], "llvm")
    results = [np.zeros((3, n), "f4") for n in (3, 3, 2)]
    run(np.array([1, 2, 3], "f4"), *results)
    assert results[0].tolist() == [[6, 0, 2], [0, 8, 0], [6, 0, 2]]
    assert results[1].tolist() == [[3, 0, 0], [0, 2, 0], [0, 0, 1]] and not results[2].any()


def test_what_has_no_derivative_is_refused():
    x = te.placeholder((3, 4), name="x")
    k = te.reduce_axis((0, 4), "k")
    with pytest.raises(CompassError, match="reduces by 'max', which is no plain sum"):
        te.gradient(te.compute((3,), lambda i: te.max(x[i, k], axis=k)), [x])
    with pytest.raises(CompassError, match="takes tensors"):
        te.gradient(x, [1])
    outside = te.extern((3,), [x], lambda ins, outs: outs[0].store(ins[0][0, 0], 0), dtype="float32", name="outside")
    with pytest.raises(CompassError, match="'outside' is no te.compute"):
        te.gradient(te.compute((3,), lambda i: outside[i] * 2.0), [x])

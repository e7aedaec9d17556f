"""Reductions on the host along the lanes of vectors: what lies together is joined lane by lane, then across."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te, topi

OPERATORS = {
    "sum": (lambda x: topi.sum(x, -1), lambda x: x.sum(-1)),
    "max": (lambda x: topi.max(x, -1), lambda x: x.max(-1)),
    "prod": (lambda x: topi.prod(x, -1), lambda x: x.prod(-1)),
    "relu of mean": (lambda x: topi.nn.relu(topi.mean(x, -1)), lambda x: np.maximum(x.mean(-1), 0)),
    "softmax": (lambda x: topi.nn.softmax(x, -1), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "dense": (lambda x: topi.nn.dense(x, x), lambda x: x @ x.T),
}
SHAPES = ((1, 32), (4, 24), (10, 33), (2, 3, 48))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_reductions_along_lanes(dtype):
    """All in one kernel, over extents with and without whole vectors, of one row and of several at a time."""
    rng, args, outs, given, found, wanted = np.random.default_rng(0), [], [], [], [], []
    for shape in SHAPES:
        args.append(te.placeholder(shape, dtype, name=f"x{len(args)}"))
        given.append(rng.uniform(-1, 1, shape).astype(dtype))
        for name, (define, reference) in OPERATORS.items():
            if name != "dense" or len(shape) == 2:
                outs.append(define(args[-1]))
                wanted.append(reference(given[-1].astype("float64")))
                found.append(np.zeros(wanted[-1].shape, dtype))
    module = te.build(topi.schedule(outs, "llvm -opt-level=0"), [*args, *outs], "llvm -opt-level=0")
    module(*given, *found)
    tolerance = 1e-5 if dtype == "float32" else 5e-3
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f.astype("float64"), w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("shape", "dtype", "lanes"), [((4, 32), "float32", 16), ((4, 24), "float32", 8), ((4, 33), "float32", 0), ((4, 32), "int32", 0)])  # fmt: skip
def test_whole_vectors_of_reals_are_joined_so(shape, dtype, lanes):
    x = te.placeholder(shape, dtype, name="x")
    steps = str(topi.schedule(topi.sum(x, 1), "llvm").trace)
    assert ("rfactor" in steps) == bool(lanes)
    assert not lanes or f"factor={lanes}" in steps.replace("'", "").replace(": ", "=")


@pytest.mark.parametrize("target", ["llvm", "X2_1204"])
@pytest.mark.parametrize(("many", "kept"), [(2, 0), (32, 1)])
def test_what_sums_read_is_computed_once_where_that_takes_many_elements(target, many, kept):
    x = te.placeholder((4, 3 * many), "int32", name="x")
    joined = te.compute((4, 3), lambda i, j: sum(x[i, j * many + n] for n in range(many)), name="joined")
    made = topi.schedule(topi.sum(joined, 1), target)
    assert sum(stage.name == "joined" and not stage.inlined for stage in made.stages) == kept

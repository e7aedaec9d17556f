"""Operators of tensors with open sizes: one build for all of them, against the references; refusals name the operator."""

from __future__ import annotations

import numpy as np
import pytest

from compass_runtime.ndarray import array, empty
from compassc import te, topi
from compassc.compat.topi.calls import one
from compassc.ir.errors import ExpressionError
from compassc.targets import build

CASES = {
    "tile": ((None, 3), [[2, 2]], None),
    "strided_slice": ((None, 7), [[1], [6], [2], [1]], None),
    "max_pool2d": ((None, 2, 5, 6), [[3, 2], [2, 1], 1, [1, 0, 1, 1], "max"], None),
    "avg_pool2d": ((None, 2, 5, 6), [[3, 2], [2, 1], 1, [1, 0, 1, 1], "avg"], None),
    "conv2d_nchw": ((None, 3, 5, 6), [1, 1, 1], (4, 3, 3, 3)),
    "depthwise_conv2d_nchw": ((None, 3, 5, 6), [1, 1, 1], (3, 2, 3, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_one_build_serves_all_sizes(name):
    shape, attributes, weights = CASES[name]
    operator, n, rng = topi.OPERATORS[name], te.var("n"), np.random.default_rng(0)
    x = te.placeholder([d or n for d in shape], "float32", name="x")
    given = [] if weights is None else [te.placeholder(weights, "float32", name="w")]
    y = operator.define(x, *given, *attributes)
    run = build(te.create_schedule(y.op), [x, *given, y], "llvm")
    for size in (1, 4):
        arrays = [rng.standard_normal([d or size for d in shape]).astype("float32")]
        arrays += [rng.standard_normal(weights).astype("float32")] if weights else []
        wanted = operator.evaluate(*arrays, *attributes)
        out = empty(wanted.shape, "float32")
        run(*map(array, arrays), out)
        np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_refusals_name_the_operator():
    x = te.placeholder((te.var("n"), 4, 4, 4), "float32", name="A")
    with pytest.raises(ExpressionError, match=r"topi\.vision\.yolo_reorg needs constant sizes, 'A' has n"):
        one("vision.yolo_reorg", x, stride=2)
    for name, shape, attributes in (
        ("max_pool2d", (1, 2, te.var("h"), 6), CASES["max_pool2d"][1]),
        ("strided_slice", (7, te.var("w")), CASES["strided_slice"][1]),
    ):
        with pytest.raises(ExpressionError, match=r"topi\.\w+ needs constant sizes, 'A' has [hw]"):
            topi.OPERATORS[name].define(te.placeholder(shape, "float32", name="A"), *attributes)

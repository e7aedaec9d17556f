"""Sums and windows of nothing, padding: zeros, one way to say it, and arguments that no window has are refused."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.ir.errors import ExpressionError
from compassc.operators.declare import OPERATORS

EMPTY = [
    ("conv2d_transpose_nchw", (1, 0, 2, 2), (0, 3, 2, 2), (2, 0)),
    ("conv2d_transpose_nchw", (1, 3, 2, 2), (3, 2, 0, 2), (2, 0)),
    ("conv2d_nchw", (1, 0, 4, 4), (3, 0, 2, 2), (1, 0)),
    ("conv2d_nhwc", (1, 4, 4, 0), (2, 2, 0, 16), (1, 0)),
    ("matmul", (3, 0), (0, 8), ()),
    ("dense", (3, 0), (8, 0), ()),
]


def tensors(first, second, kind):
    return te.placeholder(first, kind, name="x"), te.placeholder(second, kind, name="w")


@pytest.mark.parametrize("target", ["c", "X2_1204"])
@pytest.mark.parametrize("kind", ["float32", "int8"])
@pytest.mark.parametrize("name,first,second,options", EMPTY)
def test_sums_of_nothing_are_zeros(name, first, second, options, kind, target):
    args = tensors(first, second, kind)
    out = OPERATORS[name].define(*args, *options)
    found = np.ones([d.value for d in out.shape], str(out.dtype))
    targets.build(topi.schedule(out, target), [*args, out], target)(
        np.zeros(first, kind), np.zeros(second, kind), found
    )
    assert found.size and not found.any()


@pytest.mark.parametrize(
    "name,options,what",
    [
        ("conv2d_nchw", (0, 0), "strides of convolutions"),
        ("conv2d_nchw", (1, 0, 0), "dilations of convolutions"),
        ("conv2d_transpose_nchw", ([1, 0], 0), "strides of convolutions"),
    ],
)
def test_windows_that_go_nowhere_are_refused(name, options, what):
    args = tensors((1, 2, 4, 4), (2, 2, 3, 3), "float32")
    with pytest.raises(ExpressionError, match=f"{what} are whole numbers from 1 on"):
        OPERATORS[name].define(*args, *options)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: topi.nn.pool2d(x, [0, 1], 1, 1, 0, "max"),
        lambda x: topi.nn.pool2d(x, 1, 0, 1, 0, "avg"),
        lambda x: topi.nn.pool2d(x, 1, 1, [1, -1], 0, "avg"),
        lambda x: topi.nn.adaptive_pool(x, [0, 3], "max"),
    ],
)
def test_pooling_that_goes_nowhere_is_refused(make):
    with pytest.raises(ExpressionError, match="are whole numbers from 1 on, got"):
        make(te.placeholder((1, 2, 4, 4), "float32", name="x"))


@pytest.mark.parametrize("padding", [1, [1], [1, 1], [1, 1, 1, 1], "SAME"])
def test_pooling_is_padded_as_convolutions_are(padding):
    made = topi.nn.pool2d(te.placeholder((1, 2, 7, 9), "float32", name="x"), 3, 1, 1, padding, "max")
    assert [d.value for d in made.shape] == [1, 2, 7, 9]


def test_padding_that_pooling_does_not_have_is_refused():
    with pytest.raises(ExpressionError, match="padding .* does not go with 2 dimensions"):
        topi.nn.pool2d(te.placeholder((1, 2, 7, 9), "float32", name="x"), 3, 1, 1, [1, 2, 3], "max")

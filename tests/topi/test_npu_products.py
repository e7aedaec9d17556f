"""What default schedules make of sums of products on the NPU: tiles of accumulators, and products of bytes four at a time."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.operators.declare import OPERATORS

TARGET = "X2_1204"
P = te.placeholder


def dense(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    total = topi.nn.dense(x, w)
    limits = te.const(-128), te.const(127)
    return te.compute(
        (13, 10), lambda i, j: te.cast(te.max(te.min((total[i, j] * 3 + 8) >> 4, limits[1]), limits[0]), "int8")
    )


def requantised(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.clip((x.astype("i4") @ w.T.astype("i4") * 3 + 8) >> 4, -128, 127)


def reference(name: str, *options: object) -> Callable[..., np.ndarray]:
    return lambda *arrays: OPERATORS[name].reference(*arrays, *options)


CASES = {
    "requantised": ((13, 70), (10, 70), dense, requantised),
    "batch_matmul": ((3, 9, 40), (3, 6, 40), topi.nn.batch_matmul, reference("batch_matmul")),
    "matmul": ((9, 20), (20, 21), topi.matmul, reference("matmul")),
    "vector by matrix": ((1, 20), (20, 21), topi.matmul, reference("matmul")),
    "nhwc": ((1, 5, 8, 6), (3, 3, 6, 17), lambda x, w: topi.nn.conv2d_nhwc(x, w, 1, 1), reference("conv2d_nhwc", 1, 1, 1)),
    "nhwc strided": ((2, 9, 9, 3), (3, 2, 3, 9), lambda x, w: topi.nn.conv2d_nhwc(x, w, 2, 1), reference("conv2d_nhwc", 2, 1, 1)),
    "relu": ((1, 5, 7, 3), (3, 3, 3, 5), lambda x, w: topi.nn.relu(topi.nn.conv2d_nhwc(x, w, 1, 1)),
             lambda x, w: np.maximum(OPERATORS["conv2d_nhwc"].reference(x, w, 1, 1, 1), 0)),
    "groups": ((1, 4, 5, 8), (3, 3, 4, 6), lambda x, w: topi.nn.group_conv2d_nhwc(x, w, 1, 1, 1, 2),
               reference("group_conv2d_nhwc", 1, 1, 1, 2)),
    "nchw": ((1, 3, 6, 19), (7, 3, 3, 3), lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1), reference("conv2d_nchw", 1, 1, 1)),
    "ncw": ((2, 3, 21), (6, 3, 3), lambda x, w: topi.nn.conv1d_ncw(x, w, 1, 2), reference("conv1d_ncw", 1, 2, 1)),
    "nwc": ((2, 9, 3), (3, 3, 12), lambda x, w: topi.nn.conv1d_nwc(x, w, 1, 1), reference("conv1d_nwc", 1, 1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["int8", "float16"])
def test_products_are_added_in_tiles_of_accumulators(case, kind):
    if case == "requantised" and kind != "int8":
        pytest.skip("of bytes")
    first, second, define, wanted = CASES[case]
    args = [P(first, kind, name="x"), P(second, kind, name="w")]
    out = define(*args)
    s = topi.schedule(out, TARGET)
    text = te.lower(s, [*args, out], "k", target=TARGET).script()
    held = re.findall(r"\w+_(?:value|lanes)\w*: T\.\w+?x\d+ = ", text)
    assert len(held) >= (1 if "vector" in case else 2), "sums are vectors, several at a time"
    assert ("vqdpa" in text) == (case == "batch_matmul" or (kind == "int8" and "vector" not in case))
    draw = np.random.default_rng(0)
    given = [draw.integers(-9, 9, [d.value for d in t.shape]).astype(kind) for t in args]
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    targets.build(s, [*args, out], TARGET)(*given, found)
    np.testing.assert_allclose(found.astype("f8"), wanted(*given).astype("f8"), rtol=1e-2 if kind != "int8" else 0)


@pytest.mark.parametrize("knobs", [{"rows": 2}, {"columns": 3}, {"rows": 5, "columns": 1, "lanes": 4}])
def test_tiles_of_any_size_are_right(knobs):
    x, w = P((1, 5, 7, 3), "int8", name="x"), P((3, 3, 3, 11), "int8", name="w")
    out = topi.nn.conv2d_nhwc(x, w, 1, 1)
    s = topi.schedule(out, TARGET, **knobs)
    assert str(s.trace) != str(topi.schedule(out, TARGET).trace)
    draw = np.random.default_rng(0)
    a, b = (draw.integers(-128, 128, [d.value for d in t.shape]).astype("int8") for t in (x, w))
    found = np.zeros((1, 5, 7, 11), "int32")
    targets.build(s, [x, w, out], TARGET)(a, b, found)
    np.testing.assert_array_equal(found, OPERATORS["conv2d_nhwc"].reference(a, b, 1, 1, 1))


@pytest.mark.parametrize("target", ["llvm", TARGET])
def test_means_of_whole_numbers_are_cut_towards_zero(target):
    x = P((1, 1, 2, 4), "int8", name="x")
    given = np.array([[[[-128, -128, 1, 2], [-128, -127, 2, 2]]]], "int8")
    found = np.zeros((1, 1, 1, 2), "int8")
    out = topi.nn.pool2d(x, 2, 2, 1, 0, "avg")
    targets.build(topi.schedule(out, target), [x, out], target)(given, found)
    assert found.ravel().tolist() == [-127, 1], "of -511 and 7, over 4"

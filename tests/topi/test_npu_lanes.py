"""What default schedules make of short windows on the NPU: vectors of results, not of the elements of a window."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from compassc import targets, te, topi

TARGET = "X2_1204"


def windows(x: np.ndarray, size: int, stride: int, pad: int, fill: float) -> np.ndarray:
    """All windows of the last two axes, in float64."""
    wide = np.pad(x.astype("f8"), [(0, 0), (0, 0), (pad, pad), (pad, pad)], constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(wide, (size, size), (2, 3))[:, :, ::stride, ::stride]


def convolution(kind: str, stride: int) -> tuple[list[te.Tensor], te.Tensor, object]:
    x, w = te.placeholder((1, 4, 9, 21), kind, name="x"), te.placeholder((5, 4, 3, 3), kind, name="w")
    out = topi.nn.conv2d_nchw(x, w, stride, 1, 1, out_dtype="int32" if kind == "int8" else kind)
    return [x, w], out, lambda x, w: np.einsum("nchwij,ocij->nohw", windows(x, 3, stride, 1, 0), w.astype("f8"))


def largest(kind: str, stride: int) -> tuple[list[te.Tensor], te.Tensor, object]:
    x = te.placeholder((1, 4, 9, 21), kind, name="x")
    return [x], topi.nn.pool2d(x, 3, stride, 1, 1, "max"), lambda x: windows(x, 3, stride, 1, -np.inf).max((4, 5))


def mean(kind: str, stride: int) -> tuple[list[te.Tensor], te.Tensor, object]:
    x = te.placeholder((1, 4, 9, 21), kind, name="x")
    return [x], topi.nn.pool2d(x, 3, stride, 1, 1, "avg"), lambda x: windows(x, 3, stride, 1, 0).mean((4, 5))


CASES = [c for c in product([convolution, largest, mean], ["int8", "float16"], [1, 2]) if c[:2] != (mean, "int8")]


@pytest.mark.parametrize(("operator", "kind", "stride"), CASES)
def test_windows_are_reduced_for_many_results_at_once(operator, kind, stride):
    args, out, reference = operator(kind, stride)
    s = topi.schedule(out, TARGET)
    text = te.lower(s, [*args, out], "k", target=TARGET).script()
    held = re.findall(r"T_\w+_value: T\.([a-z]+\d+)(x\d+)? = ", text)
    assert held and all(lanes for _, lanes in held), "the sums are vectors"
    assert "vrp" not in text, "no lanes are joined"
    assert not re.search(r"for (x|i3)\w*_inner\b", text), "no vectorised loop is one of scalars"
    draw = np.random.default_rng(0)
    given = [draw.integers(-9, 9, [d.value for d in t.shape]).astype(kind) for t in args]
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    targets.build(s, [*args, out], TARGET)(*given, found)
    np.testing.assert_allclose(found.astype("f8"), reference(*given), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("columns", [200, 257])
def test_the_last_piece_of_rows_that_tecs_share_has_a_known_number_of_lanes(columns):
    x = te.placeholder((6, columns), "float32", name="x")
    out = topi.sum(x, 0)
    given, found = np.random.default_rng(0).integers(-9, 9, (6, columns)).astype("f4"), np.zeros(columns, "f4")
    targets.build(topi.schedule(out, TARGET), [x, out], TARGET)(given, found)
    np.testing.assert_array_equal(found, given.sum(0))

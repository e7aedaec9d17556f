"""What kernels make of infinities, of what is not a number and of signed zeros: what the references do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from compassc.layers.samples import Draw, drawn
from compassc.layers.support import SHAPES
from tests.choosing import some
from tests.layers.cases import tensor
from tests.layers.harness import expect, run

SPECIAL = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    -3.5,
    3e38,
    -3e38,
    1e-40,
    1e38,
    3e9,
    -3e9,
    2.0**31,
]
SHAPE = (1, 4, 6, 5)


def of_elements() -> Iterator[Layer]:
    def made(kind: str, dtype: str = "float32", scale: float = 1.0, **given: Any) -> Layer:
        return Layer("l", kind, (tensor("x", SHAPE, "float32"),), (tensor("y", SHAPE, dtype, scale),), given, {})

    for kind in ("Negative", "Sign", "RELU6", "ELU", "HardSigmoid", "Asinh", "Atan", "Sinh", "Hardswish", "Rsqrt"):
        yield made(kind)
    yield made("Clip", clip_min=-1.0, clip_max=2.0)
    yield made("Quantize", "int8", 20.0)
    for dtype in ("int8", "int32"):
        yield from (made("Cast", dtype, clip_mode=mode) for mode in ("SATURATION", "TRUNCATION"))


def of_several() -> Iterator[Layer]:
    def made(kind: str, out: tuple[int, ...], **given: Any) -> Layer:
        return Layer("l", kind, (tensor("x", SHAPE, "float32"),), (tensor("y", out, "float32"),), given, {})

    for method, axis in (("MAX", 3), ("MIN", 1)):
        yield made("Reduce", tuple(1 if i == axis else n for i, n in enumerate(SHAPE)), method=method, axis=[axis])
    window = {f"{n}_{a}": v for n, v in (("kernel", 3), ("stride", 2)) for a in "xy"}
    pads = {f"pad_{s}": 1 for s in ("left", "right", "top", "bottom")}
    yield made("Pooling", (1, 2, 3, 5), method="MAX", **window, **pads)
    yield made("Pooling", (1, 4, 5, 5), method="MAX", **window, **{key: 3 for key in pads})  # windows beside the image
    yield made("GlobalPool", (1, 1, 1, 5), method="MAX")
    yield made("AdaptivePool", (1, 2, 3, 5), method="MAX", output_size=[2, 3])


@pytest.mark.parametrize("cases", [of_elements, of_several])
def test_kernels_give_what_references_give(cases, tmp_path):
    values = np.random.default_rng(0).permutation(np.resize(np.array(SPECIAL, "float32"), SHAPE).reshape(-1))
    x = values.reshape(SHAPE)
    x[:, :2, :2], x[..., 4] = -np.inf, np.nan

    def compare(outputs, wanted, said):
        (got,), (want,) = outputs, wanted
        np.testing.assert_allclose(got, want, 1e-5, 1e-5, err_msg=said)
        if cases is of_elements:
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want) | np.isnan(want) & np.signbit(got), said)

    for case in some(cases()):
        said = f"{case.type} {case.attributes} {case.output.dtype}"
        expect(kernel_of([case]), case, [x], tmp_path, partial(compare, wanted=evaluate(case, [x]), said=said))


def test_running_sums_begin_with_the_first_element(tmp_path):
    """Which may be -0.0, as in ONNX Runtime; exclusive ones begin with 0.0."""
    x = np.array([[-0.0, -0.0, 1.0, -1.0, -0.0]], "float32")
    given = {"axis": 1, "method": "SUM"}
    for exclusive, signs in ((False, [1, 1, 0, 0, 0]), (True, [0, 0, 0, 0, 0])):
        ends = (tensor("x", x.shape, "float32"),), (tensor("y", x.shape, "float32"),)
        layer = Layer("l", "Cumulate", *ends, {**given, "exclusive": exclusive}, {})
        for found in (run(kernel_of([layer]), layer, [x], tmp_path), evaluate(layer, [x])):
            np.testing.assert_array_equal(np.signbit(found[0])[0], signs)


LISTS = "GridSample NMS DetectionOutput FilterBoxes CTCGreedyDecoder DecodeBox MultiboxTransformLoc".split()
REGIONS = ("RoiAlign", "MaxRoiPool", "ROIPooling")


@pytest.mark.parametrize("kind", (*LISTS, *REGIONS))
def test_kernels_that_choose_take_nan_and_infinities_as_references_do(kind, tmp_path):
    layer = next(
        made
        for seed, shape in enumerate(SHAPES * 3)
        if (made := drawn(Draw(np.random.default_rng(seed)), kind, Tensor("x", shape, "float32"))) is not None
    )
    draw = Draw(np.random.default_rng(7))
    ends = [(t.low, t.high) if t.is_integer else (None, None) for t in layer.inputs]
    given = [draw.array(t.dtype, *t.shape, low=a, high=b) for t, (a, b) in zip(layer.inputs, ends, strict=True)]
    special = ((np.nan, 7), (np.nan, 1), (np.inf, 3), (-np.inf, 7))
    for at, (value, step) in some((i, v) for i, t in enumerate(layer.inputs) if not t.is_integer for v in special):
        arrays = [a.copy() for a in given]
        arrays[at].reshape(-1)[::step] = value
        results = zip(run(kernel_of([layer]), layer, arrays, tmp_path), evaluate(layer, arrays), strict=True)
        for got, want in some(results):
            np.testing.assert_allclose(got, want.reshape(got.shape), 1e-4, 1e-4, err_msg=f"input {at}, {value}, {step}")


def test_windows_of_minus_infinity_alone_have_it():
    """But where a window lies beside the image, which has the lowest finite number."""
    x = np.full(SHAPE, -np.inf, "float32")
    *_, seeing, beside = (c for c in of_several() if c.type == "Pooling")
    assert np.isneginf(evaluate(seeing, [x])[0]).all() and np.isfinite(evaluate(beside, [x])[0]).all()

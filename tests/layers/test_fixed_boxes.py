"""Box decoders and YOLO heads in whole numbers: kernels give what the references give, and these what the float forms give
on the real numbers that tables and multipliers stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import approximate_factor
from compassc.layers.declare import evaluate
from compassc.layers.samples import SAMPLES, Draw
from tests.layers.cases import drawn, same

Array = np.ndarray[Any, Any]
KINDS = ("Proposal", "DetectionOutput", "BoundingBox", "MultiboxTransformLoc", "Region", "RegionFuse")
INT8 = np.arange(-128, 128)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_agree(kind, tmp_path):
    found = 0
    for seed, dtype in enumerate(("int8", "int16")):
        source = np.random.default_rng(seed)
        shape = ((1, 3, 8), (2, 40, 5))[seed % 2]
        layer = SAMPLES[kind](Draw(source), Tensor("x", shape, dtype))
        if layer is None:
            continue
        inputs = [
            source.integers(0, 5, t.shape).astype("int32") if t.dtype == "int32" else drawn(source, t)
            for t in layer.inputs
        ]
        same(layer, inputs, tmp_path)
        found += sum(int(np.count_nonzero(a)) for a in evaluate(layer, inputs))
    assert found > 9


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_there_is_no_room_for_all_boxes_of_a_head(tmp_path, dtype):
    source = np.random.default_rng(3)
    for room in (1, 5):
        layer = SAMPLES["Region"](Draw(source), Tensor("x", (1, 3, 8), dtype))
        assert layer is not None
        layer.attributes["obj_thresh"] = 0  # type: ignore[index]
        shapes = ((1, room), (1, room, 4))
        few = [Tensor(t.name, s, t.dtype) for t, s in zip(layer.outputs, shapes, strict=False)]
        layer = Layer("l", "Region", layer.inputs, (*few, *layer.outputs[2:]), layer.attributes, layer.constants)
        inputs = [drawn(source, layer.input, narrow=True)]
        scores, *_ = evaluate(layer, inputs)
        assert np.count_nonzero(scores) == room
        same(layer, inputs, tmp_path)


def factor(ratio: float, bits: int) -> tuple[int, int]:
    scale, shift = approximate_factor(np.float32(ratio), bits)
    return int(scale), int(shift)


def real(t: Tensor, values: Array) -> Array:
    return np.asarray((values.astype("f8") + t.scalar_zero) / t.scalar_scale, "float32")


def test_boxes_of_regions_are_those_of_the_real_numbers():
    source = np.random.default_rng(5)
    rois, deltas = Tensor("r", (1, 60, 4), "int16", 32767.0), Tensor("d", (1, 60, 4), "int8", 50.0, 3)
    y, std = Tensor("y", rois.shape, "int16", 32767.0), (10, 10, 5, 5)
    # offsets leave all sizes below 1, which the float form limits them to
    corners = np.sort(source.uniform(0.2, 0.8, (1, 60, 2, 2)), 2).reshape(rois.shape)
    inputs = [np.rint(corners * 32767).astype("int16"), source.integers(-120, 120, deltas.shape).astype("int8")]
    exponent = 10000.0
    numbers = [factor(1 / (50 * s), 16) for s in std[:2]] + [factor(1 / exponent, 16)] * 2 + [factor(1, 14)]
    given: dict[str, Any] = {
        "box_scale_value": [m for m, _ in numbers],
        "box_shift_value": [s + (i in (2, 3)) for i, (_, s) in enumerate(numbers)],
        "delta_shift": 16 + 8 - 15 + 1,
    }
    powers = np.rint(np.exp(real(deltas, INT8) / 5) * exponent).astype("int16")
    whole = Layer("l", "BoundingBox", (rois, deltas), (y,), given, {"th_lut": powers, "tw_lut": powers})
    floats = [Tensor(t.name, t.shape, "float32") for t in (rois, deltas, y)]
    exact = Layer("l", "BoundingBox", tuple(floats[:2]), (floats[2],), {"std_div": list(std)})
    want = evaluate(exact, [real(rois, inputs[0]), real(deltas, inputs[1])])[0]
    np.testing.assert_allclose(evaluate(whole, inputs)[0] / 32767, want, atol=2e-3)


@pytest.mark.parametrize("bits", [8, 16])
def test_boxes_of_a_head_are_those_of_the_real_numbers(tmp_path, bits):
    source = np.random.default_rng(8)
    grid, boxes, classes, room = (5, 6), 2, 4, 60
    x = Tensor("x", (2, *grid, boxes, 5 + classes), f"int{bits}", 20.0 * 2.0 ** (bits - 8), 4)
    whole = (f"uint{bits}", "int16", "uint16", "uint16", "uint16")
    shapes = ((2, room), (2, room, 4), (2, classes), (2, classes), (2, 1))
    anchors, cell, power = np.asarray([1.5, 0.75, 2.5, 3.25]), 13, 65535 / np.exp(6.39)
    most, steps = (1 << bits) - 1, 1 << min(bits, 10)
    at = np.arange(steps) * ((most + 1) // steps)
    q = real(x, x.low + at)
    first = np.rint(x.scalar_scale * np.log(2.0**20) - 4) - (1 << bits) + 4
    exponents = (at + first) / x.scalar_scale
    scale, shift = factor(2**cell / power, 16)
    given = {
        "grid_height": grid[0], "grid_width": grid[1], "box_per_grid": boxes, "class_num": classes,
        "obj_thresh": int(0.3 * most), "col_shift": cell, "row_shift": cell, "grid_w_scale": (1 << 15) // grid[1],
        "grid_h_scale": (1 << 15) // grid[0], "anchors_exp_w_shift": 14, "anchors_exp_h_shift": 14,
        "wh_exp_scale": scale, "wh_exp_shift": shift,
    }  # fmt: skip
    tables = {
        "qanchors_lut": np.rint(anchors * 2**14).astype("uint16"),
        "score_softmax_lut": np.clip(np.rint(np.exp(exponents)), 0, 1 << 20).astype("u4"),
        "conf_sigmoid_lut": np.rint(2**15 / (1 + np.exp(-q))).astype("uint16"),
        "xy_sigmoid_lut": np.rint(2**cell / (1 + np.exp(-q))).astype("int16"),
        "wh_exp_lut": np.clip(np.rint(np.exp(q) * power), 0, 65535).astype("uint16"),
    }
    outputs = [Tensor(f"y{i}", s, t) for i, (s, t) in enumerate(zip(shapes, whole, strict=True))]
    fixed = Layer("l", "Region", (x,), tuple(outputs), given, tables)
    floats = [Tensor(t.name, t.shape, "float32" if i < 2 else "int32") for i, t in enumerate(outputs)]
    plain = {**given, "obj_thresh": 0.3, "anchors": anchors.tolist(), "grid_compensate": False}
    exact = Layer("l", "Region", (Tensor("x", x.shape, "float32"),), tuple(floats), plain)
    values = source.integers(-60, 20, x.shape).astype(x.dtype)
    # scores are well above or below the threshold
    values[..., 4] = source.choice([-80, 90], values.shape[:-1])
    best = source.integers(0, classes, values.shape[:-1])
    np.put_along_axis(values[..., 5:], best[..., None], 120, -1)
    values *= 1 << (bits - 8)
    got, want = evaluate(fixed, [values]), evaluate(exact, [real(x, values)])
    for a, b in zip(got[2:], want[2:], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(got[0] / most, want[0], atol=8e-3)
    np.testing.assert_allclose(got[1] / 2**cell, want[1], atol=4e-3)
    assert np.count_nonzero(want[0]) > 30
    if bits > 8:
        same(fixed, [values], tmp_path)


def test_a_head_has_scores_of_as_many_bits():
    layer = SAMPLES["Region"](Draw(np.random.default_rng(0)), Tensor("x", (1, 3, 8), "int8"))
    assert layer is not None
    wide = Tensor("x", layer.input.shape, "int16")
    with pytest.raises(LayerError, match="is uint8, but 'x' int16: scores have as many bits"):
        evaluate(
            Layer("l", "Region", (wide,), layer.outputs, layer.attributes, layer.constants), [np.zeros(wide.shape)]
        )

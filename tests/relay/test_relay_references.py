"""References of Relay's operators against those of ONNX, against published values, and against arithmetic by hand."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from compassc.ir.errors import ExpressionError
from compassc.relay.operators import get
from compassc.relay.ops.fixed_point import fixed_point_multiplier, requantization, requantize_config, requantized
from compassc.relay.ops.random import block, key_of, split, unit
from compassc.relay.types import Related
from tests.relay.trying_operators import type_of

RNG = np.random.default_rng(7)


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return RNG.uniform(low, high, shape).astype("float32")


def ours(name, *arrays, **attributes):
    """What the reference of an operator gives of arrays."""
    known = get(name)
    attrs = known.record(**attributes) if known.record else None
    found = known.relation([type_of(a) for a in arrays], attrs)
    return known.reference(attrs, arrays, found.result if isinstance(found, Related) else found)


RUN = ("LRN", "ConvTranspose")
"""Operators that are run: the reference of one leaves out a neighbour, that of the other takes no groups."""


def theirs(operator, *arrays, outputs=1, opset=21, **attributes):
    """What ONNX's reference gives, or its runtime."""
    names = [f"x{n}" if a is not None else "" for n, a in enumerate(arrays)]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays) if a is not None
    ]  # fmt: skip
    ends = [f"y{n}" for n in range(outputs)]
    results = [
        helper.make_tensor_value_info(
            n, onnx.TensorProto.UNDEFINED if operator not in RUN else onnx.TensorProto.FLOAT, None
        )
        for n in ends
    ]
    node = helper.make_node(operator, names, ends, **attributes)
    model = helper.make_model(
        helper.make_graph([node], "g", infos, results), opset_imports=[helper.make_opsetid("", opset)]
    )
    given = {n: a for n, a in zip(names, arrays) if n}
    if operator in RUN:
        model.ir_version = 10
        found = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    else:
        found = ReferenceEvaluator(model).run(None, given)
    return found if outputs > 1 else found[0]


X, PICTURE = real(2, 3, 4), real(1, 4, 7, 6)
PLACES = np.array([[0, 1, 2, 0], [2, 2, 1, 0]], "int64")
SIZES = np.array([1, 4, 5, 9], "int64")
NUMBERS = np.array([7, -7, 5, -5], "int32"), np.array([3, 3, -3, -3], "int32")
RESIZES = [
    {"mode": m, "coordinate_transformation_mode": c, **more}
    for m, c, more in [
        ("linear", "half_pixel", {}), ("linear", "align_corners", {}), ("linear", "asymmetric", {}), ("cubic", "half_pixel", {"cubic_coeff_a": -0.5}),
        ("cubic", "align_corners", {"cubic_coeff_a": -0.75}), ("cubic", "half_pixel", {"cubic_coeff_a": -0.5, "exclude_outside": 1}),
        ("nearest", "half_pixel", {"nearest_mode": "round_prefer_floor"}), ("nearest", "asymmetric", {"nearest_mode": "floor"}),
        ("nearest", "align_corners", {"nearest_mode": "round_prefer_ceil"}), ("linear", "pytorch_half_pixel", {}),
    ]
]  # fmt: skip

CASES = {
    "conv2d": (("nn.conv2d", PICTURE, real(6, 2, 3, 2)), {"groups": 2, "strides": [2, 1], "padding": [1, 0, 2, 1], "dilation": [1, 2]},
               ("Conv", PICTURE, None), {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]}),
    "max_pool2d": (("nn.max_pool2d", PICTURE), {"pool_size": [3, 2], "strides": [2, 2], "padding": [1, 0, 1, 1]},
                   ("MaxPool", PICTURE), {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    "avg_pool2d": (("nn.avg_pool2d", PICTURE), {"pool_size": [3, 2], "strides": [2, 2], "padding": [1, 0, 1, 1]},
                   ("AveragePool", PICTURE), {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    "gather": (("gather", real(3, 4), PLACES), {"axis": 0}, ("GatherElements", None, PLACES), {"axis": 0}),
    "lrn": (("nn.lrn", PICTURE), {"size": 3, "alpha": 0.3, "beta": 0.5, "bias": 1.5}, ("LRN", PICTURE), {"size": 3, "alpha": 0.3, "beta": 0.5, "bias": 1.5}),
    "log_softmax": (("nn.log_softmax", X), {"axis": 1}, ("LogSoftmax", X), {"axis": 1}),
    "argmax": (("argmax", np.array([[1, 3, 3]], "int32")), {"axis": 1, "select_last_index": True}, ("ArgMax", np.array([[1, 3, 3]], "int32")),
               {"axis": 1, "select_last_index": 1, "keepdims": 0}),
    "mod": (("mod", *NUMBERS), {}, ("Mod", *NUMBERS), {"fmod": 1}),
    "floor_mod": (("floor_mod", *NUMBERS), {}, ("Mod", *NUMBERS), {}),
    "divide": (("divide", *NUMBERS), {}, ("Div", *NUMBERS), {}),
    "depth_to_space": (("nn.depth_to_space", PICTURE), {"block_size": 2, "mode": "CRD"}, ("DepthToSpace", PICTURE), {"blocksize": 2, "mode": "CRD"}),
    "space_to_depth": (("nn.space_to_depth", real(1, 2, 4, 6)), {"block_size": 2}, ("SpaceToDepth", None), {"blocksize": 2}),
    "einsum": (("einsum", [real(2, 3), real(3, 4)]), {"equation": "ij,jk->ki"}, ("Einsum", None), {"equation": "ij,jk->ki"}),
    "grid_sample": (("image.grid_sample", PICTURE, real(1, 2, 3, 5, low=-1.3, high=1.3)), {"align_corners": False, "padding_mode": "reflection"},
                    ("GridSample", PICTURE, None), {"align_corners": 0, "padding_mode": "reflection", "mode": "linear"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_references_agree_with_those_of_onnx(name):
    (operator, *arrays), options, (other, *_), more = CASES[name]
    given = arrays[0] if isinstance(arrays[0], list) else arrays
    given = [given[0], given[1].transpose(0, 2, 3, 1)] if name == "grid_sample" else given
    found, wanted = ours(operator, *arrays, **options), theirs(other, *given, **more)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", RESIZES, ids=lambda o: "-".join(map(str, o.values())))
def test_resizing(options):
    roi = np.array([], "float32")
    wanted = theirs("Resize", PICTURE, roi, None, SIZES, **options)
    method = {"nearest": "nearest_neighbor"}.get(options["mode"], options["mode"])
    found = ours(
        "image.resize2d", PICTURE, size=SIZES[2:].tolist(), method=method,
        coordinate_transformation_mode=options["coordinate_transformation_mode"], rounding_method=options.get("nearest_mode", ""),
        cubic_alpha=options.get("cubic_coeff_a", -0.5), cubic_exclude=options.get("exclude_outside", 0),
    )  # fmt: skip
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_transposed_convolution():
    x, w = real(1, 4, 3, 4), real(4, 3, 3, 2)
    found = ours("nn.conv2d_transpose", x, w, groups=2, strides=[2, 1], padding=[1, 0, 0, 1], output_padding=[1, 0])
    wanted = theirs("ConvTranspose", x, w, group=2, strides=[2, 1], pads=[1, 0, 0, 1], output_padding=[1, 0])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_normalisations():
    gamma, beta = real(4), real(4)
    np.testing.assert_allclose(
        ours("nn.instance_norm", PICTURE, gamma, beta),
        theirs("InstanceNormalization", PICTURE, gamma, beta),
        rtol=1e-4,
        atol=1e-5,
    )
    np.testing.assert_allclose(
        ours("nn.layer_norm", X, gamma, beta),
        theirs("LayerNormalization", X, gamma, beta, axis=-1),
        rtol=1e-4,
        atol=1e-5,
    )
    np.testing.assert_allclose(
        ours("nn.group_norm", PICTURE, gamma, beta, num_groups=2), theirs("GroupNormalization", PICTURE, gamma, beta, num_groups=2),
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip
    mean, variance = real(4), real(4, low=0.1)
    found, *_ = ours("nn.batch_norm", PICTURE, gamma, beta, mean, variance)
    np.testing.assert_allclose(
        found, theirs("BatchNormalization", PICTURE, gamma, beta, mean, variance), rtol=1e-4, atol=1e-5
    )


def test_scatters_and_running_sums():
    data, updates = real(3, 4), real(2, 4)
    for reduction, name in (("update", "none"), ("add", "add"), ("mul", "mul"), ("min", "min"), ("max", "max")):
        found = ours("scatter_elements", data, PLACES, updates, axis=0, reduction=reduction)
        np.testing.assert_allclose(
            found, theirs("ScatterElements", data, PLACES, updates, axis=0, reduction=name), rtol=1e-6
        )
    np.testing.assert_allclose(
        ours("cumsum", X, axis=1, exclusive=True), theirs("CumSum", X, np.array(1, "int64"), exclusive=1), rtol=1e-6
    )
    values, places = ours("topk", X, k=2, axis=-1, dtype="int64")
    wanted = theirs("TopK", X, np.array([2], "int64"), outputs=2)
    np.testing.assert_array_equal(values, wanted[0])
    np.testing.assert_array_equal(places, wanted[1])


def test_joining_and_advanced_indices():
    x, i, j = real(4, 5, 2), np.array([0, 3, 1]), np.array([[4], [2]])
    np.testing.assert_array_equal(ours("adv_index", [x, i, j]), x[i, j])
    one, two = (np.array(v, "int8") for v in ([[10, -20]], [[3, 5]]))
    scales, zeros = (
        [np.float32(0.5).reshape(()), np.float32(0.25).reshape(())],
        [np.array(2, "int32"), np.array(0, "int32")],
    )
    found = ours("qnn.concatenate", [one, two], scales, zeros, np.array(0.25, "float32"), np.array(0, "int32"), axis=1)
    np.testing.assert_array_equal(found, [[16, -44, 3, 5]])


def test_losses_of_likelihood():
    x, targets, weights = real(3, 5, 2), np.array([[0, 4], [2, 2], [1, 3]], "int64"), real(5, low=0.1)
    for reduction in ("none", "mean", "sum"):
        found = ours("nn.nll_loss", x, targets, weights, reduction=reduction, ignore_index=2)
        wanted = theirs("NegativeLogLikelihoodLoss", x, targets, weights, reduction=reduction, ignore_index=2)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


# ------------------------------------------------------------------------------------------------------- exact arithmetic


def test_fixed_point_multipliers():
    assert fixed_point_multiplier(0.0) == (0, 0) and fixed_point_multiplier(1.0) == (2**30, 1)
    assert fixed_point_multiplier(0.75) == (3 * 2**29, 0) and fixed_point_multiplier(1 - 2**-40) == (2**30, 1)


@pytest.mark.parametrize(("rounding", "wanted"), [("UPWARD", [1, 0, 2, -1]), ("TONEAREST", [1, -1, 2, -2])])
def test_halves_are_rounded_as_said(rounding, wanted):
    x, zero = np.array([1, -1, 3, -3], "int32"), np.array(0)
    scales = np.array(0.5, "float32"), np.array(1.0, "float32")
    with requantize_config(rounding=rounding):
        for compute in ("int64", "float32", "float64"):
            found = requantized(x, (scales[0], zero), (scales[1], zero), -1, "int8", requantization("None", compute))
            np.testing.assert_array_equal(found, wanted)
    assert requantization().rounding == "UPWARD"


def test_two_roundings():
    """A quarter of 5 is 2.5, then 3, halved: 2; halves go up, or the second time away from 0."""
    x, zero, whole = np.array([2, -2, 5, -6], "int32"), np.array(0), np.array(1.0, "float32")
    for rounding, wanted in (("TWICE_UPWARD", [1, 0, 2, -1]), ("TWICE_TONEAREST", [1, -1, 2, -2])):
        made = requantized(x, (whole / 4, zero), (whole, zero), -1, "int8", requantization(rounding))
        np.testing.assert_array_equal(made, wanted)
    with pytest.raises(ExpressionError, match="in int64 only"):
        requantization("TWICE_UPWARD", "float32")


def test_requantization_is_the_rounded_quotient():
    """Fixed point is within one of the exact value, whose halves alone may be rounded differently."""
    x, zero = np.arange(-30000, 30000, 7).astype("int32"), np.array(0)
    for scale in (0.0123, 0.5, 1.7, 33.0):
        found = requantized(
            x, (np.float32(scale).reshape(()), zero), (np.float32(3.0).reshape(()), zero), -1, "int32", requantization()
        )
        exact = x * (float(np.float32(scale)) / 3.0)
        assert np.abs(found - exact).max() <= 0.5 + 1e-4


def test_quantised_products_are_products_of_what_is_meant():
    data, weight = (
        RNG.integers(0, 256, (1, 3, 5, 5)).astype("uint8"),
        RNG.integers(-128, 128, (4, 3, 3, 3)).astype("int8"),
    )
    zero, other = np.array(7, "int32"), np.array(-3, "int32")
    scale = np.array(1.0, "float32")
    found = ours("qnn.conv2d", data, weight, zero, other, scale, scale, padding=[1, 1, 1, 1], out_dtype="int32")
    wanted = theirs("ConvInteger", data, weight, np.array(7, "uint8"), np.array(-3, "int8"), pads=[1, 1, 1, 1])
    np.testing.assert_array_equal(found, wanted)


def test_whole_numbers_wrap_and_are_cut():
    big = np.array([127, -128], "int8")
    np.testing.assert_array_equal(ours("add", big, np.array([1, -1], "int8")), [-128, 127])
    np.testing.assert_array_equal(
        ours("sum", np.full((2, 100), 100, "int8"), axis=1), np.array([10000 & 255] * 2).astype("uint8").view("int8")
    )
    np.testing.assert_array_equal(ours("mean", np.array([[-3, -4], [3, 4]], "int32"), axis=1), [-3, 3])
    np.testing.assert_array_equal(ours("round", np.array([-0.5, 0.5, 2.5, -1.5], "float32")), [-1, 1, 3, -2])
    np.testing.assert_array_equal(ours("cast", np.array([-1.7, 0.3, 2.9], "float32"), dtype="int32"), [-1, 0, 2])
    np.testing.assert_array_equal(ours("cast", np.array([-0.5, 0.0], "float32"), dtype="bool"), [True, False])


# ----------------------------------------------------------------------------------------------------------------- random


def test_threefry_has_the_published_values():
    assert block([0] * 4, [0] * 4) == [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B]
    ones = [(1 << 64) - 1] * 4
    assert block(ones, ones) == [0x29C24097942BBA1B, 0x0371BBFB0F6F4E11, 0x3C231FFA33F83A1C, 0xCD29113FDE32D168]


def test_keys_split_into_different_ones():
    keys = [[int(w) for w in key_of(3)]]
    for _ in range(5):
        keys = [child for key in keys for child in split(key)]
    assert len({tuple(k) for k in keys}) == 32
    drawn = unit(np.array(block(keys[0][:4], keys[0][4:8]), "uint64"), "float32")
    assert ((drawn >= 0) & (drawn < 1)).all()


def test_bfloat16():
    x = np.array([1.0, 2.7, -0.3], ml_dtypes.bfloat16)
    for name, wanted in (("exp", np.exp(x.astype("f4"))), ("sum", x.astype("f4").sum()), ("add", 2 * x.astype("f4"))):
        found = ours(name, *[x] * (2 if name == "add" else 1))
        assert found.dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(found.astype("f4"), wanted, rtol=2**-7)

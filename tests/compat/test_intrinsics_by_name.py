"""Intrinsics that programs know by name, and which loops they are for."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te, tir
from compassc.compat import tensor_intrins
from compassc.compat.meta_schedule import te_workload
from compassc.compat.schedule_testing import verify_trace_roundtrip
from compassc.compat.tensor_intrins import CONSTANTS, DOTS
from compassc.ir.errors import ExpressionError
from compassc.tir.mapping import get_auto_tensorize_mapping_info, get_tensorize_loop_mapping, tile_with_tensor_intrin

pytestmark = pytest.mark.usefixtures("names")


def dense(n, k, left, right):
    x, w = te.placeholder((8, k), left, name="X"), te.placeholder((n, k), right, name="W")
    r = te.reduce_axis((0, k), name="r")
    sums = te.compute((8, n), lambda i, j: te.sum(te.cast(x[i, r], "int32") * te.cast(w[j, r], "int32"), r), name="C")
    return te.create_prim_func([x, w, sums])


def test_every_constant_is_the_name_of_an_intrinsic():
    for constant, name in CONSTANTS.items():
        assert getattr(tensor_intrins, constant) == name
        assert tir.TensorIntrin.get(name) is not None and name in DOTS
    assert tensor_intrins.WMMA_SYNC_16x16x16_f16f16f32_INTRIN == "wmma_sync_16x16x16_f16f16f32"
    assert set(dir(tensor_intrins)) > set(CONSTANTS)


@pytest.mark.parametrize("constant", ["VNNI_DOT_16x4_INTRIN", "ARM_DOT_4x4_i8_NEON_INTRIN", "DP4A_INTRIN"])
def test_sums_of_products_by_an_intrinsic_are_those_of_loops(constant):
    import tvm

    name = getattr(tensor_intrins, constant)
    lanes, terms, left, right = DOTS[name]
    f = dense(32, 16, left, right)
    s = tir.Schedule(f, debug_mask="all")
    _, j, k = s.get_loops("C")
    ko, ki = s.split(k, [None, terms])
    at = ki
    if lanes:
        _, at = s.split(j, [None, lanes])
        s.reorder(ko, at, ki)
    s.decompose_reduction("C", ko)
    s.tensorize(at, name)
    verify_trace_roundtrip(s, f)
    x = (np.arange(128).reshape(8, 16) % 120).astype(left)
    w = (np.arange(512).reshape(32, 16) % 113 - 50).astype(right)
    found = np.zeros((8, 32), "int32")
    tvm.build(s.mod, target="llvm")(x, w, found)
    np.testing.assert_array_equal(found, x.astype("int32") @ w.astype("int32").T)


def test_the_loops_of_an_intrinsic_are_the_innermost_of_its_kinds():
    desc = tensor_intrins.dot_product_16x4_u8i8i32_desc
    s = tir.Schedule(dense(32, 16, "uint8", "int8"))
    _, j, k = s.get_loops("C")
    info = get_tensorize_loop_mapping(s, s.get_block("C"), desc)
    by_place = {info.desc_loop_indexer[loop]: s.get(ref) for ref, loop in info.loop_map.items()}
    assert by_place == {0: s.get(j), 1: s.get(k)} and info.block_iter_paddings is None
    odd = tir.Schedule(dense(30, 16, "uint8", "int8"))
    assert get_tensorize_loop_mapping(odd, odd.get_block("C"), desc) is None
    padded = get_tensorize_loop_mapping(odd, odd.get_block("C"), desc, allow_padding=True)
    assert padded.block_iter_paddings == [1, 16, 1]


WORKLOADS = {
    "matmul": ((64, 64, 64), "C", lambda i, j, k: (i, j, k)),
    "batch_matmul_nkkm": ((4, 32, 32, 16), "Z", lambda b, i, j, k: (b, i, j, k)),
    "conv2d_nhwc": (
        (1, 8, 8, 16, 32, 3, 1, 1),
        "conv2d_nhwc",
        lambda n, h, w, c, p, q, r: (n * 64 + h * 8 + w, c, p * 48 + q * 16 + r),
    ),
    "conv3d_ndhwc": (
        (2, 4, 8, 8, 16, 32, 3, 1, 1),
        "conv3d_ndhwc",
        lambda n, d, h, w, c, o, p, q, r: (n * 256 + d * 64 + h * 8 + w, c, o * 144 + p * 48 + q * 16 + r),
    ),
    "depthwise_conv2d_nhwc": ((1, 8, 8, 16, 3, 1, 1), "depth_conv2d_nhwc", None),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_axes_are_joined_to_those_of_an_intrinsic(name):
    sizes, block, expected = WORKLOADS[name]
    made = getattr(te_workload, name)(*sizes, in_dtype="float16", out_dtype="float32")
    s = tir.Schedule(te.create_prim_func(list(made)))
    desc = tir.TensorIntrin.get(tensor_intrins.WMMA_SYNC_16x16x16_f16f16f32_INTRIN).desc
    found = get_auto_tensorize_mapping_info(s, s.get_block(block), desc)
    if expected is None:
        assert found is None
        return
    (chosen,) = found.mappings
    assert chosen.is_equivalent_to(tir.IndexMap.from_func(expected))
    s.transform_block_layout(block, chosen)
    other = tir.TensorIntrin.get(tensor_intrins.WMMA_SYNC_16x16x16_s8s8s32_INTRIN).desc
    assert get_auto_tensorize_mapping_info(s, s.get_block(block), other) is None, "of other types"


def test_helpers_refuse_channels_that_nothing_would_read():
    with pytest.raises(ExpressionError, match="3 groups do not divide 4 and 6 channels"):
        te_workload.conv1d_nlc(1, 9, 4, 6, 3, groups=3)
    with pytest.raises(ExpressionError, match="factor is 2"):
        te_workload.depthwise_conv2d_nhwc(1, 8, 8, 4, 3, factor=2)


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)])
def test_convolutions_of_the_helpers_compute_convolutions(stride, padding, dilation, groups):
    made = te_workload.conv1d_nlc(2, 9, 4, 6, 3, stride, padding, dilation, groups)
    x, w = (np.random.default_rng(0).integers(-8, 8, [e.value for e in t.shape]).astype("float32") for t in made[:2])
    outer = np.pad(x, ((0, 0), (padding, padding), (0, 0)))
    length = (9 + 2 * padding - 2 * dilation - 1) // stride + 1
    want = np.zeros((2, length, 6), "float32")
    for i, c, k in np.ndindex(length, 6, 3):
        first = c // (6 // groups) * (4 // groups)
        want[:, i, c] += outer[:, i * stride + k * dilation, first : first + 4 // groups] @ w[k, :, c]
    got = np.zeros_like(want)
    targets.build(te.create_prim_func(list(made)), target="llvm")(x, w, got)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("columns", [32, 30])
def test_blocks_are_tiled_for_an_intrinsic(columns):
    s = tir.Schedule(dense(columns, 16, "uint8", "int8"), debug_mask="all")
    block = s.get_block("C")
    at = tile_with_tensor_intrin(s, block, tensor_intrins.VNNI_DOT_16x4_INTRIN, allow_padding=columns % 16 > 0)
    assert [s.get(x).stop.value for x in s.get_loops(block)] == [8, 2, 4, 16, 4]
    assert s.get(at) is s.get(s.get_loops(block)[3])
    s.decompose_reduction(block, s.get_loops(block)[2])
    s.tensorize(at, tensor_intrins.VNNI_DOT_16x4_INTRIN)
    too_few = tir.Schedule(dense(columns, 3, "uint8", "int8"))
    assert tile_with_tensor_intrin(too_few, too_few.get_block("C"), tensor_intrins.VNNI_DOT_16x4_INTRIN) is None


def test_layouts_of_packed_weights_are_the_indices_of_an_intrinsic():
    import tvm

    s = tir.Schedule(dense(32, 16, "uint8", "int8"), debug_mask="all")
    s.transform_layout("C", "W", lambda i, j: [i // 16, j // 4, i % 16, j % 4])
    at = tile_with_tensor_intrin(s, s.get_block("C"), tensor_intrins.VNNI_DOT_16x4_INTRIN)
    s.decompose_reduction("C", s.get_loops("C")[2])
    s.tensorize(at, tensor_intrins.VNNI_DOT_16x4_INTRIN)
    x = np.arange(128, dtype="uint8").reshape(8, 16)
    w = (np.arange(512).reshape(32, 16) % 113 - 50).astype("int8")
    packed = w.reshape(2, 16, 4, 4).transpose(0, 2, 1, 3).copy()
    found = np.zeros((8, 32), "int32")
    tvm.build(s.mod, target="llvm")(x, packed, found)
    np.testing.assert_array_equal(found, x.astype("int32") @ w.astype("int32").T)

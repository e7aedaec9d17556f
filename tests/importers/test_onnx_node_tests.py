"""ONNX's own node tests: a sample by the references, a few on the simulator; `make test-onnx` runs all.

Which tests there are takes seconds to find out, so that a sample is parametrised by its shares and not by names.
"""

import numpy as np
import pytest
from onnx.reference.ops import op_pool_common

from compassc import onnx_backend
from compassc.importers.onnx.backend_tests import NO_KERNEL, NOT_PASSED, reason
from tests.choosing import chosen
from tests.importers.node_tests import POOLS, all_tests, pool, run

SHARES = 16
ON_SIMULATOR = (
    "test_gelu_tanh_1",
    "test_averagepool_2d_pads_count_include_pad",
    "test_basic_conv_with_padding",
    "test_layer_normalization_2d_axis1",
    "test_einsum_batch_matmul",
    "test_gru_defaults",
    "test_cumprod_2d_int32",
    "test_cumsum_1d_reverse_exclusive",
    "test_lstm_with_peepholes",
    "test_dynamicquantizelinear_max_adjusted",
    "test_softmax_axis_1",
    "test_resize_upsample_scales_nearest",
    "test_qlinearconv",
    "test_where_example",
    "test_dropout_default_mask",
    "test_constantofshape_float_ones",
    "test_mod_float_edge_cases_fmod_0_float16",
    "test_bitcast_float32_to_int32",
    "test_tfidfvectorizer_tf_batch_uniandbigrams_skip5",
    "test_mul_uint64",
)
WITHOUT_KERNEL = (
    "test_top_k_uint64",
    "test_cast_FLOAT8E5M2_to_FLOAT",
)
"""One test for each entry of NO_KERNEL, in its order."""


@pytest.mark.parametrize("share", range(SHARES))
def test_a_sample_passes_or_is_listed(share):
    sample = sorted(chosen(all_tests(), 13))[share::SHARES]
    results = [run(name, onnx_backend.REFERENCE) for name in sample]
    assert results and [r for r in results if (r.status == "passed") == bool(reason(r.name))] == []


@pytest.mark.parametrize("name", ON_SIMULATOR)
def test_it_passes_on_the_simulator(name):
    result = run(name, "X2_1204")
    assert result.status == "passed", result.why


@pytest.mark.parametrize("share", range(SHARES // 2))
def test_a_sample_passes_on_the_simulator_or_has_no_kernel(share):
    sample = sorted(chosen(all_tests(), 101))[share :: SHARES // 2]
    results = [run(name, "X2_1204") for name in sample if not reason(name)]
    assert results and [r for r in results if r.status not in ("passed", "no kernel")] == []


@pytest.mark.parametrize(("name", "why"), list(zip(WITHOUT_KERNEL, NO_KERNEL, strict=True)))
def test_what_has_no_kernel_is_refused_with_a_listed_reason(name, why):
    result = run(name, "X2_1204")
    assert (result.status, result.why) == ("no kernel", why)


@pytest.mark.parametrize("kind", POOLS)
def test_pools_of_whole_windows_are_those_of_onnx_to_the_bit(kind):
    x = np.random.default_rng(0).normal(size=(2, 3, 7, 9, 6)).astype("float32")
    given = (x, x.shape, (3, 2, 2), (2, 3, 1), (3, 3, 5), kind)
    np.testing.assert_array_equal(pool(*given, p=3), op_pool_common.pool(*given, p=3))


def test_the_list_is_about_tests_there_are_and_a_tenth_of_them_at_most():
    listed = [name for name in all_tests() if reason(name)]
    assert set(map(reason, listed)) == set(NOT_PASSED)
    assert len(listed) < 0.1 * len(all_tests())

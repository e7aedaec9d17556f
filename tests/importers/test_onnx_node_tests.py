"""ONNX's own node tests: a sample by the references, a few on the simulator; `make test-onnx` runs all."""

import pytest

from compassc import onnx_backend
from compassc.importers.onnx.backend_tests import NO_KERNEL, NOT_PASSED, reason
from tests.importers.node_tests import all_tests, run

SAMPLE = list(all_tests())[::13]
ON_SIMULATOR = (
    "test_gelu_tanh_1",
    "test_averagepool_2d_pads_count_include_pad",
    "test_basic_conv_with_padding",
    "test_layer_normalization_2d_axis1",
    "test_einsum_batch_matmul",
    "test_gru_defaults",
    "test_softmax_axis_1",
    "test_resize_upsample_scales_nearest",
    "test_qlinearconv",
    "test_where_example",
    "test_dropout_default_mask",
    "test_constantofshape_float_ones",
)
SAMPLE_ON_SIMULATOR = [name for name in list(all_tests())[5::101] if not reason(name)]
WITHOUT_KERNEL = (
    "test_cumprod_2d_int32",
    "test_less_uint32",
    "test_cast_FLOAT8E5M2_to_FLOAT",
)
"""One test for each entry of NO_KERNEL, in its order."""


@pytest.mark.parametrize("name", SAMPLE)
def test_it_passes_or_is_listed(name):
    result = run(name, onnx_backend.REFERENCE)
    assert (result.status == "passed") == (not reason(name)), result.why


@pytest.mark.parametrize("name", ON_SIMULATOR)
def test_it_passes_on_the_simulator(name):
    result = run(name, "X2_1204")
    assert result.status == "passed", result.why


@pytest.mark.parametrize("name", SAMPLE_ON_SIMULATOR)
def test_it_passes_on_the_simulator_or_has_no_kernel(name):
    result = run(name, "X2_1204")
    assert result.status in ("passed", "no kernel"), result.why


@pytest.mark.parametrize(("name", "why"), list(zip(WITHOUT_KERNEL, NO_KERNEL, strict=True)))
def test_what_has_no_kernel_is_refused_with_a_listed_reason(name, why):
    result = run(name, "X2_1204")
    assert (result.status, result.why) == ("no kernel", why)


def test_the_list_is_about_tests_there_are_and_a_tenth_of_them_at_most():
    listed = [name for name in all_tests() if reason(name)]
    assert set(map(reason, listed)) == set(NOT_PASSED)
    assert len(listed) < 0.1 * len(all_tests())

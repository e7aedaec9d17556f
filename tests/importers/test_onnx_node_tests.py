"""ONNX's own node tests: a sample by the references, a few on the simulator; `make test-onnx` runs all."""

import pytest

from compassc import onnx_backend
from compassc.importers.onnx.backend_tests import NOT_PASSED, reason
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
)


@pytest.mark.parametrize("name", SAMPLE)
def test_it_passes_or_is_listed(name):
    result = run(name, onnx_backend.REFERENCE)
    assert (result.status == "passed") == (not reason(name)), result.why


@pytest.mark.parametrize("name", ON_SIMULATOR)
def test_it_passes_on_the_simulator(name):
    result = run(name, "X2_1204")
    assert result.status == "passed", result.why


def test_the_list_is_about_tests_there_are_and_a_tenth_of_them_at_most():
    listed = [name for name in all_tests() if reason(name)]
    assert set(map(reason, listed)) == set(NOT_PASSED)
    assert len(listed) < 0.1 * len(all_tests())

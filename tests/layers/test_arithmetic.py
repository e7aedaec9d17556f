"""The integer functions of the quantisation model give the values that its definition lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compassc.layers import arithmetic as A
from compassc.layers.requantise import wide_factor


def test_inverse_roots():
    values = [1, 2, 3, 4, 5, 1000, 65536, 123456, 2**30 - 1, 2**31 - 1]
    want = [2147418112, 1518469120, 1239875584, 1073709056, 960397312, 67907584, 8388352, 6111824, 65536, 46340]
    np.testing.assert_array_equal(A.inverse_root(np.array(values)), want)


def test_logarithms_and_powers():
    one = np.array
    assert A.log2_fixed(one([3]), 0, 15) == 51936
    assert A.log2_fixed(one([1000]), 4, 10) == 6108
    assert A.log2_fixed(one([2**31 - 1]), 27, 10) == 4093
    assert [int(A.log2_coarse(one([v]), 27, q)[0]) for v, q in ((2**27, 1), (200000000, 1), (200000000, 0))] == [
        0,
        1,
        0,
    ]
    assert A.log2_coarse(one([1000]), 4, 1) == 11
    np.testing.assert_array_equal(
        A.exp2_fixed(one([0, -1, -1500, -40000]), 10, 27), [134217728, 133855232, 48623616, 0]
    )
    assert A.exp2_fixed(one([-1500]), 10, 8) == 92


def test_powers_in_float24():
    words = A.exp2_float(np.array([-0.5, -1, -3.3, 10.25, -200], "float32")).view("uint32")
    np.testing.assert_array_equal(words, [0x3F350300, 0x3F000000, 0x3DCFEE00, 0x44983600, 0x00449700])
    table = A.exp2_table_float().view("uint32")
    np.testing.assert_array_equal(
        table[[0, 1, 2, 511, 512]], [0x3F800000, 0x3F802C00, 0x3F805800, 0x3FFFA700, 0x40000000]
    )


@pytest.mark.parametrize(
    ("value", "scale", "shift", "zero", "want"),
    [
        (5, 1, 1, 0, 2),
        (7, 1, 1, 0, 4),
        (-5, 1, 1, 0, -2),
        (-7, 1, 1, 0, -4),
        (1000, 189, 15, 3, 3),
        (-1000, 3, -2, 0, -128),
    ],
)
def test_requantisation_rounds_ties_to_even_before_the_zero_point(value, scale, shift, zero, want):
    assert A.requantise(np.array([value]), scale, shift, zero, -128, 127) == want


def test_tables_are_interpolated_and_rounded_down():
    table = np.clip(3 * np.arange(256) - 384, -128, 127)
    index = np.array([-32768, -11000, -1, 0, 255, 256, 5001, 32767])
    np.testing.assert_array_equal(A.look_up(index, table, 16, True), [-128, -128, -1, 0, 2, 3, 58, 127])
    with pytest.raises(ValueError, match="power of two"):
        A.look_up(index, table[:255], 16, True)


@pytest.mark.parametrize(
    ("ratio", "bits", "want"),
    [
        (1, 8, (1, 0)),
        (0.25, 8, (128, 9)),
        (127 / 128, 8, (254, 8)),
        (1e-9, 8, (2, 31)),
        (1e-12, 8, (0, 31)),
        (1 / 3, 13, (5461, 14)),
        (1 / 3, 16, (21845, 16)),
        (255, 13, (8160, 5)),
        (255, 16, (32640, 7)),
        (3e5, 13, (4688, -6)),
        (3e5, 16, (18750, -4)),
    ],
)
def test_factors_become_multiplier_and_shift(ratio, bits, want):
    assert tuple(int(v) for v in A.approximate_factor(ratio, bits)) == want


@given(st.integers(0, 65535), st.integers(0, 50), st.integers(-(2**31), 2**31 - 1))
def test_a_wide_factor_loses_nothing_that_counts(scale, shift, value):
    """Plain integers in the steps of `vectors.requantise_wide` give the requantised value, within 17 bits."""
    factor = wide_factor(scale, shift)
    limited = min(max(value, -1 - factor.bound), factor.bound)
    product = limited * factor.scale
    total = (product >> factor.drop) | (1 if product & ((1 << factor.drop) - 1) else 0)
    assert -(2**31) <= total < 2**31
    rounded = round(total / 2**factor.shift)
    want = int(A.requantise(np.array([value]), scale, shift, 0, -65536, 65535)[0])
    assert min(max(rounded, -65536), 65535) == want

"""Sums of products under windows: to the bit those of whole numbers, in whatever float type they are made."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.window_products import exact_type, window_sums
from compassc.layers.windows import Window, seen, window_of

WINDOWS = st.builds(
    lambda kernel, stride, dilation, pads: Window(*(tuple(v) for v in (kernel, stride, dilation, pads))),
    *(st.lists(st.integers(1, n), min_size=2, max_size=2) for n in (3, 3, 2)),
    st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=2, max_size=2),
)


@given(WINDOWS, st.sampled_from([(1, 1), (2, 1), (2, 2), (6, 6), (6, 3)]), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_sums_of_whole_numbers_are_exact(window, channels, multiplier, seed):
    inputs, groups = channels
    random = np.random.default_rng(seed)
    x = random.integers(-128, 128, (2, 8, 9, inputs))
    weights = random.integers(-127, 128, (groups * multiplier, *window.kernel, inputs // groups))
    views = seen(x, window, window.positions(x.shape[1:-1]), 5)
    parts = np.split(np.moveaxis(views, 3, -1), groups, -1)  # [n, y, x, ky, kx, c]
    want = np.concatenate(
        [np.tensordot(p, w, ((3, 4, 5), (1, 2, 3))) for p, w in zip(parts, np.split(weights, groups), strict=True)], -1
    )
    for kind in (np.float32, np.float64):
        made = window_sums(x, weights.astype(kind), window, groups, 5, lambda sums: -sums, np.int64)
        assert np.array_equal(made, -want)


def test_one_line_in_several_pieces():
    x = np.random.default_rng(0).integers(-128, 128, (1, 40000, 4))
    weights = np.random.default_rng(1).integers(-127, 128, (4, 3, 1)).astype(np.float32)
    made = window_sums(x, weights, Window((3,), (1,), (1,), ((1, 1),)), 4, 0, lambda sums: sums, np.int64)
    line = np.pad(x[0], ((1, 1), (0, 0)))
    assert np.array_equal(made[0], sum(line[i : i + 40000] * weights[:, i, 0].astype(int) for i in range(3)))


@pytest.mark.parametrize("most", [1 << 23, (1 << 24) // 3, 1 << 24, (1 << 24) + 1])
def test_types_hold_the_largest_sums(most):
    weights = np.array([[1, -1, 1], [0, 0, 1]])
    kind = exact_type(weights, most)
    assert kind is (np.float32 if 3 * most <= 1 << 24 else np.float64)
    assert int(kind(3 * most)) == 3 * most and int(kind(3 * most - 1)) == 3 * most - 1


def test_weights_that_do_not_fit_are_refused():
    x, window = np.zeros((1, 4, 4, 3)), Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)))
    with pytest.raises(LayerError, match="'weights' is"):
        window_sums(x, np.zeros((2, 1, 1, 2)), window, 1, 0, lambda sums: sums, np.float64)
    large = Window((5, 5), (1, 1), (1, 1), ((0, 0), (0, 0)))
    with pytest.raises(LayerError, match="larger than the padded image"):
        window_sums(x, np.zeros((2, 5, 5, 3)), large, 1, 0, lambda sums: sums, np.float64)


def test_what_equals_a_number_is_not_taken_for_it():
    """A window that was read before does not stand for attributes that are equal to its own and no numbers."""
    x, numbers = Tensor("x", (1, 4, 4, 1), "float32"), {"kernel_x": 1, "kernel_y": 1, "stride_x": 1}
    assert window_of(Layer("layer", "Pooling", (x,), (), numbers)).stride == (1, 1)
    for wrong in (True, [1], "1"):
        with pytest.raises(LayerError, match="'stride_x' is"):
            window_of(Layer("layer", "Pooling", (x,), (), numbers | {"stride_x": wrong}))

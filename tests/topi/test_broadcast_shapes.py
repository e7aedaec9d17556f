"""Shapes that are stretched to each other: as NumPy has them, and of sizes that are not known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core.shapes import broadcast_shape
from compassc import te

SHAPES = st.lists(st.lists(st.sampled_from((0, 1, 1, 2, 3)), max_size=4), min_size=1, max_size=3)


@given(SHAPES)
def test_shapes_go_together_as_in_numpy(shapes):
    try:
        wanted = np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        with pytest.raises(ValueError, match="do not go together"):
            broadcast_shape(shapes)
    else:
        assert broadcast_shape(shapes) == wanted


def test_a_known_size_is_taken_before_an_open_one():
    n = te.var("n")
    assert broadcast_shape([(n, 1), (1, 4)]) == (n, 4)
    assert broadcast_shape([(n,), (7,)]) == (7,)

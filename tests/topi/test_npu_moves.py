"""Operators that give much other places, on the NPU: what they read and give is transferred beside the work, at any sizes."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.operators.declare import OPERATORS

TARGET = "X2_1204"
KINDS = ("int8", "float16", "float32")
CASES = {
    "transpose": ([(96, 130)], ()),
    "transpose of the last axes": ([(5, 37, 61)], ([0, 2, 1],), "transpose"),
    "tile": ([(16, 96)], ([2, 3],)),
    "tile of rows that no vector divides": ([(13, 75)], ([3, 5],), "tile"),
    "repeat": ([(32, 128)], (2, 1)),
    "repeat by three": ([(19, 67)], (3, 1), "repeat"),
    "repeat by four": ([(32, 96)], (4, 1), "repeat"),
    "depth_to_space": ([(1, 16, 16, 32)], (2,)),
    "depth_to_space of odd rows": ([(2, 18, 7, 21)], (3,), "depth_to_space"),
    "space_to_depth": ([(1, 4, 32, 64)], (2,)),
    "pad": ([(62, 90)], ([1, 2], [3, 4])),
    "concatenate": ([(48, 64), (48, 96)], (1,)),
    "flip": ([(40, 130)], (1,)),
    "resize2d": ([(1, 4, 16, 16)], ([32, 32],)),
    "resize2d by other factors": ([(1, 6, 8, 16)], ([32, 64], "linear", "asymmetric"), "resize2d"),
    "strided_slice": ([(40, 200)], ([1, 2], [40, 199], [2, 3])),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_elements_get_their_places(case, kind):
    shapes, options, *name = CASES[case]
    operator, draw = OPERATORS[(name or [case])[0]], np.random.default_rng(0)
    tensors = [te.placeholder(shape, kind, name=f"x{n}") for n, shape in enumerate(shapes)]
    given = [draw.integers(-100, 100, shape).astype(kind) for shape in shapes]
    together = [tensors] if len(tensors) > 1 else tensors
    out = operator.define(*together, *options)
    found = np.zeros([d.value for d in out.shape], kind)
    s = topi.schedule(out, TARGET)
    targets.build(s, [*tensors, out], TARGET)(*given, found)
    np.testing.assert_array_equal(found, operator.reference(*([given] if len(given) > 1 else given), *options))
    assert found.nbytes < 4096 or "dma_copy" in te.lower(s, [*tensors, out], "k", target=TARGET).script()


@pytest.mark.parametrize("size,shared", [([32, 32], True), ([16, 32], True), ([8, 64], False)])
def test_rows_are_computed_before_what_lies_between_where_several_elements_share_them(size, shared):
    x = te.placeholder((1, 16, 16, 16), "float16", name="x")
    for out in (topi.image.resize2d(x, size), topi.relu(topi.image.resize2d(x, size))):
        assert (topi.schedules.implementation_of([out], TARGET) == "interpolated") is shared


@pytest.mark.parametrize("kind", KINDS)
def test_elements_that_lie_in_turn_are_loaded_in_vectors(kind):
    x = te.placeholder((64, 256), kind, name="x")
    for out in (topi.repeat(x, 2, 1), topi.repeat(x, 4, 1), topi.tile(x, [2, 2])):
        text = te.lower(topi.schedule(out, TARGET), [x, out], "k", target=TARGET).script()
        assert "gather" not in text and "//" not in text

"""Transposed convolutions on the NPU, phase by phase: any rank, groups, dilations, weights that fit no memory; and what
is dear is computed once although its parts are inlined."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.operators.convolution import transposed, transposed_convolution
from compassc.topi.schedules import implementation_of

TARGET = "X2_1204"
CASES = [
    ("float16", (2, 4, 9), (4, 3, 5), (2,), 1, (1,), 1, (0,)),
    ("int8", (1, 4, 3, 4), (4, 2, 3, 3), (2, 3), [1, 0], (2, 1), 2, (1, 0)),
    ("int8", (1, 4, 2, 2, 3), (4, 2, 2, 3, 2), (2, 1, 2), [1, 0, 1], (1, 1, 1), 1, (0, 0, 1)),
    ("float16", (1, 65, 2, 3), (65, 32, 3, 3), (2, 2), [1, 1], (1, 1), 1, (1, 1)),
]


@pytest.mark.parametrize("case", CASES, ids=["a line", "groups, dilated", "a volume", "many weights"])
def test_phases_are_sums_of_their_own_weights(case):
    kind, data, kernel, strides, padding, dilation, groups, more = case
    args = [te.placeholder(data, kind, name="x"), te.placeholder(kernel, kind, name="w")]
    out = transposed_convolution(*args, strides, padding, dilation, groups, None, more, "transposed")
    assert implementation_of([out], TARGET) == "phases"
    draw = np.random.default_rng(0)
    arrays = [draw.integers(-3, 4, shape).astype(kind) for shape in (data, kernel)]
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    targets.build(topi.schedule(out, TARGET), [*args, out], TARGET)(*arrays, found)
    np.testing.assert_array_equal(found, transposed(*arrays, strides, padding, more, dilation, groups))


def test_what_inlined_parts_make_dear_is_computed_once():
    out = topi.nn.softmax(topi.image.resize2d(te.placeholder((1, 4, 16, 16), "float16", name="x"), [32, 32]))
    kept = {stage.name for stage in topi.schedule(out, TARGET).stages if not stage.inlined}
    assert "T_resize2d" in kept
    assert "T_resize2d_rows" not in kept

"""VectorizeReductions: sums are vectors in registers while their loops run, and joined at the end."""

from __future__ import annotations

PARAMS = 'p: T.ptr("int32", "global"), q: T.ptr("int32", "lsram")'
SUM = """q[0] = 0
for k in T.serial(0, 4, 1, nonneg=True):
    for i in T.{}(0, 8, 1, nonneg=True):
        q[0] = (q[0] {} p[((k * 8) + i)])"""


def test_a_vectorised_reduction_is_a_vector_whose_lanes_are_joined_once(transform):
    text = transform("VectorizeReductions", SUM.format("vectorized", "+"), PARAMS)
    before, _, after = text.partition("for k")
    assert "T.int32x8" in before and "S.vrpadd(" in after and after.count("p[T.ramp(") == 1
    assert "S.vrpadd" not in after.splitlines()[1], "only behind the loop"


def test_a_serial_sum_is_a_variable(transform):
    text = transform("VectorizeReductions", SUM.format("serial", "+"), PARAMS)
    assert "vrpadd" not in text and text.count("q[0]") == 1 and text.splitlines()[-1].startswith("q[0] = ")


def test_a_difference_of_lanes_is_no_reduction_of_them(transform):
    assert "T.vectorized" not in transform("VectorizeReductions", SUM.format("vectorized", "-"), PARAMS)


def test_a_place_that_changes_with_the_loop_stays(check):
    check("VectorizeReductions", PARAMS, "for i in T.serial(0, 8, 1, nonneg=True):\n    q[i] = (q[i] + p[i])")

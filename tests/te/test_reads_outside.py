"""Elements that are beyond an end of their tensor whatever the axes are: refused, but for those behind conditions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compassc import te

SMALL = st.integers(1, 6)


@settings(max_examples=200, deadline=None)
@given(SMALL, SMALL, st.integers(-4, 4), st.integers(-30, 30))
def test_a_read_is_refused_where_all_of_it_lies_beyond_an_end(turns, elements, step, begin):
    a = te.compute((elements,), lambda i: 1.0, name="a")
    ends = begin, begin + (turns - 1) * step

    def read():
        return te.compute((turns,), lambda i: a[i * step + begin] * 2.0)

    if max(ends) >= 0 and min(ends) < elements:
        assert read().shape[0].value == turns
    else:
        with pytest.raises(te.ExpressionError, match=f"reads 'a' at .* in dimension 0, which has {elements} elements"):
            read()


def test_reductions_read_their_sources():
    a, k = te.placeholder((4, 4), name="a"), te.reduce_axis((4, 8), "k")
    with pytest.raises(te.ExpressionError, match="'c' reads 'a' at k in dimension 1"):
        te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="c")
    te.compute((4,), lambda i: te.sum(a[i, k], axis=k, where=i > 4), name="c")
    te.compute((4,), lambda i: te.sum(a[i, k - 4], axis=k), name="c")


@pytest.mark.parametrize(
    "body",
    [
        lambda a, n: te.if_then_else(n > 4, a[9], 0.0),
        lambda a, n: te.if_then_else(te.all(n > 9, a[9] > 1.0), 1.0, 0.0),
        lambda a, n: a[n],
    ],
)
def test_conditions_guard_what_they_read(body):
    te.compute((4,), lambda i: body(te.placeholder((4,)), te.size_var("n")))


def test_the_condition_itself_is_read():
    with pytest.raises(te.ExpressionError, match="at 9 in dimension 0"):
        te.compute((4,), lambda i: te.if_then_else(te.placeholder((4,))[9] > 0.0, 1.0, 0.0))


def test_what_has_no_elements_reads_nothing():
    a = te.placeholder((1,), name="a")
    assert te.compute((0,), lambda i: a[i + 1]).shape[0].value == 0
    te.compute((2, 1), lambda i, t: a[t - 1])  # a scan of one row would read its state so, and compute none of it
    with pytest.raises(te.ExpressionError, match="'c' reads 'a' at -1 in dimension 0"):
        te.compute((2,), lambda i: a[-1], name="c")

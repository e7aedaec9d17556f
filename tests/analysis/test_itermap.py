"""Indices as digits of loops: what is said of them holds for the values that they take."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from compassc.analysis.interpret import evaluate
from compassc.analysis.itermap import covers, digits_of, is_dense, is_injective, once, separates
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, IntImm, Var

LOOPS = tuple(Var(name, INT32, True) for name in "ijk")
NUMBERS = st.integers(1, 6).map(lambda n: IntImm(INT32, n))
INDICES = st.recursive(
    st.sampled_from(LOOPS) | NUMBERS,
    lambda inner: (
        st.builds(Binary, st.sampled_from(["add", "sub"]), inner, inner)
        | st.builds(Binary, st.sampled_from(["mul", "floordiv", "floormod"]), inner, NUMBERS)
    ),
    max_leaves=5,
)
SIZES = st.tuples(*[st.integers(1, 6)] * 3).map(lambda sizes: dict(zip(LOOPS, sizes)))


def values(indices, sizes):
    """The turns of the loops, each with the point that the indices are there."""
    for turn in itertools.product(*map(range, sizes.values())):
        at = dict(zip(LOOPS, turn))
        yield at, tuple(int(evaluate(e, at)) for e in indices)


@settings(max_examples=80, deadline=None)
@given(INDICES, SIZES, st.booleans())
def test_a_sum_of_digits_is_what_it_says(index, sizes, down):
    form = digits_of(index, sizes, down)
    if form is None:
        return
    found = [value for _, (value,) in values([index], sizes)]
    assert (min(found), max(found)) == (form.base, form.base + form.span) or len({d.var for d in form.digits}) < len(
        form.digits
    )
    if is_dense(form) and len({d.var for d in form.digits}) == len(form.digits):
        assert set(found) == set(range(form.base, form.base + form.span + 1))
    if is_injective(form) and len({d.var for d in form.digits}) == len(form.digits):
        digits = {tuple(at[d.var] // d.lower % d.extent for d in form.digits) for at, _ in values([index], sizes)}
        assert len(set(found)) == len(digits)


@settings(max_examples=80, deadline=None)
@given(st.lists(INDICES, min_size=1, max_size=2), SIZES, st.booleans())
def test_boxes_points_and_loops_that_are_apart(indices, sizes, down):
    turns = list(values(indices, sizes))
    points = [point for _, point in turns]
    if covers(indices, sizes):
        sides = [range(min(axis), max(axis) + 1) for axis in zip(*points)]
        assert set(points) == set(itertools.product(*sides))
    if once(indices, sizes):
        assert len(set(points)) == len(points)
    if separates(indices, sizes, LOOPS[0], down):
        owners: dict[tuple[int, ...], set[int]] = {}
        for at, point in turns:
            owners.setdefault(point, set()).add(at[LOOPS[0]])
        assert all(len(found) == 1 for found in owners.values())

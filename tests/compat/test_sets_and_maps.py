"""Sets of whole numbers, linear forms and maps of loops: what they say holds for the values that there are."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compassc.analysis.interpret import evaluate
from compassc.ir.dtypes import INT32
from compassc.ir.equal import assert_structural_equal
from compassc.ir.exprs import Binary, IntImm, Select, Var
from compassc.ir.iter_vars import Range
from compassc.te import all as all_of
from compassc.te import iter_maps as M
from compassc.te.analyzer import Analyzer
from compassc.te.int_sets import (
    IntervalSet,
    IntSet,
    estimate_region_lower_bound,
    estimate_region_upper_bound,
    neg_inf,
    pos_inf,
    union_lower_bound,
)
from compassc.te.linear_forms import deduce_bound, detect_clip_bound, detect_common_subexpr
from tests.choosing import some

X, Y, Z = (Var(name, INT32) for name in "xyz")
NUMBERS = st.integers(1, 6).map(lambda n: IntImm(INT32, n))
INDICES = st.recursive(
    st.sampled_from((X, Y)) | NUMBERS,
    lambda inner: (
        st.builds(Binary, st.sampled_from(["add", "add", "sub", "min", "max", "mul"]), inner, inner)
        | st.builds(Binary, st.sampled_from(["mul", "floordiv", "floormod", "div", "mod"]), inner, NUMBERS)
        | st.builds(lambda a, b: Select(Binary("lt", a, b), a, b), inner, inner)
    ),
    max_leaves=5,
)
PARTS = st.builds(
    lambda v, down, by, scale: (v // down) % by * scale,
    st.sampled_from((X, Y)), st.sampled_from((1, 2, 4)), st.sampled_from((2, 4, 8, 64)), st.sampled_from((1, 2, 4, 8)),
)  # fmt: skip
SUMS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: sum(parts[1:], parts[0]))
MAPS = st.lists(SUMS | st.builds(lambda e, by: e // by, SUMS, st.sampled_from((2, 4))), min_size=1, max_size=2)


@settings(max_examples=60, deadline=None)
@given(INDICES, st.integers(-5, 5), st.integers(0, 4), st.integers(-5, 5))
def test_a_set_has_all_values_reached(index, low, span, y):
    found = Analyzer().int_set(index, {X: IntervalSet(low, low + span)})
    ends = [None if e in (pos_inf(), neg_inf()) else evaluate(e, {Y: y}) for e in (found.min_value, found.max_value)]
    for x in some(range(low, low + span + 1)):
        value = evaluate(index, {X: x, Y: y})
        assert (ends[0] is None or ends[0] <= value) and (ends[1] is None or value <= ends[1])


@pytest.mark.parametrize("index, domain, low, high", [
    (X + Y, (0, 10), Y, Y + 10), (Y - X, (0, 10), Y - 10, Y), (X * -2, (1, 10), -20, -2), (X // 4, (0, 11), 0, 2),
    (X % 10, (13, 15), 3, 5), (X % 10, (3, 11), 0, 9), (X + 1, (0, pos_inf()), 1, pos_inf()),
    (Select(X > 0, X - 1, X + 1), (0, 10), -1, 11),
])  # fmt: skip
def test_sets(index, domain, low, high):
    assert_structural_equal(Analyzer().int_set(index, {X: IntervalSet(*domain)}), IntervalSet(low, high))


def test_sets_of_nothing_and_everything():
    assert IntervalSet(neg_inf(), pos_inf()).is_everything() and IntervalSet(pos_inf(), neg_inf()).is_nothing()
    assert not IntSet.single_point(3).is_nothing() and IntervalSet(4, 3).is_nothing()
    found = union_lower_bound([IntervalSet(0, 3), IntervalSet(4, 7), IntervalSet(9, 12)])
    assert_structural_equal(found, IntervalSet(0, 7))


@settings(max_examples=40, deadline=None)
@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(-6, 6), st.sampled_from(["lt", "le", "gt", "ge", "eq"]))
def test_a_deduced_bound_makes_its_condition_hold(a, b, c, op):
    cond = Binary(op, X * a + Y * b, Z + c)
    found = deduce_bound(X, cond, {Z: IntervalSet(0, 3)}, {Y: IntervalSet(-2, 2)})
    for x, y, z in some(itertools.product(range(-20, 21), range(-2, 3), range(4))):
        low, high = (0, -1) if found.is_nothing() else (
            -99 if e is neg_inf() else 99 if e is pos_inf() else evaluate(e, {Z: z}) for e in (found.min_value, found.max_value)
        )  # fmt: skip
        assert not low <= x <= high or evaluate(cond, {X: x, Y: y, Z: z})


def test_bounds_of_conditions():
    assert [str(e) for e in detect_clip_bound(all_of(X < Y * 6, X - 1 > 0), [X])] == ["2", "((y * 6) - 1)"]
    assert detect_clip_bound(X < Y, [X, Y]) == [] and detect_clip_bound(X * 2 < 8, [X]) == []
    assert [str(e) for e in detect_clip_bound(all_of(Binary("min", X, Y) > 3, X < 10), [X, Y])] == [
        "4",
        "9",
        "4",
        "None",
    ]
    assert (
        deduce_bound(X, X * 3 < 7, {}, {}).max_value.value == 2
        and deduce_bound(X, X * -3 < 7, {}, {}).min_value.value == -2
    )
    assert deduce_bound(X, X * X < 7, {}, {}).is_nothing()


@settings(max_examples=80, deadline=None)
@given(
    MAPS,
    st.sampled_from((2, 4, 6, 8)),
    st.sampled_from((1, 4, 8)),
    st.sampled_from((0, 1, 3)),
    st.sampled_from((None, 5, 7, 20)),
)
def test_maps_are_the_indices_and_reach_what_they_say(indices, x_turns, y_turns, start, limit):
    iters = {X: Range(0, x_turns), Y: Range(start, start + y_turns)}
    where = True if limit is None else X * y_turns + (Y - start) < limit
    turns = [
        {X: i, Y: j}
        for i in range(x_turns)
        for j in range(start, start + y_turns)
        if limit is None or i * y_turns + j - start < limit
    ]
    points = [tuple(evaluate(e, at) for e in indices) for at in turns]
    for level in some(M.IterMapLevel):
        found = M.detect_iter_map(indices, iters, where, level)
        if found.errors:
            assert not found.indices
            continue
        assert [tuple(evaluate(M.expression(t), at) for t in found.indices) for at in turns] == points
        if level == M.IterMapLevel.NoCheck:
            continue
        sizes = [[(p.extent.value, p.scale.value) for p in t.args] or [(1, 1)] for t in found.indices]
        sides = [[t.base.value + n * scale for n in range(size)] for t, ((size, scale),) in zip(found.indices, sizes)]
        assert set(points) == set(itertools.product(*sides))
        if level == M.IterMapLevel.Bijective:
            assert len(set(points)) == len(points)
            outputs = [Var(f"o{n}", INT32) for n in range(len(indices))]
            back = M.inverse_affine_iter_map(found.indices, outputs)
            for at, point in some(zip(turns, points)):
                there = dict(zip(outputs, point))
                assert all(evaluate(e, there) == at[v] for v, e in back.items())


def test_marks_of_fused_indices():
    iters = {X: Range(0, 10), Y: Range(0, 9)}
    (total,) = M.detect_iter_map([(Y // 3) * 6 + (X // 5) * 3 + Y % 3], iters).indices
    xs, ys = M.IterMark(X, 10), M.IterMark(Y, 9)
    parts = [M.IterSplitExpr(ys, 3, 3, 6), M.IterSplitExpr(xs, 5, 2, 3), M.IterSplitExpr(ys, 1, 3, 1)]
    whole = M.IterMark(M.IterSumExpr(parts, 0), 18)
    assert_structural_equal(total, M.IterSumExpr([M.IterSplitExpr(whole, 1, 18, 1)], 0))
    mark = total.args[0].source
    assert mark.extent.value == 18 and [p.scale.value for p in mark.source.args] == [6, 3, 1]
    sums = M.normalize_to_iter_sum(X * 3 + Y * 20 + Z, iters)
    assert [p.scale.value for p in sums.args] == [20, 3] and sums.base is Z
    assert [str(e) for e in M.iter_map_simplify([(X // 5) * 5 + X % 5], iters)] == ["x"]
    assert [str(e) for e in M.iter_map_simplify([X * Z], iters)] == ["(x * z)"]


@pytest.mark.parametrize("indices, where, level, reason", [
    ([X // 3, X % 3], True, 1, "3 does not divide 8"), ([X * Z], True, 1, "no constant"), ([X, X], True, 1, "same part"),
    ([X % 4, X // 2], True, 1, "overlap"), ([X * 5 + Y], True, 1, "do not fit"), ([X], True, 0, "no index is made of y"),
    ([X % 4, Y], True, 0, "told apart"), ([X, Y], X * 4 + Y < 30, 1, "not all points"), ([X], X * X < 3, 1, "no constant"),
    ([X], Y > 0, 1, "none of the form"), ([X], X < 0, 1, "never holds"), ([X // 2 - X], True, 1, "do not fit"),
])  # fmt: skip
def test_why_there_is_no_map(indices, where, level, reason):
    assert reason in M.detect_iter_map(indices, {X: Range(0, 8), Y: Range(0, 4)}, where, level).errors[0]


def test_indices_by_their_inner_loops():
    iters = {X: Range(0, 8), Y: Range(0, 4), Z: Range(0, 2)}
    row, ends = M.subspace_divide([X * 8 + Y * 2 + Z], iters, [Y, Z], X < 5)
    outer, inner = (M.normalize_iter_map_to_expr(mark) for mark in row)
    assert [mark.extent.value for mark in row] == [5, 8] and (str(outer), str(inner)) == ("x", "((y * 2) + z)")
    assert [str(mark.source.base) for mark in ends] == ["(x < 5)", "True"]
    assert (
        M.subspace_divide([X * 8 + Y * 2 + Z], iters, [X]) == [] and M.subspace_divide([X], iters, [X], X + Y < 5) == []
    )


def test_regions_of_loops():
    i, n = X, Y
    loops = {i: Range(0, 4)}
    (found,) = estimate_region_lower_bound([Range(i * 8 + n, i * 8 + n + 8)], loops)
    assert_structural_equal(found, IntervalSet(n, n + 31))
    assert estimate_region_lower_bound([Range(i * 8, i * 8 + 2)], loops) is None
    assert estimate_region_lower_bound([Range(i, i + 2), Range(i + 1, i + 4)], loops) is None
    found = estimate_region_upper_bound([Range(i, i + 2), Range(i + 1, i + 4)], loops)
    assert [(s.min_value.value, s.max_value.value) for s in found] == [(0, 4), (1, 6)]


def test_common_parts_are_counted_without_those_in_larger_ones():
    part = X + Y * 2
    found = detect_common_subexpr(part * Z + (X + Y * 2) // 3 + Y * 2, 2)
    assert found == {part: 2}
    assert detect_common_subexpr(part * Z + (X + Y * 2) // 3 + Y * 2, 3) == {part.b: 3}
    assert detect_common_subexpr(X + Y, 2) == {}

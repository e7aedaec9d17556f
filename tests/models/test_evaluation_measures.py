"""Measures of parts add up to those of the whole, whatever the parts are."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from compass_core.errors import CompassError, UsageError
from compassc.evaluation.measures import BINS, Histogram
from compassc.evaluation.metrics import TopK, metric_named
from compassc.quantizer.similarity import Similarity

ARRAYS = st.lists(
    hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(-1e6, 1e6, width=32)), min_size=1, max_size=6
)


@given(ARRAYS, st.data())
def test_histograms_of_parts_are_that_of_the_whole(arrays, data):
    at = data.draw(st.integers(0, len(arrays)))
    whole, first, second = Histogram(), Histogram(), Histogram()
    for i, array in enumerate(arrays):
        whole.add(array)
        (first if i < at else second).add(array)
    first.merge(second)
    flat = np.concatenate(arrays).astype(np.float64)
    edges = np.array(whole.edges())
    assert first.as_data() == whole.as_data()
    assert len(whole.counts) <= BINS and whole.counts.sum() == flat.size
    assert (whole.low, whole.high) == (flat.min(), flat.max())
    assert np.array_equal(
        np.bincount(np.searchsorted(edges, flat, "right") - 1, minlength=len(whole.counts)), whole.counts
    )


@given(ARRAYS)
def test_similarity_is_that_of_all_samples_together(arrays):
    rng = np.random.default_rng(0)
    made, parts = Similarity(), [Similarity() for _ in arrays]
    others = [a + rng.normal(size=a.shape).astype(np.float32) for a in arrays]
    for i, (a, b) in enumerate(zip(others, arrays, strict=True)):
        made.add(a, b, i)
        parts[i].add(a, b, i)
    merged = Similarity()
    for part in reversed(parts):
        merged.merge(part)
    a, b = (np.concatenate(x).astype(np.float64) for x in (others, arrays))
    assert math.isclose(merged.cosine, made.cosine, rel_tol=1e-12) and merged.at == made.at
    assert math.isclose(made.mse, ((a - b) ** 2).mean(), rel_tol=1e-9)
    if b.any():
        assert math.isclose(made.cosine, a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel_tol=1e-9, abs_tol=1e-9)
        assert math.isclose(made.sqnr, 10 * math.log10((b**2).sum() / ((a - b) ** 2).sum()), rel_tol=1e-9, abs_tol=1e-9)


def test_what_is_not_finite_is_said_so():
    one = Similarity()
    one.add(np.ones(3), np.ones(3), 0)
    one.add(np.array([1, np.nan, 1]), np.ones(3), 1)
    assert math.isnan(one.cosine) and math.isnan(one.sqnr) and one.at == 1
    assert one.as_data()["cosine"] is None
    equal, zero = Similarity(), Similarity()
    equal.add(np.ones(3), np.ones(3), 0)
    zero.add(np.ones(3), np.zeros(3), 0)
    assert (equal.cosine, equal.sqnr, zero.cosine, zero.sqnr) == (1, math.inf, 0, -math.inf)
    spread = Histogram()
    spread.add(np.array([np.inf, 1, np.nan]))
    assert (spread.low, spread.high, spread.counts.sum()) == (1, 1, 1)


def test_the_place_of_the_right_class_is_counted():
    metric = TopK()
    kept = [metric.of([np.array([[0.1, 0.7, 0.2]])], label) for label in (1, 2, 0)]
    assert [place for place, _ in kept] == [0, 1, 2] and metric.total(kept) == {"top-1": 1 / 3}
    assert metric.of([np.array([1, 1, 0])], 1) == (1, 3), "of equal scores the first counts as higher"
    assert metric.of([np.array([np.nan, 0])], 0) == (2, 2)
    for label in (3, -1, 0.5, np.zeros(2, int)):
        with pytest.raises(CompassError, match="none of the 3 classes"):
            metric.of([np.zeros(3)], label)


def test_metrics_of_users_are_named_with_their_lines(tmp_path):
    file = tmp_path / "score.py"
    file.write_text(
        "def first(outputs, labels):\n    return {'a': outputs[0][0], 'b': len(labels)}\n\n\ndef bad(o, l):\n    return o[9]\n"
    )
    metric = metric_named(f"{file}:first")
    assert metric.total([metric.of([np.array([2.0])], 7)]) == {"a": 2.0, "b": 1.0}
    with pytest.raises(CompassError, match="IndexError") as caught:
        metric_named(f"{file}:bad").total([])
    assert caught.value.span.line == 6
    for text, message in (
        (f"{file}:forst", "no function 'forst'"),
        ("score", "names no metric"),
        ("no.py:x", "no file"),
    ):
        with pytest.raises(UsageError, match=message):
            metric_named(text)
    file.write_text("x = 1\ny = z\n")
    with pytest.raises(CompassError, match="NameError") as caught:
        metric_named(f"{file}:first")
    assert caught.value.span.line == 2

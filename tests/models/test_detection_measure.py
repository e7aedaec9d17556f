"""The measure of detectors, against its definition."""

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.evaluation.detection import MeanPrecision, overlap
from compassc.evaluation.metrics import metric_named

CLASSES = 3


def drawn(rng, samples=12):
    """Outputs and labels of samples: boxes near those that are there, and others, none on another of its class."""
    made = []
    for _ in range(samples):
        count = rng.integers(0, 4)
        corners = np.stack([rng.permutation(4)[:count] * 10.0, rng.uniform(0, 3, count)], 1)
        there = np.concatenate([corners, corners + rng.uniform(3, 8, (count, 2))], 1)
        boxes = np.concatenate([there + rng.normal(0, 0.5, there.shape), [[50.0, 50, 55, 55], [70, 70, 80, 75]]])
        scores = rng.uniform(0, 1, (count + 2, CLASSES))
        made.append(([boxes[None], scores[None]], np.c_[there, rng.integers(0, CLASSES, count)]))
    return made


def by_definition(samples, least):
    """The mean over classes of the best precision that is left at each of 101 recalls; boxes of a class lie apart, so that
    each find has at most one box."""
    means = []
    for kind in range(CLASSES):
        finds, there = [], 0
        for (boxes, scores), label in samples:
            own = label[label[:, 4] == kind][:, :4]
            there += len(own)
            near = overlap(boxes[0], own).max(1, initial=0) >= least
            finds += list(zip(scores[0][:, kind], near, strict=True))
        if there:
            finds.sort(key=lambda find: -find[0])
            hits = [sum(right for _, right in finds[: i + 1]) for i in range(len(finds))]
            points = [(hit / there, hit / (i + 1)) for i, hit in enumerate(hits)]
            means.append(np.mean([max((p for r, p in points if r >= at), default=0) for at in np.linspace(0, 1, 101)]))
    return np.mean(means)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_its_definition_says(seed):
    samples = drawn(np.random.default_rng(seed))
    metric = metric_named("map")
    found = metric.total([metric.of(outputs, label) for outputs, label in samples])
    assert found["mAP50"] == pytest.approx(by_definition(samples, 0.5))
    each = [by_definition(samples, least) for least in np.arange(0.5, 1, 0.05)]
    assert found["mAP"] == pytest.approx(np.mean(each)) and 0 < found["mAP"] < found["mAP50"] < 1


def test_only_the_order_of_scores_counts_and_second_finds_do_not():
    rng = np.random.default_rng(1)
    metric, samples = MeanPrecision(centred=False), drawn(rng)
    want = metric.total([metric.of(*sample) for sample in samples])
    assert metric.total([metric.of([s * 9 - 40, b], label) for (b, s), label in samples]) == pytest.approx(want)
    twice = [([np.repeat(b, 2, 1), np.stack([s, s - 1e-3], 2).reshape(1, -1, CLASSES)], y) for (b, s), y in samples]
    assert metric.total([metric.of(*sample) for sample in twice]) == pytest.approx(want)


def test_boxes_by_their_centres_are_the_same_boxes():
    def centred(boxes):
        low, high = boxes[..., :2], boxes[..., 2:4]
        return np.concatenate([(low + high) / 2, high - low, boxes[..., 4:]], -1)

    samples = drawn(np.random.default_rng(2))
    corners, centres = metric_named("map"), metric_named("map-centred")
    want = corners.total([corners.of(*sample) for sample in samples])
    filled = [np.concatenate([centred(label), np.full((2, 5), -1.0)]) for _, label in samples]
    kept = [centres.of([centred(b), s], label) for ((b, s), _), label in zip(samples, filled, strict=True)]
    assert centres.total(kept) == pytest.approx(want)


def test_nothing_found_and_nothing_there():
    metric = MeanPrecision(centred=False)
    boxes, scores = np.full((1, 2, 4), np.nan), np.ones((1, 2, CLASSES))
    assert metric.total([metric.of([boxes, scores], [[0, 0, 1, 1, 2]])]) == {"mAP50": 0, "mAP": 0}
    assert metric.total([metric.of([boxes, scores], np.full((1, 5), -1))]) == {}


def test_what_is_no_detector_is_refused():
    metric = MeanPrecision(centred=False)
    with pytest.raises(CompassError, match=r"\[1, 10\] are not boxes"):
        metric.of([np.zeros((1, 10))], np.zeros(5))
    with pytest.raises(CompassError, match=r"the shape \[4\], not that of boxes and classes"):
        metric.of([np.zeros((1, 2, 4)), np.zeros((1, 2, 3))], np.zeros(4))

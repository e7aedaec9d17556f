"""Mean average precision of boxes with classes, as COCO measures it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple

OVERLAPS = np.arange(0.5, 1.0, 0.05)
"""The least overlaps, of two boxes to what both cover, with which a box is found: each gives a precision."""
SUPPRESSED = 0.65
"""The overlap from which on a box of the same class with a smaller score is the same find."""
MOST = 100
"""Finds of a sample that count, those with the largest scores."""
RECALLS = np.linspace(0, 1, 101)

Floats = NDArray[np.float64]


class Found(NamedTuple):
    """The finds of a sample: `classes` [n], `scores` [n], and which are right with each of `OVERLAPS` [n, 10]; `wanted`: the
    classes of what was there [m]."""

    classes: NDArray[np.int64]
    scores: Floats
    right: NDArray[np.bool_]
    wanted: NDArray[np.int64]


class MeanPrecision:
    """Detection: the mean over classes of the average precision, with an overlap of 0.5 (`mAP50`) and the mean of ten from 0.5 to
    0.95 (`mAP`). The model has an output of boxes [..., n, 4] and one of scores [..., n, classes]; labels are boxes and classes
    [m, 5], rows of a negative class are none. `centred`: boxes are centre, width and height, else two corners."""

    def __init__(self, centred: bool) -> None:
        self.centred = centred

    def of(self, outputs: Sequence[Array], label: object) -> Found:
        """What is kept of a sample. CompassError where outputs or label have other shapes."""
        boxes, scores = _boxes_and_scores(outputs)
        wanted = np.asarray(label, np.float64)
        if wanted.shape[-1:] != (5,):
            raise CompassError(
                f"the label of a sample has the shape {list(wanted.shape)}, not that of boxes and classes, [m, 5]",
                code="evaluation-data",
                help="give a row for each box: its four numbers as the model's, and its class",
            )
        wanted = wanted.reshape(-1, 5)
        wanted = wanted[wanted[:, 4] >= 0]
        classes = wanted[:, 4].astype(np.int64)
        finds = _finds(self._corners(boxes), scores)
        places = self._corners(wanted[:, :4])
        right = np.zeros((len(finds.scores), len(OVERLAPS)), np.bool_)
        for kind in np.unique(classes):
            own, there = finds.classes == kind, classes == kind
            right[own] = _matched(overlap(finds.boxes[own], places[there]))
        return Found(finds.classes, finds.scores, right, classes)

    def total(self, kept: Sequence[Found]) -> dict[str, float]:
        classes, scores, right, wanted = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        order = np.argsort(-scores, kind="stable")
        classes, right = classes[order], right[order]
        known, counts = np.unique(wanted, return_counts=True)
        if not len(known):
            return {}
        each = np.stack([_precision(right[classes == kind], count) for kind, count in zip(known, counts, strict=True)])
        return {"mAP50": float(each[:, 0].mean()), "mAP": float(each.mean())}

    def _corners(self, boxes: Floats) -> Floats:
        if not self.centred:
            return boxes
        middle, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([middle - half, middle + half], 1)


class _Finds(NamedTuple):
    boxes: Floats
    classes: NDArray[np.int64]
    scores: Floats


def overlap(some: Floats, others: Floats) -> Floats:
    """Of boxes [n, 4] and [m, 4], given by two corners, what each two have in common to what both cover: [n, m]."""
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    common = np.maximum(high - low, 0).prod(-1)
    areas = [np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(-1) for boxes in (some, others)]
    both = areas[0][:, None] + areas[1][None] - common
    shares: Floats = np.divide(common, both, out=np.zeros_like(common), where=both > 0)
    return shares


def _boxes_and_scores(outputs: Sequence[Array]) -> tuple[Floats, Floats]:
    flat = [np.asarray(o, np.float64).reshape(-1, o.shape[-1]) for o in outputs if o.ndim]
    boxes = next((i for i, o in enumerate(flat) if o.shape[-1] == 4), None)
    if len(flat) != 2 or boxes is None or len(flat[0]) != len(flat[1]):
        shapes = ", ".join(str(list(o.shape)) for o in outputs)
        raise CompassError(
            f"outputs of the shapes {shapes} are not boxes [..., n, 4] and scores [..., n, classes]",
            code="evaluation-data",
            help="for others give a measure of yours: --metric FILE.py:NAME",
        )
    return flat[boxes], flat[1 - boxes]


def _finds(boxes: Floats, scores: Floats) -> _Finds:
    """The best finds of all classes, in the order of their scores. What is not finite finds nothing."""
    finite = np.isfinite(scores) & np.isfinite(boxes).all(1, keepdims=True)
    at = [np.array(list(_kept(boxes, scores[:, kind], finite[:, kind])), np.int64) for kind in range(scores.shape[1])]
    classes = np.repeat(np.arange(len(at)), [len(own) for own in at])
    rows = np.concatenate(at) if at else np.zeros(0, np.int64)
    found = scores[rows, classes]
    order = np.argsort(-found, kind="stable")[:MOST]
    return _Finds(boxes[rows[order]], classes[order], found[order])


def _kept(boxes: Floats, scores: Floats, finite: NDArray[np.bool_]) -> Iterator[int]:
    """The rows of one class that are no second finds of what a larger score has found."""
    rows = np.flatnonzero(finite)
    rows = rows[np.argsort(-scores[rows], kind="stable")][: 10 * MOST]
    while len(rows):
        yield int(rows[0])
        rows = rows[1:][overlap(boxes[rows[:1]], boxes[rows[1:]])[0] < SUPPRESSED]


def _matched(overlaps: Floats) -> NDArray[np.bool_]:
    """Which finds [n] of a class, in the order of their scores, are right with each least overlap: [n, 10]. Each has the box
    [m] that it lies on best, of those that none before has."""
    right = np.zeros((len(overlaps), len(OVERLAPS)), np.bool_)
    for i, least in enumerate(OVERLAPS):
        left = overlaps.copy()
        for n in range(len(left)):
            best = int(left[n].argmax())
            if left[n, best] >= least:
                right[n, i] = True
                left[:, best] = -1
    return right


def _precision(right: NDArray[np.bool_], count: int) -> Floats:
    """The average precision of a class for each least overlap: of finds [n, 10] in the order of their scores, `count` were there."""
    hits = right.cumsum(0)
    precision = hits / np.arange(1, len(right) + 1)[:, None]
    envelope = np.maximum.accumulate(precision[::-1], 0)[::-1]
    found = np.zeros(len(OVERLAPS))
    for i in range(len(OVERLAPS)):
        at = np.searchsorted(hits[:, i] / count, RECALLS)
        found[i] = np.append(envelope[:, i], 0.0)[at].mean()
    return found

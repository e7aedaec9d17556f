"""What each network of the zoo is for: the data that it is trained on, calibrated with and measured on, and how good its
answers are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.zoo import data

Array = np.ndarray[Any, Any]
MODELS = Path(__file__).with_name("models")
CALIBRATED, MEASURED = 100, 500
"""Samples that networks are calibrated with, and measured on; neither was trained on."""
NEAR = 0.5
"""The least overlap, of two boxes to what both cover, of a box that is found."""


def top1(outputs: Sequence[Array], answers: Array) -> float:
    """Of how many, in per cent, the largest score is that of the answer; scores lie along the last axis."""
    return float((outputs[0].argmax(-1) == answers).mean() * 100)


def pixels(outputs: Sequence[Array], answers: Array) -> float:
    """Of how many pixels, in per cent, a mask says what they are."""
    return float(((outputs[0][:, 0] > 0.5) == answers).mean() * 100)


def psnr(outputs: Sequence[Array], answers: Array) -> float:
    """The mean over pictures of the ratio of the peak, 1, to the error, in dB."""
    errors = ((outputs[0] - answers) ** 2).mean(tuple(range(1, answers.ndim)))
    return float((-10 * np.log10(errors)).mean())


def found(outputs: Sequence[Array], answers: Array) -> float:
    """Of how many pictures, in per cent, the box of the largest score has the class and lies where it should. `answers`:
    centre, width, height, class."""
    boxes, scores = outputs
    best = scores.max(-1).argmax(-1)
    rows = np.arange(len(best))
    made, label = boxes[rows, best], scores[rows, best].argmax(-1)
    low = np.maximum(made[:, :2] - made[:, 2:] / 2, answers[:, :2] - answers[:, 2:4] / 2)
    high = np.minimum(made[:, :2] + made[:, 2:] / 2, answers[:, :2] + answers[:, 2:4] / 2)
    common = np.maximum(high - low, 0).prod(-1)
    union = made[:, 2:].prod(-1) + answers[:, 2:4].prod(-1) - common
    return float(((label == answers[:, 4]) & (common > NEAR * union)).mean() * 100)


@dataclass(frozen=True)
class Task:
    """`samples(seed, count)`: inputs [N, ...] of a network and the answers, different ones for each seed; `score` of its
    outputs [N, ...], in `unit`; `about`: what the network is, in words."""

    about: str
    samples: Callable[[int, int], tuple[Array, Array]]
    score: Callable[[Sequence[Array], Array], float] = top1
    unit: str = "%"

    @property
    def loss(self) -> float:
        """What an integer form may lose."""
        return 1.0 if self.unit == "%" else 0.5


TRAINED_DIGITS = 1197
"""Of the digits; the rest calibrates and tells."""
TRAINING, CALIBRATION, TEST = 1, 2, 3
"""Seeds."""


def _digits(seed: int, count: int) -> tuple[Array, Array]:
    images, labels = data.digits()
    first = {TRAINING: 0, CALIBRATION: TRAINED_DIGITS, TEST: TRAINED_DIGITS + CALIBRATED}[seed]
    last = min(first + count, TRAINED_DIGITS) if seed == TRAINING else first + count
    return images[first:last], labels[first:last]


def _same_digits(seed: int, count: int) -> tuple[Array, Array]:
    images, _ = _digits(seed, count)
    return images, images


def _lines(seed: int, count: int) -> tuple[Array, Array]:
    return data.lines(seed, count, *((0, TRAINED_DIGITS) if seed == TRAINING else (TRAINED_DIGITS, 1797)))


def _shapes(answer: int, seed: int, count: int) -> tuple[Array, Array]:
    made = data.shapes(seed, count)
    return made[0], made[answer]


def _places(seed: int, count: int) -> tuple[Array, Array]:
    images, labels, _, boxes = data.shapes(seed, count)
    return images, np.concatenate([boxes, labels[:, None]], -1)


def _small(seed: int, count: int) -> tuple[Array, Array]:
    images = data.shapes(seed, count)[0]
    return images.reshape(count, 3, 16, 2, 16, 2).mean((3, 5)), images


TASKS: dict[str, Task] = {
    "digits-cnn": Task("handwritten digits of 8x8; convolutions and mean pooling", _digits),
    "mobilenet": Task("eight shapes, 32x32 in colour; MobileNetV3, narrow", partial(_shapes, 1)),
    "vit": Task("the digits; two encoder blocks over patches of 2x2", _digits),
    "crnn": Task("lines of digits, 8x48; convolutions and a bidirectional LSTM", _lines),
    "unet": Task("masks of the shapes; U-Net", partial(_shapes, 2), pixels),
    "words": Task("ten words of 2,048 samples; a DFT by convolution, logarithms and a GRU", data.words),
    "detector": Task("boxes and classes of the shapes; a grid of 8x8 cells", _places, found),
    "larger": Task("pictures from 16x16 to 32x32; super resolution", _small, psnr, "dB"),
    "autoencoder": Task("digits through 24 numbers and back", _same_digits, psnr, "dB"),
}
"""The networks of the zoo, by the names of their files."""

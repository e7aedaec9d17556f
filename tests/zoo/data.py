"""Data that the zoo's networks learn from, calibrate with and are measured on: made by code from seeds, and scikit-learn's digits."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tests.digits import load_digits

Array = np.ndarray[Any, Any]
SHAPES = ("disc", "ring", "square", "frame", "triangle", "cross", "diamond", "bars")
"""Classes of the drawn pictures."""
SIZE = 32
"""Pixels of a drawn picture along each axis."""


@cache
def digits(seed: int = 7) -> tuple[Array, Array]:
    """scikit-learn's digits [1797, 1, 8, 8] from 0 to 1 in a fixed order, and their labels."""
    images, labels = load_digits()
    order = np.random.default_rng(seed).permutation(len(labels))
    return (images[order, None] / 16).astype(np.float32), labels[order]


def shapes(seed: int, count: int) -> tuple[Array, Array, Array, Array]:
    """Pictures [N, 3, SIZE, SIZE] from 0 to 1 of one shape each before a coloured, noisy ground; its class, its mask
    [N, SIZE, SIZE] and its box [N, 4]: the centre, width and height in pixels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, len(SHAPES), count)
    radius = random.uniform(4, 9, count)
    centre = random.uniform(radius, SIZE - 1 - radius, (2, count))
    y, x = (np.arange(SIZE)[axis] for axis in np.ix_(range(SIZE), range(SIZE)))
    v = (y[None] - centre[0][:, None, None]) / radius[:, None, None]
    u = (x[None] - centre[1][:, None, None]) / radius[:, None, None]
    round_, square, tilted = np.hypot(u, v), np.maximum(abs(u), abs(v)), abs(u) + abs(v)
    inside = np.stack([
        round_ < 1,
        (round_ < 1) & (round_ > 0.6),
        square < 0.9,
        (square < 0.9) & (square > 0.5),
        (v < 0.8) & (abs(u) < (v + 1) / 1.8),
        (square < 1) & ((abs(u) < 0.3) | (abs(v) < 0.3)),
        tilted < 1,
        (square < 0.9) & (np.floor((v + 1) * 2.5) % 2 == 0),
    ])  # fmt: skip
    mask = inside[labels, np.arange(count)]
    ground, paint = random.uniform(0, 1, (2, count, 3, 1, 1))
    paint = np.where(abs(paint - ground).max(1, keepdims=True) < 0.3, 1 - ground, paint)
    slope = random.uniform(-0.3, 0.3, (2, count, 1, 1, 1))
    light = 1 + slope[0] * (x / SIZE - 0.5) + slope[1] * (y / SIZE - 0.5)
    noise = random.normal(0, 0.05, (count, 3, SIZE, SIZE))
    images = np.clip(np.where(mask[:, None], paint, ground) * light + noise, 0, 1).astype(np.float32)
    boxes = np.stack([centre[1], centre[0], 2 * radius, 2 * radius], -1).astype(np.float32)
    return images, labels, mask.astype(np.int64), boxes


SAMPLES, RATE = 2048, 8000
"""Of a spoken word: its length, and how many samples a second has."""
WORDS = 10


def words(seed: int, count: int) -> tuple[Array, Array]:
    """Sounds [N, 1, SAMPLES], of a loudness that spans 30 dB: three vowels of two formants each, which glide; the word's
    number."""
    random = np.random.default_rng(seed)
    formants = np.random.default_rng(99).uniform((300, 900), (900, 2800), (WORDS, 4, 2))
    labels = random.integers(0, WORDS, count)
    time = np.linspace(0, 3, SAMPLES)[None] * random.uniform(0.85, 1, (count, 1))
    step = np.minimum(time.astype(int), 2)
    part = (time - step)[..., None]
    of = formants[labels] * random.uniform(0.95, 1.05, (count, 1, 1))
    rows = np.arange(count)[:, None]
    pitch = of[rows, step] * (1 - part) + of[rows, step + 1] * part
    phase = 2 * np.pi * np.cumsum(pitch, 1) / RATE
    voice = (np.sin(phase) * random.uniform(0.4, 1, (count, 1, 2))).sum(-1) * (0.6 + 0.4 * np.sin(np.pi * part[..., 0]))
    loudness = 10 ** random.uniform(-1.5, 0, (count, 1))
    noise = random.normal(0, 0.1, (count, SAMPLES))
    return ((voice + noise) * loudness)[:, None].astype(np.float32), labels


STEPS, BLANK = 12, 10
"""Of a line of digits: columns of four pixels, each of which reads a digit or nothing."""


def lines(seed: int, count: int, first: int, last: int) -> tuple[Array, Array]:
    """Lines of three to five digits [N, 1, 8, 48], of those from `first` to `last` of `digits`; what each column of four
    pixels reads [N, STEPS]: the digit whose middle it has, or BLANK."""
    random = np.random.default_rng(seed)
    images, labels = digits()
    made = np.zeros((count, 1, 8, 4 * STEPS), np.float32)
    read = np.full((count, STEPS), BLANK)
    for i in range(count):
        at = random.integers(0, 5)
        while at + 8 <= 4 * STEPS:
            which = random.integers(first, last)
            made[i, 0, :, at : at + 8] = np.maximum(made[i, 0, :, at : at + 8], images[which, 0])
            read[i, (at + 4) // 4] = labels[which]
            at += 8 + random.integers(0, 5)
    return np.clip(made + random.normal(0, 0.05, made.shape), 0, 1).astype(np.float32), read

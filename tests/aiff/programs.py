"""Programs for the AIFF with random data, and what they compute in NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from compass_core.aiff.weights import pack
from compassc.dsl import Aiff
from compassc.dsl.aiff.programs import (
    SURFACE,
    configure_convolutions,
    configure_pool,
    configure_tables,
    image_of,
    planes,
)

Array = np.ndarray[Any, Any]


@dataclass
class Pool:
    """A pooling by maxima, on X2. `row`: pixels from row to row; 0: as many as there are."""

    height: int
    width: int
    channels: int = 32
    kernel: tuple[int, int] = (2, 2)
    stride: tuple[int, int] = (2, 2)
    dtype: str = "uint8"
    row: int = 0
    nhwc: bool = False
    tile_rows: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.height * 1000 + self.width)
        info = np.iinfo(self.dtype)
        shape = (self.height, self.width, self.channels)
        self.image = rng.integers(info.min, int(info.max) + 1, shape).astype(self.dtype)
        self.input = planes(self.image, self.row)
        empty = np.zeros_like(self.expected())
        self.output = empty if self.nhwc else planes(empty)

    def aiff(self) -> Aiff:
        aiff = Aiff("X2_1204")
        configure_pool(aiff, self.input, self.output, self.image.shape, self.kernel, self.stride)
        if self.tile_rows:
            aiff.ptp.h_step.h_step_in = aiff.ptp.h_step.h_step_len = self.tile_rows
        return aiff

    def result(self) -> Array:
        return self.output if self.nhwc else image_of(self.output, self.channels)

    def expected(self) -> Array:
        (kh, kw), (sh, sw) = self.kernel, self.stride
        windows = np.lib.stride_tricks.sliding_window_view(self.image, (kh, kw), axis=(0, 1))
        return windows[::sh, ::sw].max(axis=(3, 4))


class Table:
    """Bytes through a table of 257 entries, in images of two columns: one for each MTP."""

    def __init__(self, data: Array, table: Array, target: str, height: int) -> None:
        self.data, self.table, self.target, self.height = data, table, target, height
        self.output = np.zeros(data.size, np.int8)

    def add_to(self, aiff: Aiff, first: int) -> None:
        """The last configuration works on two images from byte `first` on."""
        size = self.height * 2 * SURFACE
        parts = [slice(first, first + size), slice(first + size, first + 2 * size)]
        shape = (1, self.height, 2, SURFACE)
        images, outputs = ([whole[at].reshape(shape) for at in parts] for whole in (self.data, self.output))
        configure_tables(aiff, images, self.table, outputs)

    def aiff(self) -> Aiff:
        aiff = Aiff(self.target)
        self.add_to(aiff, 0)
        return aiff

    def expected(self) -> Array:
        return self.table[self.data].astype(np.int8)


class Convolution:
    """1x1 convolutions of int8 planes to the channels of one NHWC tensor: `outputs` channels per MTP, two MTPs a node."""

    FACTOR, SHIFT = 189, 15

    def __init__(self, height: int, width: int, inputs: int, outputs: tuple[int, ...], seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.outputs = outputs
        self.image = rng.integers(-128, 128, (height, width, inputs)).astype(np.int8)
        self.surfaces = planes(self.image)
        spread = 40 / math.sqrt(inputs)
        self.weights = [np.clip(rng.normal(0, spread, (inputs, n)).round(), -128, 127).astype(np.int8) for n in outputs]
        self.streams = [np.frombuffer(pack(w), np.uint8).copy() for w in self.weights]
        self.biases = [rng.integers(-3000, 3000, n).astype(np.int16) for n in outputs]
        self.output = np.zeros((height, width, sum(outputs)), np.int8)

    def aiff(self) -> Aiff:
        aiff = Aiff("X2_1204")
        ends = np.cumsum(self.outputs)
        views = [self.output[:, :, end - n : end] for end, n in zip(ends, self.outputs)]
        for k in range(0, len(self.outputs), 2):
            if k:
                aiff.add_new_register_config()
            part = slice(k, k + 2)
            parts = self.streams[part], self.biases[part], views[part]
            configure_convolutions(aiff, self.surfaces, *parts, self.FACTOR, self.SHIFT)
        return aiff

    def sums(self) -> Array:
        """The exact sums with biases, before they are scaled."""
        parts = [self.image.astype(np.int64) @ w.astype(np.int64) for w in self.weights]
        return np.concatenate(parts, axis=-1) + np.concatenate(self.biases).astype(np.int64)

    def expected(self) -> Array:
        return (self.sums() * self.FACTOR + (1 << self.SHIFT - 1) >> self.SHIFT).astype(np.int8)

"""Constants of kernels that are the weights of layers in another order: they are made where they are written, part by part, so
that no memory holds both."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.namedtuple import NamedTuple

PART = 1 << 19
"""Bytes of packed weights that are made at once."""


class Packing(NamedTuple):
    """How the weights of a convolution are packed: [group][block][chunk][plane][ky][kx][word][lane][channel of the word].

    `groups`, and `own` output channels of each, in blocks of `lanes`; the cells of the window; `inner` input channels, in
    words of `per_word`, of which there are `chunk` in each of the `chunks`.
    """

    lanes: int
    groups: int
    own: int
    kernel: tuple[int, ...]
    inner: int
    per_word: int
    chunk: int
    chunks: int

    @property
    def blocks(self) -> int:
        return -(-self.own // self.lanes)


class Arranged(NamedTuple):
    """A constant in one dimension: weights [plane,O,KH,KW,I], packed."""

    planes: Array
    packing: Packing

    @property
    def dtype(self) -> NumpyDType:
        return self.planes.dtype

    @property
    def size(self) -> int:
        """Elements."""
        return self.packing.groups * self.packing.blocks * self._block // self.planes.itemsize

    @property
    def _block(self) -> int:
        """Bytes of a block."""
        p = self.packing
        return 4 * p.lanes * p.chunks * p.chunk * len(self.planes) * prod(p.kernel)

    @property
    def array(self) -> Array:
        return np.concatenate([part.reshape(-1) for part in self.parts()])

    def parts(self) -> Iterator[Array]:
        """It, made anew, as arrays one behind the other. The first one is small: by it constants are told apart."""
        p, planes = self.packing, self.planes
        wide = planes.reshape(len(planes), p.groups, p.own, *p.kernel, p.inner)
        step = max(1, PART // self._block)
        one_word = p._replace(chunk=1, chunks=1)
        yield _packed(one_word, wide[:1, :1, : p.lanes, :1, :1, : p.per_word]).view(planes.dtype)
        known = p.lanes
        for groups in _cuts(p.groups, step if p.blocks == 1 else 1):
            for blocks in _cuts(p.blocks, step):
                outputs = slice(blocks.start * p.lanes, blocks.stop * p.lanes)
                made = _packed(p, wide[:, groups, outputs])
                yield made.reshape(-1)[known:].view(planes.dtype)
                known = 0


def _cuts(many: int, step: int) -> Iterator[slice]:
    """Slices of so many things that take turns of `step`."""
    return (slice(first, min(first + step, many)) for first in range(0, many, step))


def _packed(p: Packing, weights: Array) -> Array:
    """Words of some groups and blocks, packed: weights [plane,group,O,KH,KW,I]."""
    many, groups, own, kh, kw, inner = weights.shape
    blocks = -(-own // p.lanes)
    if own % p.lanes or inner % p.per_word:
        room = ((0, 0), (0, 0), (0, -own % p.lanes), (0, 0), (0, 0), (0, -inner % p.per_word))
        weights = np.pad(weights, room)
    words = np.ascontiguousarray(weights).view(np.uint32).reshape(many, groups, blocks, p.lanes, kh, kw, -1)
    parts = words.transpose(1, 2, 0, 4, 5, 6, 3)
    if parts.shape[5] == p.chunk:
        return np.ascontiguousarray(parts)
    made = np.zeros((groups, blocks, p.chunks, many, kh, kw, p.chunk, p.lanes), np.uint32)
    for number, first in enumerate(range(0, p.chunks * p.chunk, p.chunk)):
        piece = parts[..., first : first + p.chunk, :]
        made[:, :, number, ..., : piece.shape[5], :] = piece
    return made

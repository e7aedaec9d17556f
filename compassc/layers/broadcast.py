"""Broadcasting of operands: as in NumPy, and by repetition where one size divides the other."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.graph import LayerError


def common_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the result; LayerError where neither size divides the other."""
    rank = max(len(a), len(b))
    wide = [(1,) * (rank - len(s)) + tuple(s) for s in (a, b)]
    for m, n in zip(*wide, strict=True):
        if max(m, n) % max(1, min(m, n)):
            raise LayerError(f"the shapes {list(a)} and {list(b)} do not fit together")
    return tuple(0 if 0 in (m, n) else max(m, n) for m, n in zip(*wide, strict=True))


def broadcast(a: Array, b: Array) -> tuple[Array, Array]:
    """Both operands in their common shape."""
    shape = common_shape(a.shape, b.shape)
    return _repeated(a, shape), _repeated(b, shape)


def _repeated(x: Array, shape: tuple[int, ...]) -> Array:
    if x.shape == shape:
        return x
    x = x.reshape((1,) * (len(shape) - x.ndim) + x.shape)
    return np.tile(x, [n // m if m else 1 for n, m in zip(shape, x.shape, strict=True)])

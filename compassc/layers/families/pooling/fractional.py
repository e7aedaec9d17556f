"""Pooling with windows of random sizes, which follow from a seed: the windows and the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import approximate_factor, requantise
from compassc.operators.arrays import largest_of

WORD = 2**32 - 1


def _generator(seed: int) -> Callable[[], int]:
    source = np.random.MT19937()
    # the seeding the format names, which NumPy keeps for old code
    source._legacy_seeding(seed)
    return lambda: int(source.random_raw())


def _up_to(draw: Callable[[], int], last: int) -> int:
    """A number from 0 to `last`, each as likely."""
    part = WORD // (last + 1)
    while (found := draw()) >= (last + 1) * part:
        pass
    return found // part


def _shuffled(values: list[int], draw: Callable[[], int]) -> list[int]:
    """In random order: a draw places two elements."""
    d, n, i = list(values), len(values), 1
    if n > WORD // n:
        return d
    if n % 2 == 0:
        at = _up_to(draw, 1)
        d[1], d[at] = d[at], d[1]
        i = 2
    while i < n:
        r = i + 1
        x = _up_to(draw, r * (r + 1) - 1)
        for at in (x // (r + 1), x % (r + 1)):
            d[i], d[at] = d[at], d[i]
            i += 1
    return d


def boundaries(size: int, parts: int, pseudo: bool, seed: int) -> Array:
    """The starts of windows, and the end of the last."""
    draw = _generator(seed)
    whole = size // parts
    if not pseudo:
        steps = _shuffled([whole + (i < size % parts) for i in range(parts)], draw)
        return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
    ratio = size / parts
    most = min((whole + 2) / ratio - 1, (size + 1 - whole) / ratio - (parts - 1))
    low = draw()
    u = (low + draw() * 2**32) / 2**64 * most
    inner = [int(np.ceil(np.float32(ratio * (i + u)))) - 1 for i in range(1, parts)]
    return np.asarray([0, *inner, size], np.int64)


def windows_of(layer: Layer) -> list[tuple[Array, Array, Array]]:
    """For rows and columns: the boundaries, and where windows begin and end."""
    x, y = layer.input.shape, layer.output.shape
    if len(x) != 4 or len(y) != 4 or (x[0], x[3]) != (y[0], y[3]) or 0 in (*x, *y) or y[1] > x[1] or y[2] > x[2]:
        raise LayerError(f"{list(x)} is not pooled to {list(y)}")
    layer.word("method", choices=("AVG", "MAX"))
    seed = layer.integer("seed")
    if not 0 < seed <= WORD:
        raise LayerError(f"'seed' is {seed}: windows that differ from run to run are not supported; give it a seed")
    wanted = [(y[1] + 1,), (y[2] + 1,)]
    if len(layer.outputs) not in (1, 3) or [t.shape for t in layer.outputs[1:]] not in ([], wanted):
        raise LayerError(f"the outputs are {[list(t.shape) for t in layer.outputs]}, expected {list(y)} and boundaries")
    found = []
    for size, parts in zip(x[1:3], y[1:3], strict=True):
        b = boundaries(size, parts, layer.flag("pseudo", False), seed)
        found.append((b, b[:-1], np.minimum(b[1:] + layer.flag("overlap", False), size)))
    return found


def fractional_pool(layer: Layer, x: Array) -> list[Array]:
    (rows, tops, bottoms), (columns, lefts, rights) = windows_of(layer)
    out, average = layer.output, layer.word("method") == "AVG"
    wide = x.astype(np.int64 if layer.is_quantised else np.float32)
    found = np.empty(out.shape, wide.dtype)
    for i, (top, bottom) in enumerate(zip(tops, bottoms, strict=True)):
        for j, (left, right) in enumerate(zip(lefts, rights, strict=True)):
            part = wide[:, top:bottom, left:right]
            area = (bottom - top) * (right - left)
            if not average:
                found[:, i, j] = largest_of(part, (1, 2))
            elif layer.is_quantised:
                scale, shift = approximate_factor(np.float32(1) / np.float32(area), 8)
                found[:, i, j] = requantise(part.sum(axis=(1, 2)), scale, shift, 0, out.low, out.high)
            else:
                found[:, i, j] = part.sum(axis=(1, 2)) / np.float32(area)
    return [found, rows, columns][: len(layer.outputs)]

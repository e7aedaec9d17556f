"""Fourier transforms: products with matrices that are known."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.importers.declare import Constant
from compassc.importers.onnx.common.shapes import known_shape
from compassc.importers.onnx.maker import Maker, Tensor, operator
from compassc.importers.values import Refused

UNKNOWN = "the extents of its signal are"


def _fourier(count: int, size: int, inverse: bool, onesided: bool, parts: int) -> Array:
    """The matrix [results * 2, size * parts] of a transform of `count` real (`parts` 1) or complex (2) numbers, those behind the
    first `size` being 0."""
    k = np.arange(count // 2 + 1 if onesided else count)
    angle = 2 * np.pi * np.outer(k, np.arange(size)) / count * (1 if inverse else -1)
    factor = 1 / count if inverse else 1.0
    cos, sin = np.cos(angle) * factor, np.sin(angle) * factor
    matrix = np.zeros((len(k), 2, size, parts))
    matrix[:, 0, :, 0], matrix[:, 1, :, 0] = cos, sin
    if parts == 2:
        matrix[:, 0, :, 1], matrix[:, 1, :, 1] = -sin, cos
    return matrix.reshape(len(k) * 2, size * parts)


@operator("DFT")
def dft(
    b: Maker[Tensor],
    x: Tensor,
    length: Constant | None = None,
    axis: Constant | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    """One product with the matrix of the transform. From one half of a transform, of which the other is the mirror image, real
    numbers come back."""
    at = x.axis(-2 if axis is None else int(axis.reshape(-1)[0]))
    perm = [*(a for a in range(x.rank - 1) if a != at), at, x.rank - 1]
    moved, back = b.transpose(x, perm), [perm.index(a) for a in range(x.rank)]
    *lead, size, parts = known_shape(moved, UNKNOWN)
    half = bool(inverse and onesided)
    if half and parts != 2:
        raise Refused(f"one half of a transform has complex numbers, its input has {parts} part")
    count = int(length.reshape(-1)[0]) if length is not None else 2 * (size - 1) if half else size
    b.room(4, count, count + size, parts)
    used = size if half else min(size, count)
    if half:
        matrix = np.stack([np.fft.irfft(np.eye(size) * unit, count) for unit in (1, 1j)], 1).reshape(2 * size, count).T
    else:
        matrix = _fourier(count, used, bool(inverse), bool(onesided), parts)
    if used < size:
        moved = b.sliced(moved, [0], [used], [1], [x.rank - 2])
    weights = b.known(np.ascontiguousarray(matrix, x.dtype))
    made = b.made("dense", b.reshape(moved, [*lead, used * parts]), weights)
    return b.transpose(b.reshape(made, [*lead, len(matrix) // (1 if half else 2), 1 if half else 2]), back)


@operator("STFT", since=17)
def stft(
    b: Maker[Tensor],
    x: Tensor,
    step: Constant,
    window: Constant | None = None,
    length: Constant | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """Frames gathered, times the window and the matrix of the transform in one."""
    batch, whole, *rest = known_shape(x, UNKNOWN)
    size = int(length.reshape(-1)[0]) if length is not None else len(window) if window is not None else whole
    hop, parts = int(step.reshape(-1)[0]), rest[0] if rest else 1
    count = (whole - size) // hop + 1
    b.room(count + 2 * size * parts, size)
    index = np.arange(count)[:, None] * hop + np.arange(size)
    frames = b.onnx("Gather", x, b.known(index), axis=1)
    matrix = _fourier(size, size, False, bool(onesided) and parts == 1, parts)
    if window is not None:
        matrix = (matrix.reshape(-1, size, parts) * window.reshape(-1, 1)).reshape(matrix.shape)
    made = b.made("dense", b.reshape(frames, [batch, count, size * parts]), b.known(matrix.astype(x.dtype)))
    return b.reshape(made, [batch, count, len(matrix) // 2, 2])

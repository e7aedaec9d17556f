"""Sums over products by name of axis, and Fourier transforms: products with matrices that are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.declare import Constant, operator
from compassc.importers.onnx.operators.elementwise import arithmetic
from compassc.importers.onnx.operators.indexing import gather
from compassc.importers.onnx.operators.linear import fully_connected, multiply
from compassc.importers.onnx.operators.movement import padded
from compassc.importers.onnx.operators.reduce import reduced
from compassc.importers.values import Refused, Value

# -- Einsum


@operator("Einsum", since=12)
def einsum(b: Building, *xs: Value, equation: str) -> Value:
    """From left to right, two operands at a time; each product a MatMul."""
    text = equation.replace(" ", "")
    left, _, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise Refused(f"'{equation}' has {len(terms)} operands, the node {len(xs)}")
    spelled = _without_dots([*terms, right], [x.rank for x in xs])
    terms, result = spelled[:-1], spelled[-1]
    if "->" not in text:
        counts = "".join(terms)
        named = sorted(c for c in set(counts) if c.islower() or c.isupper() if counts.count(c) == 1)
        result = "".join(c for c in counts[: len(counts)] if c.isdigit() and counts.count(c) >= 1)
        result = "".join(dict.fromkeys(result)) + "".join(named)
    items = [_diagonal(b, x, t) for x, t in zip(xs, terms, strict=True)]
    value, axes = items[0]
    for i, (other, names) in enumerate(items[1:], 1):
        later = set(result).union(*(n for _, n in items[i + 1 :]))
        value, axes = _pair(b, value, axes, other, names, later)
    gone = [i for i, c in enumerate(axes) if c not in result]
    if gone:
        value = b.squeeze(reduced(b, value, "SUM", gone), gone)
        axes = "".join(c for c in axes if c in result)
    return b.transpose(value, [axes.index(c) for c in result])


def _without_dots(terms: Sequence[str], ranks: Sequence[int]) -> list[str]:
    """The terms with `...` replaced by a digit per axis."""
    many = max((r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=False) if "..." in t), default=0)
    found = []
    for i, term in enumerate(terms):
        count = ranks[i] - len(term.replace("...", "")) if i < len(ranks) else many
        digits = "".join(str(d) for d in range(many - count, many)) if "..." in term else ""
        found.append(term.replace("...", digits))
    return found


def _diagonal(b: Building, x: Value, term: str) -> tuple[Value, str]:
    """Axes of one name become one."""
    if len(term) != x.rank:
        raise Refused(f"'{term}' does not name the {x.rank} axes of an operand")
    while len(set(term)) < len(term):
        c = next(c for c in term if term.count(c) > 1)
        i = term.index(c)
        j = term.index(c, i + 1)
        size = x.shape[i]
        perm = [i, j, *(a for a in range(x.rank) if a not in (i, j))]
        moved = b.transpose(x, perm)
        flat = b.reshape(moved, (size * size, *moved.shape[2:]))
        b.room(size)
        x = gather(b, flat, Value.of((np.arange(size) * (size + 1)).astype(np.int32)), axis=0)
        term = c + "".join(term[a] for a in perm[2:])
    return x, term


def _pair(b: Building, x: Value, xs: str, y: Value, ys: str, later: set[str]) -> tuple[Value, str]:
    """The product of two operands, summed over the axes not needed later; its axes are batch, left, summed, right."""
    for value, names, other in ((0, xs, ys), (1, ys, xs)):
        alone = [i for i, c in enumerate(names) if c not in other and c not in later]
        if alone:
            source = y if value else x
            summed = b.squeeze(reduced(b, source, "SUM", alone), alone)
            kept = "".join(c for i, c in enumerate(names) if i not in alone)
            x, xs, y, ys = (x, xs, summed, kept) if value else (summed, kept, y, ys)
    shared = [c for c in xs if c in ys]
    batch, summed_over = [c for c in shared if c in later], [c for c in shared if c not in later]
    own, others = [c for c in xs if c not in ys], [c for c in ys if c not in xs]
    sizes = dict(zip(ys, y.shape, strict=True)) | {
        c: max(s, dict(zip(ys, y.shape, strict=True)).get(c, 1)) for c, s in zip(xs, x.shape, strict=True)
    }
    if not summed_over:
        names = "".join(batch + own + others)
        wide = [_aligned(b, v, n, names) for v, n in ((x, xs), (y, ys))]
        return arithmetic(b, wide[0], wide[1], "Mul"), names
    if any(dict(zip(xs, x.shape, strict=True))[c] != dict(zip(ys, y.shape, strict=True))[c] for c in shared):
        raise Refused("axes of one name have different sizes")
    left = b.transpose(x, [xs.index(c) for c in batch + own + summed_over])
    right = b.transpose(y, [ys.index(c) for c in batch + summed_over + others])

    def size(names: Sequence[str]) -> int:
        return int(np.prod([sizes[c] for c in names], dtype=np.int64))

    lead = [sizes[c] for c in batch]
    product = multiply(
        b,
        b.reshape(left, [*lead, size(own), size(summed_over)]),
        b.reshape(right, [*lead, size(summed_over), size(others)]),
    )
    names = "".join(batch + own + others)
    return b.reshape(product, [sizes[c] for c in names]), names


def _aligned(b: Building, x: Value, names: str, wanted: str) -> Value:
    """The axes in the wanted order, with size 1 where there is none."""
    moved = b.transpose(x, [names.index(c) for c in wanted if c in names])
    return b.unsqueeze(moved, [i for i, c in enumerate(wanted) if c not in names])


# -- Fourier transforms


def _fourier(count: int, inverse: bool, onesided: bool, parts: int, back: bool) -> Array:
    """The matrix [results * 2, count * parts] of a transform of real (`parts` 1) or complex (2) numbers."""
    size = count
    k = np.arange(count // 2 + 1 if onesided and not back else count)
    angle = 2 * np.pi * np.outer(k, np.arange(size)) / count * (1 if inverse else -1)
    factor = 1 / count if inverse else 1.0
    cos, sin = np.cos(angle) * factor, np.sin(angle) * factor
    matrix = np.zeros((len(k), 2, size, parts))
    matrix[:, 0, :, 0], matrix[:, 1, :, 0] = cos, sin
    if parts == 2:
        matrix[:, 0, :, 1], matrix[:, 1, :, 1] = -sin, cos
    return matrix.reshape(len(k) * 2, size * parts)


@operator("DFT", since=17)
def dft(
    b: Building,
    x: Value,
    length: Constant | None = None,
    axis: Constant | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """A FullyConnected with the matrix of the transform."""
    at = x.axis(-2 if axis is None else int(axis.reshape(-1)[0]))
    count = x.shape[at] if length is None else int(length.reshape(-1)[0])
    if inverse and onesided:
        return _inverse_of_half(b, x, at, length)
    if count < x.shape[at]:
        x = b.sliced(x, [0], [count], [1], [at])
    elif count > x.shape[at]:
        x = padded(b, x, [(0, count - x.shape[at] if a == at else 0) for a in range(x.rank)])
    parts = x.shape[-1]
    b.room(2, count, count, parts)
    perm = [*(a for a in range(x.rank - 1) if a != at), at, x.rank - 1]
    moved = b.transpose(x, perm)
    lead = moved.shape[:-2]
    matrix = _fourier(count, bool(inverse), bool(onesided), parts, False).astype(x.dtype)
    made = fully_connected(b, b.reshape(moved, (*lead, count * parts)), matrix)
    found = b.reshape(made, (*lead, matrix.shape[0] // 2, 2))
    return b.transpose(found, [perm.index(a) for a in range(x.rank)])


def _inverse_of_half(b: Building, x: Value, at: int, length: Constant | None) -> Value:
    """Real numbers from one half of their transform, the other being its mirror image."""
    half = x.shape[at]
    count = 2 * (half - 1) if length is None else int(length.reshape(-1)[0])
    b.room(2, half, count + half)
    matrix = np.stack([np.fft.irfft(np.eye(half) * unit, count) for unit in (1, 1j)], 1)
    perm = [*(a for a in range(x.rank - 1) if a != at), at, x.rank - 1]
    moved = b.transpose(x, perm)
    flat = b.reshape(moved, (*moved.shape[:-2], half * 2))
    made = fully_connected(b, flat, matrix.reshape(half * 2, count).T.astype(x.dtype))
    return b.transpose(b.unsqueeze(made, [x.rank - 1]), [perm.index(a) for a in range(x.rank)])


@operator("STFT", since=17)
def stft(
    b: Building,
    x: Value,
    step: Constant,
    window: Constant | None = None,
    length: Constant | None = None,
    *,
    onesided: int = 1,
) -> Value:
    """Frames gathered, times the window and the matrix of the transform in one."""
    size = int(length.reshape(-1)[0]) if length is not None else len(window) if window is not None else x.shape[1]
    hop = int(step.reshape(-1)[0])
    parts = x.shape[2] if x.rank == 3 else 1
    count = (x.shape[1] - size) // hop + 1
    b.room(count + 2 * size * parts, size)
    index = np.arange(count)[:, None] * hop + np.arange(size)
    frames = gather(b, x, Value.of(index.astype(np.int32)), axis=1)
    matrix = _fourier(size, False, bool(onesided), parts, False)
    if window is not None:
        matrix = (matrix.reshape(-1, size, parts) * window.reshape(-1, 1)).reshape(matrix.shape)
    flat = b.reshape(frames, (x.shape[0], count, size * parts))
    made = fully_connected(b, flat, matrix.astype(x.dtype))
    return b.reshape(made, (x.shape[0], count, matrix.shape[0] // 2, 2))

"""Grids of affine maps: the reference, and a kernel whose lanes are columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.arithmetic import requantise, saturate_int32
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.requantise import requantise_rounded
from compassc.layers.vectors import LANES, wide_kind


def sizes_of(layer: Layer) -> tuple[int, tuple[int, ...]]:
    """(images, sizes of a grid, outermost first)."""
    theta, y = layer.input.shape, layer.output.shape
    axes = len(y) - 2
    if axes not in (2, 3) or theta != (y[0], axes, axes + 1) or y[-1] != axes or 0 in y:
        raise LayerError(f"maps {list(theta)} do not lead to grids {list(y)}")
    return y[0], tuple(y[1:-1])


def points(layer: Layer, n: int) -> Array:
    """Coordinates of n pixels from -1 to 1, of their centres or, with align_corners, of the outer pixels' centres."""
    if n == 1:
        return np.zeros(1, np.float32)
    step, half = np.float32(2) / np.float32(n - 1), n // 2
    index = np.arange(n)
    found = np.where(
        index < half,
        np.float32(-1) + step * index.astype(np.float32),
        np.float32(1) - step * (n - 1 - index).astype(np.float32),
    ).astype(np.float32)
    return found if layer.flag("align_corners", False) else found * np.float32(np.float32(n - 1) / np.float32(n))


def tables(layer: Layer, sizes: Sequence[int]) -> list[Array]:
    """Coordinates along each axis, outermost first."""
    if not layer.is_quantised:
        return [points(layer, n) for n in sizes]
    keys = ("d_lut", "h_lut", "w_lut")[-len(sizes) :]
    found = [layer.constant(key).reshape(-1) for key in keys]
    for key, table, n in zip(keys, found, sizes, strict=True):
        if table.size != n or np.abs(table.astype(np.int64)).max(initial=0) > 32767:
            raise LayerError(f"the table '{key}' has {table.size} entries, expected {n} of 16 bits")
    return found


def affine_grid(layer: Layer, theta: Array, *_size: Array) -> Array:
    n, sizes = sizes_of(layer)
    grids = np.meshgrid(*tables(layer, sizes), indexing="ij")
    flat = [g.reshape(-1) for g in reversed(grids)]
    if not layer.is_quantised:
        wide = theta.astype(np.float32)[..., None]
        total = wide[:, :, 0] * flat[0]
        for i, g in enumerate(flat[1:], 1):
            total = total + wide[:, :, i] * g
        total = total + wide[:, :, len(sizes)]
        made: Array = np.moveaxis(total, 1, 2).reshape(layer.output.shape)
        return made
    raw = theta.astype(np.int64)[..., None]
    sums = sum(raw[:, :, i] * g.astype(np.int64) for i, g in enumerate(flat))
    sums = saturate_int32(sums + (raw[:, :, len(sizes)] << layer.integer("multiplier_bits")))
    scale, shift = (int(v.reshape(-1)[0]) for v in layer.scale_shift(of=1))
    out = layer.output
    found = requantise(sums, scale, shift, out.scalar_zero, out.low, out.high)
    return np.moveaxis(found, 1, 2).reshape(n, *sizes, len(sizes))


@kernel("AffineGrid")
def affine_grid_kernel(layer: Layer) -> Kernel:
    n, sizes = sizes_of(layer)
    theta, out, axes = layer.input, layer.output, len(sizes)
    kind = "int32" if layer.is_quantised else "float32"
    if wide_kind(theta) != kind or wide_kind(out) != kind:
        raise LayerError(f"maps of {theta.dtype} to {out.dtype} have no kernel")
    along = tables(layer, sizes)
    stored = [t.astype(np.int32 if layer.is_quantised else np.float32) for t in along]
    bits = layer.integer("multiplier_bits") if layer.is_quantised else 0
    if not 0 <= bits <= 14:
        raise LayerError(f"'multiplier_bits' is {bits}, expected 0 to 14")
    most = max(abs(theta.low), abs(theta.high)) if theta.is_integer else 0
    bound = (
        most * (sum(int(np.abs(t.astype(np.int64)).max()) for t in stored) + (1 << bits)) if layer.is_quantised else 0
    )

    def wide(value: Expression) -> Expression:
        return S.cast(value, kind)

    k = LayerKernel()
    with k.active():
        maps, grid, along_axes = k.tensor(theta), k.tensor(out), [k.pointer(t) for t in reversed(stored)]
        height, depth = k.number(sizes[-2]), k.number(sizes[0] if axes == 3 else 1)
        width = k.number(sizes[-1])
        with k.shared(k.number(n * int(np.prod(sizes[:-1]))), "p") as p:
            at = [p % height, p / height % depth]
            entries = k.hold(maps + p / (height * depth) * (axes * (axes + 1)), "entries")
            outer = [k.held("of", wide(t[i])) for t, i in zip(along_axes[1:], at, strict=False)]
            with k.for_range(0, width, LANES, "j") as j:
                mask = k.held("mask", tail(width - j))
                point: list[Value] = [k.held("x", S.vload(along_axes[0] + j, mask, lanes=LANES)), *outer]
                for a in range(axes):
                    first = a * (axes + 1)
                    total = point[0] * wide(entries[first])
                    for i, c in enumerate(point[1:], 1):
                        total = total + c * wide(entries[first + i])
                    last = wide(entries[first + axes])
                    if layer.is_quantised:
                        acc = k.let(total + (last << bits), low=-bound, high=bound)
                        acc = requantise_rounded(k, acc, *layer.scale_shift(of=1), out)
                    else:
                        acc = k.let(total + last)
                    S.vstore(k.stored(acc, out.dtype), grid + ((p * width + j) * axes + a), mask, stride=axes)
    return k.kernel()

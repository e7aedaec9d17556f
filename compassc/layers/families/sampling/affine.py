"""Grids of affine maps: the reference, and a kernel whose lanes are columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Array, requantise, saturate_int32
from compassc.layers.emit import requantise_rounded, wide_kind
from compassc.layers.kernels import kernel
from compassc.layers.scripts import script
from compassc.layers.source import Kernel, KernelSource, named


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
        return np.moveaxis(total, 1, 2).reshape(layer.output.shape)
    raw = theta.astype(np.int64)[..., None]
    sums = sum(raw[:, :, i] * g.astype(np.int64) for i, g in enumerate(flat))
    sums = saturate_int32(sums + (raw[:, :, len(sizes)] << layer.integer("multiplier_bits")))
    scale, shift = (int(v.reshape(-1)[0]) for v in layer.scale_shift(of=1))
    out = layer.output
    found = requantise(sums, scale, shift, out.scalar_zero, out.low, out.high)
    return np.moveaxis(found, 1, 2).reshape(n, *sizes, len(sizes))


GRID = """
for p in range(S.get_local_id(), rows, S.get_local_size()):
    at_y = p % height
    at_z = p / height % depth
    map_ = theta + p / (height * depth) * $entries
    y = $wide(of_y[at_y])
    $outer
    for j in range(0, width, 32):
        mask = S.tail_mask(S.min(width - j, 32), 32)
        x = S.vload(of_x + j, mask, lanes=32)
        $each
"""


@kernel("AffineGrid")
def affine_grid_kernel(layer: Layer) -> Kernel:
    n, sizes = sizes_of(layer)
    theta, out, axes = layer.input, layer.output, len(sizes)
    kind = "int32" if layer.is_quantised else "float32"
    if wide_kind(theta) != kind or wide_kind(out) != kind:
        raise LayerError(f"maps of {theta.dtype} to {out.dtype} have no kernel")
    along = tables(layer, sizes)
    stored = [t.astype(np.int32 if layer.is_quantised else np.float32) for t in along]
    wide = "S.i32" if layer.is_quantised else "S.fp32"
    one = "S.i32({})" if layer.is_quantised else 'S.cast({}, "float32")'
    k, names = KernelSource(), "xyz"[:axes]
    each: list[str] = []
    bits = layer.integer("multiplier_bits") if layer.is_quantised else 0
    if not 0 <= bits <= 14:
        raise LayerError(f"'multiplier_bits' is {bits}, expected 0 to 14")
    most = max(abs(theta.low), abs(theta.high)) if theta.is_integer else 0
    bound = (
        most * (sum(int(np.abs(t.astype(np.int64)).max()) for t in stored) + (1 << bits)) if layer.is_quantised else 0
    )
    for a in range(axes):
        terms = [f"{c} * {one.format(f'map_[{a * (axes + 1) + i}]')}" for i, c in enumerate(names)]
        last = one.format(f"map_[{a * (axes + 1) + axes}]")
        total = " + ".join([*terms, f"({last} << {bits})" if layer.is_quantised else last])
        each.append(f"acc{a} = {total}")
        result = f"acc{a}"
        if layer.is_quantised:
            k.body = []
            scale, shift = layer.scale_shift(of=1)
            result = requantise_rounded(k, named(f"acc{a}", "int32", -bound, bound), scale, shift, out).name
            each += k.body
        place = f"grid + ((p * width + j) * {axes} + {a})"
        each.append(f'S.vstore(narrow({result}, "{out.dtype}"), {place}, mask, stride={axes})')
    given: dict[str, Tensor | Array | int] = {f"of_{c}": t for c, t in zip(names, reversed(stored), strict=True)}
    outer = [f"z = {wide}(of_z[at_z])"] if axes == 3 else []
    return script(
        GRID,
        k,
        {"entries": str(axes * (axes + 1)), "wide": wide, "outer": outer, "each": each},
        theta=theta,
        grid=out,
        rows=n * int(np.prod(sizes[:-1])),
        height=sizes[-2],
        depth=sizes[0] if axes == 3 else 1,
        width=sizes[-1],
        **given,
    )

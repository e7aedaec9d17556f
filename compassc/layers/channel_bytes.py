"""Layers that make of one byte another one, a function for each channel: straight lines, and lines that have a bend at 0.

What a layer gives for the 256 bytes of every channel comes from its reference; a form is taken only where it gives the
same for all of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.byte_functions import BYTES, ENTRIES, all_bytes, registers_of, widened_of
from compassc.layers.declare import evaluate
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import (
    entries_of_bytes,
    entries_of_half,
    halves,
    halves_of,
    line_of_bytes,
    narrowed,
    product_of_halves,
)

SLOPES = np.arange(64, 128)
"""First factors of a line; with a second one of 16 bits they come near any slope."""
TRIED = 4
FURTHEST = 1 << 30
DEEPEST = 22
"""Bits of the sums below the results' first one."""


def results_of(k: LayerKernel, layer: Layer, x: Value, axis: int) -> Array | None:
    """What a layer of one operand gives by channel along an axis and byte; None where the operand is not held in bytes."""
    source, out, rank = layer.input, layer.output, len(layer.input.shape)
    known = (x.name, source.dtype) in k.stored_forms and not k.one_for_all
    if not known or rank < 2 or len(layer.outputs) > 1 or not {source.dtype, out.dtype} <= {*BYTES}:
        return None
    along, channels = 1 if axis == 0 else 0, source.shape[axis]
    shape = tuple(channels if a == axis else ENTRIES if a == along else 1 for a in range(rank))
    given = np.broadcast_to(all_bytes(source).reshape([-1 if a == along else 1 for a in range(rank)]), shape)
    try:
        (found,) = evaluate(replace(layer, inputs=(_shaped(source, shape),), outputs=(_shaped(out, shape),)), [given])
    except LayerError:
        return None
    return found.reshape(channels, ENTRIES) if axis < along else found.reshape(ENTRIES, channels).T


def _shaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return replace(tensor, shape=shape)


def straight(k: LayerKernel, layer: Layer, x: Value, results: Array, slopes: Array) -> Value | None:
    """The results as bytes times two numbers plus a third over a power of two, to the nearest, with about these slopes;
    None where there are none such numbers."""
    kind, dtype = layer.output.integer, layer.output.dtype
    steepest = float(np.abs(slopes).max(initial=0))
    if not 0 < steepest < 1 << 10:
        return None
    shift = min(DEEPEST, int(np.floor(np.log2(32767 * int(SLOPES[0]) / steepest))))
    low, high = int(results.min()), int(results.max())
    found = _lines(all_bytes(layer.input).astype(np.int64), results.astype(np.int64), slopes, shift, (low, high))
    if found is None:
        return None
    near, far, start = found
    per = [k.stored_channels(a) for a in (near.astype(layer.input.dtype), far.astype(np.int16))]
    total = k.let(line_of_bytes(k.stored(x, layer.input.dtype), *per))
    if start.any():
        total = k.let(total + k.stored_channels(start.astype(np.int32)))
    held = narrowed(total, k.number(shift), dtype)
    if low > kind.low:
        held = S.max(held, S.cast(k.number(low), dtype))
    if high < kind.high:
        held = S.min(held, S.cast(k.number(high), dtype))
    return widened_of(k, k.let(held), results)


def _lines(
    x: Array, results: Array, slopes: Array, shift: int, limits: tuple[int, int]
) -> tuple[Array, Array, Array] | None:
    """For every channel (first factor, second factor, start) of a line that is `results` when rounded and limited."""
    far = np.rint(slopes[:, None] * 2.0**shift / SLOPES)
    error = np.where(np.abs(far) < 1 << 15, np.abs(far * SLOPES - slopes[:, None] * 2.0**shift), np.inf)
    half, channels = 1 << (shift - 1), np.arange(len(slopes))
    numbers, left = np.zeros((3, len(slopes)), np.int64), np.ones(len(slopes), bool)
    least = np.where(results > limits[0], (2 * results - 1) * half + 1, -(1 << 62))
    most = np.where(results < limits[1], (2 * results + 1) * half - 1, 1 << 62)
    for i in np.argsort(error, axis=1)[:, :TRIED].T:
        pair = SLOPES[i], np.where(np.isfinite(error[channels, i]), far[channels, i], 0).astype(np.int64)
        product = (pair[0] * pair[1])[:, None] * x
        first = np.maximum((least - product).max(1), -FURTHEST)
        last = np.minimum((most - product).min(1), FURTHEST)
        fits = left & (first <= last)
        # as near to 0 as may be: mostly it is 0 where there is nothing to add
        numbers[:, fits] = np.stack([*pair, np.clip(0, first, np.maximum(first, last))])[:, fits]
        left &= ~fits
    return None if left.any() else (numbers[0], numbers[1], numbers[2])


def bent(k: LayerKernel, layer: Layer, x: Value, results: Array, slopes: Array, shift: int) -> Value | None:
    """The results, where negative elements are first multiplied by a slope of their channel over 2^shift, to the nearest.

    That product's magnitude is a byte, and what follows a table of it; the others have a table of their own.
    """
    source, out = layer.input, layer.output
    stored, zero = all_bytes(source), source.scalar_zero
    moved = stored.astype(np.int64) + zero
    if slopes.min() < 0 or slopes.max() >= 1 << 15 or not 0 <= shift < 32 or np.abs(moved).max() >= 1 << 15:
        return None
    codes = np.clip(np.rint(-moved * slopes[:, None] / 2.0**shift), 0, 255).astype(np.int64)
    below = np.broadcast_to(moved < 0, results.shape)
    table = np.zeros(ENTRIES, out.dtype)
    table[codes[below]] = results[below]
    first = np.where(moved < 0, 0, results[0])
    rest = int(results[0, np.flatnonzero(moved == 0)[0]]) if (moved == 0).any() else 0
    table[0] = table[0] if (codes[below] == 0).any() else rest
    given = np.where(moved < 0, table[codes], first)
    if table[0] != rest or not np.array_equal(given, np.broadcast_to(results, given.shape)):
        return None
    held = k.stored(x, source.dtype)
    per = k.stored_channels((-slopes).astype(np.int16))
    wide = k.let(halves(held, k.number(zero)) if zero else halves_of(held))
    code = k.let(narrowed(product_of_halves(wide, per), k.number(shift), "uint8"))
    # entries of the one table are 0 where the other one counts
    turned = int(np.uint8(rest & 255))
    bits = table.view(np.uint8) ^ turned, np.where(moved < 0, 0, first.astype(out.dtype).view(np.uint8) ^ turned)
    below_zero = _looked_up(k, code, bits[0], int(codes.max()) >= ENTRIES // 2)
    at = k.let(S.reinterpret(held, "uint8x32"))
    above = _looked_up(k, at, bits[1], bool(zero) or not source.integer.signed)
    both = below_zero | above
    if turned:
        both = both ^ S.cast(k.number(turned), "uint8")
    return widened_of(k, k.let(S.reinterpret(both, f"{out.dtype}x32")), results)


def _looked_up(k: LayerKernel, at: Value, table: Array, whole: bool) -> Value:
    """The entries of a table at bytes; of its first half alone unless it is `whole`."""
    found = entries_of_bytes if whole else entries_of_half
    entries: Value = found(at, *registers_of(k, table, ENTRIES if whole else ENTRIES // 2))
    return entries

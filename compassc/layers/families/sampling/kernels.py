"""Kernels that sample images: a pass takes up to 32 channels of one point, whose coordinates are scalars."""

from __future__ import annotations

import math
from functools import reduce
from itertools import product

import numpy as np

from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError
from compassc.layers.families.sampling import affine  # noqa: F401 (its kernel is registered)
from compassc.layers.families.sampling.reference import METHODS, PADDINGS, letters_of
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.vectors import LANES, clamp, load, narrow, wide_kind


class Place(NamedTuple):
    """A coordinate of a point: the pixel, and how far from it, where that counts."""

    pixel: Value
    part: Value | None


class End(NamedTuple):
    """A pixel along an axis: the nearest of the image, and whether (1 or 0) it is itself, where that counts."""

    pixel: Value
    inside: Value | None


@kernel("GridSample")
def grid_sample(layer: Layer) -> Kernel:
    x, grid, y = layer.inputs[0], layer.inputs[1], layer.output
    letters, spatial = letters_of(x.shape, grid.shape), grid.shape[1:-1]
    if y.shape != (*grid.shape[:-1], x.shape[-1]):
        raise LayerError(f"{list(x.shape)} and {list(grid.shape)} do not lead to the shape {list(y.shape)}")
    if x.dtype != y.dtype or (wide_kind(x) == "int32") != layer.is_quantised:
        raise LayerError(f"it samples {x.dtype} to {y.dtype}, for which there is no kernel")
    k, between = LayerKernel(), layer.word("method", "BILINEAR", METHODS) != "NEAREST"
    border = layer.word("padding_mode", "ZEROS", PADDINGS) == "BORDER"
    sizes = [x.shape[-2 - i] for i in range(len(letters))]
    with k.active():
        source, points, target = k.tensor(x), k.tensor(grid), k.tensor(y)
        channels, whole = k.number(x.shape[-1]), k.number(math.prod(x.shape[1:]))
        steps = [k.number(math.prod(x.shape[len(x.shape) - 1 - i :])) for i in range(len(letters))]
        with k.shared(k.number(y.count // y.shape[-1]), "p") as p:
            image = k.hold(source + p / k.number(math.prod(spatial)) * whole, "image")
            places = [
                (_fixed if layer.is_quantised else _real)(k, layer, points[p * len(letters) + i], i, letter, between)
                for i, letter in enumerate(letters)
            ]
            ends = [_ends(k, place, size, between, border) for place, size in zip(places, sizes, strict=True)]
            with k.for_range(0, channels, LANES, "j") as j:
                left = channels - j
                mask = k.held("mask", tail(left))
                corners = {}
                for taken in product((0, 1) if between else (0,), repeat=len(letters)):
                    own = [end[side] for end, side in zip(reversed(ends), taken, strict=True)]
                    terms = [end.pixel * step for end, step in zip(own, reversed(steps), strict=True)]
                    at = image + (reduce(lambda a, b: a + b, terms) + j)
                    corners[taken] = _corner(k, layer, at, [end.inside for end in own], left, mask)
                result = _between(layer, letters, places, corners)
                if layer.is_quantised:
                    result = clamp(result, k.number(y.low), k.number(y.high))
                S.vstore(narrow(result, y.dtype), target + (p * channels + j), mask)
    return k.kernel()


def _real(k: LayerKernel, layer: Layer, point: Expression, i: int, letter: str, between: bool) -> Place:
    """The coordinate as a whole number and, between pixels, the part behind it."""
    size, aligned = layer.input.shape[-2 - i], layer.flag("align_corners", False)
    g, n = S.cast(point, "float32"), k.number(float(size - 1 if aligned else size))
    place = (g + S.fp32(1)) / S.fp32(2) * n if aligned else ((g + S.fp32(1)) * n - S.fp32(1)) / S.fp32(2)
    # two pixels beyond the border all places look alike, and fit an integer
    limited = S.min(S.max(place, S.fp32(-2)), k.number(float(size + 1)))
    if not between:
        return Place(k.held(letter, S.cast(S.rint(limited), "int32")), None)
    at = k.held("at", limited)
    return Place(k.held(letter, S.cast(S.floor(at), "int32")), k.held("part", at - S.floor(at)))


def _fixed(k: LayerKernel, layer: Layer, point: Expression, i: int, letter: str, between: bool) -> Place:
    x, grid = layer.inputs[0], layer.inputs[1]
    bits, axes = layer.integer(f"coordinate_{letter}_shift"), len(x.shape) - 2
    scale, shift = (int(np.resize(v, axes)[i]) for v in layer.scale_shift(of=axes))
    largest = max(abs(grid.low + grid.scalar_zero), abs(grid.high + grid.scalar_zero))
    if largest * abs(scale) >= 2**31 or not 0 <= shift < 32 or not 0 < bits < 16:
        raise LayerError(f"the grid times {scale} / 2^{shift} with {bits} fraction bits is beyond what kernels compute")
    if between and (x.integer.high - x.integer.low) << bits >= 2**31:
        raise LayerError(f"steps between {x.dtype} pixels with {bits} fraction bits do not fit 32 bits")
    centre = k.number((x.shape[-2 - i] - 1) * (1 << bits) // 2)
    moved = (S.i32(point) + k.number(grid.scalar_zero)) * k.number(scale) >> k.number(shift)
    at = k.held("at", clamp(moved + centre, -32768, 32767))
    if not between:
        return Place(k.held(letter, clamp(at + (1 << bits >> 1), -32768, 32767) >> bits), None)
    pixel = k.held(letter, at >> bits)
    return Place(pixel, k.held("part", at - (pixel << bits)))


def _ends(k: LayerKernel, place: Place, size: int, between: bool, border: bool) -> list[End]:
    """The pixel of a coordinate and the next one."""
    last, found = k.number(size - 1), []
    for side in (0, 1) if between else (0,):
        own = k.held("own", place.pixel + side)
        pixel = k.held("pixel", clamp(own, 0, last))
        inside = None if border else k.changing("inside", S.i32(1))
        if inside is not None:
            with k.when(own != pixel):
                k.assign(inside, S.i32(0))
        found.append(End(pixel, inside))
    return found


def _corner(
    k: LayerKernel, layer: Layer, at: Address, inside: list[Value | None], left: Expression, mask: Value
) -> Value:
    """The channels of a pixel at an address, 0 where it is outside."""
    x = layer.input
    all_inside: list[Expression] = [v for v in inside if v is not None]
    if not all_inside:
        return k.let(load(at, mask, x.dtype, LANES))
    seen = reduce(lambda a, b: a * b, all_inside)
    value = k.let(load(at, S.tail_mask(S.min(left, LANES) * seen, LANES), x.dtype, LANES))
    zero = x.scalar_zero if layer.is_quantised else 0
    return k.let(value - (1 - seen) * k.number(zero)) if zero else value


def _between(
    layer: Layer, letters: str, places: list[Place], corners: dict[tuple[int, ...], Value], taken: tuple[int, ...] = ()
) -> Expression:
    """The value between the corners whose outer sides are taken: first along x."""
    part = places[len(letters) - 1 - len(taken)].part if len(taken) < len(letters) else None
    if part is None:
        return corners[taken] if taken in corners else next(iter(corners.values()))
    a, b = (_between(layer, letters, places, corners, (*taken, side)) for side in (0, 1))
    if not layer.is_quantised:
        return a + (b - a) * part
    letter = letters[len(letters) - 1 - len(taken)]
    return a + (((b - a) * part) >> layer.integer(f"coordinate_{letter}_shift"))

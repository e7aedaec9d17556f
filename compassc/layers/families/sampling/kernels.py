"""Kernels that sample images: a pass takes up to 32 channels of one point, whose coordinates are scalars."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from compassc.graph import Layer, LayerError
from compassc.layers.emit import wide_kind
from compassc.layers.families.sampling import affine  # noqa: F401 (its kernel is registered)
from compassc.layers.families.sampling.reference import METHODS, PADDINGS, letters_of
from compassc.layers.kernels import kernel
from compassc.layers.source import LANES, Kernel, KernelSource, finish


@kernel("GridSample")
def grid_sample(layer: Layer) -> Kernel:
    x, grid, y = layer.inputs[0], layer.inputs[1], layer.output
    letters, spatial = letters_of(x.shape, grid.shape), grid.shape[1:-1]
    if y.shape != (*grid.shape[:-1], x.shape[-1]):
        raise LayerError(f"{list(x.shape)} and {list(grid.shape)} do not lead to the shape {list(y.shape)}")
    if x.dtype != y.dtype or (wide_kind(x) == "int32") != layer.is_quantised:
        raise LayerError(f"it samples {x.dtype} to {y.dtype}, for which there is no kernel")
    k, between = KernelSource(), layer.word("method", "BILINEAR", METHODS) != "NEAREST"
    source, points, target = k.tensor(x), k.tensor(grid), k.tensor(y)
    channels, whole = k.scalar(x.shape[-1]), k.scalar(math.prod(x.shape[1:]))
    steps = {a: k.scalar(math.prod(x.shape[len(x.shape) - 1 - i :])) for i, a in enumerate(letters)}
    lines: list[str] = []
    for i, letter in enumerate(letters):
        lines += (_fixed if layer.is_quantised else _real)(k, layer, points, i, letter, between)
    border = layer.word("padding_mode", "ZEROS", PADDINGS) == "BORDER"
    sides = ("0", "1") if between else ("0",)
    for i, letter in enumerate(letters):
        last = k.scalar(x.shape[-2 - i] - 1)
        for s in sides:
            lines += [
                f"{letter}{s} = {letter} + {s}",
                f"c{letter}{s} = clamp({letter}{s}, 0, {last})",
                f"in{letter}{s} = S.i32(1)",
            ]
            if not border:
                lines += [f"if {letter}{s} != c{letter}{s}:", f"    in{letter}{s} = S.i32(0)"]
    inner = _corners(k, layer, sides, border, steps, channels)
    result = _between(layer, letters) if between else "v" + "0" * len(letters)
    if layer.is_quantised:
        result = f"clamp({result}, {k.scalar(y.low)}, {k.scalar(y.high)})"
    return finish(
        k,
        [
            f"for p in range(S.get_local_id(), {k.scalar(y.count // y.shape[-1])}, S.get_local_size()):",
            f"    image = {source} + p / {k.scalar(math.prod(spatial))} * {whole}",
            *(f"    {line}" for line in lines),
            f"    for j in range(0, {channels}, {LANES}):",
            f"        mask = S.tail_mask(S.min({channels} - j, {LANES}), {LANES})",
            *(f"        {line}" for line in inner),
            f'        S.vstore(narrow({result}, "{y.dtype}"), {target} + (p * {channels} + j), mask)',
        ],
    )


def _real(k: KernelSource, layer: Layer, points: str, i: int, letter: str, between: bool) -> list[str]:
    """The coordinate as a whole number and, between pixels, the part behind it."""
    size, axes = layer.input.shape[-2 - i], len(layer.input.shape) - 2
    g = f'S.cast({points}[p * {axes} + {i}], "float32")'
    n = k.scalar(float(size - 1 if layer.flag("align_corners", False) else size))
    if layer.flag("align_corners", False):
        place = f"({g} + S.fp32(1)) / S.fp32(2) * {n}"
    else:
        place = f"(({g} + S.fp32(1)) * {n} - S.fp32(1)) / S.fp32(2)"
    # two pixels beyond the border all places look alike, and fit an integer
    limited = f"S.min(S.max({place}, S.fp32(-2)), {k.scalar(float(size + 1))})"
    if not between:
        return [f'{letter} = S.cast(S.rint({limited}), "int32")']
    return [
        f"at{letter} = {limited}",
        f'{letter} = S.cast(S.floor(at{letter}), "int32")',
        f"f{letter} = at{letter} - S.floor(at{letter})",
    ]


def _fixed(k: KernelSource, layer: Layer, points: str, i: int, letter: str, between: bool) -> list[str]:
    x, grid = layer.inputs[0], layer.inputs[1]
    bits, axes = layer.integer(f"coordinate_{letter}_shift"), len(x.shape) - 2
    scale, shift = (int(np.resize(v, axes)[i]) for v in layer.scale_shift(of=axes))
    largest = max(abs(grid.low + grid.scalar_zero), abs(grid.high + grid.scalar_zero))
    if largest * abs(scale) >= 2**31 or not 0 <= shift < 32 or not 0 < bits < 16:
        raise LayerError(f"the grid times {scale} / 2^{shift} with {bits} fraction bits is beyond what kernels compute")
    if between and (x.integer.high - x.integer.low) << bits >= 2**31:
        raise LayerError(f"steps between {x.dtype} pixels with {bits} fraction bits do not fit 32 bits")
    centre = k.scalar((x.shape[-2 - i] - 1) * (1 << bits) // 2)
    moved = (
        f"(S.i32({points}[p * {axes} + {i}]) + {k.scalar(grid.scalar_zero)}) * {k.scalar(scale)} >> {k.scalar(shift)}"
    )
    lines = [f"at{letter} = clamp(({moved}) + {centre}, -32768, 32767)"]
    if not between:
        half = f"clamp(at{letter} + {1 << bits >> 1}, -32768, 32767)"
        return [*lines, f"{letter} = {half} >> {bits}"]
    return [*lines, f"{letter} = at{letter} >> {bits}", f"f{letter} = at{letter} - ({letter} << {bits})"]


def _corners(
    k: KernelSource, layer: Layer, sides: tuple[str, ...], border: bool, steps: dict[str, str], channels: str
) -> list[str]:
    """The pixels around the point: v00, and v01, v10, v11 at the next column and row; of volumes v000 and so on."""
    zero, lines = layer.input.scalar_zero if layer.is_quantised else 0, []
    for taken in product(sides, repeat=len(steps)):
        corner = list(zip(reversed(steps), taken, strict=True))
        at = f"image + ({' + '.join(f'c{a}{s} * {steps[a]}' for a, s in corner)} + j)"
        name = "v" + "".join(taken)
        if border:
            lines.append(f'{name} = load({at}, mask, "{layer.input.dtype}", {LANES})')
            continue
        inside = " * ".join(f"in{a}{s}" for a, s in corner)
        seen = f"S.tail_mask(S.min({channels} - j, {LANES}) * ({inside}), {LANES})"
        lines.append(f'{name} = load({at}, {seen}, "{layer.input.dtype}", {LANES})')
        if zero:
            lines.append(f"{name} = {name} - (1 - {inside}) * {k.scalar(zero)}")
    return lines


def _between(layer: Layer, letters: str, taken: str = "") -> str:
    """The value between the corners whose outer sides are taken: first along x."""
    if len(taken) == len(letters):
        return f"v{taken}"
    a, b = (_between(layer, letters, taken + side) for side in "01")
    letter = letters[len(letters) - 1 - len(taken)]
    if not layer.is_quantised:
        return f"({a} + ({b} - {a}) * f{letter})"
    return f"({a} + ((({b} - {a}) * f{letter}) >> {layer.integer(f'coordinate_{letter}_shift')}))"

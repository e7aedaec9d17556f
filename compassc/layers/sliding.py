"""The loops of kernels in which a window slides over images of any number of axes; the lanes are channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from compassc.graph import Layer, Tensor
from compassc.layers.source import LANES, KernelSource
from compassc.layers.windows import Window

SHARED_POSITIONS = 64
"""Positions below which TECs share the channels of each, too."""


CELL = f"S.vload(pixel, mask, lanes={LANES})"
"""The expression of a cell's channels, as they are stored; those that a mask leaves out are 0."""


class WindowAxis(NamedTuple):
    """A window along one axis: the axis's name, the sizes of input and output, and the loop over the window's cells.

    `loop` are lines, each inside of the one before, at whose end the input's index `i` + name is known to be inside;
    `o` + name is the output's index.
    """

    axis: str
    size: int
    made: int
    loop: tuple[str, ...]


def slides_of(k: KernelSource, window: Window, layer: Layer) -> list[WindowAxis]:
    """A window that moves by strides, cut at the borders."""
    found = []
    x, y, rank = layer.input.shape[1:-1], layer.output.shape[1:-1], len(window.kernel)
    for axis, size, made, cells, stride, apart, (before, _) in zip(
        "zyx"[-rank:], x, y, window.kernel, window.stride, window.dilation, window.pads, strict=True
    ):
        n, s, d, p, high = (k.scalar(v) for v in (cells, stride, apart, before, size))
        index = f"i{axis} = o{axis} * {s} + k{axis} * {d} - {p}"
        loop = (f"for k{axis} in range({n}):", f"    {index}", f"if i{axis} >= 0 and i{axis} < {high}:")
        found.append(WindowAxis(axis, size, made, loop))
    return found


def nested(slides: Sequence[WindowAxis], inner: Sequence[str]) -> list[str]:
    """The loops over all cells of a window, with statements in the innermost."""
    lines = list(inner)
    for slide in reversed(slides):
        *outer, last = slide.loop
        deeper = "    " if len(slide.loop) > 1 else ""
        lines = [*outer, deeper + last, *(deeper + "    " + line for line in lines)]
    return lines


def window_loops(
    k: KernelSource,
    x: Tensor,
    slides: Sequence[WindowAxis],
    begin: Sequence[str],
    step: Sequence[str],
    end: Sequence[str],
    images: int = 0,
) -> list[str]:
    """The loops over all positions of a window and blocks of channels, with `step` for every cell.

    `pixel` is the input's first channel of the cell, `at` the position's number, `spot` its number within the image,
    `place` the output's first channel.
    """
    images = images or x.shape[0]
    count = prod(s.made for s in slides)
    c, total = k.scalar(x.shape[-1]), k.scalar(images * count)
    spots, indices, rest = k.scalar(count), [], "spot"
    for slide in reversed(slides):
        made = k.scalar(slide.made)
        indices.append(f"o{slide.axis} = {rest} % {made}")
        rest = f"({rest} / {made})"
    cell = "image"
    for slide in slides:
        cell = f"({cell} * {k.scalar(slide.size)} + i{slide.axis})"
    pixel = f"pixel = {k.tensor(x)} + {cell} * {c} + o"
    blocks = -(-x.shape[-1] // LANES)
    if images * count < SHARED_POSITIONS and blocks > 1:
        many = k.scalar(blocks)
        loops = [
            f"for item in range(S.get_local_id(), {total} * {many}, S.get_local_size()):",
            f"    at = item / {many}",
        ]
        channels = f"for o in range(item % {many} * {LANES}, item % {many} * {LANES} + 1):"
    else:
        loops = [f"for at in range(S.get_local_id(), {total}, S.get_local_size()):"]
        channels = f"for o in range(0, {c}, {LANES}):"
    return [
        *loops,
        f"    spot = at % {spots}",
        f"    image = at / {spots}",
        *(f"    {line}" for line in indices),
        f"    {channels}",
        f"        mask = S.tail_mask(S.min({c} - o, {LANES}), {LANES})",
        *(f"        {line}" for line in begin),
        *(f"        {line}" for line in nested(slides, [pixel, *step])),
        f"        place = at * {c} + o",
        *(f"        {line}" for line in end),
    ]


def load_cell(k: KernelSource, x: Tensor, zero: int = 0, cell: str = CELL) -> str:
    """The expression of a cell's channels in their wide form, plus a zero point."""
    return f'wide({cell}, "{x.dtype}")' + (f" + {k.scalar(zero)}" if zero else "")

"""Sliding windows over NHWC images (and NDHWC volumes): attributes, output sizes, and the elements at each position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compass_core.arrays import Array
from compassc.graph import Layer, LayerError
from compassc.layers.declare import Attribute

ATTRIBUTES_2D = (
    *(Attribute(f"kernel_{a}", "count", f"size of the window along {a}") for a in "xy"),
    *(Attribute(f"stride_{a}", "count", f"step of the window along {a}") for a in "xy"),
    *(Attribute(f"dilation_{a}", "count", f"distance of the window's cells along {a}", "1") for a in "xy"),
    *(
        Attribute(f"pad_{s}", "int", f"rows or columns added at the {s}", "0")
        for s in ("left", "right", "top", "bottom")
    ),
)
ATTRIBUTES_3D = (
    *(Attribute(f"kernel_{a}", "count", f"size of the window along {a}") for a in "xyz"),
    *(Attribute(f"stride_{a}", "count", f"step of the window along {a}") for a in "xyz"),
    *(Attribute(f"dilation_{a}", "count", f"distance of the window's cells along {a}", "1") for a in "xyz"),
    *(Attribute(f"pad_{a}_{e}", "int", f"cells added at the {e} of {a}", "0") for a in "xyz" for e in ("begin", "end")),
)


LARGEST = 65535
"""The largest size of a window along an axis, step, and distance of its cells."""


@dataclass(frozen=True)
class Window:
    """A window over the spatial axes, outermost first: (height, width), or (depth, height, width)."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """Cells from the window's first to its last, both counted."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def positions(self, sizes: tuple[int, ...], ceil: bool = False) -> tuple[int, ...]:
        """How many positions the window has along each axis of an image; `ceil`: a last one may reach past the end."""
        found = []
        for size, reach, stride, (before, after) in zip(sizes, self.reach, self.stride, self.pads, strict=True):
            room = size + before + after - reach
            found.append((-(-room // stride) if ceil else room // stride) + 1)
        return tuple(found)


def window_of(layer: Layer) -> Window:
    """The window of a layer over its 3-D (N, W, C: height 1), 4-D or 5-D input."""
    rank = len(layer.input.shape)
    if rank == 5:
        axes = "zyx"
        pads = tuple((layer.integer(f"pad_{a}_begin", 0), layer.integer(f"pad_{a}_end", 0)) for a in axes)
    elif rank in (3, 4):
        axes = "yx"[4 - rank :]
        ends = {"y": ("top", "bottom"), "x": ("left", "right")}
        pads = tuple((layer.integer(f"pad_{ends[a][0]}", 0), layer.integer(f"pad_{ends[a][1]}", 0)) for a in axes)
    else:
        raise LayerError(f"the input has {rank} dimensions, expected an NHWC image")
    window = Window(
        tuple(layer.integer(f"kernel_{a}") for a in axes),
        tuple(layer.integer(f"stride_{a}", 1) for a in axes),
        tuple(layer.integer(f"dilation_{a}", 1) for a in axes),
        pads,
    )
    for name in ("kernel", "stride", "dilation"):
        for axis, size in zip(axes, getattr(window, name), strict=True):
            if not 1 <= size <= LARGEST:
                raise LayerError(f"'{name}_{axis}' is {size}, expected 1 to {LARGEST}")
    return window


def cells_inside(sizes: tuple[int, ...], window: Window, positions: tuple[int, ...]) -> Array:
    """How many cells of the window lie in an image of these sizes, by position; found without looking at any cell."""
    found = np.ones((1,) * len(sizes), np.int64)
    for axis, (size, kernel, stride, step, (before, _), many) in enumerate(
        zip(sizes, window.kernel, window.stride, window.dilation, window.pads, positions, strict=True)
    ):
        start = np.arange(many, dtype=np.int64) * stride - before
        first, end = np.maximum(-(start // step), 0), np.minimum((size - 1 - start) // step + 1, kernel)
        found = found * np.maximum(end - first, 0).reshape([-1 if i == axis else 1 for i in range(len(sizes))])
    return found


def padded(x: Array, window: Window, positions: tuple[int, ...], fill: float) -> Array:
    """The image with `fill` around it, as far as the window reaches at these positions; pads below 0 cut it off."""
    pads = [(0, 0)]
    for size, (before, after), stride, reach, many in zip(
        x.shape[1:-1], window.pads, window.stride, window.reach, positions, strict=True
    ):
        pads.append((before, max(after, (many - 1) * stride + reach - size - before)))
    pads.append((0, 0))
    if not any(p for pair in pads for p in pair):
        return x
    made = np.empty([size + max(b, 0) + max(a, 0) for size, (b, a) in zip(x.shape, pads, strict=True)], x.dtype)
    inside: tuple[slice, ...] = ()
    for size, (b, a) in zip(x.shape, pads, strict=True):
        first = max(b, 0)
        made[(*inside, slice(0, first))] = made[(*inside, slice(first + size, None))] = fill
        inside += (slice(first, first + size),)
    made[inside] = x
    return made[tuple(slice(max(0, -b), None if a >= 0 else a) for b, a in pads)]


def seen(x: Array, window: Window, positions: tuple[int, ...], fill: float) -> Array:
    """The elements under the window: [n, positions..., c, kernel...], `fill` outside the image.

    Positions past the end of the padded image get `fill`, too.
    """
    wide = padded(x, window, positions, fill)
    views = np.lib.stride_tricks.sliding_window_view(wide, window.reach, tuple(range(1, x.ndim - 1)))
    at = [slice(None)]
    at += [slice(0, (many - 1) * stride + 1, stride) for many, stride in zip(positions, window.stride, strict=True)]
    at += [slice(None)]
    at += [slice(None, None, d) for d in window.dilation]
    return views[tuple(at)]

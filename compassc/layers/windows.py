"""Sliding windows over NHWC images (and NDHWC volumes): attributes, output sizes, and the elements at each position."""

from __future__ import annotations

from functools import cached_property, lru_cache
from types import NoneType

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.graph.values import Value
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
_AXES = {3: "x", 4: "yx", 5: "zyx"}
"""That windows are moved along, by the rank of the image."""
_NAMES = {
    rank: tuple(a.name for a in (ATTRIBUTES_3D if rank == 5 else ATTRIBUTES_2D) if rank > 3 or a.name[-2:] != "_y")
    for rank in _AXES
}
"""Of the attributes that a window is of."""


@dataclass(frozen=True)
class Window:
    """A window over the spatial axes, outermost first: (height, width), or (depth, height, width)."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @cached_property
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
    if rank not in _NAMES:
        raise LayerError(f"the input has {rank} dimensions, expected an NHWC image")
    given = [layer.attributes.get(name) for name in _NAMES[rank]]
    if not all(isinstance(value, (int, float, str, NoneType)) for value in given):
        return _read(layer, rank)
    return _known(rank, *given)


@lru_cache(maxsize=1024, typed=True)
def _known(rank: int, *given: Value) -> Window:
    """The window by what its attributes are: it is asked for again and again."""
    return _read(Layer("", "", attributes=dict(zip(_NAMES[rank], given, strict=True))), rank)


def _read(layer: Layer, rank: int) -> Window:
    axes = _AXES[rank]
    ends = {a: (f"{a}_begin", f"{a}_end") for a in axes}
    if rank < 5:
        ends = {"y": ("top", "bottom"), "x": ("left", "right")}
    pads = tuple((layer.integer(f"pad_{ends[a][0]}", 0), layer.integer(f"pad_{ends[a][1]}", 0)) for a in axes)
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


class _Frame(NamedTuple):
    """An image with what is added around it: the shape of that, where it is filled, where the image lies, and what pads below 0
    leave of it."""

    shape: tuple[int, ...]
    filled: tuple[tuple[slice, ...], ...]
    inside: tuple[slice, ...]
    left: tuple[slice, ...] | None


@lru_cache(maxsize=1024)
def _frame(shape: tuple[int, ...], window: Window, positions: tuple[int, ...]) -> _Frame | None:
    """None where nothing is added or cut off."""
    pads = [(0, 0)]
    for size, (before, after), stride, reach, many in zip(
        shape[1:-1], window.pads, window.stride, window.reach, positions, strict=True
    ):
        pads.append((before, max(after, (many - 1) * stride + reach - size - before)))
    pads.append((0, 0))
    if not any(p for pair in pads for p in pair):
        return None
    wide = tuple(size + max(b, 0) + max(a, 0) for size, (b, a) in zip(shape, pads, strict=True))
    filled: list[tuple[slice, ...]] = []
    inside: tuple[slice, ...] = ()
    for size, (b, a) in zip(shape, pads, strict=True):
        first = max(b, 0)
        sides = ((b, slice(0, first)), (a, slice(first + size, None)))
        filled += [(*inside, at) for many, at in sides if many > 0]
        inside += (slice(first, first + size),)
    left = tuple(slice(max(0, -b), None if a >= 0 else a) for b, a in pads)
    return _Frame(wide, tuple(filled), inside, left if min(map(min, pads)) < 0 else None)


def padded(x: Array, window: Window, positions: tuple[int, ...], fill: float) -> Array:
    """The image with `fill` around it, as far as the window reaches at these positions; pads below 0 cut it off."""
    frame = _frame(x.shape, window, positions)
    if frame is None:
        return x
    made = np.empty(frame.shape, x.dtype)
    for place in frame.filled:
        made[place] = fill
    made[frame.inside] = x
    return made if frame.left is None else made[frame.left]


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

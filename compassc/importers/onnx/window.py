"""Windows over spatial axes, as attributes of nodes say them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compass_core.namedtuple import NamedTuple
from compassc.importers.values import Refused

Ints = Sequence[int]
SAME = ("SAME_UPPER", "SAME_LOWER")


class Window(NamedTuple):
    """A window over spatial axes, outermost first; `pads`: (before, after) by axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @property
    def reach(self) -> tuple[int, ...]:
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def ends(self) -> list[int]:
        """What is put around the axes: before each, then behind each."""
        return [*(p for p, _ in self.pads), *(q for _, q in self.pads)]

    def positions(self, sizes: Ints, ceil: bool = False) -> tuple[int, ...]:
        """Positions along each axis. With `ceil` a last one may reach past the end, if it starts inside."""
        found = []
        for size, reach, stride, (before, after) in zip(sizes, self.reach, self.stride, self.pads, strict=True):
            room = size + before + after - reach
            if room < 0:
                raise Refused(f"the window reaches over {reach} elements, the padded image has {size + before + after}")
            many = -(-room // stride) + 1 if ceil else room // stride + 1
            found.append(many - 1 if ceil and (many - 1) * stride >= size + before else many)
        return tuple(found)

    def filled(self, sizes: Ints) -> Window:
        """The window whose pads hold all its positions, with those that only `ceil` has."""
        pads = (
            (before, max(after, (many - 1) * stride + reach - size - before))
            for many, stride, reach, size, (before, after) in zip(
                self.positions(sizes, ceil=True), self.stride, self.reach, sizes, self.pads, strict=True
            )
        )
        return self._replace(pads=tuple(pads))

    def trimmed(self, sizes: Ints) -> Window:
        """The window without the pads, or below 0 without the elements, behind the last position of axes where rounding up would
        give one that starts behind them."""
        pads = []
        for n, many, s, r, (before, after) in zip(
            sizes, self.positions(sizes, ceil=True), self.stride, self.reach, self.pads, strict=True
        ):
            room = n + before + after - r
            pads.append((before, after - room + (many - 1) * s if many <= -(-room // s) else after))
        return self._replace(pads=tuple(pads))

    def spread(self, sizes: Ints, extra: Ints) -> list[int]:
        """The sizes that a transposed convolution makes, without pads."""
        return [s * (n - 1) + e + r for s, n, e, r in zip(self.stride, sizes, extra, self.reach, strict=True)]

    def attributes(self) -> dict[str, int]:
        """The attributes in the form that layers take."""
        letters = "xyz"[: len(self.kernel)]
        given: dict[str, int] = {}
        for name in ("kernel", "stride", "dilation"):
            given |= {f"{name}_{a}": v for a, v in zip(letters, reversed(getattr(self, name)), strict=True)}
        if len(letters) == 3:
            for a, (before, after) in zip(letters, reversed(self.pads), strict=True):
                given |= {f"pad_{a}_begin": before, f"pad_{a}_end": after}
            return given
        (top, bottom), (left, right) = self.pads
        return given | {"pad_left": left, "pad_right": right, "pad_top": top, "pad_bottom": bottom}


class Asked(NamedTuple):
    """What a node says of its window, by the names of its attributes."""

    kernel_shape: Ints | None = None
    strides: Ints | None = None
    dilations: Ints | None = None
    pads: Ints | None = None
    auto_pad: str = "NOTSET"

    def over(self, sizes: Sequence[Any], kernel: Ints | None = None) -> Window:
        """The window over axes of these sizes. `kernel`: that of the weights, by default the attribute's."""
        cells = self.kernel_shape if kernel is None else kernel
        if cells is None:
            raise Refused("its attribute 'kernel_shape' is missing")
        rank = len(cells)
        stride, dilation = tuple(self.strides or (1,) * rank), tuple(self.dilations or (1,) * rank)
        if len(sizes) != rank or len(stride) != rank or len(dilation) != rank or min((*cells, *stride, *dilation)) < 1:
            raise Refused(
                f"kernel {list(cells)}, strides {list(stride)} and dilations {list(dilation)} are not sizes of "
                f"a window over {len(sizes)} axes"
            )
        if self.pads is not None and self.auto_pad in ("NOTSET", "") and len(self.pads) != 2 * rank:
            raise Refused(f"its pads {list(self.pads)} are not two for each of {rank} axes")
        if self.auto_pad not in SAME:
            given = list(self.pads or (0,) * 2 * rank) if self.auto_pad != "VALID" else [0] * 2 * rank
            return Window(tuple(cells), stride, dilation, tuple(zip(given[:rank], given[rank:], strict=True)))
        if not all(isinstance(size, int) for size in sizes):
            raise Refused(f"its attribute 'auto_pad' is {self.auto_pad}, and its extents are only known at run time")
        listed = []
        for size, k, s, d in zip(sizes, cells, stride, dilation, strict=True):
            total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
            first = total // 2 if self.auto_pad == "SAME_UPPER" else total - total // 2
            listed.append((first, total - first))
        return Window(tuple(cells), stride, dilation, tuple(listed))

    def mean(self, sizes: Sequence[Any]) -> Window:
        """The window of a mean. Refused where SAME leaves out two elements or more: some readers of ONNX begin inside then."""
        window = self.over(sizes)
        if self.auto_pad in SAME:
            for size, reach, stride in zip(sizes, window.reach, window.stride, strict=True):
                if (-(-size // stride) - 1) * stride + reach < size - 1:
                    raise Refused(
                        f"'auto_pad' is {self.auto_pad}, and its windows leave out elements at the ends; write 'pads' instead"
                    )
        return window

    def transposed(self, sizes: Sequence[Any], kernel: Ints, extra: Ints, wanted: Ints | None) -> Window:
        """The window of a transposed convolution: its pads cut the whole output to the wanted sizes.

        A wanted size past the whole is reached behind the axis alone, where `extra` adds too: that pad is negative.

        `extra`: what is added behind each axis.
        """
        window = self._replace(auto_pad="NOTSET").over(sizes, kernel)
        if wanted is None and self.auto_pad not in SAME:
            return window
        if not all(isinstance(size, int) for size in sizes):
            raise Refused("its extents are only known at run time, and pads follow from them")
        pads = []
        goals = wanted or [n * s for n, s in zip(sizes, window.stride, strict=True)]
        for size, goal in zip(window.spread(sizes, extra), goals[-len(sizes) :], strict=True):
            total = size - goal
            cut = max(0, total)
            first = cut // 2 if self.auto_pad == "SAME_UPPER" else cut - cut // 2
            pads.append((first, total - first))
        return window._replace(pads=tuple(pads))

"""The loops of kernels of regions: lanes are channels; places of points are scalars, which every group of channels shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Pointer, Value, either
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.vectors import LANES, bits_of, everywhere, load, wide_kind


def check_maps(layer: Layer, rois: Tensor, width: int, shape: tuple[int, int]) -> None:
    x, y = layer.input, layer.output
    if len(x.shape) != 4 or len(rois.shape) != 2 or rois.shape[1] != width:
        raise LayerError(f"{list(x.shape)} and {list(rois.shape)} are not NHWC maps and rows of {width} numbers")
    if y.shape != (rois.shape[0], *shape, x.shape[3]):
        raise LayerError(f"the output is {list(y.shape)}, expected {[rois.shape[0], *shape, x.shape[3]]}")
    if x.dtype != y.dtype:
        raise LayerError(f"the input is {x.dtype}, the output {y.dtype}; it keeps the type")
    if (wide_kind(x) == "int32") != layer.is_quantised or (wide_kind(rois) == "int32") != layer.is_quantised:
        raise LayerError(f"maps of {x.dtype} with regions of {rois.dtype} have no kernel")


class Axis(NamedTuple):
    """An axis of the map that a region is on, and of the cells that the region has."""

    pixels: Value
    cells: Value
    cell: Expression
    """The present one."""


class Near(NamedTuple):
    """The pixels around a place along an axis, or the nearest one, and what each is weighed with."""

    pixels: tuple[Value, ...]
    weights: tuple[Value, ...] = ()


class Regions:
    """The kernel of a layer of regions in the making: statements `with` its `cells`, each one of all regions.

    Those say which map and image a region is on (`on`), before they load pixels.
    """

    def __init__(self, layer: Layer, boxes: Tensor, maps: Sequence[Tensor], shape: tuple[int, int]) -> None:
        k, self.layer, self.dtype, self.width = LayerKernel(), layer, layer.output.dtype, boxes.shape[-1]
        x, self.k = maps[0].shape, k
        with k.active():
            self.maps, self._boxes, self.target = [k.tensor(t) for t in maps], k.tensor(boxes), k.tensor(layer.output)
            self.count, self.images = k.number(layer.output.count // x[3]), k.number(x[0])
            self.sizes, self.channels = (k.number(x[1]), k.number(x[2])), k.number(x[3])
            self.shape = k.number(shape[0]), k.number(shape[1])
            self.image_size, self.row = k.number(x[1] * x[2] * x[3]), k.number(x[2] * x[3])

    @contextmanager
    def cells(self, early: bool = True) -> Iterator[tuple[Axis, Axis]]:
        """Statements for every cell of all regions, with the axes of the first map. `early`: whether the indices of the cell
        are variables from the start on, which they need not be where each is used once."""
        k, (down, across) = self.k, self.shape
        with k.active(), k.shared(self.count, "p") as self.cell:
            self.region = k.held("r", self.cell / (down * across))
            index = self.cell / across % down, self.cell % across
            if early:
                index = k.held("iy", index[0]), k.held("ix", index[1])
            self.axes = (Axis(self.sizes[0], down, index[0]), Axis(self.sizes[1], across, index[1]))
            self.on(self.maps[0])
            yield self.axes

    def number_of(self, i: int) -> Expression:
        """A number of the present region, as it is stored."""
        found: Expression = self._boxes[self.region * self.width + i]
        return found

    def real(self, i: int) -> Expression:
        """The same as float32."""
        return S.cast(self.number_of(i), "float32")

    def on(self, source: Address) -> None:
        """From here on, pixels are those of a map, or of an image in it."""
        self.source = source

    def on_level(self, area: Expression, limits: Sequence[Expression], **numbers: Sequence[float]) -> dict[str, Value]:
        """The map of a pyramid that a region is on, by its area, with its height, its width and other numbers."""
        k, kinds = self.k, {name: 0.0 if isinstance(of[0], float) else 0 for name, of in numbers.items()}
        source = k.hold(self.maps[0] + 0, "source")
        given = {name: [k.number(v) for v in of] for name, of in numbers.items()}
        found = {name: k.changing(name, of[0] + kinds[name]) for name, of in given.items()}
        for i, limit in enumerate(limits, 1):
            with k.when(area >= limit):
                k.move(source, self.maps[i] + 0)
                for name, variable in found.items():
                    k.assign(variable, given[name][i] + kinds[name])
        self.axes = (self.axes[0]._replace(pixels=found["height"]), self.axes[1]._replace(pixels=found["width"]))
        self.row = k.held("row", found["width"] * self.channels)
        self.on(source)
        return found

    def image(self, rois: Tensor) -> Value:
        """The image of a region, by the first of its five numbers."""
        if not self.layer.is_quantised:
            return self.k.changing("image", S.cast(self.real(0), "int32"))
        if self.layer.input.shape[0] == 1:
            return self.k.changing("image", S.i32(0))
        zero, scale = self.k.number(rois.scalar_zero), self.k.number(float(rois.scalar_scale))
        exact = S.cast(S.i32(self.number_of(0)) + zero, "float32") / scale
        return self.k.changing("image", S.cast(S.rint(exact), "int32"))

    def is_outside(self, image: Value) -> Expression:
        return either(image < 0, image >= self.images)

    def on_image(self, image: Value) -> None:
        """From here on, pixels are those of an image."""
        self.on(self.k.hold(self.maps[0] + image * self.image_size, "source"))

    def indexed(self, index: Tensor) -> Value:
        """Goes to the image that a region has by its number; whether (1 or 0) there is such a one."""
        k = self.k
        image, inside = k.changing("image", S.i32(k.tensor(index)[self.region])), k.changing("inside", S.i32(1))
        with k.when(self.is_outside(image)):
            k.assign(inside, S.i32(0))
            k.assign(image, S.i32(0))
        self.on_image(image)
        return inside

    @contextmanager
    def blocks(self) -> Iterator[Value]:
        """Statements for every group of channels."""
        k = self.k
        with k.for_range(0, self.channels, LANES, "j") as self.channel:
            k.renew_mask()
            k.define(k.lanes_mask, tail(self.channels - self.channel))
            yield self.channel

    def rows(self, y: Near) -> list[Pointer]:
        """Where the first pixels of rows are, for the present channels."""
        return [self.k.hold(self.source + (row * self.row + self.channel), "line") for row in y.pixels]

    def pixels(self, rows: Sequence[Pointer], x: Near, zero: Value | None = None) -> list[Value]:
        """The channels of pixels of rows, plus a zero point: those of the first row first."""
        k = self.k
        found = [load(line + column * self.channels, k.mask, self.dtype, LANES) for line in rows for column in x.pixels]
        return [k.let(v if zero is None else v + zero) for v in found]

    def store(self, value: Value) -> None:
        place = self.target + (self.cell * self.channels + self.channel)
        S.vstore(self.k.stored(value, self.dtype), place, self.k.mask)

    def align(
        self,
        many: Sequence[Value],
        point: Callable[[int, Value], Near],
        add: Callable[[Value, list[Value], Near, Near], None],
        end: Callable[[Value], Value],
        start: Expression,
        zero: Value | None = None,
        means: bool = False,
    ) -> None:
        """Stores what becomes of the points of a cell, of which there are so many along each axis.

        `point` finds one along an axis; `add` adds its pixels to a sum; `end` makes the output of the sum. `means`: the
        sum is that of the rows' means.
        """
        k = self.k
        with self.blocks():
            total = k.changing("total", start)
            with k.for_range(0, many[0], name="ky") as ky:
                y, row = point(0, ky), k.changing("row", everywhere(0)) if means else total
                lines = self.rows(y)
                with k.for_range(0, many[1], name="kx") as kx:
                    x = point(1, kx)
                    add(row, self.pixels(lines, x, zero), y, x)
                if means:
                    k.assign(total, total + row / everywhere(S.max(many[1], 1)))
            self.store(end(total))

    def crop(self, inside: Value, outside: float, taken: Callable[[], Value], end: Callable[[Value], Value]) -> None:
        """Stores what is taken of the pixels around the place of a cell, where it is inside of the map."""
        k = self.k
        beyond = k.number(outside)
        with self.blocks():
            result = k.changing("result", S.vbcast(beyond, lanes=LANES))
            with k.when(inside != 0):
                k.assign(result, taken())
            self.store(end(result))

    def copy_pixel(self, y: Value, x: Value) -> None:
        """Copies a pixel of the first map to the cell."""
        source, target = (p.as_ptr(bits_of(self.dtype)) for p in (self.maps[0], self.target))
        pixel = self.k.hold(source + (y * self.row + x * self.channels), "pixel")
        S.dma_copy(target + self.cell * self.channels, pixel, self.channels)

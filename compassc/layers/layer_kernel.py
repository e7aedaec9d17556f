"""Kernels of layers that are made as IR, with the numbers and tables of their layers as parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from compass_core.arrays import Array
from compassc.build import Address, Builder, Expression, Pointer, Value, pointer_of, recorded, variable_within
from compassc.build.builder import Line
from compassc.dsl import script as S
from compassc.graph import LayerError, Tensor
from compassc.ir.dtypes import FLOAT32, INT32, PointerType, bool_of, dtype, pointer_type
from compassc.ir.exprs import Var
from compassc.layers.emit import wide_kind
from compassc.layers.source import Kernel, kernel_text
from compassc.layers.steps import LANES, Steps
from compassc.layers.vectors import LANE_KINDS, WIDE, bits_of, load, pointee


def tail(left: Expression) -> Expression:
    """The mask of a pass of which so many elements are left."""
    return S.tail_mask(S.min(left, LANES), LANES)


class Lanes:
    """The lanes of a pass of an operand: as they are stored, and in the form that they are computed with.

    The variables stand before what defines them does, so that steps may be made first.
    """

    def __init__(self, k: Builder, hint: str, kind: str) -> None:
        self.kind = kind
        self.value = k.variable(hint, dtype(LANE_KINDS[kind]).with_lanes(LANES))
        stored = dtype(pointee(kind)).with_lanes(LANES)
        self.stored = self.value if LANE_KINDS[kind] == kind else k.variable(f"{hint}_raw", stored)

    def load(self, k: Builder, place: Address, mask: Value | None = None) -> None:
        """Defines them as the elements at a place; each step has a name, so that it is done once."""
        self.define(k, S.vload(place, lanes=LANES) if mask is None else S.vload(place, mask, lanes=LANES))

    def define(self, k: Builder, stored: Expression) -> None:
        """Defines them by the lanes as they are stored."""
        held = k.define(self.stored, stored)
        if self.value is self.stored:
            return
        if self.kind in ("int8", "uint8", "bool"):
            half = pointee(self.kind).replace("8", "16")
            held = k.define(k.variable(f"{self.value}_half", dtype(half).with_lanes(LANES)), S.cast(held, half))
        k.define(self.value, S.cast(held, WIDE[self.kind]))

    def fill(self, k: Builder, source: Address) -> None:
        """Defines them as one element, everywhere."""
        if self.value is not self.stored:
            k.define(self.stored, S.vbcast(source[0], lanes=LANES))
        k.define(self.value, S.vbcast(S.cast(source[0], LANE_KINDS[self.kind]), lanes=LANES))


class LayerKernel(Builder, Steps):
    """The kernel of layers in the making. Steps are made apart, the loop around them afterwards."""

    inside = (*Builder.inside, __file__)
    any_lanes = lanes_are_channels = False
    lanes_of: Callable[[Array], Expression] | None = None
    """The stored lanes of a pass of numbers per channel, in kernels that say how these lie."""

    def __init__(self, spreads: bool = False) -> None:
        """`spreads`: numbers that broadcast to the output may become operands, which whoever makes the loops brings."""
        super().__init__()
        self.spreads = spreads
        self.stored_forms, self.shifted_from, self.rounded_from, self.float_forms = {}, {}, {}, {}
        self.channel_shape = ()
        self.spread: list[tuple[Lanes, Array]] = []
        """Numbers per channel, and such that broadcast to the output, as operands."""
        self.masked = False
        """Whether a step asked which lanes are elements."""
        self.lanes_mask = self.variable("mask", bool_of(LANES))
        self._once: list[Line] = []
        self._choice: Expression | None = None
        self._scratch: dict[tuple[int, str, str], Pointer] = {}

    def let(self, expression: Expression, kind: str = "", low: int | None = None, high: int | None = None) -> Value:
        return self._named(self.fresh("v"), recorded(expression).within(low, high))

    def held(self, hint: str, expression: Expression) -> Value:
        """A new variable with the value of an expression, called so."""
        return self._named(self.name(hint), recorded(expression))

    def _named(self, name: str, value: Value) -> Value:
        return self.define(variable_within(name, value.dtype, lambda _: value.range), value)

    def changing(self, hint: str, expression: Expression) -> Value:
        """As `held`, of a variable that will have other values, too."""
        return self.define(self.variable(hint, expression.dtype), expression)

    def loaded(self, place: Address, tensor: Tensor) -> Value:
        """The lanes of a pass of a tensor, at a place, in their wide form."""
        wide_kind(tensor)
        known = (tensor.low, tensor.high) if tensor.is_integer else (None, None)
        return self.let(load(place, self.mask, tensor.dtype, LANES), "", *known)

    def renew_mask(self) -> None:
        """From here on, the mask is another variable."""
        self.lanes_mask = self.variable("mask", bool_of(LANES))

    @contextmanager
    def first(self) -> Iterator[None]:
        """Within it, statements are those that run before all loops."""
        with self.apart() as lines:
            yield
        self._once += lines

    def once(self, value: Expression) -> Value:
        with self.first():
            return self.held("entries", value)

    def number(self, value: float | np.generic) -> Value:
        number = self.argument(value)
        if isinstance(number, float):
            var = self.parameter("p", FLOAT32, number)
            return Value(var, var.name)
        var = self.parameter("p", INT32, number)
        return Value(var, var.name, number, number)

    def tensor(self, tensor: Tensor) -> Pointer:
        """A pointer parameter for a tensor of the graph."""
        return pointer_of(self.parameter("t", pointer_type(dtype(pointee(tensor.dtype)), "global"), tensor))

    def raw(self, tensor: Tensor) -> Pointer:
        """A pointer parameter whose elements are integers of the tensor's element size."""
        return self.tensor(tensor).as_ptr(bits_of(tensor.dtype))

    def scratch(self, size: int, kind: str, hint: str) -> Pointer:
        """An array in LSRAM that is the same one wherever it is asked for."""
        found = self._scratch.get((size, kind, hint))
        if found is None:
            with self.first():
                found = self._scratch[size, kind, hint] = self.alloc(size, kind, hint)
        return found

    @contextmanager
    def shared(self, count: Expression, name: str, step: int = 1) -> Iterator[Value]:
        """The loop over so many items of which each TEC takes every so manieth; `step` of them at a time."""
        first, leap = S.get_local_id(), S.get_local_size()
        if step > 1:
            first, leap = first * step, leap * step
        with self.for_range(first, count, leap, name) as item:
            yield item

    def pointer(self, array: Array) -> Pointer:
        return pointer_of(self.parameter("c", pointer_type(dtype(array.dtype.name), "global"), array))

    def table(self, array: Array) -> Pointer:
        self.take_for_table(array)
        source = self.pointer(array)
        with self.first(), self.active():
            found = self.alloc(array.size, array.dtype.name, "table")
            S.dma_copy(found, source, array.size)
        return found

    @contextmanager
    def one_of(self, index: Expression) -> Iterator[None]:
        """Within it, of numbers per channel that at an index counts for all lanes of a pass."""
        self._choice = index
        yield
        self._choice = None

    @property
    def one_for_all(self) -> bool:
        return self._choice is not None

    def channels(self, numbers: Array) -> Value:
        return self._per_channel(numbers).value if self._choice is None else self._chosen(numbers, self._choice)

    def stored_channels(self, numbers: Array) -> Value:
        return self._per_channel(numbers).stored if self._choice is None else self._chosen(numbers, self._choice)

    def _chosen(self, numbers: Array, index: Expression) -> Value:
        return self.held("per", self.pointer(numbers)[index])

    def broadcast(self, numbers: Array) -> Value:
        return self._spread(numbers).value

    def _per_channel(self, numbers: Array) -> Lanes:
        if self.lanes_of is not None:
            lanes = Lanes(self, "per", numbers.dtype.name)
            lanes.define(self, self.lanes_of(numbers))
            return lanes
        if not self.channel_shape:
            raise LayerError("it has numbers per channel, but the channels are not the last axis")
        return self._spread(numbers.reshape(self.channel_shape))

    def _spread(self, numbers: Array) -> Lanes:
        if not self.spreads:
            raise LayerError("it has numbers that differ along the output, for which this kernel has no form")
        lanes = Lanes(self, "per", numbers.dtype.name)
        self.spread.append((lanes, numbers))
        return lanes

    @property
    def mask(self) -> Value:
        self.masked = True
        return self.lanes_mask

    def kernel(self) -> Kernel:
        """The finished kernel. Its first parameters are the tensors, so that they are at the same places whatever numbers a
        choice brings."""
        self.lines[:0] = self._once
        self.finish(needed={v for v, a in self.parameters if isinstance(a, Tensor)})
        self.parameters.sort(key=lambda parameter: not isinstance(parameter[1], Tensor))
        return Kernel(
            self._text(),
            tuple(a for _, a in self.parameters),
            self.maker("layer"),
            tuple(set(self.called.values())),
            lambda: self._text(placed=True),
        )

    def _text(self, placed: bool = False) -> str:
        types = [(v.name, _annotation(v)) for v, _ in self.parameters]
        return kernel_text(types, self.written(placed) or ["pass"], self.called)


def _annotation(parameter: Var) -> str:
    kind = parameter.dtype
    if isinstance(kind, PointerType):
        return f'S.ptr("{kind.elem}", "{kind.scope}")'
    return "S.fp32" if kind is FLOAT32 else "S.i32"

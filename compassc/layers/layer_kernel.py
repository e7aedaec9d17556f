"""Kernels of layers that are made as IR, with the numbers and tables of their layers as parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TypeVar, cast

import numpy as np

from compass_core.arrays import Array
from compass_core.bounded import Bounded
from compass_core.namedtuple import NamedTuple
from compassc.build import (
    Address,
    Builder,
    Expression,
    Pointer,
    Value,
    pointer_of,
    recorded,
    variable_within,
    whole_range,
)
from compassc.build.builder import Inside, Line, swept
from compassc.build.recorder import types_of
from compassc.dsl import script as S
from compassc.graph import LayerError, Tensor
from compassc.ir.dtypes import FLOAT32, INT32, DataType, PointerType, bool_of, dtype, pointer_type
from compassc.ir.exprs import Var
from compassc.language.functions import Macro
from compassc.layers.arranged import Arranged
from compassc.layers.kernel import Kernel
from compassc.layers.machine import Share, configuration
from compassc.layers.vectors import LANE_KINDS, LANES, WIDE, bits_of, load, narrow, pointee, wide_kind

T = TypeVar("T")
TABLES = Share(2)
"""LSRAM for the tables of a kernel."""


_variable = cache(Var)
HEADER = """\
from compassc.dsl import script as S
{imports}


@S.prim_func
def {name}(
{parameters}
):
{body}
"""


def kernel_text(parameters: Sequence[tuple[str, str]], lines: Sequence[str], functions: Mapping[str, str]) -> str:
    """The file of a kernel with these lines as its body, and imports of the functions they use: the module of each. A
    parameter is a name and its type as it is annotated."""
    body = "\n".join("    " + line if line else "" for line in lines)
    listed = "\n".join(f"    {name}: {kind}," for name, kind in parameters)
    imports = "\n".join(
        f"from {module} import {', '.join(sorted(name for name, m in functions.items() if m == module))}"
        for module in sorted(set(functions.values()))
    )
    return HEADER.format(imports=imports, name="layer", parameters=listed, body=body)


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


class Part(NamedTuple):
    """Statements that kernels have in common, with what `made` them gave, and the names and functions known behind them."""

    lines: tuple[Line, ...]
    made: object
    names: set[str]
    counts: Counter[str]
    called: dict[str, str]


_PARTS: Bounded[tuple[Hashable, ...], Part] = Bounded(128)
"""By what they depend on. A model has some ten."""


class LayerKernel(Builder):
    """The kernel of layers in the making: numbers and tables of layers, variables, statements. Steps, which make values of
    values, are made apart, the loop around them afterwards."""

    inside = Inside(*Builder.inside.beginnings, __file__)
    any_lanes = False
    """Whether the kernel says which number is a lane's."""
    lanes_are_channels = False
    """Whether the lanes of a pass are those of the last axis alone."""
    table_bytes = 0
    """Of the LSRAM that its tables take."""
    lanes_of: Callable[[Array], Expression] | None = None
    """The stored lanes of a pass of numbers per channel, in kernels that say how these lie."""

    def __init__(self, spreads: bool = False) -> None:
        """`spreads`: numbers that broadcast to the output may become operands, which whoever makes the loops brings."""
        super().__init__()
        self.spreads = spreads
        self.stored_forms: dict[tuple[str, str], Value] = {}
        """The lanes of variables as a data type stores them, where they are known: (variable, type) -> lanes."""
        self.shifted_from: dict[str, tuple[Value, Value]] = {}
        """Variables that are others over a power of two, rounded: (the other, the shift)."""
        self.rounded_from: dict[str, Value] = {}
        """Variables that are rounded products of floats: the words that `vectors.rounded_word` makes."""
        self.float_forms: dict[str, Value] = {}
        """Whole numbers as float32, where they are known."""
        self.channel_shape: tuple[int, ...] = ()
        """How the numbers per channel of the present step lie along the output, in kernels of any shape; set by the step."""
        self.spread: list[tuple[Lanes, Array]] = []
        """Numbers per channel, and such that broadcast to the output, as operands."""
        self.masked = False
        """Whether a step asked which lanes are elements."""
        self.lanes_mask = self.variable("mask", bool_of(LANES))
        self._once: list[Line] = []
        self._choice: Expression | None = None
        self._scratch: dict[tuple[int, str, str], Pointer] = {}

    def let(self, expression: Expression, low: int | None = None, high: int | None = None) -> Value:
        """A new variable with the value of an expression; `low`, `high`: what is known of it beside its own range."""
        return self._named(self.fresh("v"), recorded(expression).within(low, high))

    def held(self, hint: str, expression: Expression) -> Value:
        """A new variable with the value of an expression, called so."""
        return self._named(self.name(hint), recorded(expression))

    def _named(self, name: str, value: Value) -> Value:
        return self.define(variable_within(self.made_variable(name, value.dtype), lambda _: value.range), value)

    def made_variable(self, name: str, kind: DataType | PointerType) -> Var:
        """The variable of a name and a type, which is the same one in all kernels: so they can have lines in common."""
        return _variable(name, kind)

    def changing(self, hint: str, expression: Expression) -> Value:
        """As `held`, of a variable that will have other values, too."""
        return self.define(self.variable(hint, expression.dtype), expression)

    def loaded(self, place: Address, tensor: Tensor) -> Value:
        """The lanes of a pass of a tensor, at a place, in their wide form."""
        wide_kind(tensor)
        known = (tensor.low, tensor.high) if tensor.is_integer else (None, None)
        return self.let(load(place, self.mask, tensor.dtype, LANES), *known)

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
        """A new variable that is the same in all passes."""
        with self.first():
            return self.held("entries", value)

    def number(self, value: float | np.generic) -> Value:
        """A scalar parameter: int32, or float32 for a float. LayerError for an integer that is no int32."""
        number = self.argument(value)
        if isinstance(number, float):
            var = self.parameter("p", FLOAT32, number)
            return Value(var, var.name)
        var = self.parameter("p", INT32, number)
        return Value(var, var.name, number, number)

    def size(self, value: int) -> Value:
        """A scalar parameter of which nothing is known, so that kernels of other sizes have the same statements."""
        return variable_within(self.parameter("p", INT32, self.argument(value)), whole_range(INT32))

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

    def part(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a function gives that makes statements, which are made once for all kernels in which they are the same.

        `key`: all that they depend on, of values and addresses what `operands_of` says. Of their ranges it knows no more
        than that of sizes.
        """
        state = key, configuration(), tuple(self.called), frozenset(self._names), frozenset(self._counts.items())
        part = _PARTS.get(state)
        if part is None:
            before = len(self.parameters), len(self._once)
            with self.apart() as lines:
                made = make()
            assert before == (len(self.parameters), len(self._once)), "a part has neither parameters nor first lines"
            needed: list[Var] = []
            types_of((made,), needed)
            swept(lines, needed)
            for line in lines:
                line.settle()
            part = _PARTS[state] = Part(tuple(lines), made, self._names, self._counts, self.called)
        self.splice(part.lines)
        self._names, self._counts, self.called = set(part.names), Counter(part.counts), dict(part.called)
        return cast(T, part.made)

    @contextmanager
    def shared(self, count: Expression, name: str, step: int = 1) -> Iterator[Value]:
        """The loop over so many items of which each TEC takes every so manieth; `step` of them at a time."""
        first, leap = S.get_local_id(), S.get_local_size()
        if step > 1:
            first, leap = first * step, leap * step
        with self.for_range(first, count, leap, name) as item:
            yield item

    def pointer(self, array: Array | Arranged) -> Pointer:
        """A pointer parameter for constant data."""
        return pointer_of(self.parameter("c", pointer_type(dtype(array.dtype.name), "global"), array))

    def table(self, array: Array) -> Pointer:
        """Constant data copied into LSRAM."""
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
        """Whether one number of a channel counts for all lanes of a pass."""
        return self._choice is not None

    def channels(self, numbers: Array) -> Value:
        """Numbers per channel: a vector of those of the pass, or the one of its index."""
        return self._per_channel(numbers).value if self._choice is None else self._chosen(numbers, self._choice)

    def stored_channels(self, numbers: Array) -> Value:
        """As `channels`, a vector of the numbers as they are stored."""
        return self._per_channel(numbers).stored if self._choice is None else self._chosen(numbers, self._choice)

    def _chosen(self, numbers: Array, index: Expression) -> Value:
        return self.held("per", self.pointer(numbers)[index])

    def broadcast(self, numbers: Array) -> Value:
        """Numbers that broadcast to the output: a vector of those of the pass. LayerError in kernels of other shapes than
        their output's."""
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
        """Which lanes of the pass are elements."""
        self.masked = True
        return self.lanes_mask

    def take_for_table(self, array: Array) -> None:
        """LayerError where the LSRAM has no room for another table."""
        self.table_bytes += array.nbytes
        if self.table_bytes > TABLES.size:
            raise LayerError(f"its tables take {self.table_bytes} bytes of the LSRAM, which has {TABLES.size} for them")

    @staticmethod
    def argument(value: float | np.generic) -> int | float:
        """A number as the argument of a scalar parameter. LayerError for an integer that is no int32."""
        number = value.item() if isinstance(value, np.generic) else value
        if not isinstance(number, float) and not -(2**31) <= number < 2**31:
            raise LayerError(f"the number {number} does not fit 32 bits, which kernels compute with")
        return number

    def shifted(self, value: Value, offset: int) -> Value:
        """An integer plus a number."""
        if not offset:
            return value
        return self.let(value + self.number(offset), low=value.low + offset, high=value.high + offset)

    def stored(self, value: Value, dtype: str) -> Value:
        """The lanes of a value as a data type stores them."""
        if dtype not in WIDE:
            raise LayerError(f"kernels do not compute with {dtype}")
        known = self.stored_forms.get((value.name, dtype))
        found: Value = narrow(value, dtype) if known is None else known
        return found

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


def operands_of(things: Iterable[object]) -> tuple[Hashable, ...]:
    """What statements depend on of the values and addresses among things, and in sequences among them: texts and types."""
    found: list[Hashable] = []
    for x in things:
        if isinstance(x, (list, tuple)):
            found += operands_of(x)
        elif isinstance(x, Value):
            found.append((x.source, x.dtype))
        elif isinstance(x, Pointer):
            found.append((x.source, x.elem, x.scope, x.blocked))
    return tuple(found)


def _annotation(parameter: Var) -> str:
    kind = parameter.dtype
    if isinstance(kind, PointerType):
        return f'S.ptr("{kind.elem}", "{kind.scope}")'
    return "S.fp32" if kind is FLOAT32 else "S.i32"


def kernel_of_macro(macro: Macro, **arguments: Tensor | Array | float | str | None) -> Kernel:
    """The kernel whose statements are those of a macro. Tensors, arrays and numbers become parameters; texts, truth values
    and None are what they are."""
    k = LayerKernel()
    with k.active():
        macro(**{name: _argument(k, given) for name, given in arguments.items()})
    return k.kernel()


def _argument(k: LayerKernel, given: Tensor | Array | float | str | None) -> Pointer | Value | str | bool | None:
    if isinstance(given, Tensor):
        return k.tensor(given)
    if isinstance(given, np.ndarray):
        return k.pointer(given)
    return given if given is None or isinstance(given, (str, bool)) else k.number(given)

"""How operators are declared: definition, reference in NumPy, samples; and the table of them."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc import te
from compassc.ir.dtypes import DataType, dtype
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Expr, IntImm
from compassc.ir.operators import as_expr, const
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

F = TypeVar("F", bound=Callable[..., object])
NUMBERS = ("int8", "float16", "float32")
REALS = ("float16", "float32")
WHOLE = ("int8", "int32")


@dataclass(frozen=True)
class Whole:
    """An input of whole numbers from `low` to `high` (not with it), whatever type is tried."""

    shape: tuple[int, ...]
    low: int
    high: int
    dtype: str = "int32"


@dataclass(frozen=True)
class Sample:
    """One way to call an operator: a tuple is a tensor of that shape, a list of tuples a list of tensors, anything else
    an argument as it is. `low`, `high`: the values of reals."""

    args: tuple[object, ...]
    options: dict[str, object] = field(default_factory=dict)
    low: float = -3.0
    high: float = 3.0

    def inputs(self, kind: str, seed: int = 0) -> tuple[list[Any], list[Any]]:
        """The arguments with tensors of a type, and with arrays of random numbers in their place."""
        rng, count = np.random.default_rng(seed), itertools.count()

        def one(given: object) -> tuple[object, object]:
            if isinstance(given, Whole):
                array = rng.integers(given.low, given.high, given.shape).astype(given.dtype)
                return te.placeholder(given.shape, given.dtype, name=f"x{next(count)}"), array
            if isinstance(given, list) and given and all(isinstance(g, tuple) for g in given):
                pairs = [one(g) for g in given]
                return [t for t, _ in pairs], [a for _, a in pairs]
            if isinstance(given, tuple) and given and all(isinstance(d, int) for d in given):
                if kind.startswith("int"):
                    array = rng.integers(-50 if kind == "int8" else -999, 50, given).astype(kind)
                else:
                    array = rng.uniform(self.low, self.high, given).astype(kind)
                return te.placeholder(given, kind, name=f"x{next(count)}"), array
            return given, given

        made = [one(given) for given in self.args]
        return [t for t, _ in made], [a for _, a in made]


def sample(*args: object, low: float = -3.0, high: float = 3.0, **options: object) -> Sample:
    """A `Sample` with its options as keywords."""
    return Sample(args, options, low, high)


@dataclass(frozen=True)
class Operator:
    """One operator. `define` makes its expression of tensors and attributes; what it makes of placeholders is the type rule.
    `reference` takes arrays and the same attributes, and computes wide enough to be right. `types`: the types that the
    samples are tried with."""

    name: str
    pattern: PatternKind
    define: Callable[..., Any]
    reference: Callable[..., Any]
    samples: tuple[Sample, ...]
    types: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The first paragraph of its documentation."""
        return inspect.cleandoc(self.define.__doc__ or "").partition("\n\n")[0].replace("\n", " ")

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.define)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes that may be left out, with what they are then."""
        known = self._signature.parameters.values()
        return {p.name: p.default for p in known if p.default is not p.empty}

    @cached_property
    def _operands(self) -> range:
        """How many operands the definition can be given without attributes; none where it takes any number."""
        known = self._signature.parameters.values()
        if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in known):
            return range(0)
        return range(sum(p.default is p.empty for p in known), len(known) + 1)

    def evaluate(self, *operands: object, **attributes: object) -> Any:
        """What the reference gives of arrays, or numbers, and attributes by the names that the definition has for them."""
        if not attributes and len(operands) in self._operands:
            return self.reference(*operands)
        bound = self._signature.bind(*operands, **attributes)
        return self.reference(*bound.args, **bound.kwargs)  # `args` end before the first that is left out


OPERATORS: dict[str, Operator] = {}
"""Every operator by name."""


def operator(
    pattern: PatternKind,
    reference: Callable[..., object],
    *samples: Sample,
    types: tuple[str, ...] = NUMBERS,
    name: str = "",
) -> Callable[[F], F]:
    """Declares the decorated function as the definition of the operator of its name."""

    def register(define: F) -> F:
        called = name or define.__name__
        assert called not in OPERATORS, f"'{called}' is declared twice"
        OPERATORS[called] = Operator(called, pattern, define, reference, samples, types)
        return define

    return register


# --------------------------------------------------------------------------------------------- what definitions share


def sizes(t: Tensor) -> list[Any]:
    """The extents of a tensor: numbers, values where they are open."""
    return [e.value if isinstance(e, IntImm) else e for e in t.shape]


def numbers(t: Tensor, what: str) -> list[int]:
    """The extents of a tensor. ExpressionError where one is open."""
    found = sizes(t)
    check_known(found, t, what)
    return found


def check_known(extents: Iterable[object], t: Tensor, what: str) -> None:
    """ExpressionError where one of these extents of a tensor is open."""
    for d in extents:
        if not isinstance(d, int):
            raise ExpressionError(f"topi.{what} needs constant sizes, '{t.name}' has {d}")


def number(value: Any, kind: object) -> Expr:
    """A constant of a type."""
    return const(value, str(dtype(kind)))


def least(kind: object) -> Expr:
    """What every number of a type is as large as: minus infinity of reals."""
    limits = dtype(kind)
    return number(-math.inf if limits.is_floating else limits.range()[0], kind)


def greatest(kind: object) -> Expr:
    """What every number of a type is as small as: infinity of reals."""
    limits = dtype(kind)
    return number(math.inf if limits.is_floating else limits.range()[1], kind)


largest = te.comm_reducer(lambda a, b: te.max(a, b), least, "max")
smallest = te.comm_reducer(lambda a, b: te.min(a, b), greatest, "min")
"""Reductions that give infinities, too, as NumPy does; those of `te` begin with the last finite number."""


def axis_of(axis: int, rank: int, what: str) -> int:
    """An axis counted from the front. ExpressionError where there is none such."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ExpressionError(f"topi.{what}: a tensor of {rank} dimensions has no axis {axis}")
    return axis % rank


def axes_of(axis: object, rank: int, what: str) -> list[int]:
    """Axes counted from the front, in order; all of them for None."""
    if axis is None:
        return list(range(rank))
    listed = axis if isinstance(axis, (tuple, list)) else (axis,)
    return sorted({axis_of(a, rank, what) for a in listed})


def on_axes(x: Array, values: Array, axis: object) -> Array:
    """Numbers of these axes of x, as they broadcast to it."""
    own = axes_of(axis, x.ndim, "on_axes")
    return values.reshape([n if d in own else 1 for d, n in enumerate(x.shape)])


def check_shape(what: str, own: list[object], *given: Tensor) -> None:
    """ExpressionError for factors and addends of another shape than the axes that they lie on, in their order."""
    for shape in map(sizes, given):
        known = (isinstance(n, int) and isinstance(m, int) and n != m for n, m in zip(own, shape))
        if len(shape) != len(own) or any(known):
            shown = [[*map(str, s)] for s in (own, shape)]
            raise ExpressionError(f"topi.nn.{what} takes numbers of the shape {shown[0]}, not {shown[1]}")


def pair(value: Any, count: int = 2) -> tuple[int, ...]:
    """A number for each of `count` dimensions."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    if len(given) != count:
        raise ExpressionError(f"expected {count} numbers, got {value!r}")
    return given


def positives(value: object, what: str, count: int = 2) -> tuple[int, ...]:
    """A number from 1 on for each of `count` dimensions. ExpressionError for less."""
    given = pair(value, count)
    if not all(hasattr(n, "__index__") and n > 0 for n in given):
        raise ExpressionError(f"{what} are whole numbers from 1 on, got {value!r}")
    return given


def wide(kind: DataType) -> DataType:
    """The type that sums of a type are computed in."""
    return dtype("float32") if kind.is_floating and kind.bits < 32 else kind


def summed(kind: DataType) -> DataType:
    """The type that sums for means are computed in. ExpressionTypeError for bools, which no mean is."""
    if kind.is_bool:
        raise ExpressionTypeError("means are of numbers, got bools", "cast to float32: topi.cast(x, 'float32')")
    return dtype("int32") if kind.is_integer and kind.bits < 32 else wide(kind)


def mean_of(total: Expr, count: float | Expr, kind: DataType) -> Expr:
    """A sum over a count, in a type: of whole numbers cut towards zero. The mean of no reals is NaN."""
    if isinstance(count, int) and not count:
        if not kind.is_floating:
            raise ExpressionError("there is no mean of no whole numbers", "cast to float32, of which it is NaN")
        return te.cast(total * te.const(math.nan, "float32"), kind)
    if not kind.is_floating:
        return te.cast(te.truncdiv(total, te.cast(count, total.dtype) if isinstance(count, Expr) else count), kind)
    if isinstance(count, int):
        return te.cast(total * te.const(1 / count, "float32"), kind)
    return te.cast(total / te.cast(count, "float32"), kind)


def value(x: object) -> Expr:
    """Whatever stands for a value, as one."""
    return as_expr(x)

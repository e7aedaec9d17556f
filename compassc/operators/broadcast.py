"""Operators of several tensors whose shapes are stretched to each other's as NumPy does it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from compass_core.shapes import broadcast_shape
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Expr, IntImm
from compassc.ir.operators import as_expr
from compassc.operators.arrays import larger, smaller
from compassc.operators.declare import NUMBERS, REALS, WHOLE, Sample, Whole, number, operator, sample, sizes
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor

_SHAPES = (sample((5, 7), (5, 7)), sample((2, 1, 3), (4, 1)), sample((3,), (1,)))


def common_shape(shapes: Sequence[Sequence[object]], what: str) -> list[int]:
    """The shape that all are stretched to. ExpressionError where they do not go together."""
    try:
        return list(broadcast_shape(shapes))
    except ValueError:
        shown = [list(map(str, s)) for s in shapes]
        raise ExpressionError(f"topi.{what}: shapes {shown} do not go together") from None


def stretched(x: object, indices: Sequence[Expr]) -> Expr:
    """The element of a tensor (or the number) at an index of the common shape."""
    if not isinstance(x, Tensor):
        return te.const(x) if isinstance(x, (int, float)) else as_expr(x)
    own = sizes(x)
    rest = indices[len(indices) - len(own) :] if own else ()
    found: Expr = x[tuple(0 if isinstance(d, int) and d == 1 else i for d, i in zip(own, rest))]
    return found


def joined(function: Callable[..., object], name: str, *inputs: object) -> Tensor:
    """A function of the elements of several tensors and numbers. A Python number has the type of the tensors."""
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    if not tensors:
        raise ExpressionError(f"topi.{name} needs a tensor")
    given = [number(x, tensors[0].dtype) if isinstance(x, (int, float)) else x for x in inputs]
    shape = common_shape([sizes(t) for t in tensors], name)
    tag = "broadcast" if len(tensors) > 1 else "elemwise"
    made: Tensor = te.compute(shape, lambda *i: function(*(stretched(x, i) for x in given)), name=f"T_{name}", tag=tag)
    return made


def _binary(
    name: str, function: Callable[..., object], reference: Callable[..., object], doc: str, types: tuple[str, ...] = NUMBERS,
    *samples: Sample
) -> Callable[[Tensor, object], Tensor]:  # fmt: skip
    def apply(a: Tensor, b: object) -> Tensor:
        return joined(function, name, a, b)

    apply.__name__, apply.__doc__ = name, doc
    return operator(PatternKind.BROADCAST, reference, *(samples or _SHAPES), types=types)(apply)


add = _binary("add", lambda a, b: a + b, np.add, "a + b.")
subtract = _binary("subtract", lambda a, b: a - b, np.subtract, "a - b.")
multiply = _binary("multiply", lambda a, b: a * b, np.multiply, "a * b.")
maximum = _binary("maximum", lambda a, b: te.max(a, b), larger, "The larger one; of a number and NaN the number.")
minimum = _binary("minimum", lambda a, b: te.min(a, b), smaller, "The smaller one; of a number and NaN the number.")
_DIVISOR = (sample((5, 7), (7,), low=0.5, high=4.0),)
_NUMBERS_BELOW = (
    sample(Whole((5, 7), -50, 50), Whole((7,), 1, 9)),
    sample(Whole((5, 7), -50, 50), Whole((7,), -9, -1)),
)
divide = _binary("divide", te.div, np.divide, "a / b: of reals; of whole numbers cut towards zero.", REALS, *_DIVISOR)
floor_divide = _binary(
    "floor_divide", te.floordiv, np.floor_divide, "The quotient rounded down.", ("int32",), *_NUMBERS_BELOW
)
floor_mod = _binary("floor_mod", te.floormod, np.mod, "What floor_divide leaves.", ("int32",), *_NUMBERS_BELOW)
mod = _binary(
    "mod", te.truncmod, np.fmod, "What a division that cuts towards zero leaves.", ("int32",), *_NUMBERS_BELOW
)
power = _binary(
    "power", te.power, np.power, "a to the power b.", ("float32",), sample((5, 7), (5, 7), low=0.5, high=2.0)
)


def shifted(left: bool) -> Callable[[Expr, Expr], Expr]:
    """A shift that is defined for all counts as NumPy does it: where a count is none of 0 to bits - 1, no bits are left, which
    makes 0, or -1 of a negative number that is shifted right. C leaves these undefined."""

    def shift(a: Expr, b: Expr) -> Expr:
        bits, kind = a.dtype.bits, f"uint{b.dtype.bits}"
        if isinstance(b, IntImm) and 0 <= b.value < bits:
            return a << b if left else a >> b
        count = te.cast(te.min(te.reinterpret(kind, b), te.const(bits - 1, kind)), b.dtype)
        if not left and a.dtype.is_int:
            return a >> count
        made = a << count if left else a >> count
        return te.Select(te.reinterpret(kind, b) < te.const(bits, kind), made, te.const(0, a.dtype))

    return shift


_SHIFTS = (sample(Whole((5, 7), -99, 99), Whole((7,), 0, 8)), sample(Whole((5, 7), -99, 99), Whole((7,), -3, 70)))
left_shift = _binary("left_shift", shifted(left=True), np.left_shift, "a times 2 to the b.", ("int32",), *_SHIFTS)
right_shift = _binary(
    "right_shift", shifted(left=False), np.right_shift, "a over 2 to the b, rounded down.", ("int32",), *_SHIFTS
)
bitwise_and = _binary("bitwise_and", lambda a, b: a & b, np.bitwise_and, "Bits that are in both.", WHOLE)
bitwise_or = _binary("bitwise_or", lambda a, b: a | b, np.bitwise_or, "Bits that are in one.", WHOLE)
bitwise_xor = _binary("bitwise_xor", lambda a, b: a ^ b, np.bitwise_xor, "Bits that are in one alone.", WHOLE)
equal = _binary("equal", lambda a, b: a == b, np.equal, "Whether a is b.")
not_equal = _binary("not_equal", lambda a, b: a != b, np.not_equal, "Whether a is not b.")
less = _binary("less", lambda a, b: a < b, np.less, "Whether a is below b.")
less_equal = _binary("less_equal", lambda a, b: a <= b, np.less_equal, "Whether a is not above b.")
greater = _binary("greater", lambda a, b: a > b, np.greater, "Whether a is above b.")
greater_equal = _binary("greater_equal", lambda a, b: a >= b, np.greater_equal, "Whether a is not below b.")


_TRUTHS = (sample(Whole((5, 7), 0, 2), Whole((7,), 0, 2)),)


def _truth(
    name: str, function: Callable[..., object], reference: Callable[..., object], doc: str
) -> Callable[[Tensor, object], Tensor]:
    def said(x: Expr) -> Expr:
        return x if x.dtype.is_bool else x != number(0, x.dtype)

    return _binary(name, lambda a, b: function(said(a), said(b)), reference, doc, ("int32",), *_TRUTHS)


logical_and = _truth("logical_and", te.all, np.logical_and, "Whether neither is 0.")
logical_or = _truth("logical_or", te.any, np.logical_or, "Whether one is not 0.")
logical_xor = _truth("logical_xor", lambda a, b: a != b, np.logical_xor, "Whether one alone is not 0.")


@operator(PatternKind.BROADCAST, lambda xs: sum(xs), sample([(5, 7), (5, 7), (5, 7)]))
def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """The sum of tensors, from the first to the last."""
    return joined(lambda *given: functools.reduce(lambda a, b: a + b, given), "elemwise_sum", *xs)


@operator(PatternKind.BROADCAST, lambda c, x, y: np.where(c != 0, x, y), sample(Whole((5, 1), 0, 2), (5, 7), (7,)))
def where(condition: Tensor, x: object, y: object) -> Tensor:
    """x where the condition is not 0, else y."""
    zero = number(0, condition.dtype)

    def chosen(c: Expr, a: Expr, b: Expr) -> Expr:
        return te.if_then_else(c if c.dtype.is_bool else c != zero, a, b)

    typed = next(t for t in (x, y) if isinstance(t, Tensor))
    given = [number(t, typed.dtype) if isinstance(t, (int, float)) else t for t in (x, y)]
    return joined(chosen, "where", condition, *given)


@operator(PatternKind.BROADCAST, lambda x, shape: np.broadcast_to(x, shape), sample((3, 1), [2, 3, 4]))
def broadcast_to(x: Tensor, shape: Sequence[int]) -> Tensor:
    """x stretched to a shape."""
    if common_shape([sizes(x), list(shape)], "broadcast_to") != list(shape):
        raise ExpressionError(f"topi.broadcast_to: a tensor of shape {sizes(x)} cannot be stretched to {list(shape)}")
    made: Tensor = te.compute(list(shape), lambda *i: stretched(x, i), name="T_broadcast_to", tag="broadcast")
    return made

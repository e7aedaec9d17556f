"""Operators of several tensors that are stretched to each other's shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from typing_extensions import Unpack

from compass_core.arrays import Array
from compassc import te
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Expr as Element
from compassc.operators.broadcast import joined
from compassc.operators.calls import References
from compassc.operators.declare import Sample, Whole, number, sample
from compassc.relay.attributes import Attrs
from compassc.relay.ops.declare import BROADCAST, Meanings, declare
from compassc.relay.ops.elementwise import NUMBERS, WHOLE
from compassc.relay.ops.relations import broadcast, compared, require, shaped, stretched
from compassc.relay.types import TensorType, Type
from compassc.te.tensor import Tensor

_SHAPES = (sample((3, 4), (3, 4)), sample((2, 1, 3), (4, 1)), sample((), (3,)))
_DIVISIONS = tuple(sample(Whole((3, 5), -50, 50), Whole((5,), *span)) for span in ((1, 9), (-9, -1)))
_REALS = sample((3, 4), (4,), low=0.5, high=4.0)
_SHIFTS = sample(Whole((3, 4), -99, 99), Whole((4,), 0, 8))
_TRUTHS = sample(Whole((3, 4), 0, 2, "bool"), Whole((4,), 0, 2, "bool"))


def _binary(
    name: str, body: str | None = None, *samples: Sample, level: int = 1, types: Sequence[str] = NUMBERS, **own: Unpack[Meanings]
) -> None:  # fmt: skip
    body = body if body or own else name
    declare(name, "lhs, rhs", broadcast, BROADCAST, *(samples or _SHAPES), body=body, level=level, types=types, **own)


def truncated(x: Array, y: Array) -> Array:
    """The quotient of whole numbers cut towards zero; 0 for a divisor of 0."""
    quotient, rest = np.floor_divide(x, y), np.mod(x, y)
    made: Array = quotient + ((rest != 0) & ((x < 0) != (y < 0))).astype(quotient.dtype)
    return made


def _is_real(t: TensorType) -> bool:
    return data_type(t.dtype).is_floating


def _divide(a: Attrs, t: TensorType, x: Array, y: Array) -> Array:
    return np.divide(x, y) if _is_real(t) else truncated(x, y)


def _rounded_quotient(rounding: str, whole: Callable[[Array, Array], Array]) -> Meanings:
    """Reference and expression of a quotient that is rounded."""
    reference = References()
    return {
        "reference": lambda a, t, x, y: reference(rounding, x / y) if _is_real(t) else whole(x, y),
        "compute": lambda a, t, x, y: joined(
            (lambda p, q: getattr(te, rounding)(p / q)) if _is_real(t) else _QUOTIENTS[rounding], "quotient", x, y
        ),
    }


_QUOTIENTS: dict[str, Callable[[Element, Element], Element]] = {"floor": te.floordiv, "trunc": te.truncdiv}


def remainder_of_reals(p: Element, q: Element, rounding: str) -> Element:
    """What the quotient of reals, rounded (`trunc`, `floor`), leaves. ExpressionTypeError for reals of 16 bits."""
    left = te.fmod(p, q)  # exact: a remainder by a rounded quotient may be wrong
    if rounding == "trunc":
        return left
    zero = number(0, p.dtype)
    return te.Select(te.all(left != zero, (left < zero) ^ (q < zero)), left + q, left)


def _remainder(
    rounding: str, real: Callable[[Array, Array], Array], whole: Callable[[Array, Array], Array]
) -> Meanings:
    """Reference and expression of what a rounded quotient leaves."""

    def value(p: Element, q: Element) -> Element:
        if p.dtype.is_floating:
            return remainder_of_reals(p, q, rounding)
        made: Element = te.floormod(p, q) if rounding == "floor" else te.truncmod(p, q)
        return made

    return {
        "reference": lambda a, t, x, y: (real if _is_real(t) else whole)(x, y),
        "compute": lambda a, t, x, y: joined(value, "remainder", x, y),
    }


def _power(a: Attrs, t: TensorType, x: Array, y: Array) -> Array:
    if not _is_real(t) and np.any(y < 0):
        raise ExpressionError("power: a whole number has no negative powers", "cast to float32 first")
    return np.power(x, y)


def _power_value(a: object, t: TensorType, x: object, y: object) -> Tensor:
    if not _is_real(t):
        raise ExpressionTypeError("powers of whole numbers are not computed by kernels", "cast to float32 first")
    return joined(te.power, "power", x, y)


_QUOTIENT_SAMPLES: tuple[Sample, ...] = (*_DIVISIONS, sample((3, 4), (4,), low=0.5, high=4.0))
for _name in "add subtract multiply maximum minimum".split():
    _binary(_name)
_binary(
    "divide", None, *_QUOTIENT_SAMPLES, reference=_divide, compute=lambda a, t, x, y: joined(te.div, "divide", x, y)
)
_binary("floor_divide", None, *_QUOTIENT_SAMPLES, **_rounded_quotient("floor", np.floor_divide))
_binary("trunc_divide", None, *_QUOTIENT_SAMPLES, **_rounded_quotient("trunc", truncated))
_binary("mod", None, *_DIVISIONS, **_remainder("trunc", np.fmod, np.fmod))
_binary("trunc_mod", None, *_DIVISIONS, **_remainder("trunc", np.fmod, np.fmod))
_binary("floor_mod", None, *_DIVISIONS, **_remainder("floor", np.mod, np.mod))
_binary("power", None, sample((3, 4), (4,), low=0.5, high=2.0), reference=_power, compute=_power_value,
        types=("float32",), level=4)  # fmt: skip
for _name in "left_shift right_shift".split():
    _binary(_name, _name, _SHIFTS, level=4)
for _name in "logical_and logical_or logical_xor".split():
    _binary(_name, _name, _TRUTHS, level=4)
for _name in "bitwise_and bitwise_or bitwise_xor".split():
    _binary(_name, level=4, types=WHOLE)
for _name in "equal not_equal less less_equal greater greater_equal".split():
    declare(_name, "lhs, rhs", compared, BROADCAST, *_SHAPES, body=_name, level=4, types=NUMBERS)


def _where(a: object, c: TensorType, x: TensorType, y: TensorType) -> Type:
    require(x.dtype == y.dtype, lambda: f"x is {x}, y is {y}: their data types must be one")
    shape = stretched(x.shape, y.shape, lambda: f"Incompatible broadcast type {x} and {y}")
    return shaped(x, stretched(c.shape, shape, lambda: f"Incompatible broadcast type {c} and {x}"))


declare(
    "where", "condition, x, y", _where, BROADCAST, sample(Whole((3, 1), 0, 2, "bool"), (3, 4), (4,)),
    sample(Whole((2, 1, 1), 0, 2), (3, 4), (3, 4)), body="where", level=4, types=NUMBERS,
)  # fmt: skip

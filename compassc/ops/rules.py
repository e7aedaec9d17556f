"""Typing rules as data: a declaration names the element types, widths, sign mixing and result law of its operation.

A rule is called as `rule(operands, **options) -> Typed`; operands are data types or Python literals. The options it
knows (`saturate`, `out_sign`) are checked here; others are left to the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TypeGuard

from compass_core.dataclass import dataclass

from ..ir.dtypes import VECTOR_BITS, DataType, bool_of, dtype, make_dtype
from .typing import (
    Operand,
    Typed,
    broadcast_group,
    describe,
    is_literal,
    literal_dtype,
    match_scalars,
    out_sign_dtype,
    same_sign,
    type_error,
)

Kinds = tuple[DataType, ...]
Result = Callable[[list[DataType]], DataType]


def kinds(names: str) -> Kinds:
    """Element types from a line of names."""
    return tuple(dtype(name) for name in names.split())


SIGNED = kinds("int8 int16 int32")
INTS = SIGNED + kinds("uint8 uint16 uint32")
SCALAR_FLOATS = kinds("float16 float32")
FLOATS = kinds("float16 bfloat16 float32")
HALVES = kinds("float16 bfloat16")
FLOAT32 = kinds("float32")
ALL = INTS + FLOATS
MASKS = kinds("bool")


def check_kind(t: DataType, of: Kinds, help: str = "") -> None:
    """Refuse an element type that the operation does not have."""
    if t.element_of in of:
        return
    if t.is_scalar and t.is_bfloat:
        raise type_error("there are no bfloat16 scalar instructions", "convert to float32 first")
    shown = "it takes masks" if of == ("bool",) else f"the element types are {', '.join(of)}"
    raise type_error(f"{t} is not supported here; {shown}", help)


def check_width(t: DataType, width: str) -> None:
    """Refuse a vector whose lanes do not suit: `whole` registers only, or exactly one, `native`."""
    if width == "native" and not t.is_native:
        raise type_error(f"{t} is not one register", f"the vector must have {t.native_lanes or 'native'} lanes")
    if width == "whole" and t.total_bits % VECTOR_BITS:
        raise type_error(
            f"{t} does not fill whole {VECTOR_BITS}-bit registers", f"use a multiple of {t.native_lanes} lanes"
        )


def check_saturate(t: DataType, saturate: bool, of: Kinds = INTS) -> None:
    if not saturate or t.element_of in of:
        return
    if t.is_floating:
        raise type_error(f"saturate=True has no meaning on floating-point vectors ({t})", "leave it out")
    raise type_error(f"saturate=True needs {', '.join(of)}, got {t}")


def is_vector(x: Operand) -> TypeGuard[DataType]:
    return not is_literal(x) and x.is_vector


def require_vector(name: str, x: Operand) -> DataType:
    """The type of an operand that may not be a scalar."""
    if not is_vector(x):
        raise type_error(f"{name} must be a vector, got {describe(x)}")
    return x


def first_type(types: list[DataType]) -> DataType:
    return types[0]


def mask_type(types: list[DataType]) -> DataType:
    return bool_of(types[0].lanes)


def bool_type(types: list[DataType]) -> DataType:
    return bool_of(1)


def scaled(factor: Callable[[DataType], int]) -> Result:
    """Elements `factor` times as wide, in as many lanes less; signed when an integer operand is."""

    def result(types: list[DataType]) -> DataType:
        first, by = types[0], factor(types[0])
        code = "float" if first.is_floating else "int" if any(t.is_int for t in types) else "uint"
        return make_dtype(code, first.bits * by, first.lanes // by)

    return result


def by_two(t: DataType) -> int:
    return 2


def to_32_bits(t: DataType) -> int:
    return 32 // t.bits


@dataclass(frozen=True, eq=False, repr=False)
class Scalars:
    """All-scalar form: the operands are matched to one type of `of`; the result has it too, or is a bool.

    `literal`: whether the first operand may be a literal.
    """

    of: Kinds
    result: Result = first_type
    literal: bool = True

    def __call__(self, operands: list[Operand], saturate: bool = False) -> Typed:
        for x in operands:
            if is_vector(x):
                raise type_error(f"the arguments must be scalars, got {x}")
        if not self.literal and is_literal(operands[0]):
            raise type_error(f"the first argument must be an expression, got {describe(operands[0])}")
        t = reduce(match_scalars, operands) if len(operands) > 1 else operands[0]
        t = literal_dtype(t) if is_literal(t) else t
        check_kind(t, self.of)
        if saturate:
            raise type_error("scalars are never saturated", "saturate=True needs a vector")
        return Typed((t,) * len(operands), self.result([t]))


@dataclass(frozen=True, eq=False, repr=False)
class Lanewise:
    """Operands form one broadcast group: scalars adapt to the first vector, vectors must agree.

    `of`: element types. `width`: `any`, `whole` registers or exactly one, `native`. `signs`: whether signed and
    unsigned may mix: never (`same`), with the option out_sign (`option`), or always (`any`). `result`: the result type
    from the operands' types, before out_sign. `scalars`: the all-scalar form; without it such a call is an error.
    `saturate`: element types on which that option is allowed. `help`: what to do about an unsupported type.
    """

    of: Kinds
    width: str = "any"
    signs: str = "same"
    result: Result = first_type
    scalars: Callable[..., Typed] | None = None
    saturate: Kinds = INTS
    help: str = ""

    def __call__(
        self, operands: list[Operand], saturate: bool = False, out_sign: str | None = None, **others: object
    ) -> Typed:
        if not any(map(is_vector, operands)):
            if self.scalars is not None:
                return self.scalars(operands, **({"saturate": True} if saturate else {}))
            if len(operands) == 1:
                require_vector("the argument", operands[0])
        types = broadcast_group(operands)
        if self.signs == "same" or (self.signs == "option" and out_sign is None):
            same_sign(types)
        for t in types:
            check_kind(t, self.of, self.help)
        check_width(types[0], self.width)
        check_saturate(types[0], saturate, self.saturate)
        return Typed(tuple(types), out_sign_dtype(self.result(types), out_sign))


@dataclass(frozen=True, eq=False, repr=False)
class Accumulate:
    """The first operand, a vector, is an accumulator `factor` times as wide as the broadcast group of the others, with
    as many lanes less, signed if one of them is; the result has its type. `width` is checked on the group. `mask_on`: operand whose lanes the
    mask has. `float_targets`: generations that have the floating form."""

    of: Kinds
    factor: Callable[[DataType], int]
    width: str = "whole"
    mask_on: int = 1
    float_targets: tuple[str, ...] = ()

    def __call__(self, operands: list[Operand]) -> Typed:
        acc = require_vector("acc", operands[0])
        types = broadcast_group(operands[1:])
        x = types[0]
        check_kind(x, self.of)
        wanted = scaled(self.factor)(types)
        if acc is not wanted:
            products = " and ".join(map(str, types))
            raise type_error(
                f"acc is {acc}, but products of {products} need {wanted}",
                f"start it as S.{wanted}(0), or convert x or y",
            )
        check_width(x, self.width)
        lanes = (acc, *types)[self.mask_on].lanes
        return Typed((acc, *types), acc, lanes, targets=self.float_targets if x.is_floating else ())

"""The typing rules that operations and operators share: literal adaptation, broadcasting, promotion, `out_sign`.

An operand is either a `DataType` (a run-time value of that type) or a Python literal (int, float, bool). The rules
give each operand the type it is converted to, so the compiler and PySim convert alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from compass_core import vendor
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

from ..ir.dtypes import BOOL, FLOAT32, INT32, DataType

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Number = int | float | bool
"""A literal of a kernel, or a number that is known while it is compiled."""
Operand = DataType | Number
NO_FLOAT = "convert it with S.i32(...), or S.reinterpret for its bits"


@dataclass(frozen=True)
class Typed:
    """Result of a typing rule: the type each operand converts to, the result type, and the lanes of the mask.

    `mask_lanes` 0: those of the operand that the declaration's `mask_like` names. `literals`: operands that the rule
    replaces by another literal (position -> value) before conversion. `targets`: the target generations that have
    this form; empty means all.
    """

    operands: tuple[DataType, ...]
    result: DataType
    mask_lanes: int = 0
    literals: Mapping[int, int | float] = field(default_factory=dict)
    targets: tuple[str, ...] = ()


def type_error(message: str, help: str = "", code: str = "type") -> CompassError:
    return CompassError(message, code=code, help=help)


def is_literal(x: object) -> TypeIs[Number]:
    return type(x) in (int, float, bool)


def literal_dtype(x: float | bool) -> DataType:
    """The type a lone literal takes."""
    return BOOL if type(x) is bool else INT32 if type(x) is int else FLOAT32


def fits(x: Operand, target: DataType) -> bool:
    """Whether every value of a scalar operand lies in the range of `target`'s elements."""
    target = target.element_of
    low, high = target.range()
    if is_literal(x):
        if type(x) is float and (target.is_integer or not math.isfinite(x)):
            return False
        return low <= x <= high
    if x.is_floating and target.is_integer:
        return False
    x_low, x_high = x.element_of.range()
    return low <= x_low and x_high <= high


def flip_sign(t: DataType) -> DataType:
    return t.with_uint() if t.is_int else t.with_int()


def check_literal(x: object, dtype: DataType) -> None:
    """Refuse an integer literal that a conversion would change without the kernel saying so.

    A negative one may stand for the bits of an unsigned type. Under the vendor's names 32 bits are converted as in C.
    """
    dtype = dtype.element_of
    if type(x) is not int or not dtype.is_integer or dtype.is_bool:
        return
    low, high = (-(1 << (dtype.bits - 1)), dtype.range()[1])
    if low <= x <= high or (vendor.names_in_use and -(1 << 31) <= x < 1 << 32):
        return
    wide = not -(1 << 31) <= x < 1 << 32
    unsigned = not wide and x >= 1 << 31
    help = (
        "numbers have up to 32 bits"
        if wide
        else f"write S.u32({x})"
        if unsigned
        else f"S.{dtype}({x}) has its low bits"
    )
    raise type_error(f"the literal {x} does not fit {dtype}", help, "literal-range")


def check_conversion(x: object, dtype: DataType) -> None:
    """Refuse an integer literal in an explicit conversion that fits neither its own type, int32, nor the new one."""
    if type(x) is int and not fits(x, INT32):
        check_literal(x, dtype)


def bits_of(x: object, dtype: DataType) -> object:
    """A literal of a bitwise operator: the signed number where it is written as the bits of a signed type."""
    if type(x) is int and dtype.is_int and dtype.range()[1] < x < 1 << dtype.bits:
        return x - (1 << dtype.bits)
    return x


def promote(a: DataType, b: DataType) -> DataType:
    """The common element type of two operands of an operator."""
    a, b = a.element_of, b.element_of
    if a is b:
        return a
    if a.is_floating or b.is_floating:
        if a.is_float or b.is_float:
            floats = [t for t in (a, b) if t.is_float]
            return max(floats, key=lambda t: t.bits)
        return a if a.is_bfloat else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if not a.is_int else b


def describe(x: Operand) -> str:
    """An operand for messages."""
    return f"literal {x!r}" if is_literal(x) else str(x)


def broadcast_group(operands: list[Operand]) -> list[DataType]:
    """The vector type each operand of a broadcast group converts to; scalars adapt to the first vector."""
    vectors = [x for x in operands if not is_literal(x) and x.is_vector]
    if not vectors:
        raise type_error("all arguments are scalars", "use the Python operators on scalars", "all-scalars")
    first = vectors[0]
    candidates = [first]
    if first.is_integer and not first.is_bool:
        candidates.append(flip_sign(first))
    out = []
    for position, x in enumerate(operands):
        if not is_literal(x) and x.is_vector:
            _check_match(first, operands.index(first), x, position)
            out.append(x)
            continue
        for candidate in candidates:
            if fits(x, candidate):
                out.append(candidate)
                break
        else:
            names = " or ".join(str(c.element_of) for c in candidates)
            raise type_error(f"{describe(x)} does not fit {names}", "convert it explicitly", "literal-range")
    return out


def _check_match(first: DataType, first_position: int, other: DataType, position: int) -> None:
    same_kind = first.is_integer and other.is_integer and not (first.is_bool or other.is_bool)
    if first is other or (same_kind and first.bits == other.bits and first.lanes == other.lanes):
        return
    raise type_error(
        f"operand {position + 1} is {other}, but operand {first_position + 1} is {first}",
        "convert one of them explicitly, e.g. with S.cast",
        "vector-mismatch",
    )


def same_sign(types: list[DataType]) -> None:
    """Refuse signed mixed with unsigned."""
    if len({t.type_code for t in types}) > 1:
        names = ", ".join(map(str, types))
        raise type_error(
            f"signed and unsigned arguments are mixed: {names}",
            "convert one, or give out_sign where it exists",
            "signed-mix",
        )


def out_sign_dtype(t: DataType, out_sign: str | None) -> DataType:
    """The result type of an integer operation with an `out_sign` option."""
    if out_sign not in (None, "u", "s"):
        raise type_error(
            f"out_sign is None, 'u' or 's', got {out_sign!r}", "it says whether the result is signed or unsigned"
        )
    if out_sign is None or not t.is_integer:
        return t
    return t.with_uint() if out_sign == "u" else t.with_int()


def match_scalars(a: Operand, b: Operand) -> DataType:
    """The common type of two scalars of an all-scalar form."""
    if is_literal(a) and is_literal(b):
        return promote(literal_dtype(a), literal_dtype(b))
    if is_literal(b):
        a, b = b, a
    assert not is_literal(b)
    if is_literal(a):
        if type(a) in (int, bool) and b.is_integer:
            return b.element_of if fits(a, b) else promote(INT32, b)
        return promote(literal_dtype(a), b)
    return promote(a, b)


@lru_cache(maxsize=1024, typed=True)  # 1, 1.0 and True are of different types
def match_operator(a: Operand, b: Operand, adapt: bool = True) -> DataType:
    """The type both operands of a Python operator convert to: literal adaptation, broadcast, promotion."""
    lanes_a = 1 if is_literal(a) else a.lanes
    lanes_b = 1 if is_literal(b) else b.lanes
    if lanes_a != lanes_b and 1 not in (lanes_a, lanes_b):
        raise type_error(
            f"the operands have different lanes: {describe(a)} and {describe(b)}",
            "take the same number of lanes from both, e.g. with S.vxtl, S.vconcat or a slice",
            "lanes-mismatch",
        )
    elems = []
    for x, other in ((a, b), (b, a)):
        if not is_literal(x):
            elems.append(x.element_of)
        elif adapt and type(x) in (int, bool) and not is_literal(other) and other.is_integer and fits(x, other):
            elems.append(other.element_of)
        else:
            elems.append(INT32 if type(x) is int else literal_dtype(x))
    return promote(*elems).with_lanes(max(lanes_a, lanes_b))


def check_operator(symbol: str, t: DataType, divisor: Operand | None) -> None:
    """Refuse operators and comparisons that the hardware has no instruction for, and division by a literal zero.

    `t`: the type that both operands convert to.
    """
    if t.is_scalar and t.is_bfloat:
        raise type_error(
            f"`{symbol}` on bfloat16 scalars: there are no instructions for it",
            "convert to float32 first: S.fp32(x)",
            "operator-type",
        )
    if symbol == "*" and t.is_vector and t.bits == 8:
        raise type_error(
            f"`*` on {t}: an 8-bit product of 8-bit vectors is meaningless",
            "widen with S.cast first, or use S.vmull",
            "operator-type",
        )
    if symbol == "/" and t.is_vector and t.is_floating and t.bits == 16:
        raise type_error(f"`/` does not support {t}", 'convert to float32 first: S.cast(v, "fp32")', "operator-type")
    if symbol in ("//", "%", "&", "|", "^") and t.is_floating:
        raise type_error(f"`{symbol}` needs integers, got {t}", NO_FLOAT, "operator-type")
    if symbol in ("//", "%", "/") and t.is_integer and is_literal(divisor) and divisor == 0:
        raise type_error(
            f"division by the constant zero (`{symbol}` on {t})", "the hardware gives no result", "zero-division"
        )

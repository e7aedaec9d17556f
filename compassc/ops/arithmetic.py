"""Arithmetic operations that work lane by lane or on pairs of lanes, and the sum of all lanes."""

from __future__ import annotations

from collections.abc import Callable

from compass_core.arrays import Array
from compass_core.lazy import np

from ..ir import exprs as E
from ..ir.dtypes import DataType
from .core import Cost, value_op
from .exact import (
    chosen,
    clipped,
    double,
    fitted,
    in_lane_0,
    kept,
    larger,
    neighbours,
    quotient,
    registers,
    rounded,
    smaller,
    wide,
    wrapped,
)
from .example import Example, binary, unary
from .rules import (
    ALL,
    FLOAT32,
    FLOATS,
    INTS,
    SCALAR_FLOATS,
    Lanewise,
    Scalars,
    check_kind,
    is_vector,
    require_vector,
    to_32_bits,
)
from .typing import Number, Operand, Typed, describe, fits, is_literal, type_error

GROUP = "Arithmetic"

SUM = Lanewise(ALL, signs="option")


@value_op(
    group=GROUP,
    parameters="x, y, mask=None, saturate=False, out_sign=None, r=None",
    typing=SUM,
    c=[
        ("saturate & signed & mixed", "__vadds({r}, {y}, {x}, {m})"),
        ("saturate", "__vadds({r}, {x}, {y}, {m})"),
        ("all_true", "({x} + {y})"),
        "__vadd({r}, {x}, {y}, {m})",
    ],
    r="param",
    cost=Cost("alu"),
    signs="operands",
    example=binary(more=', mask="4TF", r=0'),
    commutative=True,
    operator="add",
)
def vadd(x: Array, y: Array, to: DataType, saturate: bool = False) -> Array:
    """Lane-wise addition, `x + y`.

    Integer sums wrap in the result type, or with `saturate` are clipped to its range. Floating-point sums are rounded
    once. Signed and unsigned arguments mix only with `out_sign` ("u" or "s"), which chooses the result's sign.
    """
    return rounded(double(x) + double(y), to) if to.is_floating else fitted(wide(x) + wide(y), to, saturate)


@value_op(
    group=GROUP,
    parameters="x, y, mask=None, saturate=False, out_sign=None, r=None",
    typing=SUM,
    c=[("saturate", "__vsubs({r}, {x}, {y}, {m})"), ("all_true", "({x} - {y})"), "__vsub({r}, {x}, {y}, {m})"],
    r="param",
    cost=Cost("alu"),
    signs="operands",
    example=binary("u8", ", saturate=True", ys=(10, 2)),
    operator="sub",
)
def vsub(x: Array, y: Array, to: DataType, saturate: bool = False) -> Array:
    """Lane-wise subtraction, `x - y`.

    Integer differences wrap in the result type, or with `saturate` are clipped to its range (a negative one to 0 in an
    unsigned result). Floating-point differences are rounded once. Signed and unsigned arguments mix only with
    `out_sign` ("u" or "s"), which chooses the result's sign.
    """
    return rounded(double(x) - double(y), to) if to.is_floating else fitted(wide(x) - wide(y), to, saturate)


PAIRS = Lanewise(INTS, width="whole")


@value_op(
    group=GROUP,
    parameters="x, y",
    typing=PAIRS,
    c="__vaddh({x}, {y})",
    split="pairwise",
    cost=Cost("reduce"),
    example=binary(),
)
def vaddh(x: Array, y: Array, to: DataType) -> Array:
    """Saturating sums of neighbouring lanes.

    The sums of the pairs of x fill the low half of the result, those of y the high half. Sums are clipped to the
    range of the type.
    """
    return neighbours(lambda even, odd: clipped(wide(even) + wide(odd), to), x, y)


@value_op(
    group=GROUP,
    parameters="x, y",
    typing=PAIRS,
    c="__vsubh({x}, {y})",
    split="pairwise",
    cost=Cost("reduce"),
    example=binary(),
)
def vsubh(x: Array, y: Array, to: DataType) -> Array:
    """Saturating differences of neighbouring lanes, even minus odd.

    The differences of the pairs of x fill the low half of the result, those of y the high half.
    """
    return neighbours(lambda even, odd: clipped(wide(even) - wide(odd), to), x, y)


@value_op(
    group=GROUP,
    parameters="x, mask=None, saturate=False",
    typing=Lanewise(ALL, scalars=Scalars(INTS + SCALAR_FLOATS)),
    c=[("scalar", "__abs({x})"), ("saturate", "__vabss({r}, {x}, {m})"), "__vabs({r}, {x}, {m})"],
    r="auto",
    cost=Cost("alu"),
    signs="magnitude",
    example=unary("i32"),
)
def abs(x: Array, to: DataType, saturate: bool = False) -> Array:
    """Absolute value of a scalar or vector.

    The most negative integer wraps to itself, or with `saturate` (vectors only) becomes the largest one. Unsigned
    values stay as they are; floating-point values lose their sign bit.
    """
    if to.is_floating:
        return np.where(np.signbit(x), -x, x)
    return fitted(np.where(wide(x) < 0, -wide(x), wide(x)), to, saturate)


@value_op(
    group=GROUP,
    parameters="x, mask=None",
    typing=Lanewise(FLOATS, scalars=Scalars(SCALAR_FLOATS)),
    c=[("scalar", "__rint({x})"), "__vrint({r}, {x}, {m})"],
    r="auto",
    cost=Cost("convert"),
    example=unary("fp32", (0.5, 1.5, 2.5, -0.5, 3.49, -3.51, 1e9, -0.0)),
)
def rint(x: Array, to: DataType) -> Array:
    """Nearest integer value, ties to even, as a floating-point number. NaN and the infinities stay."""
    d = double(x)
    below = np.floor(d)
    part = d - below
    up = (part > 0.5) | ((part == 0.5) & (below % 2 == 1))
    return rounded(np.copysign(np.where(np.isfinite(d), below + up, d), d), to)


def typed_clip(operands: list[Operand]) -> Typed:
    """x decides the type; literal bounds are cut to its range first, other bounds must fit it."""
    x, scalar = operands[0], not any(map(is_vector, operands))
    if scalar and is_literal(x):
        raise type_error(f"x must be an expression, got {describe(x)}", "clip a literal with Python's min and max")
    t = require_vector("x", x) if is_literal(x) or not scalar else x
    check_kind(t, INTS + SCALAR_FLOATS if scalar else ALL)
    low, high = t.range()
    literals = {}
    limits: tuple[tuple[int, str, Callable[[Number], Number]], ...] = (
        (1, "min_val", lambda v: max(low, v)),
        (2, "max_val", lambda v: min(high, v)),
    )
    for position, name, limit in limits:
        bound = operands[position]
        if is_literal(bound):
            bound = literals[position] = limit(bound)
        elif bound.is_vector and bound.lanes != t.lanes:
            raise type_error(f"{name} is {bound}, but x is {t}: the lanes differ")
        if not fits(bound, t):
            raise type_error(f"{name} ({describe(bound)}) does not fit {t}", "convert it explicitly")
    return Typed((t, t, t), t, literals=literals)


@value_op(
    group=GROUP,
    parameters="x, min_val, max_val, mask=None",
    typing=typed_clip,
    c=[
        ("scalar", "max(min({x}, {max_val}), {min_val})"),
        ("int", "__vmax({x}, __vmin({x}, {x}, {max_val}, {m}), {min_val}, {m})"),
        "__vsel({max_val}, __vsel({min_val}, {x}, __vqlt({x}, {min_val}, {m})), __vqgt({x}, {max_val}, {m}))",
    ],
    mask_aware=True,
    scalar_mask=True,
    scalar_ir=lambda x, low, high: E.Binary("max", E.Binary("min", x, high), low),
    cost=Cost("alu", borrows=("max", "min", "__vmax", "__vmin", "__vsel", "__vqlt", "__vqgt")),
    example=Example("S.vstore(S.clip(S.vload(x), -5, 10), out)"),
)
def clip(x: Array, min_val: Array, max_val: Array, to: DataType, mask: Array | None = None) -> Array:
    """x limited to the range from `min_val` to `max_val`.

    Literal bounds beyond the range of x's type are cut to it. Bounds may be scalars or vectors and must fit the type
    of x; `min_val <= max_val` is the caller's duty. NaN lanes of a vector stay NaN. Inactive lanes keep x; a scalar
    call ignores the mask.
    """
    if to.is_floating and x.shape[1] > 1:
        at_least = np.where(double(x) < double(min_val), min_val, x)
        return chosen(np.where(double(x) > double(max_val), max_val, at_least), mask, x)
    return chosen(larger(smaller(x, max_val), min_val), mask, x)


@value_op(
    group=GROUP,
    parameters="x, y, mask=None, out_sign=None, r=None",
    typing=Lanewise(
        tuple(t for t in ALL if t.bits > 8),
        signs="option",
        help="an 8-bit product of 8-bit lanes is meaningless: use S.vmull and S.vmulh, or widen first",
    ),
    c=[("all_true", "({x} * {y})"), ("float", "__vmul({r}, {x}, {y}, {m})"), "__vsel(({x} * {y}), {r}, {m})"],
    r="param",
    cost=Cost("mul", borrows=("__vsel",)),
    signs="product",
    example=binary(),
    commutative=True,
    operator="mul",
)
def vmul(x: Array, y: Array, to: DataType) -> Array:
    """Lane-wise multiplication in one width.

    Integer products keep their low bits; floating-point products are rounded once. Signed and unsigned arguments mix
    only with `out_sign` ("u" or "s"), which chooses the result's sign.
    """
    return rounded(double(x) * double(y), to) if to.is_floating else wrapped(wide(x) * wide(y), to)


@value_op(
    group=GROUP,
    parameters="x, y, mask=None",
    typing=Lanewise(INTS + FLOAT32),
    c="__vdiv({r}, {x}, {y}, {m})",
    r="auto",
    cost=Cost("div"),
    example=binary(ys=(2, 2, 0, 0, 3, -3, 7, 1)),
    operator="div",
)
def vdiv(x: Array, y: Array, to: DataType) -> Array:
    """Lane-wise division.

    Integer quotients are rounded toward zero and saturate: the smallest value divided by -1 is the largest one, where
    scalars wrap; dividing by 0 gives 0. float32 follows IEEE: x/0 is infinite, 0/0 NaN.
    """
    return rounded(double(x) / double(y), to) if to.is_floating else clipped(quotient(x, y), to)


@value_op(
    group=GROUP,
    parameters="x, y, mask=None",
    typing=Lanewise(INTS),
    c="__vmod({r}, {x}, {y}, {m})",
    r="auto",
    cost=Cost("div"),
    example=binary(ys=(2, 2, 0, 0, 3, -3, 7, 1)),
)
def vmod(x: Array, y: Array, to: DataType) -> Array:
    """Lane-wise remainder of the division that rounds toward zero; it has the sign of x, and is 0 where y is 0."""
    return wrapped(np.where(y == 0, 0, wide(x) - quotient(x, y) * wide(y)), to)


def _sum_type(types: list[DataType]) -> DataType:
    """16-bit floats are summed in float32, in half the lanes."""
    t = types[0]
    return FLOAT32[0].with_lanes(t.lanes // to_32_bits(t)) if t.is_floating else t


@value_op(
    group=GROUP,
    parameters="x, mask=None",
    typing=Lanewise(ALL, width="whole", result=_sum_type),
    c="__vrpadd({r}, {x}, {m})",
    split="rpadd",
    r="auto",
    mask_aware=True,
    cost=Cost("reduce"),
    example=Example("out[0] = S.vrpadd(S.vload(x))[0]", lanes=1),
)
def vrpadd(x: Array, to: DataType, mask: Array | None = None) -> Array:
    """Sum of the active lanes, in lane 0; the other lanes are undefined.

    Integer sums wrap. Floating-point vectors are summed in float32 (16-bit types give a float32 vector of half the
    lanes): in each register lanes i and i+8 of the 16-bit types first, then neighbours in a tree; the registers' sums
    are added in order.
    """
    if not to.is_floating:
        return in_lane_0(wrapped(kept(wide(x), mask).sum(axis=1), to), to)
    a = kept(x.astype(np.float32), mask)
    total: Array = np.zeros(len(x), np.float32)
    for part in registers(a, 32 // x.dtype.itemsize):
        b = part[:, :8] + part[:, 8:] if part.shape[1] == 16 else part
        pairs = b[:, ::2] + b[:, 1::2]
        total = total + ((pairs[:, 0] + pairs[:, 1]) + (pairs[:, 2] + pairs[:, 3]))
    return in_lane_0(total, to)

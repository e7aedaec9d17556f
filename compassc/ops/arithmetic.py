"""Arithmetic operations that work lane by lane or on pairs of lanes, and the sum of all lanes."""

from __future__ import annotations

from typing import Any

from ..ir import exprs as E
from ..ir.dtypes import VECTOR_BITS
from . import fp
from .core import np, value_op
from .numeric import np_dtype
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
from .typing import Operand, Typed, describe, fits, is_literal, type_error

GROUP = "Arithmetic"


def exact(x: Any) -> Any:
    """Integer lanes in a type that holds sums and most products of them."""
    return x.astype(np.int64)


def wrap_or_clip(value: Any, dtype: Any, saturate: bool) -> Any:
    """An exact integer result (int64) brought into `dtype`: clipped, or modulo 2^bits."""
    if saturate:
        low, high = dtype.range()
        value = np.maximum(np.minimum(value, high), low)
    return value.astype(np_dtype(dtype))


def saturated(value: Any, dtype: Any) -> Any:
    return wrap_or_clip(value, dtype, True)


SUM = Lanewise(ALL, signs="option")


@value_op(
    GROUP,
    "x, y, mask=None, saturate=False, out_sign=None, r=None",
    SUM,
    c=[
        ("saturate & signed & mixed", "__vadds({r}, {y}, {x}, {m})"),
        ("saturate", "__vadds({r}, {x}, {y}, {m})"),
        ("all_true", "({x} + {y})"),
        "__vadd({r}, {x}, {y}, {m})",
    ],
    r="param",
)
def vadd(x: Any, y: Any, dtype: Any, saturate: bool = False) -> Any:
    """Lane-wise addition, `x + y`.

    Integer sums wrap in the result type, or with `saturate` are clipped to its range. Floating-point sums are rounded
    once. Signed and unsigned arguments mix only with `out_sign` ("u" or "s"), which chooses the result's sign.
    """
    return x + y if dtype.is_floating else wrap_or_clip(exact(x) + exact(y), dtype, saturate)


@value_op(
    GROUP,
    "x, y, mask=None, saturate=False, out_sign=None, r=None",
    SUM,
    c=[("saturate", "__vsubs({r}, {x}, {y}, {m})"), ("all_true", "({x} - {y})"), "__vsub({r}, {x}, {y}, {m})"],
    r="param",
)
def vsub(x: Any, y: Any, dtype: Any, saturate: bool = False) -> Any:
    """Lane-wise subtraction, `x - y`.

    Integer differences wrap in the result type, or with `saturate` are clipped to its range (a negative one to 0 in an
    unsigned result). Floating-point differences are rounded once. Signed and unsigned arguments mix only with
    `out_sign` ("u" or "s"), which chooses the result's sign.
    """
    return x - y if dtype.is_floating else wrap_or_clip(exact(x) - exact(y), dtype, saturate)


PAIRS = Lanewise(INTS, width="whole")


def pairs(x: Any, y: Any) -> tuple[Any, Any]:
    """The even and the odd lanes of x followed by y: what the pairwise operations combine."""
    both = np.concatenate((x, y))
    return both[::2], both[1::2]


@value_op(GROUP, "x, y", PAIRS, c="__vaddh({x}, {y})", split="pairwise")
def vaddh(x: Any, y: Any, dtype: Any) -> Any:
    """Saturating sums of neighbouring lanes.

    The sums of the pairs of x fill the low half of the result, those of y the high half. Sums are clipped to the
    range of the type.
    """
    even, odd = pairs(exact(x), exact(y))
    return saturated(even + odd, dtype)


@value_op(GROUP, "x, y", PAIRS, c="__vsubh({x}, {y})", split="pairwise")
def vsubh(x: Any, y: Any, dtype: Any) -> Any:
    """Saturating differences of neighbouring lanes, even minus odd.

    The differences of the pairs of x fill the low half of the result, those of y the high half.
    """
    even, odd = pairs(exact(x), exact(y))
    return saturated(even - odd, dtype)


@value_op(
    GROUP,
    "x, mask=None, saturate=False",
    Lanewise(ALL, scalars=Scalars(INTS + SCALAR_FLOATS)),
    c=[("scalar", "__abs({x})"), ("saturate", "__vabss({r}, {x}, {m})"), "__vabs({r}, {x}, {m})"],
    r="auto",
)
def abs(x: Any, dtype: Any, saturate: bool = False) -> Any:
    """Absolute value of a scalar or vector.

    The most negative integer wraps to itself, or with `saturate` (vectors only) becomes the largest one. Unsigned
    values stay as they are; floating-point values lose their sign bit.
    """
    return np.abs(x) if dtype.is_floating else wrap_or_clip(np.abs(exact(x)), dtype, saturate)


@value_op(
    GROUP,
    "x, mask=None",
    Lanewise(FLOATS, scalars=Scalars(SCALAR_FLOATS)),
    c=[("scalar", "__rint({x})"), "__vrint({r}, {x}, {m})"],
    r="auto",
)
def rint(x: Any, dtype: Any) -> Any:
    """Nearest integer value, ties to even, as a floating-point number. NaN and the infinities stay."""
    return fp.in_float(np.rint, dtype, x)


def typed_clip(operands: list[Operand]) -> Typed:
    """x decides the type; literal bounds are cut to its range first, other bounds must fit it."""
    x, scalar = operands[0], not any(map(is_vector, operands))
    if scalar and is_literal(x):
        raise type_error(f"x must be an expression, got {describe(x)}", "clip a literal with Python's min and max")
    t = x if scalar else require_vector("x", x)
    check_kind(t, INTS + SCALAR_FLOATS if scalar else ALL)
    low, high = t.range()
    literals = {}
    for position, name, limit in ((1, "min_val", lambda v: max(low, v)), (2, "max_val", lambda v: min(high, v))):
        bound = operands[position]
        if is_literal(bound):
            bound = literals[position] = limit(bound)
        elif bound.is_vector and bound.lanes != t.lanes:
            raise type_error(f"{name} is {bound}, but x is {t}: the lanes differ")
        if not fits(bound, t):
            raise type_error(f"{name} ({describe(bound)}) does not fit {t}", "convert it explicitly")
    return Typed((t, t, t), t, literals=literals)


@value_op(
    GROUP,
    "x, min_val, max_val, mask=None",
    typed_clip,
    c=[
        ("scalar", "max(min({x}, {max_val}), {min_val})"),
        ("int", "__vmax({x}, __vmin({x}, {x}, {max_val}, {m}), {min_val}, {m})"),
        "__vsel({max_val}, __vsel({min_val}, {x}, __vqlt({x}, {min_val}, {m})), __vqgt({x}, {max_val}, {m}))",
    ],
    mask_aware=True,
    scalar_mask=True,
    scalar_ir=lambda x, low, high: E.Binary("max", E.Binary("min", x, high), low),
)
def clip(x: Any, min_val: Any, max_val: Any, dtype: Any, mask: Any = None) -> Any:
    """x limited to the range from `min_val` to `max_val`.

    Literal bounds beyond the range of x's type are cut to it. Bounds may be scalars or vectors and must fit the type
    of x; `min_val <= max_val` is the caller's duty. NaN lanes of a vector stay NaN. Inactive lanes keep x; a scalar
    call ignores the mask.
    """
    if x.ndim and dtype.is_floating:
        value = np.where(x > max_val, max_val, np.where(x < min_val, min_val, x))
    elif dtype.is_floating:
        value = fp.larger(fp.smaller(x, max_val), min_val)
    else:
        value = np.maximum(np.minimum(x, max_val), min_val)
    return value if mask is None or not x.ndim else np.where(mask, value, x)


@value_op(
    GROUP,
    "x, y, mask=None, out_sign=None, r=None",
    Lanewise(
        tuple(t for t in ALL if t.bits > 8),
        signs="option",
        help="an 8-bit product of 8-bit lanes is meaningless: use S.vmull and S.vmulh, or widen first",
    ),
    c=[("all_true", "({x} * {y})"), ("float", "__vmul({r}, {x}, {y}, {m})"), "__vsel(({x} * {y}), {r}, {m})"],
    r="param",
)
def vmul(x: Any, y: Any, dtype: Any) -> Any:
    """Lane-wise multiplication in one width.

    Integer products keep their low bits; floating-point products are rounded once. Signed and unsigned arguments mix
    only with `out_sign` ("u" or "s"), which chooses the result's sign.
    """
    return x * y if dtype.is_floating else wrap_or_clip(exact(x) * exact(y), dtype, False)


def truncated_quotient(x: Any, y: Any) -> Any:
    """Quotient of int64 lanes rounded toward zero; 0 where y is 0."""
    size = np.abs(x) // np.where(y == 0, 1, np.abs(y))
    return np.where(y == 0, 0, np.where((x < 0) == (y < 0), size, -size))


@value_op(GROUP, "x, y, mask=None", Lanewise(INTS + FLOAT32), c="__vdiv({r}, {x}, {y}, {m})", r="auto")
def vdiv(x: Any, y: Any, dtype: Any) -> Any:
    """Lane-wise division.

    Integer quotients are rounded toward zero; dividing by 0 gives 0, and the smallest value divided by -1 is
    itself. float32 follows IEEE: x/0 is infinite, 0/0 NaN.
    """
    return x / y if dtype.is_floating else wrap_or_clip(truncated_quotient(exact(x), exact(y)), dtype, False)


@value_op(GROUP, "x, y, mask=None", Lanewise(INTS), c="__vmod({r}, {x}, {y}, {m})", r="auto")
def vmod(x: Any, y: Any, dtype: Any) -> Any:
    """Lane-wise remainder of the division that rounds toward zero; it has the sign of x, and is 0 where y is 0."""
    a, b = exact(x), exact(y)
    return np.where(b == 0, 0, a - truncated_quotient(a, b) * b).astype(np_dtype(dtype))


def _sum_type(types: list[Any]) -> Any:
    """16-bit floats are summed in float32, in half the lanes."""
    t = types[0]
    return FLOAT32[0].with_lanes(t.lanes // to_32_bits(t)) if t.is_floating else t


def tree_sum(kept: Any) -> Any:
    """The float32 sums of the rows of a matrix, one register each: halves of 16 lanes first, then neighbours."""
    if kept.shape[1] == 16:
        kept = kept[:, :8] + kept[:, 8:]
    while kept.shape[1] > 1:
        kept = kept[:, ::2] + kept[:, 1::2]
    return np.float32(0) + kept[:, 0]


@value_op(
    GROUP,
    "x, mask=None",
    Lanewise(ALL, width="whole", result=_sum_type),
    c="__vrpadd({r}, {x}, {m})",
    split="rpadd",
    r="auto",
    mask_aware=True,
)
def vrpadd(x: Any, dtype: Any, mask: Any = None) -> Any:
    """Sum of the active lanes, in lane 0; the other lanes are undefined.

    Integer sums wrap. Floating-point vectors are summed in float32 (16-bit types give a float32 vector of half the
    lanes): in each register lanes i and i+8 of the 16-bit types first, then neighbours in a tree; the registers' sums
    are added in order.
    """
    out = np.zeros(dtype.lanes, np_dtype(dtype))
    if not dtype.is_floating:
        out[0] = np.add.reduce(x if mask is None else x[mask], dtype=out.dtype)
        return out
    wide = x.astype(np.float32)
    kept = wide if mask is None else np.where(mask, wide, np.float32(0))
    sums = tree_sum(kept.reshape(-1, VECTOR_BITS // (x.dtype.itemsize * 8)))
    for part in sums[1:]:
        sums[0] += part
    out[0] = sums[0]
    return out

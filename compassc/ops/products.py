"""Products that change the width or add up: widening multiplication, dot products, fused multiply-add, 4x4 matrices."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.arrays import Array

from ..ir import exprs as E
from ..ir.dtypes import VOID, DataType
from .args import pointer_arg, vector_arg
from .arithmetic import GROUP
from .core import Cost, Part, Touch, require_target, special_op, value_op
from .exact import chosen, clipped, double, fused, group_sums, half_of, half_product, products, quad_sums, rounded, wide
from .example import Example, binary
from .rules import (
    FLOAT32,
    HALVES,
    INTS,
    Accumulate,
    Lanewise,
    by_two,
    check_kind,
    is_vector,
    kinds,
    require_vector,
    scaled,
    to_32_bits,
)
from .typing import Operand, Typed, broadcast_group, match_scalars, type_error

# ---------------------------------------------------------------------------------------------- widening multiplication

WIDENING = Lanewise(INTS, width="native", signs="option", result=scaled(lambda t: 2 if t.bits < 32 else 1))


@value_op(
    group=GROUP,
    parameters="x, y, mask=None, out_sign=None, r=None",
    typing=WIDENING,
    c="__vmul({r}, {x}, {y}, {m})",
    split="none",
    r="param",
    mask_aware=True,
    cost=Cost("mul"),
    signs="widening",
    example=binary("i16", out="i32"),
)
def vmull(x: Array, y: Array, to: DataType, mask: Array | None = None, r: Array | None = None) -> Array:
    """Products of the low half of the lanes, in twice the width.

    8- and 16-bit lanes give one lane of double width each. Of 32-bit lanes the 64-bit product fills two lanes: the low
    word first. The mask has the lanes of x, `r` those of the result. `out_sign` ("u" or "s") chooses the result's sign
    and allows signed with unsigned.
    """
    return products(half_of(x, "low"), half_of(y, "low"), half_of(mask, "low"), to, r)


@value_op(
    group=GROUP,
    parameters="x, y, mask=None, out_sign=None, r=None",
    typing=WIDENING,
    c="__vmulh({r}, {x}, {y}, {m})",
    split="none",
    r="param",
    mask_aware=True,
    cost=Cost("mul"),
    signs="widening",
    example=binary("i16", out="i32"),
)
def vmulh(x: Array, y: Array, to: DataType, mask: Array | None = None, r: Array | None = None) -> Array:
    """Products of the high half of the lanes, in twice the width; otherwise as `S.vmull`."""
    return products(half_of(x, "high"), half_of(y, "high"), half_of(mask, "high"), to, r)


# ---------------------------------------------------------------------------------------------------------- dot products

BYTES_AND_SHORTS = kinds("int8 uint8 int16 uint16")

QUADS = kinds("int8 uint8") + HALVES


@value_op(
    group=GROUP,
    parameters="x, y, mask=None",
    typing=Lanewise(BYTES_AND_SHORTS, width="whole", signs="any", result=scaled(by_two)),
    c="__vdot({r}, {x}, {y}, {m})",
    r="auto",
    mask_aware=True,
    cost=Cost("dot"),
    example=binary("i16", out="i32"),
)
def vdot(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Sum of the products of each two neighbouring lanes, in twice the width.

    The exact sum is clipped once to the result's range; the result is signed if x or y is. Inactive lanes contribute
    nothing; where both lanes are inactive the result is undefined.
    """
    return clipped(group_sums(x, y, mask, 2), to)


@value_op(
    group=GROUP,
    parameters="x, y, mask=None",
    typing=Lanewise(QUADS, width="whole", signs="any", result=scaled(to_32_bits)),
    c="__vqdot({r}, {x}, {y}, {m})",
    r="auto",
    mask_aware=True,
    cost=Cost("dot"),
    example=binary("i8", out="i32"),
)
def vqdot(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Sum of the products of each four neighbouring lanes, in 32 bits.

    8-bit integers: one result lane per four, signed if x or y is. 16-bit floating point: each sum lies in an even lane
    of the float32 result, odd lanes are undefined. Inactive lanes contribute nothing; without any active lane the
    result is undefined.
    """
    if not to.is_floating:
        return clipped(group_sums(x, y, mask, 4), to)
    return quad_sums(None, x, y, mask)


@value_op(
    group=GROUP,
    parameters="acc, x, y, mask=None",
    typing=Accumulate(BYTES_AND_SHORTS, by_two),
    c="__vdpa({acc}, {x}, {y}, {m})",
    mask_like=1,
    mask_aware=True,
    cost=Cost("dot"),
    example=Example("acc = S.i32x8(1000)\nS.vstore(S.vdpa(acc, S.vload(x), S.vload(y)), out)", "i16", out="i32"),
)
def vdpa(acc: Array, x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """acc plus the products of each two neighbouring lanes.

    acc has twice the element width and half the lanes of x, and is unsigned only if both x and y are; these may mix.
    The exact sum is clipped once to the range of acc's type. The mask has the lanes of x; inactive ones contribute
    nothing.
    """
    return clipped(wide(acc) + group_sums(x, y, mask, 2), to)


@value_op(
    group=GROUP,
    parameters="acc, x, y, mask=None",
    typing=Accumulate(QUADS, to_32_bits, float_targets=("X2",)),
    c="__vqdpa({acc}, {x}, {y}, {m})",
    mask_like=1,
    mask_aware=True,
    cost=Cost("dot"),
    example=Example("acc = S.i32x8(1000)\nS.vstore(S.vqdpa(acc, S.vload(x), S.vload(y)), out)", "i8", out="i32"),
)
def vqdpa(acc: Array, x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """acc plus the products of each four neighbouring lanes.

    8-bit integers: acc is a 32-bit vector of a quarter of the lanes, unsigned only if both x and y are, and the exact
    sum is clipped to its range. 16-bit floating point (X2 only): acc is float32 of half the lanes; each sum goes to an even lane, rounded once, odd lanes
    keep acc. The mask has the lanes of x; inactive ones contribute nothing.
    """
    if not to.is_floating:
        return clipped(wide(acc) + group_sums(x, y, mask, 4), to)
    return quad_sums(acc, x, y, mask)


# ----------------------------------------------------------------------------------------------------- fused multiply-add


def typed_fma(operands: list[Operand]) -> Typed:
    """All float32: scalars after matching x with y and that with acc, otherwise one broadcast group with a vector acc."""
    if any(map(is_vector, operands)):
        require_vector("acc", operands[0])
        types = broadcast_group(operands)
    else:
        factors = match_scalars(operands[1], operands[2])
        types = [match_scalars(operands[0], factors), factors, factors]
    for t in types:
        check_kind(t, FLOAT32)
    return Typed(tuple(types), types[0])


@value_op(
    group=GROUP,
    parameters="acc, x, y, mask=None",
    typing=typed_fma,
    c=[("scalar", "__fma({acc}, {x}, {y})"), "__vfma({acc}, {x}, {y}, {m})"],
    mask_aware=True,
    scalar_mask=True,
    cost=Cost("mac", scalar="scalar_mul"),
    example=Example("acc = S.fp32x8(1)\nS.vstore(S.fma(acc, S.vload(x), S.vload(y)), out)", "fp32"),
)
def fma(acc: Array, x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """acc + x*y with a single rounding, float32 only.

    With a vector acc, x and y may be scalars. Inactive lanes keep acc; a scalar call ignores the mask. The argument acc
    itself is not changed.
    """
    return chosen(fused(acc, x, y), mask, acc)


HALF_PRODUCTS = Accumulate(HALVES, by_two, width="native", mask_on=0)


@value_op(
    group=GROUP,
    parameters="acc, x, y, mask=None",
    typing=HALF_PRODUCTS,
    c="__vfmae({acc}, {x}, {y}, {m})",
    split="none",
    mask_aware=True,
    cost=Cost("mac"),
    example=Example("acc = S.fp32x8(0)\nS.vstore(S.vfmae(acc, S.vload(x), S.vload(y)), out)", "fp16", out="fp32"),
)
def vfmae(acc: Array, x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """acc plus the products of the even lanes of 16-bit floating-point vectors.

    acc is float32x8, x and y float16x16 or bfloat16x16. The mask has the lanes of acc; inactive ones keep acc.
    """
    return chosen(rounded(double(acc) + double(half_product(x, y, 0)), to), mask, acc)


@value_op(
    group=GROUP,
    parameters="acc, x, y, mask=None",
    typing=HALF_PRODUCTS,
    c="__vfmao({acc}, {x}, {y}, {m})",
    split="none",
    mask_aware=True,
    cost=Cost("mac"),
    example=Example("acc = S.fp32x8(0)\nS.vstore(S.vfmao(acc, S.vload(x), S.vload(y)), out)", "fp16", out="fp32"),
)
def vfmao(acc: Array, x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """acc plus the products of the odd lanes of 16-bit floating-point vectors; otherwise as `S.vfmae`."""
    return chosen(rounded(double(acc) + double(half_product(x, y, 1)), to), mask, acc)


# ----------------------------------------------------------------------------------------------------------- 4x4 matrices

IN_MEMORY: Mapping[Part, str] = {
    "definition": "tests/sim/test_kernel_services.py and tests/ops/test_floats.py compare memory"
}


def matrix_types(what: str, elem: DataType, x: DataType, y: DataType) -> None:
    """Refuse operands a 4x4 product does not have."""
    require_target(what, ("X2",))
    if elem.element_of not in FLOAT32:
        raise type_error(f"{what}: the pointer must point to float32, got {elem}", "retype it with as_ptr")
    for name, t in (("x", x), ("y", y)):
        if t.element_of not in HALVES or t.lanes != 16:
            raise type_error(f"{what}: {name} must be float16x16 or bfloat16x16, got {t}")
    if x is not y:
        raise type_error(f"{what}: x is {x}, but y is {y}", "convert one of them")


def _build_matrix(name: str, ptr: object, x: object, y: object) -> E.Expr:
    what = f"S.{name}"
    address, a, b = pointer_arg(ptr, f"{what}: ptr"), vector_arg(x, f"{what}: x"), vector_arg(y, f"{what}: y")
    matrix_types(what, address.pointer_type.elem, a.data_type, b.data_type)
    return E.Call(name, (address, a, b), VOID)


@special_op(
    group=GROUP,
    c="__vmml({ptr}, {x}, {y})",
    effect="write",
    touches=(Touch(0, "w", 64),),
    cost=Cost("matmul", {"__compass_mma": "matmul"}),
    example=Example("S.vmml(out, S.vload(x), S.vload(y))", "fp16", out="fp32", lanes=16),
    exempt=IN_MEMORY,
)
def vmml(ptr: object, x: object, y: object) -> E.Expr:
    """Product of two 4x4 matrices, written to memory. X2 only.

    x (by rows) and y (by columns) are float16x16 or bfloat16x16; `ptr` points to 16 float32 that take the product by
    rows: `ptr[4*i + j] = sum of x[4*i + k] * y[4*j + k] over k`.
    """
    return _build_matrix("vmml", ptr, x, y)


@special_op(
    group=GROUP,
    c="__vmma({acc_ptr}, {x}, {y})",
    effect="write",
    touches=(Touch(0, "w", 64),),
    cost=Cost("matmul", {"__compass_mma": "matmul"}),
    example=Example("S.vmma(out, S.vload(x), S.vload(y))", "fp16", out="fp32", lanes=16),
    exempt=IN_MEMORY,
)
def vmma(acc_ptr: object, x: object, y: object) -> E.Expr:
    """Product of two 4x4 matrices, added to 16 float32 in memory. X2 only; otherwise as `S.vmml`."""
    return _build_matrix("vmma", acc_ptr, x, y)

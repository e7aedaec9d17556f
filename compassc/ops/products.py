"""Products that change the width or add up: widening multiplication, dot products, fused multiply-add, 4x4 matrices."""

from __future__ import annotations

from typing import Any

from ..ir import exprs as E
from ..ir.dtypes import VOID, DataType
from . import fp
from .args import pointer_arg, vector_arg
from .arithmetic import GROUP, exact, saturated
from .core import LazyModule, np, require_target, special_op, value_op
from .numeric import np_dtype
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

mem: Any = LazyModule("compassc.pysim.memory")

# ---------------------------------------------------------------------------------------------- widening multiplication

WIDENING = Lanewise(INTS, width="native", signs="option", result=scaled(lambda t: 2 if t.bits < 32 else 1))


def widened(half: slice, x: Any, y: Any, mask: Any, r: Any, dtype: Any) -> Any:
    """The products of one half of the lanes in twice the width; 64-bit products lie in pairs of 32-bit lanes."""
    product = exact(x[half]) * exact(y[half])
    words = 2 if x.dtype.itemsize == 4 else 1
    out = product.view(np.uint32).astype(np_dtype(dtype)) if words == 2 else product.astype(np_dtype(dtype))
    return out if mask is None or r is None else np.where(np.repeat(mask[half], words), out, r)


def _half(n: int, high: bool) -> slice:
    return slice(n // 2, n) if high else slice(0, n // 2)


@value_op(
    GROUP,
    "x, y, mask=None, out_sign=None, r=None",
    WIDENING,
    c="__vmul({r}, {x}, {y}, {m})",
    split="none",
    r="param",
    mask_aware=True,
)
def vmull(x: Any, y: Any, dtype: Any, mask: Any = None, r: Any = None) -> Any:
    """Products of the low half of the lanes, in twice the width.

    8- and 16-bit lanes give one lane of double width each. Of 32-bit lanes the 64-bit product fills two lanes: the low
    word first. The mask has the lanes of x, `r` those of the result. `out_sign` ("u" or "s") chooses the result's sign
    and allows signed with unsigned.
    """
    return widened(_half(len(x), False), x, y, mask, r, dtype)


@value_op(
    GROUP,
    "x, y, mask=None, out_sign=None, r=None",
    WIDENING,
    c="__vmulh({r}, {x}, {y}, {m})",
    split="none",
    r="param",
    mask_aware=True,
)
def vmulh(x: Any, y: Any, dtype: Any, mask: Any = None, r: Any = None) -> Any:
    """Products of the high half of the lanes, in twice the width; otherwise as `S.vmull`."""
    return widened(_half(len(x), True), x, y, mask, r, dtype)


# ---------------------------------------------------------------------------------------------------------- dot products


def group_sums(x: Any, y: Any, mask: Any, count: int) -> Any:
    """Exact int64 sums of the active products of each `count` neighbouring lanes."""
    product = exact(x) * exact(y)
    return (product if mask is None else np.where(mask, product, 0)).reshape(-1, count).sum(axis=1)


def quad_sums(x: Any, y: Any, mask: Any) -> Any:
    """Sums of the active products of each 4 neighbouring floating-point lanes, in double, in lane order."""
    product = (x.astype(np.float64) * y.astype(np.float64)).reshape(-1, 4)
    if mask is not None:
        product = np.where(np.reshape(mask, (-1, 4)), product, 0.0)
    total = np.zeros(len(product))
    for k in range(4):
        total = total + product[:, k]
    return total


BYTES_AND_SHORTS = kinds("int8 uint8 int16 uint16")
QUADS = kinds("int8 uint8") + HALVES


@value_op(
    GROUP,
    "x, y, mask=None",
    Lanewise(BYTES_AND_SHORTS, width="whole", signs="any", result=scaled(by_two)),
    c="__vdot({r}, {x}, {y}, {m})",
    r="auto",
    mask_aware=True,
)
def vdot(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Sum of the products of each two neighbouring lanes, in twice the width.

    The exact sum is clipped once to the result's range; the result is signed if x or y is. Inactive lanes contribute
    nothing; where both lanes are inactive the result is undefined.
    """
    return saturated(group_sums(x, y, mask, 2), dtype)


@value_op(
    GROUP,
    "x, y, mask=None",
    Lanewise(QUADS, width="whole", signs="any", result=scaled(to_32_bits)),
    c="__vqdot({r}, {x}, {y}, {m})",
    r="auto",
    mask_aware=True,
)
def vqdot(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Sum of the products of each four neighbouring lanes, in 32 bits.

    8-bit integers: one result lane per four, signed if x or y is. 16-bit floating point: each sum lies in an even lane
    of the float32 result, odd lanes are undefined. Inactive lanes contribute nothing; without any active lane the
    result is undefined.
    """
    if not dtype.is_floating:
        return saturated(group_sums(x, y, mask, 4), dtype)
    out = np.zeros(dtype.lanes, np.float32)
    out[::2] = quad_sums(x, y, mask).astype(np.float32)
    return out


@value_op(
    GROUP,
    "acc, x, y, mask=None",
    Accumulate(BYTES_AND_SHORTS, by_two),
    c="__vdpa({acc}, {x}, {y}, {m})",
    mask_like=1,
    mask_aware=True,
)
def vdpa(acc: Any, x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """acc plus the products of each two neighbouring lanes.

    acc has twice the element width and half the lanes of x, and is unsigned only if both x and y are; these may mix.
    The exact sum is clipped once to the range of acc's type. The mask has the lanes of x; inactive ones contribute
    nothing.
    """
    return saturated(exact(acc) + group_sums(x, y, mask, 2), dtype)


@value_op(
    GROUP,
    "acc, x, y, mask=None",
    Accumulate(QUADS, to_32_bits, float_targets=("X2",)),
    c="__vqdpa({acc}, {x}, {y}, {m})",
    mask_like=1,
    mask_aware=True,
)
def vqdpa(acc: Any, x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """acc plus the products of each four neighbouring lanes.

    8-bit integers: acc is a 32-bit vector of a quarter of the lanes, unsigned only if both x and y are, and the exact
    sum is clipped to its range. 16-bit floating point (X2 only): acc is float32 of half the lanes; each sum goes to an even lane, rounded once, odd lanes
    keep acc. The mask has the lanes of x; inactive ones contribute nothing.
    """
    if not dtype.is_floating:
        return saturated(exact(acc) + group_sums(x, y, mask, 4), dtype)
    out = acc.copy()
    total = (acc[::2].astype(np.float64) + quad_sums(x, y, mask)).astype(np.float32)
    out[::2] = total if mask is None else np.where(np.reshape(mask, (-1, 4)).any(axis=1), total, acc[::2])
    return out


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
    GROUP,
    "acc, x, y, mask=None",
    typed_fma,
    c=[("scalar", "__fma({acc}, {x}, {y})"), "__vfma({acc}, {x}, {y}, {m})"],
    mask_aware=True,
    scalar_mask=True,
)
def fma(acc: Any, x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """acc + x*y with a single rounding, float32 only.

    With a vector acc, x and y may be scalars. Inactive lanes keep acc; a scalar call ignores the mask. The argument acc
    itself is not changed.
    """
    value = fp.fma(x, y, acc)
    return value if mask is None or not acc.ndim else np.where(mask, value, acc)


HALF_PRODUCTS = Accumulate(HALVES, by_two, width="native", mask_on=0)


def _add_products(acc: Any, x: Any, y: Any, mask: Any) -> Any:
    total = acc + x.astype(np.float32) * y.astype(np.float32)
    return total if mask is None else np.where(mask, total, acc)


@value_op(
    GROUP, "acc, x, y, mask=None", HALF_PRODUCTS, c="__vfmae({acc}, {x}, {y}, {m})", split="none", mask_aware=True
)
def vfmae(acc: Any, x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """acc plus the products of the even lanes of 16-bit floating-point vectors.

    acc is float32x8, x and y float16x16 or bfloat16x16. The mask has the lanes of acc; inactive ones keep acc.
    """
    return _add_products(acc, x[::2], y[::2], mask)


@value_op(
    GROUP, "acc, x, y, mask=None", HALF_PRODUCTS, c="__vfmao({acc}, {x}, {y}, {m})", split="none", mask_aware=True
)
def vfmao(acc: Any, x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """acc plus the products of the odd lanes of 16-bit floating-point vectors; otherwise as `S.vfmae`."""
    return _add_products(acc, x[1::2], y[1::2], mask)


# ----------------------------------------------------------------------------------------------------------- 4x4 matrices


def _matrix_types(what: str, elem: DataType, x: DataType, y: DataType) -> None:
    """Refuse operands a 4x4 product does not have."""
    require_target(what, ("X2",))
    if elem.element_of not in FLOAT32:
        raise type_error(f"{what}: the pointer must point to float32, got {elem}", "retype it with as_ptr")
    for name, t in (("x", x), ("y", y)):
        if t.element_of not in HALVES or t.lanes != 16:
            raise type_error(f"{what}: {name} must be float16x16 or bfloat16x16, got {t}")
    if x is not y:
        raise type_error(f"{what}: x is {x}, but y is {y}", "convert one of them")


def _build_matrix(name: str, ptr: Any, x: Any, y: Any) -> E.Expr:
    what = f"S.{name}"
    address, a, b = pointer_arg(ptr, f"{what}: ptr"), vector_arg(x, f"{what}: x"), vector_arg(y, f"{what}: y")
    _matrix_types(what, address.dtype.elem, a.dtype, b.dtype)
    return E.Call(name, (address, a, b), VOID)


def matrix_product(x: Any, y: Any) -> Any:
    """The 16 dot products of 4x4 matrices, x by rows and y by columns: exact products, summed in double in order."""
    a, b = (np.asarray(m).astype(np.float64).reshape(4, 4) for m in (x, y))
    total = np.zeros((4, 4))
    for k in range(4):
        total = total + a[:, k, None] * b[None, :, k]
    return total.reshape(16)


def _run_matrix(name: str, ptr: Any, x: Any, y: Any, accumulate: bool) -> None:
    what = f"S.{name}"
    ptr = mem.pointer_of(ptr, f"{what}: ptr")
    _matrix_types(what, ptr.dtype, x.dtype, y.dtype)
    view, base = ptr.elements(FLOAT32[0])
    if base < 0 or base + 16 > view.size:
        raise mem.bounds_error(what, ptr, 0, 15)
    total = matrix_product(x.value, y.value)
    with np.errstate(all="ignore"):
        view[base : base + 16] = (view[base : base + 16].astype(np.float64) + total if accumulate else total).astype(
            np.float32
        )


def _build_vmml(ptr: Any, x: Any, y: Any) -> E.Expr:
    return _build_matrix("vmml", ptr, x, y)


def _build_vmma(acc_ptr: Any, x: Any, y: Any) -> E.Expr:
    return _build_matrix("vmma", acc_ptr, x, y)


@special_op(GROUP, _build_vmml, c="__vmml({ptr}, {x}, {y})", effect="write")
def vmml(ptr: Any, x: Any, y: Any) -> None:
    """Product of two 4x4 matrices, written to memory. X2 only.

    x (by rows) and y (by columns) are float16x16 or bfloat16x16; `ptr` points to 16 float32 that take the product by
    rows: `ptr[4*i + j] = sum of x[4*i + k] * y[4*j + k] over k`.
    """
    _run_matrix("vmml", ptr, x, y, accumulate=False)


@special_op(GROUP, _build_vmma, c="__vmma({acc_ptr}, {x}, {y})", effect="write")
def vmma(acc_ptr: Any, x: Any, y: Any) -> None:
    """Product of two 4x4 matrices, added to 16 float32 in memory. X2 only; otherwise as `S.vmml`."""
    _run_matrix("vmma", acc_ptr, x, y, accumulate=True)

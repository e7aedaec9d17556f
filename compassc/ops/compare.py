"""Comparisons, tests for special floating-point values, maximum and minimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from compass_core.errors import CompassError

from ..ir import exprs as E
from . import fp
from .arithmetic import pairs
from .core import Op, np, value_op
from .rules import ALL, FLOATS, INTS, SCALAR_FLOATS, Lanewise, Scalars, bool_type, mask_type
from .typing import Operand, Typed

GROUP = "Compare"


def active(found: Any, mask: Any) -> Any:
    """A result that is false in inactive lanes; scalars have no mask."""
    return found if mask is None or not found.ndim else found & mask


def comparison(c_float: str) -> Callable[[Callable[..., Any]], Op]:
    """Declare a comparison; `c_float` is its C name for floating-point operands."""

    def decorate(meaning: Callable[..., Any]) -> Op:
        return value_op(
            GROUP,
            "x, y, mask=None",
            Lanewise(ALL, result=mask_type),
            c=[("float", f"{c_float}({{x}}, {{y}}, {{m}})"), f"__{meaning.__name__}({{x}}, {{y}}, {{m}})"],
            mask_aware=True,
        )(meaning)

    return decorate


@comparison("__vqeq")
def vceq(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Mask of the active lanes where x == y. -0.0 equals +0.0; NaN equals nothing."""
    return active(x == y, mask)


@comparison("__vqne")
def vcneq(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Mask of the active lanes where x != y; true where either is NaN."""
    return active(x != y, mask)


@comparison("__vqge")
def vcge(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Mask of the active lanes where x >= y; false where either is NaN."""
    return active(x >= y, mask)


@comparison("__vqgt")
def vcgt(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Mask of the active lanes where x > y; false where either is NaN."""
    return active(x > y, mask)


@comparison("__vqle")
def vcle(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Mask of the active lanes where x <= y; false where either is NaN."""
    return active(x <= y, mask)


@comparison("__vqlt")
def vclt(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Mask of the active lanes where x < y; false where either is NaN."""
    return active(x < y, mask)


def _class_test(integer: str, element: str, bits: int) -> str:
    """C of "one of these class bits is set", on integer vectors as wide as the floating-point ones."""
    zero, chosen = f"({integer}){element}0", f"({integer}){element}{bits}"
    return f"__vcneq(__vand({zero}, __vclass({zero}, {{x}}, {{m}}), {chosen}, {{m}}), {zero}, {{m}})"


def classification(bits: int) -> Callable[[Callable[..., Any]], Op]:
    """Declare a test by floating-point class; `bits` are the classes of `__class` that pass."""

    def decorate(meaning: Callable[..., Any]) -> Op:
        return value_op(
            GROUP,
            "x, mask=None",
            Lanewise(FLOATS, result=mask_type, scalars=Scalars(SCALAR_FLOATS, bool_type, literal=False)),
            c=[
                ("scalar", f"((__class({{x}}) & {bits}) != 0)"),
                ("bits16", _class_test("short16", "(short)", bits)),
                _class_test("int8", "", bits),
            ],
            mask_aware=True,
            scalar_mask=True,
        )(meaning)

    return decorate


@classification(0x003)
def isnan(x: Any, dtype: Any, mask: Any = None) -> Any:
    """Whether x is NaN: a mask for a vector (inactive lanes false), a bool for a scalar, which ignores the mask."""
    return active(np.asarray(np.isnan(x)), mask)


@classification(0x204)
def isinf(x: Any, dtype: Any, mask: Any = None) -> Any:
    """Whether x is +inf or -inf: a mask for a vector (inactive lanes false), a bool for a scalar, which ignores the
    mask."""
    return active(np.asarray(np.isinf(x)), mask)


@classification(0x1F8)
def isfinite(x: Any, dtype: Any, mask: Any = None) -> Any:
    """Whether x is neither NaN nor infinite: a mask for a vector (inactive lanes false), a bool for a scalar, which
    ignores the mask."""
    return active(np.asarray(np.isfinite(x)), mask)


def extreme(scalar_ir: Callable[[E.Expr, E.Expr], E.Expr]) -> Callable[[Callable[..., Any]], Op]:
    """Declare the lane-wise maximum or minimum."""

    def decorate(meaning: Callable[..., Any]) -> Op:
        name = meaning.__name__
        return value_op(
            GROUP,
            "x, y, mask=None, r=None",
            Lanewise(ALL, scalars=Scalars(INTS + SCALAR_FLOATS)),
            c=[("scalar", f"{name}({{x}}, {{y}})"), f"__v{name}({{r}}, {{x}}, {{y}}, {{m}})"],
            r="param",
            scalar_mask=True,
            scalar_ir=scalar_ir,
        )(meaning)

    return decorate


def _by_type(integer: Any, floating: Any, x: Any, y: Any, dtype: Any) -> Any:
    return floating(x, y) if dtype.is_floating else integer(x, y)


@extreme(lambda x, y: E.Binary("max", x, y))
def max(x: Any, y: Any, dtype: Any) -> Any:
    """Larger of x and y, lane by lane or of two scalars.

    Of a number and a NaN it is the number. Two scalars take their common type and ignore mask and `r`.
    """
    return _by_type(np.maximum, fp.larger, x, y, dtype)


@extreme(lambda x, y: E.Binary("min", x, y))
def min(x: Any, y: Any, dtype: Any) -> Any:
    """Smaller of x and y, lane by lane or of two scalars.

    Of a number and a NaN it is the number. Two scalars take their common type and ignore mask and `r`.
    """
    return _by_type(np.minimum, fp.smaller, x, y, dtype)


PAIRS = Lanewise(INTS, width="whole")


@value_op(GROUP, "x, y", PAIRS, c="__vmaxh({x}, {y})", split="pairwise")
def vmaxh(x: Any, y: Any, dtype: Any) -> Any:
    """Larger of each two neighbouring lanes: pairs of x fill the low half of the result, pairs of y the high half."""
    return np.maximum(*pairs(x, y))


@value_op(GROUP, "x, y", PAIRS, c="__vminh({x}, {y})", split="pairwise")
def vminh(x: Any, y: Any, dtype: Any) -> Any:
    """Smaller of each two neighbouring lanes: pairs of x fill the low half of the result, pairs of y the high half."""
    return np.minimum(*pairs(x, y))


REGISTER = Lanewise(ALL, width="native")


def typed_reduction(operands: list[Operand], return_idx: bool = False) -> Typed:
    """One register; the form that also returns the index does not exist on X2."""
    return replace(REGISTER(operands), targets=("X3P", "X3S") if return_idx else ())


def reduced(better: Any, x: Any, dtype: Any, mask: Any, return_idx: bool, largest: bool) -> Any:
    """Lane 0: the best active lane, found by halving as the compiled code does, where NaN never wins; lane 1: its
    index as an integer bit pattern."""
    candidates = np.ones(len(x), bool) if mask is None else np.asarray(mask)
    if not candidates.any():
        raise CompassError(
            "the mask of a reduction has no active lane", code="mask", help="at least one must be active"
        )
    low, high = dtype.range()
    kept = np.where(
        candidates, x, np.asarray(np.nan if dtype.is_floating else low if largest else high).astype(x.dtype)
    )
    by = len(x) // 2
    while by:
        kept = better(kept, np.roll(kept, -by))
        by //= 2
    out = np.zeros_like(x)
    out[0] = kept[0]
    if return_idx:
        out.view(f"u{x.dtype.itemsize}")[1] = np.argmax(candidates & (x == kept[0]))
    return out


def reduction(meaning: Callable[..., Any]) -> Op:
    """Declare the maximum or minimum of all active lanes."""
    name = meaning.__name__
    return value_op(
        GROUP,
        "x, mask=None, return_idx=False",
        typed_reduction,
        c=[("return_idx", f"__{name}e({{r}}, {{x}}, {{m}})"), f"__{name}({{r}}, {{x}}, {{m}})"],
        split="none",
        r="auto",
        mask_aware=True,
    )(meaning)


@reduction
def vrpmax(x: Any, dtype: Any, mask: Any = None, return_idx: bool = False) -> Any:
    """Largest active lane, in lane 0; the other lanes are undefined.

    With `return_idx` (not on X2) lane 1 holds the lowest index of that value, as an integer of the element's width
    whatever the element type: read it with `S.reinterpret`. At least one lane must be active.
    """
    return reduced(fp.larger, x, dtype, mask, return_idx, True)


@reduction
def vrpmin(x: Any, dtype: Any, mask: Any = None, return_idx: bool = False) -> Any:
    """Smallest active lane, in lane 0; the other lanes are undefined.

    With `return_idx` (not on X2) lane 1 holds the lowest index of that value, as an integer of the element's width
    whatever the element type: read it with `S.reinterpret`. At least one lane must be active.
    """
    return reduced(fp.smaller, x, dtype, mask, return_idx, False)

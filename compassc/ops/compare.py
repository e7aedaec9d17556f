"""Comparisons, tests for special floating-point values, maximum and minimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compass_core.arrays import Array

from ..ir import exprs as E
from ..ir.dtypes import DataType
from .core import Cost, Definition, Op, value_op
from .exact import best_lane, kept, larger, magnitude, neighbours, number, smaller
from .example import INF, NAN, Example, binary, compared, tested
from .rules import ALL, FLOATS, INTS, SCALAR_FLOATS, Lanewise, Scalars, bool_type, mask_type
from .typing import Operand, Typed

GROUP = "Compare"


def comparison(operator: str, c_float: str) -> Callable[[Definition], Op]:
    """Declare a comparison; `c_float` is its C name for floating-point operands."""

    def decorate(definition: Definition) -> Op:
        return value_op(
            group=GROUP,
            parameters="x, y, mask=None",
            typing=Lanewise(ALL, result=mask_type),
            c=[("float", f"{c_float}({{x}}, {{y}}, {{m}})"), f"__{definition.__name__}({{x}}, {{y}}, {{m}})"],
            mask_aware=True,
            cost=Cost("alu"),
            operator=operator,
            example=compared(),
        )(definition)

    return decorate


@comparison("eq", "__vqeq")
def vceq(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Mask of the active lanes where x == y. -0.0 equals +0.0; NaN equals nothing."""
    return kept((number(x) <= number(y)) & (number(x) >= number(y)), mask)


@comparison("ne", "__vqne")
def vcneq(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Mask of the active lanes where x != y; true where either is NaN."""
    return kept(~((number(x) <= number(y)) & (number(x) >= number(y))), mask)


@comparison("ge", "__vqge")
def vcge(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Mask of the active lanes where x >= y; false where either is NaN."""
    return kept((number(y) < number(x)) | (number(x) == number(y)), mask)


@comparison("gt", "__vqgt")
def vcgt(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Mask of the active lanes where x > y; false where either is NaN."""
    return kept(number(y) < number(x), mask)


@comparison("le", "__vqle")
def vcle(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Mask of the active lanes where x <= y; false where either is NaN."""
    return kept((number(x) < number(y)) | (number(x) == number(y)), mask)


@comparison("lt", "__vqlt")
def vclt(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Mask of the active lanes where x < y; false where either is NaN."""
    return kept(number(x) < number(y), mask)


def _class_test(integer: str, element: str, bits: int) -> str:
    """C of "one of these class bits is set", on integer vectors as wide as the floating-point ones."""
    zero, chosen = f"({integer}){element}0", f"({integer}){element}{bits}"
    return f"__vcneq(__vand({zero}, __vclass({zero}, {{x}}, {{m}}), {chosen}, {{m}}), {zero}, {{m}})"


def classification(bits: int) -> Callable[[Definition], Op]:
    """Declare a test by floating-point class; `bits` are the classes of `__class` that pass."""

    def decorate(definition: Definition) -> Op:
        return value_op(
            group=GROUP,
            parameters="x, mask=None",
            typing=Lanewise(FLOATS, result=mask_type, scalars=Scalars(SCALAR_FLOATS, bool_type, literal=False)),
            c=[
                ("scalar", f"((__class({{x}}) & {bits}) != 0)"),
                ("bits16", _class_test("short16", "(short)", bits)),
                _class_test("int8", "", bits),
            ],
            mask_aware=True,
            scalar_mask=True,
            cost=Cost("alu", borrows=("__vand", "__vcneq")),
            example=tested("fp32", (1, INF, -INF, NAN, 0)),
        )(definition)

    return decorate


@classification(0x003)
def isnan(x: Array, to: DataType, mask: Array | None = None) -> Array:
    """Whether x is NaN: a mask for a vector (inactive lanes false), a bool for a scalar, which ignores the mask."""
    size, infinity = magnitude(x)
    return kept(size > infinity, mask)


@classification(0x204)
def isinf(x: Array, to: DataType, mask: Array | None = None) -> Array:
    """Whether x is +inf or -inf: a mask for a vector (inactive lanes false), a bool for a scalar, which ignores the
    mask."""
    size, infinity = magnitude(x)
    return kept(size == infinity, mask)


@classification(0x1F8)
def isfinite(x: Array, to: DataType, mask: Array | None = None) -> Array:
    """Whether x is neither NaN nor infinite: a mask for a vector (inactive lanes false), a bool for a scalar, which
    ignores the mask."""
    size, infinity = magnitude(x)
    return kept(size < infinity, mask)


def extreme(scalar_ir: Callable[[E.Expr, E.Expr], E.Expr]) -> Callable[[Definition], Op]:
    """Declare the lane-wise maximum or minimum."""

    def decorate(definition: Definition) -> Op:
        name = definition.__name__
        return value_op(
            group=GROUP,
            parameters="x, y, mask=None, r=None",
            typing=Lanewise(ALL, scalars=Scalars(INTS + SCALAR_FLOATS)),
            c=[("scalar", f"{name}({{x}}, {{y}})"), f"__v{name}({{r}}, {{x}}, {{y}}, {{m}})"],
            r="param",
            scalar_mask=True,
            scalar_ir=scalar_ir,
            cost=Cost("alu"),
            operator=name,
            example=binary(),
        )(definition)

    return decorate


@extreme(lambda x, y: E.Binary("max", x, y))
def max(x: Array, y: Array, to: DataType) -> Array:
    """Larger of x and y, lane by lane or of two scalars.

    Of a number and a NaN it is the number. Two scalars take their common type and ignore mask and `r`.
    """
    return larger(x, y)


@extreme(lambda x, y: E.Binary("min", x, y))
def min(x: Array, y: Array, to: DataType) -> Array:
    """Smaller of x and y, lane by lane or of two scalars.

    Of a number and a NaN it is the number. Two scalars take their common type and ignore mask and `r`.
    """
    return smaller(x, y)


PAIRS = Lanewise(INTS, width="whole")


@value_op(
    group=GROUP,
    parameters="x, y",
    typing=PAIRS,
    c="__vmaxh({x}, {y})",
    split="pairwise",
    cost=Cost("reduce"),
    example=binary(),
)
def vmaxh(x: Array, y: Array, to: DataType) -> Array:
    """Larger of each two neighbouring lanes: pairs of x fill the low half of the result, pairs of y the high half."""
    return neighbours(larger, x, y)


@value_op(
    group=GROUP,
    parameters="x, y",
    typing=PAIRS,
    c="__vminh({x}, {y})",
    split="pairwise",
    cost=Cost("reduce"),
    example=binary(),
)
def vminh(x: Array, y: Array, to: DataType) -> Array:
    """Smaller of each two neighbouring lanes: pairs of x fill the low half of the result, pairs of y the high half."""
    return neighbours(smaller, x, y)


REGISTER = Lanewise(ALL, width="native")


def typed_reduction(operands: list[Operand], return_idx: bool = False) -> Typed:
    """One register; the form that also returns the index does not exist on X2."""
    return replace(REGISTER(operands), targets=("X3P", "X3S") if return_idx else ())


def reduction(definition: Definition) -> Op:
    """Declare the maximum or minimum of all active lanes."""
    name = definition.__name__
    return value_op(
        group=GROUP,
        parameters="x, mask=None, return_idx=False",
        typing=typed_reduction,
        c=[("return_idx", f"__{name}e({{r}}, {{x}}, {{m}})"), f"__{name}({{r}}, {{x}}, {{m}})"],
        split="none",
        r="auto",
        mask_aware=True,
        cost=Cost("reduce"),
        example=Example("out[0] = S.{op}(S.vload(x))[0]", lanes=1),
        returns="Any",
    )(definition)


@reduction
def vrpmax(x: Array, to: DataType, mask: Array | None = None, return_idx: bool = False) -> Array:
    """Largest active lane, in lane 0; the other lanes are undefined.

    With `return_idx` (not on X2) lane 1 holds the lowest index of that value, as an integer of the element's width
    whatever the element type: read it with `S.reinterpret`. At least one lane must be active.
    """
    return best_lane(x, to, mask, return_idx, smallest=False)


@reduction
def vrpmin(x: Array, to: DataType, mask: Array | None = None, return_idx: bool = False) -> Array:
    """Smallest active lane, in lane 0; the other lanes are undefined.

    With `return_idx` (not on X2) lane 1 holds the lowest index of that value, as an integer of the element's width
    whatever the element type: read it with `S.reinterpret`. At least one lane must be active.
    """
    return best_lane(x, to, mask, return_idx, smallest=True)

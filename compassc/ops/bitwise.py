"""Bitwise and mask logic, shifts, and counting or reversing bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..ir.dtypes import make_dtype
from .core import Op, np, value_op
from .numeric import np_dtype
from .rules import INTS, MASKS, SIGNED, Lanewise, Scalars, bool_type, kinds
from .typing import Operand, Typed, out_sign_dtype, type_error

GROUP = "Bitwise"


# ------------------------------------------------------------------------------------------------------------------ logic


def logic(params: str) -> Callable[[Callable[..., Any]], Op]:
    """Declare a bitwise operation that is also the logical one on masks, whose builtin has no inactive-lane source."""

    def decorate(meaning: Callable[..., Any]) -> Op:
        name, fields = meaning.__name__, ", ".join(f"{{{p.strip()}}}" for p in params.split(","))
        return value_op(
            GROUP,
            f"{params}, mask=None",
            Lanewise(INTS + MASKS),
            c=[("masks", f"__{name}({fields}, {{m}})"), f"__{name}({{r}}, {fields}, {{m}})"],
            r="auto",
            mask_aware=True,
        )(meaning)

    return decorate


def masks_off(value: Any, dtype: Any, mask: Any) -> Any:
    """Inactive lanes of a mask result are false; those of integers are undefined."""
    return value & mask if mask is not None and dtype.is_bool else value


@logic("x, y")
def vand(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Bitwise AND of integer vectors, logical AND of masks. Inactive lanes: false in masks, else undefined."""
    return masks_off(x & y, dtype, mask)


@logic("x, y")
def vor(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Bitwise OR of integer vectors, logical OR of masks. Inactive lanes: false in masks, else undefined."""
    return masks_off(x | y, dtype, mask)


@logic("x, y")
def vxor(x: Any, y: Any, dtype: Any, mask: Any = None) -> Any:
    """Bitwise exclusive OR of integer vectors or masks. Inactive lanes: false in masks, else undefined."""
    return masks_off(x ^ y, dtype, mask)


@logic("x")
def vinv(x: Any, dtype: Any, mask: Any = None) -> Any:
    """Bitwise NOT of an integer vector, logical NOT of a mask. Inactive lanes: false in masks, else undefined."""
    return masks_off(~x, dtype, mask)


ANSWER = Lanewise(MASKS, result=bool_type)


@value_op(GROUP, "mask", ANSWER, c="__vandr({mask})", split="reduce_mask")
def vall(mask: Any, dtype: Any) -> Any:
    """Whether every lane of a mask expression is true, as a scalar bool."""
    return np.all(mask)


@value_op(GROUP, "mask", ANSWER, c="__vorr({mask})", split="reduce_mask")
def vany(mask: Any, dtype: Any) -> Any:
    """Whether at least one lane of a mask expression is true, as a scalar bool."""
    return np.any(mask)


# ----------------------------------------------------------------------------------------------------------------- shifts


def amount(shift: Any) -> Any:
    """Shift amounts, read as unsigned integers of their width."""
    return shift.view(f"u{shift.dtype.itemsize}").astype(np.int64)


def shifted_right(x: Any, shift: Any, with_round: bool) -> Any:
    """Exact int64 result of shifting right by any amount; rounded to nearest, ties to even, if asked."""
    wide, by = x.astype(np.int64), np.minimum(amount(shift), 63)
    return (
        np.rint(np.ldexp(wide.astype(np.float64), -by.astype(np.int32))).astype(np.int64) if with_round else wide >> by
    )


def _nsr_cases() -> list[tuple[str, str]]:
    """The narrowing shift's names: source sign, saturation, rounding, 16-bit result, result sign if saturating."""
    cases = []
    for sign_word, letter in (("signed", "a"), ("unsigned", "l")):
        for half_word, half in (("to_h", "_h"), ("!to_h", "")):
            for round_word, rounds in (("with_round", "r"), ("!with_round", "")):
                start = f"{sign_word} & {half_word} & {round_word}"
                for saturate_word, middle, end in (
                    ("saturate & result_signed", "s", "_s"),
                    ("saturate & !result_signed", "s", "_u"),
                    ("!saturate", "", ""),
                ):
                    name = f"__vnsr{letter}{middle}{rounds}{half}{end}"
                    cases.append((f"{start} & {saturate_word}", f"{name}({{x}}, {{shift}}, {{m}})"))
    return cases


NARROWING = Lanewise(kinds("int16 uint16 int32 uint32"), width="whole", signs="any")


def typed_nsr(
    operands: list[Operand],
    saturate: bool = False,
    out_sign: str | None = None,
    with_round: bool = False,
    to_h: bool = False,
) -> Typed:
    """x and shift agree in width and lanes; the result has 8 or 16 bits per element, in as many more lanes."""
    typed = NARROWING(operands)
    x = typed.operands[0]
    if to_h and x.bits == 16:
        raise type_error(f"to_h=True narrows 32-bit elements to 16 bits, but x is {x}")
    bits = 16 if to_h else 8
    result = make_dtype(x.type_code, bits, x.lanes * (x.bits // bits))
    return replace(typed, result=out_sign_dtype(result, out_sign))


def narrowed(x: Any, shift: Any, dtype: Any, mask: Any, saturate: bool, with_round: bool) -> Any:
    """The shifted values in the low slots of their old places, 0 elsewhere and where inactive."""
    value = shifted_right(x, shift, with_round)
    if saturate:
        value = np.clip(value, *dtype.range())
    out = np.zeros(dtype.lanes, np_dtype(dtype))
    out[:: dtype.lanes // len(x)] = value if mask is None else np.where(mask, value, 0)
    return out


@value_op(
    GROUP,
    "x, shift, mask=None, saturate=False, out_sign=None, with_round=False, to_h=False",
    typed_nsr,
    c=_nsr_cases(),
    mask_aware=True,
)
def vnsr(
    x: Any,
    shift: Any,
    dtype: Any,
    mask: Any = None,
    saturate: bool = False,
    with_round: bool = False,
    to_h: bool = False,
) -> Any:
    """Narrowing shift right: shift, round if asked, clip or truncate to a narrower element.

    The results are 8-bit, or with `to_h` 16-bit, and stay in the low part of their old slots: with elements k times as
    narrow, result lane k*i holds element i and the lanes between are 0, as are those of inactive elements. The shift is
    arithmetic for signed x; its amount is read as unsigned and may have the other sign than x. `with_round` rounds to
    nearest, ties to even; `saturate` clips to the result's range; `out_sign` ("u" or "s") chooses the result's sign.
    """
    return narrowed(x, shift, dtype, mask, saturate, with_round)


@value_op(
    GROUP,
    "x, shift, mask=None, out_sign=None, to_h=False",
    lambda operands, **options: typed_nsr(operands, saturate=True, with_round=True, **options),
    c=_nsr_cases(),
    mask_aware=True,
    alias_of=("vnsr", {"saturate": True, "with_round": True}),
)
def vnsrsr(x: Any, shift: Any, dtype: Any, mask: Any = None, to_h: bool = False) -> Any:
    """Narrowing shift right with rounding and saturation: `S.vnsr` with `saturate` and `with_round`."""
    return narrowed(x, shift, dtype, mask, True, True)


def _with_mask(name: str) -> list[tuple[str, str]]:
    """The two forms of a shift: all lanes, and with mask and inactive-lane source."""
    return [("all_true", f"{name}({{x}}, {{shift}})"), ("", f"{name}({{r}}, {{x}}, {{shift}}, {{m}})")]


def _when(words: str, cases: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(f"{words} & {condition}" if condition else words, template) for condition, template in cases]


@value_op(
    GROUP,
    "x, shift, mask=None, with_round=False, r=None",
    Lanewise(INTS),
    c=[
        *_when("signed & with_round", _with_mask("__vasrr")),
        *_when("signed", _with_mask("__vasr")),
        *_when("with_round", _with_mask("__vlsrr")),
        *_with_mask("__vlsr"),
    ],
    r="param",
)
def vsr(x: Any, shift: Any, dtype: Any, with_round: bool = False) -> Any:
    """Shift right, arithmetic for signed x, logical for unsigned.

    The shift has the type of x and is read as unsigned; an amount of all bits or more leaves 0, or -1 for a negative x.
    With `with_round` the result is the nearest integer to x / 2^shift, ties to even.
    """
    return shifted_right(x, shift, with_round).astype(x.dtype)


@value_op(
    GROUP,
    "x, shift, mask=None, saturate=False, r=None",
    Lanewise(INTS, signs="any", saturate=SIGNED),
    c=[*_when("saturate", _with_mask("__vsasl")), *_with_mask("__vlsl")],
    r="param",
)
def vsl(x: Any, shift: Any, dtype: Any, saturate: bool = False) -> Any:
    """Shift left; with `saturate` (signed x only) the exact value is clipped to the range of the type.

    The shift has the width of x, either sign, and is read as unsigned. An amount of all bits or more gives 0, or with
    `saturate` the limit on x's side.
    """
    value = x.astype(np.int64) << np.minimum(amount(shift), dtype.bits)
    return (np.clip(value, *dtype.range()) if saturate else value).astype(x.dtype)


@value_op(GROUP, "x, shift, mask=None", Lanewise(INTS), c=_with_mask("__vror"), r="auto")
def vror(x: Any, shift: Any, dtype: Any) -> Any:
    """Rotate right by the shift, read as unsigned, modulo the element's bits. The shift has the type of x."""
    bits, by = amount(x), amount(shift) % dtype.bits
    return ((bits >> by) | (bits << (dtype.bits - by))).astype(x.dtype)


# ------------------------------------------------------------------------------------------------------- bits of an element


def bits_of(x: Any) -> Any:
    """The bits of each integer, lowest first, along a new last axis."""
    width = x.dtype.itemsize * 8
    unsigned = np.asarray(x).view(f"u{x.dtype.itemsize}").astype(np.int64)
    return (unsigned[..., None] >> np.arange(width)) & 1


def leading_zeros(bits: Any) -> Any:
    """How many of the highest bits are 0 before the first 1."""
    return np.where(bits.any(axis=-1), np.argmax(bits[..., ::-1], axis=-1), bits.shape[-1])


def counting(params: str, rule: Lanewise, *, scalar: str = "", **extra: Any) -> Callable[[Callable[..., Any]], Op]:
    """Declare an operation on the bits of each element; `scalar` is the C form on scalars."""

    def decorate(meaning: Callable[..., Any]) -> Op:
        name = meaning.__name__
        vector = f"__{name if name.startswith('v') else 'v' + name}({{r}}, {{x}}, {{m}})"
        return value_op(GROUP, params, rule, c=[("scalar", scalar), vector] if scalar else vector, r="auto", **extra)(
            meaning
        )

    return decorate


@counting("x, mask=None, out_sign=None", Lanewise(SIGNED))
def vcls(x: Any, dtype: Any) -> Any:
    """How many bits below the sign bit equal it, counted from the top; 0 and -1 give all of them.

    `out_sign` ("u" or "s") chooses the result's sign, by default signed.
    """
    folded = np.where(x < 0, ~x, x)
    return (leading_zeros(bits_of(folded)) - 1).astype(np_dtype(dtype))


@counting("x, mask=None", Lanewise(INTS, scalars=Scalars(INTS)), scalar="clz({x})", scalar_mask=True)
def clz(x: Any, dtype: Any) -> Any:
    """Leading zero bits of a scalar or of each lane; 0 gives all bits, a negative value none. A scalar call ignores the
    mask."""
    return leading_zeros(bits_of(x)).astype(np_dtype(dtype))


@counting("x, mask=None", Lanewise(INTS))
def vbrevs(x: Any, dtype: Any) -> Any:
    """The bits of each element in reverse order."""
    bits = bits_of(x)
    return (bits << np.arange(bits.shape[-1])[::-1]).sum(axis=-1).astype(x.dtype)


@counting("x, mask=None, out_sign=None", Lanewise(INTS))
def vpcnt(x: Any, dtype: Any) -> Any:
    """How many bits of each element are 1. `out_sign` ("u" or "s") chooses the result's sign, by default that of x."""
    return bits_of(x).sum(axis=-1).astype(np_dtype(dtype))

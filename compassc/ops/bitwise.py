"""Bitwise and mask logic, shifts, and counting or reversing bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compass_core.arrays import Array
from compass_core.lazy import np

from ..ir.dtypes import DataType, make_dtype
from .core import Cost, Definition, Op, value_op
from .exact import bit_length, clipped, fitted, narrowed, of_bits, ones, reversed_bits, shifted, unsigned, wide, wrapped
from .example import Example, binary, unary
from .rules import INTS, MASKS, SIGNED, Lanewise, Scalars, bool_type, kinds
from .typing import Operand, Typed, out_sign_dtype, type_error

GROUP = "Bitwise"

# ------------------------------------------------------------------------------------------------------------------ logic


def logic(
    parameters: str, example: Example, *, operator: str = "", commutative: bool = False
) -> Callable[[Definition], Op]:
    """Declare a bitwise operation that is also the logical one on masks, whose builtin has no inactive-lane source."""

    def decorate(definition: Definition) -> Op:
        name, fields = definition.__name__, ", ".join(f"{{{p.strip()}}}" for p in parameters.split(","))
        return value_op(
            group=GROUP,
            parameters=f"{parameters}, mask=None",
            typing=Lanewise(INTS + MASKS),
            c=[("masks", f"__{name}({fields}, {{m}})"), f"__{name}({{r}}, {fields}, {{m}})"],
            r="auto",
            mask_aware=True,
            cost=Cost("alu"),
            operator=operator,
            commutative=commutative,
            example=example,
        )(definition)

    return decorate


@logic("x, y", binary(), operator="bitand", commutative=True)
def vand(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Bitwise AND of integer vectors, logical AND of masks. Inactive lanes: false in masks, else undefined."""
    return of_bits(lambda a, b: a & b, to, mask, x, y)


@logic("x, y", binary(), operator="bitor", commutative=True)
def vor(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Bitwise OR of integer vectors, logical OR of masks. Inactive lanes: false in masks, else undefined."""
    return of_bits(lambda a, b: a | b, to, mask, x, y)


@logic("x, y", binary(), operator="bitxor", commutative=True)
def vxor(x: Array, y: Array, to: DataType, mask: Array | None = None) -> Array:
    """Bitwise exclusive OR of integer vectors or masks. Inactive lanes: false in masks, else undefined."""
    return of_bits(lambda a, b: (a | b) - (a & b), to, mask, x, y)


@logic("x", unary("i32"))
def vinv(x: Array, to: DataType, mask: Array | None = None) -> Array:
    """Bitwise NOT of an integer vector, logical NOT of a mask. Inactive lanes: false in masks, else undefined."""
    return of_bits(lambda a: -a - 1, to, mask, x)


ANSWER = Lanewise(MASKS, result=bool_type)


@value_op(
    group=GROUP,
    parameters="mask",
    typing=ANSWER,
    c="__vandr({mask})",
    split="reduce_mask",
    cost=Cost("mask", mask_is_data=True),
    example=Example("out[0] = 1 if S.vall(S.vload(x) > -10) else 0", lanes=1),
)
def vall(mask: Array, to: DataType) -> Array:
    """Whether every lane of a mask expression is true, as a scalar bool."""
    return np.logical_and.reduce(mask, axis=1, keepdims=True)


@value_op(
    group=GROUP,
    parameters="mask",
    typing=ANSWER,
    c="__vorr({mask})",
    split="reduce_mask",
    cost=Cost("mask", mask_is_data=True),
    example=Example("out[0] = 1 if S.vany(S.vload(x) > 50) else 0", lanes=1),
)
def vany(mask: Array, to: DataType) -> Array:
    """Whether at least one lane of a mask expression is true, as a scalar bool."""
    return np.logical_or.reduce(mask, axis=1, keepdims=True)


# ----------------------------------------------------------------------------------------------------------------- shifts


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


@value_op(
    group=GROUP,
    parameters="x, shift, mask=None, saturate=False, out_sign=None, with_round=False, to_h=False",
    typing=typed_nsr,
    c=_nsr_cases(),
    mask_aware=True,
    cost=Cost("convert", {"__wnsra*": "convert"}),
    signs="narrowing",
    example=Example(
        'S.vstore(S.vnsr(S.vload(x), 2, saturate=True, with_round=True, to_h=True), out, mask="8T")',
        out="i16",
        lanes=16,
    ),
)
def vnsr(
    x: Array,
    shift: Array,
    to: DataType,
    mask: Array | None = None,
    saturate: bool = False,
    with_round: bool = False,
    to_h: bool = False,
) -> Array:
    """Narrowing shift right: shift, round if asked, clip or truncate to a narrower element.

    The results are 8-bit, or with `to_h` 16-bit, and stay in the low part of their old slots: with elements k times as
    narrow, result lane k*i holds element i and the lanes between are 0, as are those of inactive elements. The shift is
    arithmetic for signed x; its amount is read as unsigned and may have the other sign than x. `with_round` rounds to
    nearest, ties to even; `saturate` clips to the result's range; `out_sign` ("u" or "s") chooses the result's sign.
    """
    return narrowed(fitted(shifted(x, shift, with_round), to, saturate), to, mask)


@value_op(
    group=GROUP,
    parameters="x, shift, mask=None, out_sign=None, to_h=False",
    typing=lambda operands, **options: typed_nsr(operands, saturate=True, with_round=True, **options),
    c=_nsr_cases(),
    mask_aware=True,
    alias_of=("vnsr", {"saturate": True, "with_round": True}),
    cost=Cost("convert"),
    example=Example("S.vstore(S.vnsrsr(S.vload(x), 2, to_h=True), out)", out="i16", lanes=16),
)
def vnsrsr(x: Array, shift: Array, to: DataType, mask: Array | None = None, to_h: bool = False) -> Array:
    """Narrowing shift right with rounding and saturation: `S.vnsr` with `saturate` and `with_round`."""
    return narrowed(clipped(shifted(x, shift, True), to), to, mask)


def _with_mask(name: str) -> list[tuple[str, str]]:
    """The two forms of a shift: all lanes, and with mask and inactive-lane source."""
    return [("all_true", f"{name}({{x}}, {{shift}})"), ("", f"{name}({{r}}, {{x}}, {{shift}}, {{m}})")]


def _when(words: str, cases: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(f"{words} & {condition}" if condition else words, template) for condition, template in cases]


@value_op(
    group=GROUP,
    parameters="x, shift, mask=None, with_round=False, r=None",
    typing=Lanewise(INTS),
    c=[
        *_when("signed & with_round", _with_mask("__vasrr")),
        *_when("signed", _with_mask("__vasr")),
        *_when("with_round", _with_mask("__vlsrr")),
        *_with_mask("__vlsr"),
    ],
    r="param",
    cost=Cost("alu"),
    example=Example("S.vstore(S.vsr(S.vload(x), 1, with_round=True), out)"),
    operator="shr",
)
def vsr(x: Array, shift: Array, to: DataType, with_round: bool = False) -> Array:
    """Shift right, arithmetic for signed x, logical for unsigned.

    The shift has the type of x and is read as unsigned; an amount of all bits or more leaves 0, or -1 for a negative x.
    With `with_round` the result is the nearest integer to x / 2^shift, ties to even.
    """
    return wrapped(shifted(x, shift, with_round), to)


@value_op(
    group=GROUP,
    parameters="x, shift, mask=None, saturate=False, r=None",
    typing=Lanewise(INTS, signs="any", saturate=SIGNED),
    c=[*_when("saturate", _with_mask("__vsasl")), *_with_mask("__vlsl")],
    r="param",
    cost=Cost("alu"),
    signs="shift",
    example=Example("S.vstore(S.vsl(S.vload(x), 28, saturate=True), out)"),
    operator="shl",
)
def vsl(x: Array, shift: Array, to: DataType, saturate: bool = False) -> Array:
    """Shift left; with `saturate` (signed x only) the exact value is clipped to the range of the type.

    The shift has the width of x, either sign, and is read as unsigned. An amount of all bits or more gives 0, or with
    `saturate` the limit on x's side.
    """
    by = np.minimum(unsigned(shift), to.bits)
    if not saturate:
        return wrapped(np.where(by == to.bits, 0, unsigned(x) << by), to)
    low, high = to.range()
    fits = (by < to.bits) & (wide(x) >= low >> by) & (wide(x) <= high >> by)
    limit = np.where(x < 0, low, np.where(x > 0, high, 0))
    return np.where(fits, wide(x) << by, limit).astype(x.dtype)


@value_op(
    group=GROUP,
    parameters="x, shift, mask=None",
    typing=Lanewise(INTS),
    c=_with_mask("__vror"),
    r="auto",
    cost=Cost("alu"),
    example=Example("S.vstore(S.vror(S.vload(x), 4), out)", "u32", xs=(0, 1, 16, 17, 255, 256, 2**31, 2**32 - 1)),
)
def vror(x: Array, shift: Array, to: DataType) -> Array:
    """Rotate right by the shift, read as unsigned, modulo the element's bits. The shift has the type of x."""
    by = unsigned(shift) % to.bits
    low = unsigned(x) & ((np.int64(1) << by) - 1)
    return wrapped((unsigned(x) >> by) | (low << (to.bits - by)), to)


# ------------------------------------------------------------------------------------------------------- bits of an element


def counting(
    parameters: str, typing: Lanewise, example: Example, *, scalar: str = "", scalar_mask: bool = False, signs: str = ""
) -> Callable[[Definition], Op]:
    """Declare an operation on the bits of each element; `scalar` is the C form on scalars."""

    def decorate(definition: Definition) -> Op:
        name = definition.__name__
        vector = f"__{name if name.startswith('v') else 'v' + name}({{r}}, {{x}}, {{m}})"
        return value_op(
            group=GROUP,
            parameters=parameters,
            typing=typing,
            c=[("scalar", scalar), vector] if scalar else vector,
            r="auto",
            scalar_mask=scalar_mask,
            cost=Cost("alu"),
            signs=signs,
            example=example,
        )(definition)

    return decorate


@counting(
    "x, mask=None, out_sign=None",
    Lanewise(SIGNED),
    unary("i32", (0, -1, 1, -2, 255, -256, 2**30, -(2**31))),
    signs="count",
)
def vcls(x: Array, to: DataType) -> Array:
    """How many bits below the sign bit equal it, counted from the top; 0 and -1 give all of them.

    `out_sign` ("u" or "s") chooses the result's sign, by default signed.
    """
    return wrapped(to.bits - 1 - bit_length(np.where(wide(x) < 0, -wide(x) - 1, wide(x))), to)


@counting(
    "x, mask=None",
    Lanewise(INTS, scalars=Scalars(INTS)),
    unary("u32", (0, 1, 2, 3, 255, 65536, 2**31, 2**32 - 1)),
    scalar="clz({x})",
    scalar_mask=True,
)
def clz(x: Array, to: DataType) -> Array:
    """Leading zero bits of a scalar or of each lane; 0 gives all bits, a negative value none. A scalar call ignores the
    mask."""
    return wrapped(to.bits - bit_length(unsigned(x)), to)


@counting("x, mask=None", Lanewise(INTS), unary("u8", (1, 2, 3, 4, 128, 255)))
def vbrevs(x: Array, to: DataType) -> Array:
    """The bits of each element in reverse order."""
    return wrapped(reversed_bits(x, to.bits), to)


@counting(
    "x, mask=None, out_sign=None",
    Lanewise(INTS),
    unary("u32", (0, 1, 3, 7, 255, 65535, 2**31, 2**32 - 1)),
    signs="count",
)
def vpcnt(x: Array, to: DataType) -> Array:
    """How many bits of each element are 1. `out_sign` ("u" or "s") chooses the result's sign, by default that of x."""
    return wrapped(ones(x, to.bits), to)

"""What the elements of a position come to: their largest, sums of integers and of their squares, and means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import LayerError, Tensor
from compassc.ir.dtypes import dtype as type_of
from compassc.layers.axes import AxisLoop
from compassc.layers.byte_functions import BYTES
from compassc.layers.lane_arithmetic import across_max, across_sum_pair, carry_pair, divide_long, divide_rounded
from compassc.layers.vectors import LANES, WIDE, clamp, everywhere, halves_of, product_of_halves

Term = Callable[[Value], Expression]
"""A term of an element."""


ALIKE, BROAD, LONG = LANES, 256, 28
"""Elements behind the axes that are joined from which on kernels by hand, whose lanes these are, have up to 88 % fewer cycles
than schedules (of 24 they have 8 to 19 % more); but from `BROAD` on, in whole vectors, with at most `LONG` joined, up to 16 %
more."""
FEW = 4
"""Elements behind the axes, or joined where there are none, up to which kernels by hand, whose lanes are of many rows, have up to
75 % fewer cycles: schedules have no other lanes than these."""
JOINED = 5
"""Elements that are joined, times 2 for each element behind the axes, from which on kernels by hand have up to 50 % fewer cycles
for so `FEW` of these, however few rows there are: schedules work on those behind alone, an element that is joined at a time."""


def goes_in_rows(shape: Sequence[int], axes: Sequence[int]) -> bool:
    """Whether schedules are better than kernels by hand at joining the elements of axes."""
    behind = [n for n in shape[max(axes) + 1 :] if n > 1]
    joined = prod(shape[a] for a in axes)
    rows = prod(n for a, n in enumerate(shape[: max(axes)]) if a not in axes)
    if (prod(behind) if behind else joined) <= FEW and (rows >= LANES or (behind and joined >= JOINED << prod(behind))):
        return False
    broad = prod(behind) >= BROAD and behind[-1] % LANES == 0 and joined <= LONG
    return prod(behind) < ALIKE or broad


def largest_of_elements(w: AxisLoop, x: Tensor) -> Value:
    """A variable with the largest element of x, in its wide form; a NaN counts for nothing."""
    kind = WIDE[x.dtype]
    neutral = "-inf" if kind == "float32" else x.low
    best = w.start("best", neutral, kind)
    with w.each():
        w.k.assign(best, S.max(best, w.active(w.load("x"), neutral, kind)))
    w.join(best, across_max)
    return best.within(x.low, x.high) if x.is_integer else best


def sum_of_elements(w: AxisLoop, zero: int = 0) -> Value:
    """An int32 variable with the sum of the elements of x, which are integers, each plus a zero point."""
    k = w.k
    if not w.streams("x") or w.dtypes["x"] not in BYTES:
        return w.sum_of("acc", lambda: k.shifted(w.load("x"), zero), "int32")
    total = w.start("acc", 0, "int32")
    some = k.variable("some", type_of("int16").with_lanes(LANES))

    def before() -> None:
        k.define(some, everywhere(0, "int16"))

    def behind() -> None:
        k.assign(total, total + S.cast(some, "int32"))

    with w.each(before=before, behind=behind):
        k.assign(some, some + halves_of(w.raw("x")))
    if zero:
        k.assign(total, total + k.number(w.count * zero))
    return total


def _wide_of(dtype: str) -> str:
    return f"{'u' if dtype == 'uint8' else ''}int32"


def sums_of_bytes(w: AxisLoop) -> tuple[Value, Value]:
    """The sums of the bytes of x and of their squares, scalars, where lanes are joined. They must fit 32 bits."""
    k, dtype = w.k, w.dtypes["x"]
    zeros = S.vbcast(S.cast(0, _wide_of(dtype)), lanes=LANES // 4)
    sums, both = k.changing("sums", zeros), k.changing("both", zeros)
    with w.each():
        held = k.let(w.raw("x"))
        k.assign(sums, S.vqdpa(sums, held, everywhere(1, dtype)))
        k.assign(both, S.vqdpa(both, held, held))
    return k.held("total", S.i32(S.vrpadd(sums)[0])), k.held("squares", S.i32(S.vrpadd(both)[0]))


def squares(w: AxisLoop, term: Term, largest: int, mean: Value | None = None) -> tuple[Value, Value]:
    """The sum of squares of a term of the elements of x, less a mean, as uint32 words: 16 bits, and 32 above them.

    `largest`: the largest magnitude of what is squared. Around a mean the mean square is no more than that of half the
    range.
    """
    k = w.k
    usual = largest if mean is None else largest // 2 + 2
    if largest > 65535 or w.count * ((usual * usual >> 16) + 1) >= 1 << 32:
        raise LayerError(f"squares of {w.count} elements of up to {largest} do not fit 48 bits")
    lower, upper = w.start("lower", 0, "uint32"), w.start("upper", 0, "uint32")

    def part() -> Value:
        x = term(w.load("x"))
        return k.let(w.active(x if mean is None else x - mean, 0, "int32"))

    if w.count * usual * usual < 1 << 32:
        bytes_alone = w.dtypes["x"] in BYTES and not w.across and term is itself
        half = k.held("mean_half", S.cast(mean, "int16")) if bytes_alone and mean is not None else None
        with w.each():
            if half is None:
                own = part()
                k.assign(lower, lower + S.cast(own * own, "uint32"))
            else:
                own = k.let(halves_of(w.raw("x")) - half)
                k.assign(lower, lower + S.cast(product_of_halves(own, own), "uint32"))
    else:
        with w.each():
            own = part()
            square = k.held("square", S.cast(own * own, "uint32"))
            k.assign(lower, lower + (square & S.u32(0xFFFF)))
            k.assign(upper, upper + (square >> S.u32(16)))
            if w.count > 1 << 16:
                carry_pair(lower, upper)
    carry_pair(lower, upper)
    if w.across:
        across_sum_pair(lower, upper)
    return lower, upper


def itself(x: Value) -> Value:
    """The term that is an element as it is."""
    return x


def mean_and_squares(w: AxisLoop, span: int) -> tuple[Value, Value, Value]:
    """The mean of the elements of x, and `squares` around it; `span`: the largest element less the smallest."""
    dtype, number = w.dtypes["x"], w.count * (span // 2 + 2) ** 2
    if not w.streams("x") or dtype not in BYTES or number >= 1 << 32:
        mean = integer_mean(w)
        return mean, *squares(w, itself, span, mean)
    k, n = w.k, w.k.number(w.count)
    total, both = w.start("total", 0, _wide_of(dtype)), w.start("both", 0, _wide_of(dtype))
    ones = S.vbcast(S.cast(1, dtype), lanes=4 * LANES)
    with w.by_fours() as (a, b, c, d):
        one, two = (k.let(S.reinterpret(S.vzip(p, q), f"int16x{LANES}")) for p, q in ((a, b), (c, d)))
        quad = k.let(S.reinterpret(S.vzip(one, two), f"{dtype}x{4 * LANES}"))
        k.assign(total, S.vqdpa(total, quad, ones))
        k.assign(both, S.vqdpa(both, quad, quad))
    mean = k.changing("mean", S.cast(total, "int32"))
    divide_rounded(mean, n)
    # the result fits 32 bits, and so wraps to itself
    twice = k.held("twice", S.cast(total, "uint32") + S.cast(total, "uint32"))
    whole = k.held("whole", S.cast(mean, "uint32"))
    words = S.cast(both, "uint32") - whole * twice + whole * whole * S.cast(n, "uint32")
    lower, upper = k.changing("lower", words), w.start("upper", 0, "uint32")
    carry_pair(lower, upper)
    return mean, lower, upper


def divide(w: AxisLoop, lower: Value, upper: Value) -> tuple[Value, Value]:
    """Quotient and remainder of `upper` * 2^16 + `lower` by the number of elements, as two uint32 variables."""
    quotient, rest = w.start("quotient", 0, "uint32"), w.start("rest", 0, "uint32")
    divide_long(quotient, rest, lower, upper, w.filled(w.k.number(w.count), "uint32"))
    return quotient, rest


def integer_mean(w: AxisLoop, term: Term = itself, largest: int = 0) -> Value:
    """The mean of a term of the elements of x, integers, to the nearest integer, ties to even.

    `largest`: the largest magnitude of the term where it is not the operand itself, at most 65536.
    """
    tensor, k = w.kinds["x"], w.k
    if tensor is None:
        raise LayerError("means are of tensors")
    largest = largest or max(abs(tensor.low), abs(tensor.high))
    number = k.number(w.count)
    if w.count * largest < 2**31:
        mean = sum_of_elements(w) if term is itself else w.sum_of("mean", lambda: term(w.load("x")), "int32")
        divide_rounded(mean, number)
        return mean
    if largest > 65536 or w.count >= 1 << 30:
        raise LayerError(f"means of {w.count} elements of up to {largest} have no kernel")
    # made non-negative by adding an even number, which keeps ties
    pair = w.sum_pair(lambda: term(w.load("x")) + 65536)
    high, low = (k.held("unsigned", S.cast(word, "uint32")) for word in pair)
    whole, left = w.start("whole", 0, "uint32"), w.start("left", 0, "uint32")
    divide_long(whole, left, low, high, w.filled(number, "uint32"))
    mean = k.changing("mean", S.cast(whole, "int32"))
    k.assign(mean, mean - 65536 + clamp(S.cast(left + left, "int32") - number + (mean & 1), 0, 1))
    return mean

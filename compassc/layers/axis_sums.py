"""Sums of integers over the elements of a position: of the elements themselves and of their squares, and means."""

from __future__ import annotations

from compassc.graph import LayerError
from compassc.layers.axes import AxisLoop
from compassc.layers.byte_functions import BYTES
from compassc.layers.source import LANES


def sum_of_elements(w: AxisLoop, result: str, name: str, zero: int = 0) -> None:
    """An int32 variable with the sum of an integer operand's elements, each plus a zero point."""
    if not w.streams(name) or w.dtypes[name] not in BYTES:
        w.sum_of(result, lambda: w.k.shifted(w.load(name), zero).name, "int32")
        return
    w.start(result, "0", "int32")
    w.around = ([f"some = {w.filled('0', 'int16')}"], [f'{result} = {result} + S.cast(some, "int32")'])
    with w.each():
        w.k.do(f"some = some + halves_of({w.raw(name)})")
    w.around = ([], [])
    if zero:
        w.k.do(f"{result} = {result} + {w.k.scalar(w.count * zero)}")


def sums_of_bytes(w: AxisLoop, name: str) -> None:
    """`total` and `squares`: the sums of an operand's bytes and of their squares, scalars, where lanes are joined.

    They must fit 32 bits.
    """
    k, dtype = w.k, w.dtypes[name]
    wide = f"{'u' if dtype == 'uint8' else ''}int32"
    for sums in ("sums", "both"):
        k.do(f'{sums} = S.vbcast(S.cast(0, "{wide}"), lanes={LANES // 4})')
    with w.each():
        held = k.let(w.raw(name)).name
        k.do(f'sums = S.vqdpa(sums, {held}, S.vbcast(S.cast(1, "{dtype}"), lanes={LANES}))')
        k.do(f"both = S.vqdpa(both, {held}, {held})")
    k.do("total = S.i32(S.vrpadd(sums)[0])")
    k.do("squares = S.i32(S.vrpadd(both)[0])")


def squares(w: AxisLoop, term: str, largest: int, around_mean: bool = False) -> None:
    """`lower` and `upper`: the sum of squares of a term of x, `{x}`, in uint32 words of 16 and 32 bits.

    `largest`: its largest magnitude. `around_mean`: the term is an element less the mean; then the mean square is
    no more than that of half the range.
    """
    k = w.k
    usual = largest // 2 + 2 if around_mean else largest
    if largest > 65535 or w.count * ((usual * usual >> 16) + 1) >= 1 << 32:
        raise LayerError(f"squares of {w.count} elements of up to {largest} do not fit 48 bits")
    w.start("lower", "0", "uint32")
    w.start("upper", "0", "uint32")
    if w.count * usual * usual < 1 << 32:
        _short_squares(w, term)
        return
    with w.each():
        part = k.let(w.active(term.format(x=w.load("x").name), "0", "int32"), "int32").name
        k.do(f'square = S.cast({part} * {part}, "uint32")')
        k.do("lower = lower + (square & S.u32(0xFFFF))")
        k.do("upper = upper + (square >> S.u32(16))")
        if w.count > 1 << 16:
            k.do("carry_pair(lower, upper)")
    k.do("carry_pair(lower, upper)")
    if w.across:
        k.do("across_sum_pair(lower, upper)")


def _short_squares(w: AxisLoop, term: str) -> None:
    """`squares` where they fit 32 bits together."""
    k = w.k
    halves = term == "{x} - mean" and not w.across and w.dtypes["x"] in BYTES
    if halves:
        k.do('mean_half = S.cast(mean, "int16")')
    with w.each():
        if halves:
            part = k.let(f"halves_of({w.raw('x')}) - mean_half").name
            k.do(f'lower = lower + S.cast(product_of_halves({part}, {part}), "uint32")')
        else:
            part = k.let(w.active(term.format(x=w.load("x").name), "0", "int32"), "int32").name
            k.do(f'lower = lower + S.cast({part} * {part}, "uint32")')
    k.do("carry_pair(lower, upper)")
    if w.across:
        k.do("across_sum_pair(lower, upper)")


def mean_and_squares(w: AxisLoop, span: int) -> None:
    """`mean` of the elements of x, and `squares` around it; `span`: the largest element less the smallest."""
    dtype, number = w.dtypes["x"], w.count * (span // 2 + 2) ** 2
    if not w.streams("x") or dtype not in BYTES or number >= 1 << 32:
        integer_mean(w, "x")
        squares(w, "{x} - mean", span, around_mean=True)
        return
    k, n = w.k, w.k.scalar(w.count)
    wide = f"{'u' if dtype == 'uint8' else ''}int32"
    for sums in ("total", "both"):
        w.start(sums, "0", wide)
    with w.by_fours() as (a, b, c, d):
        one, two = (k.let(f'S.reinterpret(S.vzip({p}, {q}), "int16x{LANES}")').name for p, q in ((a, b), (c, d)))
        quad = k.let(f'S.reinterpret(S.vzip({one}, {two}), "{dtype}x{4 * LANES}")').name
        k.do(f'total = S.vqdpa(total, {quad}, S.vbcast(S.cast(1, "{dtype}"), lanes={4 * LANES}))')
        k.do(f"both = S.vqdpa(both, {quad}, {quad})")
    k.do('mean = S.cast(total, "int32")')
    k.do(f"divide_rounded(mean, {n})")
    # the result fits 32 bits, and so wraps to itself
    k.do('twice = S.cast(total, "uint32") + S.cast(total, "uint32")')
    k.do('whole = S.cast(mean, "uint32")')
    k.do(f'lower = S.cast(both, "uint32") - whole * twice + whole * whole * S.cast({n}, "uint32")')
    w.start("upper", "0", "uint32")
    k.do("carry_pair(lower, upper)")


def divide(w: AxisLoop, quotient: str, rest: str) -> None:
    """Quotient and remainder of `upper` * 2^16 + `lower` by the number of elements, as two uint32 variables."""
    w.start(quotient, "0", "uint32")
    w.start(rest, "0", "uint32")
    number = w.filled(w.k.scalar(w.count), "uint32")
    w.k.do(f"divide_long({quotient}, {rest}, lower, upper, {number})")


def integer_mean(w: AxisLoop, name: str, term: str = "{x}", largest: int = 0) -> None:
    """`mean`: that of a term of an integer operand, to the nearest integer, ties to even.

    `largest`: the largest magnitude of the term where it is not the operand itself, at most 65536.
    """
    tensor, k = w.kinds[name], w.k
    if tensor is None:
        raise LayerError("means are of tensors")
    largest = largest or max(abs(tensor.low), abs(tensor.high))
    number = k.scalar(w.count)
    if w.count * largest < 2**31:
        if term == "{x}":
            sum_of_elements(w, "mean", name)
        else:
            w.sum_of("mean", lambda: term.format(x=w.load(name).name), "int32")
        k.do(f"divide_rounded(mean, {number})")
        return
    if largest > 65536 or w.count >= 1 << 30:
        raise LayerError(f"means of {w.count} elements of up to {largest} have no kernel")
    # made non-negative by adding an even number, which keeps ties
    w.sum_pair(lambda: f"{term.format(x=w.load(name).name)} + 65536")
    for word in ("high", "low"):
        k.do(f'unsigned_{word} = S.cast({word}, "uint32")')
    w.start("whole", "0", "uint32")
    w.start("left", "0", "uint32")
    k.do(f"divide_long(whole, left, unsigned_low, unsigned_high, {w.filled(number, 'uint32')})")
    k.do('mean = S.cast(whole, "int32")')
    k.do(f'mean = mean - 65536 + clamp(S.cast(left + left, "int32") - {number} + (mean & 1), 0, 1)')

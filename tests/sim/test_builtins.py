"""Every builtin of the headers against its meaning in NumPy, on random operands mixed with edge values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from builtin_rows import (
    ALL,
    BF16,
    F16,
    F32,
    FLOATS,
    I8,
    I16,
    I32,
    INTS,
    SIGNED,
    SIGNED_OF,
    U8,
    U16,
    U32,
    UNSIGNED,
    UNSIGNED_OF,
    WIDE,
    Array,
    Row,
    Vector,
    bit_count,
    bits_of,
    compress,
    dot,
    erf,
    exp,
    float_class,
    fma,
    from_bits,
    in_double,
    lane0,
    leading,
    limits,
    number_of_two,
    pairs,
    round_even,
    rsqrt,
    sat,
    select,
    shift_of,
    shuffle,
    spread,
    table,
    to_int,
    tree_sum,
    truncated_quotient,
    wide,
    wrap,
)
from sim_device import Bench, compile_kernel

ROWS_PER_UNIT = 60
VECTORS = 40


def same(v: Vector, expression: str, reference: Any, y: Vector | None = None, out: Vector | None = None) -> Row:
    out = out or v
    return Row(expression, v, y or v, out, out, reference, v.mask)


def mixed(expression: str, x: Vector, y: Vector, out: Vector, reference: Any) -> Row:
    return Row(expression, x, y, out, out, reference, x.mask)


def integers(v: Vector) -> Iterator[Row]:
    def quotient(x: Array, y: Array) -> Array:
        return np.where(y == 0, 0, sat(truncated_quotient(x, y), v))

    def remainder(x: Array, y: Array) -> Array:
        return np.where(y == 0, 0, wide(x) - truncated_quotient(x, y) * wide(y))

    yield same(v, "__vadd(r, x, y, m)", lambda x, y, r, m: select(m, wrap(wide(x) + wide(y), v), r))
    yield same(v, "__vsub(r, x, y, m)", lambda x, y, r, m: select(m, wrap(wide(x) - wide(y), v), r))
    yield same(v, "x * y", lambda x, y, r, m: wrap(wide(x) * wide(y), v))
    yield same(v, "__vdiv(r, x, y, m)", lambda x, y, r, m: select(m, quotient(x, y), r))
    yield same(v, "__vmod(r, x, y, m)", lambda x, y, r, m: select(m, remainder(x, y), r))
    yield same(v, "__vmax(r, x, y, m)", lambda x, y, r, m: select(m, np.maximum(x, y), r))
    yield same(v, "__vmin(r, x, y, m)", lambda x, y, r, m: select(m, np.minimum(x, y), r))
    yield same(v, "__vabss(r, x, m)", lambda x, y, r, m: select(m, sat(np.abs(wide(x)), v), r))
    signs = (SIGNED_OF[v], UNSIGNED_OF[v])
    for name, op in (("add", np.add), ("sub", np.subtract)):
        yield same(v, f"__v{name}h(x, y)", lambda x, y, r, m, op=op: pairs(x, y, op, v))
        for a, b in itertools.product(signs, signs):
            saturated = lambda x, y, r, m, op=op: select(m, sat(op(wide(x), wide(y)), v), r)
            yield mixed(f"__v{name}s(r, x, y, m)", a, b, v, saturated)
    yield same(v, "__vmaxh(x, y)", lambda x, y, r, m: pairs(x, y, np.maximum, v))
    yield same(v, "__vminh(x, y)", lambda x, y, r, m: pairs(x, y, np.minimum, v))


def floats(v: Vector) -> Iterator[Row]:
    def by_float(op: Any, *operands: Array) -> Array:
        return op(*[a.astype(np.float32) for a in operands]).astype(v.dtype)

    for sign, op in (("+", np.add), ("-", np.subtract), ("*", np.multiply)):
        yield same(v, f"x {sign} y", lambda x, y, r, m, op=op: by_float(op, x, y))
    yield same(v, "__vmul(r, x, y, m)", lambda x, y, r, m: select(m, by_float(np.multiply, x, y), r))
    yield same(v, "__vmax(r, x, y, m)", lambda x, y, r, m: select(m, number_of_two(x, y, np.maximum), r))
    yield same(v, "__vmin(r, x, y, m)", lambda x, y, r, m: select(m, number_of_two(x, y, np.minimum), r))
    yield same(v, "__vabs(r, x, m)", lambda x, y, r, m: select(m, np.abs(x), r))
    yield same(v, "__vrint(r, x, m)", lambda x, y, r, m: select(m, by_float(np.rint, x), r))
    yield same(v, "__vclass(r, x, m)", lambda x, y, r, m: select(m, float_class(x, v), r), out=SIGNED_OF[v])


def arithmetic() -> Iterator[Row]:
    for v in INTS:
        yield from integers(v)
    for v in FLOATS:
        yield from floats(v)
    yield same(F32, "__vdiv(r, x, y, m)", lambda x, y, r, m: select(m, x / y, r))
    yield same(F32, "__vfma(r, x, y, m)", lambda x, y, r, m: select(m, fma(x, y, r), r))
    for v in SIGNED:
        yield same(v, "__vabs(r, x, m)", lambda x, y, r, m: select(m, np.abs(wide(x)), r), out=UNSIGNED_OF[v])


def products(v: Vector, b: Vector) -> Iterator[Row]:
    """Products of elements of `v` and `b`, which differ in sign at most, in the next wider type and sums of them."""
    unsigned = v in UNSIGNED and b in UNSIGNED
    out = WIDE[v] if unsigned else WIDE[SIGNED_OF[v]]
    low, high = slice(0, v.lanes // 2), slice(v.lanes // 2, None)
    for name, part in (("__vmul", low), ("__vmulh", high)):
        product = lambda x, y, r, m, p=part: select(m[:, p], wide(x[:, p]) * wide(y[:, p]), r)
        yield mixed(f"{name}(r, x, y, m)", v, b, out, product)
    sums = [("d", 2, out)] + [("qd", 4, U32 if unsigned else I32)] * (v in (I8, U8))
    for letters, count, total in sums:
        plain = lambda x, y, r, m, n=count, to=total: dot(x, y, m, n, np.int64(0), to, r)
        added = lambda x, y, r, m, n=count, to=total: dot(x, y, m, n, wide(r), to, None)
        yield mixed(f"__v{letters}ot(r, x, y, m)", v, b, total, plain)
        yield mixed(f"__v{letters}pa(r, x, y, m)", v, b, total, added)


def widening() -> Iterator[Row]:
    for v in (I8, I16, U8, U16):
        for b in (SIGNED_OF[v], UNSIGNED_OF[v]):
            yield from products(v, b)
    for name, part in (("__vmul", slice(0, 4)), ("__vmulh", slice(4, 8))):
        for v, twice in ((I32, np.int64), (U32, np.uint64)):
            halves = lambda x, y, r, m, p=part, to=twice: select(
                np.repeat(m[:, p], 2, axis=1), (x[:, p].astype(to) * y[:, p].astype(to)).view(r.dtype), r
            )
            yield same(v, f"{name}(r, x, y, m)", halves)
    for v, letter in ((I8, "s"), (I16, "s"), (U8, "u"), (U16, "u")):
        for part, cut in (("l", slice(0, v.lanes // 2)), ("h", slice(v.lanes // 2, None))):
            yield same(
                v, f"__v{letter}xt{part}(x)", lambda x, y, r, m, c=cut, o=WIDE[v]: x[:, c].astype(o.dtype), out=WIDE[v]
            )


def shifts() -> Iterator[Row]:
    def lsl(x: Array, s: Array, v: Vector) -> Array:
        return np.where(s >= v.bits, 0, wide(x) << np.minimum(s, 31))

    for v in INTS:
        for y in (SIGNED_OF[v], UNSIGNED_OF[v]):

            def row(name: str, f: Any, v: Vector = v, y: Vector = y) -> Iterator[Row]:
                yield same(v, f"{name}(x, y)", lambda x, s, r, m: f(x, shift_of(s, v)), y)
                yield same(v, f"{name}(r, x, y, m)", lambda x, s, r, m: select(m, f(x, shift_of(s, v)), r), y)

            yield from row("__vlsl", lambda x, s, v=v: wrap(lsl(x, s, v), v))
            right, rounded = ("__vasr", "__vasrr") if v in SIGNED else ("__vlsr", "__vlsrr")
            yield from row(right, lambda x, s, v=v: wrap(wide(x) >> s, v))
            yield from row(rounded, lambda x, s, v=v: wrap(round_even(wide(x), s), v))
            if v in SIGNED:
                yield from row("__vsasl", lambda x, s, v=v: sat(wide(x) << np.minimum(s, 31), v))
            yield same(
                v,
                "__vror(x, y)",
                lambda x, s, r, m, v=v: from_bits(
                    np.take_along_axis(
                        bits_of(x, v),
                        (np.arange(v.bits) - (s.view(UNSIGNED_OF[v].dtype).astype(np.int64) % v.bits)[..., None])
                        % v.bits,
                        axis=-1,
                    ),
                    v,
                ),
                y,
            )
    for v in (I16, I32, U16, U32):
        letter = "a" if v in SIGNED else "l"
        for suffix, narrow, unsigned in (("", I8, U8), ("_h", I16, U16)):
            if narrow.bits >= v.bits:
                continue
            q = v.bits // narrow.bits
            for mark, shift in (("", lambda x, s: wide(x) >> s), ("r", lambda x, s: round_even(wide(x), s))):
                plain = narrow if v in SIGNED else unsigned
                for expression, out, f in (
                    (f"__vnsr{letter}{mark}{suffix}", plain, wrap),
                    (f"__vnsr{letter}s{mark}{suffix}_s", narrow, sat),
                    (f"__vnsr{letter}s{mark}{suffix}_u", unsigned, sat),
                ):
                    yield Row(
                        f"{expression}(x, y, m)",
                        v,
                        UNSIGNED_OF[v],
                        out,
                        out,
                        lambda x, s, r, m, v=v, q=q, o=out, shift=shift, f=f: spread(
                            np.where(m, f(shift(x, shift_of(s, v)), o), 0), q, o
                        ),
                        v.mask,
                    )


def logic() -> Iterator[Row]:
    compares = (
        ("eq", np.equal),
        ("ne", np.not_equal),
        ("ge", np.greater_equal),
        ("gt", np.greater),
        ("le", np.less_equal),
        ("lt", np.less),
    )
    for v in INTS:
        for name, op in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
            yield same(v, f"__v{name}(r, x, y, m)", lambda x, y, r, m, op=op: select(m, op(x, y), r))
        yield same(v, "__vinv(r, x, m)", lambda x, y, r, m: select(m, ~x, r))
        yield same(v, "__vbclr(r, x, y, m)", lambda x, y, r, m: select(m, x & ~y, r))
        yield same(v, "__vbset(x, y)", lambda x, y, r, m: x | ~y)
        yield same(v, "__vbrevs(r, x, m)", lambda x, y, r, m, v=v: select(m, from_bits(bits_of(x, v)[..., ::-1], v), r))
        yield same(v, "__vclz(r, x, m)", lambda x, y, r, m, v=v: select(m, leading(bits_of(x, v)), r).astype(r.dtype))
        for name, op in compares:
            c = "cneq" if name == "ne" else "c" + name
            yield same(v, f"__vsel((x), (r), __v{c}(x, y, m))", lambda x, y, r, m, op=op: select(m & op(x, y), x, r))
    for v in SIGNED:
        u = UNSIGNED_OF[v]
        yield same(v, "__vpcnt(r, x, m)", lambda x, y, r, m, v=v: select(m, bit_count(x, v), r).astype(r.dtype), out=u)
        yield same(
            v,
            "__vcls(r, x, m)",
            lambda x, y, r, m, v=v: select(
                m, leading(bits_of(np.where(x < 0, ~x, x).astype(v.dtype), v)) - 1, r
            ).astype(r.dtype),
            out=u,
        )
    for v in FLOATS:
        for name, op in compares:
            yield same(
                v,
                f"__vsel((x), (r), __vq{name}(x, y, m))",
                lambda x, y, r, m, op=op: select(m & op(x.astype(np.float32), y.astype(np.float32)), x, r),
            )
    for v in ALL:
        yield same(v, "__vsel(x, y, m)", lambda x, y, r, m: select(m, x, y))
        yield same(v, "__vbcast(r, x[1], m)", lambda x, y, r, m: select(m, x[:, 1:2], r))
        for expression, f in (
            (
                ("__vand(m, M2, M3)", lambda m, a, b: m & a & b),
                ("__vor(m, M2, M3)", lambda m, a, b: (m | a) & b),
                ("__vxor(m, M2, M3)", lambda m, a, b: (m ^ a) & b),
                ("__vnand(m, M2, M3)", lambda m, a, b: b & ~(m & a)),
                ("__vnor(m, M2, M3)", lambda m, a, b: b & ~(m | a)),
                ("__vbclr(m, M2, M3)", lambda m, a, b: b & m & ~a),
                ("__vbset(m, M2, M3)", lambda m, a, b: b & (m | ~a)),
                ("__vinv(m, M3)", lambda m, a, b: b & ~m),
                ("(~m)", lambda m, a, b: ~m),
            )
            if v in UNSIGNED
            else ()
        ):
            text = f"__vsel(x, r, {expression})"
            text = text.replace("M2", "__vclt(x, y, ALL_TRUE_w)").replace("M3", "__vclt(y, r, ALL_TRUE_w)")
            yield same(v, text, lambda x, y, r, m, f=f: select(f(m, x < y, y < r), x, r))


def movement() -> Iterator[Row]:
    moves: dict[str, Callable[[int, int], int]] = {
        "__vexte": lambda i, n: 2 * i,
        "__vexto": lambda i, n: 2 * i + 1,
        "__vextl": lambda i, n: i if i < n // 2 else n // 2 + i,
        "__vexth": lambda i, n: n // 2 + i if i < n // 2 else n + i,
        "__vzipl": lambda i, n: i % 2 * n + i // 2,
        "__vziph": lambda i, n: i % 2 * n + n // 2 + i // 2,
        "__vzipe": lambda i, n: i % 2 * n + i // 2 * 2,
        "__vzipo": lambda i, n: i % 2 * n + i // 2 * 2 + 1,
    }
    for v in ALL:
        index = UNSIGNED_OF[SIGNED_OF[v]]
        for name, move in moves.items():
            yield same(v, f"{name}(x, y)", shuffle(move))
        for s in (0, 1, v.lanes - 1):
            yield same(v, f"__vsldl(x, y, {s})", shuffle(lambda i, n, s=s: i + s))
            yield same(v, f"__vshfl(x, {s})", shuffle(lambda i, n, s=s: (i + s) % n))
        yield same(v, "__vrevs(x)", shuffle(lambda i, n: n - 1 - i))
        yield same(v, "__vreplic(x, 3)", shuffle(lambda i, n: 3))
        yield same(v, "__vcompt(x, m)", lambda x, y, r, m: compress(x, m, np.zeros_like(x)))
        yield same(v, "__vcompc(x, y, m)", lambda x, y, r, m: compress(x, m, y))
        yield same(
            v,
            "__vperm(x, r, y & (y >> 1))" if index is U8 else "__vperm(x, r, y)",
            (lambda x, y, r, m: table(2, lambda a, b, c: [a, b])(x, y & (y >> 1), r, m))
            if index is U8
            else table(2, lambda a, b, c: [a, b]),
            index,
        )
        yield same(v, "__vtbl(x, r, __vrevs(x), y)", table(3, lambda a, b, c: [a, b, c]), index)
        yield same(v, "__vtbl(x, r, __vrevs(x), r, y)", table(4, lambda a, b, c: [a, b, c, b]), index)
        yield same(v, "__vsel(x, y, __vprevs(m))", lambda x, y, r, m: select(m[:, ::-1], x, y))


def narrowings() -> Iterator[Row]:
    """Two vectors of 32-bit elements to one of 16-bit floats."""
    for v in (F32, I32):
        half = lambda x, y, r, m: np.concatenate([x, y], 1).astype(np.float64).astype(np.float16)
        yield same(v, "__vcvtd(x, y)", half, out=F16)
        yield same(v, "__vcvtd_tbf16(x, y)", lambda x, y, r, m: bfloat(np.concatenate([x, y], 1)), out=BF16)


EVEN, ODD, LOW, HIGH = slice(0, None, 2), slice(1, None, 2), slice(0, 8), slice(8, 16)


def widened(v: Vector) -> Iterator[Row]:
    """16-bit floats computed with in float32."""
    f32 = np.float32
    for letter, part in (("e", EVEN), ("o", ODD), ("l", LOW), ("h", HIGH)):
        whole = lambda x, y, r, m, p=part: to_int(np.rint(x[:, p].astype(f32)))
        yield same(v, f"__vcvtu{letter}_tfp32(x)", lambda x, y, r, m, p=part: x[:, p].astype(f32), out=F32)
        yield same(v, f"__vcvtu{letter}_tw(x)", whole, out=I32)
    for name, part in (("__vfmae", EVEN), ("__vfmao", ODD)):
        added = lambda x, y, r, m, p=part: select(m, r + x[:, p].astype(f32) * y[:, p].astype(f32), r)
        yield Row(f"{name}(r, x, y, m)", v, v, F32, F32, added, "bool8")
    yield same(v, "__vqdot(r, x, y, m)", lambda x, y, r, m: quads(x, y, r, m, 0.0), out=F32)
    yield same(v, "__vqdpa(r, x, y, m)", lambda x, y, r, m: quads(x, y, r, m, 1.0), out=F32)

    def total(x: Array, y: Array, r: Array, m: Array) -> Array:
        kept = np.where(m, x.astype(f32), f32(0))
        return lane0(tree_sum(kept[:, LOW] + kept[:, HIGH])[:, 0], F32)

    yield same(v, "__vrpadd(r, x, m)", total, out=F32)


def reductions() -> Iterator[Row]:
    f32 = np.float32
    yield same(F32, "__vrpadd(r, x, m)", lambda x, y, r, m: lane0(tree_sum(np.where(m, x, f32(0)))[:, 0], F32))
    for v in INTS:
        low, high = limits(v)
        yield same(v, "__vrpadd(r, x, m)", lambda x, y, r, m, v=v: lane0(wrap(np.where(m, wide(x), 0).sum(1), v), v))
        yield same(v, "__vrpmax(r, x, m)", lambda x, y, r, m, v=v, e=low: lane0(np.where(m, x, e).max(1), v))
        yield same(v, "__vrpmin(r, x, m)", lambda x, y, r, m, v=v, e=high: lane0(np.where(m, x, e).min(1), v))
    for v in FLOATS:
        for name, f in (("__vrpmax", np.fmax), ("__vrpmin", np.fmin)):
            extreme = lambda x, y, r, m, v=v, f=f: lane0(
                f.reduce(np.where(m, x.astype(f32), f32("nan")), axis=1).astype(v.dtype), v
            )
            yield same(v, f"{name}(r, x, m)", extreme)


def conversions() -> Iterator[Row]:
    f32 = np.float32
    yield same(I32, "__vcvt(x)", lambda x, y, r, m: x.astype(f32), out=F32)
    yield same(F32, "__vcvt(x)", lambda x, y, r, m: to_int(np.rint(x)), out=I32)
    yield same(F32, "convert_int8(x)", lambda x, y, r, m: to_int(x), out=I32)
    yield same(F16, "__vcvt(x)", lambda x, y, r, m: x.astype(f32).astype(r.dtype), out=BF16)
    yield same(BF16, "__vcvt(x)", lambda x, y, r, m: x.astype(f32).astype(r.dtype), out=F16)
    yield from narrowings()
    for v in (F16, BF16):
        yield from widened(v)
    yield from reductions()


def bfloat(x: Array) -> Array:
    """Rounded once to bfloat16: what float loses of an int is kept as a last bit that decides ties."""
    if x.dtype == np.float32:
        return x.astype(BF16.dtype)
    near = x.astype(np.float32)
    bits = near.view(np.uint32) - ((np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))) * 1).astype(
        np.uint32
    )
    inexact = near.astype(np.float64) != x
    return np.where(inexact, bits | np.uint32(1), bits).astype(np.uint32).view(np.float32).astype(BF16.dtype)


def quads(x: Array, y: Array, r: Array, m: Array, keep: float) -> Array:
    products = np.where(m, x.astype(np.float64) * y.astype(np.float64), 0.0).reshape(len(x), 4, 4)
    total = ((products[..., 0] + products[..., 1]) + products[..., 2]) + products[..., 3]
    out = r.copy()
    start = r[:, ::2].astype(np.float64) if keep else 0.0
    out[:, ::2] = np.where(m.reshape(len(x), 4, 4).any(-1), (start + total).astype(np.float32), r[:, ::2])
    return out


def functions() -> Iterator[Row]:
    table_of: dict[str, Callable[[Array], Array]] = {
        "vexp": exp,
        "vrsqrt": rsqrt,
        "vsqrt": np.sqrt,
        "vfloor": np.floor,
        "vceil": np.ceil,
        "vlog": in_double(np.log),
        "vtanh": in_double(np.tanh),
        "vsin": in_double(np.sin),
        "vcos": in_double(np.cos),
        "vexp2": in_double(np.exp2),
        "verf": in_double(erf),
    }
    for v in FLOATS:
        for name, f in table_of.items():
            yield same(v, f"{name}(x)", lambda x, y, r, m, f=f: f(x.astype(np.float32)).astype(x.dtype))
        yield same(
            v,
            "vpow(x, y)",
            lambda x, y, r, m: np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32).astype(x.dtype),
        )


GROUPS = {f.__name__: list(f()) for f in (arithmetic, widening, shifts, logic, movement, conversions, functions)}
UNITS = [(name, at) for name, rows in GROUPS.items() for at in range(0, len(rows), ROWS_PER_UNIT)]


@np.errstate(over="ignore")
def operands(v: Vector, rng: np.random.Generator, small: bool) -> Array:
    """Vectors of `v`: edge values in every combination of lanes that the random choice brings, and random bits."""
    shape = (VECTORS, v.lanes)
    if v in FLOATS:
        edges = np.array(
            [
                0.0,
                -0.0,
                1,
                -1,
                0.5,
                1.5,
                2.5,
                -2.5,
                3.1,
                1e-3,
                100,
                70000,
                np.inf,
                -np.inf,
                np.nan,
                88.5,
                -87.5,
                2.0**31,
                -(2.0**31),
                1e-40,
                65504,
                1e30,
            ]
        ).astype(v.dtype)
        plain = rng.normal(0, 8, shape).astype(v.dtype)
    else:
        low, high = limits(v)
        edges = np.array(
            [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, high, high - 1, low, low + 1, -1 if low else 5], dtype=v.dtype
        )
        plain = rng.integers(low, high, shape, endpoint=True).astype(v.dtype)
        if small:
            plain = rng.integers(0, v.bits + 3, shape).astype(v.dtype)
    return np.where(rng.random(shape) < 0.5, plain, rng.choice(edges, shape))


@lru_cache(maxsize=1)
def unit_text(rows: tuple[Row, ...]) -> str:
    """Kernel text with one entry per row."""
    parts = []
    for i, row in enumerate(rows):
        parts.append(f"""__COMPASS_ENTRY(entry{i}) {{
  for (int i = 0; i < {VECTORS}; i++) {{
    {row.x.name} x = __COMPASS_POINTER(__global {row.x.name}, 0)[i];
    {row.y.name} y = __COMPASS_POINTER(__global {row.y.name}, 1)[i];
    {row.r.name} r = __COMPASS_POINTER(__global {row.r.name}, 2)[i];
    {row.mask} m = __COMPASS_POINTER(__global {row.mask}, 3)[i];
    __COMPASS_POINTER(__global {row.out.name}, 4)[i] = {row.expression};
  }}
}}""")
    return "\n".join(parts)


def agree(got: Array, want: Array) -> Array:
    """Lane by lane: the same bits, or both NaN."""
    raw = f"u{got.itemsize}"
    equal = got.view(raw) == np.ascontiguousarray(want).view(raw)
    if got.dtype.kind in "fV" or got.dtype == BF16.dtype:
        equal |= np.isnan(got.astype(np.float32)) & np.isnan(want.astype(np.float32))
    return equal


@pytest.mark.parametrize(("group", "start"), UNITS, ids=[f"{name}-{at}" for name, at in UNITS])
def test_builtins_mean_what_the_dialect_says(shared: Bench, group: str, start: int) -> None:
    rows = tuple(GROUPS[group][start : start + ROWS_PER_UNIT])
    entries = shared.load(compile_kernel(unit_text(rows)), [f"entry{i}" for i in range(len(rows))])
    wrong = []
    for i, row in enumerate(rows):
        rng = np.random.default_rng(i)
        x, r = operands(row.x, rng, False), operands(row.r, rng, False)
        y = operands(row.y, rng, group == "shifts" or "vtbl" in row.expression or "vperm" in row.expression)
        lanes = int(row.mask[4:])
        mask = rng.choice(np.array([0, 1, -1, -2, 2], np.int8), (VECTORS, lanes))
        mask[0], mask[1] = -1, 0
        if "vrpm" in row.expression:
            mask[:, 1] = 1
        at = 0x0200_0000
        places = [at + k * 0x1_0000 for k in range(5)]
        for place, array in zip(places, (x, y, r, mask), strict=False):
            shared.write(place, array.tobytes())
        shared.parameters(*places)
        shared.worker.dispatch(*shared.chain(entries[f"entry{i}"], tasks=1))
        got = shared.read(places[4], np.zeros((VECTORS, row.out.lanes), row.out.dtype))
        with np.errstate(all="ignore"):
            want = np.asarray(row.reference(x, y, r, (mask & 1).astype(bool)), dtype=row.out.dtype)
        bad = np.argwhere(~agree(got, want))
        if len(bad):
            k, lane = bad[0]
            values = [a[k, min(lane, a.shape[1] - 1)] for a in (x, y, r)]
            wrong.append(
                f"{row.id}: {len(bad)} lanes, first vector {k} lane {lane}: x, y, r = {values}, "
                f"got {got[k, lane]!r}, want {want[k, lane]!r}"
            )
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("march", ["x86-64-v2", "x86-64-v3", "skylake-avx512", "icelake-client", "sapphirerapids"])
def test_the_headers_are_in_order_for_every_kind_of_host(march: str) -> None:
    """Each has other instructions that the headers choose; the result need not run here."""
    compile_kernel("void f(__global half16 *x) { *x = __vmax(*x, x[0], x[1], ALL_TRUE_h); }", march=march)

"""Kernels of matrix products of two run-time operands: the columns of the result are the lanes.

A tile of rows is worked on for 32 columns at once, a chunk of the depth after the other, both operands' parts in LSRAM.
Floats are summed up in float32. Bytes without zero points are staged as they are: four neighbours of the depth share a
32-bit word, which a dot product takes. Other integers are staged with their zero points added, as int16, two in a word;
those of 16 bits are cut in two bytes, whose products have sums of their own (of 1, 256 and 65536), so that all of them
fit 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import requantise_rounded, requantise_to
from compassc.layers.families.linear.formats import floats_only
from compassc.layers.families.linear.tiles import ITEM, PIXEL
from compassc.layers.kernels import follow
from compassc.layers.machine import Tiles, costs
from compassc.layers.pairs import finish_ahead, finish_pair, held_pair, requantise_pair, saturated_pair
from compassc.layers.source import LANES, Kernel, KernelSource, finish, named

PARTS = 4
REGISTER = LANES // PARTS
BYTES, SHORTS, FLOATS = "int8", "int16", "float32"
PER_WORD = {BYTES: 4, SHORTS: 2, FLOATS: 1}
"""The staging formats of operands, and the elements of the depth per word."""
PRODUCTS = {BYTES: "S.vqdpa({acc}, {x}, {w})", SHORTS: "S.vdpa({acc}, {x}, {w})", FLOATS: "S.fma({acc}, {x}, {w})"}


@dataclass(frozen=True)
class Operand:
    """One side of a product: `planes` is 2 where its integers are cut in bytes; its smallest and largest number."""

    tensor: Tensor
    transposed: bool
    planes: int = 1
    low: int = 0
    high: int = 0
    zero: int = 0


@dataclass(frozen=True)
class Product:
    """A matrix product [M,K] x [K,N] for every batch."""

    m: int
    n: int
    k: int
    offsets: Array
    """First element of both operands, per batch."""
    left: Operand
    right: Operand
    staged: str

    @property
    def sums(self) -> int:
        return self.left.planes + self.right.planes - 1

    @property
    def words(self) -> int:
        """32-bit words of a chunk of the depth."""
        return 64 if self.sums == 1 and self.staged != BYTES else 32

    @property
    def depth(self) -> int:
        """Elements of a chunk of the depth."""
        return self.words * PER_WORD[self.staged]

    @cached_property
    def tile(self) -> int:
        """Rows of a tile, by an estimate of cycles."""
        most = 16 if self.sums > 1 else 64 if self.staged == BYTES else 32
        least = 16 if self.left.transposed else 8
        return min((rows for rows in (64, 32, 16, 8) if least <= rows <= most), key=self._cycles)

    def _cycles(self, tile: int) -> float:
        """About the cycles of the TEC with most work: transfers of both operands, their words, and products."""
        cost, chunks, words = costs(), -(-self.k // self.depth), -(-self.k // PER_WORD[self.staged])
        direct = self.staged == FLOATS and self.right.tensor.dtype == "float32" and not self.right.transposed
        right = cost.transfers(4 * LANES * words, chunks) + words * (
            0 if direct else 40 if self.right.transposed else 12
        )
        planes = self.left.planes * self.right.planes
        word = self.rows * (PARTS * planes + self.left.planes) / cost.vector_units + PARTS * self.right.planes / 2
        shared = words * word + chunks * (self.sums * self.rows * PARTS * 2 + 40)

        def work(tall: int, long: int) -> list[float]:
            left = cost.transfers(4 * tall * words, chunks) + tall * words / 4
            return [ITEM + right + left + -(-tall // self.rows) * shared + tall * (PIXEL + self.sums * 4)]

        return Tiles(self.offsets.size // 2, self.m, self.n, tile, LANES).cycles(work)

    @property
    def rows(self) -> int:
        """Rows that share loaded registers."""
        return 1 if self.m == 1 else 4 if self.sums == 1 else 2

    @property
    def span(self) -> tuple[int, int]:
        ends = [a * b * self.k for a in (self.left.low, self.left.high) for b in (self.right.low, self.right.high)]
        return min(0, *ends), max(0, *ends)


def product_of(layer: Layer) -> Product:
    """LayerError where the shapes do not fit together, or no kernel takes the types."""
    a, b = layer.inputs[:2]
    flags = layer.flag("trans_a", False), layer.flag("trans_b", False)
    if min(len(a.shape), len(b.shape)) < 2:
        raise LayerError("an operand has fewer than two dimensions")
    m, depth = a.shape[:-3:-1] if flags[0] else a.shape[-2:]
    deep, n = b.shape[:-3:-1] if flags[1] else b.shape[-2:]
    if min(m, n, depth) < 1:
        raise LayerError("an operand has no elements")
    if depth != deep or layer.output.shape[-2:] != (m, n):
        raise LayerError(f"the shapes {list(a.shape)} and {list(b.shape)} do not give {list(layer.output.shape)}")
    left, right = (_operand(t, flag, zero) for t, flag, zero in zip((a, b), flags, _zeros(layer), strict=True))
    whole = layer.is_quantised or layer.type == "MatMulInteger"
    if not whole:
        floats_only(layer)
    batches = layer.output.shape[:-2]
    try:
        made = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if made != batches:
            raise ValueError(f"batches of {list(made)}, not {list(batches)}")
        offsets = [
            np.arange(max(1, t.count // (r * c))).reshape(t.shape[:-2]) * (r * c)
            for t, r, c in ((a, m, depth), (b, depth, n))
        ]
        pairs = np.stack([np.broadcast_to(o, batches).reshape(-1) for o in offsets], 1)
    except ValueError as reason:
        raise LayerError(f"the shapes {list(a.shape)} and {list(b.shape)} do not fit together") from reason
    plain = whole and not left.transposed and all(o.tensor.integer.bits <= 8 and not o.zero for o in (left, right))
    staged = BYTES if plain else SHORTS if whole else FLOATS
    found = Product(m, n, depth, pairs.reshape(-1).astype(np.int32), left, right, staged)
    largest = 2 * 512 * 512 if found.sums > 1 else _largest(left) * _largest(right)
    if whole and depth * largest >= 2**31:
        raise LayerError(f"sums of {depth} products do not fit 32 bits, which no kernel here computes with")
    return found


def _largest(o: Operand) -> int:
    return max(abs(o.low), abs(o.high))


def _zeros(layer: Layer) -> list[int]:
    """The zero points added to the elements of both operands."""
    if layer.type == "MatMulInteger":
        return [-layer.integer(f"{side}_zero_point", 0) for side in "ab"]
    return [t.scalar_zero if t.is_integer else 0 for t in layer.inputs[:2]]


def _operand(t: Tensor, transposed: bool, zero: int) -> Operand:
    if not t.is_integer:
        return Operand(t, transposed)
    if t.dtype == "bool" or t.integer.bits > 16:
        raise LayerError(f"products of {t.dtype} have no kernel")
    low, high = t.integer.low + zero, t.integer.high + zero
    planes = 1 if max(-low, high) < 512 else 2
    if max(-low, high) >= 1 << 17:
        raise LayerError(f"the zero point of '{t.name}' is {abs(zero)}, which must be within its type, {t.dtype}")
    return Operand(t, transposed, planes, low, high, zero)


def matrix_product(layer: Layer, tail: Sequence[Layer]) -> Kernel:
    """The kernel of a MatMul or Gemm."""
    p = product_of(layer)
    k = KernelSource()
    a, b, where = k.tensor(layer.inputs[0]), k.tensor(layer.inputs[1]), k.constant(p.offsets)
    result, out = follow(k, layer, _closing(k, layer, p), tail, k.at_place)
    y = k.tensor(out)
    store = f'S.vstore(narrow({result.name}, "{out.dtype}"), {y} + place, mask)'
    return finish(k, [*k.head, *_loops(k, p, (a, b, where), store)])


def _closing(k: KernelSource, layer: Layer, p: Product) -> Value:
    """From the sums `s0`, `s1`, `s2` to the layer's own output."""
    if p.staged == FLOATS:
        return _float_closing(k, layer)
    pair = max(map(abs, p.span)) >= 1 << 31
    if pair:
        k.do("low = (s0 & 0xFFFF) + ((s1 & 255) << 8)")
        k.do("high = (s0 >> 16) + (s1 >> 8) + (low >> 16)" + (" + s2" if p.sums > 2 else ""))
        k.do("low = low & 0xFFFF")
    else:
        k.do("acc = s0" + "".join(f" + (s{i} << {8 * i})" for i in range(1, p.sums)) + (" + 0" if p.sums == 1 else ""))
    if layer.type == "MatMulInteger":
        return saturated_pair(k, held_pair()) if pair else named("acc", "int32", *p.span)
    if layer.type == "Gemm":
        return _gemm_closing(k, layer, p, pair)
    scale, shift = layer.scale_shift(of=1)
    span, out = p.span, layer.output
    if layer.has("remain_shift") and max(t.integer.bits for t in layer.inputs[:2]) > 8:
        remain = layer.integer("remain_shift")
        amount = max(0, int(shift.reshape(-1)[0]) - remain)
        return finish_ahead(k, layer, span, pair, amount, np.zeros(1, np.int64), (scale, shift - amount))
    if pair:
        return finish_pair(k, layer, held_pair(span), scale, shift)
    return requantise_to(k, named("acc", "int32", *span), scale, shift, out)


def _float_closing(k: KernelSource, layer: Layer) -> Value:
    factor = layer.number("fused_multiplier" if layer.type == "MatMul" else "alpha", 1.0)
    value = k.let(f"s0 * {k.scalar(factor)}", "float32") if factor != 1.0 else named("s0", "float32")
    if layer.type != "Gemm" or len(layer.inputs) < 3:
        return value
    other = _addend(k, layer)
    return k.let(f"{value.name} + {other} * {k.scalar(layer.number('beta', 1.0))}", "float32")


def _addend(k: KernelSource, layer: Layer) -> str:
    """The variable of a Gemm's third input, broadcast to the result."""
    c, out = layer.inputs[2], layer.output
    rows, columns = ((1, 1) + c.shape)[-2:]
    if len(c.shape) > 2 or rows not in (1, out.shape[-2]) or columns not in (1, out.shape[-1]):
        raise LayerError(f"'{c.name}' of shape {list(c.shape)} does not broadcast to {list(out.shape)}")
    at = f"{k.tensor(c)} + row * {k.scalar(columns if rows > 1 else 0)}"
    if columns > 1 or out.shape[-1] == 1:
        return k.let(f'load({at} + n0, mask, "{c.dtype}", {LANES})').name
    kind = "int32" if c.is_integer else "float32"
    return k.let(f'S.vbcast(S.cast(({at})[0], "{kind}"), lanes={LANES})').name


def _gemm_closing(k: KernelSource, layer: Layer, p: Product, pair: bool) -> Value:
    scale, shift = layer.scale_shift()
    out, sign = layer.output, int(np.sign(layer.number("alpha", 1.0)))
    if len(layer.inputs) < 3:
        if sign != 1:
            raise LayerError("a quantised Gemm of two inputs with alpha below or equal to 0 has no kernel")
        if pair:
            return finish_pair(k, layer, held_pair(p.span), scale, shift)
        return requantise_rounded(k, named("acc", "int32", *p.span), scale, shift, out)
    if scale.size != 3:
        raise LayerError(f"'scale_value' has {scale.size} values, expected 3 for three inputs")
    c, other_sign = layer.inputs[2], int(np.sign(layer.number("beta", 1.0)))
    first, second = int(scale[1]), int(scale[2])
    ends = [abs(e) * first for e in p.span]
    high = max(abs(c.low + c.scalar_zero), abs(c.high + c.scalar_zero)) * second
    if pair or c.integer.bits > 16 or max(first, second) >> 16 or max(ends) + high >= 2**47:
        raise LayerError("a quantised Gemm of these types and scales has no kernel")
    added = k.let(f"({_addend(k, layer)} + {k.scalar(c.scalar_zero)}) * {k.scalar(other_sign)}")
    k.do(f"acc = acc * {k.scalar(sign)}")
    k.do("low = acc * 0")
    k.do("high = acc * 0")
    k.do(f"add_product(high, low, acc, {k.scalar(first)})")
    k.do(f"add_product(high, low, {added.name}, {k.scalar(second)})")
    largest = max(ends) + high
    return requantise_pair(k, held_pair((-largest, largest)), scale[:1], shift, out.scalar_zero, out.low, out.high)


def _loops(k: KernelSource, p: Product, names: tuple[str, str, str], store: str) -> list[str]:
    tiles, blocks, batches = -(-p.m // p.tile), -(-p.n // LANES), p.offsets.size // 2
    g = {
        name: k.scalar(value)
        for name, value in {
            "m": p.m,
            "n": p.n,
            "k": p.k,
            "items": tiles * blocks * batches,
            "tiles": tiles,
            "blocks": blocks,
            "zero_a": p.left.zero,
            "zero_b": p.right.zero,
        }.items()
    }
    g |= {"a": names[0], "b": names[1], "tile": str(p.tile), "depth": str(p.depth), "words": str(p.words)}
    steps = ("1", str(p.tile)) if p.left.transposed else (str(p.words), "1")
    kind = "float32" if p.staged == FLOATS else "int32"
    sums = range(p.sums)
    text = [
        f'at = S.alloc({p.tile * p.words * p.left.planes}, "{kind}", scope="lsram")',
        f'bt = S.alloc({LANES * p.words * p.right.planes}, "{kind}", scope="lsram")',
        f'raw = S.alloc({2048 if p.staged == FLOATS else 1024}, "int32", scope="lsram")',
        f'sums = S.alloc({p.tile * LANES * p.sums}, "{kind}", scope="lsram")',
        f'zeros = S.vbcast(S.cast(0, "{kind}"), lanes={LANES})',
        "for item in range(S.get_local_id(), {items}, S.get_local_size()):",
        f"    n0 = item % {{blocks}} * {LANES}",
        "    m0 = item / {blocks} % {tiles} * {tile}",
        "    batch = item / ({blocks} * {tiles})",
        f"    left = {{a}} + {names[2]}[batch * 2]",
        f"    right = {{b}} + {names[2]}[batch * 2 + 1]",
        "    high_m = S.min({m} - m0, {tile})",
        f"    wide_n = S.min({{n}} - n0, {LANES})",
        f"    mask = S.tail_mask(wide_n, {LANES})",
        f"    for q in range({p.tile * p.sums}):",
        f"        S.vstore(zeros, sums + q * {LANES})",
        "    for k0 in range(0, {k}, {depth}):",
        "        deep = S.min({k} - k0, {depth})",
        *(f"        {line}" for line in [*_staged_left(p), *_staged_right(p)]),
        f"        for r in range(0, high_m, {p.rows}):",
        *(f"            {line}" for line in _products(p, steps)),
        "    for r in range(high_m):",
        "        row = m0 + r",
        "        place = (batch * {m} + row) * {n} + n0",
        *(f"        s{i} = S.vload(sums + (r * {p.sums} + {i}) * {LANES}, lanes={LANES})" for i in sums),
        *(f"        {line}" for line in [*k.body, store]),
    ]
    return [line.format(**g) for line in text]


def _staged_left(p: Product) -> list[str]:
    """The left operand's part as words, of a row after the other, or transposed: of a pair of the depth after the other."""
    dtype = p.left.tensor.dtype
    if p.staged == BYTES:
        return [
            "if deep % 4 != 0:",
            f"    S.dma_memset(at, S.i32(0), {p.tile * p.words})",
            f'S.dma_copy(at.as_ptr("{dtype}"), left + m0 * {{k}} + k0, deep, {{k}}, high_m, {{depth}})',
        ]
    direct = dtype == "float32"
    target = "at" if direct else f'raw.as_ptr("{dtype}")'
    if not p.left.transposed:
        lines = [f"S.dma_copy({target}, left + m0 * {{k}} + k0, deep, {{k}}, high_m, {{depth}})"]
        if direct:
            return lines
        lines += [f'near_a = raw.as_ptr("{dtype}")', f"for e in range(0, high_m * {{depth}}, {LANES}):"]
        if p.staged == FLOATS:
            return [*lines, f'    S.vstore(S.cast(S.vload(near_a + e, lanes={LANES}), "float32"), at + e)']
        lines.append(f'    v = S.cast(S.vload(near_a + e, lanes={LANES}), "int32") + {{zero_a}}')
        own = f"{p.tile * p.words * 2}"
        return lines + [
            f'    S.vstore(S.cast({part}, "int16"), at.as_ptr("int16") + {i} * {own} + e)'
            for i, part in enumerate(_bytes("v", p.left.planes))
        ]
    lines = [f"S.dma_copy({target}, left + k0 * {{m}} + m0, high_m, {{m}}, deep, {{tile}})"]
    if direct:
        return lines
    lines.append(f'near_a = raw.as_ptr("{dtype}")')
    return lines + _words(p, f"S.vload(near_a + {{at}} * {p.tile}, lanes={p.tile})", p.left, "zero_a", "at", p.tile)


def _staged_right(p: Product) -> list[str]:
    """The right operand's part: for each word of the depth, those of 32 columns."""
    dtype = p.right.tensor.dtype
    if p.right.transposed:
        copy = 'S.dma_copy(raw.as_ptr("{0}"), right + n0 * {{k}} + k0, deep, {{k}}, wide_n, {{depth}})'
        row = f"S.vload(near_b + {{at}}, lanes={LANES}, stride={{depth}})"
    else:
        copy = "S.dma_copy({1}, right + k0 * {{n}} + n0, wide_n, {{n}}, deep, 32)"
        row = f"S.vload(near_b + {{at}} * {LANES}, lanes={LANES})"
        if dtype == "float32":
            return [copy.format(dtype, "bt").replace("{{", "{").replace("}}", "}")]
    lines = [copy.format(dtype, f'raw.as_ptr("{dtype}")'), f'near_b = raw.as_ptr("{dtype}")']
    if p.staged == BYTES:
        lines = ["if deep % 4 != 0:", "    S.dma_memset(raw, S.i32(0), 1024)", *lines]
    return lines + _words(p, row, p.right, "zero_b", "bt", LANES)


def _words(p: Product, row: str, o: Operand, zero: str, target: str, lanes: int) -> list[str]:
    """Words of four rows of the depth as bytes, of two as int16 or of one as float32; a missing second row counts 0."""
    row = row.replace("{depth}", str(p.depth))
    if p.staged == BYTES:
        return _byte_words(row, o.transposed, lanes)
    if p.staged == FLOATS:
        value = row.format(at="c")
        value = value if o.tensor.dtype == "float32" else f'S.cast({value}, "float32")'
        return ["for c in range(deep):", f"    S.vstore({value}, {target} + c * {lanes})"]
    lines = [
        "for c in range((deep + 1) / 2):",
        f'    v = S.cast({row.format(at="(c * 2)")}, "int32") + {{{zero}}}',
        f"    u = S.vbcast(S.i32(0), lanes={lanes})",
        "    if c * 2 + 1 < deep:",
        f'        u = S.cast({row.format(at="(c * 2 + 1)")}, "int32") + {{{zero}}}',
    ]
    for i, (first, second) in enumerate(zip(_bytes("v", o.planes), _bytes("u", o.planes), strict=True)):
        value = f"(({second}) << 16) | (({first}) & 0xFFFF)"
        lines.append(f"    S.vstore({value}, {target} + {i * lanes * p.words} + c * {lanes})")
    return lines


def _byte_words(row: str, transposed: bool, lanes: int) -> list[str]:
    """Words of four rows; where some are missing the left operand has zeros."""
    head = "for c in range((deep + 3) / 4):"
    if transposed:
        loaded = f"S.vload(raw + c, lanes={lanes}, stride={{words}})"
        return [head, f"    S.vstore({loaded}, bt + c * {lanes})"]
    rows = [row.format(at=f"(c * 4 + {i})") for i in range(4)]
    pairs = [f'S.reinterpret(S.vzip({a}, {b}), "int16x{lanes}")' for a, b in (rows[:2], rows[2:])]
    joined = f'S.reinterpret(S.vzip({pairs[0]}, {pairs[1]}), "int32x{lanes}")'
    return [head, f"    S.vstore({joined}, bt + c * {lanes})"]


def _bytes(name: str, planes: int) -> list[str]:
    return [name] if planes == 1 else [f"{name} & 255", f"{name} >> 8"]


def _products(p: Product, steps: tuple[str, str]) -> list[str]:
    """The products of a chunk for a few rows, in registers."""
    names = [(i, s, j) for i in range(p.rows) for s in range(p.sums) for j in range(PARTS)]
    place = "sums + ((r + {i}) * {count} + {s}) * {lanes} + {part}"
    spots = {(i, s, j): place.format(i=i, count=p.sums, s=s, lanes=LANES, part=j * REGISTER) for i, s, j in names}
    lines = [f"a{i}_{s}_{j} = S.vload({spots[i, s, j]}, lanes={REGISTER})" for i, s, j in names]
    per = PER_WORD[p.staged]
    kinds = [o.tensor.dtype if p.staged == BYTES else p.staged for o in (p.left, p.right)]
    product = PRODUCTS[p.staged]
    if kinds == ["uint8", "uint8"]:
        unsigned = f'S.reinterpret({{acc}}, "uint32x{REGISTER}")'
        product = f'S.reinterpret({product.replace("{acc}", unsigned)}, "int32x{REGISTER}")'
    lines += [f"near = at + r * {steps[0]}", f"for c in range((deep + {per - 1}) / {per}):"]
    wide = REGISTER * per
    held = "bt" if p.staged == FLOATS else f'bt.as_ptr("{kinds[1]}")'
    for plane in range(p.right.planes):
        at = plane * LANES * p.words * per
        step = LANES * per
        lines += [
            f"    w{plane}_{j} = S.vload({held} + ({at + j * wide} + c * {step}), lanes={wide})" for j in range(PARTS)
        ]
    for i in range(p.rows):
        for plane in range(p.left.planes):
            word = f"near[{plane * p.tile * p.words} + c * {steps[1]} + {i} * {steps[0]}]"
            value = f"S.vbcast({word}, lanes={REGISTER})"
            value = value if p.staged == FLOATS else f'spread_word({word}, "{kinds[0]}")'
            lines.append(f"    x = {value}")
            for other in range(p.right.planes):
                for j in range(PARTS):
                    acc = f"a{i}_{plane + other}_{j}"
                    lines.append(f"    {acc} = {product.format(acc=acc, x='x', w=f'w{other}_{j}')}")
    return lines + [f"S.vstore(a{i}_{s}_{j}, {spots[i, s, j]})" for i, s, j in names]

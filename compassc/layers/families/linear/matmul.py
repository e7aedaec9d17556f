"""Kernels of matrix products of two run-time operands: the columns of the result are the lanes.

A tile of rows is worked on for 32 columns at once, a chunk of the depth after the other, both operands' parts in LSRAM.
Floats are summed up in float32. Bytes without zero points are staged as they are: four neighbours of the depth share a
32-bit word, which a dot product takes. Other integers are staged with their zero points added, as int16, two in a word;
those of 16 bits are cut in two bytes, whose products have sums of their own (of 1, 256 and 65536), so that all of them
fit 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Pointer, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import finish_ahead, rectify
from compassc.layers.families.linear.formats import BYTE, FLOAT, PER_WORD, PRODUCTS, SHORT, WORD, floats_only
from compassc.layers.families.linear.tiles import ITEM, PIXEL
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel, settle
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.layer_kernel import tail as tail_of
from compassc.layers.machine import Tiles, costs
from compassc.layers.requantise import Pair, carried, requantise, requantise_rounded, saturated
from compassc.layers.vectors import LANES, add_product, everywhere, spread_word, wide_kind

PARTS = 4
REGISTER = LANES // PARTS


class Part(NamedTuple):
    """The rows or columns of an operand that an item works on: the first, how many, from one of the depth to the next in
    memory, and in LSRAM."""

    first: Value
    many: Value
    stride: Value
    lanes: int


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
        return 64 if self.sums == 1 and self.staged != BYTE else 32

    @property
    def depth(self) -> int:
        """Elements of a chunk of the depth."""
        return self.words * PER_WORD[self.staged]

    @cached_property
    def tile(self) -> int:
        """Rows of a tile, by an estimate of cycles."""
        most = 16 if self.sums > 1 else 64 if self.staged == BYTE else 32
        least = 16 if self.left.transposed else 8
        return min((rows for rows in (64, 32, 16, 8) if least <= rows <= most), key=self._cycles)

    def _cycles(self, tile: int) -> float:
        """About the cycles of the TEC with most work: transfers of both operands, their words, and products."""
        cost, chunks, words = costs(), -(-self.k // self.depth), -(-self.k // PER_WORD[self.staged])
        direct = self.staged == FLOAT and self.right.tensor.dtype == "float32" and not self.right.transposed
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
    staged = BYTE if plain else SHORT if whole else FLOAT
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


class _MatrixProduct:
    """The kernel of a MatMul or Gemm in the making."""

    def __init__(self, layer: Layer, tail: Sequence[Layer]) -> None:
        self.layer, self.tail, self.p, self.k = layer, tail, product_of(layer), LayerKernel()
        p, number, self.kind = self.p, self.k.number, FLOAT if self.p.staged == FLOAT else WORD
        self.per, self.words = PER_WORD[p.staged], [p.tile * p.words, LANES * p.words]
        self.a, self.b = map(self.k.tensor, layer.inputs[:2])
        self.offsets = self.k.pointer(p.offsets)
        self.m, self.n, self.depth = map(number, (p.m, p.n, p.k))
        tiles, blocks, batches = -(-p.m // p.tile), -(-p.n // LANES), p.offsets.size // 2
        self.items, self.tiles, self.blocks = map(number, (tiles * blocks * batches, tiles, blocks))

    def kernel(self) -> Kernel:
        k, p = self.k, self.p
        with k.active():
            self.at, self.bt = (
                k.alloc(words * o.planes, self.kind, name)
                for words, o, name in zip(self.words, (p.left, p.right), ("at", "bt"), strict=True)
            )
            self.sums = k.alloc(p.tile * LANES * p.sums, self.kind, "sums")
            zeros = k.held("zeros", everywhere(0, self.kind))
            with k.shared(self.items, "item") as item:
                n0 = k.held("n0", item % self.blocks * LANES)
                m0 = k.held("m0", item / self.blocks % self.tiles * p.tile)
                batch = k.held("batch", item / (self.blocks * self.tiles))
                left = k.hold(self.a + self.offsets[batch * 2], "left")
                right = k.hold(self.b + self.offsets[batch * 2 + 1], "right")
                high, wide = k.held("high", S.min(self.m - m0, p.tile)), k.held("wide", S.min(self.n - n0, LANES))
                k.define(k.lanes_mask, tail_of(wide))
                with k.for_range(0, p.tile * p.sums, name="q") as q:
                    S.vstore(zeros, self.sums + q * LANES)
                with k.for_range(0, self.depth, p.depth, "k0") as k0:
                    deep = k.held("deep", S.min(self.depth - k0, p.depth))
                    self._stage(p.left, left, Part(m0, high, self.m, p.tile), k0, deep)
                    self._stage(p.right, right, Part(n0, wide, self.n, LANES), k0, deep)
                    with k.for_range(0, high, p.rows, "r") as r:
                        self._products(r, deep)
                with k.for_range(0, high, name="r") as r:
                    row = k.held("row", m0 + r)
                    result = self._closed(
                        [k.let(S.vload(self._spot(r, s), lanes=LANES)) for s in range(p.sums)], row, n0
                    )
                    settle(k, self.layer, result, self.tail, k.held("place", (batch * self.m + row) * self.n + n0))
        return k.kernel()

    @property
    def raw(self) -> Pointer:
        """Room for operands as they are in memory."""
        return self.k.scratch(2048 if self.p.staged == FLOAT else 1024, WORD, "raw")

    def _spot(self, row: Expression, sums: int) -> Address:
        return self.sums + (row * self.p.sums + sums) * LANES

    # -- from the sums to the layer's own output

    def _closed(self, sums: Sequence[Value], row: Value, n0: Value) -> Value:
        if self.p.staged == FLOAT:
            return self._of_floats(sums[0], row, n0)
        k, layer, total = self.k, self.layer, self._total(sums)
        if layer.type == "MatMulInteger":
            return saturated(k, total) if isinstance(total, Pair) else total
        if layer.type == "Gemm":
            return self._of_gemm(total, row, n0)
        scale, shift = layer.scale_shift(of=1)
        if layer.has("remain_shift") and max(t.integer.bits for t in layer.inputs[:2]) > 8:
            amount = max(0, int(shift.reshape(-1)[0]) - layer.integer("remain_shift"))
            return finish_ahead(k, layer, total, amount, np.zeros(1, np.int64), scale, shift - amount)
        return rectify(k, layer, layer.word("with_activation", "NONE"), total, scale, shift)

    def _total(self, sums: Sequence[Value]) -> Value | Pair:
        """All sums together; the first one counts 1, the next ones 256 and 65536."""
        k, (least, most) = self.k, self.p.span
        if max(-least, most) >= 1 << 31:
            high, low = (sums[0] >> 16) + (sums[1] >> 8), (sums[0] & 0xFFFF) + ((sums[1] & 255) << 8)
            return carried(k, high if len(sums) == 2 else high + sums[2], low, least, most)
        total: Expression = sums[0]
        for i, value in enumerate(sums[1:], 1):
            total = total + (value << 8 * i)
        return k.let(total, low=least, high=most)

    def _of_floats(self, value: Value, row: Value, n0: Value) -> Value:
        k, layer = self.k, self.layer
        factor = layer.number("fused_multiplier" if layer.type == "MatMul" else "alpha", 1.0)
        if factor != 1.0:
            value = k.let(value * k.number(factor))
        if layer.type != "Gemm" or len(layer.inputs) < 3:
            return value
        return k.let(value + self._addend(row, n0) * k.number(layer.number("beta", 1.0)))

    def _addend(self, row: Value, n0: Value) -> Value:
        """A Gemm's third input, broadcast to the result."""
        k, c, out = self.k, self.layer.inputs[2], self.layer.output
        rows, columns = ((1, 1) + c.shape)[-2:]
        if len(c.shape) > 2 or rows not in (1, out.shape[-2]) or columns not in (1, out.shape[-1]):
            raise LayerError(f"'{c.name}' of shape {list(c.shape)} does not broadcast to {list(out.shape)}")
        at = k.tensor(c) + row * k.number(columns if rows > 1 else 0)
        if columns > 1 or out.shape[-1] == 1:
            return k.loaded(at + n0, c)
        return k.let(everywhere(at[0], wide_kind(c)))

    def _of_gemm(self, total: Value | Pair, row: Value, n0: Value) -> Value:
        k, layer, (scale, shift) = self.k, self.layer, self.layer.scale_shift()
        out, sign = layer.output, int(np.sign(layer.number("alpha", 1.0)))
        if len(layer.inputs) < 3:
            if sign != 1:
                raise LayerError("a quantised Gemm of two inputs with alpha below or equal to 0 has no kernel")
            if isinstance(total, Pair):
                return rectify(k, layer, layer.word("with_activation", "NONE"), total, scale, shift)
            return requantise_rounded(k, total, scale, shift, out)
        if scale.size != 3:
            raise LayerError(f"'scale_value' has {scale.size} values, expected 3 for three inputs")
        c, other_sign = layer.inputs[2], int(np.sign(layer.number("beta", 1.0)))
        first, second = int(scale[1]), int(scale[2])
        ends = [abs(e) * first for e in self.p.span]
        largest = max(ends) + max(abs(c.low + c.scalar_zero), abs(c.high + c.scalar_zero)) * second
        if isinstance(total, Pair) or c.integer.bits > 16 or max(first, second) >> 16 or largest >= 2**47:
            raise LayerError("a quantised Gemm of these types and scales has no kernel")
        added = k.let((self._addend(row, n0) + k.number(c.scalar_zero)) * k.number(other_sign))
        pair = Pair(k.let(everywhere(0)), k.let(everywhere(0)), -largest, largest)
        add_product(pair.high, pair.low, k.let(total * k.number(sign)), k.number(first))
        add_product(pair.high, pair.low, added, k.number(second))
        return requantise(k, pair, scale[:1], shift, out.scalar_zero, out.low, out.high)

    # -- operands as words in LSRAM

    def _stage(self, o: Operand, source: Pointer, part: Part, k0: Value, deep: Value) -> None:
        """A part of an operand as words: of the left one row after row, otherwise for each word of the depth those of its
        rows or columns."""
        k, p, dtype, left = self.k, self.p, o.tensor.dtype, o is self.p.left
        target, along = self.at if left else self.bt, o.transposed != left  # whether the depth is what lies together
        direct = dtype == FLOAT and (left or not along) or p.staged == BYTE and left
        to = target.as_ptr(dtype) if direct else self.raw.as_ptr(dtype)
        if p.staged == BYTE:
            with k.when(deep % 4 != 0):  # what is missing of a word counts 0
                S.dma_memset(target if left else self.raw, S.i32(0), p.tile * p.words if left else 1024)
        if along:
            S.dma_copy(to, source + part.first * self.depth + k0, deep, self.depth, part.many, p.depth)
        else:
            S.dma_copy(to, source + k0 * part.stride + part.first, part.many, part.stride, deep, part.lanes)
        if direct:
            return
        near = k.hold(to, "near")
        if left and along:
            self._rows(o, near, part.many)
        elif p.staged == BYTE:
            self._words_of_bytes(near, along, deep)
        else:
            self._words(o, near, target, along, part.lanes, deep)

    def _rows(self, o: Operand, near: Pointer, high: Value) -> None:
        """Rows of the left operand, one behind the other."""
        k, p = self.k, self.p
        with k.for_range(0, high * p.depth, LANES, "e") as e:
            if p.staged == FLOAT:
                S.vstore(S.cast(S.vload(near + e, lanes=LANES), FLOAT), self.at + e)
                return
            value = k.held("v", S.cast(S.vload(near + e, lanes=LANES), WORD) + k.number(o.zero))
            for i, plane in enumerate(_planes(value, o)):
                S.vstore(S.cast(plane, SHORT), self.at.as_ptr(SHORT) + i * self.words[0] * 2 + e)

    def _words(self, o: Operand, near: Pointer, target: Pointer, along: bool, lanes: int, deep: Value) -> None:
        """Words of two rows of the depth as int16 or of one as float32; a missing second row counts 0."""
        k, p = self.k, self.p

        def row(c: Expression) -> Expression:
            loaded = S.vload(near + c, lanes=lanes, stride=p.depth) if along else S.vload(near + c * lanes, lanes=lanes)
            return loaded if o.tensor.dtype == self.kind else S.cast(loaded, self.kind)

        with k.for_range(0, (deep + (self.per - 1)) / self.per, name="c") as c:
            if p.staged == FLOAT:
                S.vstore(row(c), target + c * lanes)
                return
            zero = k.number(o.zero)
            first = k.held("v", row(c * 2) + zero)
            second = k.changing("u", S.vbcast(S.i32(0), lanes=lanes))
            with k.when(c * 2 + 1 < deep):
                k.assign(second, row(c * 2 + 1) + zero)
            for i, (low, high) in enumerate(zip(_planes(first, o), _planes(second, o), strict=True)):
                S.vstore((high << 16) | (low & 0xFFFF), target + i * lanes * p.words + c * lanes)

    def _words_of_bytes(self, near: Pointer, along: bool, deep: Value) -> None:
        """Words of four rows of the right operand; where some are missing the left one has zeros."""
        k = self.k
        with k.for_range(0, (deep + 3) / 4, name="c") as c:
            if along:
                word = S.vload(self.raw + c, lanes=LANES, stride=self.p.words)
            else:
                rows = [S.vload(near + (c * 4 + i) * LANES, lanes=LANES) for i in range(4)]
                first, second = (S.reinterpret(S.vzip(rows[i], rows[i + 1]), "int16x32") for i in (0, 2))
                word = S.reinterpret(S.vzip(first, second), "int32x32")
            S.vstore(word, self.bt + c * LANES)

    # -- products

    def _products(self, r: Value, deep: Value) -> None:
        """The products of a chunk for a few rows, in registers."""
        k, p, per = self.k, self.p, self.per
        parts, planes = range(0, LANES, REGISTER), range(p.right.planes)
        sums = [
            [[k.changing("a", S.vload(self._spot(r + i, s) + j, lanes=REGISTER)) for j in parts] for s in range(p.sums)]
            for i in range(p.rows)
        ]
        row, word = (1, p.tile) if p.left.transposed else (p.words, 1)
        near = k.hold(self.at + r * row, "near")
        kinds = [o.tensor.dtype if p.staged == BYTE else p.staged for o in (p.left, p.right)]
        held = self.bt if p.staged == FLOAT else self.bt.as_ptr(kinds[1])
        with k.for_range(0, (deep + (per - 1)) / per, name="c") as c:
            first = c * (LANES * per)
            weights = [
                [
                    k.held("w", S.vload(held + (first + (n * self.words[1] + j) * per), lanes=REGISTER * per))
                    for j in parts
                ]
                for n in planes
            ]
            for i, own in enumerate(sums):
                for n in range(p.left.planes):
                    value = near[n * self.words[0] + c * word + i * row]
                    x = k.held(
                        "x", S.vbcast(value, lanes=REGISTER) if p.staged == FLOAT else spread_word(value, kinds[0])
                    )
                    for other in planes:
                        for a, w in zip(own[n + other], weights[other], strict=True):
                            k.assign(a, _added(p.staged, a, x, w))
        for i, own in enumerate(sums):
            for s, registers in enumerate(own):
                for j, a in zip(parts, registers, strict=True):
                    S.vstore(a, self._spot(r + i, s) + j)


def _added(staged: str, a: Value, x: Value, w: Value) -> Expression:
    """Sums and the products of words."""
    if staged == BYTE and x.kind == w.kind == "uint8":
        return S.reinterpret(S.vqdpa(S.reinterpret(a, f"uint32x{REGISTER}"), x, w), f"int32x{REGISTER}")
    return PRODUCTS[staged](a, x, w)


def _planes(value: Value, o: Operand) -> list[Expression]:
    return [value] if o.planes == 1 else [value & 255, value >> 8]


@kernel("MatMul", "Gemm", "MatMulInteger", tail=True)
def matrix_product(layer: Layer, tail: Sequence[Layer]) -> Kernel:
    return _MatrixProduct(layer, tail).kernel()

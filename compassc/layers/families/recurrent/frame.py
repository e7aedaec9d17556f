"""The loops of recurrent kernels: one launch takes all steps.

Lanes are 32 cells of the state, and the cells are shared between the TECs. The hidden state lies in memory that all
TECs see, twice: a step reads one copy and writes the other, and a barrier ends it. Weights are packed so that a loaded
vector holds one input (of 8-bit integers four) of 32 cells, for every gate in turn. Where they do not stay in LSRAM, the
sums over the inputs of several steps are computed at once, before these steps, so that their weights are moved once for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Pointer, Value, either
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.choices import choose
from compassc.layers.layer_kernel import LayerKernel, tail
from compassc.layers.machine import Share, configuration
from compassc.layers.requantise import Pair, Sum
from compassc.layers.vectors import LANES, everywhere, load, pointee, spread, wide

ALL, LEAST, MOST, INPUTS = Share(7), Share(1, 16), Share(3), Share(1)
"""LSRAM for everything, the least and the most for weights, and the most for inputs of several steps."""
Gates = tuple[int, ...]


class Memory(NamedTuple):
    """An array of the kernel: its elements, their type, and where it lies."""

    size: int
    dtype: str
    scope: str = "lsram"

    @property
    def lsram(self) -> int:
        """Bytes of the LSRAM that it takes."""
        return self.size * numpy_dtype(self.dtype).itemsize if self.scope == "lsram" else 0


class Recurrence:
    """The kernel of a recurrence over x [N,T,I] with states [N,C] in the making.

    Statements are made `with` its `steps`, and in these `with` each `phase`: a part of a step between barriers.
    """

    sums: dict[tuple[int, str], Sum]
    """The products of each gate's weights with the input ("x") and with the state ("h") in the present phase."""

    def __init__(
        self, layer: Layer, weights: Array, phases: Sequence[Gates], keeps: Tensor | bool = False, tables: int = 0
    ) -> None:
        """`phases`: the gates whose sums each needs. `keeps`: whether a number of every cell outlives a phase, or a step;
        at first those of a tensor. `tables`: bytes of the kernel's tables."""
        self.k, self.layer, self.weights, self.phases = LayerKernel(), layer, weights, phases
        self.gates = sum(map(len, phases))
        x, h = layer.input, layer.inputs[1]
        if len(x.shape) != 3:
            raise LayerError(f"the input is {list(x.shape)}, expected [batch, time, features]")
        self.batch, self.count, self.features = x.shape
        self.cell = weights.shape[0] // self.gates
        if 0 in x.shape or self.cell == 0:
            raise LayerError("it is empty")
        for t in layer.inputs[1:]:
            if t.count != self.batch * self.cell:
                raise LayerError(f"the state '{t.name}' is {list(t.shape)}, expected {[self.batch, self.cell]}")
        self.padded = -(-self.cell // LANES) * LANES
        if x.is_integer:
            self.form = "dot" if x.integer.bits <= 8 and weights.dtype == np.int8 else "halves"
            self.kind, self.state_type = "int32", h.dtype
        else:
            self.form, self.kind, self.state_type = "float", "float32", "float32"
        self.per_word = 4 if self.form == "dot" else 1
        """Inputs of a loaded vector of weights."""
        self.parts = 2 if self.form == "halves" else 1
        """Vectors of a gate's sum."""
        self.words = {"x": -(-self.features // self.per_word), "h": -(-self.cell // self.per_word)}
        self.first = keeps if isinstance(keeps, Tensor) else None
        self.k.lanes_of = self._of_cells
        with self.k.active():
            self._allocate(bool(keeps), tables)
            number = self.k.number
            self.images, self.steps_, self.blocks = map(number, (self.batch, self.count, self.padded // LANES))

    def _allocate(self, keeps: bool, tables: int) -> None:
        own, shared = Memory(self.padded, self.state_type), Memory(self.padded, self.state_type, "shared")
        inputs = Memory(-(-self.features // LANES) * LANES, self.layer.input.dtype)
        arrays = {"xs": inputs, "hs": own}
        arrays["state"] = shared._replace(size=2 * self.padded)
        if len(self.phases) > 1:
            arrays |= {"rs": own, "handed": shared}
        if keeps:
            arrays["kept"] = Memory(self.padded, self.kind)
        row = max(map(len, self.phases)) * LANES * self.per_word * self.weights.itemsize
        free = ALL.size - sum(a.lsram for a in arrays.values()) - tables
        self.at_once = 0 if self._stay(row, free) else self._at_once(inputs)
        if self.at_once:
            arrays["xs"] = inputs._replace(size=-(-self.at_once * self.features // LANES) * LANES)
            arrays["ahead_sums"] = Memory(self.at_once * self._sums_of_step, self.kind, "shared")
            free += inputs.lsram - arrays["xs"].lsram
        self.most = self._most(row, free)
        if self.most * row < LEAST.size or self.most == 0:
            raise LayerError(f"states of {self.cell} cells with {self.features} features do not fit LSRAM")
        arrays = {"wt": Memory(self.most * row // self.weights.itemsize, self.weights.dtype.name)} | arrays
        self.memory = {n: self.k.alloc(a.size, pointee(a.dtype), n, a.scope) for n, a in arrays.items()}

    @property
    def stays(self) -> bool:
        """Whether the weights may stay in LSRAM, if there are TECs enough; else they come anew for each step."""
        return self._room(self.most) > 0

    def _room(self, most: int) -> int:
        """The number of blocks of cells whose weights are kept in LSRAM."""
        return most // sum(self.words.values()) if len(self.phases) == 1 else 0

    @property
    def _sums_of_step(self) -> int:
        """The numbers of the sums over the inputs of a step."""
        found: int = self.padded * self.gates * self.parts
        return found

    def _at_once(self, inputs: Memory) -> int:
        """Steps whose sums over the inputs are computed at once; 0 where each step computes its own, as where the inputs of all
        but the first one would not begin with a word."""
        if self.features % self.per_word:
            return 0
        own = INPUTS.size // (self.features * numpy_dtype(inputs.dtype).itemsize)
        all_ = configuration().gsram_bytes // 2 // (self._sums_of_step * numpy_dtype(self.kind).itemsize)
        found = min(self.count, own, all_)
        return found if found > 1 else 0

    def _blocks_of_tec(self) -> int:
        found: int = -(-self.padded // LANES // configuration().tecs)
        return found

    def _options(self, row: int, free: int) -> set[int]:
        """Words of weights, of `row` bytes each, that LSRAM may hold."""
        found = {min(MOST.size * parts // MOST.parts, free) // row for parts in range(1, ALL.parts + 1)}
        return {most for most in found if most * row >= LEAST.size and most > 0}

    def _stay(self, row: int, free: int) -> bool:
        """Whether the weights may stay in LSRAM."""
        return any(self._room(most) >= self._blocks_of_tec() for most in self._options(row, free))

    def _most(self, row: int, free: int) -> int:
        """Words of weights in LSRAM: those that need the fewest transfers in a step, else the usual ones."""
        usual = min(MOST.size, free) // row

        def cost(most: int) -> tuple[int, int]:
            kept = self._room(most) >= self._blocks_of_tec()
            return 0 if kept else sum(-(-words // most) for words in self.words.values()), abs(most - usual)

        return choose("weights", self._options(row, free), cost, str) or 0

    # -- numbers

    def _of_cells(self, numbers: Array) -> Expression:
        """The lanes of numbers per cell."""
        padded = np.zeros(self.padded, numbers.dtype)
        padded[: self.cell] = numbers.reshape(-1)
        return S.vload(self.k.pointer(padded) + self.at, lanes=LANES)

    def biases(self, rows: Array) -> list[Value]:
        """Vectors of numbers [rows, gates * C], a row per step; the last one is used for all further steps."""
        k, rows = self.k, rows.reshape(-1, rows.shape[-1])
        gates = rows.shape[-1] // self.cell
        padded = np.zeros((len(rows), gates, self.padded), self.kind)
        padded[:, :, : self.cell] = rows.reshape(len(rows), gates, self.cell)
        pointer: Address = k.pointer(padded.reshape(-1))
        if len(rows) > 1:
            pointer = pointer + S.min(self.age, k.number(len(rows) - 1)) * (gates * self.padded)
        ends = (-int(np.abs(rows).max()), int(np.abs(rows).max())) if self.kind == "int32" else (None, None)
        return [k.let(S.vload(pointer + (g * self.padded + self.at), lanes=LANES), *ends) for g in range(gates)]

    # -- loops

    @contextmanager
    def steps(self) -> Iterator[None]:
        """Statements for every step."""
        k, memory, inputs = self.k, self.memory, self.layer.inputs
        with k.active():
            pointers = [k.tensor(t) for t in inputs]
            features = k.number(self.features)
            if self.stays:
                left = self._room(self.most) + 1 - S.ceildiv(self.blocks, S.get_local_size())
                self.is_kept = k.held("in_lsram", S.min(S.max(left, 0), 1))
            with k.for_range(0, self.images, name="image") as self.image:
                with self._each_block():
                    place = self.image * self.cell + self.at
                    state = load(pointers[1] + place, k.mask, inputs[1].dtype, LANES)
                    S.vstore(k.stored(k.let(state), self.state_type), memory["state"] + self.at)
                    if self.first:
                        self.keep(load(pointers[2] + place, k.mask, self.first.dtype, LANES))
                S.barrier()
                backwards = self.layer.word("direction", "FORWARD", ("FORWARD", "REVERSE")) == "REVERSE"
                with (
                    self._chunks(pointers[0], backwards) as (first, last),
                    k.for_range(first, last, name="t") as self.t,
                ):
                    self.step = k.held("at", self.steps_ - 1 - self.t if backwards else self.t + 0)
                    self.age = k.held("age", self.image * self.steps_ + self.t)
                    if self.at_once:
                        self.early = memory["ahead_sums"] + (self.t - first) * self._sums_of_step
                    else:
                        source = pointers[0] + (self.image * self.steps_ + self.step) * features
                        S.dma_copy(memory["xs"], source, features)
                    yield

    @contextmanager
    def _chunks(self, inputs: Address, backwards: bool) -> Iterator[tuple[Expression, Expression]]:
        """Statements for the steps from a first to a last one, whose sums over the inputs are known where there are several."""
        k, memory = self.k, self.memory
        if not self.at_once:
            yield S.i32(0), self.steps_
            return
        with k.for_range(0, self.steps_, self.at_once, "first") as first:
            last = k.held("last", S.min(first + self.at_once, self.steps_))
            count = k.held("steps", last - first)
            lowest = k.held("lowest", self.steps_ - last if backwards else first + 0)
            source = inputs + (self.image * self.steps_ + lowest) * self.features
            S.dma_copy(memory["xs"], source, count * self.features)
            for number, gates in enumerate(self.phases):
                self._add_early(number, gates, count, backwards)
            yield first, last

    def _early_place(self, number: int) -> Expression:
        """Where the sums of a phase over the inputs of a step begin, of the present block."""
        return self.at * (self.gates * self.parts) + sum(map(len, self.phases[:number])) * (LANES * self.parts)

    def _add_early(self, number: int, gates: Gates, steps: Expression, backwards: bool) -> None:
        """Sums of a phase's gates over the inputs of all steps of a chunk."""
        k, row, size = self.k, len(gates) * LANES * self.per_word, len(gates) * self.parts
        count, packed = k.number(self.words["x"]), k.pointer(self._packed(gates))
        with self._each_block() as block:
            weights = k.hold(packed + block * (sum(self.words.values()) * row), "base")
            place = k.held("place", self._early_place(number))
            held = k.hold(self.memory["wt"] + 0, "held")
            with k.for_range(0, count, self.most, "c0") as c0:
                words = k.held("words", S.min(count - c0, self.most))
                S.dma_copy(held, weights + c0 * row, words * row, only_read=True)
                with k.for_range(0, steps, name="s") as s:
                    own = k.held("own", steps - 1 - s if backwards else s + 0)
                    at = k.hold(self.memory["ahead_sums"] + (s * self._sums_of_step + place), "sums_at")
                    found = [k.changing("sum", everywhere(0, self.kind)) for _ in range(size)]
                    with k.when(c0 > 0):
                        for i, total in enumerate(found):
                            k.assign(total, S.vload(at + i * LANES, lanes=LANES))
                    operands = k.hold(self.memory["xs"] + own * self.features, "operands")
                    self._over_words(found, operands, c0, words, held, row)
                    for i, total in enumerate(found):
                        S.vstore(total, at + i * LANES)

    @contextmanager
    def _each_block(self) -> Iterator[Value]:
        """Statements for every block of cells that the TEC has."""
        k = self.k
        with k.shared(self.blocks, "block") as block:
            self.at = k.held("cell", block * LANES)
            k.renew_mask()
            k.define(k.lanes_mask, tail(self.cell - self.at))
            yield block

    @contextmanager
    def phase(self, number: int = 0) -> Iterator[None]:
        """Statements for every block of cells, on the sums of a phase's gates."""
        k, gates, memory = self.k, self.phases[number], self.memory
        own, source = memory["rs" if number else "hs"], memory["handed" if number else "state"]
        place = source if number else source + self.t % 2 * self.padded
        with k.for_range(0, self.padded, LANES, "j") as j:
            S.vstore(S.vload(place + j, lanes=LANES), own + j)
        if not number:
            self.ahead = k.hold(source + (1 - self.t % 2) * self.padded, "ahead")
        slot, row = k.changing("slot", S.i32(0)) if self.stays else None, len(gates) * LANES * self.per_word
        packed = k.pointer(self._packed(gates))
        with self._each_block() as block:
            every = sum(self.words.values()) * row
            weights, self.sums, first = k.hold(packed + block * every, "base"), {}, self.words["x"] * row
            held = memory["wt"] if slot is None else k.hold(memory["wt"] + self.is_kept * (slot * every), "held")
            if self.at_once:
                at = k.hold(self.early + self._early_place(number), "sums_at")
                loaded = [k.let(S.vload(at + i * LANES, lanes=LANES)) for i in range(len(gates) * self.parts)]
                self._keep_sums(gates, "x", loaded)
            else:
                self._add_products(gates, "x", memory["xs"], weights, held)
            if slot is not None:
                held = k.hold(held + self.is_kept * first, "held")
            self._add_products(gates, "h", own, weights + first, held)
            yield
            if slot is not None:
                k.assign(slot, slot + 1)
        S.barrier()

    # -- sums

    def _packed(self, gates: Gates) -> Array:
        """Weights [block][word][gate][lane][input of the word], words of the input, then of the state."""
        parts = []
        for columns in (self.weights[:, : self.features], self.weights[:, self.features :]):
            words = -(-columns.shape[1] // self.per_word)
            padded = np.zeros((self.gates, self.padded, words * self.per_word), columns.dtype)
            padded[:, : self.cell, : columns.shape[1]] = columns.reshape(self.gates, self.cell, -1)
            chosen = padded[list(gates)].reshape(len(gates), self.padded // LANES, LANES, words, self.per_word)
            parts.append(chosen.transpose(1, 3, 0, 2, 4))
        return np.ascontiguousarray(np.concatenate(parts, 1)).reshape(-1)

    def _bound(self, gate: int, of: str) -> int:
        """The largest magnitude of a gate's sums. LayerError where 32 bits do not hold them."""
        rows = self.weights[gate * self.cell : (gate + 1) * self.cell]
        part = rows[:, : self.features] if of == "x" else rows[:, self.features :]
        kind = self.layer.inputs["xh".index(of)].integer
        size, largest = int(np.abs(part.astype(np.int64)).sum(1).max(initial=0)), max(-kind.low, kind.high)
        if size * (largest if self.form == "dot" else max(256, largest >> 7)) >= 2**31 - 1:
            raise LayerError("its sums do not fit 32 bits, which no kernel here computes with")
        return size * largest

    def _add_products(self, gates: Gates, of: str, operands: Pointer, weights: Address, held: Address) -> None:
        """The loop over the words of one part of the weights, in segments of at most so many that LSRAM holds."""
        k, row = self.k, len(gates) * LANES * self.per_word
        count = k.number(self.words[of])
        if not self.stays:
            held = k.hold(held + 0, "held")  # a pointer of its own, which nothing is written by
        sums = [k.changing("sum", everywhere(0, self.kind)) for _ in range(len(gates) * self.parts)]
        with k.for_range(0, count, self.most, "c0") as c0:
            words = k.held("words", S.min(count - c0, self.most))
            if self.stays:
                with k.when(either(self.is_kept == 0, self.age == 0)):
                    S.dma_copy(held, weights + c0 * row, words * row)
            else:
                S.dma_copy(held, weights + c0 * row, words * row, only_read=True)
            self._over_words(sums, operands, c0, words, held, row)
        self._keep_sums(gates, of, sums)

    def _over_words(
        self, sums: list[Value], operands: Pointer, first: Expression, words: Expression, held: Address, row: int
    ) -> None:
        """Adds the products of so many words of the inputs or of the state, from the first on."""
        count = len(sums) // self.parts
        with self.k.for_range(0, words, name="c") as c:
            {"dot": self._dot, "halves": self._halves, "float": self._float}[self.form](
                [sums[n * count : (n + 1) * count] for n in range(self.parts)], operands, first + c, held + c * row
            )

    def _keep_sums(self, gates: Gates, of: str, sums: list[Value]) -> None:
        for i, gate in enumerate(gates):
            self.sums[gate, of] = self._sum(gate, of, *sums[i :: len(gates)])

    def _sum(self, gate: int, of: str, value: Value, low: Value | None = None) -> Sum:
        """A gate's sum; of 16-bit integers value * 2^8 + low."""
        if self.form == "float":
            return value
        k, bound = self.k, self._bound(gate, of)
        if low is None:
            return value.within(-bound, bound)
        joined = k.let(value + (low >> 8))
        return Pair(k.let(joined >> 8), k.let(((joined & 255) << 8) | (low & 255)), -bound, bound)

    def _dot(self, sums: list[list[Value]], operands: Pointer, at: Expression, weights: Address) -> None:
        near = self.k.held("near", spread(operands.as_ptr("int32")[at], str(operands.elem)))
        for i, total in enumerate(sums[0]):
            lanes = LANES * 4
            self.k.assign(total, S.vqdpa(total, near, S.vload(weights + i * lanes, lanes=lanes)))

    def _halves(self, sums: list[list[Value]], operands: Pointer, at: Expression, weights: Address) -> None:
        k = self.k
        near = k.held("near", S.cast(operands[at], "int32"))
        top, bottom = k.held("top", near >> 8), k.held("bottom", near & 255)
        for i, (above, below) in enumerate(zip(*sums, strict=True)):
            weight = k.held("weight", S.cast(S.vload(weights + i * LANES, lanes=LANES), "int32"))
            k.assign(above, above + weight * top)
            k.assign(below, below + weight * bottom)

    def _float(self, sums: list[list[Value]], operands: Pointer, at: Expression, weights: Address) -> None:
        near = self.k.held("near", S.cast(operands[at], "float32"))
        for i, total in enumerate(sums[0]):
            weight = wide(S.vload(weights + i * LANES, lanes=LANES), self.weights.dtype.name)
            self.k.assign(total, total + weight * near)

    # -- states

    def before(self) -> Value:
        """The hidden state of the block's cells before the step."""
        t = self.layer.inputs[1]
        known = (t.integer.low, t.integer.high) if t.is_integer else (None, None)
        return self.k.let(wide(S.vload(self.memory["hs"] + self.at, lanes=LANES), self.state_type), *known)

    def hold(self, hidden: Value) -> None:
        """Stores the hidden state of the block's cells after the step."""
        S.vstore(self.k.stored(hidden, self.state_type), self.ahead + self.at)

    def hand(self, state: Value) -> None:
        """Stores the state that the second phase takes its sums of."""
        S.vstore(self.k.stored(state, self.state_type), self.memory["handed"] + self.at)

    def keep(self, numbers: Expression) -> None:
        """Stores numbers of the block's cells that outlive a phase, or a step."""
        S.vstore(numbers, self.memory["kept"] + self.at)

    def kept(self, low: int | None = None, high: int | None = None) -> Value:
        return self.k.let(S.vload(self.memory["kept"] + self.at, lanes=LANES), low, high)

    def give(self, value: Value, sequence: Tensor | None, last: Tensor | None) -> None:
        """Stores a state into the output of all steps and the output of the last one."""
        if sequence is not None:
            self._store(value, sequence, (self.image * self.count + self.step) * self.cell)
        if last is not None:
            with self.k.when(self.t == self.count - 1):
                self._store(value, last, self.image * self.cell)

    def _store(self, value: Value, tensor: Tensor, place: Expression) -> None:
        S.vstore(self.k.stored(value, tensor.dtype), self.k.tensor(tensor) + (place + self.at), self.k.mask)

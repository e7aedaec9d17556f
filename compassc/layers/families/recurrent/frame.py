"""The loops of recurrent kernels: one launch takes all steps.

Lanes are 32 cells of the state, and the cells are shared between the TECs. The hidden state lies in memory that all
TECs see, twice: a step reads one copy and writes the other, and a barrier ends it. Weights are packed so that a loaded
vector holds one input (of 8-bit integers four) of 32 cells, for every gate in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from compass_core.arrays import Array
from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.choices import choose
from compassc.layers.machine import Share, configuration
from compassc.layers.source import LANES, Kernel, KernelSource, finish, named
from compassc.layers.vectors import pointee

ALL, LEAST, MOST = Share(7), Share(1, 16), Share(3)
"""LSRAM for everything, and the least and the most for weights."""


class Sums(NamedTuple):
    """Products of a gate's weights with the input or the state. 16-bit integers: high * 2^8 + low."""

    value: Value
    low: str = ""


class Phase(NamedTuple):
    """A part of a step between barriers: the gates whose sums it needs, the vector the second factors come from, and
    the statements on the sums."""

    gates: tuple[int, ...]
    state: str
    body: list[str]


@dataclass
class RecurrenceKernel:
    """A recurrence over x [N,T,I] with states [N,C]. The phases are added, then `kernel` makes the text."""

    layer: Layer
    gates: int
    weights: Array
    k: KernelSource = field(default_factory=KernelSource)
    phases: list[Phase] = field(default_factory=list)
    arrays: list[tuple[str, int, str, str]] = field(default_factory=list)
    """Further arrays: name, elements, type, scope."""
    start: list[str] = field(default_factory=list)
    """Statements for every block of cells before the first step."""
    tables: int = 0
    """Bytes of the tables."""

    def __post_init__(self) -> None:
        x, h = self.layer.input, self.layer.inputs[1]
        if len(x.shape) != 3:
            raise LayerError(f"the input is {list(x.shape)}, expected [batch, time, features]")
        self.batch, self.steps, self.features = x.shape
        self.cell = self.weights.shape[0] // self.gates
        if 0 in x.shape or self.cell == 0:
            raise LayerError("it is empty")
        for t in self.layer.inputs[1:]:
            if t.count != self.batch * self.cell:
                raise LayerError(f"the state '{t.name}' is {list(t.shape)}, expected {[self.batch, self.cell]}")
        self.padded = -(-self.cell // LANES) * LANES
        self.k.channel, self.k.padded_channels = "cell", self.padded
        if x.is_integer:
            self.form = "dot" if x.integer.bits <= 8 and self.weights.dtype == np.int8 else "halves"
            self.kind, self.state_type = "int32", h.dtype
        else:
            self.form, self.kind, self.state_type = "float", "float32", "float32"

    @property
    def per_word(self) -> int:
        """Inputs of a loaded vector of weights."""
        return 4 if self.form == "dot" else 1

    # -- numbers

    def cells(self, numbers: Array) -> str:
        """A number, or numbers per cell."""
        if numbers.size == 1:
            return self.k.scalar(int(numbers.reshape(-1)[0]))
        padded = np.zeros(self.padded, np.int32)
        padded[: self.cell] = numbers.reshape(-1)
        name = self.k.fresh("per")
        self.k.do(f"{name} = S.vload({self.k.constant(padded)} + cell, lanes={LANES})")
        return name

    def times(self, numbers: Array) -> str:
        """A number, or numbers per step."""
        if numbers.size == 1:
            return self.k.scalar(int(numbers.reshape(-1)[0]))
        name = self.k.fresh("now")
        self.k.do(f"{name} = {self.k.constant(numbers.astype(np.int32))}[t]")
        return name

    def biases(self, rows: Array) -> list[Value]:
        """Vectors of numbers [rows, gates * C], a row per step; the last one is used for all further steps."""
        rows = rows.reshape(-1, rows.shape[-1])
        gates = rows.shape[-1] // self.cell
        wide = np.zeros((len(rows), gates, self.padded), "float32" if self.form == "float" else "int32")
        wide[:, :, : self.cell] = rows.reshape(len(rows), gates, self.cell)
        pointer, last = self.k.constant(wide.reshape(-1)), self.k.scalar(len(rows) - 1)
        row = f"S.min(age, {last}) * {gates * self.padded}" if len(rows) > 1 else "0"
        largest = int(np.abs(rows).max(initial=0)) if self.kind == "int32" else 0
        return [
            self.k.let(
                f"S.vload({pointer} + {row} + {g * self.padded} + cell, lanes={LANES})", self.kind, -largest, largest
            )
            for g in range(gates)
        ]

    # -- sums

    def sums(self, gate: int, of: str) -> Sums:
        """The sums of a gate: `of` "x" or "h"."""
        split = self.features
        rows = self.weights[gate * self.cell : (gate + 1) * self.cell]
        part = rows[:, :split] if of == "x" else rows[:, split:]
        if self.form == "float":
            return Sums(named(f"a{of}{gate}", "float32"))
        t = self.layer.input if of == "x" else self.layer.inputs[1]
        size = int(np.abs(part.astype(np.int64)).sum(1).max(initial=0))
        largest = max(-t.integer.low, t.integer.high)
        if size * (largest if self.form == "dot" else max(256, largest >> 7)) >= 2**31 - 1:
            raise LayerError("its sums do not fit 32 bits, which no kernel here computes with")
        value = named(f"a{of}{gate}", "int32", -size * largest, size * largest)
        return Sums(value, "" if self.form == "dot" else f"b{of}{gate}")

    def _packed(self, gates: Sequence[int]) -> Array:
        """Weights [block][word][gate][lane][input of the word], words of the input, then of the state."""
        parts = []
        for columns in (self.weights[:, : self.features], self.weights[:, self.features :]):
            words = -(-columns.shape[1] // self.per_word)
            wide = np.zeros((self.gates, self.padded, words * self.per_word), columns.dtype)
            wide[:, : self.cell, : columns.shape[1]] = columns.reshape(self.gates, self.cell, -1)
            chosen = wide[list(gates)].reshape(len(gates), self.padded // LANES, LANES, words, self.per_word)
            parts.append(chosen.transpose(1, 3, 0, 2, 4))
        return np.ascontiguousarray(np.concatenate(parts, 1)).reshape(-1)

    def _words(self) -> tuple[int, int]:
        return -(-self.features // self.per_word), -(-self.cell // self.per_word)

    def _products(self, phase: Phase, of: str, source: str, count: str, start: str, most: int) -> list[str]:
        """The loop over the words of one part of the weights, in segments of at most `most` words."""
        row = len(phase.gates) * LANES * self.per_word
        loops = {"dot": self._dot, "halves": self._halves, "float": self._float}[self.form]
        return [
            f"for c0 in range(0, {count}, {most}):",
            f"    words = S.min({count} - c0, {most})",
            f"    held = wt + kept * (slot * {sum(self._words()) * row} + {start} * {row})",
            "    if kept == 0 or age == 0:",
            f"        S.dma_copy(held, base + ({start} + c0) * {row}, words * {row})",
            "    for c in range(words):",
            *(f"        {line}" for line in loops(phase, of, source, row)),
        ]

    def _dot(self, phase: Phase, of: str, source: str, row: int) -> list[str]:
        lines = [f"near = spread({source}w[c0 + c], {source}.dtype)"]
        for i, g in enumerate(phase.gates):
            at = f"held + c * {row} + {i * LANES * 4}"
            lines.append(f"a{of}{g} = S.vqdpa(a{of}{g}, near, S.vload({at}, lanes={LANES * 4}))")
        return lines

    def _halves(self, phase: Phase, of: str, source: str, row: int) -> list[str]:
        lines = [f'near = S.cast({source}[c0 + c], "int32")', "top = near >> 8", "bottom = near & 255"]
        for i, g in enumerate(phase.gates):
            lines += [
                f'wv = S.cast(S.vload(held + c * {row} + {i * LANES}, lanes={LANES}), "int32")',
                f"a{of}{g} = a{of}{g} + wv * top",
                f"b{of}{g} = b{of}{g} + wv * bottom",
            ]
        return lines

    def _float(self, phase: Phase, of: str, source: str, row: int) -> list[str]:
        lines = [f'near = S.cast({source}[c0 + c], "float32")']
        dtype = self.weights.dtype.name
        for i, g in enumerate(phase.gates):
            at = f"held + c * {row} + {i * LANES}"
            lines.append(f'a{of}{g} = a{of}{g} + wide(S.vload({at}, lanes={LANES}), "{dtype}") * near')
        return lines

    # -- the kernel

    def stored(self, value: Value, tensor: Tensor, place: str) -> str:
        return f'S.vstore(narrow({value.name}, "{tensor.dtype}"), {self.k.tensor(tensor)} + {place} + cell, mask)'

    def states(self, value: Value, sequence: Tensor | None, last: Tensor | None) -> list[str]:
        """Stores of a state into the output of all steps and the output of the last one."""
        lines = []
        if sequence is not None:
            lines.append(self.stored(value, sequence, f"(image * {self.steps} + at) * {self.cell}"))
        if last is not None:
            lines += [f"if t == {self.steps - 1}:", "    " + self.stored(value, last, f"image * {self.cell}")]
        return lines

    def kernel(self) -> Kernel:
        """The finished kernel of the phases."""
        k, x, h0 = self.k, self.k.tensor(self.layer.input), self.k.tensor(self.layer.inputs[1])
        k.body.clear()
        most, allocations = self._allocations()
        size = {"n": k.scalar(self.batch), "steps": k.scalar(self.steps), "features": k.scalar(self.features)}
        blocks = k.scalar(self.padded // LANES)
        backwards = self.layer.word("direction", "FORWARD", ("FORWARD", "REVERSE")) == "REVERSE"
        around = f"for block in range(S.get_local_id(), {blocks}, S.get_local_size()):"
        block = [
            f"cell = block * {LANES}",
            f"mask = S.tail_mask(S.min({self.cell} - cell, {LANES}), {LANES})",
        ]
        first = f'load({h0} + image * {self.cell} + cell, mask, "{self.layer.inputs[1].dtype}", {LANES})'
        lines = [
            *allocations,
            f"kept = S.min(S.max({self._room(most)} + 1 - S.ceildiv({blocks}, S.get_local_size()), 0), 1)",
            f"for image in range({size['n']}):",
            f"    {around}",
            *(f"        {line}" for line in block),
            f'        S.vstore(narrow({first}, "{self.state_type}"), state + cell)',
            *(f"        {line}" for line in self.start),
            "    S.barrier()",
            f"    for t in range({size['steps']}):",
            f"        at = {size['steps'] + ' - 1 - t' if backwards else 't + 0'}",
            f"        age = image * {size['steps']} + t",
            f"        S.dma_copy(xs, {x} + (image * {size['steps']} + at) * {size['features']}, {size['features']})",
            *(f"        {line}" for line in self._copied("hs", f"state + t % 2 * {self.padded}")),
            f"        ahead = state + (1 - t % 2) * {self.padded}",
        ]
        for i, phase in enumerate(self.phases):
            inner = [*block, *self._phase(phase, most), *phase.body, "slot = slot + 1"]
            if i:
                lines += [f"        {line}" for line in self._copied(f"{phase.state}s", f"{phase.state}_shared")]
            lines += ["        slot = 0", f"        {around}", *(f"            {line}" for line in inner)]
            lines.append("        S.barrier()")
        return finish(k, [*k.head, *lines])

    def _copied(self, to: str, source: str) -> list[str]:
        """A state from the memory of all TECs into the TEC's own."""
        move = f"S.vstore(S.vload({source} + j, lanes={LANES}), {to} + j)"
        return [f"for j in range(0, {self.padded}, {LANES}):", f"    {move}"]

    def _phase(self, phase: Phase, most: int) -> list[str]:
        words = self._words()
        pointer = self.k.constant(self._packed(phase.gates))
        zero = f"S.vbcast(S.{'fp32(0.0)' if self.kind == 'float32' else 'i32(0)'}, lanes={LANES})"
        sums = [f"{s}{of}{g}" for s in ("ab" if self.form == "halves" else "a") for of in "xh" for g in phase.gates]
        row = len(phase.gates) * LANES * self.per_word
        return [
            f"base = {pointer} + block * {sum(words) * row}",
            *(f"{name} = {zero}" for name in sums),
            *self._products(phase, "x", "xs", self.k.scalar(words[0]), "0", most),
            *self._products(phase, "h", f"{phase.state}s", self.k.scalar(words[1]), str(words[0]), most),
        ]

    def _room(self, most: int) -> int:
        """The number of blocks of cells whose weights are kept in LSRAM."""
        return most // sum(self._words()) if len(self.phases) == 1 else 0

    def _most(self, row: int, free: int) -> int:
        """Words of weights in LSRAM, of `row` bytes each: those that need the fewest transfers in a step, else the usual ones."""
        usual, blocks = min(MOST.size, free) // row, -(-self.padded // LANES // configuration().tecs)

        def cost(most: int) -> tuple[int, int]:
            kept = self._room(most) >= blocks
            return 0 if kept else sum(-(-words // most) for words in self._words()), abs(most - usual)

        options = {min(MOST.size * parts // MOST.parts, free) // row for parts in range(1, ALL.parts + 1)}
        return choose("weights", (most for most in options if most * row >= LEAST.size and most > 0), cost, str) or 0

    def _allocations(self) -> tuple[int, list[str]]:
        """(words of weights that fit LSRAM, the statements)."""
        row = max(len(p.gates) for p in self.phases) * LANES * self.per_word * self.weights.itemsize
        features = -(-self.features // LANES) * LANES
        arrays = [
            ("xs", features, self.layer.input.dtype, "lsram"),
            ("hs", self.padded, self.state_type, "lsram"),
            ("state", 2 * self.padded, self.state_type, "shared"),
            *self.arrays,
        ]
        used = sum(n * numpy_dtype(dtype).itemsize for _, n, dtype, scope in arrays if scope == "lsram") + self.tables
        most = self._most(row, ALL.size - used)
        if most * row < LEAST.size or most == 0:
            raise LayerError(f"states of {self.cell} cells with {self.features} features do not fit LSRAM")
        lines = [
            f'wt = S.alloc({most * row // self.weights.itemsize}, "{pointee(self.weights.dtype.name)}", scope="lsram")'
        ]
        for name, n, dtype, scope in arrays:
            lines.append(f'{name} = S.alloc({n}, "{pointee(dtype)}", scope="{scope}")')
            if self.form == "dot" and name.endswith("s") and scope == "lsram" and name != "cells":
                lines.append(f'{name}w = {name}.as_ptr("int32")')
        return most, lines

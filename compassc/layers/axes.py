"""The loops of kernels that reduce or normalise along axes, over shapes collapsed to as few dimensions as possible.

One dimension gives the lanes of a vector: a kept one, so that each lane works on its own result, or a reduced one,
where the lanes are joined at the end and every lane then holds the result. What is written between is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Array
from compassc.layers.emit import as_stored, wide_kind
from compassc.layers.kernels import follow
from compassc.layers.machine import Share, tasks
from compassc.layers.source import LANES, Kernel, KernelSource, finish, invariant, named, widened
from compassc.layers.vectors import WIDE, pointee

SLAB = Share(5)
"""LSRAM for the elements of one position, of all staged operands together."""
BYTES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2}
"""Bytes of an element where they are not 4."""


STREAM = Share(3)
"""LSRAM for the two tiles of an operand whose elements of one position are too many for it."""
STREAMED = 64
"""Elements of a position from which on they come in such tiles."""


class Dim(NamedTuple):
    """A dimension: its size, whether it is reduced, and the elements each operand moves from one index to the next."""

    size: int
    reduced: bool
    steps: tuple[int, ...]


def collapsed(shape: Sequence[int], axes: Sequence[int], shapes: Sequence[Sequence[int]]) -> list[Dim]:
    """The dimensions of `shape` without those of one element; neighbours are one where all operands allow it."""
    rank, dims = len(shape), list[Dim]()
    wide = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    steps = [1] * len(shapes)
    for axis in reversed(range(rank)):
        own = tuple(step if s[axis] > 1 else 0 for s, step in zip(wide, steps, strict=True))
        steps = [step * s[axis] for s, step in zip(wide, steps, strict=True)]
        new = Dim(shape[axis], axis in axes, own)
        if new.size == 1:
            continue
        last = dims[-1] if dims else None
        if (
            last
            and last.reduced == new.reduced
            and all(a == b * last.size for a, b in zip(own, last.steps, strict=True))
        ):
            dims[-1] = Dim(last.size * new.size, last.reduced, last.steps)
        else:
            dims.append(new)
    return dims[::-1] or [Dim(1, False, (0,) * len(shapes))]


def ending(layer: Layer, tail: Sequence[Layer]) -> Tensor:
    """The output of a layer with its tail, in the shape that the layer gives it."""
    return replace((tail[-1] if tail else layer).output, shape=layer.output.shape)


class AxisLoop:
    """A loop over the positions that are kept; in it `each` goes along the reduced axes.

    `operands`: tensors and constants by name, of the shape of the first or with sizes of 1 in it. `staged` names those
    that a position's elements are copied of into LSRAM, and back from it for the tensors in `written`. `scratch` are
    further arrays there with a type each, for values of a position's elements. All are there or, with too many
    elements, none: look at `scratch`. `sequential`: each lane takes its elements in their order.
    """

    def __init__(
        self,
        k: KernelSource,
        axes: Sequence[int],
        operands: Mapping[str, Tensor | Array],
        staged: Sequence[str] = (),
        written: Sequence[str] = (),
        scratch: Mapping[str, str] = {},
        sequential: bool = False,
    ) -> None:
        self.k, self.names = k, list(operands)
        self.kinds = {n: o if isinstance(o, Tensor) else None for n, o in operands.items()}
        self.dtypes = {n: o.dtype if isinstance(o, Tensor) else o.dtype.name for n, o in operands.items()}
        shapes = [tuple(o.shape) for o in operands.values()]
        if any(0 in s for s in shapes):
            raise LayerError("a tensor is empty, which no kernel here takes")
        dims = collapsed(shapes[0], axes, shapes)
        if sequential and all(d.reduced for d in dims):
            dims.append(Dim(1, False, (0,) * len(shapes)))
        possible = [i for i, d in enumerate(dims) if not (sequential and d.reduced)]
        lane = max(possible, key=lambda i: min(dims[i].size, LANES) * (2 if dims[i].steps[0] == 1 else 1))
        self.lane = dims[lane]
        self.across = self.lane.reduced
        self.partial = self.across and self.lane.size % LANES > 0
        """Whether lanes that are joined may hold nothing."""
        self.kept = [d for i, d in enumerate(dims) if i != lane and not d.reduced]
        self.reduced = [d for i, d in enumerate(dims) if i != lane and d.reduced]
        self.count = int(np.prod([shapes[0][a] for a in axes], dtype=np.int64))
        """Elements that are reduced to one."""
        self.pointers = {
            n: k.tensor(o) if isinstance(o, Tensor) else k.constant(np.ascontiguousarray(o).reshape(-1))
            for n, o in operands.items()
        }
        self.staged = [n for n in staged if self._stageable(n)]
        self.written = [n for n in written if n in self.staged]
        size = -(-self.lane.size // LANES) * LANES if self.across else LANES * self.count
        if self.staged:
            self.staged += scratch
            self.dtypes |= scratch
            self.kinds |= dict.fromkeys(scratch)
        if sum(size * BYTES.get(self.dtypes[n], 4) for n in self.staged) > SLAB.size:
            self.staged = self.written = []
        self.scratch = [n for n in scratch if n in self.staged]
        self.slab = size
        self._width = k.scalar(self.lane.size)
        self._indices: list[str] = []
        self._j = ""
        self._streamed: dict[str, str] = {}
        self._by = 1
        self.around: tuple[list[str], list[str]] = ([], [])
        """Lines before and behind the elements of a tile, for an `each` of an operand that comes in tiles."""
        self._tile = ""

    def streams(self, name: str) -> bool:
        """Whether an operand comes in tiles: long columns of which lanes take one each."""
        if name != "x" or name in self.staged or self.across or len(self.reduced) != 1:
            return False
        i, (column,) = self.names.index(name), self.reduced
        return self.lane.steps[i] == 1 and column.steps[i] > 0 and column.size >= STREAMED

    def _goes(self, name: str, dtype: str) -> bool:
        """Whether the elements of `y` leave in tiles, as those of `x` come."""
        i = self.names.index(name)
        contiguous = self.lane.steps[i] == 1 and self.reduced[0].steps[i] > 0
        return name == "y" and contiguous and BYTES.get(dtype, 4) <= BYTES.get(self.dtypes["x"], 4)

    def _stageable(self, name: str) -> bool:
        i = self.names.index(name)
        contiguous = self.lane.steps[i] == 1
        return contiguous and len(self.reduced) == (0 if self.across else 1)

    def _step(self, name: str, dim: Dim) -> int:
        if name in self.staged:
            return 1 if dim is self.lane else 0 if not dim.reduced else LANES
        return dim.steps[self.names.index(name)]

    def at(self, name: str) -> str:
        """The expression of an operand's element, or of the first of the pass's lanes."""
        terms = [] if name in self.staged else [f"base_{name}"]
        for dim, index in zip(self.reduced, self._indices, strict=False):
            terms += self._term(self._step(name, dim), index)
        if self._j:
            terms += self._term(self._step(name, self.lane), self._j)
        return f"({' + '.join(terms) or '0'})"

    def _term(self, step: int, index: str) -> list[str]:
        return [] if step == 0 else [index] if step == 1 else [f"{index} * {self.k.scalar(step)}"]

    def pointer(self, name: str) -> str:
        return f"slab_{name}" if name in self.staged else self.pointers[name]

    def _stride(self, name: str) -> str:
        step = self._step(name, self.lane)
        return "" if step == 1 else f", stride={self.k.scalar(step)}"

    def raw(self, name: str) -> str:
        """The expression of an operand's stored lanes; an element that all lanes share is in every one."""
        if self._tile and self.streams(name):
            self._streamed[name] = self.dtypes[name]
            return f"S.vload(near_{name} + ({self._indices[0]} - {self._tile}) * {LANES}, lanes={LANES})"
        return self.lanes_at(self.pointer(name), name)

    def lanes_at(self, pointer: str, name: str) -> str:
        """The same of other data that lie as an operand does."""
        if self._step(name, self.lane) == 0:
            return f"S.vbcast({pointer}[{self.at(name)}], lanes={LANES})"
        return f"S.vload({pointer} + {self.at(name)}, mask, lanes={LANES}{self._stride(name)})"

    def load(self, name: str) -> Value:
        """An operand's elements in their wide form."""
        tensor, dtype, held = self.kinds[name], self.dtypes[name], self.k.fresh()
        kind = WIDE[dtype] if tensor is None else wide_kind(tensor)
        for line in widened(held, self.raw(name), dtype):
            self.k.do(line)
        low, high = (tensor.low, tensor.high) if tensor is not None and kind == "int32" else (0, 0)
        return named(held, kind, low, high)

    def store(self, name: str, value: str, dtype: str = "") -> None:
        """Stores lanes in the wide form; where the lanes are joined, the one result."""
        dtype = dtype or self.dtypes[name]
        if "x" in self._streamed and self._tile and self._goes(name, dtype):
            self._streamed[name] = dtype
            at = f"({self._indices[0]} - {self._tile}) * {LANES}"
            self.k.do(f'S.vstore(narrow({value}, "{dtype}"), going_{name} + {at})')
            return
        single = self.across and self._step(name, self.lane) == 0
        place, mask = f"{self.pointer(name)} + {self.at(name)}", "one" if single else "mask"
        stride = "" if single else self._stride(name)
        self.k.do(f'S.vstore(narrow({value}, "{dtype}"), {place}, {mask}{stride})')

    def along(self, name: str, index: str) -> str:
        """The expression of an operand's element at an index of the one axis that is reduced (or of the first lane's)."""
        dim = self.lane if self.across else self.reduced[0] if self.reduced else None
        terms = [] if name in self.staged else [f"base_{name}"]
        terms += self._term(self._step(name, dim), index) if dim else []
        return " + ".join(terms) or "0"

    def put(self, name: str, index: str, value: str) -> None:
        """Stores lanes as they are at an index of the axis that is reduced; where lanes are joined, the one result."""
        stride = "" if self.across else self._stride(name)
        mask = "one" if self.across else "mask"
        self.k.do(f"S.vstore({value}, {self.pointers[name]} + {self.along(name, index)}, {mask}{stride})")

    def lanes(self) -> str:
        """The expression of the numbers of the lanes, 0 to 31."""
        return f"S.vload({self.k.constant(np.arange(LANES, dtype=np.int32))}, lanes={LANES})"

    def finish(self, layer: Layer, tail: Sequence[Layer], value: Value) -> None:
        """Stores a value in `y`, after the element-wise layers of the tail."""
        own = layer.output
        if own.is_integer and (value.low < own.integer.low or value.high > own.integer.high):
            low, high = max(value.low, own.integer.low), min(value.high, own.integer.high)
            value = self.k.let(f"clamp({value.name}, {low}, {high})", "int32", low, high)
        if tail:
            if self._step("y", self.lane) not in (0, 1) or "y" in self.staged:
                raise LayerError("the layers behind it cannot join the kernel")
            if self.across and self._step("y", self.lane) == 0:
                self.k.do("mask = one")
            value, out = follow(self.k, layer, value, tail, self.at("y"))
            self.store("y", value.name, out.dtype)
        else:
            self.store("y", as_stored(self.k, value, layer.output).name, layer.output.dtype)

    def settle(self, layer: Layer, tail: Sequence[Layer], value: Value) -> None:
        """Stores an element of `y`, the output of the last of the layers, where every element of it is made in `each`.

        Further operands of the tail are loaded from where `y` lies in device memory.
        """
        if not tail:
            self.store("y", value.name)
            return
        made = {t.name for member in (layer, *tail) for t in member.outputs}
        y = self.names.index("y")
        if self.lane.steps[y] != 1 and any(t.name not in made for member in tail for t in member.inputs):
            raise LayerError("the layers behind it have operands that do not lie as its lanes do")
        terms = ["base_y"]
        for dim, index in zip(self.reduced, self._indices, strict=False):
            terms += self._term(dim.steps[y], index)
        terms += self._term(self.lane.steps[y], self._j) if self._j else []
        last, out = follow(self.k, layer, value, tail, f"({' + '.join(terms)})")
        self.store("y", last.name, out.dtype)

    def filled(self, number: str, kind: str) -> str:
        """The expression of a vector with one number in all lanes."""
        single = f"S.fp32({number})" if kind == "float32" else f'S.cast({number}, "{kind}")'
        return f"S.vbcast({single}, lanes={LANES})"

    def start(self, name: str, number: str, kind: str) -> None:
        self.k.do(f"{name} = {self.filled(number, kind)}")

    def active(self, value: str, neutral: str, kind: str) -> str:
        """The value, neutral in lanes that hold none: those are joined with the others."""
        return f"S.vsel({value}, {self.filled(neutral, kind)}, mask)" if self.partial else value

    def join(self, name: str, how: str) -> None:
        """The lanes of a variable joined by a function of `joins`, where they are of one result."""
        if self.across:
            self.k.do(f"{name} = {how}({name})")

    @contextmanager
    def each(self, backwards: bool = False) -> Iterator[str]:
        """Statements for every reduced element. Gives the expression of its index, where one axis is reduced.

        `backwards`: from the last one on, in a walk that is sequential.
        """
        k, outer = self.k, self.k.body
        k.body = []
        self._indices = [k.fresh("r") for _ in self.reduced]
        self._tile = "" if backwards else k.fresh("tile")
        streamed, self._streamed = self._streamed, {}
        loops = []
        for i, d in enumerate(self.reduced):
            r, size = self._indices[i], k.scalar(d.size)
            loops.append(f"for {r} in range({size}):")
            if backwards:
                self._indices[i] = f"({size} - 1 - {r})"
        if self.across:
            self._j = k.fresh("j")
            loops.append(f"for {self._j} in range(0, {self._width}, {LANES}):")
            if self.partial:
                k.do(f"mask = S.tail_mask(S.min({self._width} - {self._j}, {LANES}), {LANES})")
        yield self._j or (self._indices[-1] if self._indices else "0")
        lines = k.body
        if self._streamed:
            lines = self._in_tiles("x", lines)
        else:
            for loop in reversed(loops):
                lines = [loop, *("    " + line for line in lines)]
        self._streamed = streamed | self._streamed
        self._tile = ""
        k.body = [*outer, *lines]
        if self.partial:
            k.do(f"mask = S.tail_mask({LANES}, {LANES})")
        self._indices, self._j = [], ""

    @contextmanager
    def by_fours(self) -> Iterator[list[str]]:
        """As `each`, of four elements of x at a time, whose stored lanes it gives; 0 behind the last one. x comes in tiles."""
        k, column, kind = self.k, self.k.scalar(self.reduced[0].size), pointee(self.dtypes["x"])
        self._by = 4
        with self.each():
            self._streamed["x"] = self.dtypes["x"]
            first = f"near_x + ({self._indices[0]} - {self._tile}) * {LANES}"
            yield [k.let(f"S.vload({first} + {i * LANES}, mask, lanes={LANES})").name for i in range(4)]
            zeros = f'S.vbcast(S.cast(0, "{kind}"), lanes={LANES})'
            some = f"S.min({k.scalar(self._stream_room('x') // LANES)}, {column} - {self._tile})"
            self.around = (
                [
                    f"some = {some}",
                    "for e in range(some, (some + 3) & -4):",
                    f"    S.vstore({zeros}, near_x + e * {LANES})",
                ],
                [],
            )
        self.around, self._by = ([], []), 1

    def _in_tiles(self, name: str, body: Sequence[str]) -> list[str]:
        """The loop over the reduced elements, which come in tiles: the next one comes while one is worked on."""
        k, dim, r, tile = self.k, self.reduced[0], self._indices[0], self._tile
        half = self._stream_room(name)
        size, rows, step = (k.scalar(n) for n in (dim.size, half // LANES, dim.steps[self.names.index(name)]))
        far, width = f"{self.pointers[name]} + base_{name}", f"S.min({self._width} - lane, {LANES})"

        def coming(near: str, first: str) -> str:
            some = f"S.min({rows}, {size} - {first})"
            return f"S.async_dma_copy({near}, {far} + {first} * {step}, {width}, {step}, {some}, {LANES}, event=came)"

        shared, body = invariant(list(body), (r, tile, f"near_{name}", "going_y"))
        return [
            *shared,
            coming(f"stream_{name} + turn", "0"),
            f"for {tile} in range(0, {size}, {rows}):",
            "    S.wait_events(came)",
            f"    near_{name} = stream_{name} + turn",
            *(["    going_y = stream_y + turn"] if "y" in self._streamed else []),
            f"    turn = {half} - turn",
            f"    if {tile} + {rows} < {size}:",
            f"        {coming(f'stream_{name} + turn', f'({tile} + {rows})')}",
            *("    " + line for line in self.around[0]),
            f"    for {r} in range({tile}, S.min({tile} + {rows}, {size}){f', {self._by}' if self._by > 1 else ''}):",
            *("        " + line for line in body),
            *("    " + line for line in self.around[1]),
            *self._leaving(size, rows),
        ]

    def _leaving(self, size: str, rows: str) -> list[str]:
        """The transfer of a tile of `y`, beside which the next one is made."""
        if "y" not in self._streamed:
            return []
        step, width = (
            self.k.scalar(self.reduced[0].steps[self.names.index("y")]),
            f"S.min({self._width} - lane, {LANES})",
        )
        far, some = f"{self.pointers['y']} + base_y + {self._tile} * {step}", f"S.min({rows}, {size} - {self._tile})"
        return [
            f"    if {self._tile} > 0:",
            "        S.wait_events(gone)",
            f"    S.async_dma_copy({far}, going_y, {width}, {LANES}, {some}, {step}, event=gone)",
            "S.wait_events(gone)",
        ]

    def _stream_room(self, name: str) -> int:
        """Elements of a tile of an operand that comes in tiles."""
        size = BYTES.get(self.dtypes[name], 4)
        # sums of so many bytes fit 16 bits
        return min(STREAM.size // 2 // size, 128 * LANES)

    def sum_of(self, name: str, term: Callable[[], str], kind: str) -> None:
        """A variable with the sum of one term per reduced element; `term` loads its operands."""
        zero = "0.0" if kind == "float32" else "0"
        self.start(name, zero, kind)
        with self.each():
            self.k.do(f"{name} = {name} + {self.active(term(), zero, kind)}")
        self.join(name, "across_sum")

    def mean(self, name: str) -> None:
        """`mean`: that of a float operand."""
        self.sum_of("mean", lambda: self.load(name).name, "float32")
        self.k.do(f"mean = mean / {self.k.scalar(float(self.count))}")

    def sum_pair(self, term: Callable[[], str]) -> None:
        """`high` and `low`: the sum of an int32 term of every reduced element as high * 65536 + low (16 bits)."""
        self.start("high", "0", "int32")
        self.start("low", "0", "int32")
        with self.each():
            self.k.do(f"add_to_pair(high, low, {self.active(term(), '0', 'int32')})")
        self.join("high", "across_sum")
        self.join("low", "across_sum")
        self.k.do("high = high + (low >> 16)")
        self.k.do("low = low & 0xFFFF")

    def where_active(self, value: str, kind: str) -> str:
        """A result of the position, 0 in lanes that have none."""
        return value if self.across else f"S.vsel({value}, {self.filled('0', kind)}, mask)"

    def kernel(self, before: Sequence[str] = ()) -> Kernel:
        """The kernel whose body has been written. `before`: lines ahead of the loop."""
        bunch = self._bunch()
        sizes = {n: 2 * bunch[0] if bunch and n not in self.scratch else self.slab for n in self.staged}
        slabs = [
            f'{"all" if bunch and n not in self.scratch else "slab"}_{n} = S.alloc({sizes[n]}, "{pointee(self.dtypes[n])}", '
            'scope="lsram")'
            for n in self.staged
        ]
        loop = self._in_bunches(*bunch) if bunch else self.loop()
        return finish(self.k, [*self.k.head, *slabs, *before, *loop])

    def _bunch(self) -> tuple[int, int] | None:
        """(elements of LSRAM, positions) that one transfer moves, of two for each tensor; None where positions do not lie
        behind each other."""
        moved = [n for n in self.staged if n not in self.scratch]
        steps = [d.steps[self.names.index(n)] for n in moved for d in self.kept]
        if not moved or not self.across or len(self.kept) != 1 or any(s != self.lane.size for s in steps):
            return None
        room = SLAB.size - sum(self.slab * BYTES.get(self.dtypes[n], 4) for n in self.scratch)
        elements = room // 2 // sum(BYTES.get(self.dtypes[n], 4) for n in moved) // LANES * LANES
        fitting = elements // self.lane.size
        return (elements, max(1, min(fitting, -(-self.kept[0].size // tasks())))) if fitting > 1 else None

    def _in_bunches(self, elements: int, many: int) -> list[str]:
        """The loop over the positions around the body, with one transfer for several of them: the next ones come, and the
        last ones go, while those between are worked on."""
        k = self.k
        total, each, half = k.scalar(self.kept[0].size), k.scalar(many), k.scalar(elements)
        moved = [n for n in self.staged if n not in self.scratch]
        inner = [f"mask = S.tail_mask({LANES}, {LANES})", "one = S.tail_mask(1, 32)", "i0 = item + 0"]
        inner += [f"base_{n} = {self._base(i)}" for i, n in enumerate(self.names)]
        inner += [f"slab_{n} = all_{n} + turn + (item - from_item) * {self._width}" for n in moved]
        start, step = f"S.get_local_id() * {each}", f"S.get_local_size() * {each}"
        going = [self._moving(n, "from_item", "past_item", "turn", back=True) for n in self.written]
        return [
            "came, gone = S.alloc_events(2)",
            "turn = S.i32(0)",
            f"first_item = {start}",
            f"if first_item < {total}:",
            f"    past_first = S.min(first_item + {each}, {total})",
            *(f"    {line}" for line in self._coming("first_item", "past_first", "0")),
            f"for from_item in range(first_item, {total}, {step}):",
            f"    past_item = S.min(from_item + {each}, {total})",
            f"    next_item = from_item + {step}",
            "    S.wait_events(came)",
            f"    if next_item < {total}:",
            f"        past_next = S.min(next_item + {each}, {total})",
            *(f"        {line}" for line in self._coming("next_item", "past_next", f"({half} - turn)")),
            "    for item in range(from_item, past_item):",
            *(f"        {line}" for line in [*inner, *k.body]),
            *(["    if from_item > first_item:", "        S.wait_events(gone)"] if going else []),
            *(f"    {line}" for line in going),
            f"    turn = {half} - turn",
            "S.free_events(came, gone)",
        ]

    def _coming(self, first: str, past: str, half: str) -> list[str]:
        read = [n for n in self.staged if n not in (*self.scratch, *self.written)]
        return [self._moving(n, first, past, half) for n in read]

    def _moving(self, name: str, first: str, past: str, half: str, back: bool = False) -> str:
        """The transfer of positions into LSRAM or back, in the background."""
        near, far = f"all_{name} + {half}", f"{self.pointers[name]} + {first} * {self._width}"
        into, source = (far, near) if back else (near, far)
        event = "gone" if back else "came"
        return f"S.async_dma_copy({into}, {source}, ({past} - {first}) * {self._width}, event={event})"

    def loop(self, everywhere: bool = False) -> list[str]:
        """The loop over the positions around the body; `everywhere`: every core goes to all of them."""
        k = self.k
        blocks = 1 if self.across else -(-self.lane.size // LANES)
        positions = int(np.prod([d.size for d in self.kept], dtype=np.int64))
        lines = ["rest = item + 0"]
        if not self.across:
            many = k.scalar(blocks)
            lines = [
                f"lane = item % {many} * {LANES}",
                f"rest = item / {many}",
                f"mask = S.tail_mask(S.min({self._width} - lane, {LANES}), {LANES})",
            ]
        else:
            lines += [f"mask = S.tail_mask({LANES}, {LANES})", "one = S.tail_mask(1, 32)"]
        for d in reversed(range(len(self.kept))):
            size = k.scalar(self.kept[d].size)
            lines += [f"i{d} = rest % {size}", f"rest = rest / {size}"] if d else ["i0 = rest + 0"]
        lines += [f"base_{n} = {self._base(i)}" for i, n in enumerate(self.names)]
        lines += [self._copied(n, False) for n in self.staged if n not in (*self.written, *self.scratch)]
        lines += k.body
        lines += [self._copied(n, True) for n in self.written]
        span = "0, {n}, 1" if everywhere else "S.get_local_id(), {n}, S.get_local_size()"
        loop = [
            f"for item in range({span.format(n=k.scalar(blocks * positions))}):",
            *("    " + line for line in lines),
        ]
        if not self._streamed:
            return loop
        room = 2 * self._stream_room("x")
        tiles = [f'stream_{n} = S.alloc({room}, "{pointee(t)}", scope="lsram")' for n, t in self._streamed.items()]
        events = ", ".join(["came", "gone"][: len(tiles)])
        return [
            *tiles,
            f"{events} = S.alloc_events({len(tiles)})",
            "turn = S.i32(0)",
            *loop,
            f"S.free_events({events})",
        ]

    def _base(self, operand: int) -> str:
        terms = [t for d, dim in enumerate(self.kept) for t in self._term(dim.steps[operand], f"i{d}")]
        if not self.across:
            terms += self._term(self.lane.steps[operand], "lane")
        return " + ".join(terms) or "S.i32(0)"

    def _copied(self, name: str, back: bool) -> str:
        """The copy of a position's elements into LSRAM, or back."""
        near, far = f"slab_{name}", f"{self.pointers[name]} + base_{name}"
        if self.across:
            return f"S.dma_copy({far}, {near}, {self._width})" if back else f"S.dma_copy({near}, {far}, {self._width})"
        width = f"S.min({self._width} - lane, {LANES})"
        step = self.k.scalar(self.reduced[0].steps[self.names.index(name)])
        times = self.k.scalar(self.reduced[0].size)
        if back:
            return f"S.dma_copy({far}, {near}, {width}, {LANES}, {times}, {step})"
        return f"S.dma_copy({near}, {far}, {width}, {step}, {times}, {LANES})"

"""The loops of kernels that reduce or normalise along axes, over shapes collapsed to as few dimensions as possible.

One dimension gives the lanes of a vector: a kept one, so that each lane works on its own result, or a reduced one,
where the lanes are joined at the end and every lane then holds the result. What is written between is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, reduce

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.build import Address, Expression, Line, Pointer, Value, invariant
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.ir.dtypes import INT32
from compassc.layers.emit import as_stored
from compassc.layers.kernels import follow
from compassc.layers.lane_arithmetic import across_sum, add_to_pair
from compassc.layers.layer_kernel import Lanes, LayerKernel, tail
from compassc.layers.machine import Share, tasks
from compassc.layers.streams import bytes_of
from compassc.layers.vectors import LANES, clamp, everywhere, pointee, wide_kind

SLAB = Share(5)
"""LSRAM for the elements of one position, of all staged operands together."""
STREAM = Share(3)
"""LSRAM for the two tiles of an operand whose elements of one position are too many for it."""
STREAMED = 64
"""Elements of a position from which on they come in such tiles."""


Number = float | str | Value
"""A number of the kernel, or a literal; infinity in words."""


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
    """A loop over the positions that are kept (`positions`); in it `each` goes along the reduced axes.

    `operands`: tensors and constants by name, of the shape of the first or with sizes of 1 in it. `staged` names those
    that a position's elements are copied of into LSRAM, and back from it for the tensors in `written`. `scratch` are
    further arrays there with a type each, for values of a position's elements. All are there or, with too many
    elements, none: look at `scratch`. `sequential`: each lane takes its elements in their order.
    """

    def __init__(
        self,
        k: LayerKernel,
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
            n: k.tensor(o) if isinstance(o, Tensor) else k.pointer(np.ascontiguousarray(o).reshape(-1))
            for n, o in operands.items()
        }
        self.staged = [n for n in staged if self._stageable(n)]
        self.written = [n for n in written if n in self.staged]
        size = -(-self.lane.size // LANES) * LANES if self.across else LANES * self.count
        if self.staged:
            self.staged += scratch
            self.dtypes |= scratch
            self.kinds |= dict.fromkeys(scratch)
        if sum(size * bytes_of(self.dtypes[n]) for n in self.staged) > SLAB.size:
            self.staged = self.written = []
        self.scratch = [n for n in scratch if n in self.staged]
        self.slab = size
        self.width = k.number(self.lane.size)
        self._slabs: dict[str, Pointer] = {}
        self.bases: dict[str, Value] = {}
        self._indices: list[Expression] = []
        self._j: Value | None = None
        self._tiles: Tiles | None = None
        self._streams: dict[str, tuple[Pointer, Value]] = {}

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
        return name == "y" and contiguous and bytes_of(dtype) <= bytes_of(self.dtypes["x"])

    def _stageable(self, name: str) -> bool:
        i = self.names.index(name)
        contiguous = self.lane.steps[i] == 1
        return contiguous and len(self.reduced) == (0 if self.across else 1)

    def _step(self, name: str, dim: Dim) -> int:
        if name in self.staged:
            return 1 if dim is self.lane else 0 if not dim.reduced else LANES
        return dim.steps[self.names.index(name)]

    def _terms(self, name: str, steps: Callable[[Dim], int]) -> Expression:
        """Where an operand's element is, or the first of the pass's lanes: by its steps along the dimensions."""
        terms: list[Expression] = [] if name in self.staged else [self.bases[name]]
        for dim, index in zip(self.reduced, self._indices, strict=False):
            terms += self._term(steps(dim), index)
        if self._j is not None:
            terms += self._term(steps(self.lane), self._j)
        return _sum(terms)

    def at(self, name: str) -> Expression:
        """Where an operand's element is, or the first of the pass's lanes."""
        return self._terms(name, lambda dim: self._step(name, dim))

    def _term(self, step: int, index: Expression) -> list[Expression]:
        return [] if step == 0 else [index] if step == 1 else [index * self.k.number(step)]

    def pointer(self, name: str) -> Pointer:
        return self._slabs[name] if name in self.staged else self.pointers[name]

    def raw(self, name: str) -> Expression:
        """An operand's stored lanes; an element that all lanes share is in every one."""
        if self._tiles is not None and self.streams(name):
            return S.vload(self._tiles.near + self._tiles.row(), lanes=LANES)
        return self.lanes_at(self.pointer(name), name)

    def lanes_at(self, pointer: Address, name: str) -> Expression:
        """The same of other data that lie as an operand does."""
        step, at = self._step(name, self.lane), self.at(name)
        if step == 0:
            return S.vbcast(pointer[at], lanes=LANES)
        if step == 1:
            return S.vload(pointer + at, self.k.mask, lanes=LANES)
        return S.vload(pointer + at, self.k.mask, lanes=LANES, stride=self.k.number(step))

    def load(self, name: str) -> Value:
        """An operand's elements in their wide form."""
        tensor = self.kinds[name]
        if tensor is not None:
            wide_kind(tensor)
        lanes = Lanes(self.k, "v", self.dtypes[name])
        lanes.define(self.k, self.raw(name))
        integer = tensor is not None and tensor.is_integer
        return lanes.value.within(tensor.low, tensor.high) if tensor is not None and integer else lanes.value

    def store(self, name: str, value: Value, dtype: str = "") -> None:
        """Stores lanes in the wide form; where the lanes are joined, the one result."""
        dtype = dtype or self.dtypes[name]
        stored = self.k.stored(value, dtype)
        if self._tiles is not None and self._goes(name, dtype):
            S.vstore(stored, self._tiles.going(dtype) + self._tiles.row())
        else:
            single = self.across and self._step(name, self.lane) == 0
            self._put(name, self.at(name), stored, single)

    def _put(self, name: str, at: Expression, stored: Expression, single: bool) -> None:
        step, place = self._step(name, self.lane), self.pointer(name) + at
        if single or step == 1:
            S.vstore(stored, place, self.one if single else self.k.mask)
        else:
            S.vstore(stored, place, self.k.mask, stride=self.k.number(step))

    def along(self, name: str, index: Expression) -> Expression:
        """Where an operand's element is at an index of the one axis that is reduced (or of the first lane's)."""
        dim = self.lane if self.across else self.reduced[0] if self.reduced else None
        terms: list[Expression] = [] if name in self.staged else [self.bases[name]]
        return _sum(terms + (self._term(self._step(name, dim), index) if dim else []))

    def put(self, name: str, index: Expression, value: Expression) -> None:
        """Stores lanes as they are at an index of the axis that is reduced; where lanes are joined, the one result."""
        self._put(name, self.along(name, index), value, self.across)

    def lanes(self) -> Expression:
        """The numbers of the lanes, 0 to 31."""
        return S.vload(self.k.pointer(np.arange(LANES, dtype=np.int32)), lanes=LANES)

    def finish(self, layer: Layer, tail: Sequence[Layer], value: Value) -> None:
        """Stores a value in `y`, after the element-wise layers of the tail."""
        own = layer.output
        if own.is_integer and (value.low < own.integer.low or value.high > own.integer.high):
            low, high = max(value.low, own.integer.low), min(value.high, own.integer.high)
            value = self.k.let(clamp(value, low, high), low=low, high=high)
        if not tail:
            self.store("y", as_stored(self.k, value, own), own.dtype)
            return
        if self._step("y", self.lane) not in (0, 1) or "y" in self.staged:
            raise LayerError("the layers behind it cannot join the kernel")
        if self.across and self._step("y", self.lane) == 0:
            self.k.assign(self.k.mask, self.one)
        self._follow(layer, tail, value, self.at("y"))

    def settle(self, layer: Layer, tail: Sequence[Layer], value: Value) -> None:
        """Stores an element of `y`, the output of the last of the layers, where every element of it is made in `each`.

        Further operands of the tail are loaded from where `y` lies in device memory.
        """
        if not tail:
            self.store("y", value)
            return
        made = {t.name for member in (layer, *tail) for t in member.outputs}
        y = self.names.index("y")
        if self.lane.steps[y] != 1 and any(t.name not in made for member in tail for t in member.inputs):
            raise LayerError("the layers behind it have operands that do not lie as its lanes do")
        staged, self.staged = self.staged, []
        place = self._terms("y", lambda dim: dim.steps[y])
        self.staged = staged
        self._follow(layer, tail, value, place)

    def _follow(self, layer: Layer, tail: Sequence[Layer], value: Value, place: Expression) -> None:
        """Stores a value in `y` after the layers of the tail, whose further operands are at a place."""
        k = self.k
        last, out = follow(k, layer, value, tail, lambda t: k.loaded(k.tensor(t) + place, t))
        self.store("y", last, out.dtype)

    def filled(self, number: Number, kind: str) -> Expression:
        """A vector with one number in all lanes."""
        if kind == "float32" or isinstance(number, str):
            return S.vbcast(S.fp32(number), lanes=LANES)
        return S.vbcast(S.cast(number, kind), lanes=LANES)

    def start(self, name: str, number: Number, kind: str) -> Value:
        """A new variable of lanes, which has one number in all of them at first."""
        return self.k.changing(name, self.filled(number, kind))

    def active(self, value: Expression, neutral: Number, kind: str) -> Expression:
        """The value, neutral in lanes that hold none: those are joined with the others."""
        return S.vsel(value, self.filled(neutral, kind), self.k.mask) if self.partial else value

    def join(self, variable: Value, how: Callable[[Expression], Expression]) -> None:
        """The lanes of a variable joined by a function of `joins`, where they are of one result."""
        if self.across:
            self.k.assign(variable, how(variable))

    # -- the elements of a position

    @contextmanager
    def each(
        self,
        backwards: bool = False,
        by: int = 1,
        before: Callable[[], None] | None = None,
        behind: Callable[[], None] | None = None,
    ) -> Iterator[Expression]:
        """Statements for every reduced element. Gives its index, where one axis is reduced.

        `backwards`: from the last one on, in a walk that is sequential. `by`, `before`, `behind`: of operands that come in
        tiles, elements that are taken together, and what is done before and behind those of a tile.
        """
        k, mask = self.k, self.k.mask
        sizes = [k.number(d.size) for d in self.reduced]
        turns = [k.variable("r", INT32) for _ in self.reduced]
        self._indices = [size - 1 - r for size, r in zip(sizes, turns, strict=True)] if backwards else [*turns]
        if self.streams("x") and not backwards:
            self._tiles = Tiles(self, turns[0], k.variable("tile", INT32))
        self._j = k.variable("j", INT32) if self.across else None
        with k.apart() as lines:
            if self.partial and self._j is not None:
                k.assign(mask, tail(self.width - self._j))
            yield self._j if self._j is not None else self._indices[-1] if self._indices else S.i32(0)
        if self._tiles is not None:
            self._tiles.loop(lines, by, before, behind)
        else:
            with ExitStack() as nest:
                for r, size in zip(turns, sizes, strict=True):
                    nest.enter_context(k.for_range(0, size, name=r))
                if self._j is not None:
                    nest.enter_context(k.for_range(0, self.width, LANES, self._j))
                k.splice(lines)
        if self.partial:
            k.assign(mask, S.tail_mask(LANES, LANES))
        self._indices, self._j, self._tiles = [], None, None

    @contextmanager
    def by_fours(self) -> Iterator[list[Value]]:
        """As `each`, of four elements of x at a time, whose stored lanes it gives; 0 behind the last one. x comes in tiles."""
        k, column = self.k, self.k.number(self.reduced[0].size)
        zeros = everywhere(0, pointee(self.dtypes["x"]))

        def before() -> None:
            assert tiles is not None
            rows = S.min(k.number(tiles.room // LANES), column - tiles.tile)
            some = k.held("some", rows)
            with k.for_range(some, (some + 3) & -4, name="e") as e:
                S.vstore(zeros, tiles.near + e * LANES)

        with self.each(by=4, before=before):
            tiles = self._tiles
            assert tiles is not None
            first = tiles.near + tiles.row()
            yield [k.let(S.vload(first + i * LANES, k.mask, lanes=LANES)) for i in range(4)]

    def sum_of(self, name: str, term: Callable[[], Expression], kind: str) -> Value:
        """A variable with the sum of one term per reduced element; `term` loads its operands."""
        total = self.start(name, 0.0 if kind == "float32" else 0, kind)
        with self.each():
            self.k.assign(total, total + self.active(term(), 0.0 if kind == "float32" else 0, kind))
        self.join(total, across_sum)
        return total

    def mean(self, name: str) -> Value:
        """That of a float operand."""
        total = self.sum_of("mean", lambda: self.load(name), "float32")
        self.k.assign(total, total / self.k.number(float(self.count)))
        return total

    def sum_pair(self, term: Callable[[], Expression]) -> tuple[Value, Value]:
        """The sum of an int32 term of every reduced element as high * 65536 + low (16 bits)."""
        high, low = self.start("high", 0, "int32"), self.start("low", 0, "int32")
        with self.each():
            add_to_pair(high, low, self.k.let(self.active(term(), 0, "int32")))
        self.join(high, across_sum)
        self.join(low, across_sum)
        self.k.assign(high, high + (low >> 16))
        self.k.assign(low, low & 0xFFFF)
        return high, low

    def where_active(self, value: Value, kind: str) -> Expression:
        """A result of the position, 0 in lanes that have none."""
        return value if self.across else S.vsel(value, self.filled(0, kind), self.k.mask)

    # -- the positions

    @contextmanager
    def positions(self, everywhere: bool = False) -> Iterator[None]:
        """Statements for every position; `everywhere`: every TEC goes to all of them."""
        k, bunch = self.k, None if everywhere else self._bunch()
        moved = {n: k.alloc(2 * bunch[0], pointee(self.dtypes[n]), f"all_{n}") for n in self._moved} if bunch else {}
        self._slabs = {
            n: k.alloc(self.slab, pointee(self.dtypes[n]), f"slab_{n}") for n in self.staged if n not in moved
        }
        with self._in_bunches(moved, *bunch) if bunch else self._one_by_one(everywhere):
            yield
        if self._streams:
            S.free_events(*(event for _, event in self._streams.values()))
        self._streams = {}
        k.renew_mask()

    def stream(self, name: str, dtype: str, size: int) -> tuple[Pointer, Value]:
        """The array for the tiles of an operand, and the event of its transfers."""
        if name not in self._streams:
            with self.k.first():
                array = self.k.alloc(size, pointee(dtype), f"stream_{name}")
                (event,) = self.k.events("came" if name == "x" else "gone")
            self._streams[name] = array, event
        return self._streams[name]

    @cached_property
    def turn(self) -> Value:
        """Which of the two tiles of a stream is worked on: its first element."""
        with self.k.first():
            return self.k.changing("turn", S.i32(0))

    @property
    def _moved(self) -> list[str]:
        """What transfers bring or take."""
        return [n for n in self.staged if n not in self.scratch]

    @contextmanager
    def _one_by_one(self, everywhere: bool) -> Iterator[None]:
        k = self.k
        blocks = 1 if self.across else -(-self.lane.size // LANES)
        count = k.number(blocks * int(np.prod([d.size for d in self.kept], dtype=np.int64)))
        with k.for_range(0, count, name="item") if everywhere else k.shared(count, "item") as item:
            rest, many = item, k.number(blocks)
            if not self.across:
                self.lane_at, rest = k.held("lane", item % many * LANES), k.held("rest", item / many)
            self._begin_position(self._indices_of(rest))
            for n in self._moved:
                if n not in self.written:
                    self._copy(n, False)
            yield
            for n in self.written:
                self._copy(n, True)

    def _indices_of(self, rest: Value) -> list[Value]:
        """The indices of the position of a number, the outermost first."""
        found: list[Value] = []
        for d in reversed(range(len(self.kept))):
            size = self.k.number(self.kept[d].size)
            found.append(self.k.held(f"i{d}", rest % size if d else rest + 0))
            rest = self.k.held("rest", rest / size)
        return found[::-1]

    def _begin_position(self, at: Sequence[Value]) -> None:
        k = self.k
        k.define(k.mask, S.tail_mask(LANES, LANES) if self.across else tail(self.width - self.lane_at))
        self.one = k.held("one", S.tail_mask(1, LANES))
        for i, n in enumerate(self.names):
            terms = [t for dim, index in zip(self.kept, at, strict=True) for t in self._term(dim.steps[i], index)]
            if not self.across:
                terms += self._term(self.lane.steps[i], self.lane_at)
            self.bases[n] = k.held(f"base_{n}", _sum(terms))

    def _copy(self, name: str, back: bool) -> None:
        """Copies a position's elements into LSRAM, or back."""
        near, far = self._slabs[name], self.pointers[name] + self.bases[name]
        if self.across:
            S.dma_copy(far, near, self.width) if back else S.dma_copy(near, far, self.width)
            return
        width = S.min(self.width - self.lane_at, LANES)
        step = self.k.number(self.reduced[0].steps[self.names.index(name)])
        times = self.k.number(self.reduced[0].size)
        if back:
            S.dma_copy(far, near, width, LANES, times, step)
        else:
            S.dma_copy(near, far, width, step, times, LANES)

    def _bunch(self) -> tuple[int, int] | None:
        """(elements of LSRAM, positions) that one transfer moves, of two for each tensor; None where positions do not lie
        behind each other."""
        steps = [d.steps[self.names.index(n)] for n in self._moved for d in self.kept]
        if not self._moved or not self.across or len(self.kept) != 1 or any(s != self.lane.size for s in steps):
            return None
        room = SLAB.size - sum(self.slab * bytes_of(self.dtypes[n]) for n in self.scratch)
        elements = room // 2 // sum(bytes_of(self.dtypes[n]) for n in self._moved) // LANES * LANES
        fitting = elements // self.lane.size
        return (elements, max(1, min(fitting, -(-self.kept[0].size // tasks())))) if fitting > 1 else None

    @contextmanager
    def _in_bunches(self, arrays: Mapping[str, Pointer], elements: int, many: int) -> Iterator[None]:
        """The loop over the positions, with one transfer for several of them: the next ones come, and the last ones go,
        while those between are worked on."""
        k = self.k
        total, each, half = k.number(self.kept[0].size), k.number(many), k.number(elements)
        came, gone = k.events("came", "gone")
        turn = k.changing("turn", S.i32(0))

        def moving(name: str, start: Value, past: Value, place: Expression, back: bool = False) -> None:
            near, far = arrays[name] + place, self.pointers[name] + start * self.width
            into, source = (far, near) if back else (near, far)
            S.async_dma_copy(into, source, (past - start) * self.width, event=gone if back else came)

        def coming(start: Value, place: Expression) -> None:
            past = k.held("past", S.min(start + each, total))
            for n in self._moved:
                if n not in self.written:
                    moving(n, start, past, place)

        first = k.held("first_item", S.get_local_id() * each)
        with k.when(first < total):
            coming(first, S.i32(0))
        step = S.get_local_size() * each
        with k.for_range(first, total, step, "from_item") as start:
            past = k.held("past_item", S.min(start + each, total))
            following = k.held("next_item", start + step)
            S.wait_events(came)
            with k.when(following < total):
                coming(following, half - turn)
            with k.for_range(start, past, name="item") as item:
                self._begin_position([item])
                for n in arrays:
                    self._slabs[n] = k.hold(arrays[n] + turn + (item - start) * self.width, f"slab_{n}")
                yield
            if self.written:
                with k.when(start > first):
                    S.wait_events(gone)
            for n in self.written:
                moving(n, start, past, turn, back=True)
            k.assign(turn, half - turn)
        S.free_events(came, gone)


class Tiles:
    """The tiles of a long column of `x`, and of the column of `y` that is made of it: the next tile comes while one is
    worked on."""

    def __init__(self, loop: AxisLoop, r: Value, tile: Value) -> None:
        self.w, self.k, self.r, self.tile = loop, loop.k, r, tile
        # sums of so many bytes fit 16 bits
        self.room = min(STREAM.size // 2 // bytes_of(loop.dtypes["x"]), 128 * LANES)
        """Elements of a tile."""
        self.near = self.k.pointer_variable("near_x", pointee(loop.dtypes["x"]), "lsram")
        self._going: Pointer | None = None

    def row(self) -> Expression:
        """Where the lanes of the present element are in a tile."""
        return (self.r - self.tile) * LANES

    def going(self, dtype: str) -> Pointer:
        """The tile of `y`."""
        self._dtype = dtype
        if self._going is None:
            self._going = self.k.pointer_variable("going_y", pointee(dtype), "lsram")
        return self._going

    def loop(
        self, lines: Sequence[Line], by: int, before: Callable[[], None] | None, behind: Callable[[], None] | None
    ) -> None:
        """The loop over the elements around lines."""
        k, w, dim, tile = self.k, self.w, self.w.reduced[0], self.tile
        size, rows, half = k.number(dim.size), k.number(self.room // LANES), self.room
        width = S.min(w.width - w.lane_at, LANES)
        stream, came = w.stream("x", w.dtypes["x"], 2 * half)
        step, far = k.number(dim.steps[w.names.index("x")]), w.pointers["x"] + w.bases["x"]

        def coming(first: Expression) -> None:
            some = S.min(rows, size - first)
            S.async_dma_copy(stream + w.turn, far + first * step, width, step, some, LANES, event=came)

        going = [] if self._going is None else [self._going]
        shared, body = invariant(lines, (self.r, tile, self.near, *going))
        k.splice(shared)
        coming(S.i32(0))
        with k.for_range(0, size, rows, tile):
            S.wait_events(came)
            k.define_pointer(self.near, stream + w.turn)
            if self._going is not None:
                leaving, gone = w.stream("y", self._dtype, 2 * half)
                k.define_pointer(self._going, leaving + w.turn)
            k.assign(w.turn, half - w.turn)
            with k.when(tile + rows < size):
                coming(tile + rows)
            if before:
                before()
            with k.for_range(tile, S.min(tile + rows, size), by, self.r):
                k.splice(body)
            if behind:
                behind()
            if self._going is not None:
                down = k.number(dim.steps[w.names.index("y")])
                with k.when(tile > 0):
                    S.wait_events(gone)
                to, some = w.pointers["y"] + w.bases["y"] + tile * down, S.min(rows, size - tile)
                S.async_dma_copy(to, self._going, width, LANES, some, down, event=gone)
        if self._going is not None:
            S.wait_events(gone)


def _sum(terms: Sequence[Expression]) -> Expression:
    return reduce(lambda a, b: a + b, terms) if terms else S.i32(0)

"""The AIFF in PySim: the simulator's model of it, on the arrays that descriptors refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from compass_core.arrays import Array, base_of
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_sim import aiff
from compassc.ops.misc import DESCRIPTORS

from ..language.dispatch import LOCAL
from .checks import Races, StorageMonitor, Unfinished
from .descriptors import Chain, PyDescPointer
from .memory import Storage, pointer_of
from .source_lines import current_span


def prepare(name: str, pointers: Sequence[object]) -> Callable[[], None]:
    """What `S.<name>` starts on three chains, whose words are read now; the result does it.

    CompassError when a pointer is at no chain, or when the model refuses what the registers ask for.
    """
    chains = [_chain(name, part, pointer) for part, pointer in zip(DESCRIPTORS, pointers, strict=True)]
    memory = aiff.DeviceMemory()
    addresses = [memory.place(words_of(chain, memory)) for chain in chains]
    generation = chains[0].generation
    rows = [row for area in aiff.areas(memory, generation, addresses) for row in _rows(area, memory)]
    watched = Watched(f"S.{name}", memory, rows)

    def work() -> None:
        watched.end()
        aiff.run(memory, generation, addresses)

    return work


def _chain(name: str, part: str, pointer: object) -> Chain:
    if isinstance(pointer, PyDescPointer):
        return pointer.get_current_desc_chain()
    pointer_of(pointer, f"S.{name}: {part}")
    raise CompassError(
        f"S.{name}: {part} points to plain memory, where PySim has no device addresses",
        code="descriptor",
        help="pass the chains of Aiff.gen_descriptor() to the kernel",
    )


def words_of(chain: Chain, memory: aiff.DeviceMemory) -> Array:
    """The words of a chain, uint32, with device addresses in the places of arrays, which `memory` gets."""
    outputs = {id(array) for array in chain.outputs}
    words = np.zeros(chain.count_of_u32, np.uint32)
    for i in range(words.size):
        word = chain[i]
        words[i] = _address(word, memory, outputs) if isinstance(word, np.ndarray) else int(word) & 0xFFFFFFFF
    return words


def _address(word: Array, memory: aiff.DeviceMemory, outputs: set[int]) -> int:
    """The device address of an array, or of a part of one."""
    owner = base_of(word)
    if id(owner) in outputs and not owner.flags.writeable:
        raise CompassError("the AIFF writes an array that is read-only", code="read-only", help="pass a copy of it")
    first = owner.__array_interface__["data"][0]
    flat = owner if owner.flags.c_contiguous else owner.T
    return int(memory.place(flat)) + int(word.__array_interface__["data"][0]) - int(first)


@dataclass(frozen=True)
class Rows:
    """Memory of this process that the unit reads or writes: `count` rows of `width` bytes, `stride` apart."""

    first: int
    width: int
    stride: int
    count: int
    writes: bool

    def within(self, start: int, size: int) -> Iterator[Rows]:
        """The part that lies in a memory, as offsets from its start."""
        first, end = self.first - start, self.first - start + (self.count - 1) * self.stride + self.width
        if first >= 0 and end <= size:
            yield replace(self, first=first)
        elif end > 0 and first < size:
            for k in range(self.count):
                low, high = max(first + k * self.stride, 0), min(first + k * self.stride + self.width, size)
                if low < high:
                    yield Rows(low, high - low, high - low, 1, self.writes)


def _rows(area: aiff.Area, memory: aiff.DeviceMemory) -> Iterator[Rows]:
    """The rows of an area of device memory, which lies in one of the arrays."""
    at, array = next((at, a) for at, a in memory.arrays() if at <= area.first < at + a.nbytes)
    first = array.__array_interface__["data"][0] + area.first - at
    for group in range(area.times):
        yield Rows(first + group * area.step, area.width, area.stride, area.count, area.writes)


class Watched:
    """A start as the checks of a run see it: from now on until `end` nobody may touch what it does."""

    def __init__(self, what: str, memory: aiff.DeviceMemory, rows: Sequence[Rows]) -> None:
        self._what, self._span = what, current_span()
        session = LOCAL.tec.session
        self._arrays = [
            session.watched(Storage(array.reshape(-1).view(np.uint8), "an array of a descriptor"), False, True)
            for _, array in memory.arrays()
        ]
        self._parts: list[tuple[StorageMonitor, list[Rows]]] = []
        for monitor in session.monitors():
            data = monitor.storage.data
            if parts := [part for row in rows for part in row.within(data.ctypes.data, data.size)]:
                self._parts.append((monitor, parts))
        self._unfinished: list[tuple[Races, Unfinished]] = []
        for monitor, parts in self._parts:
            if not monitor.races:
                continue
            touched = _touched(parts, monitor.storage.data.size)
            for races in monitor.races:
                self._unfinished.append((races, Unfinished(touched, self._span)))
                races.unfinished.append(self._unfinished[-1][1])

    def end(self) -> None:
        """The work is done now: it reads and writes."""
        for races, work in self._unfinished:
            races.unfinished.remove(work)
        for monitor, parts in self._parts:
            for row in parts:
                monitor.access(
                    self._what, row.first, row.width, row.count, row.stride, row.writes, None, span=self._span
                )


def _touched(parts: Sequence[Rows], size: int) -> Array:
    """Bits of each byte of a memory: 1 where it is read, 2 where it is written."""
    found = np.zeros(size, np.uint8)
    for row in parts:
        places = row.first + row.stride * np.arange(row.count)[:, None] + np.arange(row.width)
        found[places] |= 2 if row.writes else 1
    return found

"""The memory that the engine shares with a checked run; sim/engine/check_area.h has the same layouts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from mmap import mmap

from compass_core.dataclass import dataclass
from compass_runtime.checks.modes import Modes
from compass_runtime.job import Buffer
from compass_sim import memory_map

_AREA = memory_map.ENGINE_LOW
_HEAD = struct.Struct("<IIII")
_REGION = struct.Struct("<III")
_MAX_REGIONS = 16384
_MAX_FINDINGS = 256
_FINDING = struct.Struct("<II QII QII QII iI".replace(" ", ""))
_PLACE = struct.Struct("<IIqQ64s")
_FINDING_BYTES = _FINDING.size + 2 * _PLACE.size
_FINDINGS = _AREA + _HEAD.size + _MAX_REGIONS * _REGION.size
_NO_PC = 2**64 - 1


class Kind(IntEnum):
    """The kind of a finding."""

    BOUNDS = 1
    RACE = 2
    ALIGN = 3
    UNINIT_STORED = 4
    UNINIT_USED = 5
    NO_EVENT_FREE = 6
    EVENT_NOT_ALLOCATED = 7
    EVENT_NEVER_STARTED = 8
    EVENT_NOT_WAITED = 9
    EVENT_BUSY = 10
    DMA_OVERLAP = 11
    DMA_STRIDE = 12
    DMA_IGNORED = 13
    DIVISION = 14
    ASSERTION = 15
    GROUP_RACE = 16


class Access(IntFlag):
    """The kind of an access to memory."""

    READ = 1
    WRITE = 2
    DMA = 4
    ATOMIC = 8


class Memory(IntEnum):
    """The kind of buffer that memory belongs to."""

    NONE = 0
    REGION = 1
    NAMED = 2
    STACK = 3


@dataclass(frozen=True)
class Accessor:
    """Who accessed memory; `pc` is an offset in `.text`, None where it is not known."""

    pc: int | None
    tec: int
    access: Access


@dataclass(frozen=True)
class MemoryLocation:
    """Byte `offset` of a buffer of `nbytes`: the region of that number, or the array called `name`."""

    memory: Memory
    region: int
    offset: int
    nbytes: int
    name: str


@dataclass(frozen=True)
class Finding:
    """Something wrong, seen `times` times. `item` is 0 where the size of an element is not known, `event` -1."""

    kind: Kind
    times: int
    here: Accessor
    there: Accessor | None
    address: int
    size: int
    item: int
    event: int
    place: MemoryLocation
    origin: MemoryLocation


def merged(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The buffers by address, those that share memory as one."""
    found: list[Buffer] = []
    for buffer in buffers:
        last = found[-1] if found else None
        if last is not None and buffer.address < last.address + last.nbytes:
            end = max(last.address + last.nbytes, buffer.address + buffer.nbytes)
            if end > last.address + last.nbytes:
                found[-1] = Buffer(last.name, last.address, end - last.address)
        elif buffer.nbytes:
            found.append(buffer)
    return found[:_MAX_REGIONS]


def prepare(memory: mmap, modes: Modes, buffers: Sequence[Buffer]) -> None:
    """Tells the engine what to check and where the buffers are."""
    rows = b"".join(
        _REGION.pack(b.address, b.nbytes, b.slot is not None and b.slot.info.role == "output") for b in buffers
    )
    memory[_AREA : _AREA + _HEAD.size] = _HEAD.pack(modes, len(buffers), 0, 0)
    memory[_AREA + _HEAD.size : _AREA + _HEAD.size + len(rows)] = rows


def findings(memory: mmap) -> tuple[list[Finding], int]:
    """What the engine found, and how many more there were. The worker may be damaged: its memory is not trusted."""
    _, _, count, dropped = _HEAD.unpack_from(memory, _AREA)
    found = []
    for i in range(min(count, _MAX_FINDINGS)):
        at = _FINDINGS + i * _FINDING_BYTES
        (kind, times, pc, tec, access, other_pc, other_tec, other_access, address, size, item, event, _) = (
            _FINDING.unpack_from(memory, at)
        )
        if kind not in Kind.__members__.values() or (kind == Kind.RACE and not other_access):
            continue
        there = _side(other_pc, other_tec, other_access) if other_access else None
        place, origin = (_place(memory, at + _FINDING.size + k * _PLACE.size) for k in range(2))
        found.append(
            Finding(Kind(kind), times, _side(pc, tec, access), there, address, size, item, event, place, origin)
        )
    return found, dropped


def _side(pc: int, tec: int, access: int) -> Accessor:
    return Accessor(None if pc == _NO_PC else pc, tec, Access(access & 7))


def _place(memory: mmap, at: int) -> MemoryLocation:
    kind, region, offset, nbytes, name = _PLACE.unpack_from(memory, at)
    known = Memory(kind) if kind in Memory.__members__.values() else Memory.NONE
    text = name.split(b"\0")[0].decode(errors="replace").partition(":")[0]  # clang adds the line
    return MemoryLocation(known, region, offset, nbytes, text)

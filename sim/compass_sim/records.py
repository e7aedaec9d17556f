"""Records that the engine makes of a job on request (sim/engine/wire.h has the same layout)."""

from __future__ import annotations

import struct
from enum import IntEnum

from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple

RECORD = struct.Struct("<QQIIII")
_NO_EVENT = 0xFF
_MODES = ("direct", "transpose", "upsample", "memset", "aiff")


class RecordKind(IntEnum):
    """The kind of a record; the comments give the meaning of `id` and `amount`."""

    TASK_BEGIN = 0  # group, number of the task in it
    TASK_END = 1  # events of the task that were not recorded
    COUNT = 2  # counter, its value at the end of the task
    BARRIER = 3
    TRANSFER = 4  # see `Transfer`, bytes
    WAIT = 5  # bits of the events waited for
    SECTION_BEGIN = 6  # number of the profiler mark
    SECTION_END = 7


class Record(NamedTuple):
    """One step of a TEC. `time`: nanoseconds since the job began; in kernels compiled for profiling, the cycles that the
    TEC's own work in this task so far is estimated at, and `site` is where in the kernel it is."""

    time: int
    amount: int
    kind: int
    tec: int
    id: int
    site: int


@dataclass(frozen=True)
class Transfer:
    """The decoded `id` of a TRANSFER record."""

    channel: int | None
    """The event it triggers; None: the TEC waits for the transfer."""
    mode: str
    reads: bool
    """Whether it reads device memory, and whether it writes it."""
    writes: bool

    @classmethod
    def of(cls, id: int) -> Transfer:
        channel = id & 0xFF
        return cls(
            None if channel == _NO_EVENT else channel,
            _MODES[min(id >> 8 & 7, len(_MODES) - 1)],
            bool(id >> 16 & 1),
            bool(id >> 17 & 1),
        )


@dataclass(frozen=True)
class Tick:
    """A mark that a kernel set for the profiler: `seconds` since the job began, and whether a section begins or ends."""

    seconds: float
    tec: int
    id: int
    begin: bool


def decode(data: bytes) -> list[Record]:
    """The records in the bytes that the engine sent."""
    return [Record._make(row) for row in RECORD.iter_unpack(data)]


def ticks(records: list[Record]) -> tuple[Tick, ...]:
    """The profiler marks among the records, in the order in which they were set."""
    begin, end = RecordKind.SECTION_BEGIN, RecordKind.SECTION_END
    marks = sorted((r for r in records if r.kind in (begin, end)), key=lambda r: r.time)
    return tuple(Tick(r.time / 1e9, r.tec, r.id, r.kind == begin) for r in marks)

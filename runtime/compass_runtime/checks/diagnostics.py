"""Findings of checked runs as errors that name the kernel's lines and buffers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Finding, Note, Span, races
from compass_core.hostcc import arrays, origins
from compass_core.namedtuple import NamedTuple
from compass_runtime.checks.area import Access, Accessor, Kind, Memory, MemoryLocation
from compass_runtime.checks.area import Finding as Found
from compass_runtime.job import Buffer
from compass_runtime.program import Program
from compass_runtime.sizes import spell

OUT_OF_BOUNDS = "check-bounds"


@dataclass(frozen=True)
class _Named:
    """A buffer as errors describe it: its name and kind, its element's type and size, and its shape."""

    name: str
    what: str
    dtype: str
    item: int
    shape: tuple[int, ...]


class Diagnostics:
    """Makes errors of the findings of a run of `program`, whose regions were `buffers`."""

    def __init__(self, program: Program, buffers: Sequence[Buffer]) -> None:
        self._elf = program.code.elf
        self._buffers = buffers
        self._params = {param.name: param for param in program.params}
        self._arrays = arrays.read(self._elf)

    def errors(self, found: Sequence[Found], dropped: int) -> list[CompassError]:
        """One error for what happens at the same lines of the kernel to the same buffer, in the order of lines.

        A race of two lines is found in both orders; only the first one found is reported.
        """
        told: dict[tuple[object, ...], tuple[Found, int]] = {}
        for one in found:
            lines = frozenset((self._span(one.here), self._span(one.there) if one.there else None))
            key = (one.kind, lines, one.event, self._buffer(one.place), one.origin.name)
            first, times = told.get(key, (one, 0))
            told[key] = first, times + one.times
        errors = [_RULES[one.kind].tell(self, one, times) for one, times in told.values()]
        if errors and dropped:
            errors[-1].notes = (*errors[-1].notes, Note(f"{dropped} more findings are not shown"))
        return sorted(errors, key=lambda e: (e.span.file, e.span.line) if e.span else ("", 0))

    def _span(self, side: Accessor) -> Span | None:
        from compass_sim.lines import locate

        try:
            place = locate(self._elf, side.pc) if side.pc is not None else None
        except CompassError:  # reported without a line
            return None
        return Span(*place, built=origins.read(self._elf)) if place else None

    # ------------------------------------------------------------------------------------------------------- buffers

    def _buffer(self, place: MemoryLocation) -> _Named | None:
        if place.memory == Memory.REGION and place.region < len(self._buffers):
            buffer = self._buffers[place.region]
            if buffer.slot is not None:
                info = buffer.slot.info
                return _Named(buffer.name, info.role, info.dtype.name, info.dtype.size, buffer.slot.shape)
            param = self._params.get(buffer.name)
            if param is not None:
                shape = param.shape or (buffer.nbytes // param.element.size,)
                return _Named(buffer.name, "constant", param.element.name, param.element.size, shape)
            return _Named(buffer.name, "memory of the program", "uint8", 1, (buffer.nbytes,))
        if place.memory == Memory.NAMED:
            array = self._arrays.get(place.name)
            if array is None:  # of C text that was written by hand
                return _Named(place.name, "array", "uint8", 1, (place.nbytes,))
            size = array.element_bytes
            return _Named(array.name, f"{array.scope} buffer", array.dtype, size, (place.nbytes // size,))
        return None

    def _index(self, buffer: _Named, offset: int, size: int) -> str:
        """`[3]`, `[3:11]`, or `[1, 3]` where the buffer has dimensions and all is inside."""
        first, last = offset // buffer.item, (offset + max(size, 1) - 1) // buffer.item
        count = math.prod(buffer.shape)
        if last > first:
            return f"[{first}:{last + 1}]"
        if len(buffer.shape) < 2 or not 0 <= first < count:
            return f"[{first}]"
        parts = []
        for dim in reversed(buffer.shape):
            first, part = divmod(first, dim)
            parts.append(part)
        return f"[{', '.join(str(part) for part in reversed(parts))}]"

    def _memory(self, one: Found) -> str:
        """The memory of a finding: `b[3]`, or its address."""
        buffer = self._buffer(one.place)
        if buffer is not None:
            return f"'{buffer.name}{self._index(buffer, one.place.offset, one.size)}'"
        if one.place.memory == Memory.STACK:
            return f"lsram or private memory of TEC {one.place.region}"
        return f"address {one.address:#x}"

    def _described(self, one: Found) -> tuple[Note, ...]:
        buffer = self._buffer(one.place)
        if buffer is None:
            return ()
        count = math.prod(buffer.shape)
        shape = f" (shape {spell(buffer.shape)})" if len(buffer.shape) > 1 else ""
        return (Note(f"the {buffer.what} '{buffer.name}' has {count} elements of {buffer.dtype}{shape}"),)

    # -------------------------------------------------------------------------------------------------------- errors

    def _make(self, rule: _Rule, one: Found, times: int, message: str, notes: Sequence[Note] = ()) -> CompassError:
        more = (Note(f"this happens {times} times in the run"),) if times > 1 else ()
        kind = Finding if rule.warning else CompassError
        return kind(message, self._span(one.here), code=rule.code, notes=(*notes, *more), help=rule.help)

    def bounds(self, rule: _Rule, one: Found, times: int) -> CompassError:
        """An access outside of every buffer."""
        if self._buffer(one.place) is None:
            where = "which belongs to another TEC" if one.place.memory == Memory.STACK else "which is in no buffer"
            return self._make(rule, one, times, f"TEC {one.here.tec} {_verb(one.here)} {self._memory(one)}, {where}")
        message = f"TEC {one.here.tec} {_verb(one.here)} {self._memory(one)}, which is out of bounds"
        return self._make(rule, one, times, message, self._described(one))

    def race(self, rule: _Rule, one: Found, times: int) -> CompassError:
        """Two accesses that nothing orders."""
        here, there = one.here, one.there
        assert there is not None
        memory = self._memory(one)
        if here.tec == there.tec:
            message = f"TEC {here.tec} {_verb(here)} {memory} while a transfer of its own {_verb(there)} it"
            error = self._make(rule, one, times, message, (Note("the transfer was started here", self._span(there)),))
            error.help = "wait for its event first: S.wait_events(event)"
            return error
        one_side, other = (races.Access(side.tec, _verb(side), self._span(side)) for side in (here, there))
        return self._make(rule, one, times, races.message(memory, one_side, other), (races.note(other),))

    def group_race(self, rule: _Rule, one: Found, times: int) -> CompassError:
        """Two accesses of groups, which nothing orders."""
        assert one.there is not None
        here, there = (races.Access(s.tec, _verb(s), self._span(s), "group") for s in (one.here, one.there))
        return self._make(rule, one, times, races.message(self._memory(one), here, there), (races.note(there),))

    def memory(self, rule: _Rule, one: Found, times: int) -> CompassError:
        """Something about one access of memory."""
        buffer = self._buffer(one.place)
        message = rule.message.format(
            tec=one.here.tec,
            verb=_verb(one.here),
            memory=self._memory(one),
            item=one.item,
            address=f"byte {one.place.offset} of '{buffer.name}'" if buffer else f"address {one.address:#x}",
        )
        return self._make(rule, one, times, message)

    def event(self, rule: _Rule, one: Found, times: int) -> CompassError:
        """Something about an event."""
        notes = (Note("the transfer on its way was started here", self._span(one.there)),) if one.there else ()
        return self._make(rule, one, times, rule.message.format(tec=one.here.tec, event=one.event), notes)

    def division(self, rule: _Rule, one: Found, times: int) -> CompassError:
        """An integer divided by zero."""
        return self._make(rule, one, times, rule.message.format(tec=one.here.tec))

    def assertion(self, rule: _Rule, one: Found, times: int) -> CompassError:
        """A condition of the kernel that does not hold."""
        text = one.place.name + one.origin.name
        message = rule.message.format(tec=one.here.tec) + (f": {text}" if text else "")
        return self._make(rule, one, times, message)

    def uninit(self, rule: _Rule, one: Found, times: int) -> CompassError:
        """A value that was never written."""
        origin = self._buffer(one.origin)
        notes = (Note(f"it comes from the {origin.what} '{origin.name}'"),) if origin and origin.what != "array" else ()
        return self._make(rule, one, times, rule.message.format(tec=one.here.tec, memory=self._memory(one)), notes)


class _Rule(NamedTuple):
    """How a kind of finding is reported."""

    how: Callable[[Diagnostics, _Rule, Found, int], CompassError]
    message: str
    help: str
    warning: bool = False
    code: str = ""

    def tell(self, diagnostics: Diagnostics, one: Found, times: int) -> CompassError:
        """The error for a finding."""
        return self.how(diagnostics, self, one, times)


_RULES = {
    Kind.BOUNDS: _Rule(
        Diagnostics.bounds,
        "",
        "check index, stride and size; a mask (S.tail_mask) keeps lanes behind the end from being used",
        code=OUT_OF_BOUNDS,
    ),
    Kind.RACE: _Rule(Diagnostics.race, "", races.HELP, code="check-race"),
    Kind.GROUP_RACE: _Rule(Diagnostics.group_race, "", races.GROUP_HELP, code="check-race"),
    Kind.ALIGN: _Rule(
        Diagnostics.memory,
        "TEC {tec} {verb} elements of {item} bytes at {address}, which is no multiple of {item}",
        "the address of a vector or scalar must be a multiple of its element's size",
        code="check-align",
    ),
    Kind.UNINIT_STORED: _Rule(
        Diagnostics.uninit,
        "TEC {tec} stores a value that was never set: {memory}",
        "set the memory that the value is made of, or store fewer lanes",
        code="check-uninit",
    ),
    Kind.UNINIT_USED: _Rule(
        Diagnostics.uninit,
        "TEC {tec} decides or computes an address by a value that was never set",
        "set the memory that the value is made of",
        code="check-uninit",
    ),
    Kind.NO_EVENT_FREE: _Rule(
        Diagnostics.event,
        "TEC {tec} allocates an event, but all 4 are in use",
        "free events that are not needed any more: S.free_events(event)",
        code="check-dma",
    ),
    Kind.EVENT_NOT_ALLOCATED: _Rule(
        Diagnostics.event,
        "TEC {tec} uses event {event}, which is not allocated",
        "use events between S.alloc_events and S.free_events only",
        code="check-dma",
    ),
    Kind.EVENT_NEVER_STARTED: _Rule(
        Diagnostics.event,
        "TEC {tec} waits for event {event}, which no transfer was started with",
        "wait for the event that was given to the transfer",
        code="check-dma",
    ),
    Kind.EVENT_NOT_WAITED: _Rule(
        Diagnostics.event,
        "TEC {tec} starts a transfer with event {event} that nobody waits for",
        "call S.wait_events before the kernel ends: in PySim the transfer may be lost",
        True,
        code="check-dma",
    ),
    Kind.EVENT_BUSY: _Rule(
        Diagnostics.event,
        "TEC {tec} starts a transfer with event {event}, whose last one is still on its way",
        "it waits for that one first; with an event of its own both go on at a time",
        True,
        code="check-dma",
    ),
    Kind.DMA_OVERLAP: _Rule(
        Diagnostics.memory,
        "a transfer of TEC {tec} to {memory} overlaps its own source",
        "what it gives is not defined: copy through another buffer",
        code="check-dma",
    ),
    Kind.DMA_STRIDE: _Rule(
        Diagnostics.memory,
        "a transfer of TEC {tec} {verb} rows of {memory} that overlap: the stride is less than a row",
        "strides count from the start of a row to the start of the next one",
        code="check-dma",
    ),
    Kind.DMA_IGNORED: _Rule(
        Diagnostics.memory,
        "a transpose of TEC {tec} to {memory} does nothing: a row or column has over 16777215 bytes",
        "transpose a part at a time",
        code="check-dma",
    ),
    Kind.DIVISION: _Rule(
        Diagnostics.division,
        "TEC {tec} divides an integer by zero",
        "the result is 0, which is seldom what is meant: test the divisor first",
        code="check-division",
    ),
    Kind.ASSERTION: _Rule(
        Diagnostics.assertion,
        "an assertion does not hold on TEC {tec}",
        "the kernel's author expects this of its arguments or of its own work",
        code="check-assert",
    ),
}


def _verb(side: Accessor) -> Literal["reads", "writes"]:
    return "writes" if side.access & Access.WRITE else "reads"

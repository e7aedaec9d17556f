"""TECs, barriers and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core.errors import CompassError
from compassc.ir.dtypes import INT32
from compassc.language.dispatch import LOCAL
from compassc.ops.sync import event_count
from compassc.ops.typing import type_error

from ..session import PyEvent
from ..values import number
from . import meaning

if TYPE_CHECKING:
    from compassc.pysim.values import PyVar


@meaning
def barrier() -> None:
    tec = LOCAL.tec
    tec.session.need_threads("S.barrier")
    tec.finish_events()
    tec.session.meet(tec)


@meaning
def get_local_id() -> PyVar:
    return number(LOCAL.tec.id, INT32)


@meaning
def get_local_size() -> PyVar:
    return number(LOCAL.tec.session.local_size, INT32)


@meaning
def get_group_id() -> PyVar:
    return number(LOCAL.tec.session.group, INT32)


@meaning
def get_num_groups() -> PyVar:
    return number(LOCAL.tec.session.target.cores, INT32)


def _take_event() -> PyEvent:
    events: list[PyEvent] = LOCAL.tec.events
    for event in events:
        if not event.allocated:
            event.allocated = True
            return event
    raise CompassError("no event is free", code="event-limit", help="free events with S.free_events")


@meaning
def alloc_event() -> PyEvent:
    return _take_event()


@meaning
def alloc_events(count: object) -> PyEvent | tuple[PyEvent, ...]:
    free = sum(not e.allocated for e in LOCAL.tec.events)
    wanted = event_count(count)
    if wanted > free:
        raise CompassError(f"S.alloc_events: {count} events are requested, {free} are free", code="event-limit")
    events = tuple(_take_event() for _ in range(wanted))
    return events[0] if wanted == 1 else events


def sim_event(x: object, what: str, *, need_allocated: bool = True) -> PyEvent:
    """A PySim event argument, checked."""
    if not isinstance(x, PyEvent):
        raise type_error(f"{what}: {x!r} is not an event", "events come from S.alloc_events")
    if need_allocated and not x.allocated:
        raise CompassError(f"{what}: {x!r} was freed", code="event-freed", help="allocate it again with S.alloc_events")
    return x


@meaning
def wait_events(*events: object) -> None:
    if not events:
        raise CompassError(
            "S.wait_events needs at least one event: a call without does nothing",
            code="event-missing",
            help="events come from S.alloc_events",
        )
    for event in [sim_event(e, "S.wait_events") for e in events]:
        event.finish()


@meaning
def free_events(*events: object) -> None:
    if not events:
        raise CompassError(
            "S.free_events needs at least one event: a call without does nothing",
            code="event-missing",
            help="events come from S.alloc_events",
        )
    for event in [sim_event(e, "S.free_events", need_allocated=False) for e in events]:
        event.finish()
        event.allocated = False

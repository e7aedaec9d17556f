"""Synchronisation of TECs, events, and who a TEC is."""

from __future__ import annotations

from typing import Any

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import INT32, VOID
from .args import int32_arg
from .core import LazyModule, imm, special_op
from .typing import type_error

GROUP = "Synchronisation"

dispatch: Any = LazyModule("compassc.language.dispatch")
session: Any = LazyModule("compassc.pysim.session")
values: Any = LazyModule("compassc.pysim.values")


@special_op(GROUP, lambda: E.Call("barrier", (), VOID), c="barrier(CLK_LOCAL_MEM_FENCE)", effect="sync")
def barrier() -> None:
    """Wait until every TEC is here; the TEC's own events are finished first."""
    tec = dispatch.LOCAL.tec
    tec.session.need_threads("S.barrier")
    tec.finish_events()
    tec.session.meet(tec)


@special_op(GROUP, lambda: E.Call("get_local_id", (), INT32), c="get_local_id(0)")
def get_local_id() -> Any:
    """The number of this TEC, from 0."""
    return values.pyvar(dispatch.LOCAL.tec.id, INT32)


@special_op(GROUP, lambda: E.Call("get_local_size", (), INT32), c="get_local_size(0)")
def get_local_size() -> Any:
    """How many TECs run the kernel."""
    return values.pyvar(dispatch.LOCAL.tec.session.local_size, INT32)


# ------------------------------------------------------------------------------------------------------------- events


def event_count(count: Any) -> int:
    """The checked argument of S.alloc_events."""
    if type(count) is not int or count <= 0:
        shown = count.dtype if isinstance(count, E.Expr) else repr(count)
        raise CompassError(
            f"S.alloc_events: the count must be a positive integer constant, got {shown}",
            code="event-count",
            help="write the number: S.alloc_events(2)",
        )
    return count


def _take_event() -> Any:
    for event in dispatch.LOCAL.tec.events:
        if not event.allocated:
            event.allocated = True
            return event
    raise CompassError("no event is free", code="event-limit", help="free events with S.free_events")


def _alloc_event() -> E.Expr:
    return E.Call("alloc_event", (), INT32)


@special_op(GROUP, _alloc_event, c="alloc_event()", effect="sync", public=False)
def alloc_event() -> Any:
    """Reserve one event of this TEC. In the IR of `alloc_events` each event is one call of this operation."""
    return _take_event()


def _build_alloc_events(count: Any) -> Any:
    calls = tuple(_alloc_event() for _ in range(event_count(count)))
    return calls[0] if len(calls) == 1 else calls


@special_op(GROUP, _build_alloc_events, effect="sync")
def alloc_events(count: Any) -> Any:
    """Reserve `count` events of this TEC: one event, or a tuple to unpack into names."""
    free = sum(not e.allocated for e in dispatch.LOCAL.tec.events)
    if event_count(count) > free:
        raise CompassError(f"S.alloc_events: {count} events are requested, {free} are free", code="event-limit")
    events = tuple(_take_event() for _ in range(count))
    return events[0] if count == 1 else events


def event_bits(events: tuple[Any, ...], what: str) -> E.Expr:
    """The bit set of events as one int32 expression."""
    if not events:
        raise CompassError(
            f"{what} needs at least one event: a call without does nothing",
            code="event-missing",
            help="events come from S.alloc_events",
        )
    bits: E.Expr | None = None
    for event in events:
        bit = E.Binary("shl", imm(1, INT32), int32_arg(event, f"{what}: an event"))
        bits = bit if bits is None else E.Binary("bitor", bits, bit)
    assert bits is not None
    return bits


def sim_event(x: Any, what: str, *, need_allocated: bool = True) -> Any:
    """A PySim event argument, checked."""
    if not isinstance(x, session.PyEvent):
        raise type_error(f"{what}: {x!r} is not an event", "events come from S.alloc_events")
    if need_allocated and not x.allocated:
        raise CompassError(f"{what}: {x!r} was freed", code="event-freed", help="allocate it again with S.alloc_events")
    return x


def _build_wait(*events: Any) -> E.Expr:
    return E.Call("wait_events", (event_bits(events, "S.wait_events"),), VOID)


def _build_free(*events: Any) -> E.Expr:
    return E.Call("free_events", (event_bits(events, "S.free_events"),), VOID)


@special_op(GROUP, _build_wait, c="wait_events({bits})", effect="sync", ir_operands=("bits",))
def wait_events(*events: Any) -> None:
    """Wait until everything started on the given events is done."""
    if not events:
        raise CompassError(
            "S.wait_events needs at least one event: a call without does nothing",
            code="event-missing",
            help="events come from S.alloc_events",
        )
    for event in [sim_event(e, "S.wait_events") for e in events]:
        event.finish()


@special_op(GROUP, _build_free, c="free_events({bits})", effect="sync", ir_operands=("bits",))
def free_events(*events: Any) -> None:
    """Wait for the given events and make them free again."""
    if not events:
        raise CompassError(
            "S.free_events needs at least one event: a call without does nothing",
            code="event-missing",
            help="events come from S.alloc_events",
        )
    for event in [sim_event(e, "S.free_events", need_allocated=False) for e in events]:
        event.finish()
        event.allocated = False

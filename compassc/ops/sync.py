"""Synchronisation of TECs, events, and who a TEC is."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import INT32, VOID
from .args import int32_arg, known_int
from .core import Cost, Part, imm, special_op
from .example import Example

GROUP = "Synchronisation"
NOT_COMPUTED: Mapping[Part, str] = {"definition": "what it gives depends on the TECs, not on operands"}
COPY_IN_BACKGROUND = Example(
    's = S.alloc(8, "i32", "lsram")\ne = S.alloc_events(1)\nS.async_dma_copy(s, x, 8, event=e)\n'
    "S.wait_events(e)\nS.vstore(S.vload(s), out)\nS.free_events(e)"
)


@special_op(
    group=GROUP,
    c="barrier(CLK_LOCAL_MEM_FENCE)",
    effect="sync",
    cost=Cost("barrier", {"__compass_last_barrier": "barrier"}),
    example=Example(
        's = S.alloc(8, "i32", "shared")\nif S.get_local_id() == 0:\n    S.vstore(S.vload(x), s)\nS.barrier()\n'
        "if S.get_local_id() == 1:\n    S.vstore(S.vload(s), out)"
    ),
    exempt=NOT_COMPUTED,
)
def barrier() -> E.Expr:
    """Wait until every TEC is here; the TEC's own events are finished first."""
    return E.Call("barrier", (), VOID)


@special_op(
    group=GROUP,
    c="get_local_id(0)",
    cost=Cost("free"),
    example=Example("tec = S.get_local_id()\nout[tec] = x[tec] * 10", lanes=4, size=4),
    exempt=NOT_COMPUTED,
)
def get_local_id() -> E.Expr:
    """The number of this TEC, from 0."""
    return E.Call("get_local_id", (), INT32)


@special_op(
    group=GROUP,
    c="get_local_size(0)",
    cost=Cost("free"),
    example=Example("if S.get_local_id() == 0:\n    out[0] = S.get_local_size()", lanes=1),
    exempt=NOT_COMPUTED,
)
def get_local_size() -> E.Expr:
    """How many TECs run the kernel."""
    return E.Call("get_local_size", (), INT32)


@special_op(
    group=GROUP,
    c="get_group_id(0)",
    cost=Cost("free"),
    example=Example("if S.get_group_id() == 0:\n    out[S.get_local_id()] = x[S.get_local_id()]", lanes=4, size=4),
    exempt=NOT_COMPUTED,
)
def get_group_id() -> E.Expr:
    """The number of the group of TECs, from 0: a kernel that asks runs once on every core of the target, a group on each."""
    return E.Call("get_group_id", (), INT32)


@special_op(
    group=GROUP,
    cost=Cost("free"),
    example=Example("if S.get_local_id() == 0:\n    out[0] = S.get_num_groups()", lanes=1),
    exempt={**NOT_COMPUTED, "c": "a number, for the target is known"},
)
def get_num_groups() -> E.Expr:
    """How many groups run the kernel: the number of cores of the target."""
    return E.Call("get_num_groups", (), INT32)


# ------------------------------------------------------------------------------------------------------------- events


def event_count(count: object) -> int:
    """The checked argument of S.alloc_events."""
    count = known_int(count)
    if type(count) is not int or count <= 0:
        shown = count.dtype if isinstance(count, E.Expr) else repr(count)
        raise CompassError(
            f"S.alloc_events: the count must be a positive integer constant, got {shown}",
            code="event-count",
            help="write the number: S.alloc_events(2)",
        )
    return count


@special_op(
    group=GROUP,
    c="alloc_event()",
    effect="sync",
    public=False,
    cost=Cost("event"),
    exempt={"example": "kernels call S.alloc_events", **NOT_COMPUTED},
)
def alloc_event() -> E.Expr:
    """Reserve one event of this TEC. In the IR of `alloc_events` each event is one call of this operation."""
    return E.Call("alloc_event", (), INT32)


@special_op(
    group=GROUP,
    effect="sync",
    cost=Cost("event"),
    example=Example(
        's = S.alloc(8, "i32", "lsram")\na, b = S.alloc_events(2)\nS.async_dma_copy(s, x, 4, event=a)\n'
        "S.async_dma_copy(s + 4, x, 4, event=b)\nS.wait_events(a, b)\nS.vstore(S.vload(s), out)\nS.free_events(a, b)"
    ),
    exempt={"c": "it is one call of alloc_event for each event", **NOT_COMPUTED},
    types={"count": "int"},
    returns="Any",
)
def alloc_events(count: object) -> E.Expr | tuple[E.Expr, ...]:
    """Reserve `count` events of this TEC: one event, or a tuple to unpack into names."""
    calls = tuple(alloc_event.expr() for _ in range(event_count(count)))
    return calls[0] if len(calls) == 1 else calls


def event_bits(events: tuple[object, ...], what: str) -> E.Expr:
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


@special_op(
    group=GROUP,
    c="wait_events({bits})",
    effect="sync",
    operands=("bits",),
    cost=Cost("wait"),
    exempt=NOT_COMPUTED,
    example=COPY_IN_BACKGROUND,
)
def wait_events(*events: object) -> E.Expr:
    """Wait until everything started on the given events is done."""
    return E.Call("wait_events", (event_bits(events, "S.wait_events"),), VOID)


@special_op(
    group=GROUP,
    c="free_events({bits})",
    effect="sync",
    operands=("bits",),
    cost=Cost("wait"),
    exempt=NOT_COMPUTED,
    example=COPY_IN_BACKGROUND,
)
def free_events(*events: object) -> E.Expr:
    """Wait for the given events and make them free again."""
    return E.Call("free_events", (event_bits(events, "S.free_events"),), VOID)

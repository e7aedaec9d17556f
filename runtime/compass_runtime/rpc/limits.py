"""What a session may take of the machine that runs it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from compass_core.dataclass import dataclass

T = TypeVar("T")
_MOST_FILES = 1 << 14


@dataclass(frozen=True)
class Quota:
    """Bytes of tensors that a session keeps on the server, and of device memory for each of its programs (`memory`); bytes of
    its files (`disk`); seconds of a call, of a session, and between two calls; sessions at once, and connections that are not
    yet known, and how long they may take for that."""

    memory: int = 4 << 30
    disk: int = 4 << 30
    call_seconds: float = 600.0
    session_seconds: float = 24 * 3600.0
    idle_seconds: float = 3600.0
    stall_seconds: float = 30.0
    sessions: int = 1
    strangers: int = 32
    greeting_seconds: float = 5.0


MOST_OBJECTS = 1 << 16
"""Objects that a session keeps on the server."""
MOST_DEVICES = 4
"""Simulated NPUs of a session that are open at once."""


def of_the_busiest(ends: Iterable[T], address: Callable[[T], str]) -> list[T]:
    """Those of the address that has most of them, in their order: where there is no room for all, one of these gives way, so that
    who comes once is not kept out by who comes a thousand times. The address that was seen first where several have as many."""
    by_address: defaultdict[str, list[T]] = defaultdict(list)
    for end in ends:
        by_address[address(end)].append(end)
    return max(by_address.values(), key=len, default=[])


def allow_files() -> None:
    """Takes as many open files as the system gives: each client needs some of them."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

"""What a session may take of the machine that runs it."""

from __future__ import annotations

from dataclasses import dataclass


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

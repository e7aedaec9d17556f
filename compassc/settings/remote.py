"""Remote sessions, of which there are none: programs import these names whether they use them or not."""

from __future__ import annotations

from typing import NoReturn

from compass_core.errors import CompassError


def no_session() -> CompassError:
    """The error of asking for a remote session."""
    return CompassError(
        "remote sessions are not available",
        code="no-rpc",
        help="kernels run on the simulator of this machine; leave rpc out of CPS_DSL",
    )


def get_rpc_session(
    session_timeout: float = 600,
    rpc_key: str | None = None,
    tracker_host: str | None = None,
    tracker_port: int | None = None,
    priority: int = 1,
) -> NoReturn:
    """Raises the CompassError that says so."""
    raise no_session()

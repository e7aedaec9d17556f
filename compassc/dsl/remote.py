"""Remote sessions as programs for the vendor's packages ask for them: by environment variables and a key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from compass_core.errors import UsageError
from compass_runtime.rpc import connect_tracker

if TYPE_CHECKING:
    from compass_runtime.rpc import Session

_PREFIX = "CPS_TVM_"


def get_rpc_session(
    session_timeout: float = 600,
    rpc_key: str | None = None,
    tracker_host: str | None = None,
    tracker_port: int | str | None = None,
    priority: int | str = 1,
) -> Session:
    """A session on a free server of a key, by a tracker. It waits until one is free.

    The key is the argument, else CPS_TVM_RPC_KEY; host, port and priority are CPS_TVM_RPC_TRACKER_IP, CPS_TVM_RPC_TRACKER_PORT and
    CPS_TVM_RPC_PRIORITY, else the arguments. UsageError where there is neither, or the key is not among those of
    CPS_TVM_VALID_RPC_KEYS (`a|b|c`).
    """
    key = rpc_key or _given("RPC_KEY")
    host = _given("RPC_TRACKER_IP") or tracker_host
    port = _given("RPC_TRACKER_PORT") or tracker_port
    wanted = _given("RPC_PRIORITY") or priority
    for what, value, name in (("key", key, "KEY"), ("tracker", host, "TRACKER_IP"), ("port", port, "TRACKER_PORT")):
        if value is None:
            raise UsageError(f"a remote session needs a {what}", code="no-rpc", help=f"set {_PREFIX}RPC_{name}")
    valid = _given("VALID_RPC_KEYS")
    if valid and key not in valid.split("|"):
        raise UsageError(
            f"the key '{key}' is not one of {valid}", code="no-rpc", help=f"{_PREFIX}VALID_RPC_KEYS has them"
        )
    with connect_tracker(str(host), _number(port, "port")) as tracker:
        return tracker.request(str(key), priority=_number(wanted, "priority"), session_timeout=session_timeout)


def _given(name: str) -> str | None:
    return os.environ.get(_PREFIX + name) or None


def _number(value: Any, what: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise UsageError(f"the {what} of a remote session is a number, not {value!r:.40}", code="no-rpc") from None

"""Remote sessions: run where the device is.

    session = connect("127.0.0.1", 9090)
    session.upload("aipu.bin")
    run = session.load_module("aipu.bin")["add"]
    a, b = session.array(x), session.empty(x.shape, x.dtype)
    run(a, b)
    b.numpy()

A server is `compassc rpc-server`, or `Server` in a program. `connect_tracker(host, port).request(key)` gives a session on
whatever server of a key is free; `request` does both. docs/remote.md has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compass_runtime.rpc.errors import RPCError, RPCSessionTimeoutError
    from compass_runtime.rpc.local import Proxy, Server, Tracker
    from compass_runtime.rpc.local_session import LocalSession
    from compass_runtime.rpc.popen import PopenSession
    from compass_runtime.rpc.session import Session
    from compass_runtime.rpc.tracker_session import TrackerSession

_HOMES = {
    "LocalSession": "local_session",
    "PopenSession": "popen",
    "Proxy": "local",
    "RPCError": "errors",
    "RPCSessionTimeoutError": "errors",
    "Server": "local",
    "Session": "session",
    "Tracker": "local",
    "TrackerSession": "tracker_session",
}
__all__ = [
    "LocalSession",
    "PopenSession",
    "Proxy",
    "RPCError",
    "RPCSessionTimeoutError",
    "Server",
    "Session",
    "Tracker",
    "TrackerSession",
    "connect",
    "connect_tracker",
    "request",
]


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def connect(
    url: str,
    port: int,
    key: str = "",
    session_timeout: float = 0,
    session_constructor_args: Sequence[object] | None = None,
    enable_logging: bool = False,
    *,
    token_file: Path | None = None,
    ca: Path | None = None,
    wait: float | None = None,
    call_seconds: float = 600.0,
    waiting: Callable[[], object] | None = None,
) -> Session:
    """A session on the server at an address. Where it is busy this waits for its turn, at most `wait` seconds, and calls
    `waiting` each time that the server says so.

    `session_constructor_args`: `["rpc.Connect", HOST, PORT, KEY]` for a session on another server by way of this one, whose
    token needs the right `connect` for that. `key`: what the server was started with, if anything. `session_timeout`: seconds after which the server ends the session;
    0: those that it allows. `token_file`, `ca`: the token, and for other machines the certificate that the server has;
    by default those of COMPASS_RPC_TOKENS and COMPASS_RPC_CA. `call_seconds`: after which a single call is stopped.
    RPCError where there is no server, or it refuses: another key or token, another version.
    """
    from compass_runtime.rpc.access import Credentials
    from compass_runtime.rpc.connections import opened
    from compass_runtime.rpc.errors import RPCError
    from compass_runtime.rpc.session import Session

    if not isinstance(session_constructor_args, (list, tuple, type(None))):
        raise TypeError("session_constructor_args must be a list or tuple")
    about: dict[str, object] = {"key": key, "session_timeout": session_timeout}
    if session_constructor_args:
        about["constructor"] = list(session_constructor_args)
    try:
        channel, welcome = opened(
            url, port, "client", about, credentials=Credentials(token_file, ca), wait=wait, waiting=waiting
        )
    except RPCError as error:
        if error.code == "rpc-key":
            raise RPCError(
                f"URL {url}:{port} cannot find server that matches key=client:{key}",
                code="rpc-key",
                help="the server has another key, or takes those alone whom its tracker sends",
            ) from None
        if error.code == "rpc-stranger":
            raise RPCError(f"URL {url}:{port} is not TVM RPC server: {error.message}", code="rpc-stranger") from None
        raise
    if "is" in welcome:
        channel.close()
        raise RPCError(f"URL {url}:{port} is not TVM RPC server: it is a {welcome['is']}", code="rpc-stranger")
    return Session(channel, welcome, session_timeout, call_seconds, enable_logging)


def connect_tracker(
    url: str, port: int, *, token_file: Path | None = None, ca: Path | None = None, connect_seconds: float = 60.0
) -> TrackerSession:
    """The tracker at an address, which is tried for `connect_seconds`."""
    from compass_runtime.rpc.access import Credentials
    from compass_runtime.rpc.tracker_session import TrackerSession

    return TrackerSession((url, int(port)), Credentials(token_file, ca), connect_seconds)


def request(
    key: str,
    tracker: str,
    priority: int = 1,
    session_timeout: float = 0,
    *,
    token_file: Path | None = None,
    ca: Path | None = None,
    wait: float | None = None,
) -> Session:
    """A session on a free server of a key, by the tracker at `HOST:PORT`."""
    from compass_runtime.rpc.access import parse_address

    host, port = parse_address(tracker, 9190)
    with connect_tracker(host, port, token_file=token_file, ca=ca) as known:
        return known.request(key, priority, session_timeout, wait=wait)

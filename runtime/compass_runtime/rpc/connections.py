"""How connections come about: listening, and connecting with the greeting of both sides."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping

from compass_core.reading.jsontext import Json
from compass_core.switches import RPC_CA, RPC_TOKENS
from compass_runtime.rpc import access
from compass_runtime.rpc.channel import Channel, greet, tuned
from compass_runtime.rpc.errors import RPCError

CONNECT_SECONDS = 10.0


def listening(host: str, port: int, port_end: int, reuse: bool = True) -> socket.socket:
    """A socket on the first free port of a range; ValueError when none is."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, max(port_end, port + 1)):
        sock = socket.socket(family, socket.SOCK_STREAM)
        if reuse:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, number))
            sock.listen(256)
            return sock
        except OSError:
            sock.close()
    raise ValueError(f"cannot bind to any port in [{port}, {port_end})")


def opened(
    host: str,
    port: int,
    role: str,
    about: Mapping[str, object],
    *,
    credentials: access.Credentials,
    wait: float | None = None,
    seconds: float = CONNECT_SECONDS,
    waiting: Callable[[], object] | None = None,
) -> tuple[Channel, dict[str, Json]]:
    """A connection on which both sides know each other, and what the other one says of itself. RPCError where there is none. `wait`,
    `waiting`: as in `greet`."""
    where = f"{host}:{port}"
    context = access.client_context(host, credentials.ca or RPC_CA.get())
    token = credentials.token or access.tokens_of(credentials.token_file or RPC_TOKENS.get())[0]
    try:
        sock = socket.create_connection((host, port), seconds)
        tuned(sock)
        if context is not None:
            sock = context.wrap_socket(sock, server_hostname=host)
    except (OSError, ValueError) as error:
        raise RPCError(
            f"Connect to {where} failed: {error}", code="rpc-connect", help="is a server running there?"
        ) from None
    channel = Channel(sock, where)
    end = None if wait is None else time.monotonic() + wait
    try:
        welcome = greet(channel, role, token, about, wait, waiting)
        if role == "client" and welcome.get("is") == "proxy":  # behind which a server is now
            channel.greeting = True
            left = None if end is None else max(end - time.monotonic(), 0.0)
            welcome = greet(channel, role, token, about, left, waiting)
        return channel, welcome
    except BaseException:
        channel.close()
        raise

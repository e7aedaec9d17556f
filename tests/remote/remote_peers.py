"""Connections to a server that do as they like."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from compass_runtime import rpc
from compass_runtime.rpc import access
from compass_runtime.rpc.channel import Channel, greet

PORTS = {"port": 42000, "port_end": 42999}
PATIENCE = 120.0
"""Seconds after which a test gives up on something that has no time of its own to keep."""


def eventually(holds: Callable[[], object]) -> None:
    """Waits until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def raw(server: rpc.Server) -> socket.socket:
    """A connection of a stranger."""
    return socket.create_connection((server.host, server.port), PATIENCE)


def known(server: rpc.Server) -> Channel:
    """The connection of a client that is known, and may send what he likes."""
    channel = Channel(raw(server), "server")
    greet(channel, "client", access.tokens_of()[0], {"key": ""}, None)
    return channel


def ended(sock: socket.socket) -> bool:
    """Reads until the other side closes the connection."""
    try:
        sock.settimeout(PATIENCE)
        while sock.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:  # it was reset, or found to be so before
        pass
    return True

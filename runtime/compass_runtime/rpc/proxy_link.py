"""A server's connections to a proxy, for machines that nobody reaches."""

from __future__ import annotations

import logging
import selectors
from collections.abc import Callable
from typing import TYPE_CHECKING

from compass_core.errors import CompassError
from compass_runtime.rpc.access import Credentials
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.connections import opened
from compass_runtime.rpc.errors import RPCError

if TYPE_CHECKING:
    from compass_runtime.rpc.server import Offer

LOG = logging.getLogger("RPCServer")
TRIES = 5
_RETRY_SECONDS = 5.0
_SOON_SECONDS = 0.1
"""The pause after a connection that ended at once, so that a proxy that ends each cannot keep the server busy."""


class ProxyLink:
    """Keeps a connection for each client that may come; `take` gets one as soon as a client is at its other end."""

    def __init__(self, offer: Offer, take: Callable[[Channel], object]) -> None:
        self._offer, self._take = offer, take
        self._idle: list[Channel] = []
        self._failures = 0
        self._next_try = 0.0

    def step(self, now: float, free: int, selector: selectors.BaseSelector) -> None:
        """Connects as often as there are free sessions. RPCError after some tries in a row that failed."""
        while len(self._idle) < free and now >= self._next_try:
            try:
                channel = self._connected()
            except CompassError as error:
                self._failures += 1
                self._next_try = now + _RETRY_SECONDS
                LOG.warning("no proxy: %s", error.message)
                if self._failures >= TRIES or error.code in ("rpc-stranger", "rpc-refused"):
                    raise RPCError(f"Maximum retry error: last error: {error.message}", code="rpc-connect") from None
                return
            self._failures = 0
            here = self._client_here(channel)
            if here:  # who waited for this, and whose words came with the end of the greeting
                self._take(channel)
                free -= 1
            elif here is None:  # who waited has gone, and took the connection along
                self._next_try = now + _SOON_SECONDS
            else:
                self._idle.append(channel)
                selector.register(channel.sock, selectors.EVENT_READ, lambda it=channel: self._arrived(it, selector))

    def _connected(self) -> Channel:

        credentials = Credentials(self._offer.token_file, self._offer.ca)
        about = {"key": f"server:{self._offer.key}"}
        where = self._offer.host, self._offer.port
        try:
            channel, welcome = opened(*where, "server", about, credentials=credentials, seconds=5.0, wait=0)
        except RPCError as error:
            if error.code == "rpc-key":  # a server takes us for a client of another key
                raise RPCError(f"{where} is not RPC Proxy", code="rpc-stranger") from None
            raise
        if welcome.get("is") != "proxy":
            channel.close()
            raise RPCError(f"{where} is not RPC Proxy", code="rpc-stranger")
        channel.greeting = True  # of the client, who comes next
        return channel

    def _arrived(self, channel: Channel, selector: selectors.BaseSelector) -> None:
        """A client, or the end of the proxy."""
        selector.unregister(channel.sock)
        self._idle.remove(channel)
        if self._client_here(channel):
            self._take(channel)
        else:
            channel.close()

    @staticmethod
    def _client_here(channel: Channel) -> bool | None:
        """Whether a client has said something; None where the proxy has gone, or has ended this connection, which is closed then."""
        try:
            return channel.begins(0.001)
        except RPCError as error:
            LOG.info("the proxy has ended a connection: %s", error.message)
            channel.close()
            return None

    def close(self) -> None:
        """Ends the connections on which no client has come."""
        for channel in self._idle:
            channel.close()
        self._idle.clear()

    def drop(self) -> None:
        """In a child: lets go of the sockets, which stay the parent's."""
        for channel in self._idle:
            channel.sock.close()
        self._idle.clear()

"""A server's connection to its tracker."""

from __future__ import annotations

import contextlib
import logging
import secrets
import selectors
from typing import TYPE_CHECKING

from compass_core.errors import CompassError
from compass_runtime.rpc.access import Credentials
from compass_runtime.rpc.connections import opened
from compass_runtime.rpc.errors import RPCError
from compass_runtime.rpc.wire import Kind

if TYPE_CHECKING:
    from compass_runtime.rpc.channel import Channel
    from compass_runtime.rpc.server import Offer

LOG = logging.getLogger("RPCServer")
CLAIM_SECONDS = 1.0
"""So long beyond a greeting a client has to come after the tracker gave him this server; then the key is drawn anew."""
_RETRY_SECONDS = 2.0


class TrackerLink:
    """Tells the tracker how many more clients may come: with a key for each, the server's own one and a random number, which
    is good for one session."""

    def __init__(self, offer: Offer, port: int) -> None:
        self._offer, self._port = offer, port
        self._channel: Channel | None = None
        self._selector: selectors.BaseSelector | None = None
        self._keys: dict[str, float] = {}
        """Keys that a client may come with, and when the tracker gave them to one; 0: not yet."""
        self._next_try = 0.0
        self._now = 0.0
        self._calls = 0
        self._complained = False

    def claimed(self, key: str) -> bool:
        """Whether a client may come with this key; he alone, and once."""
        return self._keys.pop(key, None) is not None

    def step(self, now: float, free: int, selector: selectors.BaseSelector) -> None:
        """Connects where there is no connection, and registers as many keys as there are free sessions."""
        self._now = now
        if self._channel is None and now >= self._next_try:
            self._connect(now, selector)
        if self._channel is None:
            return
        for key, given in list(self._keys.items()):
            if given and now - given > self._offer.quota.greeting_seconds + CLAIM_SECONDS:
                LOG.info("no incoming connections, regenerate key ...")
                del self._keys[key]
        try:
            while len(self._keys) < free:
                key = f"{self._offer.key}:{secrets.randbits(62)}"
                self._keys[key] = 0.0
                self._call("tracker.put", [self._offer.key, key, self._offer.announced, self._port])
        except RPCError as error:
            self._lost(error)

    def _call(self, name: str, args: list[object]) -> None:
        assert self._channel is not None
        self._calls += 1
        self._channel.send(Kind.CALL, self._calls, {"f": name, "v": args})

    def _connect(self, now: float, selector: selectors.BaseSelector) -> None:

        assert self._offer.tracker is not None
        self._next_try = now + _RETRY_SECONDS
        credentials = Credentials(self._offer.token_file, self._offer.ca)
        about = {"key": f"server:{self._offer.key}", "port": self._port, "announced": self._offer.announced}
        try:
            channel, welcome = opened(
                *self._offer.tracker, "server", about, credentials=credentials, seconds=2.0, wait=0
            )
            if welcome.get("is") != "tracker":
                channel.close()
                raise RPCError(f"{channel.where} is not RPC Tracker", code="rpc-stranger")
        except CompassError as error:
            if not self._complained:
                LOG.warning("no tracker: %s; trying again", error.message)
            self._complained = True
            return
        self._complained = False
        self._channel, self._selector = channel, selector
        self._keys.clear()
        selector.register(channel.sock, selectors.EVENT_READ, self._read)

    def _read(self) -> None:
        """Takes what the tracker says: that a key was given to a client."""
        assert self._channel is not None
        try:
            while True:
                frame = self._channel.receive(2.0)
                if frame.kind == Kind.NOTE and isinstance(frame.head, dict):
                    key = frame.head.get("granted")
                    if key in self._keys:
                        self._keys[key] = self._now
                if not getattr(self._channel.sock, "pending", lambda: 0)():
                    return
        except RPCError as error:
            self._lost(error)

    def _lost(self, error: RPCError) -> None:
        LOG.warning("the tracker is gone: %s", error.message)
        self.close()
        self._keys.clear()

    def close(self) -> None:
        """Ends the connection."""
        if self._channel is not None:
            if self._selector is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(self._channel.sock)
            self._channel.close()
            self._channel = None

    def drop(self) -> None:
        """In a child: lets go of the socket, which stays the parent's."""
        if self._channel is not None:
            self._channel.sock.close()
            self._channel = None

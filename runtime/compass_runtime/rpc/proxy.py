"""The proxy: servers that nobody reaches connect out to it, clients connect to it as to a server, and it brings together who has
the same key.

Both sides show the proxy that they know a token: a stranger waits for nothing, and takes no server's time. When there is a server
of his key a client is welcomed, and begins anew, with the server: from then on the proxy passes on what comes, in both directions.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_runtime.rpc import access
from compass_runtime.rpc.access import Credentials, Token
from compass_runtime.rpc.channel import GREETING_SECONDS
from compass_runtime.rpc.connections import opened
from compass_runtime.rpc.errors import RPCError
from compass_runtime.rpc.events import Connection, EventServer
from compass_runtime.rpc.limits import of_the_busiest
from compass_runtime.rpc.link import CLAIM_SECONDS
from compass_runtime.rpc.wire import Kind

if TYPE_CHECKING:
    from compass_runtime.rpc.channel import Channel

TIMEOUT_SECONDS = 600.0
"""So long a client waits for a server of his key, and a server for a client."""
MOST_EACH = 256
"""Who waits for one key, on either side."""
_PIECE = 1 << 18


@dataclass(eq=False)
class _End:
    """One side that waits for the other: `other` is its connection, as soon as there is one. `settled`: there is, or there is no room
    any more to wait for one."""

    connection: Connection
    key: str
    other: Connection | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    tracker: Channel | None = None


class Proxy(EventServer):
    """Who waits, by key. `tracker`: where servers are registered, with the address of the proxy."""

    log = logging.getLogger("RPCProxy")
    name = "proxy"

    def __init__(
        self,
        host: str,
        tokens: Sequence[Token],
        tls: ssl.SSLContext | None = None,
        tracker: tuple[str, int] | None = None,
        credentials: Credentials | None = None,
        timeouts: tuple[float, float] = (TIMEOUT_SECONDS, TIMEOUT_SECONDS),
    ) -> None:
        super().__init__(host, tokens, tls)
        self._servers: dict[str, deque[_End]] = {}
        self._clients: dict[str, deque[_End]] = {}
        self._tracker, self._credentials = tracker, credentials or Credentials()
        self._client_seconds, self._server_seconds = timeouts

    async def handle(self, connection: Connection) -> None:
        key = connection.hello.get("key", "")
        end = _End(connection, key if isinstance(key, str) else "")
        if connection.hello.get("role") == "server":
            end.key = end.key.removeprefix("server:")
            connection.welcome()
            await self._serve(end)
        else:
            await self._pass_on(end)

    # -- the two sides

    async def _serve(self, end: _End) -> None:
        """A server, until it or its client goes."""
        if self._tracker is not None:
            await self._register(end)
        try:
            self._wait(self._servers, end)
            while True:
                limit = None if end.other is not None else self._server_seconds
                data = await asyncio.wait_for(end.connection.reader.read(_PIECE), limit)
                if not data or end.other is None:
                    return
                end.other.writer.write(data)
                await end.other.writer.drain()
        finally:
            self._leave(self._servers, end)

    async def _pass_on(self, end: _End) -> None:
        """A client, until he or his server goes."""
        try:
            self._wait(self._clients, end)
            await self._settled(end)
            if end.other is None:
                raise RPCError("too many wait for this key", code="rpc-quota")
            end.connection.welcome()
            while data := await end.connection.reader.read(_PIECE):
                end.other.writer.write(data)
                await end.other.writer.drain()
        except RPCError as error:
            raise end.connection.refuse(error) from None
        finally:
            self._leave(self._clients, end)

    async def _settled(self, end: _End) -> None:
        """Waits for a server, and says so to the client at once and every second; RPCError when none comes, or the client has gone."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._client_seconds
        while not end.settled.is_set():
            left = until - loop.time()
            if left <= 0 or end.connection.is_gone:
                raise RPCError(f"cannot find server that matches key=client:{end.key}", code="rpc-key")
            end.connection.send(Kind.WAIT, 0, {})
            with suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(end.settled.wait(), min(left, 1.0))

    def _wait(self, table: dict[str, deque[_End]], end: _End) -> None:
        """Puts one in the row of its key. Where that is full, the last one of the address that has most in it gives way."""
        waiting = table.setdefault(end.key, deque())
        waiting.append(end)
        if len(waiting) > MOST_EACH:
            late = of_the_busiest(waiting, lambda one: one.connection.address[0])[-1]
            waiting.remove(late)
            if late is end:
                raise RPCError("too many wait for this key", code="rpc-quota")
            late.settled.set()
            if table is self._servers:
                late.connection.writer.close()
        self._match(end.key)

    def _match(self, key: str) -> None:
        servers, clients = self._servers.get(key), self._clients.get(key)
        while servers and clients:
            for row in (servers, clients):
                if row[0].connection.is_gone:  # its task will find out; nobody of the other side is to go with it
                    row.popleft()
                    break
            else:
                self._join(servers.popleft(), clients.popleft())

    def _join(self, server: _End, client: _End) -> None:
        server.other, client.other = client.connection, server.connection
        self._unregister(server)
        client.settled.set()
        self.log.info("%s is served by %s", client.connection.address, server.connection.address)

    def _leave(self, table: dict[str, deque[_End]], end: _End) -> None:
        """The side that has gone takes the other one along."""
        self._unregister(end)
        waiting = table.get(end.key)
        if waiting is not None and end in waiting:
            waiting.remove(end)
        if waiting is not None and not waiting:
            del table[end.key]
        if end.other is not None:
            with suppress(OSError, RuntimeError):
                end.other.writer.close()

    # -- the tracker

    async def _register(self, end: _End) -> None:
        """Tells the tracker of a server, under a key that is good for one client; RPCError where there is no tracker."""
        plain = end.key
        loop = asyncio.get_running_loop()
        end.tracker = await loop.run_in_executor(None, self._tracked, plain)
        loop.add_reader(end.tracker.sock, self._noted, end, plain)
        self._put(end, plain)

    def _tracked(self, key: str) -> Channel:

        assert self._tracker is not None
        about = {"key": f"server:{key}", "port": self.port, "announced": None}
        channel, welcome = opened(*self._tracker, "server", about, credentials=self._credentials, seconds=2.0, wait=0)
        if welcome.get("is") != "tracker":
            channel.close()
            raise RPCError(f"{channel.where} is not RPC Tracker", code="rpc-stranger")
        return channel

    def _put(self, end: _End, plain: str) -> None:
        assert end.tracker is not None
        end.key = f"{plain}:{secrets.randbits(62)}"
        end.tracker.send(Kind.CALL, 1, {"f": "tracker.put", "v": [plain, end.key, None, self.port]})

    def _noted(self, end: _End, plain: str) -> None:
        """Takes what the tracker says: that the key was given to a client, who has some time to come."""
        if end.tracker is None:
            return
        try:
            while end.tracker.begins(0.001):
                if end.tracker.receive(2.0).kind == Kind.NOTE:
                    patience = GREETING_SECONDS + CLAIM_SECONDS
                    asyncio.get_running_loop().call_later(patience, self._unclaimed, end, plain, end.key)
        except RPCError as error:
            self.log.warning("the tracker is gone: %s", error.message)
            self._unregister(end)
            end.connection.writer.close()  # the server comes again, and is registered anew

    def _unclaimed(self, end: _End, plain: str, key: str) -> None:
        if end.other is not None or end.tracker is None or end.key != key:
            return
        self.log.info("no incoming connections, regenerate key ...")
        tracker, end.tracker = end.tracker, None
        self._leave(self._servers, end)
        end.tracker = tracker
        self._put(end, plain)
        self._wait(self._servers, end)

    def _unregister(self, end: _End) -> None:
        if end.tracker is not None:
            asyncio.get_running_loop().remove_reader(end.tracker.sock)
            end.tracker.close()
            end.tracker = None


def main(
    host: str,
    port: int,
    port_end: int,
    ready: Callable[[Proxy], object],
    token_file: Path | None = None,
    certificate: Path | None = None,
    private_key: Path | None = None,
    tracker: tuple[str, int] | None = None,
    ca: Path | None = None,
    timeouts: tuple[float, float] = (TIMEOUT_SECONDS, TIMEOUT_SECONDS),
) -> None:
    """Runs a proxy in this process until SIGINT or SIGTERM."""
    tls = access.server_context(host, certificate, private_key)
    tokens = access.tokens_of(token_file, make=True)
    proxy = Proxy(host, tokens, tls, tracker, Credentials(token_file, ca), timeouts)
    asyncio.run(proxy.serve(port, port_end, ready))

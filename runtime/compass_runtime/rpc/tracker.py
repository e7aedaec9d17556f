"""The tracker: servers register under a key, clients ask for one of a key, and get its address and a key for one session."""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from types import UnionType

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_runtime.rpc import access
from compass_runtime.rpc.access import Token
from compass_runtime.rpc.errors import RPCError, damaged, described
from compass_runtime.rpc.events import Connection, EventServer
from compass_runtime.rpc.wire import Frame, Kind

MOST_EACH = 1024
"""Keys that a server has registered, or requests of a client that wait."""


@dataclass(eq=False)
class _Free:
    """A session that a server has to give."""

    owner: _Known
    address: tuple[str, int]
    match: str


@dataclass(eq=False)
class _Wanted:
    """A client that waits for one."""

    owner: _Known
    call: int
    priority: int


@dataclass(eq=False)
class _Known:
    """A server or client that is connected."""

    connection: Connection
    puts: int = 0
    asks: int = 0
    keys: set[str] = field(default_factory=set)


class Tracker(EventServer):
    """Who is free, and who waits, by key."""

    log = logging.getLogger("RPCTracker")
    name = "tracker"

    def __init__(self, host: str, tokens: Sequence[Token], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(host, tokens, tls)
        self._free: dict[str, deque[_Free]] = {}
        self._wanted: dict[str, list[_Wanted]] = {}
        self._known: list[_Known] = []
        self.stop_key = secrets.token_hex(16)

    async def handle(self, connection: Connection) -> None:
        known = _Known(connection)
        try:
            self._server(known)
        except UsageError as error:  # nobody could be told where it is
            raise connection.refuse(RPCError(error.message, code="rpc-refused")) from None
        connection.welcome()
        self._known.append(known)
        try:
            while True:
                frame = await connection.receive()
                if frame.kind != Kind.CALL or not isinstance(frame.head, dict):
                    raise damaged("a message that is no call")
                self._answer(known, frame)
                await connection.writer.drain()
        finally:
            self._known.remove(known)
            for key in known.keys:
                if key in self._free:
                    self._free[key] = deque(one for one in self._free[key] if one.owner is not known)
                if key in self._wanted:
                    self._wanted[key] = [one for one in self._wanted[key] if one.owner is not known]
                self._tidy(key)

    def _tidy(self, key: str) -> None:
        for table in (self._free, self._wanted):
            if key in table and not table[key]:
                del table[key]

    def _answer(self, known: _Known, frame: Frame) -> None:
        name, args = frame.fields.get("f"), frame.fields.get("v")
        try:
            if not isinstance(name, str) or name not in _CALLS or not isinstance(args, list):
                raise RPCError("the tracker has no such function", code="rpc-call")
            types, body = _CALLS[name]
            if len(args) != len(types) or any(not isinstance(a, t) for a, t in zip(args, types)):
                raise RPCError(f"{name} does not take these arguments", code="rpc-call")
            found = body(self, known, frame.call, *args)
        except (RPCError, UsageError) as error:
            known.connection.send(Kind.ERROR, frame.call, described(error))
            return
        if found is not _LATER:
            known.connection.send(Kind.RESULT, frame.call, {"v": found})

    def put(self, known: _Known, call: int, key: str, match: str, announced: str | None, port: int) -> None:
        """A server has room for one more client."""
        if known.puts >= MOST_EACH or len(key) > 200 or not match.startswith(f"{key}:") or not 0 < port < 65536:
            raise RPCError("the server cannot be registered so", code="rpc-call")
        host, number = (announced or known.connection.address[0]), port
        if announced and ":" in announced:
            host, number = access.parse_address(announced)
        known.puts += 1
        known.keys.add(key)
        self._free.setdefault(key, deque()).append(_Free(known, (host, number), match))
        self._match(key)

    def ask(self, known: _Known, call: int, key: str, priority: int) -> object:
        """A client wants a session; the answer comes when there is one."""
        if known.asks >= MOST_EACH or len(key) > 200:
            raise RPCError("too many requests wait", code="rpc-quota")
        known.asks += 1
        known.keys.add(key)
        waiting = self._wanted.setdefault(key, [])
        at = len(waiting)
        while at and waiting[at - 1].priority < priority:
            at -= 1
        waiting.insert(at, _Wanted(known, call, priority))
        self._match(key)
        return _LATER

    def _match(self, key: str) -> None:
        free, wanted = self._free.get(key), self._wanted.get(key)
        while free and wanted:
            server, client = free.popleft(), wanted.pop(0)
            server.owner.puts -= 1
            client.owner.asks -= 1
            server.owner.connection.send(Kind.NOTE, 0, {"granted": server.match})
            client.owner.connection.send(Kind.RESULT, client.call, {"v": [*server.address, server.match]})
        self._tidy(key)

    def summary(self, known: _Known, call: int) -> dict[str, object]:
        """Who is there, and who waits."""
        keys = {*self._free, *self._wanted}
        queues = {
            key: {"free": len(self._free.get(key, ())), "pending": len(self._wanted.get(key, ()))}
            for key in sorted(keys)
        }
        return {"queue_info": queues, "server_info": [self._server(one) for one in self._known if _is_server(one)]}

    @staticmethod
    def _server(known: _Known) -> dict[str, object]:
        hello, host = known.connection.hello, known.connection.address[0]
        announced, port = hello.get("announced"), hello.get("port")
        if isinstance(announced, str) and announced:
            host, port = access.parse_address(announced, port if isinstance(port, int) else 0)
        return {"key": str(hello.get("key"))[:208], "addr": [host, port] if isinstance(port, int) else None}

    def end(self, known: _Known, call: int, key: str) -> None:
        """Ends the tracker, for who has the key that it was started with."""
        if not secrets.compare_digest(key.encode(), self.stop_key.encode()):
            raise RPCError("the key is wrong", code="rpc-refused")
        self.stop()


def _is_server(known: _Known) -> bool:
    return known.connection.hello.get("role") == "server"


_LATER = object()
_CALLS: dict[str, tuple[tuple[type | UnionType, ...], Callable[..., object]]] = {
    "tracker.put": ((str, str, str | None, int), Tracker.put),
    "tracker.request": ((str, int), Tracker.ask),
    "tracker.summary": ((), Tracker.summary),
    "tracker.stop": ((str,), Tracker.end),
    "tracker.ping": ((), lambda self, known, call: None),
}


def main(
    host: str,
    port: int,
    port_end: int,
    ready: Callable[[Tracker], object],
    token_file: Path | None = None,
    certificate: Path | None = None,
    private_key: Path | None = None,
) -> None:
    """Runs a tracker in this process until SIGINT or SIGTERM."""
    tracker = Tracker(
        host, access.tokens_of(token_file, make=True), access.server_context(host, certificate, private_key)
    )
    asyncio.run(tracker.serve(port, port_end, ready))

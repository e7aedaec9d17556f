"""Who listens with a loop of events (asyncio), trackers and proxies: connections, greetings, and what strangers may take.

A connection costs it a buffer. Who does not read what he is sent is dropped; where too many strangers have come at once, one of them
gives way to each that comes, so that who knows a token gets in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from compass_core.reading.jsontext import Json
from compass_runtime.rpc import wire
from compass_runtime.rpc.access import Token
from compass_runtime.rpc.channel import GREETING_SECONDS, MOST_WHY, Greeted, _other_version, tuned
from compass_runtime.rpc.connections import listening
from compass_runtime.rpc.errors import RPCError, damaged
from compass_runtime.rpc.limits import allow_files, of_the_busiest
from compass_runtime.rpc.wire import Frame, Kind

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_KNOWN = 2048
"""Connections of those that know a token."""
MOST_STRANGERS = 256
_MOST_UNREAD = 1 << 20
_REST_SECONDS = 0.1
"""So long nobody is let in after the system had no file for a connection."""


class Connection:
    """A connection of a loop of events: frames, and who is there. `hello`: what he said of himself, once he is known."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        peer = writer.get_extra_info("peername") or ("?", 0)
        self.address: tuple[str, int] = (str(peer[0]), int(peer[1]))
        self.greeting = True
        self.hello: dict[str, Json] = {}
        self._about: dict[str, object] = {}

    def send(self, kind: Kind, call: int, head: object) -> None:
        """Sends a frame; who reads nothing is dropped."""
        self.writer.write(b"".join(wire.packed(kind, call, head)))
        if self.writer.transport.get_write_buffer_size() > _MOST_UNREAD:
            self.writer.transport.abort()

    async def receive(self) -> Frame:
        """The next frame; RPCError, IncompleteReadError or OSError where there is none."""
        data = await self.reader.readexactly(wire.HEADER.size)
        kind, call, head, body = wire.header(data, self.greeting)
        if body:
            raise damaged("a message with a body, which nobody asks for here")
        text = await self.reader.readexactly(head)
        return Frame(kind, call, wire.parsed(text), memoryview(b""), text if self.greeting else b"")

    @property
    def is_gone(self) -> bool:
        """Whether the other side has closed it; False as long as something that it said was not read."""
        return self.reader.at_eof() or self.writer.transport.is_closing()

    def refuse(self, error: RPCError) -> RPCError:
        """Says why nothing comes of the greeting; gives the error."""
        self.send(Kind.REFUSED, 0, {"message": error.message[:MOST_WHY], "code": error.code})
        return error

    async def greet(self, tokens: Sequence[Token], about: dict[str, object]) -> None:
        """The greeting of who has connected, but for its last message (`welcome`). RPCError, said to him too, where he does not prove
        that he knows a token, or speaks another version."""
        self.writer.write(wire.preamble())
        magic, version = wire.PREAMBLE.unpack(await self.reader.readexactly(wire.PREAMBLE.size))
        if magic != wire.MAGIC:
            raise self.refuse(RPCError("this is a server of compassc's remote sessions", code="rpc-stranger"))
        if version != wire.VERSION:
            raise self.refuse(RPCError(_other_version(version), code="rpc-version"))
        greeted = Greeted(tokens, {})
        try:
            while greeted.token is None:
                if (challenge := greeted.answer(await self.receive())) is not None:
                    self.send(Kind.CHALLENGE, 0, challenge)
        except RPCError as error:
            raise self.refuse(error) from None
        self.hello = greeted.hello
        self._about = greeted.welcome(**about)

    def welcome(self) -> None:
        """Ends the greeting."""
        self.send(Kind.WELCOME, 0, self._about)
        self.greeting = False


class EventServer:
    """A loop of events that listens. Subclasses say what it is, and what is done with a connection that is known."""

    log = logging.getLogger("RPCServer")
    name = ""
    """What it calls itself in the greeting."""

    def __init__(self, host: str, tokens: Sequence[Token], tls: ssl.SSLContext | None) -> None:
        self.host, self.port = host, 0
        self.tokens, self.tls = tokens, tls
        self._strangers: dict[asyncio.Task[None], str] = {}
        """The tasks of those that have not shown a token, the oldest first, and their addresses."""
        self._guests: set[asyncio.Task[None]] = set()
        self._stop: asyncio.Event | None = None

    async def handle(self, connection: Connection) -> None:
        """What is done with a connection until its end: its greeting has gone well, but was not ended (`welcome`)."""
        raise NotImplementedError

    async def _accept(self, listener: socket.socket) -> None:
        """Takes connections for good. Each is a stranger's at first, from its first byte on."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(listener)
            except OSError as error:  # no file is left for it, or it went at once
                self.log.warning("a connection was lost: %s", error)
                await asyncio.sleep(_REST_SECONDS)
                continue
            task = loop.create_task(self._meet(sock))
            self._strangers[task] = str(address[0])
            task.add_done_callback(self._over)
            if len(self._strangers) > MOST_STRANGERS:
                one = of_the_busiest(self._strangers.items(), lambda item: item[1])[0]
                del self._strangers[one[0]]
                one[0].cancel()

    def _over(self, task: asyncio.Task[None]) -> None:
        self._strangers.pop(task, None)
        self._guests.discard(task)

    async def _meet(self, sock: socket.socket) -> None:
        """One connection, from its first byte to its end."""
        task = asyncio.current_task()
        assert task is not None
        writer: asyncio.StreamWriter | None = None

        async def greeted() -> Connection:
            nonlocal writer
            reader, writer = await self._opened(sock)
            connection = Connection(reader, writer)
            await connection.greet(self.tokens, {"is": self.name})
            return connection

        try:
            connection = await asyncio.wait_for(greeted(), GREETING_SECONDS)
            self._strangers.pop(task, None)
            if len(self._guests) >= MOST_KNOWN:
                raise connection.refuse(RPCError("too many are connected", code="rpc-quota"))
            self._guests.add(task)
            await self.handle(connection)
        except (OSError, EOFError, TimeoutError, asyncio.TimeoutError, ssl.SSLError):
            pass  # it went, which is all that can be said of it
        except RPCError as error:
            self.log.info("%s", error.message)
        except asyncio.CancelledError:
            pass
        finally:
            with contextlib.suppress(OSError, RuntimeError):
                sock.close() if writer is None else writer.close()

    async def _opened(self, sock: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The two directions of a connection that was accepted, with TLS where this side has it."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            tuned(sock)
        reader = asyncio.StreamReader(limit=1 << 16)
        protocol = asyncio.StreamReaderProtocol(reader)
        seconds = None if self.tls is None else GREETING_SECONDS
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, sock, ssl=self.tls, ssl_handshake_timeout=seconds
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def serve(self, port: int, port_end: int, ready: Callable[[Self], object]) -> None:
        """Serves until a signal ends it."""
        allow_files()
        listener = listening(self.host, port, port_end)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop.set)
        accepting = loop.create_task(self._accept(listener))
        self.log.info("bind to %s:%d", self.host, self.port)
        ready(self)
        await self._stop.wait()
        accepting.cancel()
        listener.close()

    def watch(self, descriptor: int) -> None:
        """Stops when there is something to read, or the end."""
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(descriptor)  # which would be ready for as long as the loop ends what still runs
            self.stop()

        loop.add_reader(descriptor, ended)

    def stop(self) -> None:
        """Ends the loop."""
        if self._stop is not None:
            self._stop.set()

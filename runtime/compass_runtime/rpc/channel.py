"""A connection: frames of a socket, the greeting at its beginning, and calls in both directions.

While a side waits for the result of its call it answers calls of the other one: a function that was passed as an argument
runs where it came from.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from compass_core import VERSION as SOFTWARE
from compass_core.errors import CompassError
from compass_core.reading.jsontext import Json
from compass_core.reading.limits import RPC_DEPTH
from compass_runtime.rpc import wire
from compass_runtime.rpc.access import NONCE, Token, who_proved
from compass_runtime.rpc.errors import RPCError, damaged, described, lost, received
from compass_runtime.rpc.wire import Buffer, Decoder, Encoder, Frame, Kind

GREETING_SECONDS = 5.0
"""So long a stranger has to become known."""
STALL_SECONDS = 30.0
"""So long the other side may take for a single step of a message that it has begun, or that it is sent."""

_AHEAD = 1 << 16
"""So many bytes are read at once where fewer are asked for."""
_PIECE = 1 << 18
"""So many bytes are passed on at once."""


def tuned(sock: socket.socket) -> None:
    """Sets what every connection has: no waiting for more bytes, and a look after half a minute whether the other machine is
    still there."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 30_000)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


MOST_WHY = 300
"""Characters of a reason: each takes up to 12 bytes of JSON."""


class Channel:
    """Frames of a socket, one after the other. `where` names the other side in errors."""

    def __init__(self, sock: socket.socket, where: str, stall: float = STALL_SECONDS) -> None:
        self.sock, self.where, self.stall = sock, where, stall
        self.greeting = True
        self._buffer = bytearray(1 << 16)
        self._in = memoryview(bytearray(_AHEAD))
        self._first = self._last = 0
        """Where in it those bytes lie that have come and were not yet asked for."""
        self.sending = False
        self._timeout: float | None = -1.0

    def _set_timeout(self, seconds: float | None) -> None:
        if seconds != self._timeout:
            self.sock.settimeout(seconds)
            self._timeout = seconds

    def send(self, kind: Kind, call: int, head: object, bodies: Sequence[Buffer] = ()) -> None:
        """Sends a frame. RPCError where the other side has gone, or takes nothing for too long."""
        self._write(wire.packed(kind, call, head, bodies))

    def _write(self, parts: Sequence[Buffer]) -> None:
        self.sending = True
        try:
            self._set_timeout(self.stall)
            for part in self._joined(parts):
                self.sock.sendall(part)
        except TimeoutError:
            self.close()
            raise lost(self.where, f"it took nothing for {self.stall:g} seconds") from None
        except OSError as error:
            self.close()
            raise lost(self.where, str(error)) from None
        self.sending = False

    @staticmethod
    def _joined(parts: Sequence[Buffer]) -> Sequence[Buffer]:
        """Small parts together: each piece that is sent costs more than copying it does."""
        return [b"".join(parts)] if sum(map(len, parts)) < 1 << 16 else parts

    def unread(self) -> bytes | None:
        """What has come, whatever it is: first what was read ahead. None where there is nothing now, nothing at the end. Never
        waits."""
        if self._first < self._last:
            data = bytes(self._in[self._first : self._last])
            self._first = self._last = 0
            return data
        try:
            self._set_timeout(0)
            return self.sock.recv(_PIECE)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError:
            return b""

    @property
    def holds_more(self) -> bool:
        """Whether there are bytes of which the socket does not tell who waits for it: TLS has read them."""
        return self._first < self._last or bool(getattr(self.sock, "pending", lambda: 0)())

    def pass_on(self, data: Buffer) -> None:
        """Sends bytes of somebody else. RPCError as in `send`."""
        self._write([data])

    def begin(self, timeout: float) -> None:
        """Sends the preamble, and holds that of the other side against ours."""
        self._write([wire.preamble()])
        data = bytearray(wire.PREAMBLE.size)
        end = time.monotonic() + timeout
        self._exactly(memoryview(data), end)
        magic, version = wire.PREAMBLE.unpack(data)
        if magic != wire.MAGIC:
            raise RPCError(f"{self.where} is not a server of this protocol", code="rpc-stranger")
        if version != wire.VERSION:
            with suppress(RPCError):
                self.refuse(_other_version(version))
            raise RPCError(f"{self.where}: {_other_version(version)}", code="rpc-version")

    def refuse(self, why: str, code: str = "rpc-refused") -> None:
        """Says why nothing comes of the greeting, in a message that is as small as greetings are: what it repeats of the other
        side's words may be long."""
        self.send(Kind.REFUSED, 0, {"message": why if len(why) <= MOST_WHY else why[:MOST_WHY] + "...", "code": code})

    def begins(self, seconds: float) -> bool:
        """Whether a message begins within some seconds. RPCError when the other side has gone."""
        if self._last > self._first:
            return True
        self._first = self._last = 0
        try:
            self._last = self._received(self._in, max(seconds, 0.001))
        except TimeoutError:
            return False
        return True

    def receive(self, wait: float | None = None) -> Frame:
        """The next frame. RPCError when it does not begin within `wait` seconds, stalls, or is damaged."""
        end = None if wait is None else time.monotonic() + wait
        size = wire.HEADER.size
        begun = self._last > self._first
        while self._last - self._first < size:
            self._more(end, begun)
            begun = True
        kind, call, head, body = wire.header(self._in[self._first : self._first + size], self.greeting)
        self._first += size
        if not self.greeting:  # a greeting is bounded as a whole, later messages at each step
            end = None
        if len(self._buffer) < head + body:
            self._buffer = bytearray(head + body)
        room = memoryview(self._buffer)[: head + body]
        self._exactly(room, end)
        text = bytes(room[:head]) if self.greeting else b""
        return Frame(kind, call, wire.parsed(room[:head]), room[head:], text)

    def _exactly(self, view: memoryview, end: float | None) -> None:
        """Fills the view: with what is here already, then with what comes."""
        while view:
            here = min(len(view), self._last - self._first)
            if here:
                view[:here] = self._in[self._first : self._first + here]
                self._first += here
                view = view[here:]
            elif len(view) < _AHEAD:
                self._more(end, True)
            else:
                view = view[self._some(view, end, True) :]

    def _more(self, end: float | None, begun: bool) -> None:
        """Reads what there is, and waits where there is nothing."""
        if self._first == self._last:
            self._first = self._last = 0
        elif self._last == _AHEAD:
            self._keep_rest()
        self._last += self._some(self._in[self._last :], end, begun)

    def _keep_rest(self) -> None:
        rest = bytes(self._in[self._first : self._last])
        self._in[: len(rest)] = rest
        self._first, self._last = 0, len(rest)

    def _some(self, view: memoryview, end: float | None, begun: bool) -> int:
        """Reads some bytes, until the clock shows `end`; of a message that has begun each step is bounded, too."""
        left = None if end is None else end - time.monotonic()
        limit = left if not begun else self.stall if left is None else min(left, self.stall)
        if limit is not None and limit <= 0:
            raise self._silent()
        try:
            return self._received(view, limit)
        except TimeoutError:
            raise self._silent() from None

    def _received(self, view: memoryview, seconds: float | None) -> int:
        """How many bytes came, at least one. TimeoutError where none does, RPCError when the other side has gone."""
        try:
            self._set_timeout(seconds)
            got = self.sock.recv_into(view)
        except TimeoutError:
            raise
        except OSError as error:
            self.close()
            raise lost(self.where, str(error)) from None
        if not got:
            self.close()
            raise lost(self.where, "the other side closed it")
        return got

    def _silent(self) -> RPCError:
        self.close()
        return RPCError(f"{self.where} does not answer in time", code="rpc-silent")

    def peeked(self) -> bool:
        """Whether the other side has said that the call shall end, or has gone, while nobody reads. Never waits."""
        if self._first == self._last:
            self._first = self._last = 0
        if self._last == _AHEAD:
            self._keep_rest()
        try:
            self._set_timeout(0)
            while self._last < _AHEAD:
                got = self.sock.recv_into(self._in[self._last :])
                if not got:
                    return True
                self._last += got
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            return True
        return self.is_ahead and self._in[self._first] == Kind.CANCEL

    @property
    def is_ahead(self) -> bool:
        """Whether the beginning of a message is here, which nobody has read."""
        return self._last - self._first >= wire.HEADER.size

    @property
    def is_closed(self) -> bool:
        return self.sock.fileno() < 0

    def close(self) -> None:
        """Ends the connection, also for who waits on it in another thread."""
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self.sock.close()


def _other_version(version: int) -> str:
    return f"it speaks version {version} of the protocol, here it is {wire.VERSION} (compassc {SOFTWARE})"


# -- greetings


def greet(
    channel: Channel,
    role: str,
    token: Token,
    about: Mapping[str, object],
    wait: float | None,
    waiting: Callable[[], object] | None = None,
) -> dict[str, Json]:
    """The greeting of who connects; gives what the other side says of itself. `wait`: seconds that a busy server may let him
    wait; None: any. `waiting` is called each time that the server says so."""
    import secrets

    channel.begin(GREETING_SECONDS)
    hello = {"role": role, "software": SOFTWARE, "nonce": secrets.token_hex(NONCE), **about}
    channel.send(Kind.HELLO, 0, hello)
    said, asked = wire.text_of(hello), _expected(channel, Kind.CHALLENGE, GREETING_SECONDS).text
    channel.send(Kind.PROOF, 0, {"proof": token.proof("client", said, asked)})
    welcome = _expected(channel, Kind.WELCOME, GREETING_SECONDS, wait, waiting).fields
    if not _same(token.proof("server", said, asked), welcome.get("proof")):
        channel.close()
        raise RPCError(f"{channel.where} does not know the token: it is somebody else's", code="rpc-refused")
    channel.greeting = False
    return welcome


def _same(right: str, given: object) -> bool:
    import hmac

    return isinstance(given, str) and given.isascii() and hmac.compare_digest(right, given)


def _expected(
    channel: Channel,
    kind: Kind,
    seconds: float,
    wait: float | None = 0.0,
    waiting: Callable[[], object] | None = None,
) -> Frame:
    frame = channel.receive(seconds)
    end = float("inf") if wait is None else time.monotonic() + wait
    while frame.kind == Kind.WAIT:
        if waiting is not None:
            waiting()
        try:
            frame = channel.receive(max(min(end - time.monotonic(), channel.stall), 0.001))
        except RPCError as error:
            if error.code != "rpc-silent" or wait is None or time.monotonic() < end:
                raise
            raise RPCError(f"{channel.where} was busy for {wait:g} seconds", code="rpc-busy") from None
    if frame.kind == Kind.REFUSED and isinstance(frame.head, dict):
        channel.close()
        message, code = str(frame.head.get("message", ""))[:1000], str(frame.head.get("code", ""))[:40]
        raise RPCError(f"{channel.where} refuses: {message}", code=code or "rpc-refused")
    if frame.kind != kind or not isinstance(frame.head, dict):
        channel.close()
        raise damaged("a greeting that is none")
    return frame


class Greeted:
    """The greeting of who is connected to, step by step: it is the same for sockets and for loops of events.

    `hello` is what the other side said; `token` the one that it knows.
    """

    def __init__(self, tokens: Sequence[Token], about: Mapping[str, object]) -> None:
        import secrets

        self._tokens = tokens
        self._challenge = {"software": SOFTWARE, "nonce": secrets.token_hex(NONCE), **about}
        self.hello: dict[str, Json] = {}
        self._said = b""
        self._asked = False
        self.token: Token | None = None

    def answer(self, frame: Frame) -> dict[str, object] | None:
        """The head of the CHALLENGE that answers a HELLO; None after the PROOF. RPCError (`rpc-refused`) with what to say
        to who does not prove himself."""
        if not isinstance(frame.head, dict):
            raise damaged("a greeting that is none")
        if not self._asked and frame.kind == Kind.HELLO:
            self.hello, self._said, self._asked = frame.head, frame.text, True
            return self._challenge
        if self._asked and self.token is None and frame.kind == Kind.PROOF:
            self.token = who_proved(self._tokens, self._said, wire.text_of(self._challenge), frame.head.get("proof"))
            if self.token is None:
                raise RPCError("the token is wrong", code="rpc-refused")
            return None
        raise damaged("a greeting that is none")

    def welcome(self, **about: object) -> dict[str, object]:
        """The head of the WELCOME."""
        assert self.token is not None
        proof = self.token.proof("server", self._said, wire.text_of(self._challenge))
        return {"proof": proof, **about}


# -- calls


class Peer:
    """Calls over a channel, in both directions. Subclasses say what names mean, and what stands for objects of either side."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._number = 0
        self._depth = 0
        self._objects: dict[int, object] = {}
        self._next_object = 1
        self.released: deque[int] = deque()
        """Objects of the other side that nobody has here any more; told with the next call."""

    # objects

    def keep(self, value: object) -> int:
        """The number by which the other side calls an object of this one."""
        number = self._next_object
        self._next_object += 1
        self._objects[number] = value
        return number

    def own(self, number: object) -> object:
        """The object of a number."""
        if type(number) is not int or number not in self._objects:
            raise damaged("an object that does not exist, or was given back")
        return self._objects[number]

    def forget(self, numbers: object) -> None:
        """Drops objects that the other side has no use for."""
        for number in numbers if isinstance(numbers, list) else ():
            self._objects.pop(number, None) if type(number) is int else None

    def describe(self, value: object) -> dict[str, Json]:
        """An object of one of the sides as JSON; TypeError where it cannot be passed."""
        raise NotImplementedError

    def object_of(self, kind: str, given: dict[str, Json]) -> object:
        """What a description stands for."""
        raise NotImplementedError

    def function(self, name: object) -> Callable[..., object]:
        """The function that a call of the other side names."""
        raise NotImplementedError

    # calls

    def call(self, function: object, args: Sequence[object], seconds: float | None, grace: float | None) -> object:
        """The result of a function of the other side. `seconds`: after which it is stopped there; `grace`: so much later the
        connection is given up. RPCError with what went wrong."""
        self._number += 1
        number = self._number
        self._send(Kind.CALL, number, {"f": function, "s": seconds}, args)
        end = None if seconds is None or grace is None else time.monotonic() + seconds + grace
        while True:
            frame = self.channel.receive(None if end is None else max(end - time.monotonic(), 0.001))
            if frame.kind == Kind.CALL:
                self.answer(frame)
            elif frame.kind == Kind.ERROR and frame.call in (number, 0):
                raise received(frame.head)
            elif frame.kind == Kind.RESULT and frame.call == number:
                return self._value(frame)
            elif frame.kind == Kind.CANCEL:
                self.cancelled()
            else:
                self.channel.close()
                raise damaged("an answer to something else")

    def cancelled(self) -> None:
        """The other side wants the call to end that it waits for."""

    def _send(self, kind: Kind, number: int, head: dict[str, object], value: object) -> None:
        encoder = Encoder(self.describe)
        head["v"] = encoder.value(value)
        if encoder.bodies:
            head["bodies"] = encoder.sizes
        if self.released:
            gone = []
            while self.released:
                gone.append(self.released.popleft())
            head["gone"] = gone
        self.channel.send(kind, number, head, encoder.bodies)

    def _value(self, frame: Frame) -> object:
        if not isinstance(frame.head, dict):
            raise damaged("a message without a head")
        if "gone" in frame.head:
            self.forget(frame.head["gone"])
        return Decoder(frame.head.get("bodies"), frame.body, self.object_of).value(frame.head.get("v"))

    def answer(self, frame: Frame) -> None:
        """Runs what the other side calls, and sends the result or what went wrong."""
        self._depth += 1
        try:
            RPC_DEPTH.check(self._depth, "calls that call back")
            args = self._value(frame)
            if not isinstance(args, list):
                raise damaged("a call without arguments")
            result = self.run(self.function(frame.fields.get("f")), args, frame.fields.get("s"))
            self._send(Kind.RESULT, frame.call, {}, result)
        except RPCError as error:
            if error.code in ("rpc-lost", "rpc-silent"):
                raise
            self._complain(frame.call, error)
        except (Exception, RecursionError) as error:  # noqa: BLE001 (it is the other side's to look at)
            self._complain(frame.call, error)
        finally:
            self._depth -= 1

    def run(self, function: Callable[..., object], args: list[object], seconds: Json) -> object:
        """The result of a function, which subclasses bound."""
        return function(*args)

    def _complain(self, number: int, error: BaseException) -> None:
        trace = "" if isinstance(error, CompassError) else _trace(error)
        self.channel.send(Kind.ERROR, number, described(error, trace))


def _trace(error: BaseException) -> str:
    """A traceback that tells functions and lines, and no paths of this machine's folders."""
    frames = traceback.extract_tb(error.__traceback__)[-20:]
    return "\n".join(f"{os.path.basename(f.filename)}:{f.lineno} in {f.name}" for f in frames)

"""What a client that is known sends to its session: calls as they are made, damaged in bytes and in words.

The session runs in this process, in a folder of its own, until the connection ends. An input is read when each of its messages
was answered, with a result or an error, and refused when one of them ended the session.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Container
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from compass_runtime.rpc import testing, wire
from compass_runtime.rpc.access import Token
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.errors import RPCError
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.service import Service
from compass_runtime.rpc.wire import Encoder, Inline, Kind, Raw
from tests.hostile.harness import Ranges, Target, bytes_mutant, without_numbers

_QUOTA = Quota(memory=1 << 20, disk=1 << 16, call_seconds=0.5)
_OFFERED = frozenset(testing.PREFIX + name for name in testing.FUNCTIONS if name != "call")


class _Theirs(dict[str, Any]):
    """An object of the server, or a function of the client."""


def _device() -> _Theirs:
    return _Theirs({"$": "device", "type": 1, "index": 0})


def _yours(number: int) -> _Theirs:
    return _Theirs({"$": "yours", "id": number})


_CONVERSATIONS: list[list[tuple[Any, list[Any]]]] = [
    [("server.info", []), ("server.nothing", []), ("server.function", ["rpc.test.addone"]), (1, [10])],
    [
        ("file.write", ["a/b", 0, Raw(b"abc")]),
        ("file.read", ["a/b", 1, 2]),
        ("file.names", ["a"]),
        ("file.remove", ["a/b"]),
    ],
    [("file.write", ["x", 0, b"abc"]), ("file.write", ["x", 3, b"d"]), ("file.files", [""]), ("file.path", ["x"])],
    [
        ("tensor.empty", [[2, 3], "int16", 1, 0]),
        ("tensor.write", [_yours(1), 2, Raw(b"1234")]),
        ("tensor.read", [_yours(1), 0, 8]),
    ],
    [
        ("tensor.empty", [[4], "float32", 1, 0]),
        ("tensor.view", [_yours(1), [2], "int64", 0]),
        ("tensor.copy", [_yours(1), _yours(1)]),
    ],
    [("rpc.test.echo", [[None, True, 1.5, float("inf"), {"k": "v"}, np.dtype("int8"), Inline(np.ones((2, 2)))]])],
    [("rpc.test.echo", [_device()]), ("device.attribute", [_device(), "exist"]), ("device.sync", [_device()])],
    [("rpc.test.strcat", ["a", 1]), ("rpc.test.except", ["x"]), ("rpc.test.add_to_lhs", [1]), (1, [2])],
    [
        ("rpc.test.remote_return_nd", ["get_elem"]),
        (1, [3]),
        ("module.load", ["x"]),
        ("program.run", [_yours(1), [], [], {}]),
    ],
]


def _message(number: int, function: Any, args: list[Any]) -> bytes:
    def other(value: Any) -> dict[str, Any]:
        return dict(value)

    encoder = Encoder(other)

    def value(given: Any) -> Any:
        if isinstance(given, list):
            return [value(item) for item in given]
        return dict(given) if isinstance(given, _Theirs) else encoder.value(given)

    head = {"f": function, "s": 1, "v": value(args), "bodies": encoder.sizes, "gone": [99]}
    return b"".join(bytes(part) for part in wire.packed(Kind.CALL, number, head, encoder.bodies))


@cache
def _corpus() -> tuple[bytes, ...]:
    return tuple(
        b"".join(_message(n, function, args) for n, (function, args) in enumerate(calls, 1)) for calls in _CONVERSATIONS
    )


def conversations(programs: list[bytes]) -> list[bytes]:
    """The conversations, and some with a program each, which is uploaded, loaded and run."""
    found = list(_corpus())
    for content in programs:
        calls: list[tuple[Any, list[Any]]] = [
            ("file.write", ["p", 0, Raw(content)]),
            ("module.load", ["p"]),
            ("module.function", [_yours(1), "__tvm_main__", True]),
            ("tensor.empty", [[16], "int32", 1, 0]),
            ("program.call", [_yours(1), [_yours(3), _yours(3), 4], [0]]),
            ("program.run", [_yours(1), [_yours(3)], [None], {"shapes": {"out": [4]}, "values": {"n": 4}}]),
            ("module.time", [_yours(1), "__tvm_main__", _device(), {"number": 1}, _yours(3), _yours(3), 4]),
            (2, [_yours(3), _yours(3), Inline(np.ones(4, np.int32))]),
        ]
        found.append(b"".join(_message(n, function, args) for n, (function, args) in enumerate(calls, 1)))
    return found


def _frames(data: bytes) -> Ranges:
    """Where the headers and the heads of an input lie."""
    found, at, size = [], 0, wire.HEADER.size
    while at + size <= len(data):
        _, _, head, body = wire.HEADER.unpack_from(data, at)
        found += [(at, size), (at + size, min(head, len(data) - at - size))]
        at += size + head + body
    return found


_WORDS = [
    "null",
    "-1",
    "1e999",
    "[]",
    "{}",
    '"x"',
    "true",
    "4611686018427387904",
    '{"$":"yours","id":1}',
    '{"$":"raw","body":0}',
    '"../x"',
]


def _mutant(pool: list[bytes], source: random.Random) -> bytes:
    """A conversation with bytes changed, or with a word of a head put in the place of another, the frame being whole."""
    if source.random() < 0.4:
        return bytes_mutant(pool, source, _frames)
    data, out, at, size = source.choice(pool), b"", 0, wire.HEADER.size
    while at + size <= len(data):
        kind, call, head, body = wire.HEADER.unpack_from(data, at)
        text, rest = data[at + size :][:head], data[at + size + head :][:body]
        at += size + head + body
        with suppress(ValueError):
            made = json.loads(text)
            if source.random() < 0.5:
                text = json.dumps(_other(made, source)).encode()
        out += wire.HEADER.pack(kind, call, len(text), len(rest)) + text + rest
    return out


def _other(value: Any, source: random.Random) -> Any:
    """A value with one of its parts another one."""
    if isinstance(value, dict) and value and source.random() < 0.9:
        key = source.choice(sorted(value))
        return {**value, key: _other(value[key], source)}
    if isinstance(value, list) and value and source.random() < 0.8:
        at = source.randrange(len(value))
        return [*value[:at], _other(value[at], source), *value[at + 1 :]]
    return json.loads(source.choice(_WORDS))


def _answer(data: bytes, known: Container[str], thorough: bool) -> str:
    """What the session answers to the messages of an input."""
    ours, theirs = socket.socketpair()
    folder = Path(tempfile.mkdtemp(prefix="compass-hostile-"))
    replies = bytearray()

    def read() -> None:
        with suppress(OSError):
            while part := ours.recv(1 << 16):
                replies.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    before = signal.getsignal(signal.SIGALRM)
    timer = signal.getitimer(signal.ITIMER_REAL)
    writer = threading.Thread(target=_send, args=(ours, data))
    writer.start()
    channel = Channel(theirs, "client", 5.0)
    channel.greeting = False
    end = ""
    try:
        Service(channel, folder, _QUOTA, Token("x" * 32), 0, _OFFERED).serve()
    except RPCError as error:
        end = "" if error.code == "rpc-lost" else f"refused: {error.code} {without_numbers(error.message)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)
        channel.close()
        writer.join()
        reader.join()
        ours.close()
        shutil.rmtree(folder)
    return end or "read: " + " ".join(_kinds(bytes(replies)))


def _send(ours: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)


def _kinds(data: bytes) -> list[str]:
    """The replies in words. AssertionError where they are no messages."""
    found, at, size = [], 0, wire.HEADER.size
    while at < len(data):
        kind, _, head, body = wire.header(data[at : at + size], greeting=False)
        about = wire.parsed(data[at + size :][:head])
        assert len(data) >= at + size + head + body and kind in (Kind.RESULT, Kind.ERROR), kind
        found.append("result" if kind == Kind.RESULT else f"{about['type']} {about.get('code', '')}".strip())
        at += size + head + body
    return found


MESSAGES = Target("messages", lambda: list(_corpus()), _answer, _mutant)

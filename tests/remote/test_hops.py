"""Sessions by way of a server: what is passed on, and what becomes of those that wait."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from remote_peers import PATIENCE, PORTS, answered, asking

from compass_runtime import rpc
from compass_runtime.rpc import access, hops
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind


def one_that_may_connect(folder: Path) -> Path:
    path = folder / "tokens"
    path.write_text("c" * 40 + " connect\n")
    path.chmod(0o600)
    return path


def test_what_was_read_ahead_is_passed_on() -> None:
    (a, client), (b, server) = socket.socketpair(), socket.socketpair()
    one, other = Channel(a, "client"), Channel(b, "server")
    client.sendall(b"early")
    server.sendall(b"words")
    assert one.begins(PATIENCE) and other.begins(PATIENCE)  # which reads them
    thread = threading.Thread(target=hops.relay, args=(one, other))
    thread.start()
    for sock in (client, server):
        sock.settimeout(PATIENCE)
    assert (server.recv(5), client.recv(5)) == (b"early", b"words")
    client.sendall(b"later")
    assert server.recv(5) == b"later"
    client.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    for sock in (a, b, server):
        sock.close()


def test_a_call_that_comes_with_the_greeting_is_answered(tmp_path: Path) -> None:
    """The client did not wait for the server's welcome, which he may not need."""
    file = one_that_may_connect(tmp_path)
    options = {**PORTS, "silent": True, "token_file": file}
    with rpc.Server(**options) as far, rpc.Server(**options) as near:
        hello = {"role": "client", "key": "", "constructor": ["rpc.Connect", far.host, far.port, ""]}
        channel = asking(near, hello, token=access.tokens_of(file)[0])
        channel.greeting = False
        channel.send(Kind.CALL, 7, {"f": "rpc.test.addone", "v": [41]})
        channel.greeting = True
        assert answered(channel).kind == Kind.WELCOME
        channel.greeting = False
        frame = channel.receive(PATIENCE)
        assert (frame.kind, frame.call, frame.head["v"]) == (Kind.RESULT, 7, 42)
        channel.close()


def test_nobody_waits_for_a_client_that_has_gone(tmp_path: Path) -> None:
    """The far server is busy, the near one has room for one: it is free again when he goes."""
    file = one_that_may_connect(tmp_path)
    options = {**PORTS, "silent": True, "token_file": file, "quota": Quota(sessions=1)}
    with (
        rpc.Server(**options) as far,
        rpc.Server(**options) as near,
        rpc.connect(far.host, far.port, token_file=file),
    ):
        hello = {"role": "client", "key": "", "constructor": ["rpc.Connect", far.host, far.port, ""]}
        channel = asking(near, hello, token=access.tokens_of(file)[0])
        assert channel.receive(PATIENCE).kind == Kind.WAIT  # as the far server says
        channel.close()
        with rpc.connect(near.host, near.port, token_file=file, wait=PATIENCE) as session:
            assert session.get_function("rpc.test.addone")(1) == 2

"""Clients and servers that die, and many clients at once."""

from __future__ import annotations

import os
import resource
import signal
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from remote_peers import PATIENCE, PORTS, eventually, known, processes, raw, slow, works

from compass_runtime import rpc
from compass_runtime.rpc import wire
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind

Start = Callable[[Quota], rpc.Server]


def test_a_client_that_dies_leaves_nothing(own: rpc.Server) -> None:
    session = rpc.connect(own.host, own.port)
    session.upload(b"x", "f")
    folder = Path(session.do("file.path", "f")).parent
    assert len(processes(own)) == 1
    session.channel.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    session.channel.sock.close()  # a reset, as when its process is killed
    eventually(lambda: not processes(own) and not folder.exists())


def test_a_client_that_dies_ends_the_call_that_runs_for_it(own: rpc.Server) -> None:
    channel = known(own)
    channel.send(Kind.CALL, 1, {"f": "server.wait", "v": [PATIENCE]})
    eventually(lambda: processes(own))
    channel.close()
    eventually(lambda: not processes(own))


def test_a_session_whose_process_dies_tells_its_client_and_no_other(own: rpc.Server) -> None:
    with rpc.connect(own.host, own.port) as first:
        (victim,) = processes(own)
        with rpc.connect(own.host, own.port) as second:
            killer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
            killer.start()
            with pytest.raises(rpc.RPCError, match="has ended") as caught:
                slow(first, PATIENCE)
            assert caught.value.code == "rpc-lost"
            killer.join()
            assert second.get_function("rpc.test.addone")(1) == 2
        works(own)


def test_a_server_that_dies_takes_its_sessions_along(own: rpc.Server) -> None:
    with rpc.connect(own.host, own.port) as session:
        killer = threading.Timer(0.3, own.proc.kill)
        killer.start()
        with pytest.raises(rpc.RPCError, match="has ended"):
            slow(session, PATIENCE)
        killer.join()


def test_folders_of_a_killed_server_go_with_the_next_one(
    state_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    killed = rpc.Server(**PORTS, silent=True)
    rpc.connect(killed.host, killed.port).upload(b"x", "f")
    killed.proc.kill()
    killed.terminate()
    assert len(list(tmp_path.iterdir())) == 1
    with rpc.Server(**PORTS, silent=True) as one, rpc.Server(**PORTS, silent=True) as other:
        assert len(list(tmp_path.iterdir())) == 2
        works(one)
        works(other)
    assert not list(tmp_path.iterdir())


def test_a_stopped_server_does_not_hold_its_client_for_ever(own: rpc.Server) -> None:
    with rpc.connect(own.host, own.port) as session:
        (stopped,) = processes(own)
        os.kill(stopped, signal.SIGSTOP)
        with pytest.raises(rpc.RPCError, match="does not answer in time") as caught:
            session.call("server.nothing", [], 0.2, 0.2)
        assert caught.value.code == "rpc-silent"
        os.kill(stopped, signal.SIGCONT)


# -- many


def test_more_clients_than_sessions_wait_for_their_turn(start: Start) -> None:
    with start(Quota()) as own:
        first = rpc.connect(own.host, own.port)
        with pytest.raises(rpc.RPCError, match=r"was busy for 0\.3 seconds") as caught:
            rpc.connect(own.host, own.port, wait=0.3)
        assert caught.value.code == "rpc-busy"
        later: list[int] = []

        def wait() -> None:
            with rpc.connect(own.host, own.port) as second:
                later.append(second.get_function("rpc.test.addone")(1))

        thread = threading.Thread(target=wait)
        thread.start()
        first.get_function("rpc.test.addone")(1)
        assert not later
        first.close()
        thread.join()
        assert later == [2]


def test_two_hundred_sessions_at_once(server: rpc.Server) -> None:
    with ExitStack() as stack:
        sessions = [stack.enter_context(rpc.connect(server.host, server.port)) for _ in range(200)]
        arrays = [session.array(np.full(8, number)) for number, session in enumerate(sessions)]
        assert [int(array.numpy()[7]) for array in arrays] == list(range(200))
    works(server)


def test_many_sessions_where_a_process_may_open_few_files(state_folder: Path) -> None:
    """The server takes as many as the system gives when it asks."""

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    made = rpc.Server(**PORTS, silent=True, quota=Quota(sessions=50), server_init_callback=few)
    with made as own, ExitStack() as stack:
        sessions = [stack.enter_context(rpc.connect(own.host, own.port)) for _ in range(30)]
        assert [s.get_function("rpc.test.addone")(1) for s in sessions] == [2] * 30


def test_a_flood_of_strangers(start: Start) -> None:
    """More than may be unknown at once; a client still comes through when they have been sent away."""
    quota, failures = Quota(strangers=8, sessions=2, greeting_seconds=0.3), []
    with start(quota) as own, ExitStack() as stack:
        for number in range(60):
            sock = stack.enter_context(raw(own))
            sock.sendall(wire.preamble() if number % 2 else b"x" * 100)
        assert len(processes(own)) <= 8
        for _ in range(20):
            try:
                works(own)
                return
            except rpc.RPCError as error:
                failures.append(error)
        pytest.fail(f"nobody comes through: {failures}")

"""compass-rpcd at a tracker: it registers there, serves whom the tracker sends, and nobody else."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from remote_peers import PATIENCE, PORTS, BoardServer, board_folder, ended, eventually

from compass_runtime import rpc
from compass_runtime.rpc import access, wire
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind


@pytest.fixture
def tracker(state_folder: Path) -> Iterator[rpc.Tracker]:
    with rpc.Tracker(**PORTS, silent=True) as made:
        yield made


@pytest.fixture
def asked(tracker: rpc.Tracker) -> Iterator[rpc.TrackerSession]:
    with rpc.connect_tracker(tracker.host, tracker.port) as made:
        yield made


def board(port: int, *options: str, quota: Quota | None = None) -> BoardServer:
    return BoardServer(quota, "--tracker", f"127.0.0.1:{port}", "--key", 'a"b:c', *options)


def free(asked: rpc.TrackerSession) -> int:
    found: int = asked.summary()["queue_info"].get('a"b:c', {"free": 0})["free"]
    return found


def test_it_is_given_taken_back_and_forgotten(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    with board(tracker.port, quota=Quota(sessions=2)) as own:
        eventually(lambda: free(asked) == 2)
        assert asked.summary()["server_info"] == [{"key": 'server:a"b:c', "addr": ["127.0.0.1", own.port]}]
        with asked.request('a"b:c') as session:
            assert session.get_function("rpc.test.addone")(1) == 2
            assert free(asked) == 1
            for key in ('a"b:c', 'a"b:c:1', "x" * 3000):  # only who was sent by the tracker
                with pytest.raises(rpc.RPCError, match="cannot find server that matches key"):
                    rpc.connect(own.host, own.port, key=key)
        eventually(lambda: free(asked) == 2)
    eventually(lambda: free(asked) == 0)


def test_a_client_that_does_not_come_is_not_waited_for(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    with board(tracker.port, quota=Quota(sessions=1, greeting_seconds=0.1)):
        eventually(lambda: free(asked) == 1)
        asked._do("tracker.request", 'a"b:c', 1)
        assert free(asked) == 0
        eventually(lambda: free(asked) == 1)


def test_an_address_that_others_reach_it_by(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    with board(tracker.port, "--custom-addr", "localhost:9"):
        eventually(lambda: free(asked) == 1)
        assert asked.summary()["server_info"][0]["addr"] == ["localhost", 9]


def test_it_comes_again_to_a_tracker_that_starts_anew(state_folder: Path) -> None:
    # from ports that no other test listens on, and no connection is given: nobody takes it between the two
    with rpc.Tracker(port=21000, port_end=21999, silent=True) as first:
        port = first.port
        own = board(port)
        with rpc.connect_tracker(first.host, port) as asked:
            eventually(lambda: free(asked) == 1)
    with rpc.Tracker(port=port, silent=True) as second, rpc.connect_tracker(second.host, port) as asked:
        eventually(lambda: free(asked) == 1)
        own.terminate()


def test_what_is_no_tracker_gets_no_key(state_folder: Path) -> None:
    """It says what a tracker says, and does not know the token; the server goes on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        said: list[bytes] = []

        def pretend() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.sendall(wire.preamble() + b"".join(wire.packed(Kind.CHALLENGE, 0, {"nonce": "1"})))
                sock.sendall(b"".join(wire.packed(Kind.WELCOME, 0, {"proof": "0" * 64, "is": "tracker"})))
                sock.settimeout(PATIENCE)
                while data := sock.recv(1 << 16):
                    said.append(data)

        thread = threading.Thread(target=pretend)
        thread.start()
        with board(listener.getsockname()[1]) as own:
            thread.join(PATIENCE)
            assert b'"proof"' in b"".join(said) and b"tracker.put" not in b"".join(said)
            with socket.create_connection((own.host, own.port)) as sock:
                sock.sendall(b"x" * 8)
                assert ended(sock)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--tracker", "127.0.0.1:9190"), "need key to present type of resource"),
        (("--tracker", "127.0.0.1", "--key", "x"), "of a tracker with :PORT"),
        (("--tracker", "192.0.2.1:9190", "--key", "x"), "no address of loopback"),
        (("--tracker", "127.0.0.1:70000", "--key", "x"), "no address of loopback"),
        (("--key", "x" * 201), "at most 200 bytes"),
    ],
    ids=range(5),
)
def test_what_its_options_refuse(state_folder: Path, words: tuple[str, ...], why: str) -> None:
    access.tokens_of(make=True)
    command = [board_folder() / "compass-rpcd", "--token-file", access.default_file(), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and why in done.stderr

"""Servers that connect out to a proxy, and clients that find them there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from remote_peers import PATIENCE, PORTS, ended, eventually, raw

from compass_runtime import rpc
from compass_runtime.rpc import wire
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind


@pytest.fixture(scope="module")
def proxy(state_folder: Path) -> Iterator[rpc.Proxy]:
    with rpc.Proxy(**PORTS, silent=True) as made:
        yield made


def behind(proxy: rpc.Proxy, **options: object) -> rpc.Server:
    """A server that is reached by a proxy alone."""
    return rpc.Server(proxy.host, proxy.port, is_proxy=True, silent=True, **options)  # type: ignore[arg-type]


def test_a_server_is_reached_by_its_key(proxy: rpc.Proxy) -> None:
    with behind(proxy, key="one"), behind(proxy, key="other", quota=Quota(sessions=2)):
        with (
            rpc.connect(proxy.host, proxy.port, key="one") as one,
            rpc.connect(proxy.host, proxy.port, key="other") as two,
        ):
            assert one.get_function("rpc.test.addone")(10) == 11
            array = np.random.default_rng(0).integers(0, 255, 10 << 20, np.uint8)
            assert (two.array(array).numpy() == array).all()
            with rpc.connect(proxy.host, proxy.port, key="other") as third:
                assert third.get_function("rpc.test.call")(lambda: 3) == 3
        with rpc.connect(proxy.host, proxy.port, key="one") as again:
            assert again.listdir() == ""


def test_a_client_waits_for_a_server_of_his_key(proxy: rpc.Proxy) -> None:
    found: list[int] = []

    def ask() -> None:
        with rpc.connect(proxy.host, proxy.port, key="late") as session:
            found.append(session.get_function("rpc.test.addone")(1))

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(1.5)
    assert not found
    with behind(proxy, key="late"):
        thread.join()
    assert found == [2]


def test_who_comes_for_nothing_is_sent_away(state_folder: Path, tmp_path: Path) -> None:
    with rpc.Proxy(**PORTS, silent=True, timeout_client=0.5) as own:
        with pytest.raises(rpc.RPCError, match="cannot find server that matches key=client:none"):
            rpc.connect(own.host, own.port, key="none")
        long = "\u00e9" * 1900  # escaped it is too long for an answer
        text = f'{{"role":"client","key":"{long}"}}'.encode()
        with raw(own) as sock:
            channel = Channel(sock, "proxy")
            channel.begin(PATIENCE)
            sock.sendall(wire.HEADER.pack(Kind.HELLO, 0, len(text), 0) + text)
            while (frame := channel.receive(PATIENCE)).kind == Kind.WAIT:
                pass
            assert frame.kind == Kind.REFUSED and frame.head["code"] == "rpc-key"
        wrong = tmp_path / "wrong"
        wrong.write_text("0" * 64)
        wrong.chmod(0o600)
        with behind(own, key="board"), pytest.raises(rpc.RPCError, match="the token is wrong"):
            rpc.connect(own.host, own.port, key="board", token_file=wrong)  # the server says so, by the proxy
        for data in (b"GET / HTTP/1.0\r\n\r\n", wire.preamble() + b"\xff" * 64):
            with raw(own) as sock:  # type: ignore[arg-type]
                sock.sendall(data)
                assert ended(sock)


def test_what_is_no_proxy_is_named(state_folder: Path, server: rpc.Server) -> None:
    made = behind(server, key="board")  # type: ignore[arg-type]
    eventually(lambda: made.proc.poll() is not None)
    made.terminate()


def test_the_end_of_a_session_is_told_through_it(proxy: rpc.Proxy) -> None:
    short = {"key": "short", "session_timeout": 0.3}
    with behind(proxy, key="short"), rpc.connect(proxy.host, proxy.port, **short) as session:
        time.sleep(1)
        with pytest.raises(rpc.RPCSessionTimeoutError):
            session.get_function("rpc.test.addone")(1)
    with behind(proxy, key="short") as own, rpc.connect(proxy.host, proxy.port, key="short") as session:
        own.proc.kill()
        with pytest.raises(rpc.RPCError, match="has ended"):
            session.call("server.wait", [60], 60, 60)


def test_a_tracker_gives_clients_the_address_of_the_proxy(state_folder: Path) -> None:
    with rpc.Tracker(**PORTS, silent=True) as tracker:
        where = (tracker.host, tracker.port)
        with rpc.Proxy(**PORTS, silent=True, tracker_addr=where) as own, rpc.connect_tracker(*where) as known:
            servers = [behind(own, key="a:b") for _ in range(2)]
            eventually(lambda: known.summary()["queue_info"].get("a:b", {}).get("free") == 2)
            assert {tuple(s["addr"]) for s in known.summary()["server_info"]} == {(own.host, own.port)}
            with known.request("a:b") as session:
                assert session.get_function("rpc.test.addone")(1) == 2
                assert known.summary()["queue_info"]["a:b"]["free"] == 1
            eventually(lambda: known.summary()["queue_info"].get("a:b", {}).get("free") == 2)
            servers.pop().terminate()
            eventually(lambda: known.summary()["queue_info"].get("a:b", {}).get("free") == 1)
            servers.pop().terminate()

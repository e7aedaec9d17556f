"""Servers that connect out to a proxy, and clients that find them there."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from remote_peers import PATIENCE, PORTS, answered, asking, ended, eventually, raw

from compass_runtime import rpc
from compass_runtime.rpc import access, events, wire
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.proxy import MOST_EACH
from compass_runtime.rpc.proxy_link import ProxyLink
from compass_runtime.rpc.server import Offer
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


def test_a_client_waits_for_a_server_of_his_key_or_goes_and_leaves_the_row(proxy: rpc.Proxy) -> None:
    gone = asking(proxy, {"role": "client", "key": "gone"})
    assert gone.receive(PATIENCE).kind == Kind.WAIT
    gone.close()
    found: list[int] = []

    def ask() -> None:
        with rpc.connect(proxy.host, proxy.port, key="late") as session:
            found.append(session.get_function("rpc.test.addone")(1))

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(1.5)  # longer than a second, after which both are looked at
    assert not found
    with behind(proxy, key="late"):
        thread.join()
    assert found == [2]
    with behind(proxy, key="gone"), rpc.connect(proxy.host, proxy.port, key="gone", wait=PATIENCE) as session:
        assert session.listdir() == ""


def test_who_comes_for_nothing_is_sent_away(state_folder: Path, tmp_path: Path) -> None:
    with rpc.Proxy(**PORTS, silent=True, timeout_client=0.2) as own:
        with pytest.raises(rpc.RPCError, match="cannot find server that matches key=client:none"):
            rpc.connect(own.host, own.port, key="none")
        refused = answered(asking(own, {"role": "client", "key": "\u00e9" * 600}))  # escaped too long for an answer
        assert refused.kind == Kind.REFUSED and refused.head["code"] == "rpc-key"
        for data in (b"GET / HTTP/1.0\r\n\r\n", wire.preamble() + b"\xff" * 64):
            with raw(own) as sock:  # type: ignore[arg-type]
                sock.sendall(data)
                assert ended(sock)
        wrong = tmp_path / "wrong"
        wrong.write_text("0" * 64)
        wrong.chmod(0o600)
        with pytest.raises(rpc.RPCError, match="the token is wrong"):  # there is no server: the proxy says so
            rpc.connect(own.host, own.port, key="board", token_file=wrong)


def test_a_server_may_know_fewer_tokens_than_the_proxy(state_folder: Path, tmp_path: Path) -> None:
    """Who is known to the proxy alone gets no further than to the server's greeting."""
    both, one, other = tmp_path / "both", tmp_path / "one", tmp_path / "other"
    for path, text in ((both, f"{'a' * 64}\n{'b' * 64}"), (one, "a" * 64), (other, "b" * 64)):
        path.write_text(text)
        path.chmod(0o600)
    with rpc.Proxy(**PORTS, silent=True, token_file=both) as own, behind(own, key="k", token_file=one):
        with pytest.raises(rpc.RPCError, match="the token is wrong"):
            rpc.connect(own.host, own.port, key="k", token_file=other)
        with rpc.connect(own.host, own.port, key="k", token_file=one) as session:
            assert session.listdir() == ""


def test_strangers_wait_for_nothing_and_hold_no_server(proxy: rpc.Proxy) -> None:
    """More than may wait for a key: some say nothing, some name the key, some prove what they do not know."""
    hello = {"role": "client", "key": "sought"}
    with ExitStack() as stack:
        for number in range(events.MOST_STRANGERS + 40):
            sock = stack.enter_context(raw(proxy))  # type: ignore[arg-type]
            if number % 3:
                sock.sendall(wire.preamble() + b"".join(wire.packed(Kind.HELLO, 0, hello)))
        wrong = asking(proxy, hello, token=access.Token("0" * 64))
        stack.callback(wrong.close)
        assert answered(wrong).kind == Kind.REFUSED
        with behind(proxy, key="sought"), rpc.connect(proxy.host, proxy.port, key="sought") as session:
            assert session.get_function("rpc.test.addone")(1) == 2


def test_who_comes_often_gives_way_in_a_full_row(proxy: rpc.Proxy) -> None:
    hello = {"role": "client", "key": "row"}
    with ExitStack() as stack:
        for_one = []
        for _ in range(MOST_EACH):  # each is told that it waits: the row has the order of this list
            for_one.append(asking(proxy, hello))
            stack.callback(for_one[-1].close)
            assert for_one[-1].receive(PATIENCE).kind == Kind.WAIT
        late = asking(proxy, hello)
        stack.callback(late.close)
        assert answered(late).head["code"] == "rpc-quota"  # the same address: the row is full
        guest = asking(proxy, hello, "127.0.0.2")
        stack.callback(guest.close)
        assert guest.receive(PATIENCE).kind == Kind.WAIT
        assert answered(for_one[-1]).head["code"] == "rpc-quota"
        for_one[0].close()
        with behind(proxy, key="row", quota=Quota(sessions=2)):
            assert answered(for_one[1]).kind == Kind.WELCOME


def test_a_connection_that_ends_at_once_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whom the proxy has brought together with a client that went takes no harm, and does not ask without a pause."""
    ours: list[socket.socket] = []

    def gone(link: ProxyLink) -> Channel:
        near, far = socket.socketpair()
        far.close()
        ours.append(near)
        return Channel(near, "proxy")

    monkeypatch.setattr(ProxyLink, "_connected", gone)
    taken: list[Channel] = []
    link = ProxyLink(Offer(proxied=True, quota=Quota(sessions=2)), taken.append)
    with selectors.DefaultSelector() as selector:
        link.step(10.0, 2, selector)
        assert len(ours) == 1
        link.step(10.01, 2, selector)
        assert len(ours) == 1
        link.step(11.0, 2, selector)
        assert len(ours) == 2
        assert not taken
        assert not selector.get_map()
    assert all(sock.fileno() == -1 for sock in ours)


def test_what_is_no_proxy_is_named(state_folder: Path, server: rpc.Server, capfd: pytest.CaptureFixture[str]) -> None:
    made = rpc.Server(server.host, server.port, is_proxy=True, key="board")
    eventually(lambda: made.proc.poll() is not None)
    made.terminate()
    assert capfd.readouterr().err.count(f"no proxy: {(server.host, server.port)} is not RPC Proxy") == 1


def test_the_end_of_a_session_is_told_through_it(proxy: rpc.Proxy) -> None:
    short = {"key": "short", "session_timeout": 0.3}
    with behind(proxy, key="short"), rpc.connect(proxy.host, proxy.port, **short) as session:
        time.sleep(0.5)
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


def test_trackers_and_proxies_speak_tls(state_folder: Path) -> None:
    """Strangers that do not finish the handshake are counted and sent away as others are."""
    data = Path(__file__).with_name("data")
    tls = {"host": "localhost", "certificate": data / "localhost.pem", "private_key": data / "localhost.pem"}
    ca = data / "authority.pem"
    with rpc.Tracker(**PORTS, **tls, silent=True) as tracker:  # type: ignore[arg-type]
        where = ("localhost", tracker.port)
        with rpc.Proxy(**PORTS, **tls, silent=True, tracker_addr=where, ca=ca) as own, ExitStack() as stack:  # type: ignore[arg-type]
            flood = [stack.enter_context(raw(end)) for end in (own, tracker) for _ in range(events.MOST_STRANGERS + 5)]  # type: ignore[arg-type]
            stack.enter_context(behind(own, key="k", ca=ca))
            known = stack.enter_context(rpc.connect_tracker(*where, ca=ca))
            with known.request("k") as session:
                array = np.arange(1 << 20)
                assert (session.array(array).numpy() == array).all()
            assert all(ended(sock) for sock in flood[:3])
            with pytest.raises(rpc.RPCError):
                rpc.connect(own.host, own.port, key="k")

"""Trackers: who gets which server, and what becomes of those that go; the commands that start all that."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, final

import pytest
from remote_peers import PATIENCE, PORTS, ended, eventually, raw

from compass_core.errors import UsageError
from compass_runtime import rpc
from compass_runtime.rpc import access, events, wire
from compass_runtime.rpc.channel import Channel, greet
from compass_runtime.rpc.options import Wanted
from compass_runtime.rpc.tracker import Tracker
from compass_runtime.rpc.tracker_session import text_of
from compass_runtime.rpc.wire import Kind


@pytest.fixture
def tracker(state_folder: Path) -> Iterator[rpc.Tracker]:
    with rpc.Tracker(**PORTS, silent=True) as made:
        yield made


@pytest.fixture
def asked(tracker: rpc.Tracker) -> Iterator[rpc.TrackerSession]:
    with rpc.connect_tracker(tracker.host, tracker.port) as made:
        yield made


def board(tracker: rpc.Tracker, key: str = "board") -> rpc.Server:
    return rpc.Server(**PORTS, silent=True, tracker_addr=(tracker.host, tracker.port), key=key)


def counts(asked: rpc.TrackerSession, key: str) -> tuple[int, int]:
    found = asked.summary()["queue_info"].get(key, {"free": 0, "pending": 0})
    return found["free"], found["pending"]


def test_servers_are_given_taken_back_and_forgotten(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(board(tracker)) for _ in range(2)]
        eventually(lambda: counts(asked, "board") == (2, 0))
        assert "numpy" not in Path(f"/proc/{tracker.proc.pid}/maps").read_text()  # it starts at once, and is small
        assert {tuple(one["addr"]) for one in asked.summary()["server_info"]} == {
            ("127.0.0.1", s.port) for s in servers
        }
        with asked.request("board") as session:
            assert session.get_function("rpc.test.addone")(1) == 2
            assert counts(asked, "board")[0] == 1
        eventually(lambda: counts(asked, "board") == (2, 0))
        with pytest.raises(rpc.RPCError, match="cannot find server that matches key"):
            rpc.connect("127.0.0.1", servers[0].port, key="board")  # only who was sent by the tracker
        servers[0].proc.kill()
        eventually(lambda: counts(asked, "board") == (1, 0))
        assert "board   1      1     0" in asked.text_summary()


def test_requests_wait_in_the_order_of_their_priority(tracker: rpc.Tracker) -> None:
    granted: list[str] = []

    def ask(name: str, priority: int) -> None:
        with rpc.connect_tracker(tracker.host, tracker.port) as own, own.request("board", priority) as session:
            granted.append(name)
            session.get_function("rpc.test.addone")(1)

    with rpc.connect_tracker(tracker.host, tracker.port) as asked:
        threads = []
        for number, (name, priority) in enumerate([("low", 1), ("first", 5), ("second", 5)], 1):
            threads.append(threading.Thread(target=ask, args=(name, priority)))
            threads[-1].start()
            eventually(lambda n=number: counts(asked, "board") == (0, n))
        with board(tracker):
            for thread in threads:
                thread.join()
        assert granted == ["first", "second", "low"]
        eventually(lambda: counts(asked, "board") == (0, 0))


def test_nobody_is_free(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    with pytest.raises(rpc.RPCError, match="no server of the key 'none' was free within") as caught:
        asked.request("none", wait=0.3)
    assert caught.value.code == "rpc-busy"
    eventually(lambda: counts(asked, "none") == (0, 0))  # his request went with him
    with pytest.raises(rpc.RPCError, match="is not TVM RPC server"):
        rpc.connect(tracker.host, tracker.port)


class Said(list[str]):
    """What is said while a session is waited for; `then` is done when the first word is."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.then = [then]

    def __call__(self, words: str) -> None:
        self.append(words)
        while self.then:
            self.then.pop()()


def test_who_waits_is_told_at_once_for_what(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    where = f"{tracker.host}:{tracker.port}"
    with ExitStack() as stack:
        said = Said(lambda: stack.enter_context(board(tracker)))
        with Wanted(tracker=where, key="board").session(said) as session:
            assert session.get_function("rpc.test.addone")(1) == 2
            for seconds in (0.0, 0.2):
                with pytest.raises(rpc.RPCError, match="no server of the key 'board' was free within") as caught:
                    Wanted(tracker=where, key="board", wait=seconds).session(said)
                assert caught.value.code == "rpc-busy"
            eventually(lambda: counts(asked, "board")[1] == 0)
        assert said[0] == "no server of the key 'board' is at the tracker: waiting for one"
        assert said[1:] == ["all servers of the key 'board' (1) are busy: waiting for one"] * 2
        eventually(lambda: counts(asked, "board") == (1, 0))
        with Wanted(tracker=where, key="board").session(said):
            assert len(said) == 3


def test_a_tracker_that_is_not_there_is_named_before_it_is_tried_again(tracker: rpc.Tracker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = Said()
    with pytest.raises(rpc.RPCError, match="Failed to connect") as caught:
        Wanted(tracker=f"127.0.0.1:{port}", key="board", wait=0.2).session(said)
    assert caught.value.code == "rpc-connect"
    assert said == [f"no tracker answers at 127.0.0.1:{port}: trying for 0.2 seconds"]


def test_who_waits_for_a_busy_server_is_told_so_once(state_folder: Path) -> None:
    with rpc.Server(**PORTS, silent=True) as own:
        where, said = f"{own.host}:{own.port}", Said()
        with rpc.connect(own.host, own.port), pytest.raises(rpc.RPCError, match=r"was busy for 0\.2 seconds") as caught:
            Wanted(remote=where, wait=0.2).session(said)
        assert caught.value.code == "rpc-busy" and said == [f"{where} is busy: waiting"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"remote": "a:1", "tracker": "b:2"}, "--remote does not go with --tracker"),
        ({"tracker": "b:2"}, "--tracker needs --key"),
        ({"key": "board"}, "--key needs --remote or --tracker"),
        ({"wait": 1.0}, "--wait needs --remote or --tracker"),
    ],
)
def test_options_that_name_no_server_are_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Wanted(**words)


def test_a_server_is_no_tracker(server: rpc.Server) -> None:
    with pytest.raises(rpc.RPCError, match="is not RPC Tracker"):
        rpc.connect_tracker(server.host, server.port)


def test_run_on_whatever_is_free(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    with board(tracker, "a,b:c"):
        assert asked.request_and_run("a,b:c", lambda s: s.get_function("rpc.test.addone")(4)) == 5
        with pytest.raises(RuntimeError, match=r"Failed to run on a,b:c after 2 retry, last_error:.*\n.*nope"):
            asked.request_and_run("a,b:c", lambda s: s.get_function("rpc.test.except")("nope"))
        found = rpc.request("a,b:c", f"{tracker.host}:{tracker.port}")
        assert found.get_function("rpc.test.addone")(1) == 2


def test_an_address_that_others_reach_it_by(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    options = {"tracker_addr": (tracker.host, tracker.port), "key": "far", "custom_addr": "localhost"}
    with rpc.Server(**PORTS, silent=True, **options) as own:
        eventually(lambda: counts(asked, "far") == (1, 0))
        assert asked.summary()["server_info"] == [{"key": "server:far", "addr": ["localhost", own.port]}]
        with asked.request("far") as session:
            assert session.channel.where == f"localhost:{own.port}"


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        wire.PREAMBLE.pack(wire.MAGIC, 99),
        wire.preamble() + b"\xff" * 64,
        wire.preamble() + wire.HEADER.pack(Kind.HELLO, 0, 1 << 30, 0),
        wire.preamble()
        + b"".join(wire.packed(Kind.HELLO, 0, {}))
        + b"".join(wire.packed(Kind.PROOF, 0, {"proof": "x"})),
    ],
    ids=range(5),
)
def test_strangers_at_a_tracker(tracker: rpc.Tracker, data: bytes) -> None:
    with socket.create_connection((tracker.host, tracker.port)) as sock:
        sock.sendall(data)
        assert ended(sock)
    with rpc.connect_tracker(tracker.host, tracker.port) as asked:
        assert asked.summary() == {"queue_info": {}, "server_info": []}


def test_a_flood_of_strangers_at_a_tracker(tracker: rpc.Tracker) -> None:
    """The oldest give way, so that who knows the token gets in at once."""
    with ExitStack() as stack:
        flood = [stack.enter_context(raw(tracker)) for _ in range(events.MOST_STRANGERS + 20)]  # type: ignore[arg-type]
        with rpc.connect_tracker(tracker.host, tracker.port) as asked:
            assert asked.summary()["server_info"] == []
        assert all(ended(sock) for sock in flood[:10])


def test_a_server_whose_address_is_none_is_refused(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    """It would end the connection of everybody who asks for the summary."""
    with socket.create_connection((tracker.host, tracker.port)) as sock:
        about = {"role": "server", "key": "server:x", "announced": "a:b", "port": 9}
        with pytest.raises(rpc.RPCError, match="'a:b' is not HOST:PORT"):
            greet(Channel(sock, "tracker"), "server", access.tokens_of()[0], about, None)
    assert asked.summary() == {"queue_info": {}, "server_info": []}
    with pytest.raises(rpc.RPCError, match="'a:b' is not HOST:PORT"):
        asked._do("tracker.put", "k", "k:1", "a:b", 9)
    assert asked.summary()["queue_info"] == {}


def test_what_a_tracker_does_not_know(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    calls = [
        ("tracker.none",),
        ("tracker.put", 1),
        ("tracker.request", "x", "y"),
        ("tracker.put", "k", "other:1", None, 9),
    ]
    for call in calls:
        with pytest.raises(rpc.RPCError):
            asked._do(*call)
    with pytest.raises(rpc.RPCError, match="the key is wrong"):
        asked._do("tracker.stop", "guess")
    asked._do("tracker.stop", tracker.stop_key)
    eventually(lambda: tracker.proc.poll() is not None)


def test_the_tables_are_laid_out_as_programs_read_them() -> None:
    info = [{"key": "server:rasp", "addr": ["127.0.0.1", 9091]}, {"key": "server:a:b", "addr": None}]
    queues = {"rasp": {"free": 1, "pending": 0}, "a:b": {"free": 0, "pending": 2}, "gone": {"free": 0, "pending": 0}}
    rule = "-" * 28 + "\n"
    assert text_of({"server_info": info, "queue_info": queues}) == (
        "Server List\n------------------------------\nserver-address           key\n------------------------------\n"
        "                 None    server:a:b\n       127.0.0.1:9091    server:rasp\n------------------------------\n\n"
        f"Queue Status\n{rule}key    total  free  pending\n{rule}"
        f"a:b    1      0     2\nrasp   1      1     0\n{rule}"
    )


@final
class Command:
    """A command that runs until it is interrupted, and says where it listens."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "compassc", *words, "--port", "42000", "--port-end", "42999"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("listening on "):
                break
        self.port = self.said[-1].rpartition(":")[2].strip()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stderr is not None
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE) == 0
        self.process.stderr.close()


def test_commands(state_folder: Path, compassc) -> None:  # type: ignore[no-untyped-def]
    with Command("rpc-tracker") as tracker:
        assert f"tokens: {state_folder}/rpc-tokens\n" in tracker.said
        with Command("rpc-server", "--tracker", f"127.0.0.1:{tracker.port}", "--key", "board") as own:
            where = ("--host", "127.0.0.1", "--port", tracker.port)
            eventually(lambda: json.loads(compassc("rpc-query", *where, "--json").out)["queue_info"])
            shown = compassc("rpc-query", *where).out
            assert shown.startswith(f"Tracker address 127.0.0.1:{tracker.port}\n\nServer List\n")
            assert f"127.0.0.1:{own.port}" in shown and "board   1      1     0\n" in shown
            os.environ["TVM_TRACKER_PORT"] = tracker.port
            try:
                assert compassc("rpc-query").out == shown
            finally:
                del os.environ["TVM_TRACKER_PORT"]


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (
            ("rpc-server", "--tracker", "127.0.0.1:1"),
            2,
            "Need key to present type of resource when tracker is available",
        ),
        (("rpc-server", "--tracker", "here", "--key", "x"), 2, "'here' is not HOST:PORT"),
        (("rpc-server", "--host", "0.0.0.0"), 1, "needs TLS"),
        (("rpc-tracker", "--host", "0.0.0.0"), 1, "needs TLS"),
        (("rpc-server", "--host", "192.0.2.1", "--port", "1", "--port-end", "1"), 1, "needs TLS"),
        (("rpc-query", "--host", "192.0.2.1"), 1, "need TLS"),
    ],
    ids=range(6),
)
def test_what_commands_refuse(state_folder: Path, compassc, words, status: int, why: str) -> None:  # type: ignore[no-untyped-def]
    done = compassc(*words)
    assert done.status == status and why in done.err


def test_all_ports_are_taken(state_folder: Path, compassc) -> None:  # type: ignore[no-untyped-def]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = compassc("rpc-server", "--port", port, "--port-end", port + 1)
        assert done.status == 2 and f"cannot bind to any port in [{port}, {port + 1})" in done.err
        with pytest.raises(ValueError, match="cannot bind to any port"):
            rpc.Server(port=port, port_end=port + 1)


def test_strangers_who_go_no_further_are_sent_away(state_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After seconds that are fewer here."""
    assert events.GREETING_SECONDS == 5  # as docs/security.md says
    monkeypatch.setattr(events, "GREETING_SECONDS", 0.2)
    begun = b"", wire.preamble(), wire.preamble() + wire.HEADER.pack(Kind.HELLO, 0, 100, 0)

    async def sent_away(tracker: Tracker, said: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(tracker.host, tracker.port)
        writer.write(said)
        heard = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return heard

    async def met() -> list[bytes]:
        tracker, ready = Tracker("127.0.0.1", access.tokens_of(make=True)), asyncio.Event()
        serving = asyncio.create_task(tracker.serve(PORTS["port"], PORTS["port_end"], lambda _: ready.set()))
        await ready.wait()
        heard = await asyncio.gather(*(sent_away(tracker, said) for said in begun))
        tracker.stop()
        await serving
        return heard

    assert asyncio.run(met()) == [wire.preamble()] * 3


def test_who_asks_and_does_not_read_is_alone_with_it(tracker: rpc.Tracker, asked: rpc.TrackerSession) -> None:
    with raw(tracker) as sock:  # type: ignore[arg-type]
        greet(Channel(sock, "tracker"), "client", access.tokens_of()[0], {"key": ""}, None)
        call = b"".join(wire.packed(Kind.CALL, 1, {"f": "tracker.summary", "v": []}))
        sock.settimeout(0.5)
        with suppress(OSError):  # it takes no more, or ends it
            for _ in range(50):
                sock.sendall(call * 4000)
            pytest.fail("it takes all, and keeps the answers")
        assert asked.summary()["queue_info"] == {}

"""Clients that do what they should not, and servers and clients that die."""

from __future__ import annotations

import os
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
from remote_peers import PATIENCE, PORTS, ended, eventually, known, raw

from compass_runtime import rpc
from compass_runtime.clibrary import library_path
from compass_runtime.rpc import access, wire
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind

DATA = Path(__file__).with_name("data")
Start = Callable[[Quota], rpc.Server]


def works(server: rpc.Server) -> None:
    """The server still serves."""
    with rpc.connect(server.host, server.port) as session:
        assert session.get_function("rpc.test.addone")(1) == 2


def tokens(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(0o600)
    return path


# -- who is let in


def test_a_wrong_token_is_refused(server: rpc.Server, tmp_path: Path) -> None:
    wrong = tokens(tmp_path / "wrong", "0" * 64)
    with pytest.raises(rpc.RPCError, match="the token is wrong") as caught:
        rpc.connect(server.host, server.port, token_file=wrong)
    assert caught.value.code == "rpc-refused"
    works(server)


def test_a_recorded_proof_is_worth_nothing(server: rpc.Server) -> None:
    """The same words as in another greeting, which was right."""
    token = access.tokens_of()[0]
    hello = {"role": "client", "nonce": "0" * 64, "key": ""}
    proofs = []
    for _ in range(2):
        with raw(server) as sock:
            sock.sendall(wire.preamble() + b"".join(wire.packed(Kind.HELLO, 0, hello)))
            read_exactly(sock, wire.PREAMBLE.size)
            kind, _, size, _ = wire.header(read_exactly(sock, wire.HEADER.size), greeting=True)
            assert kind == Kind.CHALLENGE
            proofs.append(token.proof("client", wire.text_of(hello), read_exactly(sock, size)))
            sock.sendall(b"".join(wire.packed(Kind.PROOF, 0, {"proof": proofs[0]})))
            kind, answer = read_frame(sock)
            while kind == Kind.WAIT:
                kind, answer = read_frame(sock)
            if len(proofs) == 1:
                assert kind == Kind.WELCOME
            else:
                assert kind == Kind.REFUSED and "token" in answer["message"]
    assert proofs[0] != proofs[1]


def read_exactly(sock: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = sock.recv(size - len(found))
        assert part, "it was closed"
        found += part
    return found


def read_frame(sock: socket.socket) -> tuple[Kind, dict]:
    kind, _, head, _ = wire.header(read_exactly(sock, wire.HEADER.size), greeting=True)
    return kind, wire.parsed(read_exactly(sock, head))


def test_a_server_that_does_not_know_the_token_is_noticed(state_folder: Path) -> None:
    """One that lets everybody in, and proves nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pretend() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.sendall(wire.preamble())
                read_exactly(sock, wire.PREAMBLE.size)
                read_frame(sock)
                sock.sendall(b"".join(wire.packed(Kind.CHALLENGE, 0, {"nonce": "1"})))
                read_frame(sock)
                sock.sendall(b"".join(wire.packed(Kind.WELCOME, 0, {"proof": "0" * 64})))
                ended(sock)

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(rpc.RPCError, match="does not know the token"):
            rpc.connect(*listener.getsockname())
        thread.join()


def test_another_version_is_named_on_both_sides(server: rpc.Server) -> None:
    with raw(server) as sock:
        sock.sendall(wire.PREAMBLE.pack(wire.MAGIC, wire.VERSION + 1))
        assert wire.PREAMBLE.unpack(read_exactly(sock, wire.PREAMBLE.size)) == (wire.MAGIC, wire.VERSION)
        kind, head = read_frame(sock)
        assert kind == Kind.REFUSED and f"version {wire.VERSION + 1}" in head["message"]
        assert ended(sock)
    works(server)


@pytest.mark.parametrize("banner", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH\r\n"])
def test_something_else_at_the_address_is_named(banner: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.sendall(banner)
                ended(sock)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(rpc.RPCError, match="is not TVM RPC server"):
            rpc.connect(*listener.getsockname())
        thread.join()


def test_nothing_at_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(rpc.RPCError, match=f"Connect to 127.0.0.1:{port} failed"):
        rpc.connect("127.0.0.1", port)


@pytest.fixture(scope="module")
def patient(state_folder: Path) -> Iterator[rpc.Server]:
    """A server that sets no end to sessions."""
    with rpc.Server(**PORTS, silent=True, quota=Quota(session_seconds=0.0, sessions=64)) as made:
        yield made


@pytest.mark.parametrize("key", ["", "\u00e9" * 1700, "\U0001f600" * 800, "\\ud800" * 500])
@pytest.mark.parametrize("seconds", ["1" + "0" * 400, "1e999", "1e300"])
def test_what_a_known_client_asks_for_does_not_end_the_server(patient: rpc.Server, key: str, seconds: str) -> None:
    """Keys that are longer when they are escaped or cannot be written at all, and ends of sessions that no clock has."""
    text = f'{{"role":"client","nonce":"{"0" * 64}","key":"{key}","session_timeout":{seconds}}}'
    with raw(patient) as sock:
        sock.sendall(wire.preamble() + wire.HEADER.pack(Kind.HELLO, 0, len(text.encode()), 0) + text.encode())
        read_exactly(sock, wire.PREAMBLE.size)
        kind, _, size, _ = wire.header(read_exactly(sock, wire.HEADER.size), greeting=True)
        answer = read_exactly(sock, size)
        if kind == Kind.CHALLENGE:  # half a character may be refused before
            proof = access.tokens_of()[0].proof("client", text.encode(), answer)
            sock.sendall(b"".join(wire.packed(Kind.PROOF, 0, {"proof": proof})))
            kind, _ = read_frame(sock)
        assert kind == (Kind.REFUSED if key else Kind.WELCOME)
    works(patient)


def test_a_wrong_key(server: rpc.Server) -> None:
    with pytest.raises(rpc.RPCError, match="cannot find server that matches key=client:other"):
        rpc.connect(server.host, server.port, key="other")
    works(server)


def test_beyond_loopback_there_must_be_tls(state_folder: Path) -> None:
    with pytest.raises(rpc.RPCError, match="needs TLS"):
        rpc.Server("0.0.0.0", **PORTS)
    with pytest.raises(RuntimeError, match="need TLS"):
        rpc.connect("192.0.2.1", 9)  # an address for examples; nothing is sent


def test_tls(state_folder: Path) -> None:
    with rpc.Server(**PORTS, silent=True, certificate=DATA / "localhost.pem") as own:
        with rpc.connect(own.host, own.port, ca=DATA / "authority.pem") as session:
            array = np.arange(3 << 20, dtype=np.int32)
            assert (session.array(array).numpy() == array).all()
            with pytest.raises(rpc.RPCError, match="stopped"):
                slow(session, 0.3)
        with raw(own) as sock:
            sock.sendall(b"no TLS at all\n" * 100)
            assert ended(sock)
        with rpc.connect(own.host, own.port, ca=DATA / "authority.pem") as session:
            assert session.get_function("rpc.test.addone")(1) == 2


def slow(session: rpc.Session, seconds: float) -> None:
    """A call that the server stops after so long."""
    session.call("server.wait", [PATIENCE], seconds, PATIENCE)


def test_files_of_tokens(tmp_path: Path) -> None:
    good = tokens(tmp_path / "t", "# mine", "a" * 40 + " llvm cuda  # all", "", "b" * 32)
    assert [(t.text[0], sorted(t.rights)) for t in access.tokens_of(good)] == [("a", ["cuda", "llvm"]), ("b", [])]
    for lines, why in (["short"], "32 characters"), (["a" * 40 + " root"], "no right 'root'"), ([], "no token"):
        with pytest.raises(RuntimeError, match=why):
            access.tokens_of(tokens(tmp_path / "t", *lines))
    good.chmod(0o644)
    with pytest.raises(RuntimeError, match="others can read"):
        access.tokens_of(good)
    with pytest.raises(RuntimeError, match="no file of tokens"):
        access.tokens_of(tmp_path / "none")


# -- what strangers and clients send


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        wire.preamble() + b"\xff" * 64,
        wire.preamble() + wire.HEADER.pack(Kind.HELLO, 0, 1 << 30, 0),
        wire.preamble() + wire.HEADER.pack(Kind.HELLO, 0, 2, 1 << 31),
        wire.preamble() + wire.HEADER.pack(Kind.CALL, 0, 2, 0) + b"{}",
        wire.preamble() + wire.HEADER.pack(Kind.HELLO, 0, 2, 0) + b"[]",
        wire.preamble() + wire.HEADER.pack(Kind.PROOF, 0, 2, 0) + b"{}",
        wire.preamble() + b"".join(wire.packed(Kind.HELLO, 0, {})) * 2,
    ],
    ids=range(8),
)
def test_strangers_with_damaged_greetings(server: rpc.Server, data: bytes) -> None:
    with raw(server) as sock:
        sock.sendall(data)
        assert ended(sock)


def test_a_stranger_who_says_nothing_is_sent_away(start: Start) -> None:
    quota = Quota(greeting_seconds=0.5, sessions=4)
    with start(quota) as own, raw(own) as silent, raw(own) as slow_one:
        slow_one.sendall(wire.preamble()[:3])
        assert ended(silent) and ended(slow_one)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 64,
        wire.HEADER.pack(Kind.CALL, 1, 2 << 20, 0),
        wire.HEADER.pack(Kind.CALL, 1, 2, 9 << 20),
        wire.HEADER.pack(Kind.HELLO, 1, 2, 0) + b"{}",
        wire.HEADER.pack(Kind.RESULT, 1, 2, 0) + b"{}",
        wire.HEADER.pack(Kind.CALL, 1, 2, 0) + b"{]",
        wire.HEADER.pack(Kind.CALL, 1, 100_000, 0) + b"[" * 100_000,
    ],
    ids=range(7),
)
def test_damaged_messages_end_the_session_and_no_other(server: rpc.Server, session: rpc.Session, data: bytes) -> None:
    channel = known(server)
    channel.sock.sendall(data)
    assert ended(channel.sock)
    channel.close()
    assert session.get_function("rpc.test.addone")(1) == 2


HEADS = [
    [],
    7,
    {},
    {"f": None, "v": []},
    {"f": "server.nothing", "v": {}},
    {"f": "server.nothing", "v": [], "bodies": [5]},
    {"f": "server.none", "v": []},
    {"f": 99, "v": []},
    {"f": -1, "v": []},
    {"f": {"$": "yours"}, "v": []},
    {"f": "file.read", "v": ["x"]},
    {"f": "file.read", "v": [1, 2, 3]},
    {"f": "file.read", "v": ["x", -1, 1]},
    {"f": "file.read", "v": ["x", 0, 1 << 40]},
    {"f": "tensor.empty", "v": [[1 << 40, 1 << 40], "float32", 1, 0]},
    {"f": "tensor.empty", "v": [[1], "object", 1, 0]},
    {"f": "tensor.empty", "v": [[-1], "int8", 1, 0]},
    {"f": "tensor.empty", "v": [[1], "int8", 99, 0]},
    {"f": "tensor.empty", "v": [[True], "int8", 1, 0]},
    {"f": "tensor.read", "v": [{"$": "yours", "id": 5}, 0, 1]},
    {"f": "module.load", "v": [{"$": "mine", "kind": "function", "id": "x"}]},
    {"f": "module.load", "v": ["."]},
    {"f": "module.time", "v": [1, "x", {"$": "device", "type": 1, "index": 0}, {}]},
    {"f": "server.nothing", "v": [{"$": "device", "type": "x", "index": 0}]},
    {"f": "server.nothing", "v": [], "gone": [1, "x", None], "s": "now"},
    {"f": "rpc.test.call", "v": [{"$": "mine", "kind": "module", "id": 1}]},
]


def test_calls_of_what_is_not_there_are_answered_with_errors(server: rpc.Server) -> None:
    channel = known(server)
    for number, head in enumerate(HEADS, 1):
        channel.send(Kind.CALL, number, head)
        frame = channel.receive(PATIENCE)
        assert frame.call == number
        if isinstance(head, dict) and head.get("gone"):
            assert frame.kind == Kind.RESULT
        else:
            assert frame.kind == Kind.ERROR and frame.head["message"], head
    channel.close()


NAMES = [
    "/etc/passwd",
    "..",
    "../x",
    "a/../../x",
    "a//b",
    "./a",
    "",
    "a/",
    "\0",
    "a\0b",
    "x" * 300,
    "/".join("a" * 40),
    "a/.",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_that_leave_the_folder(session: rpc.Session, name: str) -> None:
    uses = (
        lambda: session.upload(b"x", name),
        lambda: session.download(name),
        lambda: session.remove(name),
        lambda: session.load_module(name),
        lambda: session.do("file.path", name),
    )
    for use in uses:
        with pytest.raises(rpc.RPCError) as caught:
            use()
        assert caught.value.code == "rpc-file"


def test_links_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    """Should something make one: machine code of a token that may run it."""
    from compass_runtime.rpc.folder import Folder

    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("x")
    folder = Folder(tmp_path / "in", 100)
    (tmp_path / "in/link").symlink_to(tmp_path / "secret")
    (tmp_path / "in/away").symlink_to(tmp_path)
    for name in ("link", "away/secret", "away/new"):
        for use in (lambda n: folder.read(n, 0, 1), lambda n: folder.write(n, 0, b"x")):
            with pytest.raises(rpc.RPCError):
                use(name)
    assert (tmp_path / "secret").read_text() == "x" and not (tmp_path / "new").exists()


def test_files_have_a_limit(session: rpc.Session) -> None:
    session.upload(bytes(6 << 20), "a")
    with pytest.raises(rpc.RPCError, match="may have 8388608 bytes"):
        session.upload(bytes(3 << 20), "b")
    session.upload(bytes(1 << 20), "a")
    session.upload(bytes(3 << 20), "b")
    with pytest.raises(rpc.RPCError, match="bytes, not"):
        session.do("file.write", "b", 1 << 40, b"x")


def test_folders_have_a_limit(session: rpc.Session) -> None:
    """Those that are left when their files have gone, too."""
    deep = "/".join("abcdefghijklmn")
    with pytest.raises(rpc.RPCError, match="may have 1000 folders") as caught:
        for number in range(1000 // 15 + 1):
            session.upload(b"", f"{number}/{deep}/x")
            session.remove(f"{number}/{deep}/x")
    assert caught.value.code == "rpc-quota" and number == 1000 // 15
    session.upload(b"", f"0/{deep}/x")
    assert session.list_files() == [f"0/{deep}/x"]


def test_what_a_view_holds_counts(session: rpc.Session) -> None:
    """All of the tensor, however small the view is."""
    tensor = session.empty((48 << 20,), "uint8")
    view = session.do("tensor.view", tensor, [1], "uint8", 7)
    del tensor
    with pytest.raises(rpc.RPCError) as caught:
        session.empty((48 << 20,), "uint8")
    assert caught.value.code == "rpc-quota"
    view.copyfrom(np.array([3], np.uint8))
    assert view.numpy() == [3]
    del view
    session.empty((48 << 20,), "uint8")


def test_programs_share_few_devices(own: rpc.Server, kernel: Path) -> None:
    """However many are loaded: each device has memory, and a process."""
    with rpc.connect(own.host, own.port) as session:
        x, out = session.array(np.arange(10, dtype=np.int32)), session.empty((10,), "int32")
        modules = [session.load_bytes(kernel.read_bytes()) for _ in range(7)]
        for n in (10, 9):
            for module in modules:
                module["add"](x, x, out, n)
                assert (out.numpy()[:n] == 2 * np.arange(n)).all()
        (child,) = processes(own)
        assert 1 <= len(workers(child)) <= 4


def workers(leader: int) -> list[Path]:
    """The engines in a process's group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            before, _, rest = path.read_text().rpartition(")")
            if int(rest.split()[2]) == leader and "compass-worker" in before:
                found.append(path)
    return found


def test_answers_that_are_too_large_for_a_message(session: rpc.Session, kernel: Path) -> None:
    module, array = session.load_bytes(kernel.read_bytes()), np.zeros(1 << 18, np.int32)
    with pytest.raises(rpc.RPCError) as caught:
        session.do(
            "program.call", module, [wire.Inline(array), wire.Inline(array), wire.Inline(array), 1], [0, 1, 2] * 4
        )
    assert caught.value.code in ("limit-exceeded", "rpc-call")
    assert session.get_function("rpc.test.addone")(1) == 2


def test_what_functions_keep_has_a_limit_too(server: rpc.Server, session: rpc.Session) -> None:
    """Texts in the hands of functions, which are no tensors."""
    make, kept = session.get_function("rpc.test.add_to_lhs"), []
    with pytest.raises(rpc.RPCError) as caught:
        for _ in range(200):
            kept.append(make("x" * (7 << 20)))
    assert caught.value.remote_type == "MemoryError" and len(kept) > 8
    kept.clear()
    works(server)


def test_a_damaged_program_is_refused(session: rpc.Session, kernel: Path) -> None:
    content = bytearray(kernel.read_bytes())
    for wrong in (b"", b"\x7fELF", bytes(content[:200]), bytes(content[:-100]), b"#!/bin/sh\n" * 100):
        with pytest.raises(rpc.RPCError):
            session.load_bytes(wrong)
    content[len(content) // 2] ^= 0xFF
    with suppress(rpc.RPCError):
        session.load_bytes(bytes(content))
    assert session.get_function("rpc.test.addone")(1) == 2


def test_machine_code_of_the_host_needs_a_right(server: rpc.Server, session: rpc.Session, tmp_path: Path) -> None:
    """Even what this user built on this machine: a client may have it from anywhere."""
    from compassc import te

    a = te.placeholder((4,), "float32", "a")
    b = te.compute((4,), lambda i: a[i] + 1.0, "b")
    module = te.build(te.create_schedule(b.op), [a, b], "llvm", name="plus")
    module.export_library(tmp_path / "host.tar")
    session.upload(tmp_path / "host.tar")
    with pytest.raises(rpc.RPCError, match="which this token does not allow") as caught:
        session.load_module("host.tar")
    assert caught.value.code == "rpc-right"
    allowed = tokens(tmp_path / "tokens", "c" * 40 + " llvm")
    made = rpc.Server(**PORTS, silent=True, token_file=allowed)
    with made as own, rpc.connect(own.host, own.port, token_file=allowed) as other:
        other.upload(tmp_path / "host.tar")
        x, y = other.array(np.ones(4, np.float32)), other.empty((4,))
        other.load_module("host.tar")["plus"](x, y)
        assert (y.numpy() == 2).all()


def test_a_way_through_a_server_gives_no_rights(tmp_path: Path) -> None:
    """Back to the same one: those of the client's own token, not of the server's first one."""
    both = tokens(tmp_path / "both", "a" * 40 + " llvm", "b" * 40 + " connect")
    mine = tokens(tmp_path / "mine", "b" * 40)
    with rpc.Server(**PORTS, silent=True, token_file=both, quota=Quota(sessions=2)) as own:
        way = ["rpc.Connect", own.host, own.port, ""]
        with rpc.connect(own.host, own.port, session_constructor_args=way, token_file=mine) as session:
            assert session.info["rights"] == ["connect"]


# -- time


def test_a_call_that_takes_too_long_is_stopped(session: rpc.Session, kernel: Path) -> None:
    module = session.load_bytes(kernel.read_bytes())
    one = session.empty((1,), "int32")
    with pytest.raises(rpc.RPCError, match="was stopped") as caught:
        session.call("program.call", [module, [one, one, one, -1], []], 0.3, PATIENCE)
    assert caught.value.code == "rpc-deadline"
    module["add"](one, one, one, 1)


def test_a_call_can_be_cancelled(session: rpc.Session) -> None:
    timer = threading.Timer(0.2, session.cancel)
    timer.start()
    with pytest.raises(rpc.RPCError, match="cancelled") as caught:
        slow(session, PATIENCE)
    assert caught.value.code == "rpc-cancelled"
    timer.join()
    assert session.get_function("rpc.test.addone")(1) == 2
    session.cancel()  # of nothing
    assert session.get_function("rpc.test.addone")(1) == 2


def test_a_session_has_an_end(server: rpc.Server) -> None:
    """Whether a call runs then, or none; it is said on the call that runs, or on the next one."""
    with rpc.connect(server.host, server.port, session_timeout=0.5) as session:
        with pytest.raises(rpc.RPCSessionTimeoutError, match="0.5s session has expired") as caught:
            slow(session, PATIENCE)
        assert isinstance(caught.value, (TimeoutError, rpc.RPCError))
    with rpc.connect(server.host, server.port, session_timeout=0.3) as session:
        time.sleep(1)
        with pytest.raises(rpc.RPCSessionTimeoutError, match="0.3s session has expired"):
            session.get_function("rpc.test.addone")(1)


def test_a_session_of_which_nothing_is_asked_ends(start: Start) -> None:
    with start(Quota(idle_seconds=0.3)) as own:
        session = rpc.connect(own.host, own.port)
        eventually(lambda: not processes(own))
        with pytest.raises(rpc.RPCError) as caught:
            session.get_function("rpc.test.addone")(1)
        assert caught.value.code in ("rpc-idle", "rpc-lost")
        works(own)


def test_libraries_that_a_server_loads(state_folder: Path) -> None:
    with rpc.Server(**PORTS, silent=True, load_library=f"libm.so.6:{library_path()}") as own:
        works(own)
        (maps,) = [Path(f"/proc/{own.proc.pid}/maps").read_text()]
        assert str(library_path()) in maps
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        rpc.Server(**PORTS, load_library=["none.so"])


def test_a_slow_writer_and_a_slow_reader_lose_their_sessions(start: Start) -> None:
    with start(Quota(stall_seconds=0.5, sessions=4)) as own:
        writer, reader = known(own), known(own)
        writer.sock.sendall(wire.HEADER.pack(Kind.CALL, 1, 100, 0) + b"{")
        big = {"f": "rpc.test.echo", "v": [{"$": "bytes", "body": 0}], "bodies": [8 << 20]}
        reader.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for number in range(4):  # more than the system keeps for who does not read
            with suppress(rpc.RPCError):
                reader.send(Kind.CALL, number, big, [bytes(8 << 20)])
        assert ended(writer.sock) and ended(reader.sock)
        works(own)
        writer.close()
        reader.close()


# -- ends


def processes(server: rpc.Server) -> set[int]:
    """The children of a server."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            rest = path.read_text().rpartition(")")[2]
            if int(rest.split()[1]) == server.proc.pid:
                found.add(int(path.parent.name))
    return found


@pytest.fixture
def own(start: Start) -> Iterator[rpc.Server]:
    with start(Quota(sessions=2)) as made:
        yield made


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
    quota, failures = Quota(strangers=8, sessions=2, greeting_seconds=2), []
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

"""Clients that do what they should not, and servers and clients that die."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from remote_peers import PATIENCE, PORTS, ended, known, raw, slow, tokens, works

from compass_runtime import rpc
from compass_runtime.rpc import access, wire
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind

DATA = Path(__file__).with_name("data")
Start = Callable[[Quota], rpc.Server]


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
    quota = Quota(greeting_seconds=0.2, sessions=4)
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

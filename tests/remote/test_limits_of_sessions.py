"""What a client may take of a server: memory, files, programs, time, rights."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from remote_peers import PATIENCE, PORTS, ended, eventually, known, processes, slow, tokens, works

from compass_runtime import rpc
from compass_runtime.clibrary import library_path
from compass_runtime.rpc import wire
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind

Start = Callable[[Quota], rpc.Server]


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
    with (
        rpc.connect(server.host, server.port, session_timeout=0.3) as idle,
        rpc.connect(server.host, server.port, session_timeout=0.5) as busy,
    ):
        with pytest.raises(rpc.RPCSessionTimeoutError, match="0.5s session has expired") as caught:
            slow(busy, PATIENCE)
        assert isinstance(caught.value, (TimeoutError, rpc.RPCError))
        with pytest.raises(rpc.RPCSessionTimeoutError, match="0.3s session has expired"):
            idle.get_function("rpc.test.addone")(1)


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

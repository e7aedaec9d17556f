"""What a session does: functions, files, arrays, modules, and their errors."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from remote_peers import PORTS, eventually

import compass_runtime
from compass_runtime import register_func, rpc
from compass_runtime.rpc.wire import PIECE


@pytest.mark.parametrize(
    "value", [10, 2.5, "% d é", b"\0\1", bytearray(b"x"), None, True, [1, ["a", None]], {"k": [1.0]}, np.dtype("int8")]
)
def test_values_go_there_and_back(session: rpc.Session, value: object) -> None:
    found = session.get_function("rpc.test.echo")(value)
    assert found == value and type(found) is type(value)


def test_functions(session: rpc.Session) -> None:
    assert [session.get_function("rpc.test.addone")(x) for x in (10, -5, -1, 2.5)] == [11, -4, 0, 3.5]
    assert session.get_function("rpc.test.strcat")("a", 3) == "a:3"
    assert session.get_function("rpc.test.add_to_lhs")(10)(5) == 15
    with pytest.raises(AttributeError, match=r"no function 'rpc.test.nope'"):
        session.get_function("rpc.test.nope")


def test_functions_of_this_side_are_called_from_there(session: rpc.Session) -> None:
    call, seen = session.get_function("rpc.test.call"), []

    def here(x: int) -> int:
        seen.append(x)
        return call(lambda y: y + 1, x) * 2  # and again from there

    assert call(here, 20) == 42 and seen == [20]
    with pytest.raises(rpc.RPCError, match="ZeroDivisionError"):
        call(lambda: 1 // 0)
    assert call(lambda: 3) == 3


def test_an_exception_there_is_an_rpc_error_here(session: rpc.Session) -> None:
    with pytest.raises(RuntimeError, match=r"Error caught from RPC call:\nValueError: abc") as caught:
        session.get_function("rpc.test.except")("abc")
    assert isinstance(caught.value, rpc.RPCError) and not isinstance(caught.value, ValueError)
    assert caught.value.remote_type == "ValueError" and "testing.py" in caught.value.trace
    assert "/" not in caught.value.trace
    assert session.get_function("rpc.test.addone")(1) == 2


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
@pytest.mark.parametrize("shape", [(0,), (5,), (3, 1, 7)])
def test_arrays_are_the_same_byte_by_byte(session: rpc.Session, dtype: str, shape: tuple[int, ...]) -> None:
    source = (
        compass_runtime.array(np.arange(np.prod(shape)).reshape(shape) % 100)
        .numpy()
        .astype(compass_runtime.empty((), dtype).numpy().dtype)
    )
    there = compass_runtime.array(source, session.cpu())
    assert (there.shape, there.dtype, there.numpy().tobytes()) == (shape, dtype, source.tobytes())
    other = compass_runtime.empty(shape, dtype, session.cpu(0))
    assert there.copyto(other) is other and other.numpy().tobytes() == source.tobytes()
    assert there.copyto(compass_runtime.cpu()).numpy().tobytes() == source.tobytes()


def test_large_arrays_go_in_pieces(session: rpc.Session) -> None:
    source = np.random.default_rng(1).integers(0, 255, 2 * PIECE + 12345, np.uint8)
    there = session.array(source)
    assert (there.numpy() == source).all()
    view = there._create_view((3,), "uint8", PIECE - 1)
    assert (view.numpy() == source[PIECE - 1 :][:3]).all()


def test_arrays_of_functions(session: rpc.Session) -> None:
    made = session.get_function("rpc.test.remote_return_nd")
    kept = made("get_arr")()
    assert kept.shape == (10,) and not kept.numpy().any()
    assert made("get_arr_elem")(session.array(np.array([3.0, 4.0], np.float32)), 1) == 4.0
    with pytest.raises(RuntimeError, match="no mode"):
        made("other")
    session.get_function("rpc.test.remote_array_func")(session.array(np.ones(4)))


def test_what_is_of_another_side_or_session_is_refused(server: rpc.Server, session: rpc.Session) -> None:
    echo = session.get_function("rpc.test.echo")
    with rpc.connect(server.host, server.port) as other:
        for there in (other.array(np.ones(1)), other.get_function("rpc.test.echo")):
            with pytest.raises(RuntimeError, match="of another session"):
                echo(there)
        with pytest.raises(RuntimeError, match="Can not pass in device with a different remote session"):
            echo(other.cpu())
    for here in (np.ones(1), compass_runtime.array(np.ones(1)), compass_runtime.cpu()):
        with pytest.raises(RuntimeError, match="Can not pass in local"):
            echo(here)
    assert echo(session.cpu()) == session.cpu()


def test_devices(session: rpc.Session) -> None:
    dev = session.device("llvm")
    assert dev.device_type == 1 + 128 * (session.number + 1) and dev._rpc_sess is session
    assert dev.kind == "cpu" and dev.exist
    dev.sync()
    assert session.device("X2_1204").kind == "compass" and not session.cuda(99).exist


def test_files(session: rpc.Session, tmp_path: Path) -> None:
    content = np.random.default_rng(2).bytes(PIECE + 77)
    (tmp_path / "a.bin").write_bytes(content)
    session.upload(str(tmp_path / "a.bin"))
    session.upload(bytearray(b"x"), "sub/b.bin")
    session.upload(b"", "empty")
    assert session.download("a.bin") == content and session.download("empty") == b""
    assert session.listdir() == "a.bin,empty,sub"
    assert session.list_files() == ["a.bin", "empty", "sub/b.bin"]
    path = session.do("file.path", "sub/b.bin")
    assert session.download(path) == b"x"
    session.upload(b"short", "a.bin")
    assert session.download("a.bin") == b"short"
    session.remove("a.bin")
    session.remove("a.bin")
    assert "a.bin" not in session.listdir()
    with pytest.raises(ValueError, match="need a name"):
        session.upload(b"x")
    with pytest.raises(rpc.RPCError, match="cannot be opened"):
        session.download("a.bin")


def test_each_session_has_a_folder_of_its_own_that_goes_with_it(server: rpc.Server) -> None:
    with rpc.connect(server.host, server.port) as one, rpc.connect(server.host, server.port) as other:
        one.upload(b"x", "mine")
        assert other.listdir() == ""
        folder = Path(one.do("file.path", "mine")).parent
        assert folder.is_dir() and folder.stat().st_mode & 0o77 == 0
    eventually(lambda: not folder.exists())


def test_a_kernel_runs_there(session: rpc.Session, kernel: Path) -> None:
    session.upload(kernel)
    module = session.load_module("aipu.bin")
    a, b = np.arange(100, dtype=np.int32), np.full(100, 7, np.int32)
    there = session.array(a), session.array(b), session.empty((100,), "int32")
    module["add"](*there, 100)
    assert (there[2].numpy() == a + b).all()
    module(*there[:2], there[0], 100)  # its entry is the kernel
    assert (there[0].numpy() == a + b).all()
    timed = module.time_evaluator("add", session.cpu(), number=2, repeat=3)(*there, 100)
    assert len(timed.results) == 3 and timed.min > 0
    for wrong in (lambda: module["nope"], lambda: module.time_evaluator("nope", session.cpu())):
        with pytest.raises(AttributeError, match="nope"):
            wrong()
    assert module.imported_modules == [] and not module.implements_function("nope")


def test_a_fault_of_a_kernel_is_told_and_the_session_goes_on(session: rpc.Session, kernel: Path) -> None:
    module = session.load_bytes(kernel.read_bytes())
    small = session.empty((4,), "int32")
    with pytest.raises(rpc.RPCError) as caught:
        session.do("program.call", module, [small, small, small, -1], [], 0.2)
    assert caught.value.code == "kernel-timeout"
    with pytest.raises(rpc.RPCError, match="no file 'missing'"):
        session.load_module("missing")
    a = session.array(np.ones(4, np.int32))
    module["add"](a, a, small, 4)
    assert (small.numpy() == 2).all()


def test_exported_modules_and_their_imports(session: rpc.Session, kernel: Path, tmp_path: Path) -> None:
    from compass_runtime.compass_module import CompassModule
    from compass_runtime.module import HostModule

    module = HostModule()
    module.import_module(CompassModule(kernel.read_bytes()))
    module.export_library(tmp_path / "net.tar")
    session.upload(tmp_path / "net.tar")
    there = session.load_module("net.tar")
    (imported,) = there.imported_modules
    assert there["add"] is not None and imported.type_key == CompassModule.type_key
    with pytest.raises(rpc.RPCError, match="import"):
        imported.import_module(there)


def test_functions_that_whoever_starts_the_server_registers() -> None:
    def registers() -> None:
        there = set(sys.modules)
        register_func("demo.twice", lambda x: 2 * x, override=True)
        register_func("demo.imported", lambda: " ".join(sorted(sys.modules.keys() - there)), override=True)

    made = rpc.Server(**PORTS, silent=True, key="a:b", server_init_callback=registers)
    with made as own, rpc.connect(own.host, own.port, key="a:b") as session:
        assert session.get_function("demo.twice")(4) == 8
        with pytest.raises(AttributeError):
            session.get_function("compass.runtime.CompassModule")  # it reads files of the server
        assert session.array(np.arange(4)).numpy()[3] == 3
        assert session.get_function("demo.imported")() == ""  # the server has it all for its sessions


def test_a_session_by_way_of_another_server(server: rpc.Server, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for path, text in ((first, "f" * 40 + " connect\n"), (second, "f" * 40 + "\n")):
        path.write_text(text)
        path.chmod(0o600)
    with (
        rpc.Server(**PORTS, silent=True, token_file=first) as near,
        rpc.Server(**PORTS, silent=True, token_file=second, key="x1") as far,
    ):
        way = ["rpc.Connect", far.host, far.port, "x1", False]
        with rpc.connect(near.host, near.port, session_constructor_args=way, token_file=first) as session:
            array = np.random.default_rng(0).random(1 << 20)
            assert (session.array(array).numpy() == array).all()
            assert session.get_function("rpc.test.call")(lambda x: x + 1, 1) == 2
            with pytest.raises(rpc.RPCError, match="ValueError: abc"):
                session.get_function("rpc.test.except")("abc")
        for wrong, why in (
            (["rpc.Connect", far.host, far.port, "x2"], "cannot find server that matches key=client:x2"),
            (["rpc.Connect", far.host, "x"], "takes a host, a port and a key"),
            (["rpc.NonExist"], "makes no sessions by 'rpc.NonExist'"),
        ):
            with pytest.raises(rpc.RPCError, match=why):
                rpc.connect(near.host, near.port, session_constructor_args=wrong, token_file=first)
    with pytest.raises(rpc.RPCError, match="does not allow sessions on other servers") as caught:
        rpc.connect(server.host, server.port, session_constructor_args=["rpc.Connect", server.host, server.port, ""])
    assert caught.value.code == "rpc-right"


def test_threads_share_a_session(session: rpc.Session) -> None:
    echo, wrong = session.get_function("rpc.test.echo"), []

    def calls(number: int) -> None:
        wrong.extend(i for i in range(20) if echo([number, i]) != [number, i])

    threads = [threading.Thread(target=calls, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_nobody_has_any_more_is_given_back(session: rpc.Session) -> None:
    """Arrays of more than all the memory of a session, one after the other."""
    for _ in range(4):
        array = session.empty((40 << 20,), "uint8")
        del array
        gc.collect(0)  # it is young: all of a long run is much
    kept = session.empty((40 << 20,), "uint8")
    with pytest.raises(rpc.RPCError, match="may have 67108864 bytes"):
        session.empty((40 << 20,), "uint8")
    assert kept.nbytes == 40 << 20


def test_after_its_end(session: rpc.Session) -> None:
    array, function = session.array(np.ones(2)), session.get_function("rpc.test.echo")
    session.close()
    session.close()
    for use in (array.numpy, lambda: function(1), lambda: session.upload(b"", "x")):
        with pytest.raises(rpc.RPCError):
            use()


def test_the_last_object_keeps_the_session(server: rpc.Server) -> None:
    array = rpc.connect(server.host, server.port).array(np.arange(3))
    gc.collect(0)
    assert (array.numpy() == np.arange(3)).all()

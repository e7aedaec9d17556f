"""Every name that programs use of the framework's remote sessions: it is there, or refused with a reason."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from choosing import some

from compass_runtime import rpc
from compassc.compat import modules
from compassc.compat.names import MISSING

MODULES = {
    "tvm.rpc": """LocalSession PopenSession RPCSession Server TrackerSession connect connect_tracker with_minrpc""",
    "tvm.rpc.server": "Server",
    "tvm.rpc.tracker": "Tracker",
    "tvm.rpc.proxy": "Proxy",
    "tvm.rpc.client": "LocalSession PopenSession RPCSession TrackerSession connect connect_tracker",
    "tvm.rpc.minrpc": "with_minrpc find_minrpc_server_libpath",
    "tvm.rpc.testing": "FUNCTIONS",
    "tvm.error": "RPCError RPCSessionTimeoutError",
    "tvm.exec.rpc_server": "main",
    "tvm.exec.rpc_tracker": "main",
    "tvm.exec.rpc_proxy": "main",
    "tvm.exec.query_rpc_tracker": "main",
    "tvm.exec": "measure_peak",
    "tvm.compass.utils": "get_rpc_session sync_compass_output_dir",
}
SESSION = """get_function system_lib device cpu cuda cl vulkan metal rocm ext_dev hexagon webgpu upload download remove listdir
    load_module download_linked_module list_files"""
TRACKER = "summary text_summary request request_and_run close"
FILES = "upload download remove listdir workpath load_module download_linked_module"
TESTS = "addone strcat except runtime_str_concat remote_array_func add_to_lhs remote_return_nd"


@pytest.fixture
def names() -> Iterator[None]:
    modules.take_names()
    yield
    modules.give_back_names()


@pytest.mark.parametrize("module", MODULES)
def test_names_of_modules(names: None, module: str) -> None:
    for name in some(MODULES[module].split()):
        if f"{module}.{name}" in MISSING:
            with pytest.raises(AttributeError, match="."):
                getattr(importlib.import_module(module), name)
        else:
            assert hasattr(importlib.import_module(module), name), name


def test_members_of_sessions_and_trackers(session: rpc.Session) -> None:
    assert not [name for name in SESSION.split() if not callable(getattr(session, name, None))]
    assert not [name for name in TRACKER.split() if not callable(getattr(rpc.TrackerSession, name, None))]
    for kind in ("cpu", "cuda", "cl", "vulkan", "metal", "rocm", "ext_dev", "hexagon", "webgpu"):
        device = getattr(session, kind)(0)
        assert device.device_type == device.base.device_type + 128 * (session.number + 1)
        assert device.exist is (kind == "cpu") or kind == "cuda"
    with pytest.raises(rpc.RPCError, match="library that is linked into it"):
        session.system_lib()


def test_functions_on_files_and_for_trying(session: rpc.Session, kernel: Path) -> None:
    of = {name: session.get_function(f"tvm.rpc.server.{name}") for name in FILES.split()}
    of["upload"]("x.so", bytearray(b"abc"))
    assert of["listdir"]("") == "x.so" and of["download"]("x.so") == b"abc" == of["download_linked_module"]("x.so")
    assert session.download_linked_module("x.so") == b"abc"
    assert of["workpath"]("x.so").endswith("/x.so")
    of["remove"]("x.so")
    session.upload(bytes(5 << 20), "long")
    for name, why in (("x.o", "link"), ("x.c", "Do not know how to link x.c")):
        for link in (of["download_linked_module"], session.download_linked_module):
            with pytest.raises(RuntimeError, match=why):
                link(name)
    with pytest.raises(RuntimeError, match="does not fit into a message"):
        of["download"]("long")
    with pytest.raises(RuntimeError, match="is no name of a file"):
        of["upload"]("../x", b"")
    session.upload(kernel)
    assert of["load_module"]("aipu.bin").type_key == "compass.runtime.CompassModule"
    for name in TESTS.split():
        session.get_function(f"rpc.test.{name}")


def test_a_session_on_a_server_of_its_own(names: None, kernel: Path, tmp_path: Path) -> None:
    from tvm import rpc as theirs
    from tvm.rpc.minrpc import with_minrpc

    build = with_minrpc(lambda *_: None)
    build(tmp_path / "server", [])
    assert build.output_format == ""
    session = theirs.PopenSession(str(tmp_path / "server"))
    session.upload(kernel)
    a, out = session.array(np.arange(8, dtype=np.int32)), session.empty((8,), "int32")
    session.load_module("aipu.bin")["add"](a, a, out, 8)
    assert (out.numpy() == 2 * np.arange(8)).all()
    where = session.channel.sock.getpeername()
    session.close()
    with pytest.raises(rpc.RPCError, match="failed"):  # the process ended with it
        rpc.connect(*where)
    with pytest.raises(RuntimeError, match="no code of the host"):
        build(tmp_path / "server", ["a.o"])


def test_programs_that_are_no_servers(tmp_path: Path) -> None:
    for content, mode, why in (
        (None, 0, "does not exist"),
        ("#!/bin/true\n", 0o600, "not executable"),
        ("#!/bin/true\n", 0o700, "is no server"),
    ):
        path = tmp_path / f"file{mode}"
        if content is not None:
            path.write_text(content)
            path.chmod(mode)
        with pytest.raises(RuntimeError, match=why):
            rpc.PopenSession(path)
    with pytest.raises(RuntimeError, match="is no server"):
        rpc.PopenSession(b"#!/bin/true\n")

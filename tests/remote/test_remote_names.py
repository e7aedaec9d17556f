"""Programs and names of the framework for remote sessions."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from remote_peers import PORTS, eventually

import compass_runtime
from compass_runtime import rpc
from compassc.compat import modules


@pytest.fixture
def names() -> Iterator[None]:
    modules.take_names()
    yield
    modules.give_back_names()


def started(program: str, *words: str) -> tuple[subprocess.Popen[str], int]:
    """One of the framework's programs, and the port that it says it has."""
    command = [sys.executable, "-m", "compassc.compat", "-m", f"tvm.exec.{program}", *words]
    made = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert made.stderr is not None
    for line in made.stderr:
        if found := re.search(r"(listening on|by the proxy at) [\d.]+:(\d+)", line):
            return made, int(found[2])
    raise AssertionError(f"{program} does not start")


def test_tracker_proxy_and_server_of_its_programs(state_folder: Path) -> None:
    """As the vendor's guide has it: a tracker, a proxy for boards that nobody reaches, a board."""
    ports = ["--port", str(PORTS["port"]), "--port-end", str(PORTS["port_end"])]
    made = []
    try:
        tracker, number = started("rpc_tracker", *ports)
        made.append(tracker)
        proxy, through = started("rpc_proxy", *ports, "--tracker", f"127.0.0.1:{number}")
        made.append(proxy)
        words = ("--host", "127.0.0.1", "--port", str(through), "--through-proxy", "--key", "juno,X2_1204", "--no-fork")
        made.append(started("rpc_server", *words)[0])
        with rpc.connect_tracker("127.0.0.1", number) as known:
            eventually(lambda: known.summary()["queue_info"].get("juno,X2_1204"))
            asked = [sys.executable, "-m", "compassc.compat", "-m", "tvm.exec.query_rpc_tracker", "--port", str(number)]
            said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
            assert said.startswith(f"Tracker address 127.0.0.1:{number}\n\nServer List\n")
            assert re.search(rf"127.0.0.1:{through} +server:juno,X2_1204\n", said)
            with known.request("juno,X2_1204", session_timeout=60) as session:
                assert session.get_function("rpc.test.strcat")("a", 1) == "a:1"
    finally:
        for process in reversed(made):
            os.killpg(process.pid, signal.SIGINT)
            process.wait(60)
            assert process.stderr is not None
            process.stderr.close()


def test_a_session_without_a_server(names: None, tmp_path: Path) -> None:
    from tvm import rpc as theirs
    from tvm.rpc import testing

    with theirs.LocalSession() as session:
        assert session.get_function("rpc.test.addone")(10) == 11
        assert session.get_function("rpc.test.echo")("text") == testing.FUNCTIONS["echo"]("text")
        with pytest.raises(AttributeError, match="no function 'nope'"):
            session.get_function("nope")
        session.upload(bytearray(b"abc"), "dat.bin")
        (tmp_path / "f").write_bytes(b"x")
        session.upload(tmp_path / "f")
        assert session.listdir() == "dat.bin,f" and session.list_files() == ["dat.bin", "f"]
        assert session.download("dat.bin") == b"abc"
        session.remove("dat.bin")
        with pytest.raises(rpc.RPCError, match="no name of a file"):
            session.upload(b"x", "../x")
        array = compass_runtime.array(np.ones(4, np.float32), session.cpu(0))
        session.get_function("rpc.test.remote_array_func")(array)


def test_a_program_runs_without_a_server(kernel: Path) -> None:
    with rpc.LocalSession() as session:
        session.upload(kernel)
        a, out = (compass_runtime.array(np.arange(8, dtype=np.int32), session.cpu()) for _ in range(2))
        session.load_module("aipu.bin")["add"](a, a, out, 8)
        assert (out.numpy() == 2 * np.arange(8)).all()


def test_a_server_behind_a_proxy_by_their_names(names: None, state_folder: Path) -> None:
    import tvm
    from tvm import rpc as theirs
    from tvm.rpc.proxy import Proxy

    with Proxy("127.0.0.1", **PORTS, silent=True) as proxy:
        with theirs.Server("127.0.0.1", proxy.port, is_proxy=True, key="x1", silent=True):
            remote = theirs.connect("127.0.0.1", proxy.port, key="x1")
            assert remote.get_function("rpc.test.addone")(10) == 11
            array = tvm.nd.array(np.zeros((5, 3), np.float32), remote.cpu(0))
            assert not array.numpy().any()
        with pytest.raises(RuntimeError, match="serves no pages"):
            Proxy("127.0.0.1", web_port=8888)

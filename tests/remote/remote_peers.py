"""Connections to a server that do as they like."""

from __future__ import annotations

import atexit
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from compass_runtime import rpc
from compass_runtime.rpc import access, wire
from compass_runtime.rpc.channel import Channel, greet
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Frame, Kind

PORTS = {"port": 42000, "port_end": 42999}
SMALL = Quota(memory=64 << 20, disk=8 << 20, sessions=400, strangers=64, greeting_seconds=20)
"""Room for many, and small limits."""
PATIENCE = 120.0
"""Seconds after which a test gives up on something that has no time of its own to keep."""


def eventually(holds: Callable[[], object]) -> None:
    """Waits until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def raw(server: rpc.Server) -> socket.socket:
    """A connection of a stranger."""
    return socket.create_connection((server.host, server.port), PATIENCE)


def asking(server: Any, hello: dict[str, Any], source: str = "127.0.0.1", token: access.Token | None = None) -> Channel:
    """A connection that has said all that a greeting needs, and was not answered yet."""
    sock = socket.create_connection((server.host, server.port), PATIENCE, (source, 0))
    channel = Channel(sock, "server")
    channel.begin(PATIENCE)
    channel.send(Kind.HELLO, 0, hello)
    asked = channel.receive(PATIENCE)
    assert asked.kind == Kind.CHALLENGE
    shown = (token or access.tokens_of()[0]).proof("client", wire.text_of(hello), asked.text)
    channel.send(Kind.PROOF, 0, {"proof": shown})
    return channel


def answered(channel: Channel) -> Frame:
    """What comes after others were served."""
    while (frame := channel.receive(PATIENCE)).kind == Kind.WAIT:
        pass
    return frame


def known(server: rpc.Server) -> Channel:
    """The connection of a client that is known, and may send what he likes."""
    channel = Channel(raw(server), "server")
    greet(channel, "client", access.tokens_of()[0], {"key": ""}, None)
    return channel


def ended(sock: socket.socket) -> bool:
    """Reads until the other side closes the connection."""
    try:
        sock.settimeout(PATIENCE)
        while sock.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except OSError:  # it was reset, or found to be so before
        pass
    return True


@cache
def flooding_driver() -> Path:
    """A driver's library that prints without end in every run."""
    from compass_runtime import clibrary
    from compass_sim import engine

    folder = Path(mkdtemp(prefix="compass-driver-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    real = Path(shutil.copy(clibrary.library_path(), folder / clibrary.NAME))
    link = ("-shared", "-soname", "libflood.so", "-rpath", str(folder), str(real))
    source = Path(__file__).with_name("data") / "flooding_driver.c"
    engine.compile_and_link([source], folder / "libflood.so", ("-fPIC",), link)
    return folder / "libflood.so"


@cache
def board_folder() -> Path:
    """A folder with compass-rpcd, and what it starts."""
    from compass_runtime import board_server

    folder = Path(mkdtemp(prefix="compass-board-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    board_server.write(folder)
    return folder


class BoardServer:
    """A server in C, used like `rpc.Server`. `options`: more of its command line; `folder`: where the program is."""

    def __init__(self, quota: Quota | None = None, *options: str, folder: Path | None = None) -> None:
        quota = quota or Quota()
        seconds = ("call", "session", "idle", "stall", "greeting")
        words = [f"--{name}-seconds={getattr(quota, f'{name}_seconds')}" for name in seconds]
        words += [f"--memory={quota.memory >> 20}", f"--disk={quota.disk >> 20}"]
        words += [f"--sessions={quota.sessions}", f"--strangers={quota.strangers}"]
        words += [f"--{name.replace('_', '-')}={value}" for name, value in PORTS.items()]
        split = [part for word in words for part in word.split("=")]
        command = [(folder or board_folder()) / "compass-rpcd", "--token-file", access.default_file(), *split, *options]
        access.tokens_of(make=True)
        self.proc = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.proc.stdout is not None
        said = self.proc.stdout.readline()
        assert said.startswith("listening on "), said
        self.host, _, port = said.removeprefix("listening on ").rpartition(":")
        self.port = int(port)

    def terminate(self) -> None:
        self.proc.terminate()
        assert self.proc.wait(PATIENCE) in (0, -9) and self.proc.stdout is not None
        self.proc.stdout.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()


def works(server: rpc.Server) -> None:
    """The server still serves."""
    with rpc.connect(server.host, server.port) as session:
        assert session.get_function("rpc.test.addone")(1) == 2


def tokens(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(0o600)
    return path


def slow(session: rpc.Session, seconds: float) -> None:
    """A call that the server stops after so long."""
    session.call("server.wait", [PATIENCE], seconds, PATIENCE)


def processes(server: rpc.Server) -> set[int]:
    """The children of a server."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            rest = path.read_text().rpartition(")")[2]
            if int(rest.split()[1]) == server.proc.pid:
                found.add(int(path.parent.name))
    return found

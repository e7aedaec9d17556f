"""Servers and trackers as objects of a program: each is a process of its own on this machine, which ends with the program."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING

from compass_core.errors import CompassError
from compass_runtime.rpc.errors import RPCError
from compass_runtime.rpc.limits import Quota

if TYPE_CHECKING:
    from typing_extensions import Self

_PROGRAM = Path(__file__).with_name("process.py")
_PYTHONS = (os.path.dirname(os.__file__), os.path.join(os.path.dirname(os.__file__), "lib-dynload"))
"""Where Python's own modules are, which are most of those that it loads: programs may have added many folders before these."""
_END_SECONDS = 5.0


class _Process:
    """A process of `process.py`: `host` and `port` are where it listens, `proc` is its handle."""

    def __init__(self, role: str, options: dict[str, object], callback: Callable[[], object] | None = None) -> None:
        self.host = str(options["host"])
        start = self._forked if callback is not None else self._spawned
        self.proc, said, self._hold = start(role, options, callback)
        self._end = weakref.finalize(self, _ended, self.proc, self._hold)
        answer = json.loads(said or '{"error": "it ended before it listened"}')
        if "error" in answer:
            self._end()
            kind = ValueError if answer.get("type") == "ValueError" else RPCError
            raise (
                kind(answer["error"])
                if kind is ValueError
                else RPCError(answer["error"], code=answer.get("code") or "rpc-connect", help=answer.get("help", ""))
            )
        self.port: int = answer["port"]
        self.stop_key: str = answer.get("stop_key", "")

    @staticmethod
    def _spawned(
        role: str, options: dict[str, object], callback: object
    ) -> tuple[subprocess.Popen[bytes] | _Forked, str, IO[bytes]]:
        search = sorted(sys.path, key=lambda folder: (not os.path.isabs(folder), folder not in _PYTHONS))
        command = [sys.executable, str(_PROGRAM), role, json.dumps(options), *search]
        proc = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        assert proc.stdout is not None
        assert proc.stdin is not None
        return proc, proc.stdout.readline().decode(), proc.stdin

    @staticmethod
    def _forked(
        role: str, options: dict[str, object], callback: Callable[[], object] | None
    ) -> tuple[subprocess.Popen[bytes] | _Forked, str, IO[bytes]]:
        """A copy of this process, which has the functions that the callback registers."""
        from compass_runtime.rpc.process import main

        hold, ours = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            with contextlib.suppress(BaseException):
                os.setsid()
                os.close(hold[1])
                os.close(ours[0])
                os.dup2(hold[0], 0)
                main(role, options, os.fdopen(ours[1], "w"), callback)
                status = 0
            os._exit(status)
        os.close(hold[0])
        os.close(ours[1])
        with os.fdopen(ours[0]) as lines:
            said = lines.readline()
        return _Forked(pid), said, os.fdopen(hold[1], "wb")

    def terminate(self) -> None:
        """Ends it, and all its sessions."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()


class _Forked:
    """What a program may ask of a process, for one that was forked."""

    stdout = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if found else None
        return self.returncode

    def wait(self, timeout: float) -> int:
        import time

        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("server", timeout)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, 9)


def _await_end(proc: subprocess.Popen[bytes] | _Forked) -> None:
    """Waits a while for the end of a process. The system tells it at once, where `wait` looks for it from time to time."""
    if proc.poll() is not None:
        return
    try:
        descriptor = os.pidfd_open(proc.pid)
    except OSError:  # no file is left to watch it with
        with contextlib.suppress(subprocess.TimeoutExpired):
            proc.wait(_END_SECONDS)
        return
    with open(descriptor, "rb", buffering=0) as end:
        watch = select.poll()  # which takes descriptors of any number
        watch.register(end, select.POLLIN)
        watch.poll(_END_SECONDS * 1000)


def _ended(proc: subprocess.Popen[bytes] | _Forked, hold: IO[bytes]) -> None:
    """Its end comes with that of what it reads; else it is killed."""
    with contextlib.suppress(OSError):
        hold.close()
    _await_end(proc)
    if proc.poll() is None:
        proc.kill()
        proc.wait(_END_SECONDS)
    if proc.stdout is not None:
        proc.stdout.close()


def _text(path: Path | str | None) -> str | None:
    return None if path is None else str(path)


class Server(_Process):
    """A server: `Server(key="board")`, then `connect(server.host, server.port, key="board")`.

    It listens on the first free port of `[port, port_end)`, on loopback; other addresses need `certificate` and `private_key`.
    `is_proxy`: host and port are a proxy's, to which it connects. `load_library`: shared libraries that it loads first, by their
    paths, as a list or with colons between them. `tracker_addr`: where it registers, under `key`; `custom_addr`: the address that it tells the tracker.
    `server_init_callback` is called in the server before it serves: what it registers (`register_func`) clients may call.
    `quota`: what sessions may take. `driver`: a driver's library (libaipudrv.so), which runs programs on a real NPU. `silent`: no log. `no_fork` and `timeout` have no effect: sessions are processes, and the
    socket that listens never waits. ValueError where no port is free, CompassError where it may not listen.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9091,
        port_end: int = 9199,
        is_proxy: bool = False,
        tracker_addr: tuple[str, int] | None = None,
        key: str = "",
        load_library: Sequence[str] | str | None = None,
        custom_addr: str | None = None,
        silent: bool = False,
        no_fork: bool = False,
        server_init_callback: Callable[[], object] | None = None,
        reuse_addr: bool = True,
        timeout: float | None = None,
        *,
        quota: Quota | None = None,
        token_file: Path | str | None = None,
        certificate: Path | str | None = None,
        private_key: Path | str | None = None,
        ca: Path | str | None = None,
        driver: str | None = None,
    ) -> None:
        options = {
            "host": host,
            "port": port,
            "port_end": port_end,
            "reuse": reuse_addr,
            "tracker": list(tracker_addr) if tracker_addr is not None else None,
            "key": key,
            "announced": custom_addr,
            "silent": silent,
            "quota": asdict(quota or Quota()),
            "token_file": _text(token_file),
            "certificate": _text(certificate),
            "private_key": _text(private_key),
            "ca": _text(ca),
            "driver": driver,
            "proxied": is_proxy,
            "libraries": load_library.split(":") if isinstance(load_library, str) else list(load_library or ()),
        }
        super().__init__("server", options, server_init_callback)


class Proxy(_Process):
    """A proxy: servers connect to it (`Server(host, port, is_proxy=True, key=...)`), clients as to a server. `timeout_client`,
    `timeout_server`: seconds that each waits for the other at most. `web_port`, `index_page` and `resource_files` are for devices in
    browsers, which there are none of: CompassError."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9091,
        port_end: int = 9199,
        web_port: int = 0,
        timeout_client: float = 600,
        timeout_server: float = 600,
        tracker_addr: tuple[str, int] | None = None,
        index_page: str | None = None,
        resource_files: Sequence[str] | None = None,
        silent: bool = False,
        *,
        token_file: Path | str | None = None,
        certificate: Path | str | None = None,
        private_key: Path | str | None = None,
        ca: Path | str | None = None,
    ) -> None:
        if web_port or index_page or resource_files:
            raise CompassError("a proxy serves no pages", code="rpc-call", help="web_port=0")
        options = {
            "host": host,
            "port": port,
            "port_end": port_end,
            "timeouts": [timeout_client, timeout_server],
            "tracker": list(tracker_addr) if tracker_addr is not None else None,
            "silent": silent,
            "token_file": _text(token_file),
            "certificate": _text(certificate),
            "private_key": _text(private_key),
            "ca": _text(ca),
        }
        super().__init__("proxy", options)


class Tracker(_Process):
    """A tracker: `Tracker()`, then `connect_tracker(tracker.host, tracker.port)`. `stop_key`: with which it can be ended."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9190,
        port_end: int = 9199,
        silent: bool = False,
        reuse_addr: bool = True,
        timeout: float | None = None,
        *,
        token_file: Path | str | None = None,
        certificate: Path | str | None = None,
        private_key: Path | str | None = None,
    ) -> None:
        options = {
            "host": host,
            "port": port,
            "port_end": port_end,
            "silent": silent,
            "token_file": _text(token_file),
            "certificate": _text(certificate),
            "private_key": _text(private_key),
        }
        super().__init__("tracker", options)

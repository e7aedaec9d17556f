"""One clang for all C that a process of tests compiles: it is loaded once and goes on in a child for each of them, which
saves the tests a sixth of clang's time. What it does is what a clang that is started does; where it cannot be had, or ends,
clang is started."""

from __future__ import annotations

import array
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from compass_core.hostcc import command
from compass_core.hostcc.clang import LARGE_PAGES

SOURCE = Path(__file__).with_suffix(".c")
_READY_SECONDS = 30.0


class ServedClang:
    """`run` in the place of `compass_core.hostcc.command.run`, which it asks for other programs than `program`. `folder`: where it
    puts its library."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder, self._started = str(program), folder, command.run
        self._names = {self._program, os.path.realpath(program)}
        self._lock, self._asked = threading.Lock(), False
        self._process: subprocess.Popen[bytes] | None = None
        self._calls: socket.socket | None = None

    def run(
        self,
        line: list[str],
        folder: Path,
        meanwhile: Callable[[], object] | None = None,
        seconds: float | None = None,
    ) -> command.Run:
        """The finished command, by the clang that is loaded, if there is one: that has as long as it takes."""
        called = self._called(line, folder) if line[0] in self._names else None
        if called is None:
            return self._started(line, folder, meanwhile, seconds)
        try:
            if meanwhile is not None:
                meanwhile()
        finally:
            output, status = (_content(descriptor) for descriptor in called)
        if not status:  # it ended before the child
            self.close()
            return self._started(line, folder, seconds=seconds)
        return command.Run(os.waitstatus_to_exitcode(*struct.unpack("i", status)), output.decode(errors="replace"))

    def close(self) -> None:
        """Ends the clang that is loaded."""
        with self._lock:
            if self._calls is not None and self._process is not None:
                self._calls.close()
                self._process.kill()  # a process that was forked may have the socket, too
                self._process.wait()
            self._calls = None

    @property
    def is_loaded(self) -> bool:
        """Whether there is a clang that waits for calls."""
        return self._calls is not None

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The clang that is or was loaded."""
        return self._process

    def _called(self, line: list[str], folder: Path) -> tuple[int, int] | None:
        """Where the output and the status of a call will be; None where there is nobody to be called."""
        with self._lock:
            if not self._asked:
                self._asked = True
                self._load()
            calls = self._calls
        if calls is None or "" in line:
            return None
        environment = LARGE_PAGES | os.environ
        words = [str(folder), *line, "", *(f"{name}={value}" for name, value in environment.items())]
        output, status = os.pipe(), os.pipe()
        given = array.array("i", (output[1], status[1])).tobytes()
        try:
            calls.sendmsg(
                [b"".join(os.fsencode(word) + b"\0" for word in words)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)]
            )
        except OSError:
            os.close(output[0])
            os.close(status[0])
            return None
        finally:
            os.close(output[1])
            os.close(status[1])
        return output[0], status[0]

    def _load(self) -> None:
        """Start the clang that waits, where that can be done here: with another C library or without its headers it is not."""
        library = self._folder / "served_clang.so"
        options = ("-O1", "-shared", "-fPIC", "-nostdlib", "-fuse-ld=lld")
        made = self._started([self._program, *options, str(SOURCE), "-o", str(library)], self._folder)
        if made.status != 0:
            return
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        served = {"SERVED_PROGRAM": os.path.realpath(self._program), "SERVED_SOCKET": str(its.fileno())}
        with its:
            self._process = subprocess.Popen(
                [self._program, "--version"],
                env={**LARGE_PAGES, **os.environ, **served, "LD_PRELOAD": str(library), "LD_BIND_NOW": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(its.fileno(),),
            )
        mine.settimeout(_READY_SECONDS)
        try:
            ready = mine.recv(16) == b"ready"
        except OSError:  # too late, or gone
            ready = False
        if ready:
            mine.settimeout(None)
            self._calls = mine
        else:
            mine.close()
            self._process.kill()
            self._process.wait()


def _content(descriptor: int) -> bytes:
    """All that is written to a pipe."""
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()

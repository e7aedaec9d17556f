"""The compiler and the linker of all that a process of tests compiles: each is loaded once and goes on in a child for each call,
which saves the tests a sixth of clang's time. What they do is what programs that are started do; where one cannot be had, or
ends, it is started."""

from __future__ import annotations

import array
import os
import select
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compass_core.confine import Limits, Permissions, child, parent
from compass_core.hostcc import command
from compass_core.hostcc.clang import ALLOCATION

SOURCE = Path(__file__).with_suffix(".c")
_READY_SECONDS = 30.0


class Loader:
    """The library that makes a program wait for calls, built with `clang` into `folder` when it is first needed."""

    def __init__(self, clang: Path, folder: Path) -> None:
        self._clang, self._library, self._made = str(clang), folder / "served.so", command.run
        self._lock = threading.Lock()
        self._status: int | None = None

    def library(self) -> Path | None:
        """The library; None with another C library or without its headers."""
        options = ("-O1", "-shared", "-fPIC", "-nostdlib", "-fuse-ld=lld")
        with self._lock:
            if self._status is None:
                line = [self._clang, *options, str(SOURCE), "-o", str(self._library)]
                self._status = self._made(line, self._library.parent).status
            return self._library if self._status == 0 else None


class Served:
    """`run` in the place of `compass_core.hostcc.command.run`, which it asks for other programs than `program`, and `confined` in
    the place of the function of `compass_core.confine.parent` that starts a confined program."""

    def __init__(self, program: Path, loader: Loader) -> None:
        self._program, self._loader, self._started, self._start = str(program), loader, command.run, parent._started
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
        """The finished command, by the program that is loaded, if there is one: that has as long as it takes."""
        called = self._called(line, folder)
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
        return command.Run(_exit_status(status), output.decode(errors="replace"))

    def confined(
        self,
        means: str,
        line: Sequence[str],
        source: int,
        permissions: Permissions,
        limits: Limits,
        environment: Mapping[str, str],
    ) -> Confined | subprocess.Popen[bytes]:
        """The program confined by Landlock, with the descriptor `source` as its stdin; by other means, and where it cannot be, it
        is started."""
        given = (means, line, source, permissions, limits, environment)
        if means != "landlock" or not line or line[0] not in self._names or not self._is_served():
            return self._start(*given)
        try:
            rules = child.ruleset(permissions.files, permissions.folders, permissions.programs)
        except (child.Refused, OSError):
            return self._start(*given)
        steps = os.memfd_create("filter", os.MFD_CLOEXEC)
        try:
            os.write(steps, child.call_filter())
            words = ["/", *line, "", *_variables(environment), "", str(limits.seconds), str(limits.memory)]
            called = self._sent(words, 2, source, rules, steps)
        finally:
            os.close(rules)
            os.close(steps)
        return self._start(*given) if called is None else Confined(self, *called)

    def close(self) -> None:
        """Ends the program that is loaded, and what is confined."""
        with self._lock:
            if self._calls is not None and self._process is not None:
                self._calls.close()
                self._process.kill()  # a process that was forked may have the socket, too
                self._process.wait()
            self._calls = None

    @property
    def is_loaded(self) -> bool:
        """Whether there is a program that waits for calls."""
        return self._calls is not None

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The program that is or was loaded."""
        return self._process

    def _called(self, line: list[str], folder: Path) -> list[int] | None:
        """Where the output and the status of a call will be; None where there is nobody to be called."""
        if line[0] not in self._names or "" in line or not self._is_served():
            return None
        return self._sent([str(folder), *line, "", *_variables(ALLOCATION | os.environ)], 1)

    def _is_served(self) -> bool:
        with self._lock:
            if not self._asked:
                self._asked = True
                self._load()
            return self._calls is not None

    def _sent(self, words: list[str], streams: int, *more: int) -> list[int] | None:
        """The descriptors of what a call writes to so many streams, and of its status; it gets `more`. None where there is nobody
        to be called."""
        pipes = [os.pipe() for _ in range(1 + streams)]
        given = array.array("i", [*(write for _, write in pipes), *more]).tobytes()
        try:
            if self._calls is None:
                raise BrokenPipeError
            self._calls.sendmsg(
                [b"".join(os.fsencode(word) + b"\0" for word in words)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)]
            )
        except OSError:
            for read, _ in pipes:
                os.close(read)
            return None
        finally:
            for _, write in pipes:
                os.close(write)
        return [read for read, _ in (*pipes[1:], pipes[0])]

    def _load(self) -> None:
        """Start the program that waits, where that can be done here."""
        library = self._loader.library()
        if library is None or not os.path.exists(self._program):
            return
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        served = {"SERVED_PROGRAM": os.path.realpath(self._program), "SERVED_SOCKET": str(its.fileno())}
        with its:
            self._process = subprocess.Popen(
                [self._program, "--version"],
                env={**ALLOCATION, **os.environ, **served, "LD_PRELOAD": str(library), "LD_BIND_NOW": "1"},
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


class Confined:
    """What `compass_core.confine.parent` asks of a process, of a confined call."""

    def __init__(self, served: Served, output: int, messages: int, status: int) -> None:
        self._served, self.returncode, self._has_ended = served, -1, False
        self.stdout, self.stderr, self._status = (os.fdopen(d, "rb", 0) for d in (output, messages, status))

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr, self._status):
            stream.close()

    def wait(self, timeout: float) -> None:
        """Waits until it has ended. TimeoutExpired after so many seconds."""
        if not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired([], timeout)
        if status := self._status.read():
            self.returncode = _exit_status(status)
        self._has_ended = True

    def kill(self) -> None:
        """Ends it, with the program that it goes on from: a call has no name by which it alone could be ended."""
        if not self._has_ended:
            self._served.close()


def _variables(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]


def _exit_status(status: bytes) -> int:
    """The exit status, or minus the signal, of what waitpid() told."""
    return os.waitstatus_to_exitcode(*struct.unpack("i", status))


def _content(descriptor: int) -> bytes:
    """All that is written to a pipe."""
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()

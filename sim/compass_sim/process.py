"""The worker's process: started with three descriptors, ended with its parent, and never shared with a forked child."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import weakref
from collections.abc import Callable
from typing import final

_FIRST = 10
"""Our descriptors begin here: what a program opens in place of a closed stdin, stdout or stderr is never one of them."""
_SOCKET, _SHARED, _LIFELINE = 3, 4, 5
"""Their numbers in the engine (sim/engine/wire.h)."""
_RESET = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores, which the engine is not to inherit."""


@final
class DeviceFile:
    """A new file of device memory with `size` bytes, whose size is sealed.

    It is closed when nobody refers to it any more: while one thread writes, no other can close it, and give its number to
    another file.
    """

    def __init__(self, size: int) -> None:
        self.number = _sealed(size)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if "number" in vars(self):
            close(self.number)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copies bytes to `address`, without a page fault for each page that nobody has used yet."""
        left = memoryview(data)
        while left:
            done = os.pwrite(self.number, left, address)
            left, address = left[done:], address + done


def _sealed(size: int) -> int:
    made = os.memfd_create("compass-device", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    shared = _moved(made)
    os.ftruncate(shared, size)
    fcntl.fcntl(shared, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return shared


def _moved(file: int) -> int:
    """The same open file above the standard streams."""
    try:
        return fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _FIRST)
    finally:
        os.close(file)


@final
class EngineProcess:
    """A running engine: `socket` to talk to it, `pid`; `status` of its end, as `os.waitpid` tells it, once it is known.

    `lost`: this process is a forked child of the one that started it, and has nothing to do with it.

    It ends when this process ends, whatever it does: the system kills it when the last descriptor of the other end of
    its lifeline is closed.
    """

    def __init__(self, command: list[str], shared: int, new_session: bool) -> None:
        """OSError when the program cannot be started."""
        self.status: int | None = None
        self.lost = False
        ours, theirs = (_moved(end.detach()) for end in socket.socketpair())
        lifeline, self._lifeline = map(_moved, os.pipe())
        self.socket = socket.socket(fileno=ours)
        self.socket.setblocking(False)
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
            *((os.POSIX_SPAWN_DUP2, 0, stream) for stream in (1, 2)),
            (os.POSIX_SPAWN_DUP2, theirs, _SOCKET),
            (os.POSIX_SPAWN_DUP2, shared, _SHARED),
            (os.POSIX_SPAWN_DUP2, lifeline, _LIFELINE),
        ]
        try:
            self.pid = os.posix_spawn(
                command[0], command, {}, file_actions=actions, setsid=new_session, setsigdef=_RESET
            )
        except OSError:
            self.let_go()
            raise
        finally:
            os.close(theirs)
            os.close(lifeline)
        _running.add(self)

    def let_go(self) -> None:
        """Closes this process's descriptors."""
        self.socket.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def end(self) -> None:
        """Ends the process at once, which has nothing to save, and waits until it is gone."""
        self.let_go()
        if self.lost or self.poll() is not None:
            return
        os.kill(self.pid, signal.SIGKILL)
        self._wait(0)

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        if self.status is None:
            self._wait(os.WNOHANG)
        return self.status

    def _wait(self, options: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:  # the program waits for all its children, or ignores their ends
            pid, status = self.pid, 0
        if pid:
            self.status = os.waitstatus_to_exitcode(status)


_running: weakref.WeakSet[EngineProcess] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """A forked child has nothing to do with its parent's workers: they end with the parent, not with the child."""
    for process in list(_running):
        process.let_go()
        process.lost = True
    _running.clear()


os.register_at_fork(after_in_child=_leave_to_parent)

"""Python for the commands of pages: a process imports what most of them import, and goes on in a child for each call, as the
compiler of the tests does (`tests/served.py`). What a program needs that is started is tested where it is started.

A call is a packet on the socket whose number is in SERVED_PYTHON: folder, arguments and variables, with the descriptors of stdin,
stdout and stderr, and of a pipe to which the exit status is written. This file is what waits, and what calls.
"""

from __future__ import annotations

import _socket  # `socket` doubles the time that a call takes to start
import array
import marshal
import os
import sys

_VARIABLE, _WAITING = "SERVED_PYTHON", "--waiting"
_LARGEST = 1 << 17
_DESCRIPTORS = 4


class ServedPython:
    """A process that has imported `modules`. `command` is what a shell calls in the place of Python, with the variables of
    `environment` and the open descriptors `passed`."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        import subprocess

        self._calls, its = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        line = [sys.executable, __file__, _WAITING, str(its.fileno()), *modules]
        self._process = subprocess.Popen(line, pass_fds=(its.fileno(),), stdin=subprocess.DEVNULL)
        its.close()
        self.command = f'"{sys.executable}" -I -S "{__file__}"'
        self.passed = (self._calls.fileno(),)
        self.environment = {_VARIABLE: str(self._calls.fileno())}

    def close(self) -> None:
        """Ends the process."""
        self._calls.close()
        self._process.wait()


def _call(arguments: list[str]) -> None:
    """Ends with the exit status of Python with `arguments`; where nobody waits, or options come first, it is started."""
    number = os.environ.pop(_VARIABLE, None)
    if number is None or (arguments[:1] not in (["-c"], ["-m"]) and "".join(arguments[:1])[:1] in ("", "-")):
        os.execv(sys.executable, [sys.executable, *arguments])
    ended, tells = os.pipe()
    descriptors = array.array("i", [0, 1, 2, tells]).tobytes()
    calls = _socket.socket(fileno=int(number))
    packet = marshal.dumps((os.getcwd(), arguments, dict(os.environ)))
    calls.sendmsg([packet], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    os.close(tells)
    os._exit(int(os.read(ended, 16) or b"1"))  # nobody tells who was killed


def _wait(number: int, modules: list[str]) -> None:
    """Waits for calls, until nobody can call any more."""
    import gc
    import importlib
    import signal

    for name in modules:
        importlib.import_module(name)
    gc.freeze()  # so that pages of memory stay shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    calls = _socket.socket(fileno=number)
    room = _socket.CMSG_SPACE(_DESCRIPTORS * array.array("i").itemsize)
    while True:
        packet, more, *_ = calls.recvmsg(_LARGEST, room, _socket.MSG_CMSG_CLOEXEC)
        if not packet:
            return
        descriptors = array.array("i", more[0][2])
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            calls.close()
            _become(packet, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _become(packet: bytes, descriptors: array.array[int]) -> None:
    """Goes on as Python with the folder, arguments, variables and streams of a call. The end is Python's, too, but leaves memory
    to the system."""
    import atexit
    import threading

    *streams, tells = descriptors
    for stream, descriptor in enumerate(streams):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    folder, arguments, variables = marshal.loads(packet)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    status = 0
    try:
        _run(arguments)
    except SystemExit as end:
        status = end.code & 255 if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(tells, b"%d" % status)
    os._exit(status)


def _run(arguments: list[str]) -> None:
    """What `python` does with a piece of text, a module or a file, and its arguments."""
    import runpy
    import types

    first, *rest = arguments
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    if first == "-m":
        sys.argv, sys.path[0] = ["-m", *rest[1:]], os.getcwd()
        runpy._run_module_as_main(rest[0])
        return
    if first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        code = compile(rest[0], "<string>", "exec", dont_inherit=True)
    else:
        sys.argv, sys.path[0] = [first, *rest], os.path.dirname(os.path.realpath(first))
        module.__file__ = os.path.abspath(first)
        with open(first, "rb") as file:
            code = compile(file.read(), module.__file__, "exec", dont_inherit=True)
    exec(code, vars(module))  # noqa: S102


if __name__ == "__main__":
    if sys.argv[1:2] == [_WAITING]:
        _wait(int(sys.argv[2]), sys.argv[3:])
    else:
        _call(sys.argv[1:])

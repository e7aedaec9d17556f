"""Processes of this machine.

Each is a Python program of its own at the other end of a pair of sockets without a name, so that nobody else can reach it. It
is started by the path of its file: `python -c` and `python -m` would look for modules in the current folder first, where
somebody else's may lie beside a model.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any

from compass_core.errors import CompassError
from compassc.cluster import ATTEMPTS, Cluster, Lost, Q, R, S, identity, outcome

_PROGRAM = Path(__file__).with_name("worker.py")
_END_SECONDS = 5
"""So long a process may take for its end before it is killed."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""What NumPy asks for the number of its threads: one in each process, unless the user says otherwise."""


@contextmanager
def processes(jobs: int) -> Iterator[Cluster]:
    """`jobs` processes that end with the block."""
    made = _Processes(jobs)
    try:
        yield made
    finally:
        made.close()


class Worker:
    """A process, and what it has of the parts: nothing, or one."""

    def __init__(self) -> None:
        self.link, theirs = Pipe()
        command = [sys.executable, str(_PROGRAM), str(theirs.fileno()), *_search_path()]
        environment = dict.fromkeys(_THREADS, "1") | os.environ
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a new process waits before it hears Ctrl-C
        try:
            with theirs:
                fds = (theirs.fileno(),)
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=fds, env=environment)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._shared: bytes | None = None

    def send(self, shared: bytes, part: bytes) -> None:
        """Gives it a part. That it has ended is found where its answer is asked for."""
        with suppress(OSError):
            self.link.send((None if self._shared is shared else shared, part))
            self._shared = shared

    def answer(self) -> tuple[str, object, str] | None:
        """What it says of its part; None when it has ended."""
        try:
            answer: tuple[str, object, str] = self.link.recv()
            return answer
        except (EOFError, OSError):
            return None

    def kill(self) -> None:
        """Its end at once, whatever it does."""
        self.link.close()
        self._process.kill()
        self._process.wait()

    def close(self) -> str:
        """Its end. The process of a part that is not done is ended in the middle. How it ended, in words."""
        self.link.close()
        self._process.terminate()
        try:
            status = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        return f"its process ended by signal {-status}" if status < 0 else f"its process ended with status {status}"


def _search_path() -> list[str]:
    """Where a process finds modules: where this one does, but last in the current folder (`''`), if at all."""
    return sorted(sys.path, key=lambda folder: not os.path.isabs(folder))


class _Processes:
    """Each process has one part at a time, so that it is known whose part ends it."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._idle: list[Worker] = []
        self._sent: tuple[object, bytes] | None = None
        """What was shared last, and its bytes."""

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def run(self, function: Callable[[S, Q], R], shared: S, parts: Iterable[Q]) -> Iterator[tuple[int, R | Lost]]:
        if self._sent is None or self._sent[0] is not shared:
            self._sent = shared, packed(shared)
        left = enumerate(parts)
        ahead: deque[tuple[int, bytes, int]] = deque()
        """Parts that can be given: number, bytes, and how many processes were lost with them."""
        busy: dict[Any, tuple[Worker, int, bytes, int]] = {}
        more = True
        try:
            while more or ahead or busy:
                while ahead and len(busy) < self.jobs:
                    number, data, lost = ahead.popleft()
                    worker = self._idle.pop() if self._idle else Worker()
                    busy[worker.link] = worker, number, data, lost
                    worker.send(self._sent[1], data)
                makes = more and len(ahead) < self.jobs
                ready = wait(list(busy), 0 if makes else None)
                if makes and not ready:
                    more = (one := next(left, None)) is not None
                    ahead += [] if one is None else [(one[0], packed((identity(), function, one[1])), 0)]
                for link in ready:
                    worker, number, data, lost = busy[link]
                    answer = worker.answer()
                    del busy[link]
                    if answer is not None:
                        self._idle.append(worker)
                        yield number, outcome_of(answer)
                    elif (why := worker.close()) and lost + 1 >= ATTEMPTS:
                        yield number, Lost(why)
                    else:
                        ahead.appendleft((number, data, lost + 1))
        finally:
            for worker, *_ in busy.values():
                worker.close()


def packed(content: object) -> bytes:
    """What goes to a process, as bytes. CompassError for what cannot go to another process."""
    try:
        return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise _unknown(str(error)) from None


def _unknown(message: str) -> CompassError:
    return CompassError(
        f"other processes cannot do this work: {message}",
        code="work-not-sent",
        help="define what the work needs in a module or a file, not in a function, a notebook or the program itself",
    )


class _InWorker(Exception):
    """Where a worker was when something was raised there."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


def outcome_of(answer: tuple[str, Any, str]) -> Any:
    """The outcome in an answer of a process; what was raised there is raised here."""
    kind, content, place = answer
    if kind == "raised":
        raise content from _InWorker(place)
    if kind == "unknown":
        raise _unknown(content)
    return outcome((kind, content), "process")

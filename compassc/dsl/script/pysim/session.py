"""The TECs of a PySim run: threads, the barrier they meet at, and what each of them owns.

A kernel runs once per TEC. Every thread has its own `Tec` in `dispatch.LOCAL.tec`, so several PySim runs, and parsing
in other threads, do not disturb each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import numpy as np

from compass_core.errors import CompassError, Note, Span
from compass_core.targets import Target
from compassc.ops.core import TARGET

from ..dispatch import LOCAL, PySimInfo
from .memory import Storage

_SINGLE_THREAD_VARIABLES = ("CPS_TVM_PYSIM_SINGLE_THREAD", "AIPU_TVM_PYSIM_SINGLE_THREAD")


class Aborted(BaseException):
    """Unwinds a TEC because another one failed."""


class TecBarrier:
    """Meeting point of the TECs. One that has left counts as arrived, as the implicit barrier at each exit of a kernel
    does; when one fails the others are released with `Aborted`."""

    def __init__(self, parties: int) -> None:
        self._condition = threading.Condition()
        self._active = parties
        self._waiting = 0
        self._generation = 0
        self._aborted = False

    def wait(self) -> None:
        with self._condition:
            generation = self._generation
            self._waiting += 1
            self._release_when_complete()
            while self._generation == generation and not self._aborted:
                self._condition.wait()
            if self._aborted:
                raise Aborted

    def leave(self) -> None:
        with self._condition:
            self._active -= 1
            self._release_when_complete()

    def abort(self) -> None:
        with self._condition:
            self._aborted = True
            self._condition.notify_all()

    def _release_when_complete(self) -> None:
        if self._waiting and self._waiting >= self._active:
            self._waiting = 0
            self._generation += 1
            self._condition.notify_all()


class PyEvent:
    """An event of one TEC. Asynchronous work is queued on it and done when somebody waits, so that a kernel that
    forgets to wait sees the old data every time."""

    __slots__ = ("allocated", "index", "pending")

    def __init__(self, index: int) -> None:
        self.index = index
        self.allocated = False
        self.pending: list[Callable[[], None]] = []

    def finish(self) -> None:
        pending, self.pending = self.pending, []
        for work in pending:
            work()

    def __repr__(self) -> str:
        return f"event {self.index}"


class Tec:
    """What one TEC owns while it runs."""

    __slots__ = ("events", "id", "session", "shared_count")

    def __init__(self, id: int, session: Session) -> None:
        self.id = id
        self.session = session
        self.events = [PyEvent(i) for i in range(session.target.events)]
        self.shared_count = 0

    def finish_events(self) -> None:
        for event in self.events:
            if event.pending:
                event.finish()


class Session(PySimInfo):
    """One run of a kernel on all TECs."""

    def __init__(self, name: str, target: Target) -> None:
        self.name = name
        self.target = target
        self.local_size = target.tecs
        self.is_multi_thread = not any(os.environ.get(v, "").upper() == "TRUE" for v in _SINGLE_THREAD_VARIABLES)
        self.barrier = TecBarrier(self.local_size)
        self._shared: list[Storage] = []
        self._lock = threading.Lock()
        self._errors: dict[int, BaseException] = {}

    def need_threads(self, what: str) -> None:
        """Refuse what cannot work when the TECs run one after another."""
        if not self.is_multi_thread:
            raise CompassError(
                f"{what} cannot run in single-thread mode",
                code="single-thread",
                help=f"unset {' and '.join(_SINGLE_THREAD_VARIABLES)}",
            )

    def shared_storage(self, tec: Tec, size: int, name: str) -> Storage:
        """The storage of a TEC's next shared allocation: all TECs get the same one."""
        self.need_threads("a shared allocation")
        with self._lock:
            index = tec.shared_count
            tec.shared_count += 1
            if index == len(self._shared):
                self._shared.append(Storage.fresh(size, name))
            found = self._shared[index]
        if found.data.size != size:
            raise CompassError(
                f"shared allocation {index} has {size} bytes in this TEC and {found.data.size} in another",
                code="shared",
                help="every TEC must execute the same shared allocations in the same order",
            )
        return found

    def run(self, body: Callable[[Tec], None]) -> None:
        """Run the kernel on every TEC; raises the error of the lowest TEC that failed."""
        if LOCAL.tec is not None:
            raise CompassError("an entry function cannot be started from inside a running kernel", code="pysim")
        if self.is_multi_thread:
            self._run_threads(body)
        else:
            for id in range(self.local_size):
                self._run_tec(Tec(id, self), body)
                if self._errors:
                    break
        for id in sorted(self._errors):
            raise located(self._errors[id], id)

    def _run_threads(self, body: Callable[[Tec], None]) -> None:
        threads = [
            threading.Thread(target=self._run_tec, args=(Tec(id, self), body), name=f"TEC{id}", daemon=True)
            for id in range(self.local_size)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self.barrier.abort()
            raise

    def _run_tec(self, tec: Tec, body: Callable[[Tec], None]) -> None:
        LOCAL.tec = tec
        token = TARGET.set(self.target.version)
        try:
            with np.errstate(all="ignore"):
                body(tec)
                tec.finish_events()
            self.barrier.leave()
        except Aborted:
            pass  # the TEC that caused it has the error
        except BaseException as e:  # noqa: BLE001  handed to the caller's thread, whatever it is
            self._errors[tec.id] = e
            self.barrier.abort()
        finally:
            LOCAL.tec = None
            TARGET.reset(token)


def located(error: BaseException, tec: int) -> BaseException:
    """The error of a TEC, with the TEC's name and the kernel line it comes from."""
    text = f"raised by TEC{tec} of a PySim run"
    if isinstance(error, CompassError):
        error.notes = (*error.notes, Note(text))
        error.span = error.span or kernel_span(error)
    elif hasattr(error, "add_note"):
        error.add_note(text)
    return error


def kernel_span(error: BaseException) -> Span | None:
    """The innermost line of user code in an error's traceback."""
    own = os.sep + "compassc" + os.sep
    found = None
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if own not in name and not name.startswith("<") and os.sep + "threading.py" not in name:
            found = (name, trace)
        trace = trace.tb_next
    if found is None:
        return None
    name, trace = found
    positions = getattr(trace.tb_frame.f_code, "co_positions", None)
    if positions is None:
        return Span(name, trace.tb_lineno)
    line, end_line, col, end_col = list(positions())[trace.tb_lasti // 2]
    if line is None or col is None:
        return Span(name, trace.tb_lineno)
    return Span(name, line, col + 1, end_line or 0, (end_col or 0) + 1)

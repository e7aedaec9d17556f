"""The TECs of a PySim run: threads, the barrier they meet at, and what each of them owns.

A kernel runs once per TEC. Every thread has its own `Tec` in `dispatch.LOCAL.tec`, so several PySim runs, and parsing
in other threads, do not disturb each other.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import math
import os
import queue
import random
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from compass_core import switches
from compass_core.errors import CompassError, Note
from compass_core.targets import Target
from compassc.ops.core import TARGET, Op

from ..language.dispatch import LOCAL, PySimInfo
from ..language.info import CompassInfo
from ..settings.options import control_options
from .addresses import Addresses
from .barrier import Aborted, TecBarrier
from .checks import Doubt, Races, StorageMonitor, chosen, prepare_plans, settle
from .debug import breakpoints
from .debug_turns import give_turn
from .impl import Side, pysim_impl
from .memory import Storage
from .source_lines import located, user_span
from .tiles import PyMachine
from .vector_iterations import VectorTurns

_SINGLE_THREAD_VARIABLES = ("CPS_TVM_PYSIM_SINGLE_THREAD", "AIPU_TVM_PYSIM_SINGLE_THREAD")
_GRACE = 1.0
"""Seconds that running TECs have to end by themselves after another one has failed."""
UNWRITTEN = frozenset(("warn", "uninit", "partial"))
"""The checks of reads of what nobody wrote."""
_LONGEST_PAUSE = 0.02
"""Seconds of the longest random pause."""


def _single_thread() -> bool:
    """Whether the TECs run one after another: our switch, or a variable of the earlier toolchains."""
    legacy = any(os.environ.get(v, "").upper() == "TRUE" for v in _SINGLE_THREAD_VARIABLES)
    if legacy:
        _warn_of_single_thread()
    return legacy or switches.PYSIM_SINGLE_THREAD.get()


@functools.cache
def _warn_of_single_thread() -> None:
    """Says once what a variable of the earlier toolchains does."""
    logging.getLogger("Compass").warning("PySim runs the TECs one after another: data races between them do not show")


def _pause_seed() -> int:
    """The seed of random pauses, 0 for none: our switch, or the option random_pause of the earlier toolchains."""
    options = control_options()
    wanted = options.is_random_pause and (options.random_seed or random.randrange(1, 1 << 32))
    return switches.PYSIM_PAUSE.get() or int(wanted)


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
        state = f"{len(self.pending)} operations pending" if self.pending else "idle" if self.allocated else "free"
        return f"event {self.index} ({state})"


class Tec:
    """The state of one TEC while it runs."""

    __slots__ = ("_events", "doubts", "id", "phase", "random", "session", "shared_count", "tiles", "vector")

    machine = PyMachine()

    def __init__(self, id: int, session: Session) -> None:
        self.id = id
        self.session = session
        self._events: list[PyEvent] = []
        self.shared_count = 0
        self.phase = 0  # barriers passed
        self.tiles: list[Storage] | None = None  # that copies of this turn of a pipelined loop touched
        self.vector: VectorTurns | None = None  # of the vectorized loop that runs, where its turns are watched
        self.doubts: list[Doubt] = []  # writes that may turn out to be races
        self.random = random.Random(f"{session.pause_seed} {id}") if session.pause_seed else None

    @property
    def events(self) -> list[PyEvent]:
        """Its events, which are made when a kernel asks for one."""
        if not self._events:
            self._events = [PyEvent(i) for i in range(self.session.target.events)]
        return self._events

    @staticmethod
    def python_side(op: Op) -> Side:
        """The function that does an operation here."""
        return pysim_impl(op)

    def forget_tiles(self) -> None:
        """The end of a turn of a pipelined loop: checks take what is in its tiles as never written."""
        while self.tiles:
            self.session.forgotten(self.tiles.pop())

    def finish_events(self) -> None:
        for event in self._events:
            if event.pending:
                event.finish()


class Session(PySimInfo):
    """One run of a kernel on all TECs."""

    def __init__(
        self,
        name: str,
        target: Target,
        output_dir: Path | None = None,
        group: int = 0,
        beside: dict[tuple[int, int], Races] | None = None,
    ) -> None:
        """`beside`: the accesses of groups that run beside this one, to which it adds its own."""
        self.name = name
        self._beside = beside
        self.group = group  # of the TECs: the core that they belong to
        self.target = target
        self.output_dir = None if output_dir is None else output_dir / "runtime" / "pysim"
        self.local_size = target.tecs
        self.atomic = threading.Lock()  # held by atomic operations on memory
        self.is_multi_thread = not _single_thread()
        self.checks = chosen()
        self.addresses = Addresses()
        self.warned: set[str] = set()  # the places of warnings that were given
        prepare_plans(self.checks)
        self.pause_seed = _pause_seed() if self.is_multi_thread else 0
        self.barrier = TecBarrier(self.local_size, in_order=self.is_multi_thread and "race" in self.checks)
        self.limit = switches.PYSIM_TIMEOUT.get()
        self._shared: list[Storage] = []
        self._lock = threading.Lock()
        self._errors: dict[int, BaseException] = {}
        self._waiting: deque[Tec] = deque()  # that have yet to begin
        self._threads: list[threading.Thread] = []
        self._news: queue.SimpleQueue[int] = queue.SimpleQueue()  # 1 of a thread that has ended, 0 of a TEC that failed
        self._races: dict[tuple[int, int], Races] = {}
        self._monitors: weakref.WeakSet[StorageMonitor] = weakref.WeakSet()
        self._watching = threading.Lock()

    @property
    def cps_info(self) -> CompassInfo:
        """The target."""
        return CompassInfo.get(self.target.name)

    @property
    def thread_local_data(self) -> Tec:
        """The TEC that this thread plays."""
        tec: Tec = LOCAL.tec
        return tec

    def need_threads(self, what: str) -> None:
        """Refuse what cannot work when the TECs run one after another."""
        if not self.is_multi_thread:
            raise CompassError(
                f"{what} cannot run in single-thread mode",
                code="single-thread",
                help=f"unset {', '.join((switches.PYSIM_SINGLE_THREAD.variable, *_SINGLE_THREAD_VARIABLES))}",
            )

    def shared_storage(self, tec: Tec, size: int, name: str) -> Storage:
        """The storage of a TEC's next shared allocation: all TECs get the same one."""
        self.need_threads("a shared allocation")
        with self._lock:
            index = tec.shared_count
            tec.shared_count += 1
            if index == len(self._shared):
                self._shared.append(self.watched(Storage.fresh(size, name), True, True))
            found = self._shared[index]
        if found.data.size != size:
            raise CompassError(
                f"shared allocation {index} has {size} bytes in this TEC and {found.data.size} in another",
                code="shared",
                help="every TEC must execute the same shared allocations in the same order",
            )
        self.pause(tec)
        return found

    def watched(self, storage: Storage, fresh: bool, is_shared: bool) -> Storage:
        """A storage with the checks of this run. `fresh`: nothing was written yet; `is_shared`: TECs share it."""
        uninit = fresh and bool(self.checks & UNWRITTEN)
        races = []
        if is_shared and "race" in self.checks:
            key = (storage.data.ctypes.data, storage.data.size)
            races.append(self._races.setdefault(key, Races(lambda: storage.name, storage.data)))
            if self._beside is not None and not fresh:
                races.append(self._beside.setdefault(key, Races(lambda: storage.name, storage.data, "group")))
        if (uninit or "race" in self.checks) and storage.data.size:
            storage.watch = StorageMonitor(storage, self.checks, fresh=uninit, races=races)
            with self._watching:
                self._monitors.add(storage.watch)
        return storage

    def monitors(self) -> list[StorageMonitor]:
        """Those of all storages that are watched."""
        with self._watching:
            return list(self._monitors)

    def forgotten(self, storage: Storage) -> None:
        """Take a storage as never written from now on."""
        if storage.watch is not None and self.checks & UNWRITTEN:
            storage.watch.forget()
        else:
            self.watched(storage, True, False)

    def meet(self, tec: Tec) -> None:
        """The barrier, for one TEC."""
        settle(tec)
        give_turn()
        self.begin_next()
        self.barrier.wait(tec.id)
        tec.phase += 1
        self.pause(tec)

    def pause(self, tec: Tec) -> None:
        """A pause as long as chance and the seed want, so that TECs meet in many orders."""
        if tec.random is not None:
            time.sleep(tec.random.uniform(0.0, _LONGEST_PAUSE))

    # ------------------------------------------------------------------------------------------- running

    def run(self, body: Callable[[Tec], None]) -> None:
        """Run the kernel on every TEC; raises the error of the lowest TEC that failed."""
        if LOCAL.tec is not None:
            raise CompassError(
                "an entry function cannot be started from inside a running kernel",
                code="pysim",
                help="call it as a sub-function, from a kernel",
            )
        with breakpoints():
            if self.is_multi_thread:
                self._run_threads(body)
            else:
                self._run_here(body)
        for id in sorted(self._errors):
            raise located(self._errors[id], id)

    def _run_here(self, body: Callable[[Tec], None]) -> None:
        """One TEC after another in this thread."""
        timer = threading.Timer(self.limit, self._expire, ([threading.current_thread()],)) if self.limit else None
        if timer is not None:
            timer.start()
        try:
            for id in range(self.local_size):
                self._run_tec(Tec(id, self), body)
                if self._errors:
                    break
        finally:
            if timer is not None:
                timer.cancel()

    def _expire(self, threads: list[threading.Thread]) -> None:
        """The time is over: stop the TECs, and say where each one was."""
        frames = sys._current_frames()
        places = {thread.name: user_span(frames.get(thread.ident or 0)) for thread in threads if thread.is_alive()}
        notes = [Note(f"{name} was here", span) for name, span in places.items() if span is not None]
        self._errors[0] = CompassError(
            f"the kernel {self.name} did not end within {self.limit:g} s in PySim",
            next(filter(None, places.values()), None),
            code="pysim-timeout",
            notes=tuple(notes[1:]),
            help=f"look for a loop that does not end; {switches.PYSIM_TIMEOUT.variable} is the limit",
        )
        self._stop(threads, None)

    def _run_threads(self, body: Callable[[Tec], None]) -> None:
        """The TECs in threads, side by side where it matters: a thread takes one after another, for many kernels end sooner than a
        thread begins. Others begin where a TEC waits for them, or runs for longer than Python lets a thread run."""
        self._waiting.extend(Tec(id, self) for id in range(self.local_size))
        self._body = body
        for _ in range(self.local_size if self.pause_seed else 1):
            self.begin_next()
        try:
            self._wait()
        except KeyboardInterrupt as e:
            self._stop(self._threads, e)
            raise

    def begin_next(self) -> None:
        """Begin the next TEC in a thread of its own, if one has yet to begin."""
        tec = self._next()
        if tec is not None:
            thread = threading.Thread(target=self._play, args=(tec,), name=f"TEC{tec.id}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _next(self) -> Tec | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def _play(self, tec: Tec | None) -> None:
        """Be one TEC, and after it others that have yet to begin, but with a debugger of their own."""
        thread, tracer = threading.current_thread(), sys.gettrace()
        try:
            while tec is not None:
                thread.name = f"TEC{tec.id}"
                self._run_tec(tec, self._body)
                if sys.gettrace() is not tracer:
                    self.begin_next()
                    break
                tec = self._next()
        except Aborted:
            pass  # it was told to stop between two TECs
        finally:
            self._news.put(1)

    def _wait(self) -> None:
        """Until every thread has ended or the time is over; when a TEC has failed the others get a moment to end by themselves."""
        deadline, ended = time.monotonic() + (self.limit or math.inf), 0
        while ended < len(self._threads):
            left = _GRACE if self._errors else deadline - time.monotonic()
            if self._waiting and not self._errors:
                left = min(left, sys.getswitchinterval())
            try:
                ended += self._news.get(timeout=None if left == math.inf else max(0.0, left))
            except queue.Empty:
                if self._errors:
                    self._stop(self._threads, None)
                    break
                if time.monotonic() >= deadline:
                    self._expire(self._threads)
                    break
                self.begin_next()
        for thread in self._threads:
            thread.join(_GRACE)
            while thread.is_alive():
                self._stop([thread], None)
                thread.join(_GRACE)

    def _stop(self, threads: list[threading.Thread], reason: BaseException | None) -> None:
        """Unwind the TECs that still run, wherever they are."""
        self._waiting.clear()
        frames = sys._current_frames()
        for thread in threads:
            if thread.is_alive() and thread.ident is not None:
                span = user_span(frames.get(thread.ident))
                if hasattr(reason, "add_note") and span is not None:
                    reason.add_note(f"{thread.name} was at {span}")  # type: ignore[union-attr]
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Aborted))
        self.barrier.abort()

    def _run_tec(self, tec: Tec, body: Callable[[Tec], None]) -> None:
        LOCAL.tec = tec
        token = TARGET.set(self.target.version)
        try:
            with np.errstate(all="ignore"):
                self.barrier.enter(tec.id)
                self.pause(tec)
                body(tec)
                tec.finish_events()
                settle(tec)
            self.barrier.leave(tec.id)
        except Aborted:
            pass  # the TEC that caused it has the error
        except BaseException as e:  # noqa: BLE001  handed to the caller's thread, whatever it is
            self._errors[tec.id] = e
            self._news.put(0)
            self.barrier.abort()
        finally:
            give_turn()
            LOCAL.tec = None
            TARGET.reset(token)

"""Checks of PySim that hardware does not do: reads of unwritten memory, races between TECs, overflow.

`COMPASS_PYSIM_CHECK` names the checks, `checking(...)` replaces them for the calls in a `with` block:

`warn`      a read of which no byte was ever written, in memory of the kernel, is warned of (on unless switched off)
`uninit`    the same is an error
`partial`   the same when only some of its bytes were never written
`race`      two TECs touch the same byte between the same barriers, or two groups do at any time, and one of them changes it;
            or two turns of a vectorized loop do in an order that is another one where all turns run a statement at once
`overflow`  `+`, `-`, `*`, S.vadd, S.vsub, S.vmul or a narrowing store whose integer result does not fit
`division`  an integer divided by zero; of vectors the active lanes that are not 0 themselves, as masked loads leave those
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from compass_core import operators
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Finding, Note, Span, UsageError, races, render
from compass_core.switches import PYSIM_CHECK, PYSIM_CHECKS
from compassc.ir.dtypes import DataType

from ..language.dispatch import LOCAL
from .source_lines import current_span

if TYPE_CHECKING:
    from .fast_paths import Function

_CHOSEN: ContextVar[frozenset[str] | None] = ContextVar("checks", default=None)


@contextlib.contextmanager
def checking(*names: str) -> Iterator[None]:
    """Run kernels in PySim with exactly these checks: of `warn`, `uninit`, `partial`, `race`, `overflow` and `division`."""
    if unknown := set(names) - set(PYSIM_CHECKS):
        raise UsageError(
            f"PySim has no check {', '.join(sorted(unknown))}",
            code="check",
            help="there are " + ", ".join(PYSIM_CHECKS),
        )
    token = _CHOSEN.set(frozenset(names))
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def chosen() -> frozenset[str]:
    """The checks of a run that starts now."""
    found = _CHOSEN.get()
    return PYSIM_CHECK.get() if found is None else found


# ------------------------------------------------------------------------------------------------------------ memory


class Memory(Protocol):
    """What is watched (`memory.Storage`): its bytes, its name for messages, and who watches it."""

    data: Array
    name: str
    watch: StorageMonitor | None


class StorageMonitor:
    """Sees every access of one storage. Bytes count from its beginning.

    `written` has a byte per byte of storage, 1 once it was written (None: it was initialised by its owner).
    """

    __slots__ = ("__weakref__", "_next", "_orders", "fatal", "races", "storage", "strict", "written")

    def __init__(self, storage: Memory, checks: frozenset[str], *, fresh: bool, races: Sequence[Races]) -> None:
        self.storage = storage
        self.written = bytearray(storage.data.size) if fresh else None
        self.strict = "partial" in checks
        self.fatal = bool(checks & {"uninit", "partial"})  # else such a read is only warned of
        self.races = races
        self._orders = "race" in checks
        self._next = 0

    def forget(self) -> None:
        """From now on nothing was written yet."""
        self.written, self._next = bytearray(self.storage.data.size), 0

    def access(
        self,
        what: str,
        first: int,
        size: int,
        count: int,
        step: int,
        writes: bool,
        active: Array | None,
        atomic: bool = False,
        span: Span | None = None,
    ) -> None:
        """`count` items of `size` bytes, `step` bytes apart, of which a bool array may choose some. An `atomic` access reads
        and writes. `span`: where it stands, if not at the kernel's present line."""
        if active is None and (step == size or count == 1):
            spans = [(first, first + size * count)]
        else:
            lanes = range(count) if active is None else np.flatnonzero(active).tolist()
            spans = [(first + i * step, first + i * step + size) for i in lanes]
        if self.written is not None and (atomic or not writes):
            self._read(what, spans, self.written)
        if self.written is not None and writes:
            self._write(spans, self.written)
        if self.races:
            settle(LOCAL.tec)
        for memory in self.races:
            for start, stop in spans:
                memory.access(start, stop, writes, atomic, span)
        if self._orders and span is None and (turns := LOCAL.tec.vector) is not None:
            turns.access(self.storage, spans, size, writes)

    def _write(self, spans: list[tuple[int, int]], written: bytearray) -> None:
        for start, stop in spans:
            written[start:stop] = b"\1" * (stop - start)
        self._next = written.find(0, self._next)
        if self._next < 0:
            self.written = None
            if not self._orders:
                self.storage.watch = None

    def _read(self, what: str, spans: list[tuple[int, int]], written: bytearray) -> None:
        if self.strict:
            bad = next((s for s in spans if written.find(0, *s) >= 0), None)
        else:
            bad = spans[0] if spans and all(written.find(1, *s) < 0 for s in spans) else None
        if bad is None:
            return
        size = len(written)
        at = written.find(0, *bad)
        part = "some of them were never" if written.find(1, *bad) >= 0 else "none of them was ever"
        kind = CompassError if self.fatal else Finding
        error = kind(
            f"{what}: bytes {bad[0]} to {bad[1] - 1} of {self.storage.name} are read, but {part} written",
            code="uninitialised",
            notes=(f"byte {at} of {size} is the first unwritten one",),
            help="write it first, e.g. with S.dma_memset or a DMA copy; a missing S.wait_events has the same effect",
        )
        if self.fatal:
            raise error
        _warn(error)


def _warn(warning: CompassError) -> None:
    """Log a warning for the current line of the kernel, once per line and run."""
    warning.span = current_span()
    warned = LOCAL.tec.session.warned
    if str(warning.span) not in warned:
        warned.add(str(warning.span))
        logging.getLogger("Compass").warning("%s", render(warning))


@dataclass(frozen=True)
class Doubt:
    """A write where another TEC has written in the same phase: a race, unless it turns out to change nothing.

    `old` are the bytes before it, from byte `start` of the memory on; `there` is the other write.
    """

    memory: Races
    start: int
    old: Array
    here: races.Access
    there: races.Access

    def settle(self) -> None:
        """CompassError when the write, which is done by now, has changed a byte."""
        changed = np.flatnonzero(self.memory.data[self.start : self.start + self.old.size] != self.old)
        if changed.size:
            raise self.memory.error(self.start + changed, self.here, self.there)


class Races:
    """The accesses to each byte of one memory since the last barrier, by the rules of checked runs on the simulator.

    Two accesses of different TECs of a group meet when both happened after the same number of barriers and one is a write. Writes of
    what is in memory already do no harm, and a TEC may read what others wrote if it has written the same itself. Atomic
    operations do not meet each other. TECs run one after another here (`TecBarrier`), so that what is found does not depend on chance.
    With `between` groups these take the place of TECs, and no barrier is theirs.
    """

    def __init__(self, name: Callable[[], str], data: Array, between: Literal["TEC", "group"] = "TEC") -> None:
        self.data, self._between = data, between
        self._name = name
        self._writer = np.zeros(
            (3, data.size), np.int32
        )  # of the first write of a phase: barriers passed + 1, TEC, site
        self._reader = np.zeros((3, data.size), np.int32)  # of the last read that counts
        self._writers = np.zeros(data.size, np.int64)  # a bit per TEC that wrote in the writer's phase
        self._atomics = np.zeros(data.size, np.int64)  # of these, those that wrote by atomic operations alone
        self.unfinished: list[Unfinished] = []
        self._sites: list[Span | None] = []
        self._number: dict[Span | None, int] = {}

    def access(self, start: int, stop: int, writes: bool, atomic: bool = False, span: Span | None = None) -> None:
        """Record an access of this thread's TEC and refuse it when it races with one of another TEC, or with what the AIFF
        was started to do."""
        tec, span = LOCAL.tec, span or current_span()
        for work in self.unfinished:
            work.refuse(self._name(), start, stop, writes, span)
        phase, who = (tec.phase + 1, tec.id) if self._between == "TEC" else (1, tec.session.group)
        writer, reader, writers = self._writer[:, start:stop], self._reader[:, start:stop], self._writers[start:stop]
        atomics, own = self._atomics[start:stop], 1 << who
        written, read = writer[0] == phase, reader[0] == phase
        writers[~written] = atomics[~written] = 0
        plain = writers & ~atomics
        same = (plain >> reader[1] & 1).astype(bool)  # whether the reader wrote the same
        others = (plain & ~own) != 0 if atomic else writer[1] != who
        met_write = written & others & (writes | ~(plain & own).astype(bool))
        met_read = read & (reader[1] != who) & ~same & ~met_write & writes
        here = races.Access(who, "writes" if writes else "reads", span, self._between)
        sure = met_read if writes else met_write
        if sure.any():
            raise self.error(
                start + np.flatnonzero(sure), here, self._side(reader if writes else writer, sure, not writes)
            )
        if met_write.any():
            there = self._side(writer, met_write, True)
            tec.doubts.append(Doubt(self, start, self.data[start:stop].copy(), here, there))
        stamp = np.array([[phase], [who], [self._site(span)]], np.int32)
        if writes:
            writer[:, ~written] = stamp
            atomics[:] = atomics | (own & ~plain) if atomic else atomics & ~own
            writers |= own
        else:
            reader[:, ~read | same] = stamp

    def _site(self, span: Span | None) -> int:
        if span not in self._number:
            self._number[span] = len(self._sites)
            self._sites.append(span)
        return self._number[span]

    def _side(self, stamps: Array, met: Array, writes: bool) -> races.Access:
        """The other access, at the first byte that is met."""
        _, who, site = stamps[:, int(np.flatnonzero(met)[0])].tolist()
        return races.Access(who, "writes" if writes else "reads", self._sites[site], self._between)

    def error(self, places: Array, here: races.Access, there: races.Access) -> CompassError:
        """The race of two accesses at some bytes of the memory."""
        return races.error(f"bytes {places[0]} to {places[-1]} of {self._name()}", here, there, code="race")


@dataclass(frozen=True, eq=False)
class Unfinished:
    """What the AIFF was started to do with a memory, and may not have done yet. `touched`: bits of each byte, 1 where it is
    read, 2 where it is written; `span`: where it was started."""

    touched: Array
    span: Span | None

    def refuse(self, name: str, start: int, stop: int, writes: bool, span: Span | None) -> None:
        """CompassError for an access that meets it."""
        met = np.flatnonzero(self.touched[start:stop] & (3 if writes else 2))
        if met.size:
            verb = "writes" if self.touched[start + met[0]] & 2 else "reads"
            raise CompassError(
                f"bytes {start + met[0]} to {start + met[-1]} of {name} are {'written' if writes else 'read'} before the "
                f"AIFF, which {verb} them, is waited for",
                span,
                code="race",
                notes=(Note("it was started here", self.span),),
                help="S.wait_events with its event first",
            )


class Doubting(Protocol):
    """A TEC, as far as its writes may be races."""

    doubts: list[Doubt]


def settle(tec: Doubting) -> None:
    """What became of a TEC's writes that may race: CompassError for the first one that does."""
    doubts, tec.doubts = tec.doubts, []
    for doubt in doubts:
        doubt.settle()


# ----------------------------------------------------------------------------------------------------- arithmetic

_EXACT: dict[str, tuple[str, Function]] = {
    "vadd": ("+", np.add),
    "add": ("+", np.add),
    "vsub": ("-", np.subtract),
    "sub": ("-", np.subtract),
    "vmul": ("*", np.multiply),
    "mul": ("*", np.multiply),
}
PLANS: list[MutableMapping[object, Any]] = []
"""Every table of plans: they depend on which checks of arithmetic there are."""
DIVIDING = operators.DIVISIONS | {"vdiv", "vmod", "ceildiv"}
"""The operators and operations that divide integers."""
_ARITHMETIC = frozenset(("overflow", "division"))
_plans_check: frozenset[str] = frozenset()


def prepare_plans(checks: frozenset[str]) -> None:
    """Forget plans made for other checks of arithmetic."""
    global _plans_check
    if checks & _ARITHMETIC != _plans_check:
        for table in PLANS:
            table.clear()
        _plans_check = checks & _ARITHMETIC


def wanted(check: str) -> bool:
    """Whether the run of this thread has a check."""
    return LOCAL.tec is not None and check in LOCAL.tec.session.checks


def arithmetic_checked(name: str, function: Function, elem: DataType) -> Function:
    """The function of an operation, which refuses integers that this run looks for."""
    if not elem.is_integer:
        return function
    if name in DIVIDING:
        return _division_checked(function) if wanted("division") else function
    if name not in _EXACT or elem.is_bool or not wanted("overflow"):
        return function
    sign, exact = _EXACT[name]

    def run(x: Array, y: Array) -> Array:
        out = function(x, y)
        wide_x, wide_y = np.asarray(x).astype(object), np.asarray(y).astype(object)
        wide = np.asarray(exact(wide_x, wide_y))
        wrong = np.flatnonzero(wide.reshape(-1) != np.asarray(out).astype(object).reshape(-1))
        if wrong.size:
            lane = int(wrong[0])
            a, b = (np.broadcast_to(w, wide.shape).reshape(-1)[lane] for w in (wide_x, wide_y))
            where = f" in lane {lane}" if wide.ndim else ""
            raise CompassError(
                f"{a} {sign} {b} = {wide.reshape(-1)[lane]} overflows {elem}{where}",
                code="overflow",
                help="use a wider type or saturate=True, or run without the overflow check if wrapping is meant",
            )
        return out

    return run


def _division_checked(function: Function) -> Function:
    def run(x: Array, y: Array) -> Array:
        bad = np.asarray(y) == 0
        if bad.ndim or np.ndim(x):
            bad = bad & (np.asarray(x) != 0)
        if bad.any():
            where = f" in lane {int(np.flatnonzero(bad)[0])}" if bad.ndim else ""
            raise CompassError(
                f"an integer is divided by zero{where}",
                code="division",
                help="the result is 0, which is seldom what is meant: test the divisor first",
            )
        return function(x, y)

    return run


def check_narrowing(value: object, converted: object, elem: DataType) -> None:
    """Refuse a stored integer that its memory cannot hold if this run asks for it."""
    if not elem.is_integer or not wanted("overflow"):
        return
    given = np.asarray(value)
    if given.dtype.kind in "iu" and (given != converted).any():
        bad = given.reshape(-1)[np.flatnonzero(np.asarray(given != converted).reshape(-1))[0]]
        raise CompassError(f"{bad} does not fit {elem}, where it is stored", code="overflow", help="saturate it first")

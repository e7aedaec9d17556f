"""The worker process: the engine running apart from the caller, with device memory shared between the two."""

from __future__ import annotations

import logging
import mmap
import os
import select
import signal
import socket
import struct
import time
import weakref
from typing import TYPE_CHECKING, Literal, final

from compass_core import switches
from compass_core.aiff.rules import assumption_bits
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compass_sim import memory_map
from compass_sim.engine import engine_path
from compass_sim.faults import (
    STATES,
    FaultKind,
    KernelFault,
    SimulatorError,
    TecLocation,
    deadlock_fault,
    memory_fault,
    signal_fault,
    system_call_fault,
    timeout_fault,
)
from compass_sim.mailbox import LOOK, REPLY_IN_SOCKET, SILENT, Mailbox
from compass_sim.process import DeviceFile, EngineProcess
from compass_sim.records import RECORD, Record, Tick, decode, ticks

if TYPE_CHECKING:
    from types import TracebackType

    from compass_core.targets import Target

_REQUEST = struct.Struct("<IIIIQQ")
_REPLY = struct.Struct("<IIIIiIIIQQQ")
_NO_TICKET = 0
_TICKETS = struct.Struct("<512Q")
_LOCATION = struct.Struct("<IIQ")
_SEED = struct.Struct("<Q")
_WANT_RECORDS, _HAS_SCHEDULE = 1, 2
_ASSUMPTIONS_FROM = 16
_CHAINS = {"x2": 2, "x3": 3}
_DONE, _FAULT, _REFUSED = 0, 1, 2
_SIGNAL, _TIMEOUT, _DEADLOCK, _DMA, _MEMORY, _SYSTEM_CALL = 1, 2, 3, 6, 7, 8
_NO_TEC, _NO_PC = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
_START_LIMIT = 30.0
_GRACE = 2.0
"""Seconds that the engine may take beyond a job's time limit, to say where the TECs stand."""
_LONGEST = 2**63 - 1
_MOST_TAIL = 64 << 20
"""More than any honest message has behind it, in bytes."""


@dataclass(frozen=True)
class RunResult:
    """A finished job: its wall time in seconds as the engine saw it, and what the kernel printed, TEC by TEC.

    `recorded`: what its TECs did, as the engine sent it, when that was asked for.
    """

    seconds: float
    printf: str
    recorded: bytes = b""

    @property
    def records(self) -> list[Record]:
        """The records of the TECs, those of a TEC in order."""
        return decode(self.recorded)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The profiler marks in the order in which they were set."""
        return ticks(self.records)


class _Reply(NamedTuple):
    """One message from the engine; `tec` and `locations` as the fault classes want them."""

    status: int
    fault: int
    tec: int | None
    signal: int
    signal_code: int
    address: int
    nanoseconds: int
    locations: tuple[TecLocation, ...] = ()
    message: str = ""
    printf: str = ""
    recorded: bytes = b""


class _Silent(Exception):
    """The process does not answer in time."""


@final
class Worker:
    """A simulated device. Jobs run one at a time; after a fault the process is gone and a new Worker is needed.

    `memory` is device memory, indexed by device address: memory[a:b] is what the kernel sees at addresses a..b. Bytes
    in the engine's own range (`memory_map`) exist but are not the device's.

    The process runs under a system-call filter and limits of memory. Where the system offers no filter, `unprotected`
    says why, and a warning is logged.
    """

    def __init__(
        self,
        target: Target | None = None,
        memory_limit: int | None = None,
        *,
        debug: bool = False,
        checks: bool = False,
    ) -> None:
        """`memory_limit`: bytes of device memory that may be in use; by default most of what the host has free.

        `debug`: a debugger may attach to the process `pid`. It is told what code is loaded, and has to clear the
        engine's `debug_hold` before other TECs than the first begin.
        `checks`: runs kernels that were compiled for checks, one TEC at a time; what is checked and what is found lies
        in `memory` from ENGINE_LOW on (sim/engine/check_area.h).
        """

        self.target = target
        self._debug = debug
        self._checks = checks
        self._tickets: list[int] = []
        self._memory_limit = host_memory_limit() if memory_limit is None else memory_limit
        engine = engine_path()
        size = memory_map.file_size(self._memory_limit, checks)
        try:
            self._file: DeviceFile | None = DeviceFile(size)
            shared = self._file.number
            self.memory = mmap.mmap(shared, size)
            self._mailbox = Mailbox(shared)
            self._process = EngineProcess([str(engine), *self._device(debug)], shared, new_session=debug)
        except OSError as error:
            raise SimulatorError(
                f"the simulator engine '{engine}' does not start: {error}", code="no-engine"
            ) from error
        self._socket = self._process.socket
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._end = weakref.finalize(self, self._process.end)
        try:
            hello = self._receive(_START_LIMIT, _NO_TICKET)
        except _Silent:
            raise self._died("it does not start") from None
        if hello.status != _DONE:
            self._end()
            raise SimulatorError(f"the simulator engine cannot start: {hello.message}", code="no-engine")
        self.unprotected = hello.message
        if hello.message:
            logging.getLogger("Compass").warning("%s; run only kernels that you trust", hello.message)

    def _device(self, debug: bool) -> list[str]:
        """The engine's arguments that say what the device has."""
        target = self.target
        sizes = (1, memory_map.MAX_TECS, 0) if target is None else (target.cores, target.tecs, target.gsram_bytes)
        if self._checks:  # shared arrays have gaps between them then, and may need more
            sizes = (*sizes[:2], 0)
        mode = ["debug"] if debug else ["check"] if self._checks else []
        return [*(str(number) for number in (*sizes, self._memory_limit)), *mode]

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether jobs can still be dispatched."""
        return self._end.alive and not self._process.lost

    @property
    def pid(self) -> int:
        """The process that runs the kernels."""
        return self._process.pid

    def leave(self) -> None:
        """Lets the process end by itself, for a debugger to see; no more jobs. `close` is still needed."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the process and frees device memory, as far as no view of `memory` keeps it."""
        self._end()
        self._mailbox.close()
        self._file = None
        try:
            self.memory.close()
        except BufferError:  # the memory still has views: it is freed with the last one
            self.abandon()

    def abandon(self) -> None:
        """Ends the process; device memory is freed when the last one who looks at it is gone."""
        self._end()
        self._mailbox.close()
        self._file = None
        self.memory = mmap.mmap(-1, memory_map.PAGE)
        self.memory.close()

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copies bytes to device memory. ValueError when the worker is closed."""
        file = self._file
        if file is None:
            raise ValueError("the worker is closed")
        if len(data) < memory_map.PAGE:
            self.memory[address : address + len(data)] = data
        else:
            file.write(address, data)

    def clear_memory(self) -> None:
        """Gives the host back all that device memory has in use; its content is zero from now on. No job may run."""
        self.memory.madvise(mmap.MADV_REMOVE)

    def dispatch(
        self,
        head: int,
        count: int,
        kind: Literal["x2", "x3"] = "x2",
        timeout: float = 60.0,
        *,
        seed: int = 0,
        record: bool = False,
        accelerated: bool = True,
    ) -> RunResult:
        """Run the chain of `count` task control blocks at device address `head`, for at most `timeout` seconds.

        `seed` (64 bits): run one TEC at a time, in an order that depends on the seed alone; 0: run them side by side.
        `record`: keep what the TECs do, profiler marks among it.
        `accelerated`: kernels may start the AIFF, so that the readings of its registers are asked for that may be assumed.

        KernelFault when the kernel fails, SimulatorError when the chain or its code is damaged or the process died.
        """
        if not self.alive:
            raise SimulatorError("this simulator has ended; make a new Worker", code="worker-ended")
        limit = min(max(int(timeout * 1e9), 1), _LONGEST)
        try:
            options = (_HAS_SCHEDULE if seed else 0) | (_WANT_RECORDS if record else 0)
            options |= _assumptions() if accelerated else 0
            ticket = self._ticket()
            request = head, count, _CHAINS[kind], options, limit, ticket
            nanoseconds = SILENT if seed or record or self._debug else self._mailbox.run(*request)
            if nanoseconds >= 0:
                return RunResult(nanoseconds / 1e9, "")
            if nanoseconds != REPLY_IN_SOCKET:
                self._send(_REQUEST.pack(*request) + (_SEED.pack(seed) if seed else b""))
            reply = self._receive(timeout + _GRACE, ticket, record)
        except _Silent:
            self._end()
            raise timeout_fault(timeout, None, (), "") from None
        except OSError as error:
            raise self._died(str(error)) from None
        except BaseException:  # interrupted: the job must not run on unseen
            self._end()
            raise
        if reply.status == _DONE:
            if reply.message:
                logging.getLogger("Compass").warning("%s", reply.message)
            return RunResult(reply.nanoseconds / 1e9, reply.printf, reply.recorded)
        if reply.status == _REFUSED:
            raise SimulatorError(f"the simulator refuses the job: {reply.message}", code="job-refused")
        if not self._debug:  # a debugger sees it end by itself
            self._end()
        raise _fault(reply, timeout, self._memory_limit, len(self.memory))

    def _ticket(self) -> int:
        """A random ticket that cannot be guessed."""
        while not self._tickets:
            self._tickets = [ticket for ticket in _TICKETS.unpack(os.urandom(_TICKETS.size)) if ticket]
        return self._tickets.pop()

    def _send(self, message: bytes) -> None:
        """Sends a request. Where the engine has ended already, it may have left a reply to what it found in the mailbox."""
        try:
            self._socket.send(message)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _receive(self, limit: float, ticket: int, record: bool = False) -> _Reply:
        """The reply to the request with this ticket; SimulatorError when the process dies or sends anything else, _Silent
        when the reply is not complete in `limit` seconds.

        What a kernel broke in its own process may have sent the message, so nothing in it is believed.
        """
        end = time.monotonic() + limit
        (status, fault, tec, number, code, places, message_size, printf_size, address, nanoseconds, answered) = (
            _REPLY.unpack(self._exactly(_REPLY.size, end))
        )
        if answered != ticket:
            raise self._died("it sent a report that nobody asked for")
        recorded = address * RECORD.size if record and status == _DONE else 0
        who = None if tec == _NO_TEC else tec
        if not (places or message_size or printf_size or recorded):
            return _Reply(status, fault, who, number, code, address, nanoseconds)
        if places * _LOCATION.size + message_size + printf_size + recorded > _MOST_TAIL:
            raise self._died("it sent a damaged report")
        tail = self._exactly(places * _LOCATION.size + message_size + printf_size, end)
        records = tail[: places * _LOCATION.size]
        locations = tuple(
            TecLocation(one, STATES[min(state, len(STATES) - 1)], None if pc == _NO_PC else pc)
            for one, state, pc in _LOCATION.iter_unpack(records)
        )
        message = tail[len(records) : len(records) + message_size].decode(errors="replace")
        printf = tail[len(records) + message_size :].decode(errors="replace")
        return _Reply(
            status,
            fault,
            who,
            number,
            code,
            address,
            nanoseconds,
            locations,
            message,
            printf,
            self._exactly(recorded, end),
        )

    def _exactly(self, size: int, end: float) -> bytes:
        """The next `size` bytes, before the clock shows `end`."""
        parts = bytearray()
        look_until = time.monotonic() + LOOK
        while len(parts) < size:
            try:
                part = self._socket.recv(size - len(parts))
            except BlockingIOError:
                now = time.monotonic()
                if now < look_until:
                    os.sched_yield()
                elif now >= end:
                    raise _Silent from None
                else:
                    self._poll.poll((end - now) * 1e3 + 1)
                continue
            except ConnectionResetError:  # it left a request unread
                part = b""
            if not part:
                raise self._died("it ended without a report")
            if len(part) == size:
                return part
            parts += part
            if len(parts) < size and time.monotonic() >= end:  # a byte now and then is no answer
                raise _Silent
        return bytes(parts)

    def _died(self, how: str) -> SimulatorError:
        self._end()
        return SimulatorError(
            f"the simulator process is gone: {how} (status {self._process.status})", code="worker-died"
        )


def _assumptions() -> int:
    """The request's bits for what COMPASS_AIFF_ASSUME allows the model of the AIFF."""
    if not (names := switches.AIFF_ASSUME.get()):
        return 0

    return assumption_bits(names) << _ASSUMPTIONS_FROM


def host_memory_limit() -> int:
    """Three quarters of the memory the host has free, in bytes; 0 when it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "0")
    except OSError:
        return 0
    return int(found) * 1024 * 3 // 4


def _fault(reply: _Reply, limit: float, memory_limit: int, memory_size: int) -> KernelFault | SimulatorError:
    """The exception for a reply that reports a fault."""
    if (
        reply.fault == _SIGNAL
        and reply.signal == signal.SIGBUS
        and memory_size <= reply.address < memory_map.WINDOW_HIGH
    ):
        return memory_fault(memory_limit, reply.tec, reply.locations, reply.printf)
    if reply.fault == _SIGNAL and reply.tec is not None:
        return signal_fault(reply.signal, reply.signal_code, reply.address, reply.tec, reply.locations, reply.printf)
    if reply.fault == _SIGNAL:
        return SimulatorError(f"{reply.message} (signal {reply.signal})", code="worker-died")
    if reply.fault == _TIMEOUT:
        return timeout_fault(limit, reply.tec, reply.locations, reply.printf)
    if reply.fault == _DEADLOCK:
        return deadlock_fault(reply.locations, reply.printf)
    if reply.fault == _SYSTEM_CALL:
        return system_call_fault(reply.address, reply.tec, reply.locations, reply.printf)
    if reply.fault == _MEMORY:
        return memory_fault(memory_limit, reply.tec, reply.locations, reply.printf)
    kind: FaultKind = "dma" if reply.fault == _DMA else "unsupported"
    message = reply.message or "the simulator process reports a fault, but not which"
    return KernelFault(message, kind, reply.tec, None, reply.locations, reply.printf)

"""The simulated devices of this process: each has a worker, memory, and programs of one origin.

What a kernel breaks, with or without intent, it breaks in its own worker and memory. So programs share a device only
when they are the same file; others never see each other's memory, nor each other's worker.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from compass_core.aipubin.device import is_x3
from compass_core.errors import CompassError, UsageError
from compass_core.files.pieces import Pieces
from compass_core.targets import Target, load
from compass_runtime.forks import in_children, renew_locks
from compass_runtime.memory import PageAllocator

if TYPE_CHECKING:
    import numpy as np

    from compass_runtime.job import Residency
    from compass_sim import RunResult

ENDED = "worker-ended"
"""The code of the error for who uses a device that a fault, or the need for room, has ended."""
MOST_OPEN = 64
"""Devices that are open at once, where the process may have as many files; others end, and their programs begin anew."""
_FILES_EACH = 8
"""One device for this many files that the process may have open: it needs four of them."""
_LARGEST_KEPT = 16 << 20
"""Bytes of a file that is kept with its device, for the same file to find it."""
_memory_limit: int | None = None
"""Bytes of device memory that each device may use; None: what `Worker` takes."""


class Device:
    """One simulated NPU. The jobs of its programs share its memory; one runs at a time.

    `graphs`: programs that are loaded; without any it waits for the next program of the same file, or ends. `residencies`:
    its jobs; with one that is held it is not ended to make room.
    """

    def __init__(self, target: Target, origin: object = None, debug: bool = False, checks: bool = False) -> None:
        import numpy as np

        from compass_sim import Worker, memory_map

        self.target = target
        self.origin = origin
        self.checks = checks
        self.worker = Worker(target, _memory_limit, debug=debug, checks=checks)
        self.lock = threading.Lock()
        self.graphs: set[object] = set()
        self.residencies: set[Residency] = set()
        self.ended = False
        size = len(self.worker.memory)
        ranges = ((memory_map.WINDOW_LOW, memory_map.ENGINE_LOW), (memory_map.ENGINE_HIGH, size))
        self.allocator = PageAllocator(*((low, min(high, size)) for low, high in ranges if low < size))
        self._memory: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None = np.frombuffer(
            self.worker.memory, dtype=np.uint8
        )
        self._kind: Literal["x2", "x3"] = "x3" if is_x3(target.name) else "x2"
        self._ran = False
        """Whether a kernel ran since all memory was 0."""
        renew_locks(self, "lock")

    @property
    def alive(self) -> bool:
        """False after a fault: the process is gone, and with it what the memory held."""
        return self.worker.alive

    @property
    def is_held(self) -> bool:
        """Whether a job has content that is nowhere else."""
        return any(residency.held for residency in list(self.residencies))

    @property
    def memory(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        """Device memory by address. CompassError when the device has ended."""
        if self._memory is None:
            raise self._ended()
        return self._memory

    @staticmethod
    def _ended() -> CompassError:
        return CompassError("this simulator has ended", code=ENDED)

    def write(self, address: int, data: bytes | bytearray | Pieces) -> None:
        """Copies bytes to device memory."""
        try:
            for part in data if isinstance(data, Pieces) else [data]:
                self.worker.write(address, part)
                address += len(part)
        except ValueError:
            if self.alive:
                raise
            raise self._ended() from None

    def clear(self, address: int, size: int) -> None:
        """Zeroes device memory that has just been allocated. What nobody has had before, and no kernel, is 0 already."""
        if self._ran or self.allocator.has_released:
            self.memory[address : address + size] = 0

    def give_back(self) -> None:
        """Gives the host back all memory; it is 0 from now on. Nobody may use any."""
        self.worker.clear_memory()
        self._ran = self.allocator.has_released = False

    def dispatch(
        self, head: int, count: int, timeout: float, seed: int = 0, record: bool = False, accelerated: bool = True
    ) -> RunResult:
        """Runs the chain of `count` control blocks at `head`, for at most `timeout` seconds; see `Worker.dispatch`."""
        with self.lock:
            self._ran = True
            try:
                return self.worker.dispatch(
                    head, count, self._kind, timeout, seed=seed, record=record, accelerated=accelerated
                )
            except BaseException:
                if not self.alive:
                    self.end()
                raise

    def end(self) -> None:
        """Ends the worker. Memory goes when the last one who looks at it has gone."""
        self.ended = True
        self._memory = None
        self.worker.abandon()
        for residency in list(self.residencies):
            if not residency.held:
                residency.unmap()


_open: list[Device] = []
"""All that may be used again, the one used last at the end."""
_open_lock = threading.Lock()
_left: deque[tuple[Device, object]] = deque()
"""Programs that are gone, with their devices."""


def _forget_all() -> None:
    """In a forked child: the devices are the parent's."""
    for device in _open:
        device.ended = True
        for residency in list(device.residencies):
            residency.invalidate()
        device.end()
    _open.clear()
    _left.clear()


renew_locks(sys.modules[__name__], "_open_lock")
in_children(_forget_all)


def target_of(name: str) -> Target:
    """The configuration of a file's target; CompassError when there is none of that name."""
    try:
        return load(name)
    except UsageError as error:
        raise CompassError(
            f"there is no simulator for the target '{name}'", code="target-not-found", notes=error.notes
        ) from None


def restrict(most_open: int, memory: int) -> None:
    """From now on at most so many devices are open in this process, each with so many bytes of memory in use."""
    from compass_sim.worker import host_memory_limit

    global MOST_OPEN, _memory_limit
    MOST_OPEN, _memory_limit = most_open, min(memory, host_memory_limit() or memory)
    _most_open.cache_clear()


@lru_cache(maxsize=1)
def _most_open() -> int:
    from resource import RLIMIT_NOFILE, getrlimit

    files = getrlimit(RLIMIT_NOFILE)[0]
    return MOST_OPEN if files < 0 else max(1, min(MOST_OPEN, files // _FILES_EACH))


def device_for(target: str, origin: object, user: object, checks: bool = False) -> Device:
    """A device for the program `user`: the one of the same `origin`, or a new one. `leave_device` is to follow.

    `origin`: the bytes of a file, or an object that stands for what no other program is like. `checks`: for programs
    compiled for checks.
    """
    with _open_lock:
        _clear_up()
        for device in reversed(_open):
            if device.checks == checks and device.target.name == target and device.origin == origin:
                _open.remove(device)
                break
        else:
            _make_room()
            device = Device(target_of(target), origin, checks=checks)
        _open.append(device)
        device.graphs.add(user)
        return device


def leave_device(device: Device, user: object) -> None:
    """The program is not on the device any more. Never waits: the garbage collector may call it."""
    _left.append((device, user))
    if _open_lock.acquire(blocking=False):
        try:
            _clear_up()
        finally:
            _open_lock.release()


def kept_origin(image: bytes | Pieces) -> object:
    """A key of a file's content: its bytes, unless keeping so many costs more than a new worker does."""
    return bytes(image) if len(image) <= _LARGEST_KEPT else object()


def _clear_up() -> None:
    """Removes devices that have ended or are unused; the lock is held."""
    while _left:
        device, user = _left.popleft()
        device.graphs.discard(user)
        if device.alive and not device.graphs and not device.is_held:
            if isinstance(device.origin, bytes):
                device.give_back()
            else:
                device.end()
    _open[:] = [device for device in _open if device.alive]


def _make_room() -> None:
    """Ends devices until one more may be open: those without programs first, then those used longest ago. What a job
    holds that cannot be made again stays."""
    ready = [device for device in _open if not device.is_held]
    for device in sorted(ready, key=lambda device: bool(device.graphs)):
        if len(_open) < _most_open():
            return
        device.end()
        _open.remove(device)

"""The simulated devices of this process: a worker, its memory and who uses which part of it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

from compass_core.aipubin.device import is_x3
from compass_core.errors import CompassError, UsageError
from compass_core.targets import Target, load
from compass_runtime.memory import PageAllocator

if TYPE_CHECKING:
    import numpy as np

    from compass_sim import RunResult


class Device:
    """One simulated NPU. Jobs of all programs for its target share its memory; one runs at a time."""

    def __init__(self, target: Target, debug: bool = False, checks: bool = False) -> None:
        import numpy as np

        from compass_sim import Worker, memory_map

        self.target = target
        self.worker = Worker(target, debug=debug, checks=checks)
        self.lock = threading.Lock()
        self.allocator = PageAllocator(
            (memory_map.WINDOW_LOW, memory_map.ENGINE_LOW), (memory_map.ENGINE_HIGH, memory_map.WINDOW_HIGH)
        )
        self.memory: np.ndarray[Any, np.dtype[np.uint8]] = np.frombuffer(self.worker.memory, dtype=np.uint8)
        self._kind: Literal["x2", "x3"] = "x3" if is_x3(target.name) else "x2"

    @property
    def alive(self) -> bool:
        """False after a fault: the process is gone, and with it what the memory held."""
        return self.worker.alive

    def write(self, address: int, data: bytes | bytearray) -> None:
        """Copies bytes to device memory."""
        self.worker.memory[address : address + len(data)] = data

    def clear(self, address: int, size: int) -> None:
        """Zeroes device memory."""
        self.memory[address : address + size] = 0

    def dispatch(self, head: int, count: int, timeout: float, seed: int = 0, record: bool = False) -> RunResult:
        """Runs the chain of `count` control blocks at `head`, for at most `timeout` seconds; see `Worker.dispatch`."""
        with self.lock:
            return self.worker.dispatch(head, count, self._kind, timeout, seed=seed, record=record)


_devices: dict[tuple[str, bool], Device] = {}
_devices_lock = threading.Lock()


def target_of(name: str) -> Target:
    """The configuration of a file's target; CompassError when there is none of that name."""
    try:
        return load(name)
    except UsageError as error:
        raise CompassError(f"there is no simulator for the target '{name}'", code="target-not-found",
                           notes=error.notes) from None  # fmt: skip


def debugged_device(target: str) -> Device:
    """A new device, for a debugger to attach to its worker; jobs of this target run on it from now on."""
    with _devices_lock:
        device = _devices[target, False] = Device(target_of(target), debug=True)
        return device


def device_for(target: str, checks: bool = False) -> Device:
    """The device of a target; started when it is first asked for, and again after a fault ended it.

    `checks`: the one that runs programs compiled for checks.
    """
    with _devices_lock:
        device = _devices.get((target, checks))
        if device is None or not device.alive:
            device = _devices[target, checks] = Device(target_of(target), checks=checks)
        return device

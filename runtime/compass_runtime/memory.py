"""Pages of device memory: which are free, and who has which."""

from __future__ import annotations

import bisect
import threading
from collections import deque

from compass_core.aipubin.layout import PAGE
from compass_core.errors import CompassError


def pages(size: int) -> int:
    """`size` bytes rounded up to whole pages."""
    return -(-size // PAGE) * PAGE


class PageAllocator:
    """First fit over the pages of the address ranges [start, end). Safe for use by several threads."""

    def __init__(self, *ranges: tuple[int, int]) -> None:
        self._free = sorted((pages(start), end // PAGE * PAGE) for start, end in ranges)
        self._used: dict[int, int] = {}
        self._returned: deque[int] = deque()
        self._lock = threading.Lock()
        self.has_released = False
        """Whether anything was given back, so that `allocate` may return memory that somebody had before."""

    def allocate(self, size: int, align: int = PAGE) -> int:
        """The address of `size` bytes (at least one page). CompassError when no free range is large enough."""
        size = pages(max(size, 1))
        with self._lock:
            self._take_back()
            for i, (start, end) in enumerate(self._free):
                address = -(-start // align) * align
                if address + size <= end:
                    rest = [(start, address), (address + size, end)]
                    self._free[i : i + 1] = [(a, b) for a, b in rest if a < b]
                    self._used[address] = size
                    return address
        raise CompassError(
            f"the device has no {size} bytes of memory left in one piece",
            code="buf-alloc-fail",
            notes=(f"{sum(b - a for a, b in self._free)} bytes are free in all",),
        )

    def release(self, address: int) -> None:
        """Gives back what `allocate` returned. Never waits: the garbage collector may call it, in any thread, while the
        same thread is in `allocate`, which then takes the memory back the next time."""
        self.has_released = True
        self._returned.append(address)
        if self._lock.acquire(blocking=False):
            try:
                self._take_back()
            finally:
                self._lock.release()

    def _take_back(self) -> None:
        """Returns released pages to the free ones; the lock is held."""
        while self._returned:
            address = self._returned.popleft()
            start, end = address, address + self._used.pop(address)
            i = bisect.bisect(self._free, (start, end))
            if i < len(self._free) and self._free[i][0] == end:
                end = self._free.pop(i)[1]
            if i and self._free[i - 1][1] == start:
                start = self._free[i - 1][0]
                i -= 1
                del self._free[i]
            self._free.insert(i, (start, end))

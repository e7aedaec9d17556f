"""Requests and short replies by shared memory: `struct mailbox` of sim/engine/wire.h."""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import Final, final

_LOOKS, _NANOSECONDS, _ANSWERED, _REQUEST = 0, 8, 16, 64
"""Where its fields are."""
_FIELDS = struct.Struct("<IIIIQ")
_IN_SOCKET = 2**64 - 1
LOOK = 100e-6
"""Seconds to look for a reply: most small jobs end before a thread that slept would be awake."""
_SPINS = 16
"""Looks, of 50 ns or so, before others are let run."""
SILENT: Final = -1
REPLY_IN_SOCKET: Final = -2


@final
class Mailbox:
    """The page that this process and the engine look at while they expect something of each other."""

    def __init__(self, shared: int) -> None:
        """`shared`: the descriptor of the file of device memory. OSError when it cannot be mapped."""
        self._page = mmap.mmap(shared, mmap.PAGESIZE)
        self._bytes = memoryview(self._page)
        self._words = self._bytes.cast("Q")
        self._is_sent_twice = False
        """Whether the last request went by the socket, too: the next one follows it there, so that none overtakes it."""

    def run(self, head: int, count: int, chain: int, options: int, limit: int, ticket: int) -> int:
        """Puts a request here, and looks for its reply for a moment; the arguments are the fields of `struct request`.

        The nanoseconds that the job took; REPLY_IN_SOCKET; or SILENT when the engine looks elsewhere or the job takes
        longer: the same request is to be sent by the socket then.
        """
        words, answered = self._words, _ANSWERED // 8
        try:
            if words[_LOOKS // 8] != 1 or self._is_sent_twice:
                self._is_sent_twice = False
                return SILENT
            _FIELDS.pack_into(self._bytes, _REQUEST, head, count, chain, options, limit)
            words[(_REQUEST + _FIELDS.size) // 8] = ticket
            until = time.monotonic() + LOOK
            while True:
                for _ in range(_SPINS):
                    if words[answered] == ticket:
                        taken = words[_NANOSECONDS // 8]
                        return REPLY_IN_SOCKET if taken == _IN_SOCKET else taken
                if time.monotonic() >= until:
                    self._is_sent_twice = True
                    return SILENT
                os.sched_yield()
        except ValueError:  # closed meanwhile, by another thread
            return SILENT

    def close(self) -> None:
        """Unmaps the page, which keeps all device memory."""
        self._words.release()
        self._bytes.release()
        self._page.close()

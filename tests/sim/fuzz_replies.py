"""`make fuzz-replies`: messages as a broken or hostile engine may send them, against the side that reads them.

python -m tests.sim.fuzz_replies --count N --seed S
"""

from __future__ import annotations

import argparse
import mmap
import random
import select
import socket
import struct
import sys
import tempfile
import time
import weakref
from collections import Counter

from compass_core.errors import CompassError
from compass_sim import RunResult, Worker
from compass_sim import worker as module
from compass_sim.mailbox import Mailbox

REPLY, LOCATION, RECORD = struct.Struct("<IIIIiIIIQQQ"), struct.Struct("<IIQ"), struct.Struct("<QQIIII")
TICKET = 0x807465_6B63697401
EDGES = (0, 1, 2, 3, 7, 8, 15, 16, 255, 1 << 16, (64 << 20) - 1, 64 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
LONGEST, LONGEST_ASLEEP = 1.0, 60.0
"""Seconds that this thread may compute to judge an answer, and that it may take on a busy machine."""


def word(draw: random.Random) -> int:
    return draw.choice(EDGES) if draw.random() < 0.5 else draw.randrange(40)


def message(draw: random.Random) -> bytes:
    """One message: honest, or with any of its fields and tails changed."""
    places, size, printed = (draw.randrange(5) if draw.random() < 0.7 else word(draw) for _ in range(3))
    status = draw.choice((0, 0, 1, 2, word(draw)))
    address = draw.choice((0, 3, word(draw), draw.getrandbits(64)))
    ticket = TICKET if draw.random() < 0.8 else draw.choice((0, draw.getrandbits(64), TICKET ^ 1))
    fields = (
        status,
        word(draw),
        draw.choice((word(draw), 0xFFFF_FFFF)),
        word(draw),
        draw.randrange(-5, 200),
        places,
        size,
        printed,
        address,
        draw.getrandbits(64),
        ticket,
    )
    tails = LOCATION.pack(word(draw), word(draw), draw.getrandbits(64)) * min(places, 40)
    tails += draw.randbytes(min(size, 4096)) + draw.randbytes(min(printed, 4096))
    tails += draw.randbytes(RECORD.size) * min(address, 40) if draw.random() < 0.5 else b""
    data = bytearray(REPLY.pack(*fields) + tails)
    for _ in range(draw.choice((0, 0, 0, 1, 2, 8))):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data[: draw.randrange(len(data) + 1)]) if draw.random() < 0.2 else bytes(data)


def nothing() -> None:
    pass


class Parent:
    """A worker object that talks with us instead of an engine."""

    def __init__(self) -> None:
        self.worker = Worker()
        self.worker._process.end()
        self.page = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the object
        self.page.truncate(mmap.PAGESIZE)

    def outcome(self, data: bytes, ends: bool, record: bool, mail: tuple[int, int, int] = (0, 0, 0)) -> str:
        """What a run makes of an answer in the socket, and of the words `mail` in the mailbox: whether it is looked at, time,
        ticket. AssertionError for anything but a result or an error of the toolchain."""
        worker = self.worker
        worker._mailbox = Mailbox(self.page.fileno())
        worker._mailbox._words[:3] = memoryview(struct.pack("<3Q", *mail)).cast("Q")
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        worker._socket, worker._poll, worker._tickets = ours, select.poll(), [TICKET]
        worker._poll.register(ours, select.POLLIN)
        worker._end = weakref.finalize(worker, nothing)
        worker._process.lost = False
        with ours, theirs:
            theirs.setblocking(False)
            theirs.send(data)
            if ends:
                theirs.shutdown(socket.SHUT_WR)
            begun, computed = time.monotonic(), time.thread_time()
            try:
                result = worker.dispatch(0x10000, 1, timeout=0.001, record=record)
            except CompassError as error:
                assert str(error)
                found = error.code
                assert worker.alive == (found == "job-refused")
            else:
                assert isinstance(result, RunResult)
                sent = int.from_bytes(data[48:56], "little") == TICKET and data[:4] == bytes(4)
                assert sent or (mail[0] == 1 and mail[2] == TICKET), "a result that nobody sent"
                found = f"result with{'' if result.records else 'out'} records"
            assert time.thread_time() - computed < LONGEST, "it took too long"
            assert time.monotonic() - begun < LONGEST_ASLEEP, "it waited too long"
            return found


def fuzz(count: int, seed: int) -> Counter[str]:
    """How often which outcome; AssertionError with the case for one that may not be."""
    parent, found = Parent(), Counter[str]()
    grace, module._GRACE = module._GRACE, 0.002
    try:
        for number in range(count):
            draw = random.Random(f"{seed} {number}")
            data = b"".join(message(draw) for _ in range(draw.choice((1, 1, 1, 2))))
            ends, record = draw.random() < 0.95, draw.random() < 0.3
            try:
                mail = draw.choice((0, 0, 1, word(draw))), draw.getrandbits(64), draw.choice((TICKET, word(draw)))
                found[parent.outcome(data, ends, record, mail)] += 1
            except BaseException:
                print(f"seed {seed}, case {number}: {data.hex()}", file=sys.stderr)
                raise
    finally:
        module._GRACE = grace
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Forged replies.")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for outcome, times in fuzz(given.count, given.seed).most_common():
        print(f"{times:8} {outcome}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What all fuzz targets share: how inputs are made from others, a run of many with limits on time and memory, its report.

A target gives files to start from and a function that says what its reader makes of an input, in general terms:
`refused: ...` or `read: ...`. Whatever else happens is a failure. An input that is answered in a new way joins those to
mutate, so that a run gets deeper than its start.
"""

from __future__ import annotations

import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType

from compass_core.errors import CompassError, flat

MEMORY = 1 << 30
SECONDS, WAITING = 1, 60
"""Time that one input may take: of the processor, and in all, for a reader may also wait."""
POOL = 4000
"""Most inputs to mutate; beyond it new ones replace old ones."""
THOROUGH = 0.1
"""Share of inputs whose answer is known that are looked at in full all the same."""
SOUND = 0.75
"""Share of mutants made from inputs that were read."""
WORDS = (0, 1, 2, 4, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|b\"[^\"]*\"|b'[^']*'")
Ranges = Sequence[tuple[int, int]]
"""Offset and size of parts of an input."""
Mutate = Callable[[list[bytes], random.Random], bytes]


class TooSlow(Exception):
    """The reader took more than its time on one input."""


@dataclass(frozen=True)
class Target:
    """A reader to try. `answer` takes an input, the answers that are known, and whether to look at it in full."""

    name: str
    corpus: Callable[[], list[bytes]]
    answer: Callable[[bytes, Container[str], bool], str]
    mutate: Mutate
    memory: int | None = MEMORY
    """Bytes of memory that a run may take beside what it has at its start; None: any, for it starts programs."""
    seconds: float = SECONDS
    waiting: float = WAITING


def without_numbers(text: str) -> str:
    """A message without what differs from input to input."""
    return _NUMBER.sub("#", text)[:120]


def refused(error: CompassError) -> str:
    """The answer for a refusal: its code and its message."""
    first = flat(error)[0]
    return f"refused: {first.code} {without_numbers(first.message)}"


# ---------------------------------------------------------------------------------------------------------- mutations


def bytes_mutant(pool: list[bytes], source: random.Random, parts: Callable[[bytes], Ranges] | None = None) -> bytes:
    """An input of the pool with one to four places changed, mostly inside of one of its `parts`."""
    out = bytearray(source.choice(pool))
    inside = list(parts(bytes(out))) if parts is not None and source.random() < 0.7 else []
    for _ in range(source.choice((1, 1, 1, 2, 2, 4))):
        low, size = source.choice(inside) if inside else (0, len(out))
        if size:
            _change(out, low, size, source, pool, bool(inside))
        if not out:
            break
    return bytes(out)


def _change(out: bytearray, low: int, size: int, source: random.Random, pool: list[bytes], keep: bool) -> None:
    """One change between `low` and `low + size`; `keep`: the length stays."""
    at = low + source.randrange(size)
    word = low + (at - low & ~3)
    choice = source.randrange(5 if keep else 8)
    if choice == 0 and at < len(out):
        out[at] ^= 1 << source.randrange(8)
    elif choice == 1 and at < len(out):
        out[at] = source.randrange(256)
    elif choice in (2, 3):
        value = source.choice((*WORDS, len(out), size, source.randrange(256)))
        out[word : word + 4] = struct.pack("<I", value & 0xFFFFFFFF)
    elif choice == 4:
        (value,) = struct.unpack("<I", bytes(out[word : word + 4]).ljust(4, b"\0"))
        out[word : word + 4] = struct.pack("<I", (value + source.choice((-4, -1, 1, 4, 8))) & 0xFFFFFFFF)
    elif choice == 5:
        del out[at : at + source.randrange(1, 64)]
    elif choice == 6:
        out[at:at] = source.randbytes(source.randrange(1, 17))
    elif choice == 7:
        other = source.choice(pool)
        start = source.randrange(max(len(other), 1))
        out[at : at + 32] = other[start : start + 32]


_TOKEN = re.compile(rb"\w+|\s+|[^\w\s]")
_ODD = (
    b"0",
    b"-1",
    b"1",
    b"2147483647",
    b"4294967296",
    b"99999999999999999999",
    b"1e999",
    b"nan",
    b"null",
    b"true",
    b"None",
    b"[]",
    b"{}",
    b"[[[[[[[[",
    b"((((((((",
    b'""',
    b'"',
    b"'",
    b"\\",
    b"\0",
    b"\xff",
    b"\n",
    b"=",
    b",",
    b":",
    b"&a",
    b"*a",
    b"x" * 300,
    b"[" * 40 + b"]" * 40,
    b'{"a":' * 30 + b"1" + b"}" * 30,
    b"../../etc/passwd",
)
MOST_TEXT = 20_000
"""Bytes of the longest text that is made."""


def text_mutant(pool: list[bytes], source: random.Random) -> bytes:
    """A text of the pool with tokens or lines left out, doubled, exchanged, or replaced by odd ones or another's."""
    base = source.choice(pool)
    if source.random() < 0.1:
        return bytes_mutant(pool, source)[:MOST_TEXT]
    parts = base.splitlines(keepends=True) if source.random() < 0.2 else _TOKEN.findall(base)
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        if not parts:
            break
        at, other = source.randrange(len(parts)), source.randrange(len(parts))
        choice = source.randrange(6)
        if choice == 0:
            del parts[at : at + source.choice((1, 1, 2, 8))]
        elif choice == 1:
            parts[at:at] = parts[other : other + source.choice((1, 2, 8, 40))]
        elif choice == 2:
            parts[at], parts[other] = parts[other], parts[at]
        elif choice == 3:
            parts[at] = parts[other]
        elif choice == 4:
            parts[at] = source.choice(_ODD)
        else:
            found = _TOKEN.findall(source.choice(pool))
            start = source.randrange(max(len(found), 1))
            parts[at:at] = found[start : start + source.choice((1, 4, 16))]
    return b"".join(parts)[:MOST_TEXT]


# ---------------------------------------------------------------------------------------------------------------- runs


@dataclass
class Campaign:
    """A fuzz run: the inputs to mutate, how often each kind of answer came, and what went wrong."""

    target: Target
    seed: int
    accepted: list[bytes] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[bytes, str]] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.accepted, self.refused = self.target.corpus(), self.target.corpus()

    def run(self, count: int) -> Iterator[int]:
        """Tries `count` mutants; yields the number done now and then."""
        source = random.Random(self.seed)
        for done in range(1, count + 1):
            pool = self.accepted if source.random() < SOUND else self.refused
            self._try(self.target.mutate(pool, source), source)
            if done % 10000 == 0:
                yield done

    def _try(self, data: bytes, source: random.Random) -> None:
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, self.target.seconds)
        signal.setitimer(signal.ITIMER_REAL, self.target.waiting)
        try:
            said = self.target.answer(data, self.answers, source.random() < THOROUGH)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            self.failures.append((data, repr(error)))
            print(f"failure: {error!r}\n{data.hex()}", file=sys.stderr, flush=True)
            return
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.slowest = max(self.slowest, time.process_time() - start)
        self.answers[said] += 1
        if self.answers[said] == 1:
            pool = self.accepted if said.startswith("read") else self.refused
            if len(pool) < POOL:
                pool.append(data)
            else:
                pool[source.randrange(POOL)] = data

    @property
    def read(self) -> int:
        """How many inputs were read."""
        return sum(n for said, n in self.answers.items() if said.startswith("read"))

    def report(self, count: int) -> str:
        """One line on the run, and the first failures."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        line = (
            f"{self.target.name}: {count} inputs from seed {self.seed} in {self.seconds:.0f} s: {self.read} read, "
            f"{count - self.read - len(self.failures)} refused in {len(self.answers)} ways, {len(self.failures)} failures; "
            f"slowest {self.slowest * 1e3:.1f} ms, peak memory {peak} MiB"
        )
        return "\n".join([line, *(f"\n{said}\n{data.hex()}" for data, said in self.failures[:5])])


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlow("too many seconds of work, or of waiting")


def campaign(target: Target, seed: int, count: int) -> Campaign:
    """A run of `count` mutants, with limits on time and memory."""
    run = Campaign(target, seed)
    old_alarms = [(number, signal.signal(number, _alarm)) for number in (signal.SIGPROF, signal.SIGALRM)]
    old_limit = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    if target.memory is not None:
        most = used + target.memory
        limit = most if old_limit[1] == resource.RLIM_INFINITY else min(most, old_limit[1])
        resource.setrlimit(resource.RLIMIT_AS, (limit, old_limit[1]))
    start = time.monotonic()
    try:
        for done in run.run(count):
            if done % 100000 == 0:
                print(
                    f"{done} inputs, {len(run.answers)} kinds of answers, {len(run.failures)} failures", file=sys.stderr
                )
    finally:
        run.seconds = time.monotonic() - start
        resource.setrlimit(resource.RLIMIT_AS, old_limit)
        for number, old_alarm in old_alarms:
            signal.signal(number, old_alarm)
    return run


def scratch(what: str) -> Path:
    """The folder to which this process writes such inputs; it is removed when the process ends."""
    return Path(_scratch(what).name)


@cache
def _scratch(what: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"compass-hostile-{what}-")

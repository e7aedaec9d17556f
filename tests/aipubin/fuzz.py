"""`python -m tests.aipubin.fuzz --count N --seed S`: N damaged aipu.bin files through the reader.

Files are mutated as a whole, or note by note inside a container that stays sound, so that the checks of the container
do not shield those of the notes. A mutant that the reader answers in a new way (another place and field of the error,
or another make-up of an accepted file) joins the files to mutate. A mutant must either be refused with AipuBinError,
or be shown, written and read again to the same bytes. Each gets at most a second, the process at most a gibibyte.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from compass_core.aipubin import AipuBin, AipuBinError, KernelInfo, Note, Param, describe, read, write
from compass_core.aipubin import layout as lay
from compass_core.aipubin.device import device_word
from compass_core.aipubin.model import NOTES
from compass_core.errors import CompassError
from compass_core.hostcode import make_text_blob, parse_text_blob

MEMORY = 1 << 30
SECONDS = 1
POOL = 4000
"""Most files to mutate; beyond it new ones replace old ones."""
THOROUGH = 0.1
"""Share of accepted files that are shown and written again even when files like them were before."""
SOUND = 0.75
"""Share of mutants made from files that were accepted."""
WORDS = (0, 1, 2, 4, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)


class TooSlow(Exception):
    """The reader took more than its time on one input."""


def full(target: str) -> AipuBin:
    """A file with every note and every kind of record in it."""
    subs = [
        lay.SubSection(size=32, type=lay.Kind.INPUT, data_type=7, references=(0,)),
        lay.SubSection(size=32, type=lay.Kind.OUTPUT, data_type=0xB, references=(4, 40)),
        lay.SubSection(offset=16, size=8, references=(12,), addr_mask=0xFFFF),
        lay.SubSection(size=4, type=lay.Kind.OUTPUT_SHAPE),
        lay.SubSection(size=4, type=lay.Kind.PROFILER),
    ]
    const = lay.SubSection(size=8, type=lay.Kind.CONSTANT, references=(8,))
    zero_copy = lay.SubSection(size=8, type=lay.Kind.ZERO_COPY)
    bss = lay.Bss(
        reuses=tuple(lay.ReuseSection(64, subs=(sub,)) for sub in subs),
        statics=(lay.StaticSection(0, 8, subs=(const,)), lay.StaticSection(8, 8, 32, (zero_copy,))),
    )
    private = lay.ReuseSection(64, subs=(lay.SubSection(size=64, references=(20,)),))
    first = lay.Subgraph(text_offset=64, params_size=16, private_buffers=(private,), desc_size=8)
    last = lay.Subgraph(text_offset=64, params_offset=16, params_size=16, precursors=None, printf_size=1024)
    middle = lay.Subgraph(text_offset=64, params_offset=16, params_size=16, precursors=(0,))
    return AipuBin(
        compiler=lay.CompilerMessage(device_word(target), flag=lay.DYNAMIC_SHAPE_FLAG),
        features=lay.FeatureMaps((bss, lay.Bss((lay.ReuseSection(8),)))),
        subgraphs=(first, middle, last),
        text=make_text_blob(b"\x7fELF" + bytes(60), ["__compass_entry_k"], "avx2", "x86_64-linux-gnu"),
        params=bytes(32),
        desc=bytes(16),
        weights=bytes(16),
        remap=(lay.Remap(lay.Area.PARAMS, 28, lay.Area.DESC, 8), lay.Remap(lay.Area.DESC, 4, lay.Area.TEXT, 0)),
        gm=lay.GmConfig(control=1),
        segmmu=(lay.SegMmu(),),
        global_params=lay.GlobalParams(8, 1, bytes(8)),
        shape_limits=(lay.ShapeLimit((1, 4)), lay.ShapeLimit((4, 4))),
        extra_weights=lay.ExtraWeights((lay.ExtraWeight("w+" + "0" * 64),)),
        hash_tables=(lay.HashTable((lay.ConstantHash(0, 8, bytes(32)),)), lay.HashTable(())),
        graph_json=b'{"format":"compassc-graph/1","inputs":[{"name":"x","shape":[8]}],"outputs":[],"layers":[]}',
        const_data=b"abcd",
        data=b"abcd",
        comment=f"target:{target};",
        kernel=KernelInfo(
            "k", target, (Param("a", "pointer", "int8x32", "input"), Param("n", "scalar", "int32", "attr"))
        ),
        other_notes=(Note("foreign", b"\1\2\3"),),
    )


def corpus() -> list[bytes]:
    """The files to start from: everything at once, for both device families, and nearly nothing."""
    small = AipuBin(
        compiler=lay.CompilerMessage(device_word("X2_1204")),
        features=lay.FeatureMaps((lay.Bss((lay.ReuseSection(4),)),)),
        subgraphs=(lay.Subgraph(text_offset=0, params_size=4),),
        text=bytes(8),
        params=bytes(4),
    )
    return [write(full("X2_1204")), write(full("X3P_1304MP2")), write(small)]


def notes_of(data: bytes) -> list[tuple[int, int]]:
    """(offset, size) of the payloads of the notes this toolchain knows, in a file that may be damaged."""
    found = []
    for spec in NOTES:
        name = spec.name.encode() + b"\0"
        at = data.find(struct.pack("<I", len(name)), 0)
        while at >= 0 and data[at + 12 : at + 12 + len(name)] != name:
            at = data.find(struct.pack("<I", len(name)), at + 1)
        if at >= 0 and at + 12 <= len(data):
            (size,) = struct.unpack_from("<I", data, at + 4)
            start = at + 12 + -(-len(name) // 4) * 4
            if start + size <= len(data):
                found.append((start, size))
    return found


def mutant(pool: list[bytes], source: random.Random) -> bytes:
    """A file of the pool with one to four places changed."""
    out = bytearray(source.choice(pool))
    notes = notes_of(bytes(out)) if source.random() < 0.7 else []
    for _ in range(source.choice((1, 1, 1, 2, 2, 4))):
        low, size = source.choice(notes) if notes else (0, len(out))
        if not size:
            continue
        at = low + source.randrange(size)
        word = low + (at - low & ~3)
        choice = source.randrange(8 if not notes else 5)
        if choice == 0:
            out[at] ^= 1 << source.randrange(8)
        elif choice == 1:
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
        else:
            other = source.choice(pool)
            start = source.randrange(max(len(other), 1))
            out[at : at + 32] = other[start : start + 32]
        if not out:
            break
    return bytes(out)


_NUMBER = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|b\"[^\"]*\"")


def answer(data: bytes, known: Container[str] = (), thorough: bool = True) -> str:
    """What the reader makes of `data`, in general terms. Anything but AipuBinError comes out as it is.

    An accepted file is shown and written again when that is a `known` answer only if `thorough`.
    """
    try:
        content = read(data)
    except AipuBinError as error:
        return f"refused: {error.code} {_NUMBER.sub('#', f'{error.place} {error.field} {error.message}')[:120]}"
    try:
        code = str(len(parse_text_blob(content.text).entries))
    except CompassError:
        code = "foreign"
    counts = (len(content.subgraphs), len(content.features.bss), len(content.remap), len(content.other_notes))
    said = f"read: {counts} {content.compiler.dynamic_shape} {code}"
    if thorough or said not in known:
        for _, columns, rows in describe(content):
            assert all(len(row) == len(columns) for row in rows), "a table has rows of different lengths"
        again = write(content)
        assert write(read(again)) == again, "written and read again, the file differs"
    return said


@dataclass
class Campaign:
    """A fuzz run: the files to mutate, how often each kind of answer came, and what went wrong."""

    seed: int
    accepted: list[bytes] = field(default_factory=corpus)
    refused: list[bytes] = field(default_factory=corpus)
    answers: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[bytes, str]] = field(default_factory=list)
    slowest: float = 0.0

    def run(self, count: int) -> Iterator[int]:
        """Tries `count` mutants; yields the number done now and then."""
        source = random.Random(self.seed)
        for done in range(1, count + 1):
            self._try(mutant(self.accepted if source.random() < SOUND else self.refused, source), source)
            if done % 10000 == 0:
                yield done

    def _try(self, data: bytes, source: random.Random) -> None:
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            said = answer(data, self.answers, source.random() < THOROUGH)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            self.failures.append((data, repr(error)))
            return
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.slowest = max(self.slowest, time.perf_counter() - start)
        self.answers[said] += 1
        if self.answers[said] == 1:
            pool = self.accepted if said.startswith("read") else self.refused
            if len(pool) < POOL:
                pool.append(data)
            else:
                pool[source.randrange(POOL)] = data


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlow(f"more than {SECONDS} s")


def campaign(seed: int, count: int) -> Campaign:
    """A run of `count` mutants, with limits on time and memory."""
    old_alarm = signal.signal(signal.SIGALRM, _alarm)
    old_limit = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + MEMORY if old_limit[1] == resource.RLIM_INFINITY else min(used + MEMORY, old_limit[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, old_limit[1]))
    try:
        run = Campaign(seed)
        for done in run.run(count):
            if done % 100000 == 0:
                print(
                    f"{done} inputs, {len(run.answers)} kinds of answers, {len(run.failures)} failures", file=sys.stderr
                )
        return run
    finally:
        resource.setrlimit(resource.RLIMIT_AS, old_limit)
        signal.signal(signal.SIGALRM, old_alarm)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.aipubin.fuzz", description="Damaged files for the reader.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000, help="number of inputs")
    given = parser.parse_args()
    start = time.monotonic()
    run = campaign(given.seed, given.count)
    accepted = sum(n for said, n in run.answers.items() if said.startswith("read"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{given.count} inputs from seed {given.seed} in {time.monotonic() - start:.0f} s: {accepted} read, "
        f"{given.count - accepted - len(run.failures)} refused in {len(run.answers)} ways, {len(run.failures)} failures; "
        f"slowest {run.slowest * 1e3:.1f} ms, peak memory {peak} MiB"
    )
    for data, said in run.failures[:5]:
        print(f"\n{said}\n{data.hex()}")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())

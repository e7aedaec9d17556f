"""A bare test bench around one worker: compile kernel text, write a task chain by hand, run it."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, final

import numpy as np

from compass_core.elf.hostcode import make_text_blob, parse_text_blob
from compass_core.files.cache import Cache
from compass_core.hostcc import command
from compass_core.hostcc.clang import find_clang
from compass_core.hostcc.pch import precompiled_header
from compass_core.targets import load
from compass_sim import RunResult, Worker

TEXT, TCBS, PARAMS, ARENA = 0x0010_0000, 0x0020_0000, 0x0021_0000, 0x0100_0000
TRIPLE = "x86_64-unknown-linux-gnu"
QUIET = ("-Wno-uninitialized",)


@lru_cache(maxsize=64)
def compile_kernel(text: str, define: str = "__AIPUX2__", march: str = "native") -> bytes:
    """The object for kernel text that may end in entries; the header line is put in front."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder, "kernel.cl"), Path(folder, "kernel.o")
        source.write_text(f'#include <compass/dsl.h>\n#line 1 "kernel.py"\n{text}', encoding="utf-8")
        clang = find_clang()
        flags = command.kernel_flags(clang, define, () if march == "native" else (f"-march={march}",))
        header = precompiled_header(clang, flags, Cache())
        unit = command.unit_arguments(header, str(source), str(output))
        done = command.run([str(clang.path), *flags, *QUIET, *unit], Path(folder))
        assert done.status == 0, done.output
        return output.read_bytes()


@final
class Bench:
    """A worker with text, parameters and tensors at fixed places of its memory."""

    def __init__(self, target: str | None = None) -> None:
        self.worker = Worker(None if target is None else load(target))
        self.next = ARENA

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.worker.close()

    def write(self, address: int, data: bytes) -> None:
        self.worker.memory[address : address + len(data)] = data

    def read(self, address: int, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        raw = self.worker.memory[address : address + like.nbytes]
        return np.frombuffer(raw, dtype=like.dtype).reshape(like.shape).copy()

    def place(self, array: np.ndarray[Any, Any], address: int | None = None) -> int:
        """Put an array into device memory; its address."""
        at = self.next if address is None else address
        if address is None:
            self.next = -(-(at + array.nbytes) // 64) * 64
        self.write(at, array.tobytes())
        return at

    def load(self, elf: bytes, symbols: Sequence[str] = ("entry",)) -> dict[str, int]:
        """Put an object into device memory; the device address of each entry."""
        data = make_text_blob(elf, list(symbols), "native", TRIPLE)
        self.write(TEXT, data)
        return {name: TEXT + offset for name, offset in parse_text_blob(data).entries}

    def chain(self, spc: int, groups: int = 1, tasks: int = 4, kind: str = "x2") -> tuple[int, int]:
        """Write a chain of groups of tasks; (head, count)."""
        blocks = [block(0, 0, 0, 0, 1)]
        for group in range(groups):
            blocks += [block(1, 0, group, 0, 1)] if kind == "x3" else []
            last = {tasks - 1: 0x40}
            blocks += [block((2 if kind == "x3" else 1) | last.get(i, 0), spc, group, i, tasks) for i in range(tasks)]
        for i, tcb in enumerate(blocks):
            following = TCBS + 128 * (i + 1) if kind == "x2" and i + 1 < len(blocks) else 0
            self.write(TCBS + 128 * i, tcb[:4] + struct.pack("<I", following) + tcb[8:])
        return TCBS, len(blocks)

    def parameters(self, *words: int) -> None:
        """Write the parameter block."""
        self.write(PARAMS, struct.pack(f"<{len(words) + 1}I", *(w & 0xFFFFFFFF for w in words), 0))

    def run(
        self,
        text: str,
        *words: int,
        entry: str = "entry",
        timeout: float = 20.0,
        seed: int = 0,
        record: bool = False,
        **chain: Any,
    ) -> RunResult:
        """Compile, load, and run with the given parameter words."""
        spc = self.load(compile_kernel(text), [entry])[entry]
        self.parameters(*words)
        head, count = self.chain(spc, **chain)
        return self.worker.dispatch(head, count, chain.get("kind", "x2"), timeout, seed=seed, record=record)


def block(flag: int, spc: int, group: int, task: int, tasks: int) -> bytes:
    """One task control block without its link."""
    tcb = bytearray(128)
    struct.pack_into("<I8xI", tcb, 0, flag, spc)
    struct.pack_into("<H", tcb, 20, group)
    struct.pack_into("<3H3H3H3H", tcb, 28, 1, 1, 1, tasks, 1, 1, 1, 0, 0, task, 0, 0)
    struct.pack_into("<I", tcb, 56, PARAMS)
    return bytes(tcb)

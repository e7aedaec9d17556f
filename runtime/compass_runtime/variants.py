"""A program compiled again in another way: its aipu.bin keeps the C text it was made from."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from compass_core.elf.hostcode import make_text_blob
from compass_core.elf.link import Part, link
from compass_core.hostcc import host
from compass_core.hostcc.foreign import compile_source
from compass_core.hostcc.sources import Source, read_sources
from compass_core.progress import told
from compass_core.reading.limits import COMPILE_ALL_SECONDS
from compass_runtime.program import Program


def variant(
    program: Program, flags: Sequence[str], clang: str | None = None, *, sources: Sequence[Source] | None = None
) -> Program:
    """A program like `program` whose kernels are compiled with `flags` behind those that it declares, or from
    other `sources` than it keeps.

    Tensors, parameters and entries are the same, only the host code in `.text` differs. Compiled objects come from the
    compile cache when it has them. CompassError when the file keeps no C text, or one that nothing here can compile without
    danger, ToolchainError when clang is missing.
    """
    sources = sources or read_sources(program.code.elf, program.trusted)
    until = time.monotonic() + COMPILE_ALL_SECONDS.most
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # clang runs beside clang
        objects = pool.map(lambda source: compile_source(source, flags, clang, until), sources)
        made = list(told("kernels compiled for this run", objects, len(sources)))
    parts = [Part(s.name, data, s.entries) for s, data in zip(sources, made, strict=True)]
    elf = parts[0].data if len(parts) == 1 else link(parts)
    return with_object(program, elf)


def with_object(program: Program, elf: bytes) -> Program:
    """The same program with another object for this host, which has the same entries."""

    code = program.code
    symbols = [symbol for symbol, _ in code.entries]
    text = make_text_blob(elf, symbols, host.current().features, host.triple(), code.asids)
    return Program(replace(program.content, text=text), program.where, program.trusted)

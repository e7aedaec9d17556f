"""From an instruction of a kernel object to the source line it was compiled from."""

from __future__ import annotations

import io
import os
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=8)
def _rows(elf: bytes) -> tuple[tuple[int, int, str, int], ...]:
    """(first address, end address, file, line) of every row of the line tables that covers code, by address."""
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(elf))
    if not file.has_dwarf_info():
        return ()
    dwarf = file.get_dwarf_info()
    rows: list[tuple[int, int, str, int]] = []
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        previous = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if previous is not None and state.address > previous.address:
                name = _file_name(program, previous.file)
                rows.append((previous.address, state.address, name, previous.line))
            previous = None if state.end_sequence else state
    return tuple(sorted(rows))


def _file_name(program: Any, index: int) -> str:
    """The path of file `index` of a line program; file and folder numbers count from 0 since DWARF 5, from 1 before."""
    header = program.header
    files, folders = header["file_entry"], header["include_directory"]
    base = 0 if header["version"] >= 5 else 1
    if not base <= index < len(files) + base:
        return "?"
    entry = files[index - base]
    name, folder = _text(entry.name), entry.dir_index
    if os.path.isabs(name) or (base and not folder) or not 0 <= folder - base < len(folders):
        return name
    return os.path.normpath(os.path.join(_text(folders[folder - base]), name))


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def locate(elf: bytes, pc: int) -> tuple[str, int] | None:
    """(file, line) of the instruction at offset `pc` of `.text` in a relocatable object; None when it is not known.

    A line number 0 (code the compiler made up) is looked through to the row before it.
    """
    best = None
    for low, high, name, line in _rows(elf):
        if low <= pc and line:
            best = (low, high, name, line)
        if low > pc:
            break
    return (best[2], best[3]) if best else None

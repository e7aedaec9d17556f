"""The layout of ELF64 files, as far as kernel objects need it, and the lookup of a section."""

from __future__ import annotations

import struct

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
SHDR = struct.Struct("<IIQQQQIIQQ")


def section(elf: bytes, name: str) -> bytes | None:
    """The content of the first section called `name`; None when the file has none, or is no ELF64 file."""
    try:
        header = EHDR.unpack_from(elf)
        table, size, count, names_index = header[6], header[11], header[12], header[13]
        sections = [SHDR.unpack_from(elf, table + i * size) for i in range(count)]
        names = sections[names_index][4]
    except (struct.error, IndexError):
        return None
    wanted = name.encode() + b"\0"
    for row in sections:
        start = names + row[0]
        if elf[start : start + len(wanted)] == wanted:
            return elf[row[4] : row[4] + row[5]]
    return None

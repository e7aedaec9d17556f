"""The layout of ELF64 files, as far as kernel objects need it, and the lookup of a section."""

from __future__ import annotations

import struct

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
SHDR = struct.Struct("<IIQQQQIIQQ")
_PROGBITS = 1


def section(elf: bytes, name: str) -> bytes | None:
    """The content of the first section called `name`; None when the file has none, or is no ELF64 file."""
    try:
        header = EHDR.unpack_from(elf)
        table, size, count, names_index = header[6], header[11], header[12], header[13]
        sections = [SHDR.unpack_from(elf, table + i * size) for i in range(count)]
        names = sections[names_index][4]
    except (struct.error, IndexError, OverflowError):
        return None
    wanted = name.encode() + b"\0"
    for row in sections:
        start = names + row[0]
        if elf[start : start + len(wanted)] == wanted:
            return elf[row[4] : row[4] + row[5]]
    return None


def with_section(elf: bytes, name: str, content: bytes) -> bytes:
    """The object with one more section, of bytes that are never loaded. Other content is not moved; ValueError when the
    file is no ELF64 object."""
    try:
        header = list(EHDR.unpack_from(elf))
        table, size, count, names_index = header[6], header[11], header[12], header[13]
        if size != SHDR.size:
            raise ValueError(f"section headers of {size} bytes")
        rows = [list(SHDR.unpack_from(elf, table + i * size)) for i in range(count)]
        names = rows[names_index]
    except (struct.error, IndexError) as error:
        raise ValueError(f"no ELF64 object: {error}") from None
    strings = elf[names[4] : names[4] + names[5]]
    out = bytearray(elf)
    rows.append([len(strings), _PROGBITS, 0, 0, len(out), len(content), 0, 0, 1, 0])
    out += content
    names[4], names[5] = len(out), len(strings) + len(name) + 1
    out += strings + name.encode() + b"\0"
    out += bytes(-len(out) % 8)
    header[6], header[12] = len(out), len(rows)
    for row in rows:
        out += SHDR.pack(*row)
    EHDR.pack_into(out, 0, *header)
    return bytes(out)

"""From an instruction of a kernel object to the source line it was compiled from.

Reads the line tables of DWARF 5 as far as clang writes them, like runtime/native/lines.c. Objects may come from anybody:
each part is read once, and how much there may be is bounded (`compass_core.reading.limits`).
"""

from __future__ import annotations

import bisect
import os
import struct
import zlib
from collections.abc import Iterator
from functools import lru_cache

from compass_core.dataclass import dataclass
from compass_core.elf.elf64 import EHDR, SHDR
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compass_core.reading.limits import DEBUG_BYTES, DEBUG_FILES, DEBUG_ROWS, ELF_SECTIONS

_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QIIq")
_COMPRESSION = struct.Struct("<IIQQ")
_COMPRESSED, _NOBITS, _SHT_RELA = 0x800, 8, 4
_R_64, _R_32 = 1, 10
_ZLIB = 1
_ELSEWHERE = (1 << 63) - 1
"""The address of code that is not in `.text`: nowhere that a TEC's place can name."""
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_NAME, _FOLDER = 1, 2
_FIXED_FORMS = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
_STRING, _STRP, _UDATA, _LINE_STRP, _BLOCK = 0x08, 0x0E, 0x0F, 0x1F, 0x09
_LONGEST = 4096
_MOST_LEB = 10
"""Bytes of a number of 64 bits."""


class AddressLine(NamedTuple):
    """Code from `address` on that was compiled from a line."""

    address: int
    file: str
    line: int


def locate(elf: bytes, pc: int) -> tuple[str, int] | None:
    """(file, line) of the instruction at offset `pc` of `.text` in a relocatable object; None when it is not known.

    A line number 0 (code the compiler made up) is looked through to the row before it. CompassError when the line tables
    are damaged, or larger than any kernel's.
    """
    rows = _rows(elf)
    at = bisect.bisect_right(rows, pc, key=lambda row: row.address) - 1
    return (rows[at].file, rows[at].line) if at >= 0 else None


@lru_cache(maxsize=8)
def _rows(elf: bytes) -> tuple[AddressLine, ...]:
    """The rows that cover code and name a line, by address."""
    try:
        tables = _tables(elf)
        return tuple(sorted(_all_rows(tables), key=lambda row: row.address)) if tables else ()
    except (struct.error, IndexError, ValueError, OverflowError, zlib.error) as error:
        raise CompassError(f"the line tables of the object are damaged ({error})", code="bad-debug-info") from None


# ------------------------------------------------------------------------------------------------------------ sections


@dataclass(frozen=True)
class _Tables:
    """`.debug_line`, relocated, and the sections of texts that it refers to."""

    lines: bytes
    line_strings: bytes
    strings: bytes


def _tables(elf: bytes) -> _Tables | None:
    """The sections about lines; None when the object has none."""
    header = EHDR.unpack_from(elf)
    if header[0][:6] != b"\x7fELF\2\1":
        raise ValueError("no 64-bit ELF object")
    table, count, names_index = header[6], header[12], header[13]
    ELF_SECTIONS.check(count, "the object")
    sections = [SHDR.unpack_from(elf, table + i * SHDR.size) for i in range(count)]
    names = sections[names_index]
    numbers: dict[bytes, int] = {}
    for i, row in enumerate(sections):
        start = names[4] + row[0]
        numbers.setdefault(elf[start : start + 32].partition(b"\0")[0], i)
    wanted = [numbers.get(name) for name in (b".debug_line", b".debug_line_str", b".debug_str")]
    if wanted[0] is None or b".text" not in numbers:
        return None
    found = [b"" if i is None else _content(elf, sections[i]) for i in wanted]
    DEBUG_BYTES.check(sum(map(len, found)), "the object")
    lines = bytearray(found[0])
    for row in sections:
        if row[1] == _SHT_RELA and row[7] == wanted[0] and row[6] < count:
            _relocate(lines, _content(elf, row), _content(elf, sections[row[6]]), numbers[b".text"])
    return _Tables(bytes(lines), found[1], found[2])


def _content(elf: bytes, row: tuple[int, ...]) -> bytes:
    """The bytes of a section; those of a compressed one as they were."""
    offset, size = row[4], row[5]
    if row[1] == _NOBITS:
        return b""
    if offset + size > len(elf):
        raise ValueError(f"{size} bytes at {offset:#x} lie outside the file")
    DEBUG_BYTES.check(size, "the object")
    data = elf[offset : offset + size]
    if not row[2] & _COMPRESSED:
        return data
    kind, _, plain_size, _ = _COMPRESSION.unpack_from(data)
    if kind != _ZLIB:
        raise ValueError(f"compression {kind} is not known")
    DEBUG_BYTES.check(plain_size, "the object")
    plain = zlib.decompressobj().decompress(data[_COMPRESSION.size :], plain_size)
    if len(plain) != plain_size:
        raise ValueError("a compressed section is shorter than it says")
    return plain


def _relocate(lines: bytearray, relocations: bytes, symbols: bytes, text: int) -> None:
    """Fills in addresses, and offsets in the sections of texts."""
    for offset, kind, symbol, addend in _RELA.iter_unpack(relocations[: len(relocations) // _RELA.size * _RELA.size]):
        width = {_R_64: 8, _R_32: 4}.get(kind)
        if width is None or offset + width > len(lines):
            continue
        _, _, _, section, value, _ = _SYMBOL.unpack_from(symbols, symbol * _SYMBOL.size)
        target = value + addend if width == 4 or section == text else _ELSEWHERE
        lines[offset : offset + width] = (target & (1 << 8 * width) - 1).to_bytes(width, "little")


# --------------------------------------------------------------------------------------------------------------- units


class _Reader:
    """A reading position; IndexError at the end."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        if not 0 <= at <= end <= len(data):
            raise IndexError("a part lies outside its section")
        self.data, self.at, self.end = data, at, end

    def number(self, size: int) -> int:
        self.skip(size)
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def skip(self, size: int) -> None:
        if size > self.end - self.at:
            raise IndexError("a part is cut off")
        self.at += size

    def leb(self, signed: bool = False) -> int:
        value = 0
        for i in range(_MOST_LEB):
            byte = self.number(1)
            value |= (byte & 0x7F) << 7 * i
            if not byte & 0x80:
                return value - (1 << 7 * (i + 1)) if signed and byte & 0x40 else value
        raise ValueError("a number has too many bytes")

    def text(self) -> bytes:
        stop = self.data.find(b"\0", self.at, min(self.end, self.at + _LONGEST))
        if stop < 0:
            raise IndexError("a text is cut off, or longer than any path")
        found = self.data[self.at : stop]
        self.at = stop + 1
        return found

    def part(self, size: int) -> _Reader:
        self.skip(size)
        return _Reader(self.data, self.at - size, self.at)


def _all_rows(tables: _Tables) -> Iterator[AddressLine]:
    reader = _Reader(tables.lines, 0, len(tables.lines))
    room = DEBUG_ROWS.most
    names = 0
    while reader.at < reader.end:
        unit = reader.part(reader.number(4))
        if unit.number(2) != 5:
            continue
        machine, program, files, folders = _unit(tables, unit)
        names += len(files) + len(folders)
        DEBUG_FILES.check(names, "the object")
        paths: dict[int, str] = {}
        for address, number, line in _run(machine, program):
            room -= 1
            if room < 0:
                raise DEBUG_ROWS.error("the object")
            if number not in paths:
                paths[number] = _path(folders, *files[number]) if number < len(files) else "?"
            yield AddressLine(address, paths[number], line)


@dataclass(frozen=True)
class _Machine:
    """The numbers of a unit's header that its program is read with."""

    step: int
    line_base: int
    line_range: int
    opcode_base: int
    operands: bytes
    """How many operands the opcodes from 1 on have."""


_Names = list[tuple[str, int]]
"""Names of files or folders, each with the number of the folder it lies in."""


def _unit(tables: _Tables, unit: _Reader) -> tuple[_Machine, _Reader, _Names, _Names]:
    """The header of a unit: how to read its program, the program, files and folders."""
    unit.skip(2)  # sizes of addresses and segments
    length = unit.number(4)
    program = _Reader(unit.data, unit.at + length, unit.end)
    step = unit.number(1)
    unit.skip(2)  # operations of an instruction, which rows are statements
    line_base = unit.number(1)
    line_range, opcode_base = unit.number(1), unit.number(1)
    if not line_range or not opcode_base:
        raise ValueError("a unit's header has a zero")
    unit.skip(opcode_base - 1)
    operands = unit.data[unit.at - opcode_base + 1 : unit.at]
    machine = _Machine(step, line_base - 256 * (line_base > 127), line_range, opcode_base, operands)
    folders = list(_entries(tables, unit))
    return machine, program, list(_entries(tables, unit)), folders


def _path(folders: _Names, name: str, folder: int) -> str:
    return os.path.normpath(os.path.join(folders[folder][0], name)) if folder < len(folders) else name


def _entries(tables: _Tables, unit: _Reader) -> Iterator[tuple[str, int]]:
    """A table of folders or files."""
    columns = [(unit.leb(), unit.leb()) for _ in range(unit.number(1))]
    count = unit.leb()
    DEBUG_FILES.check(count, "the object")
    for _ in range(count if columns else 0):
        name, folder = b"", 0
        for what, form in columns:
            value = _column(tables, unit, form)
            if what == _NAME and isinstance(value, bytes):
                name = value
            elif what == _FOLDER and isinstance(value, int):
                folder = value
        yield name.decode(errors="replace"), folder


def _column(tables: _Tables, unit: _Reader, form: int) -> bytes | int:
    if form in _FIXED_FORMS:
        return unit.number(_FIXED_FORMS[form])
    if form == _STRING:
        return unit.text()
    if form in (_STRP, _LINE_STRP):
        texts = tables.strings if form == _STRP else tables.line_strings
        return _Reader(texts, unit.number(4), len(texts)).text()
    if form == _UDATA:
        return unit.leb()
    if form == _BLOCK:
        unit.skip(unit.leb())
        return 0
    raise ValueError(f"a column has the unknown form {form:#x}")


def _run(machine: _Machine, program: _Reader) -> Iterator[tuple[int, int, int]]:
    """(address, file number, line) of each row that covers code and names a line."""
    address, file, line = 0, 1, 1
    last: tuple[int, int, int] | None = None
    while program.at < program.end:
        code = program.number(1)
        ends = False
        if code >= machine.opcode_base:
            step = code - machine.opcode_base
            address += step // machine.line_range * machine.step
            line += machine.line_base + step % machine.line_range
        elif code == 0:
            operands = program.part(program.leb())
            kind = operands.number(1)
            if kind == _SET_ADDRESS:
                address = operands.number(8)
            ends = kind == _END_SEQUENCE
        elif code == _ADVANCE_PC:
            address += program.leb() * machine.step
        elif code == _ADVANCE_LINE:
            line += program.leb(signed=True)
        elif code == _SET_FILE:
            file = program.leb()
        elif code == _CONST_ADD_PC:
            address += (255 - machine.opcode_base) // machine.line_range * machine.step
        elif code == _FIXED_ADVANCE_PC:
            address += program.number(2)
        elif code != _COPY:
            for _ in range(machine.operands[code - 1]):
                program.leb()
        if not (ends or code == _COPY or code >= machine.opcode_base):
            continue
        address &= (1 << 64) - 1
        if last is not None and address > last[0] and last[2] > 0:
            yield last
        last = None if ends else (address, file, line)
        if ends:
            address, file, line = 0, 1, 1

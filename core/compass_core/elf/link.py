"""Several relocatable ELF64 objects become one, so that one `.text` blob serves all layers of a graph.

Sections of the same name, type and flags are joined; relocations stay, rewritten for the joined sections. Of the
symbols an object defines only its kernels' entries stay global: helper functions of different objects may share names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from compass_core.dataclass import dataclass
from compass_core.elf.elf64 import EHDR, SHDR
from compass_core.errors import CompassError
from compass_core.hostcc.sources import SECTION, with_entries
from compass_core.namedtuple import NamedTuple
from compass_core.reading.limits import ELF_SECTIONS, ELF_SYMBOLS

SYM = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")
SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHT_GROUP = 0, 2, 3, 4, 8, 9, 17
SHF_MERGE_STRINGS, SHF_INFO_LINK, SHF_EXCLUDE = 0x30, 0x40, 0x80000000
SHN_COMMON, SHN_RESERVED = 0xFFF2, 0xFF00
MOST_ALIGN, MOST_BYTES, MOST_NAME = 1 << 16, 1 << 32, 1 << 12
STB_LOCAL, STB_GLOBAL, STT_SECTION = 0, 1, 3


class Part(NamedTuple):
    """An object to link. `entries`: the entry symbols to keep, and what each is called in the result."""

    name: str
    data: bytes
    entries: Mapping[str, str]


class _Section(NamedTuple):
    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entsize: int


class _Symbol(NamedTuple):
    name: str
    info: int
    other: int
    section: int
    value: int
    size: int


@dataclass
class _Joined:
    """An output section: its content so far, and its relocations (offset, type, symbol number, addend)."""

    index: int
    name: str
    type: int
    flags: int
    align: int = 1
    size: int = 0
    data: bytearray = field(default_factory=bytearray)
    relocations: list[tuple[int, int, int, int]] = field(default_factory=list)

    def append(self, data: bytes, size: int, align: int) -> int:
        """Adds `size` bytes (nothing to store when the section has no bits); gives where they start."""
        align = max(align, 1)
        self.align = max(self.align, align)
        start = -(-self.size // align) * align
        if self.type != SHT_NOBITS:
            self.data += bytes(start - self.size) + data
        self.size = start + size
        return start


class _Object:
    """A parsed input object; CompassError when it is damaged or of another kind."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.data = part.data
        with self.damage_refused():
            self._read()

    @contextmanager
    def damage_refused(self) -> Iterator[None]:
        """Errors caused by numbers in the object are reported as damage of the object."""
        try:
            yield
        except (struct.error, IndexError, ValueError, OverflowError) as error:
            raise self.error(f"its tables are damaged ({error})") from None

    def error(self, why: str) -> CompassError:
        return CompassError(
            f"cannot link '{self.part.name}': {why}", code="bad-object", help="compile it with compassc cc"
        )

    def _read(self) -> None:
        if self.data[:6] != b"\x7fELF\2\1":
            raise self.error("it is not a 64-bit little-endian ELF object")
        (_, kind, self.machine, _, _, _, shoff, self.flags, _, _, _, shentsize, shnum, names) = EHDR.unpack_from(
            self.data
        )
        if kind != 1 or shentsize != SHDR.size or shoff + shnum * SHDR.size > len(self.data):
            raise self.error("it is not a relocatable object")
        ELF_SECTIONS.check(shnum, self.part.name)
        raw = [SHDR.unpack_from(self.data, shoff + i * SHDR.size) for i in range(shnum)]
        strings = self._bytes(raw[names][4], raw[names][5])
        self.sections = [
            _Section(_name(strings, n), t, flags, offset, size, link, info, align, entsize)
            for n, t, flags, _, offset, size, link, info, align, entsize in raw
        ]
        tables = [s for s in self.sections if s.type == SHT_SYMTAB]
        if len(tables) != 1:
            raise self.error(f"it has {len(tables)} symbol tables")
        names_at = self.sections[tables[0].link]
        strings = self._bytes(names_at.offset, names_at.size)
        ELF_SYMBOLS.check(tables[0].size // SYM.size, self.part.name)
        self.symbols = [_Symbol(_name(strings, n), *rest) for n, *rest in SYM.iter_unpack(self.content(tables[0]))]

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset + size > len(self.data):
            raise self.error(f"{size} bytes at {offset:#x} lie outside the file")
        return self.data[offset : offset + size]

    def content(self, section: _Section) -> bytes:
        """The content of a section; the kept C text of an object gets the new names of its entries."""
        if section.type == SHT_NOBITS:
            return b""
        data = self._bytes(section.offset, section.size)
        return with_entries(data, self.part.entries) if section.name == SECTION else data

    def kept(self) -> Iterator[tuple[int, _Section]]:
        """The sections that go into the result as they are."""
        for i, section in enumerate(self.sections):
            if section.type == SHT_GROUP:
                raise self.error("it has section groups")
            if section.align > MOST_ALIGN or section.size > MOST_BYTES:
                raise self.error(f"section {i} has {section.size} bytes, aligned to {section.align}")
            tables = (SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_REL)
            if section.type not in tables and not section.flags & SHF_EXCLUDE:
                yield i, section


def _name(strings: bytes, offset: int) -> str:
    """A string of a string table; one longer than any valid name is damage."""
    if offset >= len(strings):
        return ""
    return strings[offset : strings.index(b"\0", offset, offset + MOST_NAME)].decode("utf-8", "replace")


def contents(name: str, data: bytes) -> tuple[list[_Section], list[_Symbol]]:
    """The sections and symbols of an object file; CompassError when it is none."""
    read = _Object(Part(name, data, {}))
    return read.sections, read.symbols


class _Linker:
    def __init__(self) -> None:
        self.sections: dict[tuple[str, int, int], _Joined] = {}
        self.locals: list[_Symbol] = [_Symbol("", 0, 0, 0, 0, 0)]
        self.globals: dict[str, _Symbol] = {}
        self.numbers: dict[str, int] = {}

    def add(self, obj: _Object) -> None:
        places: dict[int, tuple[_Joined, int]] = {}
        for i, section in obj.kept():
            flags = section.flags & ~(SHF_MERGE_STRINGS | SHF_INFO_LINK)
            key = (section.name, section.type, flags)
            joined = self.sections.setdefault(key, _Joined(len(self.sections) + 1, *key))
            content = obj.content(section)
            places[i] = joined, joined.append(content, len(content) or section.size, section.align)
        numbers = [self._symbol(obj, symbol, places) for symbol in obj.symbols]
        for section in obj.sections:
            if section.type == SHT_REL:
                raise obj.error("it has relocations without addends")
            if section.type == SHT_RELA and section.info in places:
                joined, base = places[section.info]
                for offset, info, addend in RELA.iter_unpack(obj.content(section)):
                    symbol = obj.symbols[info >> 32]
                    shift = (
                        places[symbol.section][1]
                        if symbol.info & 0xF == STT_SECTION and symbol.section in places
                        else 0
                    )
                    joined.relocations.append((base + offset, info & 0xFFFFFFFF, numbers[info >> 32], addend + shift))

    def _symbol(self, obj: _Object, symbol: _Symbol, places: Mapping[int, tuple[_Joined, int]]) -> int:
        """Takes a symbol over; gives its number: local ones count up from 0, global ones down from -1."""
        if symbol.section == SHN_COMMON:
            raise obj.error(f"the symbol '{symbol.name}' is in common storage")
        kind, bind = symbol.info & 0xF, symbol.info >> 4
        if symbol.section == 0:
            return self._global(symbol) if symbol.name else 0
        if symbol.section < SHN_RESERVED:
            if symbol.section not in places:
                return 0
            joined, base = places[symbol.section]
            value = 0 if kind == STT_SECTION else symbol.value + base
            symbol = symbol._replace(section=joined.index, value=value)
        if bind != STB_LOCAL and symbol.name in obj.part.entries:
            return self._global(symbol._replace(name=obj.part.entries[symbol.name], info=STB_GLOBAL << 4 | kind))
        self.locals.append(symbol._replace(info=STB_LOCAL << 4 | kind))
        return len(self.locals) - 1

    def _global(self, symbol: _Symbol) -> int:
        known = self.globals.get(symbol.name)
        if known is not None and known.section and symbol.section:
            raise CompassError(f"two objects define the entry '{symbol.name}'", code="duplicate-entry")
        if known is None or symbol.section:
            self.globals[symbol.name] = symbol
        return -1 - self.numbers.setdefault(symbol.name, len(self.numbers))

    def image(self, machine: int, flags: int) -> bytes:
        """The ELF file."""
        first_global = len(self.locals)
        strings = _Strings()
        symbols = b"".join(
            SYM.pack(strings.add(s.name), s.info, s.other, s.section, s.value, s.size)
            for s in [*self.locals, *self.globals.values()]
        )
        joined = list(self.sections.values())
        symtab = len(joined) + 1
        rows: list[tuple[str, int, int, bytes, int, int, int, int, int]] = [
            (j.name, j.type, j.flags, bytes(j.data), j.size, 0, 0, j.align, 0) for j in joined
        ]
        rows.append((".symtab", SHT_SYMTAB, 0, symbols, len(symbols), symtab + 1, first_global, 8, SYM.size))
        rows.append((".strtab", SHT_STRTAB, 0, bytes(strings.data), len(strings.data), 0, 0, 1, 0))
        for j in joined:
            if j.relocations:
                data = b"".join(
                    RELA.pack(offset, (n if n >= 0 else first_global - 1 - n) << 32 | kind, addend)
                    for offset, kind, n, addend in j.relocations
                )
                rows.append((f".rela{j.name}", SHT_RELA, SHF_INFO_LINK, data, len(data), symtab, j.index, 8, RELA.size))
        return _file(rows, machine, flags)


class _Strings:
    """A string table under construction."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._known: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._known[text]


def _file(rows: Sequence[tuple[str, int, int, bytes, int, int, int, int, int]], machine: int, flags: int) -> bytes:
    names = _Strings()
    body = bytearray(EHDR.size)
    headers = [bytes(SHDR.size)]
    for name, kind, section_flags, data, size, link, info, align, entsize in rows:
        body += bytes(-len(body) % max(align, 1))
        headers.append(SHDR.pack(names.add(name), kind, section_flags, 0, len(body), size, link, info, align, entsize))
        body += data
    own = names.add(".shstrtab")
    headers.append(SHDR.pack(own, SHT_STRTAB, 0, 0, len(body), len(names.data), 0, 0, 1, 0))
    body += names.data
    body += bytes(-len(body) % 8)
    ident = b"\x7fELF\2\1\1".ljust(16, b"\0")
    count = len(headers)
    body[: EHDR.size] = EHDR.pack(
        ident, 1, machine, 1, 0, 0, len(body), flags, EHDR.size, 0, 0, SHDR.size, count, count - 1
    )
    return bytes(body) + b"".join(headers)


def link(parts: Sequence[Part]) -> bytes:
    """One relocatable object made of `parts`; CompassError naming the object that does not fit."""
    objects = [_Object(part) for part in parts]
    linker = _Linker()
    for obj in objects:
        if obj.machine != objects[0].machine:
            raise obj.error(f"it is for machine {obj.machine}, '{objects[0].part.name}' for {objects[0].machine}")
        with obj.damage_refused():
            linker.add(obj)
    with objects[-1].damage_refused():
        return linker.image(objects[0].machine, objects[0].flags)

"""aipu.bin bytes to structure. Everything is checked; damage is an AipuBinError with place, field and offset."""

from __future__ import annotations

from typing import Any

from compass_core.aipubin.check import check
from compass_core.aipubin.fields import AipuBinError, Cursor, decode, layout_of
from compass_core.aipubin.layout import ElfHeader, NoteHeader, SectionHeader
from compass_core.aipubin.model import NOTE_NAMES, NOTE_SECTION, NOTES, SECTIONS, AipuBin, Note, NoteSpec
from compass_core.files.pieces import Pieces

ELF_MAGIC = b"\x7fELF"
OLD_MAGIC = b"AIPU BIN"
TYPE_EXEC, MACHINE, VERSION = 2, 0x29A, 1
_MIN_SIZE = 16


View = memoryview | Pieces
"""Bytes where they are."""


def read(data: bytes | Pieces) -> AipuBin:
    """The structure of an aipu.bin; AipuBinError when the file is damaged, incomplete or of another kind. Of a large file the
    weights stay where they are."""
    seen = data if isinstance(data, Pieces) else memoryview(data)
    _check_kind(seen)
    sections = _sections(seen)
    for name in (".text", NOTE_SECTION):
        if name not in sections:
            raise AipuBinError(f"the file has no section '{name}'", place="section table")
    values: dict[str, Any] = {
        attribute: bytes(sections[name])
        for name, attribute in SECTIONS.items()
        if name in sections and name != ".comment"
    }
    values["comment"] = _comment(bytes(sections.get(".comment", b"")))
    notes = _notes(sections[NOTE_SECTION])
    for spec in NOTES:
        _, payload = notes.pop(spec.name, (0, b""))
        if payload:
            values[spec.attribute] = _payload(spec, payload)
        elif spec.required:
            raise AipuBinError(f"the note '{spec.name}' is missing", place=f"section '{NOTE_SECTION}'")
    others = tuple(Note(name, bytes(payload), kind) for name, (kind, payload) in notes.items())
    result = AipuBin(**values, other_notes=others)
    check(result)
    return result


def _check_kind(file: View) -> None:
    if len(file) < _MIN_SIZE:
        raise AipuBinError(f"not an aipu.bin: {len(file)} bytes are too few", code="gversion-unsupported")
    data = bytes(file[:_MIN_SIZE])
    if data.startswith(OLD_MAGIC):
        raise AipuBinError(
            "an aipu.bin of the old flat form (v1/v2), which only Z1 to X1 devices use",
            code="gversion-unsupported",
            help="build for an X2 or X3 target",
        )
    if not data.startswith(ELF_MAGIC):
        raise AipuBinError(
            f"not an aipu.bin: the file starts with {data[:8].hex(' ')}, not with an ELF header",
            code="gversion-unsupported",
            help="`compassc build FILE -t TARGET` makes one of a kernel or of a model",
        )


def _header(data: View) -> ElfHeader:
    header = decode(ElfHeader, Cursor(bytes(data[: layout_of(ElfHeader).min_size]), "ELF header"))
    rules = (
        ("EI_CLASS", 4, header.ident[4], 1),
        ("EI_DATA", 5, header.ident[5], 1),
        ("e_type", 16, header.type, TYPE_EXEC),
        ("e_machine", 18, header.machine, MACHINE),
        ("e_version", 20, header.version, VERSION),
        ("e_shentsize", 46, header.shentsize, layout_of(SectionHeader).min_size),
    )
    for field, offset, value, wanted in rules:
        if value != wanted:
            raise AipuBinError(
                f"{value:#x} instead of {wanted:#x}; an ELF file, but not an aipu.bin",
                place="ELF header",
                field=field,
                offset=offset,
            )
    if header.shoff + header.shnum * header.shentsize > len(data):
        raise AipuBinError(
            f"{header.shnum} entries at {header.shoff:#x} reach past the end of the file "
            f"({len(data)} bytes); the file is truncated",
            place="section table",
            field="e_shoff",
            offset=header.shoff,
        )
    if header.shstrndx >= header.shnum:
        raise AipuBinError(
            f"entry {header.shstrndx} of {header.shnum} is to hold the section names",
            place="ELF header",
            field="e_shstrndx",
            offset=50,
        )
    return header


def _sections(data: View) -> dict[str, View]:
    """The content of the sections aipu.bin uses, by name; the first of a name counts."""
    header = _header(data)
    table = data[header.shoff : header.shoff + header.shnum * header.shentsize]
    cursor = Cursor(bytes(table), "section table")
    entries: list[SectionHeader] = []
    cursor.path = [("section", entries)]
    for _ in range(header.shnum):
        entries.append(decode(SectionHeader, cursor))
    names = bytes(_content(data, entries[header.shstrndx], "section names"))
    found: dict[str, View] = {}
    for index, entry in enumerate(entries):
        end = names.find(b"\0", entry.name)
        if entry.name >= len(names) or end < 0:
            raise AipuBinError(
                f"its name is at {entry.name:#x} of {len(names)} bytes of names",
                place="section table",
                field=f"section[{index}].name",
            )
        name = names[entry.name : end].decode("latin-1")
        if name in SECTIONS or name == NOTE_SECTION:
            found.setdefault(name, _content(data, entry, f"section '{name}'"))
    return found


def _content(data: View, entry: SectionHeader, place: str) -> View:
    if entry.offset + entry.size > len(data):
        raise AipuBinError(
            f"{entry.size} bytes at {entry.offset:#x} reach past the end of the file "
            f"({len(data)} bytes); the file is truncated",
            place=place,
            offset=entry.offset,
        )
    return data[entry.offset : entry.offset + entry.size]


def _comment(data: bytes) -> str:
    lines = [part for part in data.split(b"\0") if part]
    try:
        return b"\n".join(lines).decode()
    except UnicodeDecodeError as error:
        raise AipuBinError("not UTF-8 text", place="section '.comment'", offset=error.start) from error


def _notes(data: View) -> dict[str, tuple[int, View]]:
    """Types and contents of the notes by name, in file order; the first of a name counts."""
    cursor = Cursor(data, f"section '{NOTE_SECTION}'")
    notes: dict[str, tuple[int, View]] = {}
    header_size = layout_of(NoteHeader).min_size
    while cursor.remaining >= header_size:
        start = cursor.pos
        cursor.path = [("note", notes)]
        header = decode(NoteHeader, Cursor(cursor.take(header_size, "header"), cursor.place))
        if header.name_size == 0:
            raise cursor.fail("name_size", "a note without a name", start)
        name = cursor.take(header.name_size, "name").split(b"\0")[0]
        if not name.isascii() or not name.decode("ascii").isprintable() or not name:
            raise cursor.fail("name", f"{name[:20]!r} is not a name", start + header_size)
        _skip_padding(cursor)
        cursor.path = [(f"note '{name.decode()}'", None)]
        payload = cursor.pass_over(header.size, "payload")
        _skip_padding(cursor)
        notes.setdefault(name.decode(), (header.type, payload))
    return {name: note for name, note in notes.items() if note[1] or name in NOTE_NAMES}


def _skip_padding(cursor: Cursor) -> None:
    cursor.pos = min(-(-cursor.pos // 4) * 4, cursor.size)


def _payload(spec: NoteSpec, note: View | bytes) -> object:
    if spec.apart and isinstance(note, Pieces):
        return note
    payload = bytes(note)
    cursor = Cursor(payload, f"note '{spec.name}'")
    value = spec.read(cursor)
    rest = payload[cursor.pos :]
    if rest and (spec.exact or rest.strip(b"\0")):
        raise cursor.fail("end", f"{len(rest)} bytes follow the content")
    return value
